//! What a commit, an undo, an end, a restore and an amendment come to, as one [`Change`].
//!
//! Two open transactions can count on the same lease of the same holder: a draft is rendered again, or one draft
//! drops an interface that another keeps. The lease itself names one of them. When that one ends, the lease goes
//! to the other, and only when nobody is left does it become what it was before.
//!
//! ```text
//!  commit, takes      any of them    ─► held
//!  commit, releases   others keep it ─► reserved by one of them (its "before" is now the cooling lease)
//!                     nobody         ─► cooling, or gone where no rest was asked for
//!  undo               others keep it ─► reserved by one of them
//!                     nobody         ─► what was before
//! ```

use std::collections::BTreeMap;

use mooring_api::Time;
use mooring_ipam::{Holder, InstanceKey, Lease, State, Thing, TxnId};

use super::Inner;
use super::table::{is_reserved_by, make_room, put};
use crate::amend::Amendment;
use crate::audit::{Entry, Event};
use crate::error::Error;
use crate::keep::{Change, Keep, Open, PackageNote, Take};
use crate::reservation::ReservationNote;
use crate::restore::{Conflict, Restored};
use crate::store::PackageRecord;

/// The other open transactions, and which of them count on what.
struct Others {
    open: BTreeMap<TxnId, Open>,
    /// In the order of their ids.
    counting: BTreeMap<(InstanceKey, Thing), Vec<(TxnId, usize)>>,
    changed: Vec<TxnId>,
}

impl Others {
    fn of(open: &BTreeMap<TxnId, Open>, without: TxnId) -> Self {
        let others = open.iter().filter(|(id, _)| **id != without);
        let open: BTreeMap<TxnId, Open> = others.map(|(id, o)| (*id, o.clone())).collect();
        let mut counting: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for (id, other) in &open {
            for (at, take) in other.takes.iter().enumerate() {
                let key = (take.instance.clone(), take.thing);
                counting.entry(key).or_default().push((*id, at));
            }
        }
        Self {
            open,
            counting,
            changed: Vec::new(),
        }
    }

    /// The takes that count on the same lease, newest transaction first.
    fn counting_on(&self, lease: &Lease) -> Vec<(TxnId, usize)> {
        if self.counting.is_empty() {
            return Vec::new();
        }
        let key = (lease.instance.clone(), lease.thing);
        let all = self.counting.get(&key).into_iter().flatten().rev();
        let same = |(id, at): &&(TxnId, usize)| self.open[id].takes[*at].holder == lease.holder;
        all.filter(same).copied().collect()
    }

    fn take(&mut self, (id, at): (TxnId, usize)) -> &mut Take {
        self.changed.push(id);
        let open = self.open.get_mut(&id).expect("counting names open ones");
        &mut open.takes[at]
    }

    /// Hands a lease to the newest that counts on it. Its own "before" stays if it stood before `from`.
    fn inherit(&mut self, lease: &Lease, from: TxnId, before: &[Lease]) -> Option<Lease> {
        let heir = *self.counting_on(lease).first()?;
        if !before.iter().any(|l| is_reserved_by(l, heir.0)) {
            let rest = before.iter().filter(|l| !is_reserved(l)).cloned();
            self.take(heir).before = rest.collect();
        }
        debug_assert_ne!(heir.0, from, "nobody inherits from itself");
        let (txn, until) = (heir.0, self.open[&heir.0].until);
        let state = State::Reserved { txn, until };
        Some(Lease {
            state,
            ..lease.clone()
        })
    }

    fn into_changed(mut self) -> Vec<Open> {
        self.changed.sort_unstable();
        self.changed.dedup();
        let changed = std::mem::take(&mut self.changed);
        let kept = changed.iter().filter_map(|id| self.open.remove(id));
        kept.collect()
    }
}

fn is_reserved(lease: &Lease) -> bool {
    matches!(lease.state, State::Reserved { .. })
}

fn entry(event: Event, at: Time, lease: &Lease, txn: Option<TxnId>) -> Entry {
    Entry {
        at,
        event,
        instance: lease.instance.clone(),
        thing: lease.thing,
        holder: lease.holder.clone(),
        txn,
    }
}

/// The end of something that a process took and never reserved.
pub(super) fn expired(lease: &Lease, now: Time) -> Entry {
    let txn = match lease.state {
        State::Reserved { txn, .. } => Some(txn),
        State::Held | State::Cooling { .. } => None,
    };
    entry(Event::Expired, now, lease, txn)
}

impl<K: Keep> Inner<K> {
    fn lease_of(
        &mut self,
        instance: &InstanceKey,
        thing: &Thing,
        holder: &Holder,
    ) -> Result<Option<Lease>, Error> {
        let found = self.table(instance)?.get(thing);
        Ok(found.filter(|lease| lease.holder == *holder))
    }

