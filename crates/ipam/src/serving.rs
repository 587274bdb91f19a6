//! Which prefixes may serve a claim, in which turn, and why the others may not.
//!
//! Instance, family, kind, length, labels, cluster: each that does not fit is named, because "no prefix
//! matches" without the reason is what users of such systems complain about most. One pass over the prefixes.
//!
//! Easy to get wrong: `nephio.org/network-name` is matched by the prefix's label, else by the instance's
//! name, else by being the only prefix (DESIGN §4); every other label must be there.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::ops::Deref;
use std::rc::Rc;

use mooring_api::{Cidr, Family, Selector, Span, label};

use crate::{Claim, Instance, Kind, Mismatch, Pools, Prefix, Refusal, Want};

/// How many prefixes a refusal names.
pub(crate) const SHOWN: usize = 5;

/// Whether the claim's kind and family have one prefix in the instance.
type Only<'a> = dyn Fn() -> bool + 'a;

/// A prefix to take from: one that was read, or an aggregate that only its instance lists.
#[derive(Clone)]
pub(crate) enum Source<'a> {
    Read(&'a Prefix),
    Made(Rc<Prefix>),
}

impl Deref for Source<'_> {
    type Target = Prefix;

    fn deref(&self) -> &Prefix {
        match self {
            Self::Read(prefix) => prefix,
            Self::Made(prefix) => prefix,
        }
    }
}

/// What the prefixes are asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Serving {
    /// What somebody has already: one that is drained is among them.
    Held,
    /// Something new: one that is drained gives none.
    New,
}

/// The prefixes that may serve the claim: those of its own kind first, then aggregates, each in the order
/// they were read.
pub(crate) fn serving<'a>(
    pools: &'a Pools,
    claim: &Claim,
    what: Serving,
) -> Result<Vec<Source<'a>>, Refusal> {
    let instance = pools.instances.get(&claim.instance);
    let read = || {
        pools
            .prefixes
            .iter()
            .filter(|p| p.instance == claim.instance)
    };
    if instance.is_none() && read().next().is_none() {
        return Err(Refusal::UnknownInstance {
            instance: claim.instance.clone(),
            known: pools.instances.keys().take(SHOWN).cloned().collect(),
        });
    }
    let made: Vec<Source<'a>> = match instance {
        Some(instance) if turn(Kind::Aggregate, claim).is_some() => aggregates(pools, instance)
            .map(|prefix| Source::Made(Rc::new(prefix)))
            .collect(),
        _ => Vec::new(),
    };
    let here = || read().map(Source::Read).chain(made.iter().cloned());
    let count = OnceCell::new();
    let only = || {
        let fitting = || {
            here()
                .filter(|p| p.cidr.family() == claim.holder.family)
                .filter(|p| turn(p.kind, claim).is_some())
                .count()
        };
        *count.get_or_init(fitting) == 1
    };
    let mut chosen: Vec<Source<'a>> = here()
        .filter(|p| turn(p.kind, claim).is_some() && fits(p, claim, &only))
        .collect();
    if chosen.is_empty() || (what == Serving::New && chosen.iter().all(|p| p.drain)) {
        let all = here().map(|prefix| Mismatch {
            prefix: prefix.cidr,
            origin: prefix.origin.clone(),
            why: reasons(&prefix, claim, &only),
        });
        return Err(Refusal::NoMatchingPrefix {
            instance: claim.instance.clone(),
            kind: claim.kind,
            want: claim.want,
            prefixes: all.take(SHOWN).collect(),
            more: here().count().saturating_sub(SHOWN),
        });
    }
    if what == Serving::New {
        chosen.retain(|p| !p.drain);
    }
    // Stable: the order of reading decides among equals.
    chosen.sort_by_key(|p| turn(p.kind, claim));
    Ok(chosen)
}

/// `spec.prefixes` of the instance, as prefixes to cut from, where nobody listed them as such.
fn aggregates(pools: &Pools, instance: &Instance) -> impl Iterator<Item = Prefix> {
    let listed = |cidr: &Cidr| {
        let same = |p: &&Prefix| p.kind == Kind::Aggregate && p.cidr == *cidr;
        pools
            .prefixes
            .iter()
            .filter(same)
            .any(|p| p.instance == instance.key)
    };
    instance
        .aggregates
        .iter()
        .filter(move |(cidr, _)| !listed(cidr))
        .map(|(cidr, field)| Prefix {
            origin: instance.origin.clone(),
            field: field.clone(),
            instance: instance.key.clone(),
            cidr: *cidr,
            kind: Kind::Aggregate,
            labels: BTreeMap::new(),
            gateway: None,
            ranges: Vec::new(),
            exclude: Vec::new(),
            cool_down: Span::default(),
            drain: false,
            kept: Vec::new(),
        })
}

