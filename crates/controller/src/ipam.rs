//! The role `ipam`: claims get addresses and VLANs from pools, pools say how full they are.
//!
//! ```text
//!  watches ─► View (objects, pools as read, who waits) ─► claims: gather, check, decide, apply, report
//!     leases ─► KubeStore (the book)                  └─► pools: statuses, at most one write per pool every few seconds
//!                                                     └─► sweep: leases whose claim is gone go back
//! ```
//!
//! To change what an address costs or which is chosen, open `mooring-ipam`; how an object is read, `mooring-blueprint`
//! (`standing`, `pools`). Easy to get wrong: watches run in every replica, so that a new leader knows everything at once;
//! only a leader acts, and its writes are fenced here ([`World::fence`]) and in the book.

mod claims;
mod kinds;
mod known;
mod pools;
mod status;
mod sweep;
mod view;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use mooring_book::Writers;
use tokio::task::JoinSet;

use crate::error::{Error, chain};
use crate::living::Living;
use crate::world::World;
pub(crate) use kinds::NEEDS;
use kinds::Served;
use view::View;

/// How often the installed definitions are looked at.
const LOOK: Duration = Duration::from_secs(30);
/// How often a replica asks whether it leads.
const ASK: Duration = Duration::from_millis(100);

/// Runs the role until the end.
pub(crate) async fn run(world: World) -> Result<()> {
    world.readiness.set("ipam", false);
    let book = world
        .book(Writers::One)
        .context("cannot open the address book")?;
    while !world.shutdown.has_come() {
        match look(&world).await {
            Ok((served, living)) => {
                let view = View::new(world.clone(), Arc::clone(&book), served, living);
                serve(&Arc::new(view)).await?;
            }
            Err(error) => {
                tracing::warn!(
                    error = chain(&error),
                    "the API server does not say what it serves"
                );
                wait(&world, Duration::from_secs(1)).await;
            }
        }
        world.readiness.set("ipam", false);
    }
    Ok(())
}

async fn look(world: &World) -> Result<(Vec<Served>, Living), Error> {
    let served = kinds::served(&world.client).await?;
    let living = Living::look(world, NEEDS).await?;
    Ok((served, living))
}

/// Watches and acts until the end, or until other definitions are installed.
async fn serve(view: &Arc<View>) -> Result<()> {
    let world = &view.world;
    let mut tasks = JoinSet::new();
    watch::start(view, &mut tasks);
    let work = async {
        view.synced().await;
        world.readiness.set("ipam", true);
        tracing::info!(kinds = view.shelves.len(), "everything is known");
        lead(view).await;
    };
    let others = async {
        view.living.other_comes(world).await;
        view.outdated();
        view.enqueue_claims();
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = work => {}
        () = others => {}
        () = changed(view) => tracing::info!("other definitions are installed; beginning again"),
        () = world.shutdown.clone().wait() => {}
        Some(ended) = tasks.join_next() => ended.context("a watch panicked")?,
    }
    tasks.shutdown().await;
    Ok(())
}

/// Acts while we lead, again and again.
async fn lead(view: &Arc<View>) {
    loop {
        while !view.world.leadership.holds() {
            wait(&view.world, ASK).await;
        }
        let mut tasks = JoinSet::new();
        claims::start(view, &mut tasks);
        tasks.spawn(pools::keep(Arc::clone(view)));
        tasks.spawn(sweep::keep(Arc::clone(view)));
        tasks.spawn(watch::wake(Arc::clone(view)));
        while view.world.leadership.holds() && !view.world.shutdown.has_come() {
            wait(&view.world, ASK).await;
        }
        // What is at a write finds the fence closed.
        tasks.shutdown().await;
        view.world.metrics.leave_pools();
        view.world.metrics.stand(view.world.role.name(), []);
        if view.world.shutdown.has_come() {
            return;
        }
        tracing::info!("another replica leads; watching");
    }
}

/// Returns when the server serves other kinds, or other fields of them.
async fn changed(view: &Arc<View>) {
    loop {
        wait(&view.world, LOOK).await;
        let now = kinds::served(&view.world.client).await;
        let schemas = crate::living::Schemas::compare(&view.world.client, NEEDS).await;
        if let (Ok(served), Ok(schemas)) = (now, schemas) {
            let known = view.shelves.iter().map(|shelf| &shelf.served);
            if !known.eq(served.iter()) || schemas != view.living.schemas {
                return;
            }
        }
    }
}

/// Waits, but not beyond the end.
async fn wait(world: &World, time: Duration) {
    tokio::select! {
        () = tokio::time::sleep(time) => {}
        () = world.shutdown.clone().wait() => {}
    }
}
