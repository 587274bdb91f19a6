//! Who has what: 44 bytes per lease (48 for an IPv6 address), found by address and by holder.
//!
//! A lease is kept as numbers: five names, its place (subnet and gateway), its time. The upper half of an IPv6
//! address is that of its subnet. What few leases have (a width, a transaction, an end, a time past 2106,
//! another upper half) stands in ordered maps beside them. Two hash
//! chains run through the entries; together with their heads that is at most 55 bytes per IPv4 address,
//! names apart. Both finds are O(1), inserting is O(1) amortised.
//!
//! Easy to get wrong: a slot is reused after a removal, so nobody outside this file keeps one longer
//! than the lease lives.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;

use mooring_api::{Cidr, Family, Time};

use super::names::{Names, chain, chains, grow, halves, mix};
use crate::{Grant, Holder, InstanceKey, Lease, State, Thing, TxnId};

const NONE: u32 = u32::MAX;
/// Entries per page: pages never move, so growing copies nothing and wastes at most one page.
const PAGE: usize = 4096;

/// Where in the slab.
pub(super) type Slot = u32;

type Place = (Option<Cidr>, Option<IpAddr>);

#[derive(Clone, Copy, Debug)]
struct Entry {
    /// The lowest 32 bits of the address.
    low: u32,
    /// Cluster, package, namespace, workload, interface.
    names: [u32; 5],
    place: u32,
    since: u32,
    next_addr: u32,
    next_holder: u32,
    ordinal: u16,
    flags: u8,
}

#[derive(Clone, Debug, Default)]
struct Page {
    entries: Vec<Entry>,
    /// The upper 32 bits of the lower half of each address; empty while there are only IPv4 ones.
    high: Vec<u32>,
}

const LIVE: u8 = 1;
const ADDR: u8 = 2;
const ADDR_V6: u8 = 4;
const HOLDER_V6: u8 = 8;
/// The address has another upper half than its subnet.
const FAR: u8 = 16;

/// A holder in numbers; equal numbers are equal holders.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct HolderKey {
    names: [u32; 5],
    ordinal: u16,
    v6: bool,
}

impl HolderKey {
    fn hash(&self) -> u64 {
        let [cluster, package, namespace, workload, interface] = self.names.map(u64::from);
        let tail = u64::from(self.ordinal) << 1 | u64::from(self.v6);
        mix([
            cluster << 32 | package,
            namespace << 32 | workload,
            interface << 32 | tail,
        ])
    }
}

/// The upper half, and the two parts of the lower one.
fn split(number: u128) -> (u64, [u32; 2]) {
    let [low, high] = halves(number);
    let part = |n: u64| u32::try_from(n & u64::from(u32::MAX)).expect("32 bits fit");
    (high, [part(low >> 32), part(low)])
}

fn join(upper: u64, [high, low]: [u32; 2]) -> u128 {
    u128::from(upper) << 64 | u128::from(high) << 32 | u128::from(low)
}

/// The upper half of the addresses of a subnet, as far as it is that of the first.
fn upper_half(subnet: Option<Cidr>) -> Option<u64> {
    Some(split(Family::number(subnet?.network())).0)
}

impl Entry {
    fn holder(&self) -> HolderKey {
        HolderKey {
            names: self.names,
            ordinal: self.ordinal,
            v6: self.flags & HOLDER_V6 != 0,
        }
    }
}

/// The chain of an address. Sixteen neighbours have neighbouring heads, a line of the processor's cache:
/// whoever takes addresses in order stays in it.
fn addr_chain(addr: IpAddr, chains: usize) -> usize {
    let number = Family::number(addr);
    let near = usize::try_from(number & 15).expect("four bits fit");
    chain(mix(halves(number >> 4)), chains) & !15 | near
}

/// The leases of one instance.
#[derive(Clone, Debug, Default)]
pub(super) struct Owners {
    names: Names,
    /// Names of the latest lease: the next one often has some of them.
    recent: [u32; 5],
    places: Vec<Place>,
    place_numbers: BTreeMap<Place, u32>,
    pages: Vec<Page>,
    /// One past the highest slot ever used.
    top: u32,
    vacant: Vec<Slot>,
    by_addr: Vec<u32>,
    by_holder: Vec<u32>,
    /// What is no address.
    wide: BTreeMap<Slot, Thing>,
    reserved: BTreeMap<Slot, (TxnId, Time)>,
    cooling: BTreeMap<Slot, Time>,
    ends: BTreeSet<(Time, Slot)>,
    late: BTreeMap<Slot, u64>,
    far: BTreeMap<Slot, u64>,
    len: usize,
}

