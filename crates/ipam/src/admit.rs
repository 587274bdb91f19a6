//! What is refused before it is stored: a change of pools that takes addresses away from under their holders or makes
//! two pools fight, and a claim that no pool could ever serve.
//!
//! The webhook calls it with what the API server holds and what it would hold. Easy to get wrong: only what the change
//! itself brings is refused. Pools that were wrong before stay editable, or nobody could mend them.

use std::fmt::Write as _;

use mooring_api::{Code, Finding, Time};

use crate::candidates::candidates;
use crate::refusal::{Refusal, Unusable};
use crate::{Claim, Lease, Pools, State, Table, Want};

/// Holders that are named in a refusal; the rest are counted.
const NAMED: usize = 3;

/// What is wrong with `after` that was not wrong before, leases that lose their prefix included.
pub fn pools(before: &Pools, after: &Pools, leases: &[Lease], now: Time) -> Vec<Finding> {
    let known = before.check();
    let new = after.check().into_iter();
    let mut findings: Vec<Finding> = new.filter(|f| f.is_error() && !known.contains(f)).collect();
    let live = |l: &&Lease| !matches!(l.state, State::Cooling { .. }) && l.state.is_live(now);
    let lost = leases.iter().filter(live).filter(|l| {
        before.home(&l.instance, &l.thing).is_some() && after.home(&l.instance, &l.thing).is_none()
    });
    findings.extend(orphaned(&lost.collect::<Vec<_>>()));
    findings
}

fn orphaned(leases: &[&Lease]) -> Option<Finding> {
    let (first, rest) = leases.split_first()?;
    let mut text = format!(
        "{} of {} would lie in no prefix any more: {}",
        if rest.is_empty() {
            "an address in use".to_owned()
        } else {
            format!("{} addresses in use", leases.len())
        },
        first.instance,
        named(first)
    );
    for lease in rest.iter().take(NAMED - 1) {
        let _ = write!(text, ", {}", named(lease));
    }
    if leases.len() > NAMED {
        let _ = write!(text, " and {} more", leases.len() - NAMED);
    }
    let help = "Drain the prefix and move its holders first (moor pool drain, moor pool renumber), or keep their part of it.";
    Some(Finding::error(Code::PoolChangeRefused, text).help(help))
}

fn named(lease: &Lease) -> String {
    format!("{} ({})", lease.thing, lease.holder)
}

/// Why no pool could serve this claim, were all of them empty. A claim whose instance or prefixes are not there yet is
/// fine: objects are applied in any order, and the claim waits.
pub fn claim(pools: &Pools, claim: &Claim, now: Time) -> Option<Finding> {
    let refusal = candidates(pools, &Table::new(claim.instance.clone()), claim, now).err()?;
    let never = match &refusal {
        // A drain ends, and is the operator's to end.
        Refusal::NotUsable { why, .. } => *why != Unusable::Drained,
        Refusal::OutsidePrefix { .. } | Refusal::NoSuchIndex { .. } => true,
        Refusal::Exhausted { .. } => !matches!(claim.want, Want::Vlan { .. }),
        Refusal::NoMatchingPrefix { .. } => too_large(pools, claim),
        Refusal::UnknownInstance { .. }
        | Refusal::Held { .. }
        | Refusal::Cooling { .. }
        | Refusal::Kept { .. } => false,
    };
    never.then(|| refusal.finding())
}

/// Whether the claim asks for a block that is larger than every prefix of its instance.
fn too_large(pools: &Pools, claim: &Claim) -> bool {
    let Want::Block { len } = claim.want else {
        return false;
    };
    let mut own = pools
        .prefixes
        .iter()
        .filter(|p| p.instance == claim.instance)
        .peekable();
    own.peek().is_some() && own.all(|p| p.cidr.prefix_len() >= len)
}

#[cfg(test)]
mod tests;
