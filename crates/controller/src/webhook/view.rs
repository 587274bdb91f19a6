//! The pools of the cluster, kept fresh by a watch per kind.
//!
//! The older group is watched too: its pools count beside the others. Easy to get wrong: its definitions are hardly ever
//! installed, so its watch usually finds nothing to list, and only a server that serves it is waited for.

use futures::{StreamExt as _, TryStreamExt as _};
use kube::api::{ApiResource, DynamicObject};
use kube::core::GroupVersionKind;
use kube::runtime::reflector::{self, Store, store::Writer};
use kube::runtime::{WatchStreamExt as _, watcher};
use kube::{Api, Client};
use mooring_blueprint::Object;
use mooring_blueprint::bundle::group;

use super::intents::of_group;
use crate::error::chain;
use crate::world::World;

const KINDS: [&str; 2] = ["NetworkInstance", "IPPrefix"];

/// What was seen last.
#[derive(Clone)]
pub(super) struct View {
    pools: Vec<Store<DynamicObject>>,
    older: Vec<Store<DynamicObject>>,
}

impl View {
    /// Starts the watches; they end with the program.
    pub(super) fn start(world: &World) -> Self {
        let of = |group| KINDS.iter().map(|kind| watch(world, group, kind)).collect();
        Self {
            pools: of(group::IPAM),
            older: of(group::IPAM_SEED),
        }
    }

    /// Returns when every kind that is served was listed once.
    pub(super) async fn synced(&self, client: &Client) {
        let older = of_group(client, group::IPAM_SEED, "v1alpha1", &KINDS).await;
        let older = older.unwrap_or_else(|error| {
            tracing::warn!(error = chain(&error), "the older kinds are not waited for");
            Vec::new()
        });
        let is_served = |kind: &str| older.iter().any(|(served, _)| *served == kind);
        let older = KINDS.iter().zip(&self.older);
        let older = older.filter(|(kind, _)| is_served(kind));
        for store in self.pools.iter().chain(older.map(|(_, store)| store)) {
            // The writer lives in its task, which ends only with the program.
            let _ = store.wait_until_ready().await;
        }
    }

    /// The pools. One that cannot be read as an object is left out; the ipam role says so on it.
    pub(super) fn objects(&self) -> Vec<Object> {
        let all = self.pools.iter().chain(&self.older);
        let all = all.flat_map(Store::state);
        let value = |o: std::sync::Arc<DynamicObject>| serde_json::to_value(&*o).ok();
        all.filter_map(value)
            .map(|value| Object {
                value,
                source: None,
            })
            .collect()
    }
}

fn watch(world: &World, group: &str, kind: &str) -> Store<DynamicObject> {
    let is_needed = group == group::IPAM;
    let kind = GroupVersionKind::gvk(group, "v1alpha1", kind);
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
            .inspect_err(|error| {
                if is_needed || !is_absent(error) {
                    tracing::warn!(error = chain(error), "the watch of pools failed");
                }
            })
            .take_until(Box::pin(end.wait()))
            .for_each(|_| std::future::ready(()))
            .await;
    });
    store
}

/// Whether the kind is not served.
fn is_absent(error: &watcher::Error) -> bool {
    matches!(error, watcher::Error::InitialListFailed(kube::Error::Api(status)) if status.code == 404)
}
