//! What is taken in one instance: who has it, and where is room.
//!
//! The memory store keeps one [`Table`] per instance, the file store loads one, a watch feeds one; all ask
//! it the same questions. `insert` and `remove` of an address are O(1) in the owners and O(levels) in the
//! free-space index (`bits.rs`), `get` and `held_by` O(1), `covering` O(lengths of blocks in use).
//!
//! ```text
//!  addresses, ranges   never overlap each other
//!  blocks              never overlap, except that what was taken *from* a subnet inside a block lies in it:
//!                      10.0.0.0/8 ─ block 10.1.0.0/24 ─ subnet 10.1.0.0/24 ─ address 10.1.0.7
//! ```
//!
//! Easy to get wrong: a lease that has ended (a cool-down or a reservation whose time is over) stays until
//! [`Table::expire`] is called; [`crate::candidates`] already treats it as free.

mod bits;
mod names;
mod owners;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, Time, VlanId};

pub(crate) use bits::Bits;
use owners::{Owners, Slot};

use crate::{Grant, Holder, InstanceKey, Lease, State, Thing};

/// Everything that is taken in one instance.
#[derive(Clone, Debug)]
pub struct Table {
    instance: InstanceKey,
    owners: Owners,
    /// Addresses and ranges.
    v4: Bits,
    v6: Bits,
    blocks: BTreeMap<Cidr, Slot>,
    /// How many blocks there are of each length.
    lengths: BTreeMap<(Family, u8), u32>,
    /// Blocks by the subnet they were taken from: the free-space index for blocks.
    carved: BTreeMap<Cidr, Bits>,
    ranges: BTreeMap<AddrRange, Slot>,
    vlans: BTreeMap<VlanId, Slot>,
}

/// How much memory a table uses, estimated from the sizes of its parts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeapBytes {
    /// The free-space index.
    pub free_space: usize,
    /// Who holds what, and its indexes.
    pub owners: usize,
}

impl Table {
    /// Nothing is taken.
    pub fn new(instance: InstanceKey) -> Self {
        Self {
            instance,
            owners: Owners::default(),
            v4: Bits::default(),
            v6: Bits::default(),
            blocks: BTreeMap::new(),
            lengths: BTreeMap::new(),
            carved: BTreeMap::new(),
            ranges: BTreeMap::new(),
            vlans: BTreeMap::new(),
        }
    }

    /// Of which instance.
    pub fn instance(&self) -> &InstanceKey {
        &self.instance
    }

