//! Moving between flavours: an interface keeps its address as long as that is possible.
//!
//! ```text
//!  static       .20                       one address
//!  host-local   .20 + .21-.27             the address stays, a range is taken around it, the NAD says .20-.27
//!  moor         .20                       the address stays in the book, and the agent finds it there
//!  static       .20                       the range goes back
//! ```
//!
//! Called for every wish, and when a package gives back what it no longer wants. Easy to get wrong: what is
//! given back stays taken until the transaction commits, so an address can never be exchanged for a range that
//! contains it. Both are held side by side instead, and only the NAD and the claim show them as one.

use mooring_api::{AddrRange, Code, Family, Finding, HostCidr, annotation};
use mooring_blueprint::claim::Wish;
use mooring_blueprint::port::Port;
use mooring_book::{Outcome as Take, Txn};
use mooring_ipam::{Candidate, Claim, Decision, Lease, Pools, Prefix, State, Table, Thing, Want};

use crate::ahead::Answer;
use crate::steps::Outcome;

/// Asks the book; the inner error is for the person.
pub(crate) fn ask(
    txn: &mut dyn Txn,
    pools: &Pools,
    wish: &Wish,
) -> Result<Answer, mooring_book::Error> {
    let around = match wish.claim.want {
        Want::Range { count } if wish.claim.fixed.is_none() => {
            around_address(txn, pools, &wish.claim, count)?
        }
        _ => None,
    };
    if let Some(lease) = around {
        return Ok(Ok(lease));
    }
    let answer = mooring_book::allocate(txn, pools, &wish.claim)?;
    Ok(answer.map_err(|refusal| refusal.finding().on(&wish.object).at(wish.field())))
}

/// A range of `count` addresses around the one that the holder has; None where it has none, or there is no room.
fn around_address(
    txn: &mut dyn Txn,
    pools: &Pools,
    claim: &Claim,
    count: u32,
) -> Result<Option<Lease>, mooring_book::Error> {
    let held = txn.held_by(&claim.instance, &claim.holder)?;
    if !held.iter().any(|l| matches!(l.thing, Thing::Addr(_))) {
        return Ok(None);
    }
    let (mut found, now) = (None, txn.now());
    txn.with_table(&claim.instance, &mut |table| {
        let look = Look {
            pools,
            table,
            claim,
            now,
        };
        found = look.window(&held, count);
    })?;
    let Some((anchor, window, pieces)) = found else {
        return Ok(None);
    };
    for piece in pieces {
        if let Take::Lost(_) = txn.try_take(&claim.instance, &piece, &claim.holder)? {
            return Ok(None);
        }
    }
    Ok(Some(Lease {
        thing: Thing::Range(window),
        ..anchor
    }))
}

/// What is free around an address.
struct Look<'a> {
    pools: &'a Pools,
    table: &'a Table,
    claim: &'a Claim,
    now: mooring_api::Time,
}

impl Look<'_> {
    /// The address's lease, the range around it, and what must be taken for it. As it is if it has one; else
    /// beginning at the address, since host-local hands out the first one first; else as far up as there is room.
    fn window(&self, held: &[Lease], count: u32) -> Option<(Lease, AddrRange, Vec<Candidate>)> {
        let wanted = self.asking(Want::Address, None);
        let Ok(Decision::Keep(anchor)) =
            mooring_ipam::candidates(self.pools, self.table, &wanted, self.now)
        else {
            return None;
        };
        let Thing::Addr(addr) = anchor.thing else {
            return None;
        };
        let prefix = self.prefix(&anchor)?;
        let (family, at) = (Family::of(addr), Family::number(addr));
        let count = u128::from(count);
        let below = held.iter().filter_map(|l| match l.thing {
            Thing::Range(r) if Family::number(r.last()).checked_add(1) == Some(at) => {
                Some(r.count())
            }
            _ => None,
        });
        let own = Candidate {
            thing: anchor.thing,
            subnet: anchor.subnet,
            gateway: anchor.gateway,
        };
        below.chain(0..count).find_map(|below| {
            let first = at.checked_sub(below)?;
            let last = first.checked_add(count.checked_sub(1)?)?;
            if below >= count || !is_offered(prefix, family, first, last) {
                return None;
            }
            let mut pieces = vec![own];
            for (from, to) in [(first, at.checked_sub(1)?), (at.checked_add(1)?, last)] {
                if from <= to {
                    pieces.push(self.piece(family, from, to)?);
                }
            }
            let window = AddrRange::new(family.addr(first), family.addr(last)).ok()?;
            Some((anchor.clone(), window, pieces))
        })
    }

    /// Exactly these addresses, where they are free or the holder's own range.
    fn piece(&self, family: Family, from: u128, to: u128) -> Option<Candidate> {
        let count = u32::try_from(to - from + 1).ok()?;
        let first = HostCidr::single(family.addr(from));
        let claim = self.asking(Want::Range { count }, Some(first));
        let found = mooring_ipam::candidates(self.pools, self.table, &claim, self.now);
        found.ok()?.first()
    }

    fn asking(&self, want: Want, fixed: Option<HostCidr>) -> Claim {
        Claim {
            want,
            fixed,
            before: None,
            ..self.claim.clone()
        }
    }

    fn prefix(&self, lease: &Lease) -> Option<&Prefix> {
        let same = |p: &&Prefix| p.instance == lease.instance && Some(p.cidr) == lease.subnet;
        self.pools.prefixes.iter().find(same)
    }
}

