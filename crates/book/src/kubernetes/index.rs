//! Who holds what, as far as the watch has told: a table per instance, and every object with its version.
//!
//! ```text
//!  watch ─┐                         ┌─ tables: what `candidates` looks at
//!  own    ├─► newer than known? ────┼─ by name: uid, version, record: what a conditional write needs
//!  writes ┘                         └─ by package
//! ```
//!
//! It may be behind, so nothing is decided by it alone: the server's answer to a write decides. Easy to get wrong: an event
//! can tell of a version older than what this process wrote itself, or of an object that it deleted itself.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::kinds::mooring::{IPLease, PrefixLedger};
use mooring_ipam::{InstanceKey, Table, Thing};

use super::form::{self, Record};
use super::name;
use super::wire::version;

/// An object as it was seen last.
#[derive(Clone, Debug)]
pub(super) struct Known {
    pub(super) name: String,
    pub(super) uid: String,
    pub(super) version: u64,
    pub(super) record: Record,
}

impl Known {
    /// None for an object that no store wrote: it keeps its name, and holds nothing.
    pub(super) fn of(object: &IPLease) -> Option<Self> {
        Some(Self {
            name: object.metadata.name.clone()?,
            uid: object.metadata.uid.clone()?,
            version: version(&object.metadata),
            record: form::read(object)?,
        })
    }
}

/// A ledger as it was seen last.
#[derive(Clone, Debug)]
pub(super) struct KnownLedger {
    pub(super) object: PrefixLedger,
    pub(super) version: u64,
    pub(super) records: BTreeMap<Thing, Record>,
    /// Its own entries and nothing else: what an address must not lie in.
    pub(super) table: Table,
}

impl KnownLedger {
    pub(super) fn of(object: PrefixLedger) -> Self {
        let of = &object.spec.instance;
        let instance = InstanceKey::new(&of.namespace, &of.name);
        let mut table = Table::new(instance);
        let mut records = BTreeMap::new();
        for record in object
            .spec
            .leases
            .iter()
            .filter_map(|entry| form::read_entry(of, entry))
        {
            // Two that overlap were written by hand: the first one counts.
            if table.insert(record.lease.clone()).is_ok() {
                records.insert(record.lease.thing, record);
            }
        }
        Self {
            version: version(&object.metadata),
            object,
            records,
            table,
        }
    }
}

/// Which of the two lists is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Listed {
    Leases,
    Ledgers,
}

/// What is known.
#[derive(Default)]
pub(super) struct Index {
    leases: BTreeMap<String, Known>,
    ledgers: BTreeMap<String, KnownLedger>,
    tables: BTreeMap<InstanceKey, Table>,
    /// Records that are in the way of others: one of the two is about to be withdrawn.
    aside: BTreeMap<InstanceKey, BTreeMap<Thing, Record>>,
    of_package: BTreeMap<(String, String), BTreeSet<(InstanceKey, Thing)>>,
    /// Deleted by us (uid), and by which list at the latest the watch has heard of it.
    gone: BTreeMap<String, u64>,
    lists: u64,
    /// What was known when a list began, by name.
    before: [Option<BTreeSet<String>>; 2],
    synced: [bool; 2],
}

impl Index {
    pub(super) fn is_synced(&self) -> bool {
        self.synced == [true, true]
    }

    pub(super) fn lease(&self, instance: &InstanceKey, thing: &Thing) -> Option<&Known> {
        self.leases.get(&name::of_lease(instance, thing)?)
    }

    pub(super) fn ledger(&self, instance: &InstanceKey) -> Option<&KnownLedger> {
        self.ledgers.get(&name::of_instance(instance))
    }

    /// The record of exactly this thing, wherever it is kept.
    pub(super) fn record(&self, instance: &InstanceKey, thing: &Thing) -> Option<&Record> {
        match thing {
            Thing::Addr(_) | Thing::Vlan(_) => Some(&self.lease(instance, thing)?.record),
            Thing::Block(_) | Thing::Range(_) => self.ledger(instance)?.records.get(thing),
        }
    }

