//! What the API server has, kept at hand by watches that begin when somebody first asks: pools, clusters, repositories,
//! and whatever kind a package wants injected.
//!
//! ```text
//!  kind, namespace ─ ask ─► one watch each ─► store (read by gather)
//!                                └─ every change ─► Touched ─► whoever used it is looked at again
//! ```
//!
//! Easy to get wrong: a kind that the server does not serve is no error, it has no objects; it is asked for again each
//! time, since its CRD may come later. A kind that we may not read is one, and whoever asks hears at once which right is
//! missing; the watch goes on trying, so that it is there when somebody gives it. Secrets never come here: they are read when they are needed.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use kube::api::{ApiResource, DynamicObject, GroupVersionKind, TypeMeta};
use kube::runtime::WatchStreamExt as _;
use kube::runtime::reflector::{self, Store};
use kube::runtime::watcher::{self, watcher};
use kube::{Api, Client, ResourceExt as _};
use mooring_blueprint::Object;
use tokio::sync::{broadcast, mpsc, watch};
use tokio::task::JoinSet;

use crate::error::{Error, chain};
use crate::shutdown::Shutdown;
use crate::told::{Gone, told};

/// How long a watch may take until it has read everything.
const SYNC: Duration = Duration::from_secs(20);
/// How many changes may wait for a slow reader; one that misses some looks at everything.
const WAITING: usize = 1024;

/// Something changed.
#[derive(Clone, Debug)]
pub(super) struct Touched {
    pub(super) kind: String,
    pub(super) namespace: String,
    pub(super) name: String,
}

/// A kind, in one namespace or in all.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    api_version: String,
    kind: String,
    namespace: Option<String>,
}

/// What is watched. Cheap to clone.
#[derive(Clone)]
pub(super) struct Cache {
    client: Client,
    known: Arc<tokio::sync::Mutex<BTreeMap<Key, Watched>>>,
    touched: broadcast::Sender<Touched>,
    tasks: mpsc::UnboundedSender<Task>,
}

type Task = futures::future::BoxFuture<'static, ()>;

/// A watch: what it has read, and why the server refused it last.
#[derive(Clone)]
struct Watched {
    store: Store<DynamicObject>,
    refused: watch::Receiver<Option<String>>,
}

impl Cache {
    /// Nothing is watched yet. The future runs the watches until the end.
    pub(super) fn new(client: Client, end: Shutdown) -> (Self, impl Future<Output = ()>) {
        let (tasks, mut more) = mpsc::unbounded_channel::<Task>();
        let (touched, _) = broadcast::channel(WAITING);
        let cache = Self {
            client,
            known: Arc::default(),
            touched,
            tasks,
        };
        let run = async move {
            let mut running = JoinSet::new();
            loop {
                tokio::select! {
                    () = end.clone().wait() => break,
                    Some(task) = more.recv() => drop(running.spawn(task)),
                }
            }
            running.shutdown().await;
        };
        (cache, run)
    }

    /// Hears of every change from now on.
    pub(super) fn changes(&self) -> broadcast::Receiver<Touched> {
        self.touched.subscribe()
    }

