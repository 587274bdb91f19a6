//! What the role knows at this moment: the objects, the pools as read, who waits, what is being taken.
//!
//! Filled by [`super::watch`], read by everything else. Easy to get wrong: a claim's candidate is marked as being taken
//! *while the table is looked at*, so that sixteen claims at once do not all try the lowest address.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::channel::mpsc::UnboundedSender;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::DynamicObject;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Resource as _, ResourceExt as _};
use mooring_blueprint::Object;
use mooring_book::KubeStore;
use mooring_ipam::{InstanceKey, Thing};
use tokio::sync::Notify;

use super::kinds::{Served, What};
use super::known::{Known, object};
use crate::living::Living;
use crate::world::World;

/// A place in the work queue of a kind.
pub(super) type Work = Result<ObjectRef<DynamicObject>, std::convert::Infallible>;

/// One kind of one group: its objects, and the queue of whoever acts on them.
pub(super) struct Shelf {
    pub(super) served: Served,
    pub(super) store: Store<DynamicObject>,
    pub(super) writer: Mutex<Option<kube::runtime::reflector::store::Writer<DynamicObject>>>,
    queue: Mutex<Option<UnboundedSender<Work>>>,
    /// Whether everything that was there is known.
    pub(super) synced: tokio::sync::watch::Sender<bool>,
}

/// What is known.
pub(super) struct View {
    pub(super) world: World,
    pub(super) book: Arc<KubeStore>,
    pub(super) living: Living,
    pub(super) shelves: Vec<Shelf>,
    known: Mutex<Arc<Known>>,
    stale: AtomicBool,
    /// IPAllocations by API version, namespace and name, and what they say.
    allocations: Mutex<BTreeMap<(String, String, String), u64>>,
    /// Claims that wait for room, by shelf, namespace and name.
    waiting: Mutex<BTreeSet<(usize, String, String)>>,
    /// What is being taken at this moment.
    taking: Mutex<BTreeSet<(InstanceKey, Thing)>>,
    /// Something about pools or leases changed: statuses of pools.
    pub(super) filled: Notify,
    /// Pools changed, or something was given back: claims that wait.
    pub(super) freed: Notify,
    /// A claim went: its lease.
    pub(super) gone: Notify,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing panics between two halves of a change.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl View {
    pub(super) fn new(
        world: World,
        book: Arc<KubeStore>,
        served: Vec<Served>,
        living: Living,
    ) -> Self {
        let shelf = |served: Served| {
            let writer = kube::runtime::reflector::store::Writer::new(served.resource.clone());
            Shelf {
                served,
                store: writer.as_reader(),
                writer: Mutex::new(Some(writer)),
                queue: Mutex::default(),
                synced: tokio::sync::watch::Sender::new(false),
            }
        };
        Self {
            world,
            book,
            living,
            shelves: served.into_iter().map(shelf).collect(),
            known: Mutex::default(),
            stale: AtomicBool::new(true),
            allocations: Mutex::default(),
            waiting: Mutex::default(),
            taking: Mutex::default(),
            filled: Notify::new(),
            freed: Notify::new(),
            gone: Notify::new(),
        }
    }

    /// Waits until every watch and the book have told everything.
    pub(super) async fn synced(&self) {
        for shelf in &self.shelves {
            let mut synced = shelf.synced.subscribe();
            // The sender lives in the shelf.
            let _ = synced.wait_for(|synced| *synced).await;
        }
        loop {
            let book = Arc::clone(&self.book);
            let synced = tokio::task::spawn_blocking(move || book.synced()).await;
            match synced {
                Ok(Ok(())) => return,
                Ok(Err(error)) => {
                    tracing::warn!(
                        error = crate::error::chain(&error),
                        "the book is not known yet"
                    );
                }
                Err(error) => tracing::warn!(%error, "the book is not known yet"),
            }
            tokio::time::sleep(std::time::Duration::from_millis(200)).await;
        }
    }

    /// The shelf of a claim by its API version and kind.
    pub(super) fn shelf(&self, api_version: &str, kind: &str) -> Option<(usize, &Shelf)> {
        let is_it = |(_, shelf): &(usize, &Shelf)| {
            shelf.served.resource.api_version == api_version && shelf.served.resource.kind == kind
        };
        self.shelves.iter().enumerate().find(is_it)
    }

    /// The pools as they are now.
    pub(super) fn known(&self) -> Arc<Known> {
        let mut known = lock(&self.known);
        // Read under the lock: whoever finds it fresh finds what was read.
        if self.stale.swap(false, Ordering::SeqCst) {
            *known = Arc::new(self.read());
        }
        Arc::clone(&known)
    }

    /// The pools must be read again.
    pub(super) fn outdated(&self) {
        self.stale.store(true, Ordering::SeqCst);
        self.freed.notify_one();
        self.filled.notify_one();
    }

    fn read(&self) -> Known {
        let mut found = Vec::new();
        for shelf in self.shelves.iter().filter(|s| s.served.what.is_pool()) {
            let all = shelf.store.state();
            let ours = all.iter().filter(|o| self.living.is_ours(&o.metadata));
            found.extend(ours.map(|o| (o.creation_timestamp(), object(o))));
        }
        // By age, then by name: the order of events decides nothing, and of two pools that overlap the older one stays.
        found.sort_by_cached_key(|(made, object)| (made.clone(), object.reference()));
        let objects: Vec<Object> = found.into_iter().map(|(_, object)| object).collect();
        let definition = super::kinds::NEEDS[0].definition;
        let dropped: Vec<&str> = self.living.schemas.missing(definition).collect();
        Known::read(&objects, &dropped)
    }

    /// Lets whoever leads act on objects of a shelf, beginning with all that are there.
    pub(super) fn queue(&self, shelf: usize, to: UnboundedSender<Work>) {
        let shelf = &self.shelves[shelf];
        *lock(&shelf.queue) = Some(to);
        shelf.enqueue_all();
    }

    /// Has every claim looked at.
    pub(super) fn enqueue_claims(&self) {
        let claims = self.shelves.iter().filter(|s| s.served.what.is_claim());
        claims.for_each(Shelf::enqueue_all);
    }

    /// Has the claims looked at that wait for room.
    pub(super) fn enqueue_waiting(&self) {
        let waiting = std::mem::take(&mut *lock(&self.waiting));
        for (shelf, namespace, name) in waiting {
            self.shelves[shelf].enqueue_named(&namespace, &name);
        }
    }

    /// A claim waits for room, or does not any more.
    pub(super) fn waits(&self, shelf: usize, namespace: &str, name: &str, waits: bool) {
        let key = (shelf, namespace.to_owned(), name.to_owned());
        let mut waiting = lock(&self.waiting);
        if waits {
            waiting.insert(key);
        } else {
            waiting.remove(&key);
        }
    }

    /// What is being taken, to choose something else. Held only while a choice is made.
    pub(super) fn taking(&self) -> MutexGuard<'_, BTreeSet<(InstanceKey, Thing)>> {
        lock(&self.taking)
    }

