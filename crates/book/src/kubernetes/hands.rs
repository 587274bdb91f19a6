//! The few acts that everything here is made of: take, change and give back one thing, each decided by the server.
//!
//! ```text
//!  an address    POST its lease ─► read the ledger's version ─► a prefix lies around it? withdraw
//!  a prefix      CAS its entry into the ledger ─► list the leases ─► an address lies in it? withdraw ─► CAS: checked
//! ```
//!
//! Each writes first and reads afterwards, so of two that race at least one sees the other: they may both lose, they never
//! both win. Easy to get wrong: the reads come from the server, not from the watch, and come after the write.

use std::collections::BTreeSet;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use kube::api::ObjectMeta;
use mooring_api::Time;
use mooring_api::kinds::mooring::{IPLease, PrefixLedger, PrefixLedgerSpec};
use mooring_ipam::{InstanceKey, Lease, State, Table, Thing, TxnId};
use serde::{Deserialize, Serialize};

use super::form::{self, Record};
use super::index::{Index, Known, KnownLedger};
use super::name;
use super::trail::Trail;
use super::wire::{Page, Wire, Written};
use crate::error::Error;

/// How often a compare-and-swap is tried: with sixteen writers, one of them moves on at every round.
const ROUNDS: u32 = 64;

/// The server, and what is known of it.
pub(super) struct Hands {
    pub(super) wire: Wire,
    index: Mutex<Index>,
    changed: Condvar,
    pub(super) trail: Trail,
    /// Why the watch does not hear anything, where it does not.
    trouble: Mutex<Option<String>>,
    /// The term in which everything was read last.
    term: Mutex<u64>,
}

/// One version of a record.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mark {
    pub(super) instance: InstanceKey,
    pub(super) thing: Thing,
    pub(super) nonce: String,
}

impl Mark {
    pub(super) fn of(record: &Record) -> Self {
        Self {
            instance: record.lease.instance.clone(),
            thing: record.lease.thing,
            nonce: record.nonce.clone(),
        }
    }
}

/// What a try to take something came to.
pub(super) enum Taken {
    Won(Box<Record>),
    Lost(Box<Lease>),
}

impl Hands {
    pub(super) fn new(wire: Wire, trail: Trail) -> Self {
        Self {
            wire,
            index: Mutex::default(),
            changed: Condvar::new(),
            trail,
            trouble: Mutex::default(),
            term: Mutex::default(),
        }
    }

    pub(super) fn index(&self) -> MutexGuard<'_, Index> {
        // Nothing panics between two halves of a change.
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes what is known, and wakes who waits for it.
    pub(super) fn learn<T>(&self, change: impl FnOnce(&mut Index) -> T) -> T {
        let outcome = change(&mut self.index());
        self.changed.notify_all();
        outcome
    }

    pub(super) fn troubled(&self, why: Option<String>) {
        *self.trouble.lock().unwrap_or_else(PoisonError::into_inner) = why;
    }

    /// Waits until the watch has told everything there was, for as long as the options say. In a new term everything is
    /// read anew first: the watch may be behind what the last leader wrote, and would offer its addresses again.
    pub(super) fn synced(self: &Arc<Self>) -> Result<(), Error> {
        self.listed()?;
        let Some(term) = self.wire.options.term.as_ref().map(|term| term()) else {
            return Ok(());
        };
        // Held while it is read: whoever else asks waits for it.
        let mut known = self.term.lock().unwrap_or_else(PoisonError::into_inner);
        if *known != term {
            let by = Arc::clone(self);
            self.wire.run(async move { by.read_anew().await })?;
            *known = term;
        }
        Ok(())
    }

    /// Learns everything from the server, whatever the watch said so far.
    async fn read_anew(&self) -> Result<(), Error> {
        let before = self.index().versions();
        let mut there = BTreeSet::new();
        let learn = |page: Page<IPLease>| match page {
            Page::Again => there.clear(),
            Page::Of(leases) => {
                there.extend(leases.iter().filter_map(|o| o.metadata.name.clone()));
                let known = leases.iter().filter_map(Known::of);
                self.learn(|index| known.for_each(|known| index.learn(known)));
            }
        };
        self.wire.pages(&self.wire.leases, "", learn).await?;
        self.learn(|index| index.only(&before, &there));
        for ledger in self.wire.list(&self.wire.ledgers, "").await? {
            self.learn(|index| index.learn_ledger(KnownLedger::of(ledger)));
        }
        Ok(())
    }