    /// All objects of a kind, in a namespace or everywhere. A kind that is not served has none.
    pub(super) async fn all(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Vec<Object>, Error> {
        let Some(store) = self.store(api_version, kind, namespace).await? else {
            return Ok(Vec::new());
        };
        let mut objects: Vec<Object> = store.state().iter().map(|o| object(o)).collect();
        // A store has no order, and what is decided must not depend on it.
        objects.sort_by(|a, b| (a.namespace(), a.name()).cmp(&(b.namespace(), b.name())));
        Ok(objects)
    }

    async fn store(
        &self,
        api_version: &str,
        kind: &str,
        namespace: Option<&str>,
    ) -> Result<Option<Store<DynamicObject>>, Error> {
        let key = Key {
            api_version: api_version.to_owned(),
            kind: kind.to_owned(),
            namespace: namespace.map(ToOwned::to_owned),
        };
        let Watched { store, mut refused } = {
            let mut known = self.known.lock().await;
            if let Some(watched) = known.get(&key) {
                watched.clone()
            } else {
                let found = served(&self.client, api_version, kind).await?;
                let Some((resource, namespaced)) = found else {
                    return Ok(None);
                };
                let watched = self.watch(&resource, namespace.filter(|_| namespaced));
                known.insert(key, watched.clone());
                watched
            }
        };
        let refusal = async {
            // The sender goes with the watch, at the end of the program.
            let said = refused.wait_for(Option::is_some).await;
            said.ok().and_then(|said| said.clone())
        };
        let read = async {
            tokio::select! {
                biased;
                Some(said) = refusal => Err(Error::Unreadable {
                    kind: kind.to_owned(),
                    api_version: api_version.to_owned(),
                    said,
                }),
                Ok(()) = store.wait_until_ready() => Ok(()),
                else => Err(unread(kind)),
            }
        };
        let read = tokio::time::timeout(SYNC, read).await;
        read.unwrap_or_else(|_| Err(unread(kind)))?;
        Ok(Some(store))
    }

    fn watch(&self, resource: &ApiResource, namespace: Option<&str>) -> Watched {
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, resource),
            None => Api::all_with(self.client.clone(), resource),
        };
        let writer = reflector::store::Writer::new(resource.clone());
        let store = writer.as_reader();
        let kind = resource.kind.clone();
        let touched = self.touched.clone();
        // The items of a list of Kubernetes' own kinds do not say what they are.
        let types = TypeMeta {
            api_version: resource.api_version.clone(),
            kind: resource.kind.clone(),
        };
        let (refuse, refused) = watch::channel(None);
        let events = watcher(api, watcher::Config::default())
            .inspect(move |seen| {
                let said = match seen {
                    // It is about to ask.
                    Ok(watcher::Event::Init) => return,
                    Ok(_) => None,
                    Err(error) => match forbidden(error) {
                        Some(said) => Some(said),
                        None => return,
                    },
                };
                refuse.send_if_modified(|now| std::mem::replace(now, said.clone()) != said);
            })
            .modify(move |object| {
                object.managed_fields_mut().clear();
                object.types.get_or_insert_with(|| types.clone());
            })
            .default_backoff()
            .reflect(writer);
        let task = told(events, store.clone(), Gone::Told).for_each(move |seen| {
            match seen {
                Ok(object) => {
                    // Nobody listens before the first reconciler runs: it reads everything anyhow.
                    let _ = touched.send(Touched {
                        kind: kind.clone(),
                        namespace: object.namespace().unwrap_or_default(),
                        name: object.name_any(),
                    });
                }
                Err(error) => {
                    tracing::warn!(
                        kind,
                        error = chain(&error),
                        "the watch failed; it begins again"
                    );
                }
            }
            std::future::ready(())
        });
        // A closed channel is the end of the program.
        let _ = self.tasks.send(Box::pin(task));
        Watched { store, refused }
    }
}

fn unread(kind: &str) -> Error {
    Error::Other(format!("the watch on {kind} has not read everything yet"))
}

/// What the server says of a right that is missing; None where something else is wrong.
fn forbidden(error: &watcher::Error) -> Option<String> {
    use watcher::Error::{
        InitialListFailed, NoResourceVersion, WatchError, WatchFailed, WatchStartFailed,
    };
    let status = match error {
        InitialListFailed(kube::Error::Api(status))
        | WatchStartFailed(kube::Error::Api(status))
        | WatchFailed(kube::Error::Api(status))
        | WatchError(status) => status,
        InitialListFailed(_) | WatchStartFailed(_) | WatchFailed(_) | NoResourceVersion => {
            return None;
        }
    };
    (status.code == 403).then(|| status.message.clone())
}

/// An object of a store as a value.
pub(super) fn object(object: &DynamicObject) -> Object {
    let value = serde_json::to_value(object).expect("an object has string keys only");
    Object {
        value,
        source: None,
    }
}

/// How a kind is served, and whether in namespaces; None where it is not.
pub(super) async fn served(
    client: &Client,
    api_version: &str,
    kind: &str,
) -> Result<Option<(ApiResource, bool)>, Error> {
    let (group, version) = api_version.rsplit_once('/').unwrap_or(("", api_version));
    let wanted = GroupVersionKind::gvk(group, version, kind);
    match kube::discovery::pinned_kind(client, &wanted).await {
        Ok((resource, capabilities)) => {
            let namespaced = capabilities.scope == kube::discovery::Scope::Namespaced;
            Ok(Some((resource, namespaced)))
        }
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(None),
        Err(kube::Error::Discovery(_)) => Ok(None),
        Err(error) => Err(Error::api("ask which kinds are served")(error)),
    }
}
