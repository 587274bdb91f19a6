//! Who must move, and where to.
//!
//! ```text
//!  kept by spec.allocations, or taken by hand   never moved: a refusal with their names (a drain: they stay)
//!  reserved by a run that has not ended         never moved: its files may be on their way
//!  everybody else                               the same place first, for all; then the next that is free
//! ```
//!
//! Easy to get wrong: places are given in two rounds. Whoever finds its own place taken must not take that of
//! another who comes later.

use mooring_api::{AddrRange, Cidr, Family, Time};

use super::draw::{Goes, kept_here, shift, unlike};
use super::{Change, Effect, Plan, Refused, out_of, refused, seen};
use crate::candidates::special;
use crate::room::Room;
use crate::serving::Source;
use crate::space::{Span, span};
use crate::usage::anyone;
use crate::{Candidate, Lease, Pools, Prefix, State, Table, Thing};

/// What is known when places are given.
pub(super) struct World<'a> {
    pub(super) pools: &'a Pools,
    /// The pools as they would be.
    pub(super) new: &'a Pools,
    pub(super) table: &'a Table,
    pub(super) now: Time,
}

/// Who changes.
#[derive(Default)]
pub(super) struct Told {
    pub(super) effects: Vec<Effect>,
    pub(super) notes: Vec<String>,
}

/// Why somebody is not moved.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pinned {
    Kept,
    ByHand,
    Reserved,
}

/// A prefix that somebody may go to, and how much of it is left.
struct Target<'a> {
    prefix: &'a Prefix,
    room: Room<'a>,
}