    /// Waits for the first complete list of the watch.
    fn listed(&self) -> Result<(), Error> {
        let ends = Instant::now() + self.wire.options.wait;
        let mut index = self.index();
        while !index.is_synced() {
            let left = ends.saturating_duration_since(Instant::now());
            if left.is_zero() {
                drop(index);
                let trouble = self.trouble.lock().unwrap_or_else(PoisonError::into_inner);
                let why = trouble.clone();
                return Err(Error::Unreachable {
                    path: self.wire.path.clone(),
                    doing: "hear of the leases that are there".to_owned(),
                    source: why
                        .unwrap_or_else(|| "the list is not complete yet".to_owned())
                        .into(),
                });
            }
            let waited = self.changed.wait_timeout(index, left);
            index = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Ok(())
    }

    /// The lease under a name, from the server.
    pub(super) async fn fresh(
        &self,
        instance: &InstanceKey,
        thing: &Thing,
    ) -> Result<Option<Record>, Error> {
        let Some(name) = name::of_lease(instance, thing) else {
            let ledger = self.fresh_ledger(instance).await?;
            return Ok(ledger.and_then(|l| l.records.get(thing).cloned()));
        };
        Ok(self.fresh_lease(&name).await?.map(|known| known.record))
    }

    async fn fresh_lease(&self, name: &str) -> Result<Option<Known>, Error> {
        let object = self.wire.get(&self.wire.leases, name).await?;
        let Some(object) = object else {
            self.learn(|index| index.absent(name));
            return Ok(None);
        };
        let known = Known::of(&object).ok_or_else(|| {
            self.wire
                .damaged(format!("IPLease {name} is not made as its name says"))
        })?;
        self.learn(|index| index.learn(known.clone()));
        Ok(Some(known))
    }

    async fn fresh_ledger(&self, instance: &InstanceKey) -> Result<Option<KnownLedger>, Error> {
        let name = name::of_instance(instance);
        let object = self.wire.get(&self.wire.ledgers, &name).await?;
        let Some(object) = object else {
            self.learn(|index| index.lost_ledger(&name));
            return Ok(None);
        };
        let ledger = KnownLedger::of(object);
        self.learn(|index| index.learn_ledger(ledger.clone()));
        Ok(Some(ledger))
    }

    /// Takes something that nobody has, as far as is known.
    pub(super) async fn take(&self, record: Record) -> Result<Taken, Error> {
        match record.lease.thing {
            Thing::Addr(_) | Thing::Vlan(_) => self.take_one(record).await,
            Thing::Block(_) | Thing::Range(_) => self.take_wide(record).await,
        }
    }

    async fn take_one(&self, record: Record) -> Result<Taken, Error> {
        let object = form::object(&record).expect("an address and a VLAN are objects");
        let name = object.metadata.name.clone().unwrap_or_default();
        for _ in 0..ROUNDS {
            let known = match self.wire.create(&self.wire.leases, &object).await? {
                Written::Done(made) => Known::of(&made).ok_or_else(|| {
                    self.wire.damaged(format!(
                        "the server changed IPLease {name} while it was made"
                    ))
                })?,
                Written::Refused => match self.fresh_lease(&name).await? {
                    // The answer to our own request was lost.
                    Some(known) if known.record.nonce == record.nonce => known,
                    Some(known) => return Ok(Taken::Lost(Box::new(known.record.lease))),
                    // It went in the meantime.
                    None => continue,
                },
            };
            self.learn(|index| index.learn(known.clone()));
            if let Some(around) = self.around(&record.lease).await? {
                self.delete(&known).await?;
                return Ok(Taken::Lost(Box::new(around)));
            }
            return Ok(Taken::Won(Box::new(known.record)));
        }
        Err(self.busy(&name))
    }

    /// The prefix or range that keeps an address from being taken, by the server's word.
    pub(super) async fn around(&self, lease: &Lease) -> Result<Option<Lease>, Error> {
        if matches!(lease.thing, Thing::Vlan(_)) {
            return Ok(None);
        }
        let name = name::of_instance(&lease.instance);
        let version = self.wire.version_of(&self.wire.ledgers, &name).await?;
        let Some(version) = version else {
            return Ok(None);
        };
        let blocker = |table: &Table| table.blocker(&lease.thing, lease.subnet, &lease.holder);
        {
            let index = self.index();
            let known = index.ledger(&lease.instance);
            if let Some(known) = known.filter(|known| known.version >= version) {
                return Ok(blocker(&known.table));
            }
        }
        let ledger = self.fresh_ledger(&lease.instance).await?;
        Ok(ledger.and_then(|ledger| blocker(&ledger.table)))
    }

    async fn take_wide(&self, record: Record) -> Result<Taken, Error> {
        let (instance, thing) = (record.lease.instance.clone(), record.lease.thing);
        let nonce = record.nonce.clone();
        let mut lost = None;
        let mut unchecked = record.clone();
        unchecked.checked = false;
        if record.lease.state == State::Held {
            // Not held before it was looked at: should this process end in between, it has an end.
            let (txn, since) = (TxnId(0), record.lease.since);
            let until = since.after(self.wire.options.draft);
            unchecked.lease.state = State::Reserved { txn, until };
        }
        self.swap_ledger(&instance, |ledger| {
            lost = None;
            if ledger.records.get(&thing).is_some_and(|r| r.nonce == nonce) {
                return Swap::Same;
            }
            let Lease { subnet, holder, .. } = &unchecked.lease;
            let own = ledger.records.get(&thing).map(|r| r.lease.clone());
            lost = ledger.table.blocker(&thing, *subnet, holder).or(own);
            match &lost {
                Some(_) => Swap::Same,
                None => Swap::Put(Box::new(unchecked.clone())),
            }
        })
        .await?;
        if let Some(lost) = lost {
            return Ok(Taken::Lost(Box::new(lost)));
        }
        self.confirm(unchecked, record).await
    }

    /// The second half of taking a prefix or a range: looks whether an address lies in it, now that everybody who posts one
    /// sees the entry. `to` is what it becomes then.
    pub(super) async fn confirm(&self, unchecked: Record, mut to: Record) -> Result<Taken, Error> {
        let (instance, thing) = (to.lease.instance.clone(), to.lease.thing);
        if let Some(inside) = self.inside(&unchecked.lease).await? {
            self.give_up(&Mark::of(&unchecked)).await?;
            return Ok(Taken::Lost(Box::new(inside)));
        }
        to.checked = true;
        let mut ours = true;
        self.swap_ledger(&instance, |ledger| {
            let known = ledger.records.get(&thing).map(|known| &known.nonce);
            ours = known == Some(&unchecked.nonce) || known == Some(&to.nonce);
            if ours {
                Swap::Put(Box::new(to.clone()))
            } else {
                Swap::Same
            }
        })
        .await?;
        if ours {
            return Ok(Taken::Won(Box::new(to)));
        }
        // Its end came before it was checked, and somebody put it away.
        Err(self.busy(&thing.to_string()))
    }

    /// An address that keeps a prefix or a range from being taken, by the server's word.
    async fn inside(&self, lease: &Lease) -> Result<Option<Lease>, Error> {
        let labels = name::selector(&lease.instance);
        let objects = self.wire.list(&self.wire.leases, &labels).await?;
        let mut alone = Table::new(lease.instance.clone());
        let fits = alone.insert(lease.clone());
        debug_assert!(fits.is_ok(), "an empty table takes anything");
        let mut found = None;
        for known in objects.iter().filter_map(Known::of) {
            let other = &known.record.lease;
            if found.is_none()
                && alone
                    .blocker(&other.thing, other.subnet, &other.holder)
                    .is_some()
            {
                found = Some(other.clone());
            }
            self.learn(|index| index.learn(known));
        }
        Ok(found)
    }

    /// Takes an entry out again, where it is still the one that was put in.
    async fn give_up(&self, mark: &Mark) -> Result<bool, Error> {
        let (thing, mut done) = (mark.thing, true);
        self.swap_ledger(&mark.instance, |ledger| {
            let known = ledger.records.get(&thing);
            let ours = known.is_some_and(|known| known.nonce == mark.nonce);
            done = ours || known.is_none();
            if ours { Swap::Drop(thing) } else { Swap::Same }
        })
        .await?;
        Ok(done)
    }

    /// Puts a record in place of the version `was`. Gives whether it is there now; not where `was` is not there any more.
    pub(super) async fn change(&self, was: &Mark, to: &Record) -> Result<bool, Error> {
        let Some(mut object) = form::object(to) else {
            let (thing, mut done) = (to.lease.thing, false);
            self.swap_ledger(&to.lease.instance, |ledger| {
                let known = ledger.records.get(&thing).map(|known| &known.nonce);
                let ours = known == Some(&was.nonce);
                done = ours || known == Some(&to.nonce);
                if ours {
                    Swap::Put(Box::new(to.clone()))
                } else {
                    Swap::Same
                }
            })
            .await?;
            return Ok(done);
        };
        let name = object.metadata.name.clone().unwrap_or_default();
        let mut known = self
            .index()
            .lease(&to.lease.instance, &to.lease.thing)
            .cloned();
        for _ in 0..ROUNDS {
            let at = match known.take().filter(|k| k.record.nonce == was.nonce) {
                Some(at) => at,
                None => match self.fresh_lease(&name).await? {
                    Some(at) if at.record.nonce == to.nonce => return Ok(true),
                    Some(at) if at.record.nonce == was.nonce => at,
                    _ => return Ok(false),
                },
            };
            object.metadata.uid = Some(at.uid.clone());
            object.metadata.resource_version = Some(at.version.to_string());
            if let Written::Done(now) = self.wire.replace(&self.wire.leases, &object).await? {
                if let Some(known) = Known::of(&now) {
                    self.learn(|index| index.learn(known));
                }
                return Ok(true);
            }
        }
        Err(self.busy(&name))
    }

    /// Takes away the version `was`. Gives whether it is gone; not where something else is there by now.
    pub(super) async fn remove(&self, was: &Mark) -> Result<bool, Error> {
        let Mark {
            instance, thing, ..
        } = was;
        let Some(name) = name::of_lease(instance, thing) else {
            return self.give_up(was).await;
        };
        let mut known = self.index().lease(instance, thing).cloned();
        for _ in 0..ROUNDS {
            let at = match known.take().filter(|k| k.record.nonce == was.nonce) {
                Some(at) => at,
                None => match self.fresh_lease(&name).await? {
                    Some(at) if at.record.nonce == was.nonce => at,
                    Some(_) => return Ok(false),
                    None => return Ok(true),
                },
            };
            if self.delete(&at).await? {
                return Ok(true);
            }
        }
        Err(self.busy(&name))
    }

    async fn delete(&self, known: &Known) -> Result<bool, Error> {
        let Known {
            name, uid, version, ..
        } = known;
        let outcome = self
            .wire
            .delete(&self.wire.leases, name, uid, *version)
            .await?;
        let done = matches!(outcome, Written::Done(()));
        if done {
            self.learn(|index| index.forget(name, uid));
        }
        Ok(done)
    }

    /// Changes one entry of a ledger by compare-and-swap, and makes the ledger where there is none.
    async fn swap_ledger(
        &self,
        instance: &InstanceKey,
        mut decide: impl FnMut(&KnownLedger) -> Swap + Send,
    ) -> Result<(), Error> {
        let name = name::of_instance(instance);
        // What the watch has told is good enough for a first try at changing it, and for nothing else.
        let mut told = self.index().ledger(instance).cloned();
        for _ in 0..ROUNDS {
            let (known, is_fresh) = match told.take() {
                Some(known) => (Some(known), false),
                None => (self.fresh_ledger(instance).await?, true),
            };
            let is_new = known.is_none();
            let mut known = known.unwrap_or_else(|| {
                KnownLedger::of(PrefixLedger {
                    metadata: ObjectMeta {
                        name: Some(name.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: PrefixLedgerSpec {
                        instance: form::instance_ref(instance),
                        leases: Vec::new(),
                    },
                })
            });
            match decide(&known) {
                Swap::Same if is_fresh => return Ok(()),
                Swap::Same => continue,
                Swap::Put(record) => known.records.insert(record.lease.thing, *record),
                Swap::Drop(thing) => known.records.remove(&thing),
            };
            let mut object = known.object;
            object.metadata.managed_fields = None;
            object.spec.leases = known.records.values().filter_map(form::entry).collect();
            let outcome = if is_new {
                self.wire.create(&self.wire.ledgers, &object).await?
            } else {
                self.wire.replace(&self.wire.ledgers, &object).await?
            };
            if let Written::Done(now) = outcome {
                self.learn(|index| index.learn_ledger(KnownLedger::of(now)));
                return Ok(());
            }
        }
        Err(self.busy(&format!("PrefixLedger {name}")))
    }

    pub(super) fn busy(&self, what: &str) -> Error {
        Error::Unreachable {
            path: self.wire.path.clone(),
            doing: format!("change {what}"),
            source: "others change it all the time".into(),
        }
    }
}

/// What becomes of a ledger.
enum Swap {
    Same,
    Put(Box<Record>),
    Drop(Thing),
}

/// Whether a lease gives way to somebody else at `now`: it rested, and its rest is over.
pub(super) fn has_rested(lease: &Lease, now: Time) -> bool {
    matches!(lease.state, State::Cooling { until } if until <= now)
}