    pub(super) fn records(&self) -> impl Iterator<Item = &Record> {
        let leases = self.leases.values().map(|known| &known.record);
        leases.chain(self.ledgers.values().flat_map(|l| l.records.values()))
    }

    pub(super) fn instances(&self) -> Vec<InstanceKey> {
        let used = self.tables.iter().filter(|(_, table)| !table.is_empty());
        used.map(|(instance, _)| instance.clone()).collect()
    }

    pub(super) fn of_package(&self, cluster: &str, package: &str) -> Vec<(InstanceKey, Thing)> {
        let key = (cluster.to_owned(), package.to_owned());
        let found = self.of_package.get(&key).into_iter().flatten();
        found.cloned().collect()
    }

    pub(super) fn table(&mut self, instance: &InstanceKey) -> &Table {
        let table = self.tables.entry(instance.clone());
        table.or_insert_with(|| Table::new(instance.clone()))
    }

    /// An object as the server has it: from the watch, or as the answer to a request.
    pub(super) fn learn(&mut self, known: Known) {
        let older = self.leases.get(&known.name);
        if self.gone.contains_key(&known.uid) || older.is_some_and(|o| o.version >= known.version) {
            return;
        }
        let (record, name) = (known.record.clone(), known.name.clone());
        if let Some(before) = self.leases.insert(name, known) {
            self.take_out(&before.record);
        }
        self.put_in(record);
    }

    /// An object that is gone, by the watch's word.
    pub(super) fn lost(&mut self, object: &IPLease) {
        let Some(uid) = &object.metadata.uid else {
            return;
        };
        self.gone.remove(uid);
        let name = object.metadata.name.clone().unwrap_or_default();
        if self
            .leases
            .get(&name)
            .is_some_and(|known| known.uid == *uid)
        {
            self.remove(&name);
        }
    }

    /// An object that this process deleted, or found gone.
    pub(super) fn forget(&mut self, name: &str, uid: &str) {
        self.gone.insert(uid.to_owned(), self.lists);
        if self.leases.get(name).is_some_and(|known| known.uid == uid) {
            self.remove(name);
        }
    }

    /// There is none under this name, whatever was known.
    pub(super) fn absent(&mut self, name: &str) {
        if let Some(uid) = self.leases.get(name).map(|known| known.uid.clone()) {
            self.forget(name, &uid);
        }
    }

    fn remove(&mut self, name: &str) {
        if let Some(known) = self.leases.remove(name) {
            self.take_out(&known.record);
            self.bring_back(&known.record.lease.instance);
        }
    }

    /// A ledger as the server has it.
    pub(super) fn learn_ledger(&mut self, ledger: KnownLedger) {
        let name = ledger.object.metadata.name.clone().unwrap_or_default();
        let older = self.ledgers.get(&name);
        if older.is_some_and(|o| o.version >= ledger.version) {
            return;
        }
        let instance = ledger.table.instance().clone();
        let records: Vec<Record> = ledger.records.values().cloned().collect();
        if let Some(before) = self.ledgers.insert(name, ledger) {
            for record in before.records.values() {
                self.take_out(record);
            }
        }
        for record in records {
            self.put_in(record);
        }
        self.bring_back(&instance);
    }

    /// A ledger that is gone. Nobody deletes one but a person.
    pub(super) fn lost_ledger(&mut self, name: &str) {
        if let Some(before) = self.ledgers.remove(name) {
            for record in before.records.values() {
                self.take_out(record);
            }
            self.bring_back(before.table.instance());
        }
    }

    /// The version of every lease that is known, by name.
    pub(super) fn versions(&self) -> BTreeMap<String, u64> {
        let leases = self.leases.iter();
        leases
            .map(|(name, known)| (name.clone(), known.version))
            .collect()
    }

    /// Of what was known before, only this is there still. What changed since is younger than that.
    pub(super) fn only(&mut self, before: &BTreeMap<String, u64>, there: &BTreeSet<String>) {
        for (name, version) in before.iter().filter(|(name, _)| !there.contains(*name)) {
            if self
                .leases
                .get(name)
                .is_some_and(|known| known.version == *version)
            {
                self.remove(name);
            }
        }
    }

