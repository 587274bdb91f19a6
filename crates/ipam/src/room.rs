//! One prefix, seen by one claim: what may be handed out, what is free, how full it is.
//!
//! Made lazily, when a walk reaches the prefix: the segments cost one pass over the prefix's exclusions
//! and kept addresses (and, where blocks are cut, over the prefixes of the instance).

use mooring_api::{AddrRange, Cidr, Family, Time};

use crate::candidates::special;
use crate::serving::Source;
use crate::space::{Space, Span, joined, span, within, without};
use crate::{Claim, Fullness, Kind, Order, Pools, Prefix, Table, Thing, Unusable, Want};

/// How many in a row, and at which multiple they begin.
pub(crate) fn size_of(want: Want, family: Family) -> (u128, u128) {
    match want {
        Want::Address | Want::Vlan { .. } => (1, 1),
        Want::Block { len } => {
            let host_bits = u32::from(family.bits().saturating_sub(len)).min(127);
            (1 << host_bits, 1 << host_bits)
        }
        Want::Range { count } => (u128::from(count).max(1), 1),
    }
}

/// A prefix and its room.
pub(crate) struct Room<'a> {
    prefix: Source<'a>,
    inside: Vec<Cidr>,
    /// What nobody may have but network, broadcast and gateway.
    space: Space<'a>,
    bounds: Span,
}

impl<'a> Room<'a> {
    pub(crate) fn new(
        pools: &'a Pools,
        table: &'a Table,
        prefix: Source<'a>,
        claim: &Claim,
        now: Time,
    ) -> Self {
        let inside = prefixes_inside(pools, &prefix);
        let bounds = bounds(&prefix, claim);
        let mut holes = holes(&prefix, &inside);
        holes.extend(kept_spans(&prefix));
        let segments = if prefix.ranges.is_empty() {
            without(&[bounds], holes)
        } else {
            let family = prefix.cidr.family();
            let ranges = prefix.ranges.iter().filter(|r| r.family() == family);
            let ranges: Vec<Span> = ranges.copied().map(span).collect();
            without(&joined(within(&ranges, bounds)), holes)
        };
        let space = Space::new(segments, table.obstacles(prefix.cidr, now));
        Self {
            prefix,
            inside,
            space,
            bounds,
        }
    }

    pub(crate) fn prefix(&self) -> &Prefix {
        &self.prefix
    }

    /// What may be chosen, taken or not.
    pub(crate) fn segments(&self) -> &[Span] {
        self.space.segments()
    }

