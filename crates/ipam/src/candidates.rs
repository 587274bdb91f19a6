//! What to try, in which order: the one decision of this room.
//!
//! ```text
//!  has it already ─► Keep
//!  fixed          ─► that and no other                       (a drained prefix goes no further than this line)
//!  kept for it (spec.allocations) ─► what it had before ─► every matching prefix in turn, by the order
//! ```
//!
//! Called by the book (one writer, under its lock) and by clients of a shared store (over a view). The
//! first candidate is found before this returns, so an `Offer` is never empty; the others are made when
//! asked for. Cost: one pass over the prefixes, then O(log) per candidate; best-fit is linear in the
//! free runs of the prefix (see `space.rs`).
//!
//! Easy to get wrong: a fixed address, and one that is kept, may lie outside `ranges`. Ranges limit what is
//! chosen, not what is asked for by name.

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Family, HostCidr, Time};

use crate::room::{Room, size_of};
use crate::serving::{SHOWN, Serving, Source, serving};
use crate::walk::{Walks, lowest};
use crate::{
    Candidate, Claim, Kept, Lease, Order, Pools, Prefix, Refusal, State, Table, Thing, Unusable,
    Want, vlan,
};

/// What a claim comes to.
#[derive(Debug)]
pub enum Decision<'a> {
    /// The holder has it already (held, reserved or cooling): this and nothing else. Subnet and gateway
    /// are those of the prefix today, which may differ from what the table has; state and time are the
    /// table's.
    Keep(Lease),
    /// Free as far as the table knows, best first, at least one.
    Offer(Offers<'a>),
}

impl Decision<'_> {
    /// What to try first: the kept one, or the first offer.
    pub fn first(self) -> Option<Candidate> {
        match self {
            Self::Keep(lease) => Some(Candidate {
                thing: lease.thing,
                subnet: lease.subnet,
                gateway: lease.gateway,
            }),
            Self::Offer(mut offers) => offers.next(),
        }
    }
}

/// Candidates: the first is found, the others are made when asked for.
pub struct Offers<'a> {
    first: Option<Candidate>,
    rest: Rest<'a>,
}

/// Not a boxed iterator for addresses: most offers are dropped after the first.
pub(crate) enum Rest<'a> {
    Nothing,
    Prefixes(Walks<'a>),
    Vlans(Box<dyn Iterator<Item = Candidate> + 'a>),
}

impl<'a> Decision<'a> {
    pub(crate) fn offer(first: Candidate, rest: Rest<'a>) -> Self {
        let first = Some(first);
        Self::Offer(Offers { first, rest })
    }
}

impl Iterator for Offers<'_> {
    type Item = Candidate;

    fn next(&mut self) -> Option<Candidate> {
        self.first.take().or_else(|| match &mut self.rest {
            Rest::Nothing => None,
            Rest::Prefixes(walks) => walks.next(),
            Rest::Vlans(vlans) => vlans.next(),
        })
    }
}

impl std::fmt::Debug for Offers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Offers").finish_non_exhaustive()
    }
}

/// What `claim` may get at `now`.
pub fn candidates<'a>(
    pools: &'a Pools,
    table: &'a Table,
    claim: &'a Claim,
    now: Time,
) -> Result<Decision<'a>, Refusal> {
    if let Want::Vlan { id } = claim.want {
        return vlan::candidates(table, claim, id, now);
    }
    let mut prefixes = serving(pools, claim, Serving::Held)?;
    let fixed = claim.fixed.map(|fixed| fixed_thing(claim, fixed));
    if let Some(lease) = keep(table, claim, &prefixes, fixed) {
        return Ok(Decision::Keep(lease));
    }
    if prefixes.iter().any(|p| p.drain) {
        if let Some(thing) = fixed
            && let Some(prefix) = around(&prefixes, &thing).filter(|p| p.drain)
        {
            return Err(Refusal::NotUsable {
                thing,
                prefix: Some(prefix.cidr),
                why: Unusable::Drained,
            });
        }
        prefixes = serving(pools, claim, Serving::New)?;
    }
    if let Some(thing) = fixed {
        let room = place(pools, table, &prefixes, claim, thing, now)?;
        let candidate = candidate(room.prefix(), claim, thing);
        return Ok(Decision::offer(candidate, Rest::Nothing));
    }
    if let Some(found) = kept_for(pools, table, &prefixes, claim, now)? {
        return Ok(Decision::offer(found, Rest::Nothing));
    }
    if let Order::Index(index) = claim.order {
        return by_index(pools, table, &prefixes, claim, index, now);
    }
    let before = claim
        .before
        .filter(|thing| fits(claim.want, thing))
        .and_then(|thing| {
            let room = place(pools, table, &prefixes, claim, thing, now).ok()?;
            Some(candidate(room.prefix(), claim, thing))
        });
    let first = before.or_else(|| lowest(table, &prefixes[0], claim, now));
    let left_out = first.map(|candidate| candidate.thing);
    let mut walks = Walks::new(pools, table, claim, now, prefixes, left_out);
    match first.or_else(|| walks.next()) {
        Some(first) => Ok(Decision::offer(first, Rest::Prefixes(walks))),
        None => Err(exhausted(pools, table, claim, now)),
    }
}

