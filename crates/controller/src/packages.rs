//! The packages role: variants of blueprints become packages in Git, specialised in one step and published when approved.
//!
//! ```text
//!  PackageVariantSet ─ set ─► PackageVariant ─ variant ─► drafts/… ─► proposed/… ─► deployment branch, tag
//!  Repository ─ repository: looks at Git ─┬ wakes the variants of what changed, and those that need other packages (links)
//!                                         ├ draft: what a person pushed is specialised too
//!                                         ├ keep: what a person published has its addresses in the book
//!                                         └ sweep: addresses of drafts that are no more
//!  cache: pools, clusters, whatever is injected ─ wake ─► the variants that used it
//! ```
//!
//! Nothing is decided here: a variant's clone and its render are `mooring_package`'s, addresses the book's. Easy to get
//! wrong: Git refs are the truth about drafts and versions. The order is *reserve, push the draft* and *push the
//! version, commit*; whatever a crash leaves between the two is found again by reading Git.

mod approval;
mod args;
mod book;
mod cache;
mod conditions;
mod deployed;
mod draft;
mod keep;
mod links;
mod remote;
mod repository;
mod set;
mod sweep;
mod variant;
mod wake;

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, Result};
use futures::{Stream, StreamExt as _};
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Api;
use kube::api::{ApiResource, DynamicObject, ObjectMeta};
use kube::runtime::controller::Action;
use kube::runtime::reflector::{self, ObjectRef};
use kube::runtime::watcher::{self, watcher};
use kube::runtime::{Controller, WatchStreamExt as _, predicates};
use mooring_api::kinds::porch;
use mooring_api::{Finding, annotation};
use mooring_blueprint::Object;
use mooring_book::{KubeStore, Writers};
use mooring_package::Site;
use tokio::sync::{RwLock, mpsc};
use tokio::task::JoinSet;

use crate::error::Error;
use crate::ipam;
use crate::living::{self, Living, Need};
use crate::metrics::Pass;
use crate::told::{Gone, told};
use crate::world::World;
use book::Book;
use cache::Cache;
use remote::Turns;

pub(crate) use args::PackagesArgs;

/// How long a follower waits before it looks whether it leads.
const FOLLOWS: Duration = Duration::from_secs(1);
/// How many objects of a kind are looked at at once.
const AT_ONCE: u16 = 8;
/// The API version of what Porch calls a variant and a repository.
const PORCH: &str = "config.porch.kpt.dev/v1alpha1";

/// Kinds that pools are made of, wherever they are.
const POOLS: [(&str, &str); 6] = [
    ("ipam.resource.nephio.org/v1alpha1", "NetworkInstance"),
    ("ipam.resource.nephio.org/v1alpha1", "IPPrefix"),
    ("ipam.nephio.org/v1alpha1", "NetworkInstance"),
    ("ipam.nephio.org/v1alpha1", "IPPrefix"),
    ("vlan.resource.nephio.org/v1alpha1", "VLANIndex"),
    ("infra.nephio.org/v1alpha1", "Network"),
];
const CLUSTER: (&str, &str) = ("infra.nephio.org/v1alpha1", "WorkloadCluster");

/// What we add to Porch's kinds. Where its definition is installed, the status says less; the package's state is in Git.
const NEEDS: &[Need] = &[Need {
    definition: variant::DEFINITION,
    fields: variant::ADDED,
}];

/// What the reconcilers of this role share.
pub(super) struct Role {
    world: World,
    cache: Cache,
    turns: Turns,
    book: Book,
    memory: repository::Memory,
    kept: keep::Kept,
    links: links::Links,
    written: variant::Written,
    living: Living,
    /// The same for pools, which the ipam role serves.
    pooling: Living,
    /// Shared while something is reserved and not pushed yet; alone to give back what no draft needs.
    flight: Arc<RwLock<()>>,
    wake: mpsc::UnboundedSender<ObjectRef<DynamicObject>>,
}

