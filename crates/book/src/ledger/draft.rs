//! A transaction that is being made: what [`Txn`] promises, before anything is durable.
//!
//! Takes are put into the tables at once, as reservations without an end, so that the next question sees them.
//! Each remembers what stood in its place; dropping the handle puts that back.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{Span, Time};
use mooring_ipam::{Candidate, Holder, InstanceKey, Lease, State, Table, Thing, TxnId};

use super::table::{is_reserved_by, make_room, put};
use super::{Inner, Ledger};
use crate::error::Error;
use crate::keep::{Claimed, Keep, Open, PackageNote, Release, Take};
use crate::reservation::Reservation;
use crate::store::{Outcome, PackageRecord, Txn};

/// How often a take is tried again because what stood there was not known.
const TRIES: u32 = 3;

/// Instance and thing.
type Key = (InstanceKey, Thing);

/// What a transaction wants so far.
pub(super) struct Draft {
    pub(super) id: TxnId,
    now: Time,
    pub(super) takes: BTreeMap<Key, Take>,
    /// What was ever taken, by cluster and package: a fleet is one draft, and each package asks what it has.
    taken: BTreeMap<(String, String), BTreeSet<Key>>,
    releases: BTreeMap<Key, Release>,
    packages: BTreeMap<(String, String), PackageNote>,
    reservations: BTreeMap<Key, Reservation>,
}

impl Draft {
    pub(super) fn new(id: TxnId, now: Time) -> Self {
        Self {
            id,
            now,
            takes: BTreeMap::new(),
            taken: BTreeMap::new(),
            releases: BTreeMap::new(),
            packages: BTreeMap::new(),
            reservations: BTreeMap::new(),
        }
    }

    /// Whether the holder has this lease as far as this transaction is concerned.
    fn has(&self, lease: &Lease) -> bool {
        (lease.state == State::Held || is_reserved_by(lease, self.id))
            && !self
                .releases
                .contains_key(&(lease.instance.clone(), lease.thing))
    }

    fn is_unchanged(&self) -> bool {
        let same = |take: &Take| match take.before.as_slice() {
            [was] => {
                (was.state, was.subnet, was.gateway) == (State::Held, take.subnet, take.gateway)
            }
            _ => false,
        };
        let noted = !self.packages.is_empty() || !self.reservations.is_empty();
        self.takes.values().all(same) && self.releases.is_empty() && !noted
    }
}

/// The caller's side of the draft.
pub(super) struct Handle<'a, K: Keep> {
    ledger: &'a Ledger<K>,
    id: TxnId,
    now: Time,
}

impl<'a, K: Keep> Handle<'a, K> {
    pub(super) fn new(ledger: &'a Ledger<K>, id: TxnId, now: Time) -> Self {
        Self { ledger, id, now }
    }
}

impl<K: Keep> Drop for Handle<'_, K> {
    fn drop(&mut self) {
        self.ledger.lock().undo_draft();
    }
}

impl<K: Keep> Inner<K> {
    fn draft(&mut self) -> &mut Draft {
        self.draft
            .as_mut()
            .expect("a handle lives as long as its draft")
    }