impl Owners {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    fn entry(&self, slot: Slot) -> &Entry {
        &self.pages[slot as usize / PAGE].entries[slot as usize % PAGE]
    }

    fn entry_mut(&mut self, slot: Slot) -> &mut Entry {
        &mut self.pages[slot as usize / PAGE].entries[slot as usize % PAGE]
    }

    /// The address of a slot that is one.
    fn addr(&self, slot: Slot) -> Option<IpAddr> {
        let Entry {
            low, flags, place, ..
        } = *self.entry(slot);
        if flags & ADDR == 0 {
            return None;
        }
        if flags & ADDR_V6 == 0 {
            return Some(Family::V4.addr(low.into()));
        }
        let high = self.pages[slot as usize / PAGE].high[slot as usize % PAGE];
        let upper = if flags & FAR == 0 {
            upper_half(self.places[place as usize].0)
                .expect("an address that is not far has a subnet")
        } else {
            self.far[&slot]
        };
        Some(Family::V6.addr(join(upper, [high, low])))
    }

    pub(super) fn thing(&self, slot: Slot) -> Thing {
        match self.addr(slot) {
            Some(addr) => Thing::Addr(addr),
            None => self.wide[&slot],
        }
    }

    pub(super) fn subnet(&self, slot: Slot) -> Option<Cidr> {
        self.places[self.entry(slot).place as usize].0
    }

    pub(super) fn state(&self, slot: Slot) -> State {
        if let Some((txn, until)) = self.reserved.get(&slot) {
            return State::Reserved {
                txn: *txn,
                until: *until,
            };
        }
        match self.cooling.get(&slot) {
            Some(until) => State::Cooling { until: *until },
            None => State::Held,
        }
    }

    pub(super) fn lease(&self, slot: Slot, instance: &InstanceKey) -> Lease {
        let entry = self.entry(slot);
        let (subnet, gateway) = self.places[entry.place as usize];
        let since = self
            .late
            .get(&slot)
            .copied()
            .unwrap_or(u64::from(entry.since));
        Lease {
            instance: instance.clone(),
            thing: self.thing(slot),
            subnet,
            gateway,
            holder: self.holder(slot),
            state: self.state(slot),
            since: Time(since),
        }
    }

    pub(super) fn holder(&self, slot: Slot) -> Holder {
        let entry = self.entry(slot);
        let name = |i: usize| self.names.get(entry.names[i]).to_owned();
        Holder {
            cluster: name(0),
            package: name(1),
            namespace: name(2),
            workload: name(3),
            interface: name(4),
            family: if entry.flags & HOLDER_V6 == 0 {
                Family::V4
            } else {
                Family::V6
            },
            ordinal: entry.ordinal,
        }
    }

    /// Cluster and package (workload where there is none) as numbers, to count by.
    pub(super) fn group(&self, slot: Slot) -> (u32, u32) {
        let [cluster, package, _, workload, _] = self.entry(slot).names;
        let owner = if self.names.get(package).is_empty() {
            workload
        } else {
            package
        };
        (cluster, owner)
    }

    /// A group's names.
    pub(super) fn group_names(&self, group: (u32, u32)) -> (&str, &str) {
        (self.names.get(group.0), self.names.get(group.1))
    }

    /// The holder in numbers; None where one of its names stands in no lease.
    pub(super) fn key(&self, holder: &Holder) -> Option<HolderKey> {
        let find = |name: &str| self.names.find(name);
        // A new holder is known by a new workload, else by a new package: those first.
        let workload = find(&holder.workload)?;
        let package = find(&holder.package)?;
        Some(HolderKey {
            names: [
                find(&holder.cluster)?,
                package,
                find(&holder.namespace)?,
                workload,
                find(&holder.interface)?,
            ],
            ordinal: holder.ordinal,
            v6: holder.family == Family::V6,
        })
    }

    pub(super) fn is_held_by(&self, slot: Slot, key: Option<HolderKey>) -> bool {
        key == Some(self.entry(slot).holder())
    }

    pub(super) fn find_addr(&self, addr: IpAddr) -> Option<Slot> {
        if self.by_addr.is_empty() {
            return None;
        }
        let mut at = self.by_addr[addr_chain(addr, self.by_addr.len())];
        while at != NONE {
            if self.addr(at) == Some(addr) {
                return Some(at);
            }
            at = self.entry(at).next_addr;
        }
        None
    }

