//! The writes of a claim: its lease in the book, what it had before goes back, its IPAllocation.
//!
//! The book blocks its thread, so it is asked on one that may be blocked. Easy to get wrong: what is chosen stays marked
//! until the book has answered, whatever the answer is.

use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use mooring_api::{Code, Finding, Time};
use mooring_blueprint::Object;
use mooring_blueprint::claim::Wish;
use mooring_blueprint::standing;
use mooring_book::KubeStore;
use mooring_ipam::{Claim, InstanceKey, Lease, Pools, Refusal, Thing};
use serde_json::{Map, Value, json};

use super::super::kinds::What;
use super::super::view::View;
use super::super::watch::digest;
use super::decide::{Step, decide};
use super::gather::Gathered;
use crate::error::Error;

/// After which time a claim that found everything being taken looks again.
const SOON: Duration = Duration::from_millis(200);

/// What became of a claim.
pub(super) struct Applied {
    /// The fields of the status that are the answer.
    pub(super) says: Map<String, Value>,
    /// What it has now.
    pub(super) lease: Option<Lease>,
    /// Why it has nothing, or not what it wants.
    pub(super) refused: Option<Finding>,
    /// It had another one before.
    pub(super) moved_from: Option<Thing>,
    /// It waits for room.
    pub(super) waits: bool,
    /// Look again after.
    pub(super) again: Option<Duration>,
}

impl Applied {
    /// A claim that cannot be read, or asks for what is not there.
    pub(super) fn refused(finding: Finding) -> Self {
        Self {
            says: Map::new(),
            lease: None,
            // What it names may come into being.
            waits: finding.code == Code::UnknownNetworkInstance,
            refused: Some(finding),
            moved_from: None,
            again: None,
        }
    }
}

/// Makes it so.
pub(super) async fn apply(
    view: &Arc<View>,
    gathered: &Gathered,
    wish: &Wish,
) -> Result<Applied, Error> {
    let (by, claim, now) = (Arc::clone(view), wish.claim.clone(), view.world.now());
    let known = Arc::clone(&gathered.known);
    let object = gathered.object.clone();
    let asked_by = gathered.asked_by.clone();
    let taken = tokio::task::spawn_blocking(move || {
        let pools = known.pools_for(&object);
        take(&by, pools, &claim, &asked_by, now)
    });
    let taken = taken.await.map_err(|e| Error::Other(e.to_string()))??;
    let Taken {
        outcome,
        held,
        moved_from,
        wrote,
    } = taken;
    for _ in 0..wrote {
        view.world.metrics.wrote("IPLease");
    }
    let mut applied = match outcome {
        Got::Lease(lease) => Applied {
            says: standing::answer(wish, &lease),
            lease: Some(*lease),
            refused: None,
            moved_from,
            waits: false,
            again: None,
        },
        Got::Busy => {
            let finding = Finding::warning(Code::BookBusy, "others are taking what is left");
            let mut applied = Applied::refused(finding.on(&wish.object));
            applied.again = Some(SOON);
            applied
        }
        Got::Refused(refusal) => {
            let mut finding = refusal.finding();
            finding.object = Some(wish.object.clone());
            let mut applied = Applied::refused(finding);
            // What it still holds stays the answer: nobody else gets it.
            if let Some(lease) = held {
                applied.says = standing::answer(wish, &lease);
            }
            applied.waits = true;
            applied
        }
    };
    if let Some(lease) = applied.lease.clone() {
        allocation(view, gathered, wish, &lease).await?;
        applied.lease = Some(lease);
    }
    Ok(applied)
}

enum Got {
    Lease(Box<Lease>),
    Refused(Box<Refusal>),
    Busy,
}

struct Taken {
    outcome: Got,
    /// What the holder has although it was refused.
    held: Option<Lease>,
    moved_from: Option<Thing>,
    wrote: u32,
}

