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
use mooring_blueprint::claim::{self, Given, Wish};
use mooring_blueprint::port::Port;
use mooring_book::{Outcome as Take, Txn};
use mooring_ipam::{
    Candidate, Claim, Decision, Lease, Pools, Prefix, Refusal, State, Table, Thing, Want,
};

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
            around_address(txn, pools, wish, count)?
        }
        _ => None,
    };
    if let Some(given) = around {
        return Ok(Ok(given));
    }
    let answer = mooring_book::allocate(txn, pools, &wish.claim)?;
    let refused = |refusal: Refusal| refusal.finding().on(&wish.object).at(wish.field());
    Ok(answer.map(Given::from).map_err(refused))
}

/// A range of `count` addresses around the one that the holder has, or of which its claim says so; None where there
/// is none, or no room around it.
fn around_address(
    txn: &mut dyn Txn,
    pools: &Pools,
    wish: &Wish,
    count: u32,
) -> Result<Option<Given>, mooring_book::Error> {
    let claim = &wish.claim;
    let held = txn.held_by(&claim.instance, &claim.holder)?;
    let has_address = held.iter().any(|l| matches!(l.thing, Thing::Addr(_)));
    let has_range = held.iter().any(|l| matches!(l.thing, Thing::Range(_)));
    // What the book holds is true; what the claim says is for a book that lost it.
    let fixed = match (has_address, wish.kept) {
        (true, _) => None,
        (false, Some(addr)) if !has_range => Some(HostCidr::single(addr)),
        _ => return Ok(None),
    };
    let (mut found, now) = (None, txn.now());
    txn.with_table(&claim.instance, &mut |table| {
        let look = Look {
            pools,
            table,
            claim,
            now,
        };
        found = look.window(fixed, &held, count);
    })?;
    let Some((window, [first, rest @ ..])) = found.as_ref().map(|(w, p)| (*w, p.as_slice())) else {
        return Ok(None);
    };
    let Take::Won(anchor) = txn.try_take(&claim.instance, first, &claim.holder)? else {
        return Ok(None);
    };
    for piece in rest {
        if let Take::Lost(_) = txn.try_take(&claim.instance, piece, &claim.holder)? {
            return Ok(None);
        }
    }
    let kept = match anchor.thing {
        Thing::Addr(addr) => Some(addr),
        _ => None,
    };
    let lease = Lease {
        thing: Thing::Range(window),
        ..anchor
    };
    Ok(Some(Given { lease, kept }))
}

/// What is free around an address.
struct Look<'a> {
    pools: &'a Pools,
    table: &'a Table,
    claim: &'a Claim,
    now: mooring_api::Time,
}

impl Look<'_> {
    /// The range around the address, and what must be taken for it, the address first. As it is if it has one; else
    /// beginning at the address, since host-local hands out the first one first; else as far up as there is room.
    fn window(
        &self,
        fixed: Option<HostCidr>,
        held: &[Lease],
        count: u32,
    ) -> Option<(AddrRange, Vec<Candidate>)> {
        let wanted = self.asking(Want::Address, fixed);
        let anchor = mooring_ipam::candidates(self.pools, self.table, &wanted, self.now);
        let anchor = match (anchor.ok()?, fixed) {
            // It lies in no prefix of today.
            (Decision::Offer(_), None) => return None,
            (decision, _) => decision.first()?,
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
        below.chain(0..count).find_map(|below| {
            let first = at.checked_sub(below)?;
            let last = first.checked_add(count.checked_sub(1)?)?;
            if below >= count || !is_offered(prefix, family, first, last) {
                return None;
            }
            let window = AddrRange::new(family.addr(first), family.addr(last)).ok()?;
            let mut pieces = vec![anchor];
            for thing in claim::pieces(window, Some(addr)) {
                if let Thing::Range(range) = thing {
                    pieces.push(self.piece(range)?);
                }
            }
            Some((window, pieces))
        })
    }

    /// Exactly these addresses, where they are free or the holder's own range.
    fn piece(&self, range: AddrRange) -> Option<Candidate> {
        let count = u32::try_from(range.count()).ok()?;
        let first = HostCidr::single(range.first());
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

    fn prefix(&self, anchor: &Candidate) -> Option<&Prefix> {
        let same = |p: &&Prefix| p.instance == self.claim.instance && Some(p.cidr) == anchor.subnet;
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
                "Tell its peers before you deploy, or go back to the flavour and range that it had."
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
