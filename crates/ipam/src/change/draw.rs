//! The prefix as it would be. Nothing here knows who holds what.
//!
//! The gateway stays where it is as long as it lies in the prefix: it is somebody's router, and no book moves that.
//! Ranges, exclusions and the gateway of a renumbered prefix keep their distance from its beginning.

use mooring_api::{AddrRange, Cidr, Family, Finding, label};

use super::{Change, Refused, refused};
use crate::space::{Span, span, within};
use crate::{Kind, Pools, Prefix};

/// More parts than this is a mistake of the keyboard.
const PARTS: u32 = 8;

/// What becomes of the prefix.
pub(super) struct Drawn {
    pub(super) after: Vec<Prefix>,
    pub(super) aggregate: Option<(String, Cidr)>,
    /// Where those go who cannot stay.
    pub(super) into: Goes,
    pub(super) notes: Vec<String>,
}

/// Where those go who cannot stay.
pub(super) enum Goes {
    /// Goes what becomes of the prefix.
    Same,
    /// Everybody goes, to the same place in this prefix where that is free.
    All(Cidr),
    /// Everybody goes who can, to any prefix that fits.
    Others,
}

pub(super) fn draw(pools: &Pools, before: &Prefix, change: &Change) -> Result<Drawn, Refused> {
    if before.origin.kind != "IPPrefix" {
        let message = format!(
            "{} stands in {} and has no IPPrefix",
            before.cidr, before.origin
        );
        let help = "write an IPPrefix for it, with the same prefix and network instance";
        return Err(refused(before, message).help(help).into());
    }
    let same = |after: Prefix| Drawn {
        after: vec![after],
        aggregate: None,
        into: Goes::Same,
        notes: Vec::new(),
    };
    match change {
        Change::Grow { to, ranges } => grow(pools, before, *to, ranges.as_deref()),
        Change::Shrink {
            to,
            ranges,
            exclude,
        } => shrink(before, *to, ranges, exclude).map(same),
        Change::Split { len } => Ok(Drawn {
            after: split(before, *len)?,
            aggregate: None,
            into: Goes::Same,
            notes: Vec::new(),
        }),
        Change::Drain => Ok(Drawn {
            into: Goes::Others,
            ..same(Prefix {
                drain: true,
                ..before.clone()
            })
        }),
        Change::Undrain => Ok(same(Prefix {
            drain: false,
            ..before.clone()
        })),
        Change::Renumber { to } => renumber(pools, before, *to),
    }
}

fn grow(
    pools: &Pools,
    before: &Prefix,
    to: Cidr,
    ranges: Option<&[AddrRange]>,
) -> Result<Drawn, Refused> {
    if !to.covers(&before.cidr) {
        let message = format!("{to} does not contain {}", before.cidr);
        let help = "grow to a wider prefix around it; moor pool renumber goes elsewhere";
        return Err(refused(before, message).help(help).into());
    }
    let mut after = Prefix {
        cidr: to,
        ..before.clone()
    };
    after.fill_gateway();
    let mut notes = Vec::new();
    match ranges {
        Some(ranges) => after.ranges = ranges.to_vec(),
        None if !before.ranges.is_empty() && to != before.cidr => notes.push(format!(
            "addresses are still taken from {} only; say others with --ranges",
            list(&before.ranges)
        )),
        None => {}
    }
    Ok(Drawn {
        aggregate: along(pools, before, to),
        after: vec![after],
        into: Goes::Same,
        notes,
    })
}

fn shrink(
    before: &Prefix,
    to: Option<Cidr>,
    ranges: &[AddrRange],
    exclude: &[AddrRange],
) -> Result<Prefix, Refused> {
    let to = to.unwrap_or(before.cidr);
    if !before.cidr.covers(&to) {
        let message = format!("{to} is not a part of {}", before.cidr);
        return Err(refused(before, message)
            .help("shrink to a part of it; moor pool renumber goes elsewhere")
            .into());
    }
    let mut after = before.clone();
    for range in exclude {
        if !after.exclude.contains(range) {
            after.exclude.push(*range);
        }
    }
    if !ranges.is_empty() {
        after.ranges = ranges.to_vec();
    }
    cut(&mut after, before, to)?;
    Ok(after)
}

