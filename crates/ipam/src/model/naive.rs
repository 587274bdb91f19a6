//! The model: a list of leases and full scans, written without looking at the engine.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Code, Family, Time, VlanId};

use super::Answer;
use crate::{Candidate, Claim, Kind, Lease, Order, Pools, Prefix, Refusal, State, Thing, Want};

#[derive(Default)]
pub(super) struct Naive {
    leases: Vec<Lease>,
}

fn overlap(a: &Thing, b: &Thing) -> bool {
    match (a.range(), b.range()) {
        (Some(a), Some(b)) => a.overlaps(&b),
        (None, None) => a == b,
        _ => false,
    }
}

fn fits(want: Want, thing: &Thing) -> bool {
    match (want, thing) {
        (Want::Address, Thing::Addr(_)) | (Want::Vlan { .. }, Thing::Vlan(_)) => true,
        (Want::Block { len }, Thing::Block(c)) => c.prefix_len() == len,
        (Want::Range { count }, Thing::Range(r)) => r.count() == u128::from(count),
        _ => false,
    }
}

/// All addresses of a range, one by one.
fn every(range: AddrRange) -> impl Iterator<Item = IpAddr> {
    let family = range.family();
    (Family::number(range.first())..=Family::number(range.last())).map(move |n| family.addr(n))
}

