//! What a store keeps, and the one way it changes: as whole [`Change`]s.
//!
//! [`Ledger`](crate::ledger::Ledger) decides what a change is; a [`Keep`] makes it durable and reads it back. Memory
//! keeps it in maps, file in redb. Easy to get wrong: a change is all or nothing, so a keep writes it in one act.

use std::net::IpAddr;

use mooring_api::{Cidr, Span, Time};
use mooring_ipam::{Holder, InstanceKey, Lease, Table, Thing, TxnId};
use serde::{Deserialize, Serialize};

use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::reservation::{Reservation, ReservationNote};
use crate::store::PackageRecord;

/// How many committed transactions are remembered, so that committing one again is success.
pub(crate) const REMEMBERED: usize = 512;

/// How many entries of the trail are kept; the oldest go first. A fleet of ten thousand interfaces that is rendered
/// anew leaves twenty thousand, so this is months of ordinary days and some tens of megabytes.
pub(crate) const TRAIL: usize = 100_000;

/// Something that an open transaction wants to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Take {
    pub(crate) instance: InstanceKey,
    pub(crate) thing: Thing,
    pub(crate) holder: Holder,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) subnet: Option<Cidr>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) gateway: Option<IpAddr>,
    /// What an abort puts back: the holder's own earlier lease, and cooling ones that had to make room.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) before: Vec<Lease>,
}

/// Something that an open transaction gives back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Release {
    pub(crate) instance: InstanceKey,
    pub(crate) thing: Thing,
    /// Whose it was. At commit, what has another holder by then is left alone.
    pub(crate) holder: Holder,
    pub(crate) cool_down: Span,
}

/// What a transaction does to the package records.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum PackageNote {
    Note(PackageRecord),
    Forget { cluster: String, id: String },
}

impl PackageNote {
    /// Cluster and id.
    pub(crate) fn key(&self) -> (&str, &str) {
        match self {
            Self::Note(record) => (&record.cluster, &record.id),
            Self::Forget { cluster, id } => (cluster, id),
        }
    }

    /// What the record will be.
    pub(crate) fn record(&self) -> Option<&PackageRecord> {
        match self {
            Self::Note(record) => Some(record),
            Self::Forget { .. } => None,
        }
    }
}

/// A transaction: reserved, or being drafted.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Open {
    pub(crate) id: TxnId,
    pub(crate) until: Time,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) takes: Vec<Take>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) releases: Vec<Release>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) packages: Vec<PackageNote>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) reservations: Vec<Reservation>,
}

/// One durable step. Drops come before puts; what changes its holder is dropped and put.
#[derive(Clone, Debug, Default)]
pub(crate) struct Change {
    pub(crate) drop: Vec<Lease>,
    pub(crate) put: Vec<Lease>,
    pub(crate) open: Vec<Open>,
    pub(crate) close: Vec<TxnId>,
    pub(crate) committed: Option<(TxnId, Time)>,
    pub(crate) packages: Vec<PackageNote>,
    pub(crate) reservations: Vec<ReservationNote>,
    pub(crate) audit: Vec<Entry>,
    /// The next transaction's id is at least this.
    pub(crate) next: u64,
    /// May become durable in parts: each lease is right without the others.
    pub(crate) apart: bool,
}

impl Change {
    /// Whether there is nothing to write.
    pub(crate) fn is_empty(&self) -> bool {
        let Self {
            drop,
            put,
            open,
            close,
            committed,
            packages,
            reservations,
            audit,
            next: _,
            apart: _,
        } = self;
        let leases = drop.is_empty() && put.is_empty() && audit.is_empty();
        let txns = open.is_empty() && close.is_empty() && committed.is_none();
        leases && txns && packages.is_empty() && reservations.is_empty()
    }
}

/// What an act is about to look at, so that a keep that others change can read it again.
#[derive(Clone, Copy)]
#[cfg_attr(
    not(feature = "kubernetes"),
    expect(dead_code, reason = "only a shared keep reads it")
)]
pub(crate) enum About<'a> {
    /// Nothing in particular.
    Nothing,
    /// One reserved transaction.
    Txn(TxnId),
    /// Those that have expired by then.
    Expired(Time),
    /// These leases.
    Leases(&'a [(InstanceKey, Thing)]),
}