impl World<'_> {
    pub(super) fn effects(
        &self,
        plan: &Plan,
        into: &Goes,
        change: &Change,
        moves: bool,
    ) -> Result<Told, Refused> {
        let mut told = Told::default();
        let leases = self.leases(&plan.before);
        if matches!(change, Change::Drain) && !moves {
            if !leases.is_empty() {
                let stay = verb(leases.len(), "stays as it is", "stay as they are");
                told.notes
                    .push(format!("{stay}; --move gives addresses of other prefixes"));
            }
            return Ok(told);
        }
        let mut movers = Vec::new();
        for lease in leases {
            match Self::stays(plan, into, &lease) {
                Some(stays) if stays == seen(&lease) => {}
                Some(_) if matches!(lease.state, State::Reserved { .. }) => {
                    told.notes.push(format!(
                        "{} is reserved by a run that has not ended; render it again afterwards",
                        lease.thing
                    ));
                }
                Some(stays) => {
                    let why = differs(&lease, &stays);
                    told.effects.push(effect(plan, &lease, Some(stays), why));
                }
                None => movers.push(lease),
            }
        }
        self.move_all(plan, into, moves, movers, &mut told)?;
        told.effects.sort_by_key(|e| e.from.thing);
        Ok(told)
    }

    /// What was taken from the prefix and is held or reserved, ordered by thing.
    fn leases(&self, before: &Prefix) -> Vec<Lease> {
        let live =
            |l: &Lease| !matches!(l.state, State::Cooling { .. }) && l.state.is_live(self.now);
        let from = |l: &Lease| {
            let home = self.pools.home(&before.instance, &l.thing);
            home.is_some_and(|at| self.pools.prefixes[at] == *before)
        };
        let all = self.table.leases().filter(|l| live(l) && from(l));
        all.collect()
    }

    /// What the lease is after the change, where it can stay.
    fn stays(plan: &Plan, into: &Goes, lease: &Lease) -> Option<Candidate> {
        if !matches!(into, Goes::Same) {
            return None;
        }
        let (thing, range) = (lease.thing, lease.thing.range()?);
        let here = |p: &&Prefix| p.covers(&range) && thing != Thing::Block(p.cidr);
        let after = plan.after.iter().find(here)?;
        let edge = |p: &Prefix| {
            [range.first(), range.last()]
                .iter()
                .any(|a| special(p, *a).is_some())
        };
        let over_gateway = |p: &Prefix| p.gateway.is_some_and(|g| range.contains(g));
        let barred = |p: &Prefix| {
            let leaf = !matches!(thing, Thing::Block(_));
            leaf && (edge(p) || over_gateway(p)) || !p.gives(&range)
        };
        // What was asked for by name lay outside of the ranges before, and still may.
        (!barred(after) || barred(&plan.before)).then(|| out_of(after, lease, thing))
    }

    fn pinned(plan: &Plan, lease: &Lease) -> Option<Pinned> {
        let kept = |range: AddrRange| plan.before.kept.iter().any(|k| k.range.overlaps(&range));
        if matches!(lease.state, State::Reserved { .. }) {
            Some(Pinned::Reserved)
        } else if lease.thing.range().is_some_and(kept) {
            Some(Pinned::Kept)
        } else {
            lease.holder.package.is_empty().then_some(Pinned::ByHand)
        }
    }

    fn move_all(
        &self,
        plan: &Plan,
        into: &Goes,
        moves: bool,
        movers: Vec<Lease>,
        told: &mut Told,
    ) -> Result<(), Refused> {
        let mut stuck: Vec<(Lease, String)> = Vec::new();
        let mut free = Vec::new();
        let mut pinned = Vec::new();
        for lease in movers {
            let why = Self::pinned(plan, &lease).map(|p| match p {
                Pinned::Kept => "kept by spec.allocations: it never moves",
                Pinned::ByHand => "taken by hand: no package would tell it",
                Pinned::Reserved => "reserved by a run that has not ended",
            });
            match why {
                Some(why) => pinned.push((lease, why.to_owned())),
                None => free.push(lease),
            }
        }
        let leave =
            matches!(into, Goes::Others) || plan.after[0].drain && matches!(into, Goes::All(_));
        let moves = moves || matches!(into, Goes::All(_));
        if !moves && !free.is_empty() {
            let lost = free
                .into_iter()
                .map(|lease| (lease, "has no place after the change".to_owned()));
            pinned.extend(lost);
            return Err(Self::in_the_way(
                plan,
                pinned,
                "add --move to give them other addresses",
            ));
        }
        if !pinned.is_empty() && !leave {
            return Err(Self::in_the_way(
                plan,
                pinned,
                "change what is kept, release what was taken by hand, finish or wait for the run; then again",
            ));
        }
        stuck.extend(pinned);
        let mut targets = self.targets(plan, into);
        let mut later = Vec::new();
        for lease in free {
            let exact = match into {
                Goes::All(to) => self.exact(plan, *to, &mut targets, &lease),
                Goes::Same | Goes::Others => None,
            };
            match exact {
                Some(to) => {
                    let why = "the same place".to_owned();
                    told.effects.push(effect(plan, &lease, Some(to), why));
                }
                None => later.push(lease),
            }
        }
        for lease in later {
            let own = self.own(plan, into, &mut targets, &lease);
            match own.or_else(|| next(plan, into, &mut targets, &lease)) {
                Some(to) => {
                    let why = match into {
                        Goes::All(_) => "its place is not free: the next one",
                        Goes::Same => "has no place after the change",
                        Goes::Others => "the prefix is drained",
                    };
                    told.effects
                        .push(effect(plan, &lease, Some(to), why.to_owned()));
                }
                None => stuck.push((lease, "no other prefix has room for it".to_owned())),
            }
        }
        if stuck.is_empty() {
            return Ok(());
        }
        if !leave {
            return Err(Self::in_the_way(
                plan,
                stuck,
                "make room first: release what is not needed, or choose a wider prefix",
            ));
        }
        told.notes.push(verb(
            stuck.len(),
            "cannot go, and stays where it is",
            "cannot go, and stay where they are",
        ));
        let stay = stuck
            .into_iter()
            .map(|(lease, why)| effect(plan, &lease, None, why));
        told.effects.extend(stay);
        Ok(())
    }

    fn in_the_way(plan: &Plan, who: Vec<(Lease, String)>, help: &str) -> Refused {
        let shown: Vec<String> = who
            .iter()
            .take(5)
            .map(|(l, why)| format!("{} ({}): {why}", l.thing, l.holder))
            .collect();
        let more = match who.len() - shown.len() {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        let message = format!(
            "{} of {} cannot stay: {}{more}",
            count(who.len()),
            plan.before.cidr,
            shown.join("; ")
        );
        let findings = vec![refused(&plan.before, message).help(help)];
        let effects = who
            .into_iter()
            .map(|(lease, why)| effect(plan, &lease, None, why));
        Refused {
            findings,
            effects: effects.collect(),
        }
    }

    fn targets(&self, plan: &Plan, into: &Goes) -> Vec<Target<'_>> {
        let here = self
            .new
            .prefixes
            .iter()
            .filter(|p| p.instance == plan.instance && p.kind == plan.before.kind);
        let fitting = here.filter(|p| match into {
            Goes::Same => plan.after.contains(p),
            Goes::All(to) => p.cidr == *to,
            Goes::Others => {
                p.origin != plan.before.origin
                    && p.cidr.family() == plan.before.cidr.family()
                    && !p.drain
            }
        });
        let target = |prefix| {
            let claim = anyone(self.table, plan.before.kind, plan.before.cidr.family());
            let room = Room::new(self.new, self.table, Source::Read(prefix), &claim, self.now);
            Target { prefix, room }
        };
        fitting.map(target).collect()
    }

    /// What rests for this holder, or what an interrupted run of the same change reserved for it.
    fn own(
        &self,
        plan: &Plan,
        into: &Goes,
        targets: &mut [Target<'_>],
        lease: &Lease,
    ) -> Option<Candidate> {
        let shape = |thing: &Thing| moved(lease.thing, span(thing.range()?));
        for own in self.table.held_by(&lease.holder) {
            let same = own.state != State::Held && shape(&own.thing) == Some(own.thing);
            let Some(range) = own.thing.range().filter(|_| same) else {
                continue;
            };
            let place = span(range);
            let target = targets.iter_mut().find(|t| {
                let open = t
                    .room
                    .segments()
                    .iter()
                    .any(|s| s.0 <= place.0 && place.1 <= s.1);
                open && may_go(plan, into, t.prefix, lease)
            });
            if let Some(target) = target {
                target.room.space().offered(place.0, place.1);
                return Some(out_of(target.prefix, lease, own.thing));
            }
        }
        None
    }

    /// The same distance from the beginning, where that is free or rests for this holder.
    fn exact(
        &self,
        plan: &Plan,
        to: Cidr,
        targets: &mut [Target<'_>],
        lease: &Lease,
    ) -> Option<Candidate> {
        let target = targets.first_mut()?;
        let place = shift(plan.before.cidr, to, span(lease.thing.range()?))?;
        let thing = moved(lease.thing, place)?;
        if !target
            .room
            .segments()
            .iter()
            .any(|s| s.0 <= place.0 && place.1 <= s.1)
        {
            return None;
        }
        let own = self.table.get(&thing);
        let own = own.is_some_and(|own| own.holder == lease.holder && own.state != State::Held);
        if !own && !target.room.space().is_free(place.0, place.1) {
            return None;
        }
        target.room.space().offered(place.0, place.1);
        Some(out_of(target.prefix, lease, thing))
    }
}

/// What `spec.allocations` keeps and the change would lose, held or not.
pub(super) fn kept_outside(plan: &Plan) -> Option<mooring_api::Finding> {
    let lost = |k: &&crate::Kept| !plan.after.iter().any(|p| p.kept.contains(k));
    let lost: Vec<crate::Kept> = plan.before.kept.iter().filter(lost).cloned().collect();
    kept_here(&plan.before, &lost)
}

/// Whether this holder may go there.
fn may_go(plan: &Plan, into: &Goes, to: &Prefix, lease: &Lease) -> bool {
    match into {
        // A part of a split keeps its own.
        Goes::Same if plan.after.len() > 1 => lease.thing.range().is_some_and(|r| to.covers(&r)),
        Goes::Same | Goes::All(_) => true,
        Goes::Others => unlike(&plan.before, to, &lease.holder.cluster).is_none(),
    }
}

/// The first place of any target that is free.
fn next(plan: &Plan, into: &Goes, targets: &mut [Target<'_>], lease: &Lease) -> Option<Candidate> {
    let range = lease.thing.range()?;
    let (size, align) = match lease.thing {
        Thing::Block(_) => (range.count(), range.count()),
        _ => (range.count(), 1),
    };
    for target in targets {
        if !may_go(plan, into, target.prefix, lease) {
            continue;
        }
        let from = match into {
            Goes::All(to) => shift(plan.before.cidr, *to, span(range)).map_or(0, |s| s.0),
            Goes::Same | Goes::Others => 0,
        };
        let space = target.room.space();
        let found = space
            .next_fit(from, size, align)
            .or_else(|| space.next_fit(0, size, align));
        let Some(start) = found else { continue };
        let place = (start, start + (size - 1));
        space.offered(place.0, place.1);
        return Some(out_of(target.prefix, lease, moved(lease.thing, place)?));
    }
    None
}

/// A thing of the same shape in another place; None where it is not aligned there.
fn moved(thing: Thing, (first, last): Span) -> Option<Thing> {
    let family = thing.range()?.family();
    let (start, end) = (family.addr(first), family.addr(last));
    match thing {
        Thing::Addr(_) => Some(Thing::Addr(start)),
        Thing::Range(_) => AddrRange::new(start, end).ok().map(Thing::Range),
        Thing::Block(block) => {
            let there = Cidr::containing(start, block.prefix_len());
            (Family::number(there.network()) == first).then_some(Thing::Block(there))
        }
        Thing::Vlan(_) => None,
    }
}

fn effect(plan: &Plan, lease: &Lease, to: Option<Candidate>, why: String) -> Effect {
    Effect {
        holder: lease.holder.clone(),
        from: seen(lease),
        to,
        why,
        rest: plan.before.cool_down,
    }
}

/// What is new about a lease that stays.
fn differs(lease: &Lease, stays: &Candidate) -> String {
    let mut why = Vec::new();
    if lease.subnet != stays.subnet {
        why.push("another mask".to_owned());
    }
    match (lease.gateway, stays.gateway) {
        (before, after) if before == after => {}
        (_, Some(gateway)) => why.push(format!("gateway {gateway}")),
        (_, None) => why.push("no gateway".to_owned()),
    }
    why.join(", ")
}

fn count(holders: usize) -> String {
    match holders {
        1 => "1 holder".to_owned(),
        n => format!("{n} holders"),
    }
}

/// `1 holder stays`, `2 holders stay`.
fn verb(holders: usize, one: &str, several: &str) -> String {
    let verb = if holders == 1 { one } else { several };
    format!("{} {verb}", count(holders))
}
