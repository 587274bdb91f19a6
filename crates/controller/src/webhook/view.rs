//! The pools of the cluster, kept fresh by a watch per kind.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::Api;
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use mooring_blueprint::Object;
use mooring_blueprint::bundle::group;

use crate::error::chain;
use crate::world::World;

const KINDS: [&str; 2] = ["NetworkInstance", "IPPrefix"];

/// What was seen last.
#[derive(Clone)]
pub(super) struct View(Vec<Store<DynamicObject>>);

impl View {
    /// Starts the watches; they end with the program.
    pub(super) fn start(world: &World) -> Self {
        Self(KINDS.iter().map(|kind| watch(world, kind)).collect())
    }

    /// Returns when every kind was listed once.
    pub(super) async fn synced(&self) {
        for store in &self.0 {
            // The writer lives in its task, which ends only with the program.
            let _ = store.wait_until_ready().await;
        }
    }

    /// The pools. One that cannot be read as an object is left out; the ipam role says so on it.
    pub(super) fn objects(&self) -> Vec<Object> {
        let all = self.0.iter().flat_map(Store::state);
        let value = |o: std::sync::Arc<DynamicObject>| serde_json::to_value(&*o).ok();
        all.filter_map(value)
            .map(|value| Object {
                value,
                source: None,
            })
            .collect()
    }
}

fn watch(world: &World, kind: &str) -> Store<DynamicObject> {
    let kind = GroupVersionKind::gvk(group::IPAM, "v1alpha1", kind);
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::all_with(world.client.clone(), &resource);
    let writer = Writer::new(resource);
    let store = writer.as_reader();
    let end = world.shutdown.clone();
    tokio::spawn(async move {
        let events = watcher(api, watcher::Config::default())
            .default_backoff()
            .modify(|o| o.metadata.managed_fields = None);
        reflector::reflector(writer, events)
            .inspect_err(|error| tracing::warn!(error = chain(error), "the watch of pools failed"))
            .take_until(Box::pin(end.wait()))
            .for_each(|_| std::future::ready(()))
            .await;
    });
    store
}