/// What others may have changed.
pub(crate) struct Seen {
    pub(crate) open: Vec<Open>,
    pub(crate) reservations: Vec<Reservation>,
}

/// What became of a take.
pub(crate) enum Claimed {
    Won,
    /// Somebody else was faster, or the holder's own lease was not known.
    #[cfg_attr(
        not(feature = "kubernetes"),
        expect(dead_code, reason = "only a shared keep can lose")
    )]
    Lost(Box<Lease>),
}

/// Where changes are kept.
///
/// The methods with a body are for a keep that others change at the same time; alone, one has nothing to refresh, and
/// wins whatever its tables have room for.
pub(crate) trait Keep {
    /// Whether others change it at the same time. [`Error::Overtaken`] then means: plan again.
    fn is_shared(&self) -> bool {
        false
    }
    /// Reads what others may have changed; the tables are made anew where it gives something.
    fn refresh(&mut self, _about: About<'_>) -> Result<Option<Seen>, Error> {
        Ok(None)
    }
    /// The table of an instance, where the keep has it as one.
    fn table(&self, _instance: &InstanceKey) -> Result<Option<Table>, Error> {
        Ok(None)
    }
    /// An id for a new transaction that no other process uses.
    fn mint(&mut self, _now: Time) -> Option<TxnId> {
        None
    }
    /// Leases that a process took and did not reserve before it ended.
    fn orphans(&self, _now: Time) -> Vec<Lease> {
        Vec::new()
    }
    /// Takes what a transaction that is being made wants. `own` is the holder's lease of the same thing, which keeps
    /// others away as it is; `evicted` has to go.
    fn claim(
        &mut self,
        _won: &Lease,
        _own: Option<&Lease>,
        _evicted: &[Lease],
        _now: Time,
    ) -> Result<Claimed, Error> {
        Ok(Claimed::Won)
    }
    /// Undoes a claim, as well as it can.
    fn unclaim(&mut self, _instance: &InstanceKey, _thing: &Thing) {}
    /// Puts back what a claim evicted, as well as it can.
    fn put_back(&mut self, _lease: &Lease) {}
    /// The transaction that was being made is reserved, or undone.
    fn draft_ended(&mut self) {}
    /// Whether [`Keep::persist`] works as it is. If not, ask [`Keep::ready`] first.
    fn is_writable(&self) -> bool;
    /// Makes [`Keep::persist`] work. A store that serves reading and `--check` refuses; one that only read so far
    /// is opened for writing, and refuses when it is no longer what was read: [`Error::Overtaken`].
    fn ready(&mut self) -> Result<(), Error>;
    /// Writes a change, durably and at once.
    fn persist(&mut self, change: &Change) -> Result<(), Error>;
    /// The leases of one instance.
    fn load(&self, instance: &InstanceKey) -> Result<Vec<Lease>, Error>;
    /// Every instance that has a lease, in order.
    fn instances(&self) -> Result<Vec<InstanceKey>, Error>;
    /// Where this package has something, reserved and cooling leases included.
    fn of_package(&self, cluster: &str, package: &str) -> Result<Vec<(InstanceKey, Thing)>, Error>;
    /// The reserved transactions, and the next free id.
    fn open(&self) -> Result<(Vec<Open>, u64), Error>;
    /// Whether a transaction is among those committed lately.
    fn was_committed(&self, txn: TxnId) -> Result<bool, Error>;
    /// One package.
    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error>;
    /// All packages, ordered by cluster, then id.
    fn packages(&self) -> Result<Vec<PackageRecord>, Error>;
    /// What was reserved by hand, in any order.
    fn reservations(&self) -> Result<Vec<Reservation>, Error>;
    /// See [`crate::Store::audit`].
    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error>;
    /// The error of something that cannot be.
    fn damaged(&self, why: String) -> Error;
}