fn split(before: &Prefix, len: u8) -> Result<Vec<Prefix>, Refused> {
    let (from, family) = (before.cidr.prefix_len(), before.cidr.family());
    if len <= from || len > family.bits() || u32::from(len - from) > PARTS {
        let message = format!(
            "{} cannot be split into parts of length /{len}",
            before.cidr
        );
        let longest = (from + 8).min(family.bits());
        let help = format!("give a length from /{} to /{longest}", from + 1);
        return Err(refused(before, message).help(help).into());
    }
    let first = Family::number(before.cidr.network());
    let size = 1u128 << (family.bits() - len);
    let mut parts = Vec::new();
    for nth in 0..1u128 << (len - from) {
        let cidr = Cidr::containing(family.addr(first + nth * size), len);
        let mut part = before.clone();
        if nth > 0 {
            part.origin.name = format!("{}-{}", before.origin.name, dashed(cidr));
        }
        cut(&mut part, before, cidr)?;
        parts.push(part);
    }
    Ok(parts)
}

/// `10.1.2.128/25` as a part of a Kubernetes name.
fn dashed(cidr: Cidr) -> String {
    cidr.to_string().replace(['.', ':', '/'], "-")
}

/// The part `to` of what `prefix` says: ranges, exclusions and allocations are cut at its ends.
fn cut(prefix: &mut Prefix, before: &Prefix, to: Cidr) -> Result<(), Refused> {
    prefix.cidr = to;
    let whole = to.range();
    let torn = |k: &&crate::Kept| k.range.overlaps(&whole) && !prefix_covers(to, &k.range);
    if let Some(kept) = prefix.kept.iter().find(torn) {
        let message = format!(
            "{} is kept for claim {} and would be torn",
            kept.range, kept.claim
        );
        return Err(refused(before, message)
            .at("spec.allocations")
            .help("correct spec.allocations first")
            .into());
    }
    prefix.kept.retain(|k| prefix_covers(to, &k.range));
    let had_ranges = !prefix.ranges.is_empty();
    prefix.ranges = parts(&prefix.ranges, to);
    prefix.exclude = parts(&prefix.exclude, to);
    if had_ranges && prefix.ranges.is_empty() {
        // No ranges would mean all of it, and none of it is what was said.
        prefix.exclude = vec![whole];
    }
    if prefix.gateway.is_some_and(|g| !to.contains(g)) || is_edge(prefix) {
        prefix.gateway = None;
    }
    prefix.fill_gateway();
    if to.prefix_len() + 2 > to.family().bits() {
        prefix.gateway = None;
    }
    Ok(())
}

/// Whether the gateway is the network or broadcast address of the narrower prefix.
fn is_edge(prefix: &Prefix) -> bool {
    let hosts = prefix.cidr.hosts();
    prefix.kind == Kind::Network && prefix.gateway.is_some_and(|g| !hosts.contains(g))
}

fn prefix_covers(cidr: Cidr, range: &AddrRange) -> bool {
    cidr.contains(range.first()) && cidr.contains(range.last())
}

/// The parts of ranges that lie in a prefix; what lies in whole stays as it was written.
fn parts(ranges: &[AddrRange], to: Cidr) -> Vec<AddrRange> {
    let bounds = span(to.range());
    ranges
        .iter()
        .filter(|r| r.family() == to.family())
        .flat_map(|r| within(&[span(*r)], bounds))
        .filter_map(|s| as_range(s, to.family()))
        .collect()
}

fn as_range((first, last): Span, family: Family) -> Option<AddrRange> {
    AddrRange::new(family.addr(first), family.addr(last)).ok()
}