    /// How many leases.
    pub fn len(&self) -> usize {
        self.owners.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Puts a lease in. What the same holder has of exactly the same thing is replaced and given back (a
    /// reservation that becomes held, a cooling lease that is taken over); somebody else's lease that is
    /// in the way is the error.
    ///
    /// The lease's instance is not looked at: a table is one instance.
    pub fn insert(&mut self, lease: Lease) -> Result<Option<Lease>, Box<Lease>> {
        self.grant(&Grant::from(&lease))
    }

    /// The same without a lease of one's own: the table keeps names, not the holder it is shown.
    pub fn grant(&mut self, lease: &Grant<'_>) -> Result<Option<Lease>, Box<Lease>> {
        let mut before = None;
        if !self.is_clear(&lease.thing) {
            if let Some(blocker) = self.blocker(&lease.thing, lease.subnet, lease.holder) {
                return Err(Box::new(blocker));
            }
            before = self.remove(&lease.thing);
        }
        let slot = self.owners.insert(lease);
        match lease.thing {
            Thing::Addr(_) => {}
            Thing::Block(block) => {
                self.blocks.insert(block, slot);
                *self
                    .lengths
                    .entry((block.family(), block.prefix_len()))
                    .or_default() += 1;
            }
            Thing::Range(range) => {
                self.ranges.insert(range, slot);
            }
            Thing::Vlan(vlan) => {
                self.vlans.insert(vlan, slot);
            }
        }
        self.index(&lease.thing, lease.subnet, true);
        Ok(before)
    }

    /// Whether the free-space index alone says that nothing is in the way: so with nearly every new address.
    fn is_clear(&self, thing: &Thing) -> bool {
        let Thing::Addr(addr) = thing else {
            return false;
        };
        let bits = self.bits(Family::of(*addr));
        self.blocks.is_empty() && !bits.contains(Family::number(*addr))
    }

    /// Takes a lease out. Absent is None.
    pub fn remove(&mut self, thing: &Thing) -> Option<Lease> {
        let slot = self.slot(thing)?;
        let lease = self.owners.lease(slot, &self.instance);
        self.owners.remove(slot);
        match thing {
            Thing::Addr(_) => {}
            Thing::Block(block) => {
                self.blocks.remove(block);
                let key = (block.family(), block.prefix_len());
                if let Some(count) = self.lengths.get_mut(&key) {
                    *count -= 1;
                    if *count == 0 {
                        self.lengths.remove(&key);
                    }
                }
            }
            Thing::Range(range) => {
                self.ranges.remove(range);
            }
            Thing::Vlan(vlan) => {
                self.vlans.remove(vlan);
            }
        }
        self.index(thing, lease.subnet, false);
        Some(lease)
    }

    /// Marks or frees the addresses of a thing in the free-space index.
    fn index(&mut self, thing: &Thing, subnet: Option<Cidr>, taken: bool) {
        let Some(range) = thing.range() else { return };
        let (first, last) = (Family::number(range.first()), Family::number(range.last()));
        let bits = match (thing, range.family()) {
            (Thing::Block(block), _) => self.carved.entry(subnet.unwrap_or(*block)).or_default(),
            (_, Family::V4) => &mut self.v4,
            (_, Family::V6) => &mut self.v6,
        };
        if taken {
            bits.fill(first, last);
        } else {
            bits.clear(first, last);
            if let Thing::Block(block) = thing
                && bits.is_empty()
            {
                self.carved.remove(&subnet.unwrap_or(*block));
            }
        }
    }

    /// Changes where a lease is in its life. Absent is None; else the state before.
    pub fn set_state(&mut self, thing: &Thing, state: State) -> Option<State> {
        let slot = self.slot(thing)?;
        let before = self.owners.state(slot);
        self.owners.set_state(slot, state);
        Some(before)
    }

    /// The lease of exactly this thing.
    pub fn get(&self, thing: &Thing) -> Option<Lease> {
        self.slot(thing).map(|slot| self.lease(slot))
    }

    /// Everything of this holder, ordered by thing.
    pub fn held_by(&self, holder: &Holder) -> Vec<Lease> {
        let Some(key) = self.owners.key(holder) else {
            return Vec::new();
        };
        let found = self.owners.find_holder(key).map(|slot| self.lease(slot));
        let mut leases: Vec<Lease> = found.collect();
        leases.sort_by_key(|lease| lease.thing);
        leases
    }

    /// The narrowest lease that covers an address: the address itself, a range, else the smallest block.
    pub fn covering(&self, addr: IpAddr) -> Option<Lease> {
        self.owners
            .find_addr(addr)
            .or_else(|| self.range_at(addr))
            .or_else(|| self.blocks_at(addr).next_back())
            .map(|slot| self.lease(slot))
    }

    /// The lease of somebody else that keeps `holder` from taking `thing` out of `subnet`.
    pub fn blocker(&self, thing: &Thing, subnet: Option<Cidr>, holder: &Holder) -> Option<Lease> {
        let key = self.owners.key(holder);
        // Its own lease of the same thing is taken over; any other overlap is in the way, whoever's it is.
        self.in_the_way(thing, subnet)
            .find(|slot| {
                !(self.owners.is_held_by(*slot, key) && self.owners.thing(*slot) == *thing)
            })
            .map(|slot| self.lease(slot))
    }

    /// The same, for a table that may still have leases which ended by `now`.
    pub(crate) fn blocker_at(
        &self,
        thing: &Thing,
        subnet: Option<Cidr>,
        holder: &Holder,
        now: Time,
    ) -> Option<Lease> {
        let key = self.owners.key(holder);
        self.in_the_way(thing, subnet)
            .filter(|slot| self.owners.state(*slot).is_live(now))
            .find(|slot| {
                !(self.owners.is_held_by(*slot, key) && self.owners.thing(*slot) == *thing)
            })
            .map(|slot| self.lease(slot))
    }

    /// The set of taken addresses, where it is all that keeps an address from being taken at `now`.
    pub(crate) fn only_obstacle(&self, family: Family, now: Time) -> Option<&Bits> {
        let alone = self.carved.is_empty() && self.owners.ended(now).next().is_none();
        alone.then(|| self.bits(family))
    }

    /// What keeps things from being taken out of `subnet`: sets of numbers that are taken at `now`.
    pub(crate) fn obstacles(&self, subnet: Cidr, now: Time) -> Vec<Cow<'_, Bits>> {
        let family = subnet.family();
        let around = self.carved_around(subnet);
        let carved = around.iter().map(|(_, bits)| *bits);
        let sets = [self.bits(family)].into_iter().chain(carved);
        let mut sets: Vec<_> = sets.map(Cow::Borrowed).collect();
        for slot in self.owners.ended(now) {
            let thing = self.owners.thing(slot);
            let Some(range) = thing.range().filter(|r| r.family() == family) else {
                continue;
            };
            let at = match thing {
                Thing::Block(block) => {
                    let from = self.owners.subnet(slot).unwrap_or(block);
                    let at = around.iter().position(|(cidr, _)| *cidr == from);
                    at.map(|at| at + 1)
                }
                _ => Some(0),
            };
            // Copied only where a store did not expire first.
            if let Some(at) = at {
                let (first, last) = (Family::number(range.first()), Family::number(range.last()));
                sets[at].to_mut().clear(first, last);
            }
        }
        sets
    }

    /// Sets of blocks that matter inside `subnet`: cut from it, from a part of it, or from what it is a
    /// part of, unless a block of that set holds the whole subnet and so made room for it.
    fn carved_around(&self, subnet: Cidr) -> Vec<(Cidr, &Bits)> {
        if self.carved.is_empty() {
            return Vec::new();
        }
        let made_room = |from: Cidr| {
            self.blocks_at(subnet.network()).any(|slot| {
                let Thing::Block(block) = self.owners.thing(slot) else {
                    return false;
                };
                block.covers(&subnet) && self.owners.subnet(slot).unwrap_or(block) == from
            })
        };
        let wider = (0..subnet.prefix_len())
            .map(|len| Cidr::containing(subnet.network(), len))
            .filter(|from| !made_room(*from))
            .filter_map(|from| self.carved.get(&from).map(|bits| (from, bits)));
        let inside = self
            .carved
            .range(subnet..)
            .take_while(|(from, _)| subnet.covers(from))
            .map(|(from, bits)| (*from, bits));
        wider.chain(inside).collect()
    }

    /// VLANs that are taken at `now`.
    pub(crate) fn has_vlan(&self, vlan: VlanId, now: Time) -> bool {
        let slot = self.vlans.get(&vlan);
        slot.is_some_and(|slot| self.owners.state(*slot).is_live(now))
    }

    /// How many addresses of `subnet` are reserved, and how many rest.
    pub(crate) fn passing(&self, subnet: Cidr, now: Time) -> (u128, u128) {
        let (mut reserved, mut cooling) = (0, 0);
        for slot in self.owners.passing() {
            let inside = self.owners.thing(slot).range().filter(|r| {
                r.family() == subnet.family()
                    && subnet.contains(r.first())
                    && subnet.contains(r.last())
            });
            let state = self.owners.state(slot);
            let (Some(range), true) = (inside, state.is_live(now)) else {
                continue;
            };
            match state {
                State::Reserved { .. } => reserved += range.count(),
                State::Cooling { .. } => cooling += range.count(),
                State::Held => {}
            }
        }
        (reserved, cooling)
    }

    /// Who has most of `subnet`: `cluster / package` and how many addresses, most first. Looks at the first
    /// 65,536 leases only: a refusal may come often.
    pub(crate) fn top_holders(&self, subnet: Cidr, count: usize) -> Vec<(String, u128)> {
        let range = subnet.range();
        let blocks = self
            .blocks
            .range(subnet..)
            .take_while(move |(block, _)| subnet.covers(block))
            .map(|(_, slot)| *slot);
        let mut groups: BTreeMap<(&str, &str), u128> = BTreeMap::new();
        for slot in self.leaves_in(range).chain(blocks).take(1 << 16) {
            let size = self.owners.thing(slot).range().map_or(0, |r| r.count());
            let names = self.owners.group_names(self.owners.group(slot));
            *groups.entry(names).or_default() += size;
        }
        let mut groups: Vec<_> = groups.into_iter().collect();
        // Stable, so that names decide among equals.
        groups.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
        groups.truncate(count);
        groups
            .into_iter()
            .map(|((cluster, owner), n)| match (cluster, owner) {
                ("", owner) => (owner.to_owned(), n),
                (cluster, "") => (cluster.to_owned(), n),
                (cluster, owner) => (format!("{cluster} / {owner}"), n),
            })
            .collect()
    }

    /// Leases in the order of [`Thing`]: addresses, blocks, ranges, VLANs, each ascending.
    pub fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.slots().map(|slot| self.lease(slot))
    }