/// Whether a range lies in the prefix, and in one of its ranges: what is taken by name may lie outside.
fn is_offered(prefix: &Prefix, family: Family, first: u128, last: u128) -> bool {
    let holds = |r: &AddrRange| {
        r.family() == family
            && Family::number(r.first()) <= first
            && last <= Family::number(r.last())
    };
    holds(&prefix.cidr.hosts()) && (prefix.ranges.is_empty() || prefix.ranges.iter().any(holds))
}

/// Whether a lease that no wish of this run named stays with the package: it is part of a range that is shown as
/// one, or the address that the agent will find.
pub(crate) fn stays(lease: &Lease, outcome: &Outcome) -> bool {
    let inside = |shown: &Lease| match (shown.thing, lease.thing.range()) {
        (Thing::Range(shown_range), Some(range)) => {
            shown_range.contains(range.first())
                && shown_range.contains(range.last())
                && shown.instance == lease.instance
                && shown.holder == lease.holder
        }
        _ => false,
    };
    let at_pod_start = |port: &Port| {
        matches!(lease.thing, Thing::Addr(_)) && port.waits_for_pod() && is_of(port, lease)
    };
    outcome.held.iter().any(inside) || outcome.ports.iter().any(at_pod_start)
}

pub(crate) fn is_of(port: &Port, lease: &Lease) -> bool {
    port.instance.as_ref() == Some(&lease.instance) && port.is_for(&lease.holder)
}

/// What is said of a lease that goes back although its interface is still there. `stayed` is what no wish named.
pub(crate) fn lost(lease: &Lease, outcome: &Outcome, stayed: &[Lease]) -> Option<Finding> {
    let port = outcome.ports.iter().find(|p| is_of(p, lease))?;
    let now: Vec<&Lease> = outcome
        .held
        .iter()
        .chain(stayed)
        .filter(|l| is_of(port, l))
        .collect();
    let gone = lease.thing;
    let is_range = |l: &&Lease| matches!(l.thing, Thing::Range(_));
    let what = match gone {
        Thing::Addr(_) if now.iter().any(is_range) => {
            format!("{gone} is not kept: there is no room for the range around it")
        }
        Thing::Addr(_) if now.is_empty() => format!("{gone} is not kept: it stands in no claim"),
        // Beside the address that stays: it came with it, and goes with it.
        Thing::Range(range) if now.iter().any(|l| touches(l, range)) => return None,
        Thing::Range(_) => format!(
            "what pods have of {gone} is not kept: which addresses these are is known to their nodes only"
        ),
        _ => return None,
    };
    let names: Vec<String> = now.iter().map(|l| l.thing.to_string()).collect();
    let then = if !names.is_empty() {
        format!("it has {} now", names.join(", "))
    } else if port.waits_for_pod() {
        "the agent takes another one when the pod starts".to_owned()
    } else {
        "an external system gives it another one".to_owned()
    };
    Some(
        Finding::warning(Code::AddressNotKept, format!("{what}; {then}"))
            .on(&port.object)
            .at(format!(
                "metadata.annotations[{}]",
                annotation::IPAM_FLAVOUR
            ))
            .help(if matches!(gone, Thing::Addr(_)) && !names.is_empty() {
                "Choose a smaller mooring.dev/range-size to keep it, or tell its peers before you deploy."
            } else {
                "Tell its peers before you deploy, or go back to the flavour that it had."
            }),
    )
}

/// Whether it is an address that was held before, directly beside a range.
fn touches(lease: &Lease, range: AddrRange) -> bool {
    let (Thing::Addr(addr), State::Held) = (lease.thing, lease.state) else {
        return false;
    };
    let at = Family::number(addr);
    let beside = |a: u128, b: u128| a.checked_add(1) == Some(b);
    Family::of(addr) == range.family()
        && (beside(at, Family::number(range.first())) || beside(Family::number(range.last()), at))
}
