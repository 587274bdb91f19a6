//! What the ledger asks of the Kubernetes store: a view to plan from, the take of one thing, a change as one act.
//!
//! Easy to get wrong: the ledger's tables are a copy. They are made anew before every act, and while a transaction is
//! being made they do not move; what changed in the meantime shows when the server refuses a write.

use std::collections::hash_map::RandomState;
use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher as _, Hasher as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use mooring_api::Time;
use mooring_ipam::{InstanceKey, Lease, State, Table, Thing, TxnId};

use super::form::{self, Record};
use super::hands::{Hands, Mark, Taken};
use super::journal::{Journal, Step, Version};
use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::keep::{About, Change, Claimed, Keep, Open, Seen};
use crate::ledger::is_reserved_by;
use crate::reservation::{Reservation, ReservationNote};
use crate::store::PackageRecord;

/// How often a transaction is tried to be reserved while others change the journal.
const ROUNDS: u32 = 32;

/// How many steps fit into one intent, whatever they are.
const PART: usize = 400;

type Key = (InstanceKey, Thing);

/// Names one write of this process.
pub(super) fn nonce() -> String {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(COUNT.fetch_add(1, Ordering::Relaxed));
    hasher.write_u32(std::process::id());
    format!("{:016x}", hasher.finish())
}

/// Where changes are kept.
pub(super) struct KubeKeep {
    hands: Arc<Hands>,
    journal: Journal,
    open: BTreeMap<TxnId, (Open, Version)>,
    /// What the transaction that is being made has written.
    posted: BTreeMap<Key, Record>,
    /// What it took away to make room.
    evicted: BTreeMap<Key, Record>,
    last: u64,
}

impl KubeKeep {
    pub(super) fn new(hands: Arc<Hands>) -> Self {
        Self {
            hands,
            journal: Journal::default(),
            open: BTreeMap::new(),
            posted: BTreeMap::new(),
            evicted: BTreeMap::new(),
            last: 0,
        }
    }

