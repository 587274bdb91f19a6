//! IPClaims and VLANClaims: a lease, a status, and for a claim by hand an IPAllocation. Three writes at most.
//!
//! ```text
//!  gather ─► check ─► decide ─► apply (the lease, the IPAllocation) ─► report (status, Event)
//!  object    wish     has it, take it, or why not
//! ```
//!
//! Easy to get wrong: a refusal is not an error. The claim says why on its status and waits; a change of pools or an
//! address that was given back wakes it.

mod apply;
mod check;
mod decide;
mod gather;
mod report;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use futures::channel::mpsc;
use kube::ResourceExt as _;
use kube::api::DynamicObject;
use kube::runtime::controller::{Action, Config, applier};
use tokio::task::JoinSet;

use super::view::{View, reference};
use crate::error::Error;

/// How many claims are at work at once, per kind.
const AT_ONCE: u16 = 24;

pub(super) use apply::cool_down;
pub(super) use check::check;
pub(super) use gather::gather;
pub(super) use report::join;

/// Starts a reconciler per kind and group of claims, beginning with everything that is there.
pub(super) fn start(view: &Arc<View>, tasks: &mut JoinSet<()>) {
    let claims = view.shelves.iter().enumerate();
    for (nth, shelf) in claims.filter(|(_, s)| s.what().is_claim()) {
        let (sender, queue) = mpsc::unbounded();
        view.queue(nth, sender);
        let passes = applier(
            move |object, view: Arc<View>| {
                Box::pin(async move { Ok::<_, Infallible>(reconcile(&view, nth, &object).await) })
            },
            |_, never: &Infallible, _| match *never {},
            Arc::clone(view),
            shelf.store.clone(),
            queue,
            Config::default().concurrency(AT_ONCE),
        );
        // A claim that went before its turn is an error of the applier, and none of ours.
        tasks.spawn(passes.for_each(|_| std::future::ready(())));
    }
}

async fn reconcile(view: &Arc<View>, nth: usize, object: &DynamicObject) -> Action {
    let kind = view.shelves[nth].what().kind();
    let name = format!(
        "{kind}/{}/{}",
        object.namespace().unwrap_or_default(),
        object.name_any()
    );
    let work = pass(view, nth, object);
    view.world.pass(kind, &name, work).await
}

async fn pass(
    view: &Arc<View>,
    nth: usize,
    object: &DynamicObject,
) -> Result<Option<Duration>, Error> {
    let served = &view.shelves[nth].served;
    if object.metadata.deletion_timestamp.is_some() {
        return Ok(None);
    }
    if !view.living.is_ours(&object.metadata) {
        view.living
            .tell_ignored(&view.world, &reference(object, served))
            .await;
        return Ok(None);
    }
    let gathered = gather(view, nth, object);
    let applied = match check(&gathered.object, &gathered.known) {
        Ok(None) => return Ok(None),
        Ok(Some(wish)) => apply::apply(view, &gathered, &wish).await?,
        Err(finding) => apply::Applied::refused(finding),
    };
    report::report(view, &gathered, object, &applied).await?;
    Ok(applied.again)
}