/// The refusal for a claim whose every candidate was lost, or that has none.
pub fn exhausted(pools: &Pools, table: &Table, claim: &Claim, now: Time) -> Refusal {
    let prefixes = match serving(pools, claim, Serving::New) {
        _ if matches!(claim.want, Want::Vlan { .. }) => Vec::new(),
        Ok(prefixes) => prefixes,
        Err(refusal) => return refusal,
    };
    let more = prefixes.len().saturating_sub(SHOWN);
    let fullness = prefixes
        .into_iter()
        .take(SHOWN)
        .map(|prefix| Room::new(pools, table, prefix, claim, now).fullness(table, now));
    Refusal::Exhausted {
        instance: claim.instance.clone(),
        want: claim.want,
        prefixes: fullness.collect(),
        more,
    }
}

/// What a fixed wish means for what is wanted.
fn fixed_thing(claim: &Claim, fixed: HostCidr) -> Thing {
    match claim.want {
        Want::Block { .. } => Thing::Block(fixed.subnet()),
        Want::Range { count } => {
            let family = fixed.family();
            let first = Family::number(fixed.addr());
            let top = Family::number(family.addr(u128::MAX));
            let last = first.saturating_add(u128::from(count).saturating_sub(1));
            let range = AddrRange::new(fixed.addr(), family.addr(last.min(top)));
            Thing::Range(range.unwrap_or(AddrRange::single(fixed.addr())))
        }
        Want::Address | Want::Vlan { .. } => Thing::Addr(fixed.addr()),
    }
}

/// Whether a thing has the shape that is wanted.
fn fits(want: Want, thing: &Thing) -> bool {
    match (want, thing) {
        (Want::Address, Thing::Addr(_)) => true,
        (Want::Block { len }, Thing::Block(block)) => block.prefix_len() == len,
        (Want::Range { count }, Thing::Range(range)) => range.count() == u128::from(count),
        (Want::Vlan { .. }, Thing::Vlan(_)) => true,
        _ => false,
    }
}

/// A thing of a prefix as an offer. An address of a network knows its subnet, a loopback is alone.
pub(crate) fn candidate(prefix: &Prefix, claim: &Claim, thing: Thing) -> Candidate {
    let is_network = prefix.kind == crate::Kind::Network;
    match thing {
        Thing::Addr(addr) if claim.kind == crate::Kind::Loopback => Candidate {
            thing,
            subnet: Some(Cidr::containing(addr, u8::MAX)),
            gateway: None,
        },
        _ => Candidate {
            thing,
            subnet: Some(prefix.cidr),
            gateway: prefix.gateway.filter(|_| is_network),
        },
    }
}