    fn run<T, F>(&self, work: impl FnOnce(Arc<Hands>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        self.hands.wire.run(work(Arc::clone(&self.hands)))
    }

    fn known(&self, instance: &InstanceKey, thing: &Thing) -> Option<Record> {
        self.hands.index().record(instance, thing).cloned()
    }

    /// Reads these from the server, some at a time.
    fn renew(&self, keys: Vec<Key>) -> Result<(), Error> {
        use futures::stream::{StreamExt as _, TryStreamExt as _};
        self.run(|hands| async move {
            let asked = futures::stream::iter(keys).map(|(instance, thing)| {
                let hands = Arc::clone(&hands);
                async move { hands.fresh(&instance, &thing).await.map(|_| ()) }
            });
            asked.buffer_unordered(16).try_collect::<()>().await
        })
    }

    fn take(&self, record: Record) -> Result<Taken, Error> {
        self.run(|hands| async move { hands.take(record).await })
    }

    fn remove(&self, record: &Record) -> Result<bool, Error> {
        let mark = Mark::of(record);
        self.run(|hands| async move { hands.remove(&mark).await })
    }

    /// The steps that a change comes to, over what is there.
    fn steps(&self, change: &Change) -> Result<Vec<Step>, Error> {
        let mut steps = Vec::new();
        let mut dropped = BTreeSet::new();
        for lease in &change.drop {
            let key = (lease.instance.clone(), lease.thing);
            let known = self.known(&lease.instance, &lease.thing);
            if let Some(known) = known.filter(|known| known.lease.holder == lease.holder) {
                steps.push(Step::Drop(Mark::of(&known)));
                dropped.insert(key);
            }
        }
        let mut notes: BTreeMap<Key, &ReservationNote> = BTreeMap::new();
        for note in &change.reservations {
            notes.insert((note.key().0.clone(), *note.key().1), note);
        }
        let noted = |record: &mut Record, note: Option<&ReservationNote>| match note {
            Some(ReservationNote::Note(reservation)) => {
                record.reservation = Some(form::note(reservation));
            }
            Some(ReservationNote::Forget { .. }) => record.reservation = None,
            None => {}
        };
        for lease in &change.put {
            let key = (lease.instance.clone(), lease.thing);
            let known = self.known(&lease.instance, &lease.thing);
            // Somebody else's stays as it is: the step will lose to it.
            let known =
                known.filter(|known| known.lease.holder == lease.holder && !dropped.contains(&key));
            if let (Some(known), State::Reserved { txn, .. }) = (&known, lease.state)
                && is_reserved_by(&known.lease, txn)
            {
                // As it was posted; its end is that of the transaction's record.
                continue;
            }
            let mut to = Record::new(lease.clone(), nonce());
            if let Some(known) = &known {
                to.reservation.clone_from(&known.reservation);
                to.claim.clone_from(&known.claim);
                to.checked = known.checked;
            }
            noted(&mut to, notes.remove(&key));
            let was = known.as_ref().map(Mark::of);
            let to = Box::new(to);
            steps.push(Step::Put { was, to });
        }
        for ((instance, thing), note) in notes {
            // A note on a lease that stays as it is.
            let Some(known) = self.known(&instance, &thing) else {
                continue;
            };
            if dropped.contains(&(instance, thing)) {
                continue;
            }
            let mut to = known.clone();
            noted(&mut to, Some(note));
            if to != known {
                to.nonce = nonce();
                let was = Some(Mark::of(&known));
                let to = Box::new(to);
                steps.push(Step::Put { was, to });
            }
        }
        for note in &change.packages {
            let (cluster, id) = (note.key().0.to_owned(), note.key().1.to_owned());
            let was = self.run(|hands| async move { hands.package_record(&cluster, &id).await })?;
            let was = was.map(|(_, version)| version);
            let note = note.clone();
            steps.push(Step::Package { was, note });
        }
        for open in &change.open {
            let was = self.open.get(&open.id).map(|(_, version)| version.clone());
            let open = open.clone();
            steps.push(Step::Open { was, open });
        }
        for txn in &change.close {
            if let Some((_, was)) = self.open.get(txn) {
                let (txn, was) = (*txn, was.clone());
                steps.push(Step::Close { txn, was });
            }
        }
        Ok(steps)
    }

    /// What a transaction counts on without having written it: leases that its holder has already.
    fn taken_over(open: &Open) -> Vec<Key> {
        let takes = open.takes.iter().filter(|take| {
            let own = |l: &&Lease| l.thing == take.thing && l.holder == take.holder;
            take.before.iter().any(|before| own(&before))
        });
        takes.map(|t| (t.instance.clone(), t.thing)).collect()
    }

    /// Whether what was taken over is still what the transaction saw; from the server.
    fn still_stands(&self, open: &Open) -> Result<bool, Error> {
        self.renew(Self::taken_over(open))?;
        let stands = |take: &crate::keep::Take| {
            let known = self.known(&take.instance, &take.thing);
            known.is_some_and(|known| known.lease.holder == take.holder)
        };
        Ok(open.takes.iter().all(stands))
    }

    fn persist_steps(&mut self, steps: Vec<Step>, committed: Option<TxnId>) -> Result<bool, Error> {
        let (journal, nonce) = (self.journal.clone(), nonce());
        let entered =
            self.run(|hands| async move { hands.enter(&journal, nonce, steps, committed).await });
        let (journal, complete) = entered?;
        self.journal = journal;
        Ok(complete)
    }

    /// The transaction that is being made becomes a reserved one.
    fn persist_draft(&mut self, change: &Change, open: &Open) -> Result<(), Error> {
        let mut left = ROUNDS;
        let complete = loop {
            // Read before the look at what was taken over: nobody can have ended that one without the journal.
            self.journal = self.run(|hands| async move { hands.journal().await })?;
            if !self.still_stands(open)? {
                return Err(self.hands.overtaken());
            }
            let steps = self.steps(change)?;
            if let [Step::Open { was: None, open }] = &steps[..] {
                let open = open.clone();
                return self.run(|hands| async move { hands.open_alone(&open).await });
            }
            match self.persist_steps(steps, None) {
                Err(Error::Overtaken { .. }) if left > 0 => left -= 1,
                outcome => break outcome?,
            }
        };
        if complete {
            return Ok(());
        }
        // Something that was taken over went at the last moment.
        let (txn, found) = (
            open.id,
            self.run(|h| async move { h.open_records().await })?,
        );
        if let Some((_, was)) = found.into_iter().find(|(o, _)| o.id == txn) {
            self.persist_steps(vec![Step::Close { txn, was }], None)?;
        }
        Err(self.hands.overtaken())
    }

    fn tell(&self, change: &Change) {
        for entry in &change.audit {
            self.hands.trail.tell(entry.clone());
        }
    }
}

impl Keep for KubeKeep {
    fn is_writable(&self) -> bool {
        true
    }