    /// The takes become reservations until `until`.
    pub(super) fn plan_reserve(&mut self, open: Open, now: Time) -> Result<Change, Error> {
        let mut change = Change::default();
        let (txn, until) = (open.id, open.until);
        for take in &open.takes {
            let lease = self.lease_of(&take.instance, &take.thing, &take.holder)?;
            let Some(lease) = lease.filter(|l| is_reserved_by(l, txn)) else {
                continue;
            };
            let own = |l: &&Lease| l.thing == take.thing && l.holder == take.holder;
            let evicted = take.before.iter().filter(|l| !own(l));
            change.drop.extend(evicted.cloned());
            change
                .audit
                .push(entry(Event::Reserved, now, &lease, Some(txn)));
            let state = State::Reserved { txn, until };
            change.put.push(Lease { state, ..lease });
        }
        change.open.push(open);
        Ok(change)
    }

    pub(super) fn plan_commit(&mut self, open: &Open, now: Time) -> Result<Change, Error> {
        let mut change = Change {
            close: vec![open.id],
            committed: Some((open.id, now)),
            packages: open.packages.clone(),
            reservations: open
                .reservations
                .iter()
                .cloned()
                .map(ReservationNote::Note)
                .collect(),
            ..Change::default()
        };
        for take in &open.takes {
            let lease = self.lease_of(&take.instance, &take.thing, &take.holder)?;
            let lease = lease.ok_or(Error::NotOpen(open.id))?;
            let held = Lease {
                subnet: take.subnet,
                gateway: take.gateway,
                state: State::Held,
                ..lease.clone()
            };
            if lease.state != State::Held {
                change
                    .audit
                    .push(entry(Event::Taken, now, &held, Some(open.id)));
            }
            if held != lease {
                change.put.push(held);
            }
        }
        let mut others = Others::of(&self.open, open.id);
        for release in &open.releases {
            let lease = self.lease_of(&release.instance, &release.thing, &release.holder)?;
            let Some(lease) = lease.filter(|l| l.state == State::Held) else {
                continue;
            };
            change
                .audit
                .push(entry(Event::Released, now, &lease, Some(open.id)));
            let until = now.after(release.cool_down);
            let rests = Lease {
                state: State::Cooling { until },
                since: now,
                ..lease
            };
            let inherited = others.inherit(&rests, open.id, std::slice::from_ref(&rests));
            match inherited {
                Some(inherited) => change.put.push(inherited),
                None if until > now => change.put.push(rests),
                // Without a rest nothing is left to remember.
                None => change.drop.push(rests),
            }
        }
        change.open = others.into_changed();
        Ok(change)
    }

    /// Undoes a reserved transaction, because somebody said so or because it expired.
    pub(super) fn plan_undo(
        &mut self,
        open: &Open,
        event: Event,
        now: Time,
    ) -> Result<Change, Error> {
        let mut change = Change {
            close: vec![open.id],
            ..Change::default()
        };
        let (mut others, mut before) = (Others::of(&self.open, open.id), Vec::new());
        for take in &open.takes {
            let Some(lease) = self.lease_of(&take.instance, &take.thing, &take.holder)? else {
                continue;
            };
            if !is_reserved_by(&lease, open.id) {
                // Taken over: whoever would have given it back to us now gives it back to who was before us.
                for other in others.counting_on(&lease) {
                    let at = |l: &Lease| is_reserved_by(l, open.id);
                    if others.open[&other.0].takes[other.1].before.iter().any(at) {
                        let before = &mut others.take(other).before;
                        before.retain(|l| !at(l));
                        before.extend(take.before.iter().cloned());
                    }
                }
                continue;
            }
            change.audit.push(entry(event, now, &lease, Some(open.id)));
            if let Some(inherited) = others.inherit(&lease, open.id, &take.before) {
                change.put.push(inherited);
                continue;
            }
            before.extend(take.before.iter().filter(|l| !is_reserved(l)).cloned());
            change.drop.push(lease);
        }
        change.put.extend(self.that_fit(before, &change.drop));
        change.open = others.into_changed();
        Ok(change)
    }

