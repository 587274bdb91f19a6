//! The intents of the cluster, and what they are compared with, kept fresh by a watch per kind that is served.
//!
//! ```text
//!  look: twice a minute, or when a review is about a kind that nobody watches ─► a watch per served kind
//!  their events ─► one `Inputs`, which reviews read
//! ```
//!
//! Where no kind of intent is installed nothing is watched, Nodes and the OperatorConfig neither. Easy to get wrong: a
//! review never waits for a watch. Before every kind was listed once there is nothing to compare with, and it admits.

use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::Node;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, PartialObjectMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use mooring_api::ObjectRef;
use mooring_intent::{Inputs, KINDS};
use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::task::{AbortHandle, JoinSet};

use crate::error::{Error, chain};
use crate::world::World;

/// The group of intents and of the low-level kinds.
pub(super) const GROUP: &str = "network.t-caas.telekom.com";
const NODE: &str = "Node";

/// How often the kinds that are served are looked at.
const LOOK: Duration = Duration::from_secs(30);
/// How long a look rests after another one, whoever asks for it.
const REST: Duration = Duration::from_secs(1);
/// How many objects a list brings at once.
const PAGE: u32 = 200;

/// What was seen last. Cheap to clone.
#[derive(Clone, Default)]
pub(super) struct Intents(Arc<Shared>);

#[derive(Default)]
struct Shared {
    seen: RwLock<Arc<Inputs>>,
    /// The kinds that are watched, and whether each was listed.
    listed: RwLock<BTreeMap<&'static str, bool>>,
    wanted: Notify,
}

impl Intents {
    /// What an object of this kind is compared with; None where that is not known yet.
    pub(super) fn beside(&self, kind: &str) -> Option<Arc<Inputs>> {
        let listed = self.0.listed.read();
        let listed = listed.unwrap_or_else(PoisonError::into_inner);
        if !listed.contains_key(kind) {
            self.0.wanted.notify_one();
            return None;
        }
        let all = listed.values().all(|listed| *listed);
        let seen = self.0.seen.read();
        all.then(|| Arc::clone(&seen.unwrap_or_else(PoisonError::into_inner)))
    }

    /// Watches until the end.
    pub(super) async fn keep(self, world: World) {
        let mut tasks = JoinSet::new();
        let mut running = BTreeMap::new();
        loop {
            match served(&world.client).await {
                Ok(served) => {
                    self.watch(&world.client, served, &mut running, &mut tasks)
                        .await;
                }
                Err(error) => tracing::warn!(
                    error = chain(&error),
                    "the API server does not say which intents it serves"
                ),
            }
            let again = async {
                tokio::time::sleep(REST).await;
                let _ = tokio::time::timeout(LOOK, self.0.wanted.notified()).await;
            };
            tokio::select! {
                () = again => {}
                () = world.shutdown.clone().wait() => break,
            }
        }
        tasks.shutdown().await;
    }