    /// A list begins.
    pub(super) fn list_begins(&mut self, listed: Listed) {
        self.lists += 1;
        let names = match listed {
            Listed::Leases => self.leases.keys().cloned().collect(),
            Listed::Ledgers => self.ledgers.keys().cloned().collect(),
        };
        self.before[listed as usize] = Some(names);
    }

    /// It has this one.
    pub(super) fn listed(&mut self, listed: Listed, name: &str) {
        if let Some(before) = &mut self.before[listed as usize] {
            before.remove(name);
        }
    }

    /// It is complete: what was known when it began and is not on it is gone.
    pub(super) fn list_ends(&mut self, listed: Listed) {
        for name in self.before[listed as usize].take().unwrap_or_default() {
            match listed {
                Listed::Leases => self.remove(&name),
                Listed::Ledgers => self.lost_ledger(&name),
            }
        }
        let lists = self.lists;
        if listed == Listed::Leases {
            self.gone.retain(|_, at| *at >= lists);
        }
        self.synced[listed as usize] = true;
    }

    fn take_out(&mut self, record: &Record) {
        let lease = &record.lease;
        let aside = self.aside.get_mut(&lease.instance);
        let was_aside = aside.is_some_and(|aside| aside.remove(&lease.thing).is_some());
        if !was_aside && let Some(table) = self.tables.get_mut(&lease.instance) {
            table.remove(&lease.thing);
        }
        let owner = (lease.holder.cluster.clone(), lease.holder.package.clone());
        if let Some(things) = self.of_package.get_mut(&owner) {
            things.remove(&(lease.instance.clone(), lease.thing));
            if things.is_empty() {
                self.of_package.remove(&owner);
            }
        }
    }

    fn put_in(&mut self, record: Record) {
        let lease = &record.lease;
        let owner = (lease.holder.cluster.clone(), lease.holder.package.clone());
        let things = self.of_package.entry(owner).or_default();
        things.insert((lease.instance.clone(), lease.thing));
        self.place(record);
    }

    /// Into the table, or aside where something that goes before it is in the way.
    fn place(&mut self, record: Record) {
        let (instance, thing) = (record.lease.instance.clone(), record.lease.thing);
        loop {
            let table = self.tables.entry(instance.clone());
            let table = table.or_insert_with(|| Table::new(instance.clone()));
            let Err(other) = table.insert(record.lease.clone()) else {
                return;
            };
            let other = self.record(&instance, &other.thing).cloned();
            let yields = other.filter(|other| goes_before(&record, other));
            let aside = self.aside.entry(instance.clone()).or_default();
            let Some(other) = yields else {
                aside.insert(thing, record);
                return;
            };
            if let Some(table) = self.tables.get_mut(&instance) {
                table.remove(&other.lease.thing);
            }
            aside.insert(other.lease.thing, other);
        }
    }

    /// Something went: what was aside may fit now.
    fn bring_back(&mut self, instance: &InstanceKey) {
        for record in self
            .aside
            .remove(instance)
            .unwrap_or_default()
            .into_values()
        {
            self.place(record);
        }
    }

    /// Whether this thing counts, and is not merely written somewhere.
    pub(super) fn counts(&self, instance: &InstanceKey, thing: &Thing) -> bool {
        let aside = self.aside.get(instance);
        !aside.is_some_and(|aside| aside.contains_key(thing))
    }
}

/// Which of two that are in each other's way counts. A prefix that was checked found no address in it, so an address in
/// it came later and is void; one that is not checked yet is withdrawn when it finds an address.
fn goes_before(one: &Record, other: &Record) -> bool {
    let wide = |record: &Record| matches!(record.lease.thing, Thing::Block(_) | Thing::Range(_));
    match (wide(one), wide(other)) {
        (true, false) => one.checked,
        (false, true) => !other.checked,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
