//! The contract that every store keeps, and that one suite of tests runs over all of them.

use std::net::IpAddr;

use mooring_api::{Span, Time};
use mooring_ipam::{Candidate, Holder, InstanceKey, Lease, Thing, TxnId};
use serde::{Deserialize, Serialize};

/// What a try to take something came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is ours, reserved under this transaction.
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

/// What can go wrong in a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the book open.
    #[error("the book {path} is in use{}", holder.as_ref().map(|h| format!(" by {h}")).unwrap_or_default())]
    Busy {
        /// The book.
        path: String,
        /// Who holds it, where that is known.
        holder: Option<String>,
    },
    /// The book cannot be opened or read.
    #[error("cannot use the book {path}")]
    Unusable {
        /// The book.
        path: String,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The transaction is not open (any more).
    #[error("transaction {0:?} is not open: it was committed, aborted, or it expired")]
    NotOpen(TxnId),
}

/// A place where addresses are kept.
pub trait Store {
    /// Starts a transaction. Expired reservations are reaped first.
    fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error>;
    /// Makes a reserved transaction final: its takes become held, its releases take effect.
    fn commit(&self, txn: TxnId, now: Time) -> Result<(), Error>;
    /// Undoes a reserved transaction. Absent is success.
    fn abort(&self, txn: TxnId, now: Time) -> Result<(), Error>;
    /// Leases that fit, ordered by instance, then thing.
    fn leases(&self, filter: &Filter) -> Result<Vec<Lease>, Error>;
    /// The packages that were rendered with this book.
    fn packages(&self) -> Result<Vec<PackageRecord>, Error>;
}

/// An open transaction. Dropping it undoes everything; nothing is durable before [`Txn::reserve`].
pub trait Txn {
    /// What this holder has in the instance, this transaction's changes included.
    fn held_by(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error>;
    /// Everything that this package has in this cluster, this transaction's changes included.
    fn held_by_package(&self, cluster: &str, package: &str) -> Result<Vec<Lease>, Error>;
    /// Tries to take one candidate.
    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error>;
    /// Gives something back when the transaction commits. Absent is success.
    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error>;
    /// Remembers where a package is, when the transaction commits.
    fn note_package(&mut self, record: PackageRecord) -> Result<(), Error>;
    /// Where a package was last.
    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error>;
    /// Makes the takes durable as reservations that expire after `ttl`, and ends this handle.
    fn reserve(self: Box<Self>, ttl: Span) -> Result<TxnId, Error>;
}