    /// Begins to watch what is served, and forgets what no longer is.
    async fn watch(
        &self,
        client: &Client,
        served: Vec<(&'static str, ApiResource)>,
        running: &mut BTreeMap<&'static str, AbortHandle>,
        tasks: &mut JoinSet<()>,
    ) {
        let is_served = |kind: &str| served.iter().any(|(other, _)| *other == kind);
        // A watch ends only where we end it, or by a panic.
        let ended = running.extract_if(.., |kind, task| !is_served(kind) || task.is_finished());
        for (kind, task) in ended.collect::<Vec<_>>() {
            task.abort();
            tasks.join_next().await;
            self.listed(|listed| {
                listed.remove(kind);
            });
            self.change(|inputs| inputs.forget(|id| id.kind == kind));
            tracing::info!(kind, "no longer watching");
        }
        for (kind, resource) in served {
            if running.contains_key(kind) {
                continue;
            }
            tracing::info!(kind, "watching");
            self.mark(kind, false);
            let (this, client) = (self.clone(), client.clone());
            let task = tasks.spawn(async move { this.follow_kind(client, kind, resource).await });
            running.insert(kind, task);
        }
    }

    async fn follow_kind(self, client: Client, kind: &'static str, resource: ApiResource) {
        let config = watcher::Config::default().page_size(PAGE);
        if kind == NODE {
            let api: Api<PartialObjectMeta<Node>> = Api::all(client);
            let events = watcher(api, config).default_backoff();
            self.follow(kind, events, |node| labels(&node)).await;
        } else {
            let api: Api<DynamicObject> = Api::all_with(client, &resource);
            let events = watcher(api, config).default_backoff();
            self.follow(kind, events, slim).await;
        }
    }

    async fn follow<K>(
        &self,
        kind: &'static str,
        events: impl Stream<Item = watcher::Result<Event<K>>>,
        value: impl Fn(K) -> Value,
    ) {
        let mut list = Vec::new();
        let mut events = std::pin::pin!(events);
        while let Some(event) = events.next().await {
            match event {
                Ok(Event::Init) => list.clear(),
                Ok(Event::InitApply(object)) => list.push(value(object)),
                Ok(Event::InitDone) => {
                    let all = std::mem::take(&mut list);
                    self.change(|inputs| {
                        inputs.forget(|id| id.kind == kind);
                        inputs.put(&all);
                    });
                    self.mark(kind, true);
                }
                Ok(Event::Apply(object)) => {
                    let object = value(object);
                    self.change(|inputs| inputs.put([&object]));
                }
                Ok(Event::Delete(object)) => {
                    let gone = reference(&value(object));
                    self.change(|inputs| inputs.forget(|id| *id == gone));
                }
                Err(error) => {
                    tracing::warn!(kind, error = chain(&error), "the watch is interrupted");
                }
            }
        }
    }

    fn change(&self, change: impl FnOnce(&mut Inputs)) {
        let seen = self.0.seen.write();
        let mut seen = seen.unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut seen));
    }

    fn mark(&self, kind: &'static str, is_listed: bool) {
        self.listed(|listed| {
            listed.insert(kind, is_listed);
        });
    }

    fn listed(&self, change: impl FnOnce(&mut BTreeMap<&'static str, bool>)) {
        let listed = self.0.listed.write();
        change(&mut listed.unwrap_or_else(PoisonError::into_inner));
    }
}

/// The kinds that this server serves; none where no intent is among them.
async fn served(client: &Client) -> Result<Vec<(&'static str, ApiResource)>, Error> {
    let mut found = of_group(client, GROUP, "v1alpha1", &KINDS).await?;
    if !found.is_empty() {
        found.extend(of_group(client, "mooring.dev", "v1alpha1", &["OperatorConfig"]).await?);
        let node = GroupVersionKind::gvk("", "v1", NODE);
        found.push((NODE, ApiResource::from_gvk_with_plural(&node, "nodes")));
    }
    Ok(found)
}

/// Those of the kinds that the server serves in a group.
pub(super) async fn of_group(
    client: &Client,
    group: &str,
    version: &str,
    kinds: &[&'static str],
) -> Result<Vec<(&'static str, ApiResource)>, Error> {
    let resources = match client
        .list_api_group_resources(&format!("{group}/{version}"))
        .await
    {
        Ok(list) => list.resources,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(Vec::new()),
        Err(error) => return Err(Error::api("list the kinds of a group")(error)),
    };
    let mut found = Vec::new();
    for resource in resources.iter().filter(|r| !r.name.contains('/')) {
        if let Some(kind) = kinds.iter().find(|kind| **kind == resource.kind) {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let resource = ApiResource::from_gvk_with_plural(&gvk, &resource.name);
            found.push((*kind, resource));
        }
    }
    Ok(found)
}

/// What is compared: no status, and nothing about who wrote it.
fn slim(mut object: DynamicObject) -> Value {
    object.managed_fields_mut().clear();
    object.annotations_mut().clear();
    if let Value::Object(fields) = &mut object.data {
        fields.remove("status");
    }
    serde_json::to_value(object).expect("an object has string keys only")
}

/// A node is its labels.
fn labels(node: &PartialObjectMeta<Node>) -> Value {
    let metadata = json!({ "name": node.name_any(), "labels": node.labels() });
    json!({ "apiVersion": "v1", "kind": NODE, "metadata": metadata })
}

fn reference(object: &Value) -> ObjectRef {
    let text = |path: &str| object.pointer(path).and_then(Value::as_str);
    let [version, kind, name] =
        ["/apiVersion", "/kind", "/metadata/name"].map(|path| text(path).unwrap_or_default());
    ObjectRef::new(version, kind, name)
}
