//! Watches fill the view; what changes wakes whoever waits for it.
//!
//! ```text
//!  IPClaim, VLANClaim ─► its own pass; gone ─► sweep
//!  pools ─► all claims (a gateway may differ) and statuses       leases ─► who waits, and statuses
//! ```
//!
//! Easy to get wrong: a watch that was interrupted lists again and says nothing about what went meanwhile, so the end of
//! every list counts as "something may be gone".

use std::collections::BTreeSet;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use kube::api::{DynamicObject, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Resource, ResourceExt as _};
use mooring_api::kinds::mooring::{IPLease, PrefixLedger};
use mooring_api::kinds::nephio::ipam::IPAllocationSpec;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::task::JoinSet;

use super::kinds::What;
use super::view::{Shelf, View};
use crate::error::chain;

/// Changes that come together are answered together.
const TOGETHER: Duration = Duration::from_millis(200);

/// Starts every watch.
pub(super) fn start(view: &Arc<View>, tasks: &mut JoinSet<()>) {
    for nth in 0..view.shelves.len() {
        let view = Arc::clone(view);
        tasks.spawn(async move { shelf(&view, nth).await });
    }
    let (of_leases, of_ledgers) = (Arc::clone(view), Arc::clone(view));
    tasks.spawn(async move { leases::<IPLease>(&of_leases).await });
    tasks.spawn(async move { leases::<PrefixLedger>(&of_ledgers).await });
}

async fn shelf(view: &View, nth: usize) {
    let shelf = &view.shelves[nth];
    let api = Api::all_with(view.world.client.clone(), &shelf.served.resource);
    let events = watcher(api, watcher::Config::default().page_size(200));
    let events = events.default_backoff().modify(slim);
    if shelf.what() == What::Allocation {
        return follow(view, nth, events).await;
    }
    let writer = shelf
        .writer
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .take();
    let writer = writer.expect("a shelf is watched once");
    follow(view, nth, events.reflect(writer)).await;
}

/// What nobody reads is not kept.
fn slim(object: &mut DynamicObject) {
    object.managed_fields_mut().clear();
}

async fn follow(
    view: &View,
    nth: usize,
    events: impl Stream<Item = watcher::Result<Event<DynamicObject>>>,
) {
    let shelf = &view.shelves[nth];
    let mut listed = BTreeSet::new();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Init) => listed.clear(),
            // A claim of a list is not in the store before the list's end, and the queue drops what is not there.
            Ok(Event::InitApply(object)) => {
                notice(view, &object);
                if shelf.what() == What::Allocation {
                    listed.insert(key(&object));
                    touched(view, shelf, &object);
                }
            }
            Ok(Event::Apply(object)) => {
                notice(view, &object);
                touched(view, shelf, &object);
            }
            Ok(Event::Delete(object)) => gone(view, nth, shelf, &object),
            Ok(Event::InitDone) => {
                if shelf.what() == What::Allocation {
                    let left = view.keep_allocations(&shelf.served.resource.api_version, &listed);
                    for key in &left {
                        comes_back(view, key);
                    }
                    listed.clear();
                }
                if shelf.what().is_claim() {
                    shelf.enqueue_all();
                }
                shelf.synced.send_replace(true);
                view.gone.notify_one();
                if shelf.what().is_pool() {
                    view.outdated();
                }
            }
            Err(error) => tracing::warn!(
                kind = shelf.what().kind(),
                error = chain(&error),
                "the watch is interrupted"
            ),
        }
    }
}

fn notice(view: &View, object: &DynamicObject) {
    if view.living.notice(&object.metadata) {
        view.outdated();
        view.enqueue_claims();
    }
}

fn touched(view: &View, shelf: &Shelf, object: &DynamicObject) {
    match shelf.what() {
        What::Claim | What::VlanClaim => shelf.enqueue(object),
        What::Instance | What::Prefix | What::Index => view.outdated(),
        What::Allocation => view.note_allocation(key(object), Some(says(object))),
    }
}

fn gone(view: &View, nth: usize, shelf: &Shelf, object: &DynamicObject) {
    let (namespace, name) = (object.namespace().unwrap_or_default(), object.name_any());
    match shelf.what() {
        What::Claim | What::VlanClaim => {
            view.waits(nth, &namespace, &name, false);
            view.gone.notify_one();
        }
        What::Instance | What::Prefix | What::Index => view.outdated(),
        What::Allocation => {
            view.note_allocation(key(object), None);
            comes_back(view, &key(object));
        }
    }
}

/// A projection that somebody deleted comes back with its claim's next pass.
fn comes_back(view: &View, (version, namespace, name): &(String, String, String)) {
    if let Some((_, claims)) = view.shelf(version, "IPClaim") {
        claims.enqueue_named(namespace, name);
    }
}

/// API version, namespace and name.
fn key(object: &DynamicObject) -> (String, String, String) {
    let types = object.types.as_ref();
    let version = types.map(|t| t.api_version.clone()).unwrap_or_default();
    let namespace = object.namespace().unwrap_or_default();
    (version, namespace, object.name_any())
}

/// What an IPAllocation says, and for whom, as one number: enough to see whether it must be written.
pub(super) fn says(object: &DynamicObject) -> u64 {
    let owner = object.owner_references().first().map(|o| o.uid.clone());
    digest(object.data.get("spec"), owner.as_deref())
}

/// The same of what would be written.
pub(super) fn digest(spec: Option<&Value>, owner: Option<&str>) -> u64 {
    let spec = spec.and_then(|s| serde_json::from_value::<IPAllocationSpec>(s.clone()).ok());
    let spec = spec.and_then(|s| serde_json::to_string(&s).ok());
    let mut hasher = DefaultHasher::new();
    (spec, owner).hash(&mut hasher);
    hasher.finish()
}

/// Only that something changed: what, the book knows.
async fn leases<K>(view: &View)
where
    K: Resource<DynamicType = ()> + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let api: Api<PartialObjectMeta<K>> = Api::all(view.world.client.clone());
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let mut events = std::pin::pin!(events);
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Delete(_) | Event::InitDone) => {
                view.freed.notify_one();
                view.filled.notify_one();
            }
            // A ledger and a lease that cools change in place.
            Ok(Event::Apply(object)) => {
                if object.metadata.generation.unwrap_or(1) > 1 {
                    view.freed.notify_one();
                }
                view.filled.notify_one();
            }
            Ok(Event::Init | Event::InitApply(_)) => {}
            Err(error) => {
                tracing::debug!(kind = %K::kind(&()), error = chain(&error), "the watch is interrupted");
            }
        }
    }
}

/// Has claims looked at when pools change or something was given back; runs while we lead.
pub(super) async fn wake(view: Arc<View>) {
    let mut last = view.known();
    loop {
        view.freed.notified().await;
        tokio::time::sleep(TOGETHER).await;
        let known = view.known();
        if known.gives_the_same(&last) {
            view.enqueue_waiting();
        } else {
            view.enqueue_claims();
        }
        last = known;
    }
}
