//! The Kubernetes store on a real API server: shelves for the contract, many writers, races, crashes, late writes.
//!
//! Leases belong to a whole cluster, so tests that list all of them have the server alone and begin by emptying it.

mod child;
mod crash;
mod late;
mod races;
mod writers;

use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{DeleteParams, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use mooring_api::kinds::mooring::{IPLease, PrefixLedger};
use mooring_book::{KubeOptions, KubeStore, Store};
use mooring_testkit::ControlPlane;

use crate::contract::Shelf;

pub(crate) const NAMESPACE: &str = "mooring-system";

/// How long a state is waited for.
const PATIENCE: Duration = Duration::from_mins(1);

/// The server, and nobody else on it.
pub(crate) struct World {
    pub(crate) plane: &'static ControlPlane,
    _alone: MutexGuard<'static, ()>,
}

/// Our own CRDs in a directory of their own.
fn crds() -> PathBuf {
    static DIR: OnceLock<tempfile::TempDir> = OnceLock::new();
    let dir = DIR.get_or_init(|| {
        let dir = tempfile::tempdir().unwrap();
        let from = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../deploy/crds");
        for name in ["ipleases", "prefixledgers"] {
            let name = format!("mooring.dev_{name}.yaml");
            std::fs::copy(from.join(&name), dir.path().join(&name)).unwrap();
        }
        dir
    });
    dir.path().to_owned()
}

/// Takes everything away that a store has written.
fn empty(plane: &ControlPlane) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        let read = Kubeconfig::read_from(plane.kubeconfig()).unwrap();
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(read, &options).await;
        let client = kube::Client::try_from(config.unwrap()).unwrap();
        let (gone, all) = (DeleteParams::default(), ListParams::default());
        let ours = all
            .clone()
            .labels(mooring_api::kinds::mooring::label::RECORD);
        let leases: Api<IPLease> = Api::all(client.clone());
        leases.delete_collection(&gone, &all).await.unwrap();
        let ledgers: Api<PrefixLedger> = Api::all(client.clone());
        ledgers.delete_collection(&gone, &all).await.unwrap();
        let records: Api<ConfigMap> = Api::namespaced(client, NAMESPACE);
        records.delete_collection(&gone, &ours).await.unwrap();
    });
}

impl World {
    pub(crate) fn new() -> Option<Self> {
        static ALONE: Mutex<()> = Mutex::new(());
        let plane = ControlPlane::shared()?;
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        static READY: OnceLock<()> = OnceLock::new();
        READY.get_or_init(|| {
            plane.install_crds(&crds());
            plane.kubectl(&["create", "namespace", NAMESPACE]).ok();
        });
        empty(plane);
        Some(Self {
            plane,
            _alone: alone,
        })
    }

    pub(crate) fn store(&self) -> KubeStore {
        self.store_with(KubeOptions::default())
    }

    pub(crate) fn store_with(&self, options: KubeOptions) -> KubeStore {
        let store = KubeStore::from_kubeconfig(self.plane.kubeconfig(), options).unwrap();
        store.synced().unwrap();
        store
    }
}

/// Asks until the answer is the wanted one; the last one is told where it never is.
pub(crate) fn until<T: std::fmt::Debug>(
    what: &str,
    mut ask: impl FnMut() -> Result<T, String>,
) -> T {
    let begun = Instant::now();
    loop {
        match ask() {
            Ok(answer) => return answer,
            Err(seen) if begun.elapsed() > PATIENCE => panic!("{what}: last seen {seen}"),
            Err(_) => std::thread::sleep(Duration::from_millis(5)),
        }
    }
}

/// One store of its own.
pub(crate) struct Kube {
    store: KubeStore,
    _world: World,
}

impl Kube {
    pub(crate) fn new() -> Option<Self> {
        let world = World::new()?;
        let store = world.store();
        Some(Self {
            store,
            _world: world,
        })
    }
}

impl Shelf for Kube {
    fn store(&mut self) -> &dyn Store {
        &self.store
    }
}

/// Two stores that take turns, each once its watch has heard of what the other did.
pub(crate) struct InTurn {
    stores: [KubeStore; 2],
    turn: usize,
    _world: World,
}

impl InTurn {
    pub(crate) fn new() -> Option<Self> {
        let world = World::new()?;
        Some(Self {
            stores: [world.store(), world.store()],
            turn: 0,
            _world: world,
        })
    }
}

impl Shelf for InTurn {
    fn store(&mut self) -> &dyn Store {
        let last = self.stores[self.turn].claimed().unwrap();
        self.turn = 1 - self.turn;
        let store = &self.stores[self.turn];
        until("the other store hears of it", || {
            let seen = store.claimed().unwrap();
            if seen == last {
                return Ok(());
            }
            Err(format!("{seen:#?}\ninstead of {last:#?}"))
        });
        store
    }
}