/// Which kinds of prefix serve a claim, and in which turn (research: kinds and nesting).
fn turn(kind: Kind, claim: &Claim) -> Option<u8> {
    let parents: &[Kind] = match (claim.want, claim.kind) {
        (Want::Address, Kind::Network) => &[Kind::Network],
        (Want::Address, Kind::Loopback) => &[Kind::Loopback, Kind::Aggregate],
        // A pool gives blocks for somebody else to hand out, and an aggregate gives prefixes.
        (Want::Address, Kind::Pool | Kind::Aggregate) => &[],
        (Want::Block { .. }, Kind::Pool) => &[Kind::Pool, Kind::Aggregate],
        (Want::Block { .. }, _) => &[Kind::Aggregate],
        (Want::Range { .. }, Kind::Network) => &[Kind::Network],
        (Want::Range { .. }, Kind::Loopback) => &[Kind::Loopback],
        (Want::Range { .. }, Kind::Pool) => &[Kind::Pool],
        (Want::Range { .. }, Kind::Aggregate) => &[Kind::Aggregate],
        (Want::Vlan { .. }, _) => &[],
    };
    let at = parents.iter().position(|parent| *parent == kind)?;
    u8::try_from(at).ok()
}

fn fits(prefix: &Prefix, claim: &Claim, only: &Only) -> bool {
    prefix.cidr.family() == claim.holder.family
        && is_wide_enough(prefix, claim)
        && other_cluster(prefix, claim).is_none()
        && (claim.selector.is_empty() || unmet(prefix, &claim.selector, only).next().is_none())
}

/// A block is smaller than what it is cut from.
fn is_wide_enough(prefix: &Prefix, claim: &Claim) -> bool {
    match claim.want {
        Want::Block { len } => prefix.cidr.prefix_len() < len && len <= prefix.cidr.family().bits(),
        Want::Range { count } => count > 0 && u128::from(count) <= prefix.cidr.range().count(),
        Want::Address | Want::Vlan { .. } => true,
    }
}

/// The cluster a prefix belongs to, where that is not the claim's and the claim does not ask for it.
fn other_cluster<'a>(prefix: &'a Prefix, claim: &Claim) -> Option<&'a str> {
    let cluster = prefix.labels.get(label::CLUSTER_NAME)?;
    let expressions = &claim.selector.match_expressions;
    let selected = claim
        .selector
        .match_labels
        .contains_key(label::CLUSTER_NAME)
        || expressions.iter().any(|e| e.key == label::CLUSTER_NAME);
    let same = *cluster == claim.holder.cluster || claim.holder.cluster.is_empty();
    (!selected && !same).then_some(cluster)
}

/// Whether the prefix has this label, or is what the label says.
fn has(prefix: &Prefix, key: &str, value: &str, only: &Only) -> bool {
    match (prefix.labels.get(key), key) {
        (Some(has), _) => has == value,
        // What a prefix is stands in no label that people write, yet claims select by it.
        (None, label::ADDRESS_FAMILY) => prefix.cidr.family().to_string() == value,
        (None, label::PREFIX_KIND) => prefix.kind.as_str() == value,
        (None, label::NETWORK_NAME) => prefix.instance.name() == value || only(),
        (None, _) => false,
    }
}

/// The parts of the selector that the prefix does not meet.
fn unmet<'a>(
    prefix: &'a Prefix,
    selector: &'a Selector,
    only: &'a Only,
) -> impl Iterator<Item = String> + 'a {
    let pairs = selector.match_labels.iter();
    let pairs = pairs
        .filter(|(key, value)| !has(prefix, key, value, only))
        .map(|(key, value)| match prefix.labels.get(key) {
            Some(has) => format!("has {key}={has}, not {value}"),
            None => format!("has no label {key}={value}"),
        });
    let expressions = selector.match_expressions.iter().filter_map(|expression| {
        let alone = Selector {
            match_labels: BTreeMap::new(),
            match_expressions: vec![expression.clone()],
        };
        (!alone.matches(&prefix.labels)).then(|| format!("does not meet {expression}"))
    });
    pairs.chain(expressions)
}

fn reasons(prefix: &Prefix, claim: &Claim, only: &Only) -> Vec<String> {
    let mut why = Vec::new();
    let family: Family = prefix.cidr.family();
    if family != claim.holder.family {
        why.push(format!("is {family}"));
    }
    if turn(prefix.kind, claim).is_none() {
        why.push(format!("is of kind {}", prefix.kind.as_str()));
    }
    if family == claim.holder.family && !is_wide_enough(prefix, claim) {
        why.push("is too small".to_owned());
    }
    if let Some(cluster) = other_cluster(prefix, claim) {
        why.push(format!("belongs to cluster {cluster}"));
    }
    why.extend(unmet(prefix, &claim.selector, only));
    if prefix.drain {
        why.push("is being drained".to_owned());
    }
    why
}

#[cfg(test)]
mod tests;