/// Blocks: chooses under the mark, asks the book, gives back what it had before.
fn take(
    view: &View,
    pools: &Pools,
    claim: &Claim,
    asked_by: &mooring_api::kinds::mooring::ClaimRef,
    now: Time,
) -> Result<Taken, Error> {
    let book: &KubeStore = &view.book;
    let (step, marked) = {
        let mut taking = view.taking();
        let mut step = None;
        book.with_table(&claim.instance, &mut |table| {
            step = Some(decide(pools, table, claim, &taking, now));
        })?;
        let step = step.expect("a table is shown once");
        let marked = match &step {
            Step::Take(claim, Some(thing)) => Some((claim.instance.clone(), *thing)),
            _ => None,
        };
        taking.extend(marked.clone());
        (step, marked)
    };
    let mut taken = Taken {
        outcome: Got::Busy,
        held: None,
        moved_from: None,
        wrote: 0,
    };
    let wanted = match step {
        Step::Has(lease) => {
            // One that names a claim which is gone is about to be given back: it is ours only once it names us.
            let named = book.asked_by(&lease.instance, &lease.thing)?;
            if named.is_some_and(|by| by.uid == asked_by.uid) {
                taken.outcome = Got::Lease(Box::new(lease));
                return Ok(taken);
            }
            claim.clone()
        }
        Step::Busy => return Ok(taken),
        Step::Refused(refusal) => {
            taken.held = held(book, claim)?.into_iter().next();
            taken.outcome = Got::Refused(refusal);
            return Ok(taken);
        }
        Step::Take(wanted, _) => wanted,
    };
    let answer = book.take_now(pools, &wanted, Some(asked_by), now);
    if let Some(marked) = marked {
        view.taking().remove(&marked);
    }
    match answer? {
        Ok(lease) => {
            taken.wrote = 1;
            for old in held(book, claim)? {
                if old.thing != lease.thing && same_sort(&old.thing, &lease.thing) {
                    let rest = cool_down(pools, &old.instance, &old.thing);
                    book.release_now(&old.instance, &old.thing, &old.holder, rest, now)?;
                    taken.moved_from = Some(old.thing);
                    taken.wrote += 1;
                }
            }
            taken.outcome = Got::Lease(Box::new(lease));
        }
        Err(refusal) => {
            taken.held = held(book, claim)?.into_iter().next();
            taken.outcome = Got::Refused(Box::new(refusal));
        }
    }
    Ok(taken)
}

fn held(book: &KubeStore, claim: &Claim) -> Result<Vec<Lease>, Error> {
    Ok(book.held_now(&claim.instance, &claim.holder)?)
}

fn same_sort(a: &Thing, b: &Thing) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b)
}

/// How long something of a pool rests after its release.
pub(in crate::ipam) fn cool_down(
    pools: &Pools,
    instance: &InstanceKey,
    thing: &Thing,
) -> mooring_api::Span {
    let range = thing.range();
    let around = pools.prefixes.iter().filter(|p| p.instance == *instance);
    let around = around.filter(|p| range.is_some_and(|r| p.covers(&r)));
    let narrowest = around.max_by_key(|p| p.cidr.prefix_len());
    narrowest.map(|p| p.cool_down).unwrap_or_default()
}

/// The projection of a claim by hand, where it does not say so already.
async fn allocation(
    view: &Arc<View>,
    gathered: &Gathered,
    wish: &Wish,
    lease: &Lease,
) -> Result<(), Error> {
    let Some(made) = standing::allocation(&gathered.object, wish, lease) else {
        return Ok(());
    };
    let version = &gathered.asked_by.api_version;
    let Some((_, shelf)) = view.shelf(version, What::Allocation.kind()) else {
        return Ok(());
    };
    let object = owned(made, gathered);
    let key = (
        version.clone(),
        gathered.asked_by.namespace.clone(),
        gathered.asked_by.name.clone(),
    );
    let says = digest(object.get("spec"), Some(&gathered.asked_by.uid));
    if view.allocation(&key) == Some(says) {
        return Ok(());
    }
    let api = view.api(&shelf.served, &key.1);
    let written = view
        .world
        .apply(&api, &key.2, &object, "write the IPAllocation");
    written.await?;
    view.world.metrics.wrote(What::Allocation.kind());
    view.note_allocation(key, Some(says));
    Ok(())
}

/// With its claim as owner: it goes when the claim goes.
fn owned(made: Object, gathered: &Gathered) -> Value {
    let claim = &gathered.asked_by;
    let owner = OwnerReference {
        api_version: claim.api_version.clone(),
        kind: claim.kind.clone(),
        name: claim.name.clone(),
        uid: claim.uid.clone(),
        controller: Some(true),
        block_owner_deletion: None,
    };
    let mut value = made.value;
    value["metadata"]["ownerReferences"] = json!([owner]);
    value
}