/// What the holder has already, where it still lies in a prefix that serves the claim. An exclusion or a
/// narrower range made later does not move anybody.
fn keep(
    table: &Table,
    claim: &Claim,
    prefixes: &[Source<'_>],
    fixed: Option<Thing>,
) -> Option<Lease> {
    let mut leases = table.held_by(&claim.holder);
    // Who was moved has its new address, and its old one rests under the same name.
    leases.sort_by_key(|lease| matches!(lease.state, State::Cooling { .. }));
    let fitting = leases.into_iter().filter(|lease| match fixed {
        Some(thing) => lease.thing == thing,
        None => fits(claim.want, &lease.thing),
    });
    let mut still_there = fitting.filter_map(|lease| {
        let prefix = around(prefixes, &lease.thing)?;
        let Candidate {
            subnet, gateway, ..
        } = candidate(prefix, claim, lease.thing);
        Some(Lease {
            subnet,
            gateway,
            ..lease
        })
    });
    still_there.next()
}

/// The prefix that holds all of a thing.
fn around<'p>(prefixes: &'p [Source<'_>], thing: &Thing) -> Option<&'p Prefix> {
    let range = thing.range()?;
    let holds = |p: &&Source<'_>| p.covers(&range);
    prefixes.iter().find(holds).map(|source| &**source)
}

/// Whether exactly this thing can be had, and out of which prefix.
fn place<'a>(
    pools: &'a Pools,
    table: &'a Table,
    prefixes: &[Source<'a>],
    claim: &Claim,
    thing: Thing,
    now: Time,
) -> Result<Room<'a>, Refusal> {
    let outside = || Refusal::OutsidePrefix {
        thing,
        prefixes: prefixes.iter().take(SHOWN).map(|p| p.cidr).collect(),
    };
    let range = thing.range().ok_or_else(outside)?;
    if let Want::Range { count } = claim.want
        && range.count() != u128::from(count)
    {
        // It was cut off at the end of the address space.
        return Err(outside());
    }
    let holds = |p: &&Source<'_>| p.covers(&range) && thing != Thing::Block(p.cidr);
    let prefix = prefixes.iter().find(holds).cloned().ok_or_else(outside)?;
    let room = Room::new(pools, table, prefix, claim, now);
    if let Some(why) = room.unusable(range) {
        let prefix = Some(room.prefix().cidr);
        return Err(Refusal::NotUsable { thing, prefix, why });
    }
    let others = |kept: &&Kept| kept.range.overlaps(&range) && !kept.is_for(claim);
    if let Some(kept) = room.prefix().kept.iter().find(others) {
        return Err(Refusal::Kept {
            thing,
            range: kept.range,
            claim: kept.claim.clone(),
            cluster: kept.cluster.clone(),
        });
    }
    let subnet = candidate(room.prefix(), claim, thing).subnet;
    match table.blocker_at(&thing, subnet, &claim.holder, now) {
        Some(by) => Err(Refusal::blocked(thing, by)),
        None => Ok(room),
    }
}

impl Kept {
    /// Whether it is kept for this claim.
    pub fn is_for(&self, claim: &Claim) -> bool {
        claim.names.contains(&self.claim)
            && (self.cluster.is_empty() || self.cluster == claim.holder.cluster)
    }
}

/// What `spec.allocations` keeps for the claim. Taken by a claim of the same name (a second address of the
/// interface, the same interface of another package), the order chooses; taken by anybody else it is a
/// refusal, since another address is not what the allocation says.
fn kept_for(
    pools: &Pools,
    table: &Table,
    prefixes: &[Source<'_>],
    claim: &Claim,
    now: Time,
) -> Result<Option<Candidate>, Refusal> {
    let mut refusal = None;
    for prefix in prefixes {
        let mine: Vec<&Kept> = prefix.kept.iter().filter(|k| k.is_for(claim)).collect();
        if mine.is_empty() {
            continue;
        }
        let room = Room::new(pools, table, prefix.clone(), claim, now);
        let (size, align) = size_of(claim.want, prefix.cidr.family());
        for kept in mine {
            let space = room.kept_space(kept.range);
            if let Some(start) = space.next_fit(0, size, align) {
                return Ok(Some(candidate(
                    prefix,
                    claim,
                    room.thing(claim.want, start),
                )));
            }
            let thing = room.thing(claim.want, Family::number(kept.range.first()));
            let by = table.blocker_at(&thing, Some(prefix.cidr), &claim.holder, now);
            if let Some(by) = by
                && by.holder.interface != claim.holder.interface
            {
                refusal = Some(Refusal::blocked(thing, by));
            }
        }
    }
    refusal.map_or(Ok(None), Err)
}

/// The n-th of the first prefix, and no other.
fn by_index<'a>(
    pools: &'a Pools,
    table: &'a Table,
    prefixes: &[Source<'a>],
    claim: &'a Claim,
    index: u32,
    now: Time,
) -> Result<Decision<'a>, Refusal> {
    let prefix = prefixes[0].clone();
    let room = Room::new(pools, table, prefix, claim, now);
    let slots = room.slots(claim.want);
    let Some(start) = slots.get(u128::from(index)) else {
        return Err(Refusal::NoSuchIndex {
            index,
            prefix: room.prefix().cidr,
            size: slots.len(),
        });
    };
    let thing = room.thing(claim.want, start);
    let offer = candidate(room.prefix(), claim, thing);
    match table.blocker_at(&thing, offer.subnet, &claim.holder, now) {
        Some(by) => Err(Refusal::blocked(thing, by)),
        None => Ok(Decision::offer(offer, Rest::Nothing)),
    }
}

/// Why an address of a prefix is nobody's.
pub(crate) fn special(prefix: &Prefix, addr: IpAddr) -> Option<Unusable> {
    let hosts = prefix.cidr.hosts();
    if prefix.kind == crate::Kind::Network && !hosts.contains(addr) {
        return Some(if addr < hosts.first() {
            Unusable::Network
        } else {
            Unusable::Broadcast
        });
    }
    (prefix.gateway == Some(addr)).then_some(Unusable::Gateway)
}

#[cfg(test)]
mod tests;