    fn undo_draft(&mut self) {
        let Some(draft) = self.draft.take() else {
            return;
        };
        let mut before = Vec::new();
        for take in draft.takes.into_values() {
            before.extend(self.remove_take(draft.id, take));
        }
        // Only when all takes are gone: two of them may stand where one cooling range was.
        for lease in before {
            self.keep.put_back(&lease);
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                put(table, lease);
            }
        }
        self.keep.draft_ended();
    }

    /// Takes a take out of its table; gives what stood there before.
    fn remove_take(&mut self, id: TxnId, take: Take) -> Vec<Lease> {
        match self.tables.get_mut(&take.instance) {
            Some(table)
                if table
                    .get(&take.thing)
                    .is_some_and(|l| is_reserved_by(&l, id)) =>
            {
                table.remove(&take.thing);
                self.keep.unclaim(&take.instance, &take.thing);
                take.before
            }
            _ => Vec::new(),
        }
    }

    /// Undoes one take. Where another one of the draft stands in the way, that one puts back the rest.
    fn undo_take(&mut self, id: TxnId, take: Take) {
        for lease in self.remove_take(id, take) {
            let Some(table) = self.tables.get_mut(&lease.instance) else {
                continue;
            };
            let Err(other) = table.insert(lease.clone()) else {
                self.keep.put_back(&lease);
                continue;
            };
            let key = (lease.instance.clone(), other.thing);
            if let Some(other) = self.draft().takes.get_mut(&key) {
                other.before.push(lease);
            }
        }
    }

    /// Tries to take, again where the keep knew of something that the tables did not.
    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error> {
        let now = self.draft().now;
        let mut tries = TRIES;
        loop {
            let lost = match self.try_once(instance, candidate, holder)? {
                Outcome::Won(won) => return Ok(Outcome::Won(won)),
                Outcome::Lost(lost) => lost,
            };
            tries -= 1;
            let gives_way = lost.holder == *holder
                || matches!(lost.state, State::Cooling { until } if until <= now);
            let is_news = self.table(instance)?.get(&lost.thing).as_ref() != Some(&lost);
            if is_news {
                let table = self.table(instance)?;
                table.remove(&lost.thing);
                // Where it does not fit, what is in its way is about to go; until then it is lost as well.
                let _ = table.insert(lost.clone());
            }
            if !(is_news && gives_way && tries > 0) {
                return Ok(Outcome::Lost(lost));
            }
        }
    }

    fn try_once(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error> {
        let Draft { id, now, .. } = *self.draft();
        let Candidate {
            thing,
            subnet,
            gateway,
        } = *candidate;
        let table = self.table(instance)?;
        let mut before = match make_room(table, &thing, subnet, holder, now) {
            Ok(evicted) => evicted,
            Err(other) => return Ok(Outcome::Lost(*other)),
        };
        let own = table.get(&thing);
        let mut won = Lease {
            instance: instance.clone(),
            thing,
            subnet,
            gateway,
            holder: holder.clone(),
            state: State::Reserved {
                txn: id,
                until: Time(u64::MAX),
            },
            since: now,
        };
        match &own {
            Some(own) if is_reserved_by(own, id) => return Ok(Outcome::Won(own.clone())),
            Some(own) if own.state == State::Held => {
                (won.state, won.since) = (own.state, own.since);
            }
            _ => {
                let claimed = self.keep.claim(&won, own.as_ref(), &before, now);
                let table = self.table(instance)?;
                if let Ok(Claimed::Won) = claimed {
                    put(table, won.clone());
                } else {
                    for lease in before {
                        put(table, lease);
                    }
                    return claimed.map(|claimed| match claimed {
                        Claimed::Won => Outcome::Won(won),
                        Claimed::Lost(lost) => Outcome::Lost(*lost),
                    });
                }
            }
        }
        before.extend(own);
        let (key, draft) = ((instance.clone(), thing), self.draft());
        draft.releases.remove(&key);
        let package = (holder.cluster.clone(), holder.package.clone());
        draft.taken.entry(package).or_default().insert(key.clone());
        draft.takes.entry(key).or_insert_with(|| Take {
            instance: instance.clone(),
            thing,
            holder: holder.clone(),
            subnet,
            gateway,
            before,
        });
        Ok(Outcome::Won(won))
    }

    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error> {
        let key = (instance.clone(), *thing);
        let lease = self.table(instance)?.get(thing);
        let (id, taken) = (self.draft().id, self.draft().takes.remove(&key));
        if let Some(take) = taken {
            self.undo_take(id, take);
        }
        self.draft().reservations.remove(&key);
        if let Some(lease) = lease.filter(|l| l.state == State::Held) {
            let release = Release {
                instance: instance.clone(),
                thing: *thing,
                holder: lease.holder,
                cool_down,
            };
            self.draft().releases.insert(key, release);
        }
        Ok(())
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        let key = (cluster.to_owned(), id.to_owned());
        let noted = self.draft.as_ref().and_then(|d| d.packages.get(&key));
        match noted {
            Some(note) => Ok(note.record().cloned()),
            None => self.keep.package(cluster, id),
        }
    }

    /// Records what will be, unless that is what the book has.
    fn note_reservation(&mut self, reservation: Reservation) {
        let key = reservation.key();
        let known = self.reservations.get(&key) == Some(&reservation);
        let draft = self.draft();
        if known {
            draft.reservations.remove(&key);
        } else {
            draft.reservations.insert(key, reservation);
        }
    }

    /// Records what will be, unless that is what the book has.
    fn note(&mut self, note: PackageNote) -> Result<(), Error> {
        let (cluster, id) = note.key();
        let key = (cluster.to_owned(), id.to_owned());
        let has = self.keep.package(cluster, id)?;
        let place = |r: &PackageRecord| (r.name.clone(), r.path.clone());
        let draft = self.draft();
        if has.as_ref().map(place) == note.record().map(place) {
            draft.packages.remove(&key);
        } else {
            draft.packages.insert(key, note);
        }
        Ok(())
    }
}