    pub(crate) fn space(&mut self) -> &mut Space<'a> {
        &mut self.space
    }

    /// The free part of what is kept for a claim.
    pub(crate) fn kept_space(&self, kept: AddrRange) -> Space<'a> {
        let asked = if kept.family() == self.prefix.cidr.family() {
            within(&[span(kept)], self.bounds)
        } else {
            Vec::new()
        };
        // Kept by name, so neither ranges nor exclusions speak against it.
        let gateway = self.prefix.gateway.map(AddrRange::single).map(span);
        self.space
            .over(without(&asked, gateway.into_iter().collect()))
    }

    /// Why nobody may have (all of) a range.
    pub(crate) fn unusable(&self, range: AddrRange) -> Option<Unusable> {
        let ends = [range.first(), range.last()];
        let edge = ends.iter().find_map(|addr| special(&self.prefix, *addr));
        let gateway = self.prefix.gateway.filter(|g| range.contains(*g));
        edge.or(gateway.map(|_| Unusable::Gateway))
            .or_else(|| {
                let exclude = self.prefix.exclude.iter();
                let hit = exclude.copied().find(|excluded| excluded.overlaps(&range));
                hit.map(Unusable::Excluded)
            })
            .or_else(|| {
                let hit = self.inside.iter().find(|c| c.range().overlaps(&range));
                hit.copied().map(Unusable::Prefix)
            })
    }

    /// The thing of the wanted shape that begins at `start`.
    pub(crate) fn thing(&self, want: Want, start: u128) -> Thing {
        let family = self.prefix.cidr.family();
        let first = family.addr(start);
        match want {
            Want::Block { len } => Thing::Block(Cidr::containing(first, len)),
            Want::Range { .. } => {
                let (size, _) = size_of(want, family);
                let last = family.addr(start.saturating_add(size - 1));
                let range = AddrRange::new(first, last);
                Thing::Range(range.unwrap_or(AddrRange::single(first)))
            }
            Want::Address | Want::Vlan { .. } => Thing::Addr(first),
        }
    }

    /// The places that a thing of the wanted shape may have, taken or not, counted from 0.
    pub(crate) fn slots(&self, want: Want) -> Slots {
        let (size, align) = size_of(want, self.prefix.cidr.family());
        let slots = self.space.segments().iter().filter_map(|(first, last)| {
            let start = first.checked_next_multiple_of(align)?;
            let count = (last.checked_sub(start)? + 1) / size;
            (count > 0).then_some((start, count))
        });
        Slots {
            size,
            slots: slots.collect(),
        }
    }

    /// How many addresses of the whole prefix are taken, also those that nobody may choose.
    pub(crate) fn taken(&self) -> u128 {
        let whole = span(self.prefix.cidr.range());
        let all = (whole.1 - whole.0).saturating_add(1);
        all.saturating_sub(self.space.over(vec![whole]).free())
    }

    pub(crate) fn fullness(&self, table: &Table, now: Time) -> Fullness {
        let size = self.space.size();
        let free = self.space.free();
        let (_, cooling) = table.passing(self.prefix.cidr, now);
        Fullness {
            prefix: self.prefix.cidr,
            used: size.saturating_sub(free),
            size,
            cooling,
            largest_gap: self.space.largest_run(),
            holders: table.top_holders(self.prefix.cidr, 3),
        }
    }
}

/// Places of one size in ascending segments.
pub(crate) struct Slots {
    size: u128,
    slots: Vec<(u128, u128)>,
}

impl Slots {
    pub(crate) fn len(&self) -> u128 {
        self.slots.iter().map(|(_, count)| count).sum()
    }

    pub(crate) fn get(&self, mut index: u128) -> Option<u128> {
        for (start, count) in &self.slots {
            if index < *count {
                return Some(start + index * self.size);
            }
            index -= count;
        }
        None
    }
}

/// Between which addresses a claim may choose.
fn bounds(prefix: &Prefix, claim: &Claim) -> Span {
    let cut = matches!(claim.want, Want::Block { .. });
    if prefix.kind != Kind::Network || cut {
        return span(prefix.cidr.range());
    }
    let (first, last) = span(prefix.cidr.hosts());
    // Upstream's best-fit takes the last address of an IPv6 subnet out, as it does the IPv4 broadcast.
    let v6 = prefix.cidr.family() == Family::V6 && prefix.cidr.prefix_len() <= 126;
    if claim.order == Order::BestFit && v6 {
        (first, last - 1)
    } else {
        (first, last)
    }
}

/// Other prefixes of the instance that lie inside: their addresses are theirs. Inside of a network there
/// are none ([`Pools::check`]).
fn prefixes_inside(pools: &Pools, prefix: &Prefix) -> Vec<Cidr> {
    if prefix.kind == Kind::Network {
        return Vec::new();
    }
    let others = pools.prefixes.iter().filter(|other| {
        other.instance == prefix.instance
            && prefix.cidr.covers(&other.cidr)
            && (other.cidr != prefix.cidr || other.kind < prefix.kind)
    });
    others.map(|other| other.cidr).collect()
}

fn kept_spans(prefix: &Prefix) -> impl Iterator<Item = Span> + '_ {
    let family = prefix.cidr.family();
    let kept = prefix.kept.iter().map(|kept| kept.range);
    kept.filter(move |range| range.family() == family).map(span)
}

fn holes(prefix: &Prefix, inside: &[Cidr]) -> Vec<Span> {
    let family = prefix.cidr.family();
    let excluded = prefix.exclude.iter().filter(|e| e.family() == family);
    let gateway = prefix.gateway.filter(|g| Family::of(*g) == family);
    excluded
        .copied()
        .chain(gateway.map(AddrRange::single))
        .chain(inside.iter().map(Cidr::range))
        .map(span)
        .collect()
}