    /// Everything of one holder, in no particular order.
    pub(super) fn find_holder(&self, key: HolderKey) -> impl Iterator<Item = Slot> + '_ {
        let mut at = if self.by_holder.is_empty() {
            NONE
        } else {
            self.by_holder[chain(key.hash(), self.by_holder.len())]
        };
        std::iter::from_fn(move || {
            let slot = (at != NONE).then_some(at)?;
            at = self.entry(slot).next_holder;
            Some(slot)
        })
        .filter(move |slot| self.entry(*slot).holder() == key)
    }

    pub(super) fn insert(&mut self, lease: &Grant<'_>) -> Slot {
        self.forget_unused_names();
        let Holder {
            cluster,
            package,
            namespace,
            workload,
            interface,
            ..
        } = lease.holder;
        let names = [cluster, package, namespace, workload, interface];
        for (recent, name) in self.recent.iter_mut().zip(names) {
            if !self.names.is(*recent, name) {
                *recent = self.names.intern(name);
            }
        }
        let mut flags = LIVE;
        let (mut upper, mut high, mut low) = (0, 0, 0);
        if let Thing::Addr(addr) = lease.thing {
            (upper, [high, low]) = split(Family::number(addr));
            flags |= ADDR;
            if addr.is_ipv6() {
                let near = upper_half(lease.subnet) == Some(upper);
                flags |= ADDR_V6 | if near { 0 } else { FAR };
            }
        }
        if lease.holder.family == Family::V6 {
            flags |= HOLDER_V6;
        }
        let entry = Entry {
            low,
            names: self.recent,
            place: self.place((lease.subnet, lease.gateway)),
            since: u32::try_from(lease.since.0).unwrap_or(u32::MAX),
            next_addr: NONE,
            next_holder: NONE,
            ordinal: lease.holder.ordinal,
            flags,
        };
        let slot = self.put(entry, high);
        if flags & ADDR == 0 {
            self.wide.insert(slot, lease.thing);
        }
        if flags & FAR != 0 {
            self.far.insert(slot, upper);
        }
        if lease.since.0 > u64::from(u32::MAX) {
            self.late.insert(slot, lease.since.0);
        }
        self.len += 1;
        let wanted = chains(self.len, self.by_holder.len());
        if wanted > self.by_holder.len() {
            self.rehash(wanted);
        } else {
            self.link(slot);
        }
        self.set_state(slot, lease.state);
        slot
    }

    fn place(&mut self, place: Place) -> u32 {
        if let Some(number) = self.place_numbers.get(&place) {
            return *number;
        }
        let number = u32::try_from(self.places.len()).expect("fewer than 2^32 subnets");
        self.places.push(place);
        self.place_numbers.insert(place, number);
        number
    }

    fn put(&mut self, entry: Entry, high: u32) -> Slot {
        let slot = self.vacant.pop().unwrap_or(self.top);
        assert!(slot < NONE, "an instance has fewer than 2^32 leases");
        let (page, at) = (slot as usize / PAGE, slot as usize % PAGE);
        if page == self.pages.len() {
            self.pages.push(Page::default());
        }
        // The first page grows with need: most instances have few leases.
        let room = if page == 0 { 0 } else { PAGE };
        let Page {
            entries,
            high: highs,
        } = &mut self.pages[page];
        if slot == self.top {
            entries.reserve_exact(room - entries.len().min(room));
            entries.push(entry);
            self.top += 1;
        } else {
            entries[at] = entry;
        }
        if entry.flags & ADDR_V6 != 0 || !highs.is_empty() {
            highs.reserve_exact(room - highs.len().min(room));
            highs.resize(entries.len(), 0);
            highs[at] = high;
        }
        slot
    }

    fn link(&mut self, slot: Slot) {
        let at = chain(self.entry(slot).holder().hash(), self.by_holder.len());
        self.entry_mut(slot).next_holder = std::mem::replace(&mut self.by_holder[at], slot);
        if let Some(addr) = self.addr(slot) {
            let at = addr_chain(addr, self.by_addr.len());
            self.entry_mut(slot).next_addr = std::mem::replace(&mut self.by_addr[at], slot);
        }
    }

    fn rehash(&mut self, chains: usize) {
        self.by_addr = vec![NONE; chains];
        self.by_holder = vec![NONE; chains];
        for slot in 0..self.top {
            if self.entry(slot).flags & LIVE != 0 {
                self.link(slot);
            }
        }
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        (0..self.top).filter(|slot| self.entry(*slot).flags & LIVE != 0)
    }

    pub(super) fn remove(&mut self, slot: Slot) {
        let entry = *self.entry(slot);
        let at = chain(entry.holder().hash(), self.by_holder.len());
        if self.by_holder[at] == slot {
            self.by_holder[at] = entry.next_holder;
        } else {
            let mut before = self.by_holder[at];
            while self.entry(before).next_holder != slot {
                before = self.entry(before).next_holder;
            }
            self.entry_mut(before).next_holder = entry.next_holder;
        }
        if let Some(addr) = self.addr(slot) {
            let at = addr_chain(addr, self.by_addr.len());
            if self.by_addr[at] == slot {
                self.by_addr[at] = entry.next_addr;
            } else {
                let mut before = self.by_addr[at];
                while self.entry(before).next_addr != slot {
                    before = self.entry(before).next_addr;
                }
                self.entry_mut(before).next_addr = entry.next_addr;
            }
        }
        self.set_state(slot, State::Held);
        self.wide.remove(&slot);
        self.late.remove(&slot);
        self.far.remove(&slot);
        self.entry_mut(slot).flags = 0;
        grow(&mut self.vacant, 1);
        self.vacant.push(slot);
        self.len -= 1;
    }

    pub(super) fn set_state(&mut self, slot: Slot, state: State) {
        if let Some((_, until)) = self.reserved.remove(&slot) {
            self.ends.remove(&(until, slot));
        }
        if let Some(until) = self.cooling.remove(&slot) {
            self.ends.remove(&(until, slot));
        }
        match state {
            State::Held => {}
            State::Reserved { txn, until } => {
                self.reserved.insert(slot, (txn, until));
                self.ends.insert((until, slot));
            }
            State::Cooling { until } => {
                self.cooling.insert(slot, until);
                self.ends.insert((until, slot));
            }
        }
    }

    /// What ended at `now` or before, earliest first.
    pub(super) fn ended(&self, now: Time) -> impl Iterator<Item = Slot> + '_ {
        self.ends.range(..=(now, Slot::MAX)).map(|(_, slot)| *slot)
    }

    /// What is reserved or cooling.
    pub(super) fn passing(&self) -> impl Iterator<Item = Slot> + '_ {
        self.ends.iter().map(|(_, slot)| *slot)
    }

    /// Pods come and go under new names, so names would pile up. At most five per lease are in use; when
    /// there are twice as many, only those are kept. Amortised O(1) per insert.
    fn forget_unused_names(&mut self) {
        if self.names.len() <= 10 * self.len + 1024 {
            return;
        }
        let old = std::mem::take(&mut self.names);
        self.recent = [0; 5];
        for slot in self.slots().collect::<Vec<_>>() {
            let names = self
                .entry(slot)
                .names
                .map(|n| self.names.intern(old.get(n)));
            self.entry_mut(slot).names = names;
        }
        self.rehash(self.by_holder.len());
    }

    /// What does not add up, for [`crate::Table::check`].
    pub(super) fn check(&self) -> Vec<String> {
        let mut wrong = Vec::new();
        let live = self.slots().count();
        if live != self.len {
            wrong.push(format!("{live} entries are live, {} are counted", self.len));
        }
        if live + self.vacant.len() != self.top as usize {
            wrong.push(format!(
                "{} slots leaked",
                (self.top as usize).abs_diff(live + self.vacant.len())
            ));
        }
        for slot in self.slots() {
            let entry = self.entry(slot);
            if !self.find_holder(entry.holder()).any(|s| s == slot) {
                wrong.push(format!("{} is not found by its holder", self.thing(slot)));
            }
            if let Some(addr) = self.addr(slot)
                && self.find_addr(addr) != Some(slot)
            {
                wrong.push(format!("{addr} is not found by its address"));
            }
        }
        let ends: BTreeSet<(Time, Slot)> = self
            .reserved
            .iter()
            .map(|(slot, (_, until))| (*until, *slot))
            .chain(self.cooling.iter().map(|(slot, until)| (*until, *slot)))
            .collect();
        if ends != self.ends {
            wrong.push("the ends of reserved and cooling leases are out of step".to_owned());
        }
        wrong
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let pages: usize = self
            .pages
            .iter()
            .map(|page| {
                page.entries.capacity() * size_of::<Entry>()
                    + page.high.capacity() * size_of::<u32>()
                    + size_of::<Page>()
            })
            .sum();
        let heads = self.by_addr.capacity() + self.by_holder.capacity() + self.vacant.capacity();
        // B-tree entries: 11 to a node, 6 full; the widest is a Thing of 36 bytes.
        let beside = self.wide.len() * 96
            + self.reserved.len() * 56
            + (self.cooling.len() + self.ends.len() + self.late.len() + self.far.len()) * 32;
        let places = self.places.capacity() * size_of::<Place>() + self.place_numbers.len() * 120;
        pages + heads * size_of::<u32>() + beside + places + self.names.heap_bytes()
    }
}