    /// Which leases could be put back if others were gone. Two takes may have stood where one cooling range was,
    /// so this is asked for all of them together; and by now somebody else may have a part of it.
    fn that_fit(&mut self, wanted: Vec<Lease>, gone: &[Lease]) -> Vec<Lease> {
        let mut removed = Vec::new();
        for lease in gone {
            removed.extend(
                self.tables
                    .get_mut(&lease.instance)
                    .map(|t| t.remove(&lease.thing)),
            );
        }
        let mut fitting = Vec::new();
        for lease in wanted {
            let table = self.tables.get_mut(&lease.instance);
            if table.is_some_and(|t| t.insert(lease.clone()).is_ok()) {
                fitting.push(lease);
            }
        }
        for lease in &fitting {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                table.remove(&lease.thing);
            }
        }
        for lease in removed.into_iter().flatten() {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                put(table, lease);
            }
        }
        fitting
    }

    /// Reservations by hand whose time is over, with their leases.
    pub(super) fn plan_end(&mut self, now: Time) -> Result<Change, Error> {
        let ended = self.reservations.values().filter(|r| r.has_ended(now));
        let ended: Vec<_> = ended.cloned().collect();
        let mut change = Change::default();
        for reservation in ended {
            let (instance, thing) = reservation.key();
            let lease = self.lease_of(&instance, &thing, &reservation.holder())?;
            if let Some(lease) = lease.filter(|l| l.state == State::Held) {
                change.audit.push(entry(Event::Expired, now, &lease, None));
                change.drop.push(lease);
            }
            let forget = ReservationNote::Forget { instance, thing };
            change.reservations.push(forget);
        }
        Ok(change)
    }

    /// What goes and what comes, if the book still is what the plan saw.
    pub(super) fn plan_amend(&mut self, amendment: &Amendment, now: Time) -> Result<Change, Error> {
        let (mut removed, mut replaced, mut inserted) = (Vec::new(), Vec::new(), Vec::new());
        let mut outcome = Ok(());
        // First, so that nothing fails half way.
        for lease in amendment.drop.iter().chain(&amendment.put) {
            self.table(&lease.instance)?;
        }
        for lease in &amendment.drop {
            let table = self.table(&lease.instance)?;
            match table.get(&lease.thing) {
                Some(has) if has == *lease => removed.extend(table.remove(&lease.thing)),
                _ => outcome = outcome.and(Err(Error::Amended(lease.thing.to_string()))),
            }
        }
        for lease in &amendment.put {
            let table = self.table(&lease.instance)?;
            match table.insert(lease.clone()) {
                Ok(before) => {
                    replaced.extend(before);
                    inserted.push(lease);
                }
                Err(_) => outcome = outcome.and(Err(Error::Amended(lease.thing.to_string()))),
            }
        }
        // The tables change when it is durable, and not before.
        for lease in inserted {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                table.remove(&lease.thing);
            }
        }
        for lease in removed.iter().chain(&replaced) {
            if let Some(table) = self.tables.get_mut(&lease.instance) {
                put(table, lease.clone());
            }
        }
        outcome?;
        let freed = amendment.drop.iter().filter(|l| l.state == State::Held);
        let freed = freed.map(|l| entry(Event::Released, now, l, None));
        let taken = amendment.put.iter();
        let taken = taken.map(|l| entry(Event::Restored, now, l, None));
        let forgotten = amendment.forget.iter().map(|(cluster, id)| {
            let (cluster, id) = (cluster.clone(), id.clone());
            PackageNote::Forget { cluster, id }
        });
        let noted = amendment.note.iter().cloned().map(PackageNote::Note);
        let reservations = amendment.reservations.iter().cloned();
        Ok(Change {
            audit: freed.chain(taken).collect(),
            // What is replaced has the same key and the same holder: the put is enough.
            drop: amendment.drop.clone(),
            put: amendment.put.clone(),
            packages: forgotten.chain(noted).collect(),
            reservations: reservations.map(ReservationNote::Note).collect(),
            ..Change::default()
        })
    }

    /// Leases put back as they are. The tables change at once, so that leases meet the ones before them too.
    pub(super) fn plan_restore(
        &mut self,
        leases: &[Lease],
        packages: &[PackageRecord],
        now: Time,
    ) -> Result<(Change, Restored), Error> {
        let (mut change, mut restored) = (Change::default(), Restored::default());
        change.apart = true;
        for wanted in leases {
            let mut lease = wanted.clone();
            if let State::Reserved { until, .. } = lease.state {
                lease.state = State::Cooling { until };
            }
            let table = self.table(&lease.instance)?;
            match make_room(table, &lease.thing, lease.subnet, &lease.holder, now) {
                Err(has) => restored.conflicts.push(Conflict {
                    wanted: wanted.clone(),
                    has: *has,
                }),
                Ok(evicted) => {
                    change.drop.extend(evicted);
                    let has = table.get(&lease.thing);
                    let weaker = has
                        .as_ref()
                        .is_some_and(|has| has.state == State::Held || lease.state != State::Held);
                    if weaker {
                        restored.unchanged += 1;
                        continue;
                    }
                    restored.added += 1;
                    change.audit.push(entry(Event::Restored, now, &lease, None));
                    put(table, lease.clone());
                    change.put.push(lease);
                }
            }
        }
        for record in packages {
            let has = self.keep.package(&record.cluster, &record.id)?;
            let same = |has: PackageRecord| {
                PackageRecord {
                    at: record.at,
                    ..has
                } == *record
            };
            if !has.is_some_and(same) {
                change.packages.push(PackageNote::Note(record.clone()));
            }
        }
        Ok((change, restored))
    }
}
