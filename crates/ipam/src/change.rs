//! Changing a pool: who would change, and how, before anything does.
//!
//! ```text
//!  Pools, Table, what is asked ─► draw (the prefix as it would be) ─► place (who must move, and where to)
//!      └─► Plan: prefixes, effects     or     Refused: findings, and whom they are about
//! ```
//!
//! `package` calls [`plan`] inside of a transaction and does what it says, to the files and to the book at once.
//! The pools as they would be must pass [`Pools::check`], as those that a person writes.
//!
//! Easy to get wrong: what a plan vacates stays taken until the transaction commits, and rests after it; so nobody
//! is ever given an address that another one leaves in the same act.

mod draw;
mod place;
#[cfg(test)]
mod property;
#[cfg(test)]
mod tests;

use std::net::IpAddr;

use mooring_api::{AddrRange, Cidr, Code, Finding, HostCidr, Span, Time};

use crate::{Candidate, Holder, InstanceKey, Lease, Pools, Prefix, Table, Thing};

/// What is asked of a prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It becomes a wider one around it. Nobody moves.
    Grow {
        /// The wider one.
        to: Cidr,
        /// Where addresses are taken from then; None leaves the ranges as they are.
        ranges: Option<Vec<AddrRange>>,
    },
    /// It gives less than before.
    Shrink {
        /// A part of it; None leaves the prefix as it is.
        to: Option<Cidr>,
        /// Where addresses are taken from then; empty leaves the ranges as they are.
        ranges: Vec<AddrRange>,
        /// What is not handed out any more, beside what was so already.
        exclude: Vec<AddrRange>,
    },
    /// It becomes several of this length, side by side.
    Split {
        /// The prefix length of the parts.
        len: u8,
    },
    /// Nothing new is handed out.
    Drain,
    /// The end of [`Change::Drain`].
    Undrain,
    /// Everybody gets the same place in another prefix: one that is there already, or the same object anew.
    Renumber {
        /// The other prefix.
        to: Cidr,
    },
}

/// Somebody who changes, or who should and cannot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Who.
    pub holder: Holder,
    /// What it has, as the book knows it.
    pub from: Candidate,
    /// What it gets; None where it stays and should not.
    pub to: Option<Candidate>,
    /// Why, in words.
    pub why: String,
    /// How long what it leaves rests.
    pub rest: Span,
}

impl Effect {
    /// Whether the thing itself is another one, and not only its mask or gateway.
    pub fn is_move(&self) -> bool {
        self.to.is_some_and(|to| to.thing != self.from.thing)
    }
}

/// What a change comes to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Where.
    pub instance: InstanceKey,
    /// The prefix as it is.
    pub before: Prefix,
    /// What becomes of its object: itself, or several after a split, the first in its place.
    pub after: Vec<Prefix>,
    /// A prefix of the instance that goes along: field of the NetworkInstance, and its new value.
    pub aggregate: Option<(String, Cidr)>,
    /// Who changes, and who stays and should not; ordered by what they have.
    pub effects: Vec<Effect>,
    /// What a person should know beside.
    pub notes: Vec<String>,
}

impl Plan {
    /// Whether anything changes.
    pub fn is_change(&self) -> bool {
        self.after != std::slice::from_ref(&self.before)
            || self.effects.iter().any(|e| e.to.is_some())
    }

    /// The pools after it.
    pub fn pools(&self, pools: &Pools) -> Pools {
        let mut new = pools.clone();
        let at = new.prefixes.iter().position(|p| *p == self.before);
        if let Some(at) = at {
            new.prefixes.splice(at..=at, self.after.iter().cloned());
        }
        let instance = new.instances.get_mut(&self.instance);
        if let (Some((field, to)), Some(instance)) = (&self.aggregate, instance) {
            for (cidr, _) in instance.aggregates.iter_mut().filter(|a| a.1 == *field) {
                *cidr = *to;
            }
        }
        new
    }
}

/// Why a change is not made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// What is in the way.
    pub findings: Vec<Finding>,
    /// Whom it is about.
    pub effects: Vec<Effect>,
}

impl From<Finding> for Refused {
    fn from(finding: Finding) -> Self {
        Self {
            findings: vec![finding],
            effects: Vec::new(),
        }
    }
}