fn renumber(pools: &Pools, before: &Prefix, to: Cidr) -> Result<Drawn, Refused> {
    if to.family() != before.cidr.family() || to.overlaps(&before.cidr) {
        let message = format!("{} cannot be renumbered to {to}", before.cidr);
        let help = "renumber to a prefix of the same family that lies elsewhere; grow, shrink and split change it in place";
        return Err(refused(before, message).help(help).into());
    }
    let mut there = pools
        .prefixes
        .iter()
        .filter(|p| p.instance == before.instance && p.cidr == to && p.kind == before.kind);
    if let Some(other) = there.next() {
        if let Some(why) = unlike(before, other, "") {
            let message = format!("claims of {} do not find {to}: it {why}", before.cidr);
            return Err(refused(before, message)
                .help("give both IPPrefixes the same labels")
                .into());
        }
        let drained = Prefix {
            drain: true,
            ..before.clone()
        };
        return Ok(Drawn {
            after: vec![drained],
            aggregate: None,
            into: Goes::All(to),
            notes: vec![format!(
                "{} stays, drained; remove its IPPrefix when it is empty",
                before.cidr
            )],
        });
    }
    if let Some(finding) = kept_here(before, &before.kept) {
        return Err(finding.into());
    }
    let shifted = |ranges: &[AddrRange]| {
        let spans = ranges
            .iter()
            .filter_map(|r| shift(before.cidr, to, span(*r)));
        let spans: Vec<Span> = spans.collect();
        let spans = within(&spans, span(to.range()));
        let ranges: Vec<AddrRange> = spans
            .into_iter()
            .filter_map(|s| as_range(s, to.family()))
            .collect();
        ranges
    };
    let mut after = Prefix {
        cidr: to,
        ranges: shifted(&before.ranges),
        exclude: shifted(&before.exclude),
        ..before.clone()
    };
    if after.ranges.is_empty() && !before.ranges.is_empty() {
        let message = format!("the ranges of {} do not fit into {to}", before.cidr);
        return Err(refused(before, message)
            .help("renumber to a wider prefix")
            .into());
    }
    let gateway = before.gateway.map(AddrRange::single).map(span);
    let gateway = gateway.and_then(|g| shift(before.cidr, to, g));
    after.gateway = gateway
        .map(|g| to.family().addr(g.0))
        .filter(|g| to.contains(*g));
    if is_edge(&after) {
        after.gateway = None;
    }
    if before.gateway.is_some() {
        after.fill_gateway();
    }
    Ok(Drawn {
        aggregate: along(pools, before, to),
        after: vec![after],
        into: Goes::All(to),
        notes: Vec::new(),
    })
}

/// The same distance from the beginning.
pub(super) fn shift(from: Cidr, to: Cidr, (first, last): Span) -> Option<Span> {
    let (old, new) = (Family::number(from.network()), Family::number(to.network()));
    let first = first.checked_sub(old)?.checked_add(new)?;
    let last = last.checked_sub(old)?.checked_add(new)?;
    Some((first, last))
}

/// Why a claim of that cluster that `from` serves may not find `to`. The book does not know selectors; what has every
/// label that `from` has, and belongs to no other cluster, is found by whoever found `from`.
pub(super) fn unlike(from: &Prefix, to: &Prefix, cluster: &str) -> Option<String> {
    if to.drain {
        return Some("is being drained".to_owned());
    }
    let missing = from
        .labels
        .iter()
        .find(|(key, value)| to.labels.get(*key) != Some(value));
    if let Some((key, value)) = missing {
        return Some(format!("has no label {key}={value}"));
    }
    let own = from.labels.contains_key(label::CLUSTER_NAME);
    let other = to.labels.get(label::CLUSTER_NAME);
    let other = other.filter(|other| !own && *other != cluster);
    other.map(|other| format!("belongs to cluster {other}"))
}

/// The refusal for addresses that `spec.allocations` keeps.
pub(super) fn kept_here(before: &Prefix, kept: &[crate::Kept]) -> Option<Finding> {
    let names: Vec<String> = kept
        .iter()
        .map(|k| format!("{} for {}", k.range, k.claim))
        .collect();
    let shown = names.get(..names.len().min(5))?;
    if shown.is_empty() {
        return None;
    }
    let more = match names.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let message = format!(
        "spec.allocations keeps {}{more}, and what is kept never moves",
        shown.join(", ")
    );
    Some(
        refused(before, message)
            .at("spec.allocations")
            .help("change or remove the allocation first, together with whoever relies on it"),
    )
}

/// An instance that lists exactly this prefix means it: its entry goes along, where none covers the new one.
fn along(pools: &Pools, before: &Prefix, to: Cidr) -> Option<(String, Cidr)> {
    let instance = pools.instances.get(&before.instance)?;
    let covered = instance.aggregates.iter().any(|(a, _)| a.covers(&to));
    let same = instance.aggregates.iter().find(|(a, _)| *a == before.cidr);
    same.filter(|_| !covered)
        .map(|(_, field)| (field.clone(), to))
}

fn list(ranges: &[AddrRange]) -> String {
    let ranges: Vec<String> = ranges.iter().map(ToString::to_string).collect();
    ranges.join(", ")
}
