//! Addresses that are held on to: reserved for a draft, and pinned when an older version comes back.
//!
//! A draft's transaction is reserved and never committed itself: publishing renders once more and commits that. So of a draft's
//! transaction only the takes matter, and a draft whose takes are all there already reserves nothing again.
//!
//! Easy to get wrong: pinning must be asked for before the book answers, since what a holder has is kept before anything else; and it
//! must be checked afterwards, since ranges and Nephio's claims cannot be asked for by number.

use std::collections::BTreeMap;

use mooring_api::{Code, Finding, HostCidr, Span, Time};
use mooring_blueprint::claim::Wish;
use mooring_book::{Filter, Store};
use mooring_ipam::{InstanceKey, Lease, State, Thing};

use crate::Error;
use crate::decide::Decided;
use crate::read;
use crate::report::{Dialect, Request};
use crate::unit::Unit;

/// Whether something that the packages got is not held, nor reserved for at least half of the span.
pub(crate) fn is_wanted(
    store: &dyn Store,
    decided: &[Decided],
    now: Time,
    span: Span,
) -> Result<bool, Error> {
    let half = now.after(Span(span.0 / 2));
    let lasts = |lease: &Lease| match lease.state {
        State::Held => true,
        State::Reserved { until, .. } => until >= half,
        State::Cooling { .. } => false,
    };
    let mut known: BTreeMap<InstanceKey, Vec<Lease>> = BTreeMap::new();
    for wanted in decided.iter().flat_map(|d| &d.outcome.held) {
        if !known.contains_key(&wanted.instance) {
            let filter = Filter {
                instance: Some(wanted.instance.clone()),
                ..Filter::default()
            };
            known.insert(wanted.instance.clone(), store.leases(&filter)?);
        }
        let is_it = |lease: &Lease| {
            (lease.thing, &lease.holder) == (wanted.thing, &wanted.holder) && lasts(lease)
        };
        if !known[&wanted.instance].iter().any(is_it) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The wish for what the package says it has, and nothing else.
pub(crate) fn fixed(wish: &Wish) -> Wish {
    let mut wish = wish.clone();
    if let (None, Some(Thing::Addr(addr))) = (wish.claim.fixed, wish.claim.before) {
        wish.claim.fixed = Some(HostCidr::single(addr));
    }
    wish
}

/// What each package says it has; nothing where that need not stay.
pub(crate) fn pinned(request: &Request, units: &[Unit], ids: &[String]) -> Vec<Vec<Lease>> {
    if !request.pinned {
        return Vec::new();
    }
    let one = |(unit, id): (&Unit, &String)| match (read::cluster(unit), unit.dialect()) {
        (Some(cluster), Dialect::Native) => read::said(unit, id, &cluster, request.now).1.leases,
        (Some(_), Dialect::Nephio) => crate::nephio::said(unit, id, request.now).leases,
        (None, _) => Vec::new(),
    };
    units.iter().zip(ids).map(one).collect()
}

/// What did not stay, and who has it now.
pub(crate) fn check_pinned(
    store: &dyn Store,
    pinned: &[Vec<Lease>],
    units: &[Unit],
    decided: &[Decided],
) -> Result<Vec<Finding>, Error> {
    let mut findings = Vec::new();
    for ((said, unit), decided) in pinned.iter().zip(units).zip(decided) {
        let held = &decided.outcome.held;
        for lease in said {
            let kept = |l: &&Lease| (&l.instance, l.thing) == (&lease.instance, lease.thing);
            if held.iter().any(|l| kept(&l)) {
                continue;
            }
            let filter = Filter {
                instance: Some(lease.instance.clone()),
                addr: lease.thing.range().map(|range| range.first()),
                ..Filter::default()
            };
            let other = store.leases(&filter)?;
            let other = other.iter().find(|other| other.holder != lease.holder);
            let why = match other {
                Some(other) => format!("{} has it now", other.holder),
                None => "it cannot be given any more".to_owned(),
            };
            findings.push(unit.locate(
                Finding::error(
                    Code::AddressHeld,
                    format!(
                        "{} of {} had {} in this version, and {why}",
                        lease.holder.interface,
                        unit.bundle.marks.name,
                        lease.thing
                    ),
                )
                .help("Give it back there first, or push this version's files as a new draft, which gets other addresses."),
            ));
        }
    }
    Ok(findings)
}