impl Naive {
    pub(super) fn leases(&self) -> impl Iterator<Item = Lease> + '_ {
        self.leases.iter().cloned()
    }

    pub(super) fn nth(&self, nth: usize) -> Option<Lease> {
        self.leases.get(nth).cloned()
    }

    pub(super) fn insert(&mut self, lease: Lease) {
        self.remove(&lease.thing);
        self.leases.push(lease);
        self.leases.sort_by_key(|l| l.thing);
    }

    pub(super) fn remove(&mut self, thing: &Thing) {
        self.leases.retain(|l| l.thing != *thing);
    }

    pub(super) fn set_state(&mut self, thing: &Thing, state: State) {
        let lease = self.leases.iter_mut().find(|l| l.thing == *thing);
        lease.expect("it was listed").state = state;
    }

    pub(super) fn expire(&mut self, now: Time) -> usize {
        let before = self.leases.len();
        self.leases.retain(|l| match l.state {
            State::Cooling { until } | State::Reserved { until, .. } => until > now,
            State::Held => true,
        });
        before - self.leases.len()
    }

    pub(super) fn blocker(&self, claim: &Claim, thing: &Thing) -> Option<&Lease> {
        self.leases
            .iter()
            .filter(|l| !(l.holder == claim.holder && l.thing == *thing))
            .find(|l| overlap(&l.thing, thing))
    }

    fn prefixes<'p>(pools: &'p Pools, claim: &Claim) -> Vec<&'p Prefix> {
        let label = &claim.selector.match_labels["net"];
        let parents: &[Kind] = match (claim.want, claim.kind) {
            (Want::Block { .. }, Kind::Pool) => &[Kind::Pool, Kind::Aggregate],
            (Want::Block { .. }, _) => &[Kind::Aggregate],
            (Want::Vlan { .. }, _) => &[],
            _ => &[Kind::Network],
        };
        let of = |kind: &Kind| {
            let kind = *kind;
            pools.prefixes.iter().filter(move |p| {
                p.kind == kind
                    && p.cidr.family() == claim.holder.family
                    && p.labels["net"] == *label
            })
        };
        parents.iter().flat_map(of).collect()
    }

    /// What the holder has that the claim is about.
    pub(super) fn holds(&self, claim: &Claim, _now: Time) -> Option<Thing> {
        let mine = self.leases.iter().filter(|l| l.holder == claim.holder);
        let (resting, taken): (Vec<&Lease>, Vec<&Lease>) =
            mine.partition(|l| matches!(l.state, State::Cooling { .. }));
        let mut mine = taken.into_iter().chain(resting);
        let pools = super::world::pools();
        let prefixes = Self::prefixes(&pools, claim);
        let fixed = Self::fixed(claim);
        mine.find(|l| {
            let shape = match fixed {
                Some(thing) => l.thing == thing,
                None => fits(claim.want, &l.thing),
            };
            let inside = l.thing.range().is_none_or(|r| {
                prefixes
                    .iter()
                    .any(|p| p.cidr.contains(r.first()) && p.cidr.contains(r.last()))
            });
            shape && inside
        })
        .map(|l| l.thing)
    }

    fn fixed(claim: &Claim) -> Option<Thing> {
        match claim.want {
            Want::Vlan { id } => id.map(Thing::Vlan),
            Want::Block { .. } => claim.fixed.map(|f| Thing::Block(f.subnet())),
            _ => claim.fixed.map(|f| Thing::Addr(f.addr())),
        }
    }

    /// Barred for everybody, whatever is asked.
    fn barred(pools: &Pools, prefix: &Prefix, claim: &Claim, addr: IpAddr) -> bool {
        let edge = prefix.kind == Kind::Network && !prefix.cidr.hosts().contains(addr);
        let excluded = prefix.exclude.iter().any(|e| e.contains(addr));
        let kept = prefix.kept.iter().any(|k| {
            k.range.contains(addr)
                && !(claim.names.contains(&k.claim) && k.cluster == claim.holder.cluster)
        });
        let inner = prefix.kind == Kind::Aggregate
            && pools
                .prefixes
                .iter()
                .any(|p| p.kind == Kind::Pool && p.cidr.contains(addr));
        edge || excluded || kept || inner || prefix.gateway == Some(addr)
    }

    /// May be chosen by an order.
    fn choosable(pools: &Pools, prefix: &Prefix, claim: &Claim, addr: IpAddr) -> bool {
        let asked = prefix.ranges.is_empty() || prefix.ranges.iter().any(|r| r.contains(addr));
        let kept = prefix.kept.iter().any(|k| k.range.contains(addr));
        let last_of_v6 = claim.order == Order::BestFit
            && addr == prefix.cidr.last()
            && claim.holder.family == Family::V6;
        asked && !kept && !last_of_v6 && !Self::barred(pools, prefix, claim, addr)
    }

    fn is_free(&self, addr: IpAddr) -> bool {
        let thing = Thing::Addr(addr);
        !self.leases.iter().any(|l| overlap(&l.thing, &thing))
    }

    /// Rules that any engine must keep, whatever it chooses.
    pub(super) fn allows(&self, pools: &Pools, claim: &Claim, c: &Candidate) -> Result<(), String> {
        if self
            .leases
            .iter()
            .any(|l| l.holder == claim.holder && l.thing == c.thing)
        {
            // It was allowed when it was taken.
            return Ok(());
        }
        let Some(range) = c.thing.range() else {
            return Ok(());
        };
        let prefixes = Self::prefixes(pools, claim);
        let Some(prefix) = prefixes.iter().find(|p| Some(p.cidr) == c.subnet) else {
            return Err(format!("{} comes from no matching prefix", c.thing));
        };
        match every(range)
            .find(|a| Self::barred(pools, prefix, claim, *a) || !prefix.cidr.contains(*a))
        {
            Some(addr) => Err(format!("{addr} is for nobody, or for somebody else")),
            None => Ok(()),
        }
    }

    /// Which special outcome this was, for the counts.
    pub(super) fn note(pools: &Pools, claim: &Claim, c: &Candidate) -> &'static str {
        let prefixes = Self::prefixes(pools, claim);
        let spilled = prefixes.first().is_some_and(|p| Some(p.cidr) != c.subnet);
        let kept = c.thing == Thing::Addr("10.0.0.9".parse().expect("an address"));
        match c.thing {
            Thing::Addr(_) if kept => "kept-for",
            _ if spilled => "spill-over",
            Thing::Addr(_) => "address",
            Thing::Block(_) => "block",
            Thing::Range(_) => "range",
            Thing::Vlan(_) => "vlan",
        }
    }

    /// Whether the engine's answer is the one that a full scan gives.
    pub(super) fn agrees(
        &self,
        pools: &Pools,
        claim: &Claim,
        now: Time,
        answer: &Result<Answer, Refusal>,
    ) -> Result<(), String> {
        let wanted = self.decide(pools, claim, now);
        let got = match answer {
            Ok(answer) => Ok(answer
                .offers
                .first()
                .expect("an offer is never empty")
                .thing),
            Err(refusal) => Err(refusal.code()),
        };
        let same = match (&wanted, &got) {
            (Ok(a), Ok(b)) => a == b,
            // Of several leases in the way either may be named.
            (Err(Code::AddressHeld | Code::AddressCooling), Err(code)) => {
                let several = matches!(claim.want, Want::Block { .. } | Want::Range { .. });
                wanted == got || several && matches!(code, Code::AddressHeld | Code::AddressCooling)
            }
            (Err(a), Err(b)) => a == b,
            _ => false,
        };
        if same {
            Ok(())
        } else {
            Err(format!(
                "{claim:?}: the model says {wanted:?}, the engine {got:?}"
            ))
        }
    }

    fn decide(&self, pools: &Pools, claim: &Claim, now: Time) -> Result<Thing, Code> {
        if let Some(thing) = self.holds(claim, now) {
            return Ok(thing);
        }
        let refused = |thing: &Thing| {
            self.blocker(claim, thing).map(|by| match by.state {
                State::Cooling { .. } => Code::AddressCooling,
                _ => Code::AddressHeld,
            })
        };
        if let Some(thing) = Self::fixed(claim) {
            Self::may_have(pools, claim, &thing)?;
            return refused(&thing).map_or(Ok(thing), Err);
        }
        let prefixes = Self::prefixes(pools, claim);
        for prefix in &prefixes {
            let kept = prefix.kept.iter().find(|k| claim.names.contains(&k.claim));
            if let (Some(kept), Want::Address) = (kept, claim.want)
                && self.is_free(kept.range.first())
            {
                return Ok(Thing::Addr(kept.range.first()));
            }
        }
        if let Order::Index(n) = claim.order {
            let thing = Self::nth_place(pools, claim, prefixes.first().copied(), n as usize);
            let thing = thing.ok_or(match claim.want {
                Want::Vlan { .. } => Code::PoolExhausted,
                _ => Code::AddressOutsidePrefix,
            })?;
            return refused(&thing).map_or(Ok(thing), Err);
        }
        if let Some(before) = claim.before
            && fits(claim.want, &before)
            && Self::may_have(pools, claim, &before).is_ok()
            && refused(&before).is_none()
        {
            return Ok(before);
        }
        if let Want::Vlan { .. } = claim.want {
            let ids = (2..=4094).filter_map(|id| VlanId::try_from(id).ok());
            let mut free = ids.map(Thing::Vlan).filter(|t| refused(t).is_none());
            return free.next().ok_or(Code::PoolExhausted);
        }
        let found = prefixes.iter().find_map(|p| self.choose(pools, claim, p));
        found.ok_or(Code::PoolExhausted)
    }

    /// Whether a thing that is asked for by name is one that can be had, taken or not.
    fn may_have(pools: &Pools, claim: &Claim, thing: &Thing) -> Result<(), Code> {
        let Some(range) = thing.range() else {
            return Ok(());
        };
        let prefixes = Self::prefixes(pools, claim);
        let prefix = prefixes
            .iter()
            .find(|p| p.cidr.contains(range.first()) && p.cidr.contains(range.last()))
            .ok_or(Code::AddressOutsidePrefix)?;
        let mut anybody = claim.clone();
        anybody.names = prefix.kept.iter().map(|k| k.claim.clone()).collect();
        if every(range).any(|a| Self::barred(pools, prefix, &anybody, a)) {
            return Err(Code::AddressNotUsable);
        }
        if every(range).any(|a| Self::barred(pools, prefix, claim, a)) {
            return Err(Code::AddressHeld);
        }
        Ok(())
    }

    /// Every place of the wanted shape in a prefix, ascending, taken or not.
    fn places(pools: &Pools, claim: &Claim, prefix: &Prefix) -> Vec<Vec<IpAddr>> {
        let all: Vec<IpAddr> = every(prefix.cidr.range()).collect();
        let size = match claim.want {
            Want::Block { len } => 1usize << (claim.holder.family.bits() - len),
            Want::Range { count } => count as usize,
            _ => 1,
        };
        let starts = 0..(all.len() + 1).saturating_sub(size);
        let aligned = |start: &usize| {
            let is_block = matches!(claim.want, Want::Block { .. });
            !is_block || Family::number(all[*start]).is_multiple_of(size as u128)
        };
        starts
            .filter(aligned)
            .map(|start| all[start..start + size].to_vec())
            .filter(|place| {
                place
                    .iter()
                    .all(|a| Self::choosable(pools, prefix, claim, *a))
            })
            .collect()
    }

    fn thing(claim: &Claim, place: &[IpAddr]) -> Thing {
        match claim.want {
            Want::Block { len } => Thing::Block(Cidr::containing(place[0], len)),
            Want::Range { .. } => {
                Thing::Range(AddrRange::new(place[0], place[place.len() - 1]).expect("ascending"))
            }
            _ => Thing::Addr(place[0]),
        }
    }

    /// The n-th place, where places do not overlap.
    fn nth_place(pools: &Pools, claim: &Claim, prefix: Option<&Prefix>, n: usize) -> Option<Thing> {
        if let Want::Vlan { .. } = claim.want {
            let id = u16::try_from(n + 2).ok()?;
            return VlanId::try_from(id).ok().map(Thing::Vlan);
        }
        let mut last = None;
        let mut apart = Vec::new();
        for place in Self::places(pools, claim, prefix?) {
            if last.is_none_or(|last| last < place[0]) {
                last = place.last().copied();
                apart.push(Self::thing(claim, &place));
            }
        }
        apart.get(n).copied()
    }

    fn choose(&self, pools: &Pools, claim: &Claim, prefix: &Prefix) -> Option<Thing> {
        let free: Vec<Vec<IpAddr>> = Self::places(pools, claim, prefix)
            .into_iter()
            .filter(|place| place.iter().all(|a| self.is_free(*a)))
            .collect();
        let first = free.first().map(|place| Self::thing(claim, place));
        if claim.order == Order::LowestFirst {
            return first;
        }
        let is_room = |a: &IpAddr| Self::choosable(pools, prefix, claim, *a) && self.is_free(*a);
        let room = |place: &Vec<IpAddr>| {
            if let Want::Range { .. } = claim.want {
                // How long is the free run around it?
                let all: Vec<IpAddr> = every(prefix.cidr.range()).collect();
                let at = all.iter().position(|a| *a == place[0]).expect("inside");
                let before = all[..at].iter().rev().take_while(|a| is_room(a)).count();
                let behind = all[at..].iter().take_while(|a| is_room(a)).count();
                return before + behind;
            }
            // How wide is the widest free aligned block around it?
            let bits = claim.holder.family.bits();
            let lengths = prefix.cidr.prefix_len()..=bits;
            let widest = lengths
                .map(|len| Cidr::containing(place[0], len))
                .find(|c| every(c.range()).all(|a| is_room(&a)));
            1usize << (bits - widest.map_or(bits, |c| c.prefix_len()))
        };
        // The first of the least, so the lowest among equals.
        let best = free.iter().min_by_key(|place| room(place));
        best.map(|place| Self::thing(claim, place))
    }
}
