//! Leases whose claim is gone go back, with their rest; what has ended is put away.
//!
//! There is no finalizer: deleting a claim never waits for us. Instead every lease names its claim by uid, and whatever
//! names one that is not there any more is released: when a claim goes, at the start of a leader, and every minute. Easy to
//! get wrong: a claim that was made again under its name keeps the lease; only the server's own word frees an address.

use std::sync::Arc;
use std::time::Duration;

use kube::ResourceExt as _;
use kube::api::DynamicObject;
use mooring_api::VlanId;
use mooring_book::ClaimedLease;
use mooring_ipam::{State, Thing};
use serde_json::Value;

use super::claims::{check, gather};
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
    let mut freed = 0;
    for lease in &leases {
        match judge(view, lease) {
            Judgement::Fine => {}
            Judgement::Suspect => {
                if is_gone(view, lease).await? {
                    freed += usize::from(release(view, lease).await?);
                }
            }
            Judgement::MadeAgain(nth, claim) => adopt(view, nth, &claim).await?,
            Judgement::Surplus => {
                if was_told_another(view, lease).await? {
                    freed += usize::from(release(view, lease).await?);
                }
            }
        }
    }
    if freed > 0 {
        tracing::info!(freed, "what nobody claims any more went back");
        view.freed.notify_one();
        view.filled.notify_one();
    }
    Ok(())
}

/// What the watch says about a lease.
enum Judgement {
    Fine,
    /// Its claim is not there, or wants something else by now.
    Suspect,
    /// Its claim was made again under its name: the same holder, another uid.
    MadeAgain(usize, Arc<DynamicObject>),
    /// Its claim has another one, and was told so: a write whose answer was lost left this one.
    Surplus,
}

fn judge(view: &View, lease: &ClaimedLease) -> Judgement {
    let Some(claim) = lease
        .claim
        .as_ref()
        .filter(|_| lease.lease.state == State::Held)
    else {
        return Judgement::Fine;
    };
    // Another role's leases name other kinds.
    let Some((nth, shelf)) = view.shelf(&claim.api_version, &claim.kind) else {
        return Judgement::Fine;
    };
    let Some(found) = shelf.named(&claim.namespace, &claim.name) else {
        return Judgement::Suspect;
    };
    if found.uid().as_deref() != Some(claim.uid.as_str()) {
        return if wants(view, &found, lease) {
            Judgement::MadeAgain(nth, found)
        } else {
            Judgement::Suspect
        };
    }
    // Its identity may have changed (another cluster in its selector); one look at the status tells nearly always.
    let Some(told) = told(&found) else {
        return Judgement::Fine;
    };
    if told == lease.lease.thing {
        Judgement::Fine
    } else if !wants(view, &found, lease) {
        Judgement::Suspect
    } else if holds(view, lease, &told) {
        Judgement::Surplus
    } else {
        Judgement::Fine
    }
}

/// What a claim was told that it has; None where it is not Ready.
fn told(claim: &DynamicObject) -> Option<Thing> {
    let status = claim.data.get("status")?;
    if super::status::ready_of(status)?["status"] != "True" {
        return None;
    }
    if let Some(vlan) = status.get("vlanID").and_then(Value::as_u64) {
        let vlan = VlanId::try_from(u16::try_from(vlan).ok()?).ok()?;
        return Some(Thing::Vlan(vlan));
    }
    let prefix = status.get("prefix")?.as_str()?;
    let address = prefix.split('/').next()?;
    Some(Thing::Addr(address.parse().ok()?))
}

/// Whether the holder of a lease holds this beside it, as it was told.
fn holds(view: &View, beside: &ClaimedLease, told: &Thing) -> bool {
    let lease = &beside.lease;
    let same = std::mem::discriminant(&lease.thing) == std::mem::discriminant(told);
    let held = view.book.held_now(&lease.instance, &lease.holder);
    same && held.is_ok_and(|held| held.iter().any(|l| l.thing == *told))
}

/// Surplus by the server's word.
async fn was_told_another(view: &View, lease: &ClaimedLease) -> Result<bool, Error> {
    let Some(found) = claim_of(view, lease).await? else {
        return Ok(false);
    };
    let told = found.as_ref().and_then(told);
    Ok(told.is_some_and(|told| told != lease.lease.thing && holds(view, lease, &told)))
}

/// The claim of a lease as the server has it; None where it is none of ours.
async fn claim_of(
    view: &View,
    lease: &ClaimedLease,
) -> Result<Option<Option<DynamicObject>>, Error> {
    let Some(claim) = &lease.claim else {
        return Ok(None);
    };
    let Some((_, shelf)) = view.shelf(&claim.api_version, &claim.kind) else {
        return Ok(None);
    };
    let api = view.api(&shelf.served, &claim.namespace);
    let found = api.get_opt(&claim.name).await;
    found.map(Some).map_err(Error::api("look for a claim"))
}

/// Writes the new uid into the lease of a claim that was made again.
async fn adopt(view: &Arc<View>, nth: usize, claim: &DynamicObject) -> Result<(), Error> {
    let gathered = gather(view, nth, claim);
    let Ok(Some(wish)) = check(&gathered.object, &gathered.known) else {
        return Ok(());
    };
    let (book, now) = (Arc::clone(&view.book), view.world.now());
    let taken = tokio::task::spawn_blocking(move || {
        let pools = gathered.known.pools_for(&gathered.object);
        book.take_now(pools, &wish.claim, Some(&gathered.asked_by), now)
    });
    // A refusal is for the claim's own pass to tell.
    let taken = taken.await.map_err(|e| Error::Other(e.to_string()))??;
    if taken.is_ok() {
        view.world.metrics.wrote("IPLease");
    }
    Ok(())
}

/// Whether the claim of an object is for the holder of a lease.
fn wants(view: &View, found: &DynamicObject, lease: &ClaimedLease) -> bool {
    let known = view.known();
    match check(&object(found), &known) {
        Ok(Some(wish)) => wish.claim.holder == lease.lease.holder,
        // What cannot be read keeps what it has.
        Ok(None) | Err(_) => true,
    }
}

/// Gone by the server's word.
async fn is_gone(view: &View, lease: &ClaimedLease) -> Result<bool, Error> {
    Ok(match claim_of(view, lease).await? {
        None => false,
        Some(None) => true,
        Some(Some(found)) => !wants(view, &found, lease),
    })
}

async fn release(view: &Arc<View>, suspect: &ClaimedLease) -> Result<bool, Error> {
    view.world.fence()?;
    let suspect = suspect.clone();
    let (book, known, now) = (Arc::clone(&view.book), view.known(), view.world.now());
    let freed = tokio::task::spawn_blocking(move || {
        let lease = &suspect.lease;
        let rest = super::claims::cool_down(&known.native, &lease.instance, &lease.thing);
        // Not where the claim was made again since we looked: that one has it now.
        book.release_claimed(&suspect, rest, now)
    });
    let freed = freed.await.map_err(|e| Error::Other(e.to_string()))??;
    if freed {
        view.world.metrics.wrote("IPLease");
    }
    Ok(freed)
}
