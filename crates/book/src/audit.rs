//! Who took and freed what: an append-only trail beside the leases. `moor book audit` reads it.
//!
//! An entry is written in the same act as the change it tells of, so the trail never says more or less than the
//! book. Reservations leave an entry too: a draft that was discarded is part of an address's story.

use std::net::IpAddr;

use mooring_api::Time;
use mooring_ipam::{Holder, InstanceKey, Thing, TxnId};
use serde::{Deserialize, Serialize};

/// What happened to a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Event {
    /// A transaction reserved it.
    Reserved,
    /// It became held.
    Taken,
    /// It was given back (and may be cooling).
    Released,
    /// A reservation was undone.
    Aborted,
    /// A reservation expired and was undone.
    Expired,
    /// It was put back by a rebuild or an import.
    Restored,
}

/// One line of the trail.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// When.
    pub at: Time,
    /// What happened.
    pub event: Event,
    /// Where.
    pub instance: InstanceKey,
    /// To what.
    pub thing: Thing,
    /// Whose it was.
    pub holder: Holder,
    /// In which transaction; None for a restore.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub txn: Option<TxnId>,
}

/// Which entries to read. Every field that is set must fit.
#[derive(Clone, Debug, Default)]
pub struct AuditFilter {
    /// In this instance.
    pub instance: Option<InstanceKey>,
    /// Covering this address.
    pub addr: Option<IpAddr>,
    /// Of this package (minted id).
    pub package: Option<String>,
    /// Of this cluster.
    pub cluster: Option<String>,
    /// Of this holder, by any of its names: workload, package or interface.
    pub holder: Option<String>,
    /// Not before.
    pub since: Option<Time>,
}

impl AuditFilter {
    /// Whether an entry fits.
    pub fn fits(&self, entry: &Entry) -> bool {
        let Self {
            instance,
            addr,
            package,
            cluster,
            holder,
            since,
        } = self;
        let named = |name: &String| {
            let Holder {
                package,
                workload,
                interface,
                ..
            } = &entry.holder;
            [package, workload, interface].contains(&name)
                || workload.split_once('/').is_some_and(|(_, w)| w == name)
        };
        let covers = |addr: &IpAddr| entry.thing.range().is_some_and(|r| r.contains(*addr));
        instance.as_ref().is_none_or(|i| *i == entry.instance)
            && addr.as_ref().is_none_or(covers)
            && package.as_ref().is_none_or(|p| *p == entry.holder.package)
            && cluster.as_ref().is_none_or(|c| *c == entry.holder.cluster)
            && holder.as_ref().is_none_or(named)
            && since.is_none_or(|s| entry.at >= s)
    }
}
