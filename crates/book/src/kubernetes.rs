//! The book on a Kubernetes API: many writers, no leader, no lock.
//!
//! ```text
//!  KubeStore ─┬ Ledger (what a transaction means) ─ KubeKeep ─ Journal (one record that flips)
//!             ├ direct: one POST per address, no transaction         │
//!             └ Index ◄─ watch                        Hands (take, change, remove) ─ Wire ─ API server
//! ```
//!
//! An address or a VLAN is an `IPLease`: the POST that succeeds owns it. Prefixes and ranges are entries of their instance's
//! `PrefixLedger`, changed by compare-and-swap. Transactions, packages and the journal are ConfigMaps in the store's
//! namespace. `moor-controller`, later `moor-agent`, call it. Easy to get wrong: every method blocks its thread until the
//! server has answered. Call it from `spawn_blocking`, never from a task.

mod direct;
mod form;
mod hands;
mod index;
mod journal;
mod keep;
mod name;
mod trail;
mod watch;
mod wire;

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use mooring_api::kinds::mooring::ClaimRef;
use mooring_api::{Span, Time};
use mooring_ipam::{Claim, Holder, InstanceKey, Lease, Order, Pools, Refusal, Table, Thing, Want};

use crate::audit::Entry;
use crate::error::Error;
use crate::ledger::{Ledger, store_over_ledger};
use crate::store::Store as _;
use hands::Hands;
use keep::KubeKeep;
use trail::Trail;
use wire::Wire;

/// Hears of everything that this process does to a lease.
pub type Observer = Arc<dyn Fn(&Entry) + Send + Sync>;

/// Says whether this process may write.
pub type Fence = Arc<dyn Fn() -> bool + Send + Sync>;

/// Which term of its leadership a process is in: another number in each, 0 before the first.
pub type Term = Arc<dyn Fn() -> u64 + Send + Sync>;

/// A book on a Kubernetes API. Threads may share it; one transaction is made at a time, direct takes do not wait for it.
pub struct KubeStore(Ledger<KubeKeep>, Arc<Hands>);

/// How many processes take addresses from the same pools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writers {
    /// Several: an address is chosen by a hash of its holder, so that they do not try the same one.
    #[default]
    Many,
    /// One at a time (a leader): the order of the claim is kept. Others stay safe, they only lose more often.
    One,
}

/// How to use a book on a Kubernetes API.
#[derive(Clone)]
pub struct KubeOptions {
    /// Where transactions, packages and the journal are kept.
    pub namespace: String,
    /// How many take from the same pools.
    pub writers: Writers,
    /// How long to wait for the first complete list.
    pub wait: Duration,
    /// How long one request may take. A request is sent six times at most.
    pub request: Duration,
    /// How long something that was taken and not reserved yet keeps others away, should this process end.
    pub draft: Span,
    /// Asked before every write; where it says no, the write is [`Error::Fenced`].
    pub fence: Option<Fence>,
    /// Counts the terms of a leader. At the first question in a new one, everything is read anew.
    pub term: Option<Term>,
    /// Hears of everything that this process does to a lease.
    pub observer: Option<Observer>,
}

impl Default for KubeOptions {
    fn default() -> Self {
        Self {
            namespace: "mooring-system".to_owned(),
            writers: Writers::default(),
            wait: Duration::from_secs(30),
            request: Duration::from_secs(10),
            draft: Span(600),
            fence: None,
            term: None,
            observer: None,
        }
    }
}

/// A lease, and the object that asked for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimedLease {
    /// The lease.
    pub lease: Lease,
    /// Who asked, where it was taken directly.
    pub claim: Option<ClaimRef>,
}

impl KubeStore {
    /// Opens the book of an API server and begins to watch. It does not wait: the first question does.
    pub fn open(config: kube::Config, options: KubeOptions) -> Result<Self, Error> {
        let trail = Trail::new(options.observer.clone());
        let hands = Arc::new(Hands::new(Wire::open(config, options)?, trail));
        watch::start(&hands);
        let keep = KubeKeep::new(Arc::clone(&hands));
        Ok(Self(Ledger::new(keep)?, hands))
    }

