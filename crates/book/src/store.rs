//! The contract that every store keeps, and that one suite of tests runs over all of them.
//!
//! `package`, `cli` and later `controller` and `agent` call it; they allocate with [`crate::allocate`] and with
//! nothing else. Easy to get wrong: a [`Txn`] is not durable before [`Txn::reserve`], and what it reserved is not
//! final before [`Store::commit`]; the package writer puts its files between the two.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Span, Time};
use mooring_ipam::{Candidate, Holder, InstanceKey, Lease, Table, Thing, TxnId};
use serde::{Deserialize, Serialize};

use crate::amend::Amendment;
use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::reservation::Reservation;
use crate::restore::Restored;

/// What a try to take something came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is ours: reserved under this transaction, or held already.
    Won(Lease),
    /// Somebody else has it.
    Lost(Lease),
}

/// The last known place of a package, to tell a move from a copy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PackageRecord {
    /// The minted id.
    pub id: String,
    /// The cluster it was rendered for.
    pub cluster: String,
    /// Its name, for people.
    pub name: String,
    /// Where it was written last.
    pub path: String,
    /// The workload that each interface is attached to: who has an address, in a person's words.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub workloads: BTreeMap<String, String>,
    /// The networks whose VLAN it uses. A VLAN goes back when no package of the cluster is left.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub vlans: BTreeSet<InstanceKey>,
    /// When.
    pub at: Time,
}

/// Which leases to list. Every field that is set must fit.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// In this instance.
    pub instance: Option<InstanceKey>,
    /// Covering this address.
    pub addr: Option<IpAddr>,
    /// Of this package (minted id).
    pub package: Option<String>,
    /// Of this cluster.
    pub cluster: Option<String>,
}

impl Filter {
    /// Whether a lease fits.
    pub fn fits(&self, lease: &Lease) -> bool {
        let Self {
            instance,
            addr,
            package,
            cluster,
        } = self;
        let covers = |addr: &IpAddr| lease.thing.range().is_some_and(|r| r.contains(*addr));
        instance.as_ref().is_none_or(|i| *i == lease.instance)
            && addr.as_ref().is_none_or(covers)
            && package.as_ref().is_none_or(|p| *p == lease.holder.package)
            && cluster.as_ref().is_none_or(|c| *c == lease.holder.cluster)
    }
}

/// A reserved transaction that waits for its commit: a draft, or what a crash left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its id.
    pub id: TxnId,
    /// When it expires.
    pub until: Time,
    /// What it takes.
    pub takes: Vec<(InstanceKey, Thing)>,
    /// What it gives back.
    pub releases: Vec<(InstanceKey, Thing)>,
}

/// A place where addresses are kept.
pub trait Store {
    /// Starts a transaction. Expired reservations are reaped first; in the book itself with the next durable act at
    /// the latest.
    fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error>;
    /// Makes a reserved transaction final: its takes become held, its releases take effect.
    ///
    /// A transaction that was committed before (among the last few hundred) is success, so that a journal can be
    /// replayed; one that expired, was aborted or was never reserved is [`Error::NotOpen`].
    fn commit(&self, txn: TxnId, now: Time) -> Result<(), Error>;
    /// Undoes a reserved transaction. Absent is success; a committed one is [`Error::NotOpen`].
    fn abort(&self, txn: TxnId, now: Time) -> Result<(), Error>;
    /// Leases that fit, ordered by instance, then thing. Reserved and cooling ones are among them.
    fn leases(&self, filter: &Filter) -> Result<Vec<Lease>, Error>;
    /// The packages that were rendered with this book, ordered by cluster, then id.
    fn packages(&self) -> Result<Vec<PackageRecord>, Error>;
    /// Reserved transactions, oldest first.
    fn pending(&self) -> Result<Vec<Pending>, Error>;
    /// What was reserved by hand, ordered by instance, then thing. One that has ended is among them until the next
    /// transaction begins.
    fn reservations(&self) -> Result<Vec<Reservation>, Error>;
    /// Makes a change that was planned from what the book held, durably and at once. Where the book is not that any
    /// more, it is [`Error::Amended`] and nothing changes.
    fn amend(&self, amendment: &Amendment, now: Time) -> Result<(), Error>;
    /// The newest `limit` entries that fit, oldest of them first. The book keeps a hundred thousand.
    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error>;
    /// Puts leases and package records back as they are, durably and at once: `book rebuild`, `book import`.
    ///
    /// What somebody else has is never overwritten, it comes back as a conflict. A reserved lease is put back as
    /// cooling, since its transaction is gone: its holder finds it again, and nobody else gets it early.
    fn restore(
        &self,
        leases: &[Lease],
        packages: &[PackageRecord],
        now: Time,
    ) -> Result<Restored, Error>;
}

/// An open transaction. Dropping it undoes everything; nothing is durable before [`Txn::reserve`].
pub trait Txn {
    /// The id under which it will be reserved.
    fn id(&self) -> TxnId;
    /// The time it began, which every take is judged by.
    fn now(&self) -> Time;
    /// Shows what is taken in an instance, this transaction's changes included. Not re-entrant: `look` must not
    /// call the store.
    fn with_table(&self, instance: &InstanceKey, look: &mut dyn FnMut(&Table))
    -> Result<(), Error>;
    /// What this holder has in the instance: held, or taken by this transaction, and not released by it.
    fn held_by(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error>;
    /// Everything that this package has in this cluster: held, or taken by this transaction, and not released by
    /// it. What other drafts have reserved is not among it.
    fn held_by_package(&self, cluster: &str, package: &str) -> Result<Vec<Lease>, Error>;
    /// Tries to take one candidate. The holder's own lease of the same thing is won again, whatever its state.
    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error>;
    /// Gives something back when the transaction commits; until then it stays taken for everybody. Absent is
    /// success. What another open transaction has reserved is left alone.
    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error>;
    /// Remembers where a package is, when the transaction commits.
    fn note_package(&mut self, record: PackageRecord) -> Result<(), Error>;
    /// Forgets a package, when the transaction commits. Its leases are released one by one, not by this.
    fn forget_package(&mut self, cluster: &str, id: &str) -> Result<(), Error>;
    /// Where a package was last, this transaction's changes included.
    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error>;
    /// Remembers why something is reserved by hand, when the transaction commits. The lease is taken for
    /// [`Reservation::holder`] before; it takes the reservation with it when it goes.
    fn note_reservation(&mut self, reservation: Reservation) -> Result<(), Error>;
    /// Whether reserving and committing would change anything but times. A render that changes nothing may drop
    /// the transaction instead.
    fn is_unchanged(&self) -> bool;
    /// Makes the takes durable as reservations that expire after `ttl`, and ends this handle.
    fn reserve(self: Box<Self>, ttl: Span) -> Result<TxnId, Error>;
}