    /// What has ended by `now` (a cool-down, a reservation), earliest end first.
    pub fn ended(&self, now: Time) -> impl Iterator<Item = Thing> + '_ {
        self.owners.ended(now).map(|slot| self.owners.thing(slot))
    }

    /// Takes out what has ended by `now`. A store calls this when it begins a transaction.
    pub fn expire(&mut self, now: Time) -> Vec<Lease> {
        let ended: Vec<Thing> = self.ended(now).collect();
        ended
            .iter()
            .filter_map(|thing| self.remove(thing))
            .collect()
    }

    /// How much memory it uses.
    pub fn heap_bytes(&self) -> HeapBytes {
        let carved: usize = self.carved.values().map(Bits::heap_bytes).sum();
        let wide = self.blocks.len() + self.lengths.len() + self.ranges.len() + self.vlans.len();
        HeapBytes {
            free_space: self.v4.heap_bytes() + self.v6.heap_bytes() + carved,
            owners: self.owners.heap_bytes() + wide * 80,
        }
    }

    /// Whether everything adds up: no two leases in each other's way, nothing leaked, the free-space
    /// index equal to what the leases say. Each sentence is a defect. Linear; for tests and `book audit`.
    pub fn check(&self) -> Vec<String> {
        let mut wrong = self.owners.check();
        let mut rebuilt = Self::new(self.instance.clone());
        for slot in self.slots() {
            let (thing, subnet) = (self.owners.thing(slot), self.owners.subnet(slot));
            for other in self.in_the_way(&thing, subnet).filter(|s| *s != slot) {
                wrong.push(format!("{thing} overlaps {}", self.owners.thing(other)));
            }
            rebuilt.index(&thing, subnet, true);
        }
        let listed = self.slots().count();
        if listed != self.len() {
            wrong.push(format!("{listed} leases are listed, {} kept", self.len()));
        }
        let same_leaves = self.v4 == rebuilt.v4 && self.v6 == rebuilt.v6;
        if !(same_leaves && self.carved == rebuilt.carved) {
            wrong.push("the free-space index differs from the leases".to_owned());
        }
        wrong
    }

    fn lease(&self, slot: Slot) -> Lease {
        self.owners.lease(slot, &self.instance)
    }

    fn slot(&self, thing: &Thing) -> Option<Slot> {
        match thing {
            Thing::Addr(addr) => self.owners.find_addr(*addr),
            Thing::Block(block) => self.blocks.get(block).copied(),
            Thing::Range(range) => self.ranges.get(range).copied(),
            Thing::Vlan(vlan) => self.vlans.get(vlan).copied(),
        }
    }

    fn slots(&self) -> impl Iterator<Item = Slot> + '_ {
        let addrs = [Family::V4, Family::V6]
            .into_iter()
            .flat_map(|family| self.addrs_between(family, 0, u128::MAX));
        addrs
            .chain(self.blocks.values().copied())
            .chain(self.ranges.values().copied())
            .chain(self.vlans.values().copied())
    }

    /// Single addresses in `first..=last`, ascending.
    fn addrs_between(
        &self,
        family: Family,
        first: u128,
        last: u128,
    ) -> impl Iterator<Item = Slot> + '_ {
        let bits = self.bits(family);
        let mut from = Some(first);
        std::iter::from_fn(move || {
            loop {
                let at = bits.next_taken(from?).filter(|at| *at <= last)?;
                let addr = family.addr(at);
                if let Some(slot) = self.owners.find_addr(addr) {
                    from = at.checked_add(1);
                    return Some(slot);
                }
                // Not an address: it is inside a range, so go on behind it.
                let end = self
                    .range_covering(addr)
                    .map_or(at, |range| Family::number(range.last()));
                from = end.checked_add(1);
            }
        })
    }

    /// The free-space index for addresses and ranges.
    pub(crate) fn bits(&self, family: Family) -> &Bits {
        match family {
            Family::V4 => &self.v4,
            Family::V6 => &self.v6,
        }
    }

    fn range_covering(&self, addr: IpAddr) -> Option<AddrRange> {
        let top = AddrRange::new(addr, Family::of(addr).addr(u128::MAX)).ok()?;
        let (range, _) = self.ranges.range(..=top).next_back()?;
        range.contains(addr).then_some(*range)
    }

    fn range_at(&self, addr: IpAddr) -> Option<Slot> {
        self.range_covering(addr).map(|range| self.ranges[&range])
    }

    /// Blocks that contain an address, widest first.
    fn blocks_at(&self, addr: IpAddr) -> impl DoubleEndedIterator<Item = Slot> + '_ {
        let family = Family::of(addr);
        self.lengths
            .range((family, 0)..=(family, u8::MAX))
            .filter_map(move |((_, len), _)| {
                self.blocks.get(&Cidr::containing(addr, *len)).copied()
            })
    }

    /// Every lease that shares an address with `thing` and may not, whoever holds it.
    fn in_the_way(&self, thing: &Thing, subnet: Option<Cidr>) -> impl Iterator<Item = Slot> + '_ {
        let vlan = match thing {
            Thing::Vlan(vlan) => self.vlans.get(vlan).copied(),
            _ => None,
        };
        let thing = *thing;
        let range = thing.range();
        let leaves = range.into_iter().flat_map(|r| self.leaves_in(r));
        let around = range.into_iter().flat_map(|r| self.blocks_at(r.first()));
        let inside = range.into_iter().flat_map(|r| self.blocks_behind(r));
        let wide = around
            .chain(inside)
            .filter(move |slot| !self.lies_in_block(&thing, subnet, *slot));
        let narrow = leaves.filter(move |slot| !self.block_is_around(&thing, subnet, *slot));
        vlan.into_iter().chain(narrow).chain(wide)
    }

    /// Addresses and ranges that overlap `range`.
    fn leaves_in(&self, range: AddrRange) -> impl Iterator<Item = Slot> + '_ {
        let (first, last) = (Family::number(range.first()), Family::number(range.last()));
        let around = self.range_at(range.first());
        let behind = self
            .ranges
            .range(AddrRange::single(range.first())..)
            .skip_while(move |(r, _)| r.first() == range.first())
            .take_while(move |(r, _)| r.first() <= range.last() && r.overlaps(&range))
            .map(|(_, slot)| *slot);
        let addrs = self.addrs_between(range.family(), first, last);
        around.into_iter().chain(behind).chain(addrs)
    }

    /// Blocks that begin inside `range`, but not at its first address.
    fn blocks_behind(&self, range: AddrRange) -> impl Iterator<Item = Slot> + '_ {
        self.blocks
            .range(Cidr::containing(range.first(), u8::MAX)..)
            .skip_while(move |(block, _)| block.network() == range.first())
            .take_while(move |(block, _)| block.network() <= range.last())
            .filter(move |(block, _)| block.family() == range.family())
            .map(|(_, slot)| *slot)
    }

    /// Whether `thing`, taken from `subnet`, may lie in the block of `slot`: that block was handed out to
    /// be (or to hold) the subnet. Two blocks nest either way round.
    fn lies_in_block(&self, thing: &Thing, subnet: Option<Cidr>, slot: Slot) -> bool {
        let Thing::Block(block) = self.owners.thing(slot) else {
            return false;
        };
        let from = self.owners.subnet(slot);
        let under = |inner: Option<Cidr>, outer: Cidr, outer_from: Option<Cidr>| {
            let outer_from = outer_from.unwrap_or(outer);
            inner.is_some_and(|inner| outer.covers(&inner) && inner != outer_from)
        };
        match thing {
            Thing::Block(mine) if *mine != block && mine.covers(&block) => {
                under(from, *mine, subnet)
            }
            _ => *thing != Thing::Block(block) && under(subnet, block, from),
        }
    }

    /// Whether the leaf of `slot` may lie in `thing`, a block taken from `subnet`.
    fn block_is_around(&self, thing: &Thing, subnet: Option<Cidr>, slot: Slot) -> bool {
        let Thing::Block(block) = thing else {
            return false;
        };
        self.owners
            .subnet(slot)
            .is_some_and(|from| block.covers(&from) && from != subnet.unwrap_or(*block))
    }
}

#[cfg(test)]
mod tests;
