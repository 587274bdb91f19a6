//! Leases whose claim is gone go back, with their rest; what has ended is put away.
//!
//! There is no finalizer: deleting a claim never waits for us. Instead every lease names its claim by uid, and whatever
//! names one that is not there any more is released: when a claim goes, at the start of a leader, and every minute. Easy to
//! get wrong: a claim that was made again under its name keeps the lease; only the server's own word frees an address.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use mooring_blueprint::bundle::group;
use mooring_book::ClaimedLease;
use mooring_ipam::State;

use super::claims::check;
use super::known::object;
use super::view::View;
use crate::error::{Error, chain};

/// Deletions that come together are one sweep.
const TOGETHER: Duration = Duration::from_millis(200);
/// And without any.
const EVERY: Duration = Duration::from_secs(30);
/// After a failure.
const AGAIN: Duration = Duration::from_secs(2);

/// Runs while we lead.
pub(super) async fn keep(view: Arc<View>) {
    loop {
        let pause = match sweep(&view).await {
            Ok(()) => EVERY,
            Err(error) => {
                tracing::warn!(error = chain(&error), "the sweep is not done");
                AGAIN
            }
        };
        tokio::select! {
            () = view.gone.notified() => tokio::time::sleep(TOGETHER).await,
            () = tokio::time::sleep(pause) => {}
        }
    }
}

async fn sweep(view: &Arc<View>) -> Result<(), Error> {
    let (book, now) = (Arc::clone(&view.book), view.world.now());
    let leases = tokio::task::spawn_blocking(move || {
        book.tidy(now)?;
        book.claimed()
    });
    let leases = leases.await.map_err(|e| Error::Other(e.to_string()))??;
    let suspects = leases.into_iter().filter(|lease| is_suspect(view, lease));
    let suspects: Vec<ClaimedLease> = suspects.collect();
    let mut freed = 0;
    for suspect in &suspects {
        if is_gone(view, suspect).await? {
            freed += usize::from(release(view, suspect).await?);
        }
    }
    if freed > 0 {
        tracing::info!(freed, "what nobody claims any more went back");
        view.freed.notify_one();
        view.filled.notify_one();
    }
    Ok(())
}

/// Whether a lease's claim is not there as far as the watch knows, or wants something else by now.
fn is_suspect(view: &View, lease: &ClaimedLease) -> bool {
    let Some(claim) = &lease.claim else {
        return false;
    };
    let ours = claim.api_version.split('/').next().unwrap_or_default();
    let ours = [group::IPAM, group::IPAM_SEED, group::VLAN].contains(&ours);
    if !ours || lease.lease.state != State::Held {
        return false;
    }
    let Some((_, shelf)) = view.shelf(&claim.api_version, &claim.kind) else {
        return false;
    };
    let resource = shelf.served.resource.clone();
    let named = kube::runtime::reflector::ObjectRef::new_with(&claim.name, resource);
    let Some(found) = shelf.store.get(&named.within(&claim.namespace)) else {
        return true;
    };
    if found.uid().as_deref() != Some(claim.uid.as_str()) {
        // Made again under its name: its pass takes the lease over, as the same holder.
        return !wants(view, &found, lease);
    }
    // Its identity changed (another cluster in its selector): the old lease is nobody's.
    let ready = found.data.get("status").and_then(super::status::ready_of);
    ready.is_some_and(|c| c["status"] == "True") && !wants(view, &found, lease)
}

/// Whether the claim of an object is for the holder of a lease.
fn wants(view: &View, found: &kube::api::DynamicObject, lease: &ClaimedLease) -> bool {
    let known = view.known();
    match check(&object(found), &known) {
        Ok(Some(wish)) => wish.claim.holder == lease.lease.holder,
        // What cannot be read keeps what it has.
        Ok(None) | Err(_) => true,
    }
}

/// The same by the server's word.
async fn is_gone(view: &View, lease: &ClaimedLease) -> Result<bool, Error> {
    let Some((claim, (_, shelf))) = lease
        .claim
        .as_ref()
        .and_then(|claim| Some((claim, view.shelf(&claim.api_version, &claim.kind)?)))
    else {
        return Ok(false);
    };
    let api = view.api(&shelf.served, &claim.namespace);
    let found = api.get_opt(&claim.name).await;
    match found.map_err(Error::api("look for a claim"))? {
        None => Ok(true),
        Some(found) => Ok(!wants(view, &found, lease)),
    }
}

async fn release(view: &Arc<View>, suspect: &ClaimedLease) -> Result<bool, Error> {
    view.world.fence()?;
    let lease = suspect.lease.clone();
    let (book, known, now) = (Arc::clone(&view.book), view.known(), view.world.now());
    let freed = tokio::task::spawn_blocking(move || {
        let rest = super::claims::cool_down(&known.native, &lease.instance, &lease.thing);
        book.release_now(&lease.instance, &lease.thing, &lease.holder, rest, now)
    });
    let freed = freed.await.map_err(|e| Error::Other(e.to_string()))??;
    if freed {
        view.world.metrics.wrote("IPLease");
    }
    Ok(freed)
}