impl<K: Keep> Txn for Handle<'_, K> {
    fn id(&self) -> TxnId {
        self.id
    }

    fn now(&self) -> Time {
        self.now
    }

    fn with_table(
        &self,
        instance: &InstanceKey,
        look: &mut dyn FnMut(&Table),
    ) -> Result<(), Error> {
        look(self.ledger.lock().table(instance)?);
        Ok(())
    }

    fn held_by(&self, instance: &InstanceKey, holder: &Holder) -> Result<Vec<Lease>, Error> {
        let mut inner = self.ledger.lock();
        let mut leases = inner.table(instance)?.held_by(holder);
        let draft = inner.draft();
        leases.retain(|lease| draft.has(lease));
        Ok(leases)
    }

    fn held_by_package(&self, cluster: &str, package: &str) -> Result<Vec<Lease>, Error> {
        let mut inner = self.ledger.lock();
        let mut keys = BTreeSet::from_iter(inner.keep.of_package(cluster, package)?);
        let package_key = (cluster.to_owned(), package.to_owned());
        let drafted = inner.draft().taken.get(&package_key);
        keys.extend(drafted.into_iter().flatten().cloned());
        let mut found = Vec::new();
        for (instance, thing) in keys {
            let Some(lease) = inner.table(&instance)?.get(&thing) else {
                continue;
            };
            let of_it = lease.holder.cluster == cluster && lease.holder.package == package;
            if of_it && inner.draft().has(&lease) {
                found.push(lease);
            }
        }
        Ok(found)
    }

    fn try_take(
        &mut self,
        instance: &InstanceKey,
        candidate: &Candidate,
        holder: &Holder,
    ) -> Result<Outcome, Error> {
        self.ledger.lock().try_take(instance, candidate, holder)
    }

    fn release(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        cool_down: Span,
    ) -> Result<(), Error> {
        self.ledger.lock().release(instance, thing, cool_down)
    }

    fn note_package(&mut self, record: PackageRecord) -> Result<(), Error> {
        self.ledger.lock().note(PackageNote::Note(record))
    }

    fn forget_package(&mut self, cluster: &str, id: &str) -> Result<(), Error> {
        let (cluster, id) = (cluster.to_owned(), id.to_owned());
        self.ledger.lock().note(PackageNote::Forget { cluster, id })
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        self.ledger.lock().package(cluster, id)
    }

    fn note_reservation(&mut self, reservation: Reservation) -> Result<(), Error> {
        self.ledger.lock().note_reservation(reservation);
        Ok(())
    }

    fn is_unchanged(&self) -> bool {
        self.ledger.lock().draft().is_unchanged()
    }

    fn reserve(self: Box<Self>, ttl: Span) -> Result<TxnId, Error> {
        let mut inner = self.ledger.lock();
        let draft = inner.draft();
        let open = Open {
            id: self.id,
            until: self.now.after(ttl),
            takes: draft.takes.values().cloned().collect(),
            releases: draft.releases.values().cloned().collect(),
            packages: draft.packages.values().cloned().collect(),
            reservations: draft.reservations.values().cloned().collect(),
        };
        let change = inner.plan_reserve(open, self.now)?;
        inner.make(change)?;
        inner.keep.draft_ended();
        inner.draft = None;
        drop(inner);
        Ok(self.id)
    }
}