    /// What an IPAllocation is known to say.
    pub(super) fn allocation(&self, key: &(String, String, String)) -> Option<u64> {
        lock(&self.allocations).get(key).copied()
    }

    /// An IPAllocation says this, or is gone.
    pub(super) fn note_allocation(&self, key: (String, String, String), says: Option<u64>) {
        let mut allocations = lock(&self.allocations);
        match says {
            Some(says) => allocations.insert(key, says),
            None => allocations.remove(&key),
        };
    }

    /// Of the IPAllocations of an API version these are there; gives those that were known and went.
    pub(super) fn keep_allocations(
        &self,
        version: &str,
        there: &BTreeSet<(String, String, String)>,
    ) -> Vec<(String, String, String)> {
        let mut allocations = lock(&self.allocations);
        let gone = allocations
            .keys()
            .filter(|k| k.0 == version && !there.contains(k));
        let gone: Vec<_> = gone.cloned().collect();
        for key in &gone {
            allocations.remove(key);
        }
        gone
    }

    /// An interface to a kind in a namespace.
    pub(super) fn api(&self, served: &Served, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.world.client.clone(), namespace, &served.resource)
    }
}

/// What an Event is about.
pub(super) fn reference(object: &DynamicObject, served: &Served) -> ObjectReference {
    object.object_ref(&served.resource)
}

impl Shelf {
    /// Has an object looked at.
    pub(super) fn enqueue(&self, object: &DynamicObject) {
        let work = ObjectRef::from_obj_with(object, self.served.resource.clone());
        let queue = lock(&self.queue);
        if let Some(queue) = queue.as_ref() {
            // Nobody leads any more: the next leader looks at everything.
            let _ = queue.unbounded_send(Ok(work));
        }
    }

    /// Has everything looked at that is in the store.
    pub(super) fn enqueue_all(&self) {
        for object in self.store.state() {
            self.enqueue(&object);
        }
    }

    /// An object by name.
    pub(super) fn named(&self, namespace: &str, name: &str) -> Option<Arc<DynamicObject>> {
        let resource = self.served.resource.clone();
        let key = ObjectRef::new_with(name, resource).within(namespace);
        self.store.get(&key)
    }

    /// Has an object looked at, by name.
    pub(super) fn enqueue_named(&self, namespace: &str, name: &str) {
        if let Some(object) = self.named(namespace, name) {
            self.enqueue(&object);
        }
    }

    pub(super) fn what(&self) -> What {
        self.served.what
    }
}
