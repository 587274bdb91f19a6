//! Whether the pools make sense before anything is taken from them.
//!
//! ```text
//!  aggregate ⊃ anything     pool ⊃ pool     everything else in one instance lies side by side
//!  two instances lie side by side, unless both are isolated
//! ```
//!
//! One finding per prefix and kind of mistake, on the one that was read later, naming the other. Prefixes are
//! looked up by each length in use above them: O(prefixes · lengths), not every pair.

use std::collections::{BTreeMap, BTreeSet};

use mooring_api::{AddrRange, Cidr, Code, Family, Finding, ObjectRef, annotation};

use crate::{InstanceKey, Kind, Pools, Prefix};

/// A prefix, or an aggregate of an instance, in the order they were read (instances first).
struct Row<'a> {
    origin: &'a ObjectRef,
    field: &'a str,
    instance: &'a InstanceKey,
    cidr: Cidr,
    kind: Kind,
}

impl Pools {
    /// Prefixes that overlap, lie outside their instance, or have a gateway, ranges or allocations outside
    /// themselves. In the nephio dialect the caller lowers `OverlappingPrefixes` between instances to
    /// warnings.
    pub fn check(&self) -> Vec<Finding> {
        let rows = self.rows();
        let mut findings = self.overlaps(&rows);
        for prefix in &self.prefixes {
            findings.extend(self.outside_instance(prefix));
            findings.extend(inner(prefix));
        }
        findings
    }

    fn rows(&self) -> Vec<Row<'_>> {
        let aggregates = self.instances.values().flat_map(|instance| {
            instance.aggregates.iter().map(|(cidr, field)| Row {
                origin: &instance.origin,
                field,
                instance: &instance.key,
                cidr: *cidr,
                kind: Kind::Aggregate,
            })
        });
        let prefixes = self.prefixes.iter().map(|prefix| Row {
            origin: &prefix.origin,
            field: &prefix.field,
            instance: &prefix.instance,
            cidr: prefix.cidr,
            kind: prefix.kind,
        });
        aggregates.chain(prefixes).collect()
    }

    fn is_isolated(&self, key: &InstanceKey) -> bool {
        self.instances.get(key).is_some_and(|i| i.isolated)
    }

    fn overlaps(&self, rows: &[Row<'_>]) -> Vec<Finding> {
        let mut by_cidr: BTreeMap<Cidr, Vec<usize>> = BTreeMap::new();
        let mut lengths: BTreeSet<(Family, u8)> = BTreeSet::new();
        for (at, row) in rows.iter().enumerate() {
            by_cidr.entry(row.cidr).or_default().push(at);
            lengths.insert((row.cidr.family(), row.cidr.prefix_len()));
        }
        // The later row of each pair gets the finding, once, with the earliest other.
        let mut worst: BTreeMap<usize, usize> = BTreeMap::new();
        for (at, row) in rows.iter().enumerate() {
            let family = row.cidr.family();
            let wider = lengths.range((family, 0)..=(family, row.cidr.prefix_len()));
            for (_, len) in wider {
                let around = Cidr::containing(row.cidr.network(), *len);
                for other in by_cidr.get(&around).into_iter().flatten().copied() {
                    let seen_later = around == row.cidr && other >= at;
                    if seen_later || self.may_nest(&rows[other], row) {
                        continue;
                    }
                    let (first, later) = (at.min(other), at.max(other));
                    let kept = worst.entry(later).or_insert(first);
                    *kept = (*kept).min(first);
                }
            }
        }
        worst
            .into_iter()
            .map(|(later, first)| overlap(&rows[later], &rows[first]))
            .collect()
    }

    /// Whether `inner` may lie in (or equal) `outer`.
    fn may_nest(&self, outer: &Row<'_>, inner: &Row<'_>) -> bool {
        if outer.instance != inner.instance {
            return self.is_isolated(outer.instance) && self.is_isolated(inner.instance);
        }
        if outer.cidr == inner.cidr {
            // The same prefix twice is a mistake, unless one is what the other lies in.
            let aggregate = outer.kind == Kind::Aggregate || inner.kind == Kind::Aggregate;
            let same_place = outer.origin == inner.origin && outer.field == inner.field;
            return same_place || (aggregate && outer.kind != inner.kind);
        }
        matches!(
            (outer.kind, inner.kind),
            (Kind::Aggregate, _) | (Kind::Pool, Kind::Pool)
        )
    }

    fn outside_instance(&self, prefix: &Prefix) -> Option<Finding> {
        let instance = self.instances.get(&prefix.instance)?;
        let aggregates: Vec<Cidr> = instance.aggregates.iter().map(|(cidr, _)| *cidr).collect();
        if aggregates.is_empty() || aggregates.iter().any(|a| a.covers(&prefix.cidr)) {
            return None;
        }
        let shown: Vec<String> = aggregates.iter().take(5).map(ToString::to_string).collect();
        let message = format!(
            "{} lies outside of network instance {}, which has {}",
            prefix.cidr,
            prefix.instance,
            shown.join(", ")
        );
        let finding = Finding::error(Code::PrefixOutsideInstance, message)
            .on(&prefix.origin)
            .at(&prefix.field)
            .help("add a prefix that covers it to the instance, or correct this one");
        Some(finding)
    }
}

fn overlap(later: &Row<'_>, first: &Row<'_>) -> Finding {
    let place = if later.instance == first.instance {
        format!("in network instance {}", first.instance)
    } else {
        format!("of network instance {}", first.instance)
    };
    let message = format!(
        "{} ({}) overlaps {} of {} {place}",
        later.cidr,
        later.kind.as_str(),
        first.cidr,
        first.origin
    );
    let help = if later.instance == first.instance {
        "give each prefix addresses of its own; only aggregates and pools hold other prefixes"
    } else {
        "use other addresses, or mark both instances with mooring.dev/isolated: \"true\" when they never meet"
    };
    Finding::error(Code::OverlappingPrefixes, message)
        .on(later.origin)
        .at(later.field)
        .help(help)
}

/// What a prefix says about its own inside.
fn inner(prefix: &Prefix) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut outside = |code: Code, field: String, what: &str, range: &AddrRange| {
        if !prefix.covers(range) {
            let message = format!("{what} {range} lies outside of {}", prefix.cidr);
            findings.push(
                Finding::error(code, message)
                    .on(&prefix.origin)
                    .at(field)
                    .help(format!("write addresses of {}", prefix.cidr)),
            );
        }
    };
    let annotated = |key: &str| format!("metadata.annotations[{key}]");
    if let Some(gateway) = prefix.gateway {
        let range = AddrRange::single(gateway);
        outside(
            Code::InvalidField,
            prefix.field.clone(),
            "the gateway",
            &range,
        );
    }
    for range in &prefix.ranges {
        let field = annotated(annotation::RANGES);
        outside(Code::InvalidAnnotation, field, "the range", range);
    }
    for range in &prefix.exclude {
        let field = annotated(annotation::EXCLUDE);
        outside(Code::InvalidAnnotation, field, "the exclusion", range);
    }
    for kept in &prefix.kept {
        let field = "spec.allocations".to_owned();
        outside(Code::InvalidField, field, "the allocation", &kept.range);
    }
    findings
}

#[cfg(test)]
mod tests;