/// Runs until the end.
pub(crate) async fn run(world: World) -> Result<()> {
    let part = world.role.name();
    world.readiness.set(part, false);
    let (cache, watches) = Cache::new(world.client.clone(), world.shutdown.clone());
    // Variants are rendered under one leader, and packages read better when addresses follow the pool's order.
    let opening = world.clone();
    let opened = tokio::task::spawn_blocking(move || opening.book(Writers::One)).await?;
    let book = Book::new(opened.context("cannot open the address book")?);
    let living = Living::look(&world, NEEDS).await?;
    let pooling = Living::look_for(&world, crate::args::Role::Ipam, ipam::NEEDS).await?;
    let (wake, woken) = mpsc::unbounded_channel();
    let (wake_sets, woken_sets) = mpsc::unbounded_channel();
    let role = Arc::new(Role {
        world: world.clone(),
        cache,
        turns: Turns::default(),
        book,
        memory: repository::Memory::default(),
        kept: keep::Kept::default(),
        links: links::Links::default(),
        written: variant::Written::default(),
        living,
        pooling,
        flight: Arc::default(),
        wake,
    });
    let mut tasks: JoinSet<()> = JoinSet::new();
    tasks.spawn(watches);
    tasks.spawn(role.clone().listen(wake_sets));
    tasks.spawn(role.clone().become_ready());
    tasks.spawn(role.clone().sweep());
    tasks.spawn(role.clone().look_for_others());
    let run = |resource: ApiResource,
               woken: Option<mpsc::UnboundedReceiver<ObjectRef<DynamicObject>>>| {
        control(&role, resource, woken)
    };
    let variants = run(
        ApiResource::erase::<porch::PackageVariant>(&()),
        Some(woken),
    );
    let sets = run(
        ApiResource::erase::<porch::PackageVariantSet>(&()),
        Some(woken_sets),
    );
    let repositories = run(ApiResource::erase::<porch::Repository>(&()), None);
    let variants = variants.run(|o, r| one(o, r, variant::reconcile), policy, role.clone());
    let sets = sets.run(|o, r| one(o, r, set::reconcile), policy, role.clone());
    let repositories = repositories.run(
        |o, r| one(o, r, repository::reconcile),
        policy,
        role.clone(),
    );
    tasks.spawn(drain(variants));
    tasks.spawn(drain(sets));
    tasks.spawn(drain(repositories));
    while let Some(ended) = tasks.join_next().await {
        ended.context("a task of the role ended badly")?;
    }
    Ok(())
}

/// A controller of one kind, woken by its objects and by whoever else says so. A status that changed wakes nobody.
fn control(
    role: &Arc<Role>,
    resource: ApiResource,
    woken: Option<mpsc::UnboundedReceiver<ObjectRef<DynamicObject>>>,
) -> Controller<DynamicObject> {
    use kube::runtime::{Predicate as _, PredicateConfig};
    let api: Api<DynamicObject> = Api::all_with(role.world.client.clone(), &resource);
    let writer = reflector::store::Writer::new(resource.clone());
    let store = writer.as_reader();
    let matters = predicates::generation
        .combine(predicates::annotations)
        .combine(predicates::labels)
        .combine(predicates::finalizers);
    let events = watcher(api, watcher::Config::default())
        .default_backoff()
        .reflect(writer);
    let stream = told(events, store.clone(), Gone::Not)
        .predicate_filter(matters, PredicateConfig::default());
    let controller = Controller::for_stream_with(stream, store, resource)
        .with_config(kube::runtime::controller::Config::default().concurrency(AT_ONCE))
        .graceful_shutdown_on(role.world.shutdown.clone().wait());
    match woken {
        Some(woken) => controller.reconcile_on(futures::stream::unfold(woken, |mut woken| async {
            woken.recv().await.map(|object| (object, woken))
        })),
        None => controller,
    }
}

/// One pass over one object: it waits its turn until this replica leads.
async fn one<F, Fut>(
    object: Arc<DynamicObject>,
    role: Arc<Role>,
    reconcile: F,
) -> Result<Action, std::convert::Infallible>
where
    F: Fn(Object, Arc<Role>) -> Fut,
    Fut: Future<Output = Action>,
{
    if !role.world.leadership.holds() {
        return Ok(Action::requeue(FOLLOWS));
    }
    Ok(reconcile(cache::object(&object), role).await)
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature is the controller's"
)]
fn policy(_: Arc<DynamicObject>, never: &std::convert::Infallible, _: Arc<Role>) -> Action {
    match *never {}
}

async fn drain<T, E: std::error::Error + 'static>(passes: impl Stream<Item = Result<T, E>>) {
    let tell = |pass: Result<T, E>| {
        if let Err(error) = pass {
            // An object that is gone by the time of its turn is the usual case.
            tracing::debug!(
                error = crate::error::chain(&error),
                "a watch or a queue stumbled"
            );
        }
        std::future::ready(())
    };
    passes.for_each(tell).await;
}

