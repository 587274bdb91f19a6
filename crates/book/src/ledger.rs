//! What every store of this room does with a transaction, over any [`Keep`].
//!
//! ```text
//!  tables (loaded per instance) ◄─ draft: takes are put in at once, dropping puts back what was before
//!      │
//!      └─ reserve │ commit │ abort │ reap │ restore ─► one Change ─► Keep::persist ─► tables
//! ```
//!
//! A change is planned from the tables, made durable, and only then applied to them: when the keep fails, memory
//! has not moved. Easy to get wrong: a take does not own its lease alone. Two drafts of one package may both
//! count on it, and whichever is committed last decides (see `ledger/plan.rs`).

mod draft;
mod plan;
mod table;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use mooring_api::Time;
use mooring_ipam::{InstanceKey, Lease, State, Table, Thing, TxnId};

use crate::amend::Amendment;
use crate::audit::{AuditFilter, Entry, Event};
use crate::error::Error;
use crate::keep::{About, Change, Keep, Open};
use crate::reservation::{Reservation, ReservationNote};
use crate::restore::Restored;
use crate::store::{Filter, PackageRecord, Pending, Txn};

use draft::Draft;
pub(crate) use table::is_reserved_by;

/// How often an act is planned again because another process was faster.
const ROUNDS: u32 = 32;

/// The state behind a store.
pub(crate) struct Ledger<K>(Mutex<Inner<K>>);

struct Inner<K> {
    keep: K,
    /// Everything in the instances that were looked at, the draft's takes included.
    tables: BTreeMap<InstanceKey, Table>,
    /// Reserved transactions.
    open: BTreeMap<TxnId, Open>,
    /// What was reserved by hand. They are few, so all of them are here.
    reservations: BTreeMap<(InstanceKey, Thing), Reservation>,
    /// The transaction that is being made; one at a time.
    draft: Option<Draft>,
    next: u64,
    /// What was reaped in memory while the keep was only read: to be written before anything else is.
    owed: VecDeque<Change>,
}

impl<K: Keep> Ledger<K> {
    pub(crate) fn new(keep: K) -> Result<Self, Error> {
        let (open, next) = keep.open()?;
        let reservations = keep.reservations()?;
        Ok(Self(Mutex::new(Inner {
            keep,
            tables: BTreeMap::new(),
            open: open.into_iter().map(|o| (o.id, o)).collect(),
            reservations: reservations.into_iter().map(|r| (r.key(), r)).collect(),
            draft: None,
            next,
            owed: VecDeque::new(),
        })))
    }

    /// Asks the keep itself.
    pub(crate) fn keep<T>(&self, ask: impl FnOnce(&K) -> T) -> T {
        ask(&self.lock().keep)
    }

    fn lock(&self) -> MutexGuard<'_, Inner<K>> {
        // Nothing panics between two halves of a change, so a poisoned state is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error> {
        let mut inner = self.lock();
        inner.must_be_idle()?;
        inner.settle(About::Expired(now), |inner| inner.reap(now))?;
        // Ids rise with time, so that a journal left by an earlier book never names a transaction of this one.
        let first = TxnId(inner.next.max(now.0 << 20));
        let id = inner.keep.mint(now).unwrap_or(first);
        inner.next = id.0 + 1;
        inner.draft = Some(Draft::new(id, now));
        Ok(Box::new(draft::Handle::new(self, id, now)))
    }

    pub(crate) fn commit(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.must_be_idle()?;
        inner.settle(About::Txn(txn), |inner| {
            let open = inner.open.get(&txn).filter(|o| o.until > now).cloned();
            let Some(open) = open else {
                let again = inner.keep.was_committed(txn)?;
                return again.then_some(()).ok_or(Error::NotOpen(txn));
            };
            let change = inner.plan_commit(&open, now)?;
            inner.make(change)
        })
    }

    pub(crate) fn abort(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.must_be_idle()?;
        inner.settle(About::Txn(txn), |inner| {
            let Some(open) = inner.open.get(&txn).cloned() else {
                let committed = inner.keep.was_committed(txn)?;
                return (!committed).then_some(()).ok_or(Error::NotOpen(txn));
            };
            let change = inner.plan_undo(&open, Event::Aborted, now)?;
            inner.make(change)
        })
    }

    pub(crate) fn leases(&self, filter: &Filter) -> Result<Vec<Lease>, Error> {
        let mut inner = self.lock();
        inner.look(About::Nothing)?;
        let instances = match (&filter.instance, &filter.cluster, &filter.package) {
            (Some(one), _, _) => BTreeSet::from([one.clone()]),
            (None, Some(cluster), Some(package)) => {
                let things = inner.keep.of_package(cluster, package)?;
                things.into_iter().map(|(instance, _)| instance).collect()
            }
            _ => inner.instances()?,
        };
        let mut found = Vec::new();
        for instance in &instances {
            let durable = inner.durable(instance)?;
            found.extend(durable.into_iter().filter(|lease| filter.fits(lease)));
        }
        found.sort_by(|a, b| (&a.instance, &a.thing).cmp(&(&b.instance, &b.thing)));
        Ok(found)
    }

    pub(crate) fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        let mut inner = self.lock();
        inner.look(About::Nothing)?;
        inner.keep.packages()
    }

    pub(crate) fn pending(&self) -> Result<Vec<Pending>, Error> {
        let mut inner = self.lock();
        inner.look(About::Nothing)?;
        let shown = inner.open.values().map(|open| {
            let takes = open.takes.iter().map(|t| (t.instance.clone(), t.thing));
            let releases = open.releases.iter().map(|r| (r.instance.clone(), r.thing));
            Pending {
                id: open.id,
                until: open.until,
                takes: takes.collect(),
                releases: releases.collect(),
            }
        });
        Ok(shown.collect())
    }

    pub(crate) fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        let mut inner = self.lock();
        inner.look(About::Nothing)?;
        Ok(inner.reservations.values().cloned().collect())
    }

    pub(crate) fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        self.lock().keep.audit(filter, limit)
    }

    pub(crate) fn restore(
        &self,
        leases: &[Lease],
        packages: &[PackageRecord],
        now: Time,
    ) -> Result<Restored, Error> {
        let mut inner = self.lock();
        inner.must_be_idle()?;
        let keys: Vec<(InstanceKey, Thing)> = leases
            .iter()
            .map(|l| (l.instance.clone(), l.thing))
            .collect();
        inner.settle(About::Leases(&keys), |inner| {
            let (change, restored) = inner.plan_restore(leases, packages, now)?;
            if !change.is_empty() {
                inner.make(change)?;
            }
            Ok(restored)
        })
    }

    pub(crate) fn amend(&self, amendment: &Amendment, now: Time) -> Result<(), Error> {
        let mut inner = self.lock();
        inner.must_be_idle()?;
        let leases = amendment.drop.iter().chain(&amendment.put);
        let keys: Vec<(InstanceKey, Thing)> =
            leases.map(|l| (l.instance.clone(), l.thing)).collect();
        inner.settle(About::Leases(&keys), |inner| {
            let change = inner.plan_amend(amendment, now)?;
            if change.is_empty() {
                return Ok(());
            }
            inner.make(change)
        })
    }
}

