//! A book that lasts as long as the process: `fn` without a book, tests, and what other stores are compared with.

use std::collections::{BTreeMap, BTreeSet};

use mooring_ipam::{InstanceKey, Lease, Thing, TxnId};

use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::keep::{Change, Keep, Open, PackageNote, REMEMBERED, TRAIL};
use crate::ledger::{Ledger, store_over_ledger};
use crate::reservation::Reservation;
use crate::store::PackageRecord;

/// A book in memory.
pub struct MemoryStore(Ledger<MemoryKeep>);

impl MemoryStore {
    /// An empty book.
    pub fn new() -> Self {
        Self::default()
    }
}

impl Default for MemoryStore {
    fn default() -> Self {
        let ledger = Ledger::new(MemoryKeep::default());
        Self(ledger.expect("memory answers every question"))
    }
}

store_over_ledger!(MemoryStore);

/// What the ledger does not hold itself: its tables are never unloaded, so leases are not kept twice.
#[derive(Default)]
struct MemoryKeep {
    of_package: BTreeMap<(String, String), BTreeSet<(InstanceKey, Thing)>>,
    packages: BTreeMap<(String, String), PackageRecord>,
    committed: BTreeSet<TxnId>,
    trail: Vec<Entry>,
}

fn owner(lease: &Lease) -> (String, String) {
    (lease.holder.cluster.clone(), lease.holder.package.clone())
}

impl Keep for MemoryKeep {
    fn is_writable(&self) -> bool {
        true
    }

    fn ready(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn damaged(&self, why: String) -> Error {
        Error::Unusable {
            path: "(memory)".to_owned(),
            remedy: "this is a defect of mooring",
            source: why.into(),
        }
    }

    fn persist(&mut self, change: &Change) -> Result<(), Error> {
        for lease in &change.drop {
            if let Some(things) = self.of_package.get_mut(&owner(lease)) {
                things.remove(&(lease.instance.clone(), lease.thing));
            }
        }
        for lease in &change.put {
            let things = self.of_package.entry(owner(lease)).or_default();
            things.insert((lease.instance.clone(), lease.thing));
        }
        if let Some((txn, _)) = change.committed {
            self.committed.insert(txn);
            while self.committed.len() > REMEMBERED {
                self.committed.pop_first();
            }
        }
        for note in &change.packages {
            let key = (note.key().0.to_owned(), note.key().1.to_owned());
            match note {
                PackageNote::Note(record) => self.packages.insert(key, record.clone()),
                PackageNote::Forget { .. } => self.packages.remove(&key),
            };
        }
        self.trail.extend(change.audit.iter().cloned());
        self.trail.drain(..self.trail.len().saturating_sub(TRAIL));
        Ok(())
    }

    fn load(&self, _: &InstanceKey) -> Result<Vec<Lease>, Error> {
        Ok(Vec::new())
    }

    fn instances(&self) -> Result<Vec<InstanceKey>, Error> {
        Ok(Vec::new())
    }

    fn of_package(&self, cluster: &str, package: &str) -> Result<Vec<(InstanceKey, Thing)>, Error> {
        let found = self
            .of_package
            .get(&(cluster.to_owned(), package.to_owned()));
        Ok(found.into_iter().flatten().cloned().collect())
    }

    fn open(&self) -> Result<(Vec<Open>, u64), Error> {
        Ok((Vec::new(), 0))
    }

    fn was_committed(&self, txn: TxnId) -> Result<bool, Error> {
        Ok(self.committed.contains(&txn))
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        let key = (cluster.to_owned(), id.to_owned());
        Ok(self.packages.get(&key).cloned())
    }

    fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        Ok(self.packages.values().cloned().collect())
    }

    fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        Ok(Vec::new())
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        let fitting = self.trail.iter().rev().filter(|e| filter.fits(e));
        let mut found: Vec<Entry> = fitting.take(limit).cloned().collect();
        found.reverse();
        Ok(found)
    }
}