    fn ready(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn refresh(&mut self, about: About<'_>) -> Result<Option<Seen>, Error> {
        self.hands.synced()?;
        let (journal, open) = self.run(|hands| async move {
            let journal = hands.journal().await?;
            Ok::<_, Error>((journal, hands.open_records().await?))
        })?;
        self.journal = journal;
        self.open = open.into_iter().map(|o| (o.0.id, o)).collect();
        let concerned = |open: &Open| match about {
            About::Txn(txn) => open.id == txn,
            About::Expired(now) => open.until <= now,
            About::Leases(_) | About::Nothing => false,
        };
        let mut keys = match about {
            About::Leases(leases) => leases.to_vec(),
            _ => Vec::new(),
        };
        for (open, _) in self.open.values().filter(|(open, _)| concerned(open)) {
            keys.extend(open.takes.iter().map(|t| (t.instance.clone(), t.thing)));
            let releases = open.releases.iter();
            keys.extend(releases.map(|r| (r.instance.clone(), r.thing)));
        }
        self.renew(keys)?;
        let reservations = {
            let index = self.hands.index();
            let found = index.records().filter_map(Record::reservation);
            found.collect()
        };
        Ok(Some(Seen {
            open: self.open.values().map(|(open, _)| open.clone()).collect(),
            reservations,
        }))
    }

    fn mint(&mut self, now: Time) -> Option<TxnId> {
        // Two processes may begin in the same second.
        let mut hasher = RandomState::new().build_hasher();
        hasher.write_u32(std::process::id());
        let luck = hasher.finish() & 0x7_ffff;
        self.last = ((now.0 << 20) | luck).max(self.last + 1);
        Some(TxnId(self.last))
    }

    fn orphans(&self, now: Time) -> Vec<Lease> {
        let index = self.hands.index();
        let ended = index.records().filter(|record| match record.lease.state {
            State::Reserved { txn, until } => until <= now && !self.open.contains_key(&txn),
            State::Held | State::Cooling { .. } => false,
        });
        ended.map(|record| record.lease.clone()).collect()
    }

    fn claim(
        &mut self,
        won: &Lease,
        own: Option<&Lease>,
        evicted: &[Lease],
        now: Time,
    ) -> Result<Claimed, Error> {
        let mut gone = Vec::new();
        for lease in evicted {
            let Some(known) = self.known(&lease.instance, &lease.thing) else {
                continue;
            };
            if !(known.lease == *lease && self.remove(&known)?) {
                for record in gone {
                    self.take(record)?;
                }
                let now = self.known(&lease.instance, &lease.thing);
                let stays = now.map_or_else(|| lease.clone(), |record| record.lease);
                return Ok(Claimed::Lost(Box::new(stays)));
            }
            gone.push(known);
        }
        let taken = if let Some(own) = own {
            // A process that ended before it had looked at the addresses left the look to us.
            let known = self.known(&own.instance, &own.thing);
            match known.filter(|known| !known.checked) {
                Some(known) => {
                    let to = known.clone();
                    match self.run(|hands| async move { hands.confirm(known, to).await })? {
                        Taken::Won(_) => None,
                        lost @ Taken::Lost(_) => Some(lost),
                    }
                }
                None => None,
            }
        } else {
            let mut lease = won.clone();
            if let State::Reserved { until, .. } = &mut lease.state {
                *until = now.after(self.hands.wire.options.draft);
            }
            Some(self.take(Record::new(lease, nonce()))?)
        };
        let key = |lease: &Lease| (lease.instance.clone(), lease.thing);
        match taken {
            Some(Taken::Lost(lease)) => {
                for record in gone {
                    self.take(record)?;
                }
                return Ok(Claimed::Lost(lease));
            }
            Some(Taken::Won(record)) => {
                self.posted.insert(key(&record.lease), *record);
            }
            None => {}
        }
        let gone = gone.into_iter().map(|record| (key(&record.lease), record));
        self.evicted.extend(gone);
        Ok(Claimed::Won)
    }

    fn unclaim(&mut self, instance: &InstanceKey, thing: &Thing) {
        if let Some(record) = self.posted.remove(&(instance.clone(), *thing)) {
            // Best effort: what stays has an end.
            let _ = self.remove(&record);
        }
    }

    fn put_back(&mut self, lease: &Lease) {
        let key = (lease.instance.clone(), lease.thing);
        if let Some(mut record) = self.evicted.remove(&key) {
            record.nonce = nonce();
            // Best effort: somebody may have taken it, and its rest was over.
            let _ = self.take(record);
        }
    }

    fn draft_ended(&mut self) {
        self.posted.clear();
        self.evicted.clear();
    }

    fn persist(&mut self, change: &Change) -> Result<(), Error> {
        let draft = change
            .open
            .iter()
            .find(|open| !self.open.contains_key(&open.id));
        if let Some(open) = draft {
            self.persist_draft(change, open)?;
        } else {
            let steps = self.steps(change)?;
            let committed = change.committed.map(|(txn, _)| txn);
            if change.apart {
                for part in steps.chunks(PART) {
                    self.persist_steps(part.to_vec(), None)?;
                }
            } else if !steps.is_empty() || committed.is_some() {
                self.persist_steps(steps, committed)?;
            }
        }
        self.tell(change);
        Ok(())
    }

    fn table(&self, instance: &InstanceKey) -> Result<Option<Table>, Error> {
        let mut table = self.hands.index().table(instance).clone();
        for (open, _) in self.open.values() {
            let (txn, until) = (open.id, open.until);
            let takes = open.takes.iter().filter(|t| t.instance == *instance);
            for take in takes {
                let lease = table.get(&take.thing);
                if lease.is_some_and(|l| is_reserved_by(&l, txn)) {
                    table.set_state(&take.thing, State::Reserved { txn, until });
                }
            }
        }
        Ok(Some(table))
    }

    fn load(&self, _: &InstanceKey) -> Result<Vec<Lease>, Error> {
        Ok(Vec::new())
    }

    fn instances(&self) -> Result<Vec<InstanceKey>, Error> {
        Ok(self.hands.index().instances())
    }

    fn of_package(&self, cluster: &str, package: &str) -> Result<Vec<Key>, Error> {
        Ok(self.hands.index().of_package(cluster, package))
    }

    fn open(&self) -> Result<(Vec<Open>, u64), Error> {
        // Nothing is asked before somebody asks us.
        Ok((Vec::new(), 0))
    }

    fn was_committed(&self, txn: TxnId) -> Result<bool, Error> {
        Ok(self.journal.was_committed(txn))
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        let (cluster, id) = (cluster.to_owned(), id.to_owned());
        let found = self.run(|hands| async move { hands.package_record(&cluster, &id).await });
        Ok(found?.map(|(record, _)| record))
    }

    fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        let mut all = self.run(|hands| async move { hands.package_records().await })?;
        all.sort_by(|a, b| (&a.cluster, &a.id).cmp(&(&b.cluster, &b.id)));
        Ok(all)
    }

    fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        Ok(Vec::new())
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        Ok(self.hands.trail.read(filter, limit))
    }

    fn damaged(&self, why: String) -> Error {
        self.hands.wire.damaged(why)
    }
}