/// What `change` of the prefix at `at` (see [`Pools::find`]) comes to. With `moves`, who cannot stay gets something
/// else; without, that is a refusal. The table is that of the prefix's instance.
pub fn plan(
    pools: &Pools,
    table: &Table,
    at: usize,
    change: &Change,
    moves: bool,
    now: Time,
) -> Result<Plan, Refused> {
    let before = &pools.prefixes[at];
    let drawn = draw::draw(pools, before, change)?;
    let mut plan = Plan {
        instance: before.instance.clone(),
        before: before.clone(),
        after: drawn.after,
        aggregate: drawn.aggregate,
        effects: Vec::new(),
        notes: drawn.notes,
    };
    if let Some(finding) = place::kept_outside(&plan) {
        return Err(finding.into());
    }
    let new = plan.pools(pools);
    let known = pools.check();
    let wrong = new.check().into_iter().filter(|f| !known.contains(f));
    let wrong: Vec<Finding> = wrong.filter(Finding::is_error).collect();
    if !wrong.is_empty() {
        return Err(Refused {
            findings: wrong,
            effects: Vec::new(),
        });
    }
    let world = place::World {
        pools,
        new: &new,
        table,
        now,
    };
    let told = world.effects(&plan, &drawn.into, change, moves)?;
    plan.effects = told.effects;
    plan.notes.extend(told.notes);
    Ok(plan)
}

impl Pools {
    /// The prefixes that a person may mean: by network, or by the name of the IPPrefix.
    pub fn find(&self, wanted: &str, instance: Option<&InstanceKey>) -> Vec<usize> {
        let cidr: Option<Cidr> = wanted.parse::<HostCidr>().ok().map(|host| host.subnet());
        let fits = |p: &Prefix| {
            instance.is_none_or(|i| p.instance == *i)
                && (Some(p.cidr) == cidr || p.origin.name == wanted)
        };
        let all = self.prefixes.iter().enumerate();
        all.filter(|(_, p)| fits(p)).map(|(at, _)| at).collect()
    }

    /// The prefix that something was taken from, as they lie today: the narrowest around it.
    pub(crate) fn home(&self, instance: &InstanceKey, thing: &Thing) -> Option<usize> {
        let range = thing.range()?;
        let around = |p: &Prefix| {
            p.instance == *instance && p.covers(&range) && *thing != Thing::Block(p.cidr)
        };
        let all = self.prefixes.iter().enumerate();
        let narrowest = all.filter(|(_, p)| around(p)).max_by_key(|(at, p)| {
            let inner = std::cmp::Reverse((p.kind, *at));
            (p.cidr.prefix_len(), inner)
        });
        narrowest.map(|(at, _)| at)
    }
}

impl Prefix {
    /// Whether its ranges and exclusions let this be chosen.
    pub(crate) fn gives(&self, range: &AddrRange) -> bool {
        let spans: Vec<_> = self
            .ranges
            .iter()
            .copied()
            .map(crate::space::span)
            .collect();
        let (first, last) = crate::space::span(*range);
        let inside = spans.is_empty()
            || crate::space::joined(spans)
                .iter()
                .any(|s| s.0 <= first && last <= s.1);
        inside && !self.exclude.iter().any(|e| e.overlaps(range))
    }
}

fn refused(prefix: &Prefix, message: impl Into<String>) -> Finding {
    Finding::error(Code::PoolChangeRefused, message)
        .on(&prefix.origin)
        .at(&prefix.field)
}

/// The lease as the book has it.
fn seen(lease: &Lease) -> Candidate {
    Candidate {
        thing: lease.thing,
        subnet: lease.subnet,
        gateway: lease.gateway,
    }
}

/// What a lease of this thing is when it comes out of `prefix`. A loopback is alone in its subnet and stays so.
fn out_of(prefix: &Prefix, lease: &Lease, thing: Thing) -> Candidate {
    let is_alone = |addr: IpAddr| lease.subnet == Some(Cidr::containing(addr, u8::MAX));
    match (lease.thing, thing) {
        (Thing::Addr(was), Thing::Addr(addr))
            if prefix.kind != crate::Kind::Network && is_alone(was) =>
        {
            Candidate {
                thing,
                subnet: Some(Cidr::containing(addr, u8::MAX)),
                gateway: None,
            }
        }
        _ => Candidate {
            thing,
            subnet: Some(prefix.cidr),
            gateway: prefix
                .gateway
                .filter(|_| prefix.kind == crate::Kind::Network),
        },
    }
}