impl Role {
    /// Ready once pools, variants and the book have been read.
    async fn become_ready(self: Arc<Self>) {
        let end = self.world.shutdown.clone();
        let read = async {
            loop {
                match self.read_all().await {
                    Ok(()) => return,
                    Err(error) => {
                        tracing::info!(error = crate::error::chain(&error), "not ready yet");
                        tokio::time::sleep(Duration::from_millis(500)).await;
                    }
                }
            }
        };
        tokio::select! {
            () = read => self.world.readiness.set(self.world.role.name(), true),
            () = end.wait() => {}
        }
    }

    async fn read_all(&self) -> Result<(), Error> {
        self.pools().await?;
        self.cache.all(CLUSTER.0, CLUSTER.1, None).await?;
        self.variants().await?;
        self.repositories().await?;
        let book = self.book.clone();
        blocking(move || Ok(book.with(KubeStore::synced)?)).await
    }

    /// Others may come later, for packages or for pools; until the end.
    async fn look_for_others(self: Arc<Self>) {
        let both = async {
            tokio::join!(
                self.living.other_comes(&self.world),
                self.pooling.other_comes(&self.world)
            )
        };
        tokio::select! {
            _ = both => {}
            () = self.world.shutdown.clone().wait() => {}
        }
    }

    /// Counts findings that are put on an object.
    fn found(&self, kind: &'static str, findings: &[Finding]) {
        for finding in findings.iter().filter(|f| f.is_error()) {
            let outcome = finding.code.as_str();
            let counted = Pass { kind, outcome };
            self.world.metrics.findings.get_or_create(&counted).inc();
        }
    }

    /// Every object that pools are made of, as the ipam role takes them: those that are ours, the older ones first, and
    /// nothing new from one whose fields were dropped.
    async fn pools(&self) -> Result<Vec<Object>, Error> {
        let mut all = Vec::new();
        for (api_version, kind) in POOLS {
            all.extend(self.cache.all(api_version, kind, None).await?);
        }
        let metadata = |o: &Object| -> ObjectMeta {
            let value = o.value.get("metadata").cloned().unwrap_or_default();
            serde_json::from_value(value).unwrap_or_default()
        };
        all.retain(|object| self.pooling.is_ours(&metadata(object)));
        all.sort_by_cached_key(|o| (metadata(o).creation_timestamp, o.reference()));
        let dropped = self.pooling.schemas.missing(ipam::NEEDS[0].definition);
        let dropped: Vec<&str> = dropped.collect();
        for object in &mut all {
            if living::lost(object, &dropped).is_some() {
                object.set_annotation(annotation::DRAIN, "true");
            }
        }
        Ok(all)
    }

    async fn variants(&self) -> Result<Vec<Object>, Error> {
        self.cache.all(PORCH, "PackageVariant", None).await
    }

    async fn repositories(&self) -> Result<Vec<Object>, Error> {
        self.cache.all(PORCH, "Repository", None).await
    }

    /// Pools of everywhere and the clusters of one namespace.
    async fn site(&self, namespace: &str) -> Result<Vec<Object>, Error> {
        let mut site = self.pools().await?;
        let clusters = self.cache.all(CLUSTER.0, CLUSTER.1, None).await?;
        site.extend(clusters.into_iter().filter(|o| o.namespace() == namespace));
        Ok(site)
    }
}

/// Runs something that blocks.
async fn blocking<T: Send + 'static>(
    act: impl FnOnce() -> Result<T, Error> + Send + 'static,
) -> Result<T, Error> {
    let done = tokio::task::spawn_blocking(act).await;
    done.map_err(|error| Error::Other(format!("an act ended badly: {error}")))?
}

/// The pools and clusters that packages are rendered with.
fn site_of(objects: &[Object]) -> Site {
    Site::from_objects(objects.iter().map(|o| &o.value)).set_aside()
}

/// Bytes as text.
fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    let mut text = String::new();
    for byte in bytes {
        // Writing into a String cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    text
}

/// What an Event is on.
fn reference(object: &Object) -> ObjectReference {
    let text = |at: &str| {
        let value = object.value.pointer(at).and_then(serde_json::Value::as_str);
        value.map(ToOwned::to_owned)
    };
    ObjectReference {
        api_version: Some(object.api_version().to_owned()),
        kind: Some(object.kind().to_owned()),
        name: Some(object.name().to_owned()),
        namespace: Some(object.namespace().to_owned()),
        uid: text("/metadata/uid"),
        resource_version: text("/metadata/resourceVersion"),
        field_path: None,
    }
}

/// Namespace and name, for the log and the backoff.
fn key(object: &Object) -> String {
    format!("{} {}/{}", object.kind(), object.namespace(), object.name())
}