impl<K: Keep> Inner<K> {
    /// A second transaction, or a commit in the middle of one, would see takes that may yet be undone.
    fn must_be_idle(&self) -> Result<(), Error> {
        let busy = self.draft.as_ref().map(|d| Error::InTransaction(d.id));
        busy.map_or(Ok(()), Err)
    }

    /// Takes in what others changed. Not while a transaction is being made: its tables do not move.
    fn look(&mut self, about: About<'_>) -> Result<(), Error> {
        if self.draft.is_some() {
            return Ok(());
        }
        if let Some(seen) = self.keep.refresh(about)? {
            self.tables.clear();
            self.open = seen.open.into_iter().map(|o| (o.id, o)).collect();
            let reservations = seen.reservations.into_iter();
            self.reservations = reservations.map(|r| (r.key(), r)).collect();
        }
        Ok(())
    }

    /// Plans from what there is and makes it so; again, where another process was faster.
    fn settle<T>(
        &mut self,
        about: About<'_>,
        mut act: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let mut left = ROUNDS;
        loop {
            self.look(about)?;
            match act(self) {
                Err(Error::Overtaken { .. }) if self.keep.is_shared() && left > 0 => left -= 1,
                outcome => return outcome,
            }
        }
    }

    fn table(&mut self, instance: &InstanceKey) -> Result<&mut Table, Error> {
        if !self.tables.contains_key(instance)
            && let Some(table) = self.keep.table(instance)?
        {
            self.tables.insert(instance.clone(), table);
        }
        if !self.tables.contains_key(instance) {
            let mut table = Table::new(instance.clone());
            for lease in self.keep.load(instance)? {
                let thing = lease.thing;
                if let Err(other) = table.insert(lease) {
                    let why = format!("{thing} and {} of {instance} overlap", other.thing);
                    return Err(self.keep.damaged(why));
                }
            }
            self.tables.insert(instance.clone(), table);
        }
        Ok(self.tables.get_mut(instance).expect("it was put in above"))
    }

    fn instances(&self) -> Result<BTreeSet<InstanceKey>, Error> {
        let mut all: BTreeSet<InstanceKey> = self.keep.instances()?.into_iter().collect();
        all.extend(self.tables.keys().cloned());
        Ok(all)
    }

    /// The leases of an instance without what the draft did.
    fn durable(&mut self, instance: &InstanceKey) -> Result<Vec<Lease>, Error> {
        let mut leases: Vec<Lease> = self.table(instance)?.leases().collect();
        if let Some(draft) = &self.draft {
            leases.retain(|lease| !is_reserved_by(lease, draft.id));
            let takes = draft.takes.values().filter(|t| t.instance == *instance);
            let before = takes.flat_map(|t| &t.before);
            leases.extend(before.filter(|l| l.state != State::Held).cloned());
        }
        Ok(leases)
    }