    /// The same, with a kubeconfig file.
    pub fn from_kubeconfig(path: &Path, options: KubeOptions) -> Result<Self, Error> {
        let unusable = |source: kube::config::KubeconfigError| Error::Unusable {
            path: path.display().to_string(),
            remedy: "it must be a kubeconfig",
            source: Box::new(source),
        };
        let kubeconfig = kube::config::Kubeconfig::read_from(path).map_err(unusable)?;
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|e| Error::Unusable {
            path: path.display().to_string(),
            remedy: "the system refuses a thread",
            source: Box::new(e),
        })?;
        let options_of = kube::config::KubeConfigOptions::default();
        let config = std::thread::scope(|scope| {
            let read = kube::Config::from_custom_kubeconfig(kubeconfig, &options_of);
            let thread = scope.spawn(|| runtime.block_on(read));
            thread.join().expect("reading a kubeconfig does not panic")
        });
        Self::open(config.map_err(unusable)?, options)
    }

    /// Waits until everything that was there is known; [`Error::Unreachable`] after [`KubeOptions::wait`].
    pub fn synced(&self) -> Result<(), Error> {
        self.1.synced()
    }

    /// In which order this store wants candidates of a claim tried.
    pub fn order(&self, wanted: Order, want: Want) -> Order {
        let leaf = matches!(want, Want::Address | Want::Vlan { .. });
        match (self.1.wire.options.writers, wanted) {
            // Prefixes go through one ledger, and an index means one address: neither is a matter of luck.
            (Writers::Many, Order::LowestFirst | Order::BestFit) if leaf => Order::Rendezvous,
            _ => wanted,
        }
    }

    /// Takes what a claim wants, held at once: one write for an address. The same holder gets what it has.
    pub fn take_now(
        &self,
        pools: &Pools,
        claim: &Claim,
        asked_by: Option<&ClaimRef>,
        now: Time,
    ) -> Result<Result<Lease, Refusal>, Error> {
        self.1.synced()?;
        let mut claim = claim.clone();
        claim.order = self.order(claim.order, claim.want);
        direct::take(&self.1, pools, &claim, asked_by, now)
    }

    /// Gives back what this holder has. False where it is not there, is somebody else's, or a transaction has it.
    pub fn release_now(
        &self,
        instance: &InstanceKey,
        thing: &Thing,
        holder: &Holder,
        cool_down: Span,
        now: Time,
    ) -> Result<bool, Error> {
        let still = |record: &form::Record| record.lease.holder == *holder;
        direct::release(&self.1, instance, thing, still, cool_down, now)
    }

    /// Gives back a lease whose claim is gone. False also where it names another claim by now: one that was made again under
    /// the name has taken it over.
    pub fn release_claimed(
        &self,
        gone: &ClaimedLease,
        cool_down: Span,
        now: Time,
    ) -> Result<bool, Error> {
        let lease = &gone.lease;
        let still = |record: &form::Record| {
            record.lease.holder == lease.holder && record.claim == gone.claim
        };
        direct::release(
            &self.1,
            &lease.instance,
            &lease.thing,
            still,
            cool_down,
            now,
        )
    }

    /// Who asked for a thing that was taken directly, by the watch's word.
    pub fn asked_by(
        &self,
        instance: &InstanceKey,
        thing: &Thing,
    ) -> Result<Option<ClaimRef>, Error> {
        self.1.synced()?;
        let index = self.1.index();
        let record = index.record(instance, thing);
        Ok(record.and_then(|record| record.claim.clone()))
    }

    /// What this holder has in the instance, by the watch's word: held, and not about to be withdrawn. Asks nobody.
    pub fn held_now(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error> {
        self.1.synced()?;
        let mut index = self.1.index();
        let mut leases = index.table(instance).held_by(holder);
        leases.retain(|lease| lease.state == mooring_ipam::State::Held);
        Ok(leases)
    }

    /// What is taken in an instance, by the watch's word. `look` must not call the store.
    pub fn with_table(
        &self,
        instance: &InstanceKey,
        look: &mut dyn FnMut(&Table),
    ) -> Result<(), Error> {
        self.1.synced()?;
        look(self.1.index().table(instance));
        Ok(())
    }

    /// Every lease with who asked for it, by the watch's word: to find those whose claim is gone.
    pub fn claimed(&self) -> Result<Vec<ClaimedLease>, Error> {
        self.1.synced()?;
        let index = self.1.index();
        let mut found: Vec<ClaimedLease> = index
            .records()
            .map(|record| ClaimedLease {
                lease: record.lease.clone(),
                claim: record.claim.clone(),
            })
            .collect();
        let key = |c: &ClaimedLease| (c.lease.instance.clone(), c.lease.thing);
        found.sort_by_key(key);
        Ok(found)
    }

    /// Puts away what has ended: expired transactions, drafts of processes that are gone, rests that are over, addresses that
    /// lost a race. For a leader to call now and then. Gives how many leases went.
    pub fn tidy(&self, now: Time) -> Result<usize, Error> {
        drop(self.begin(now)?);
        direct::tidy(&self.1, now)
    }
}

store_over_ledger!(KubeStore);