    /// Undoes what expired. A store that only reads, or that only read so far, does so in memory.
    fn reap(&mut self, now: Time) -> Result<(), Error> {
        let expired = self.open.values().filter(|o| o.until <= now);
        let expired: Vec<TxnId> = expired.map(|o| o.id).collect();
        for txn in expired {
            // Looked up again: undoing one may have changed what the next puts back.
            let Some(open) = self.open.get(&txn).cloned() else {
                continue;
            };
            let change = self.plan_undo(&open, Event::Expired, now)?;
            if self.keep.is_writable() {
                self.make(change)?;
            } else {
                self.owed.push_back(change.clone());
                self.apply(change);
            }
        }
        let orphans = self.keep.orphans(now);
        if !orphans.is_empty() {
            let audit = orphans.iter().map(|l| plan::expired(l, now)).collect();
            let drop = orphans;
            self.make(Change {
                drop,
                audit,
                ..Change::default()
            })?;
        }
        let change = self.plan_end(now)?;
        if change.is_empty() {
            return Ok(());
        }
        if self.keep.is_writable() {
            return self.make(change);
        }
        self.owed.push_back(change.clone());
        self.apply(change);
        Ok(())
    }

    /// A lease that goes, or that rests, takes its reservation with it.
    fn forget_with_leases(&self, change: &mut Change) {
        if self.reservations.is_empty() {
            return;
        }
        let rests = |l: &&Lease| matches!(l.state, State::Cooling { .. });
        let gone = change.drop.iter().chain(change.put.iter().filter(rests));
        let kept: BTreeSet<(InstanceKey, Thing)> = change
            .reservations
            .iter()
            .map(|note| (note.key().0.clone(), *note.key().1))
            .collect();
        let keys = gone.map(|l| (l.instance.clone(), l.thing));
        let forgotten = keys.filter(|k| self.reservations.contains_key(k) && !kept.contains(k));
        let notes: Vec<ReservationNote> = forgotten
            .map(|(instance, thing)| ReservationNote::Forget { instance, thing })
            .collect();
        change.reservations.extend(notes);
    }

    /// Makes a change durable, then true.
    fn make(&mut self, mut change: Change) -> Result<(), Error> {
        self.keep.ready()?;
        while let Some(owed) = self.owed.front() {
            self.keep.persist(owed)?;
            self.owed.pop_front();
        }
        change.next = self.next;
        self.forget_with_leases(&mut change);
        self.keep.persist(&change)?;
        self.apply(change);
        Ok(())
    }

    fn apply(&mut self, change: Change) {
        for lease in change.drop {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                table.remove(&lease.thing);
            }
        }
        for lease in change.put {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                table::put(table, lease);
            }
        }
        for txn in change.close {
            self.open.remove(&txn);
        }
        self.open.extend(change.open.into_iter().map(|o| (o.id, o)));
        for note in change.reservations {
            match note {
                ReservationNote::Note(r) => self.reservations.insert(r.key(), r),
                ReservationNote::Forget { instance, thing } => {
                    self.reservations.remove(&(instance, thing))
                }
            };
        }
    }
}

/// Lets a store that wraps a ledger keep the contract by asking it.
macro_rules! store_over_ledger {
    ($store:ty) => {
        impl $crate::store::Store for $store {
            fn begin(
                &self,
                now: mooring_api::Time,
            ) -> Result<Box<dyn $crate::store::Txn + '_>, $crate::error::Error> {
                self.0.begin(now)
            }

            fn commit(
                &self,
                txn: mooring_ipam::TxnId,
                now: mooring_api::Time,
            ) -> Result<(), $crate::error::Error> {
                self.0.commit(txn, now)
            }

            fn abort(
                &self,
                txn: mooring_ipam::TxnId,
                now: mooring_api::Time,
            ) -> Result<(), $crate::error::Error> {
                self.0.abort(txn, now)
            }

            fn leases(
                &self,
                filter: &$crate::store::Filter,
            ) -> Result<Vec<mooring_ipam::Lease>, $crate::error::Error> {
                self.0.leases(filter)
            }

            fn packages(&self) -> Result<Vec<$crate::store::PackageRecord>, $crate::error::Error> {
                self.0.packages()
            }

            fn pending(&self) -> Result<Vec<$crate::store::Pending>, $crate::error::Error> {
                self.0.pending()
            }

            fn reservations(
                &self,
            ) -> Result<Vec<$crate::reservation::Reservation>, $crate::error::Error> {
                self.0.reservations()
            }

            fn amend(
                &self,
                amendment: &$crate::amend::Amendment,
                now: mooring_api::Time,
            ) -> Result<(), $crate::error::Error> {
                self.0.amend(amendment, now)
            }

            fn audit(
                &self,
                filter: &$crate::audit::AuditFilter,
                limit: usize,
            ) -> Result<Vec<$crate::audit::Entry>, $crate::error::Error> {
                self.0.audit(filter, limit)
            }

            fn restore(
                &self,
                leases: &[mooring_ipam::Lease],
                packages: &[$crate::store::PackageRecord],
                now: mooring_api::Time,
            ) -> Result<$crate::restore::Restored, $crate::error::Error> {
                self.0.restore(leases, packages, now)
            }
        }
    };
}

pub(crate) use store_over_ledger;
