//! Networks become pools: every cluster gets a subnet of its own out of a routing table's prefix, when it first asks.
//!
//! ```text
//!  Network vpc-ran          claim of edge01                  the book
//!  172.3.0.0/16 (n3)   ──►  kind network, n3, ipv4      ──►  block 172.3.0.0/24 for edge01
//!                           the block is a prefix now   ──►  address 172.3.0.254, gateway 172.3.0.1
//! ```
//!
//! Upstream, a topology with switches does this beforehand; here a subnet is a block in the book, held by cluster and network.
//! So a new cluster moves nobody, and no topology is needed. `package` asks twice per claim: first for the block that
//! [`subnet`] says, then for the claim itself out of the pools that [`opened`] gives. Easy to get wrong: a prefix that
//! somebody wrote by hand and that serves the claim comes first; then nothing is carved.

use std::collections::BTreeMap;

use mooring_api::kinds::nephio::infra::NetworkSpec;
use mooring_api::{Cidr, Code, Family, Finding, Severity, Span, Time, label};
use mooring_ipam::{
    Claim, Holder, Instance, InstanceKey, Kind, Lease, Order, Pools, Prefix, Refusal, Table, Thing,
    Want, candidates,
};

use crate::bundle::{Object, group};
use crate::nephio;

/// Pools of the nephio dialect: what is written by hand, and what the Networks have to carve from.
pub fn read(objects: &[Object]) -> (Pools, Vec<Finding>) {
    let (mut pools, mut findings) = nephio::pools(objects);
    let mut carved = Pools::default();
    for object in objects.iter().filter(|o| o.is(group::INFRA, "Network")) {
        match object.spec::<NetworkSpec>() {
            Ok(spec) => add(&mut carved, object, &spec),
            Err(finding) => findings.push(finding),
        }
    }
    let mut overlaps = carved.check();
    for finding in &mut overlaps {
        if finding.code == Code::OverlappingPrefixes {
            finding.severity = Severity::Warning;
        }
    }
    findings.extend(overlaps);
    for (key, instance) in carved.instances {
        pools.instances.entry(key).or_insert(instance);
    }
    pools.prefixes.extend(carved.prefixes);
    (pools, findings)
}

fn add(pools: &mut Pools, object: &Object, spec: &NetworkSpec) {
    for (nth, table) in spec.routing_tables.iter().enumerate() {
        let key = InstanceKey::new(object.namespace(), &table.name);
        let instance = Instance {
            origin: object.reference(),
            key: key.clone(),
            isolated: false,
            aggregates: Vec::new(),
        };
        pools.instances.entry(key.clone()).or_insert(instance);
        for (at, prefix) in table.prefixes.iter().enumerate() {
            let mut labels = prefix.labels.clone();
            let kind = labels.entry(label::PREFIX_KIND.to_owned());
            kind.or_insert_with(|| Kind::Network.as_str().to_owned());
            pools.prefixes.push(Prefix {
                origin: object.reference(),
                field: format!("spec.routingTables[{nth}].prefixes[{at}].prefix"),
                instance: key.clone(),
                cidr: prefix.prefix,
                kind: Kind::Aggregate,
                labels,
                gateway: None,
                ranges: Vec::new(),
                exclude: Vec::new(),
                cool_down: Span::default(),
                drain: false,
                kept: Vec::new(),
            });
        }
    }
}

/// How long a cluster's share is, as published: a subnet, or what pools of subscribers are cut from.
fn share(kind: Kind, family: Family) -> u8 {
    match (kind, family) {
        (Kind::Pool, Family::V4) => 16,
        (Kind::Pool, Family::V6) => 48,
        (_, Family::V4) => 24,
        (_, Family::V6) => 64,
    }
}

/// The cluster's share that a block of a pool was cut from, by its length alone: for a book that lost it.
pub fn share_around(block: Cidr) -> Cidr {
    let len = share(Kind::Pool, block.family()).min(block.prefix_len());
    Cidr::containing(block.network(), len)
}

/// The block that must be taken first so that `claim` can be served; None where it can be, or where no Network has one.
pub fn subnet(pools: &Pools, claim: &Claim) -> Option<Claim> {
    (!is_served(pools, claim)).then(|| share_for(pools, claim))?
}

/// Whether a prefix that somebody wrote by hand is for this claim, full or not.
pub fn is_served(pools: &Pools, claim: &Claim) -> bool {
    let nothing = Table::new(claim.instance.clone());
    let served = candidates(pools, &nothing, claim, Time(0));
    !matches!(served, Err(Refusal::NoMatchingPrefix { .. }))
}

/// The cluster's first share of the Network that `claim` would be served from, served by hand or not. Further ones have the
/// same holder with another ordinal.
pub fn share_for(pools: &Pools, claim: &Claim) -> Option<Claim> {
    let from_a_share = match claim.want {
        Want::Address => true,
        Want::Block { .. } => claim.kind == Kind::Pool,
        Want::Range { .. } | Want::Vlan { .. } => false,
    };
    if !from_a_share {
        return None;
    }
    let cluster = claim.selector.match_labels.get(label::CLUSTER_NAME)?;
    let nothing = Table::new(claim.instance.clone());
    let family = claim.holder.family;
    let len = share(claim.kind, family);
    let mut selector = claim.selector.clone();
    selector.match_labels.remove(label::CLUSTER_NAME);
    selector.match_labels.insert(
        label::PREFIX_KIND.to_owned(),
        claim.kind.as_str().to_owned(),
    );
    let mut block = Claim {
        holder: share_holder(&claim.instance, cluster, claim.kind.as_str(), "", family),
        instance: claim.instance.clone(),
        kind: Kind::Aggregate,
        want: Want::Block { len },
        selector,
        fixed: None,
        before: said(claim, len),
        names: Vec::new(),
        order: Order::BestFit,
    };
    let from = candidates(pools, &nothing, &block, Time(0)).ok()?.first()?;
    let source = |p: &&Prefix| p.instance == claim.instance && Some(p.cidr) == from.subnet;
    let source = pools.prefixes.iter().find(source)?;
    let network = source.labels.get(label::NETWORK_NAME).map(String::as_str);
    block.holder = share_holder(
        &claim.instance,
        cluster,
        claim.kind.as_str(),
        network.unwrap_or_default(),
        family,
    );
    Some(block)
}

/// Who holds the share that a cluster has of a routing table. Named by what it is for, not by the prefix: a table may
/// get a second one when the first is full.
pub(crate) fn share_holder(
    instance: &InstanceKey,
    cluster: &str,
    kind: &str,
    network: &str,
    family: Family,
) -> Holder {
    let interface = match network {
        "" => kind.to_owned(),
        name => format!("{kind}/{name}"),
    };
    Holder {
        cluster: cluster.to_owned(),
        ..Holder::outside(format!("network/{instance}"), interface, family)
    }
}

/// The share that the claim's own answer lies in: for a book that lost it.
fn said(claim: &Claim, len: u8) -> Option<Thing> {
    let before = claim.fixed.map(|f| f.addr());
    let before = before.or_else(|| claim.before.and_then(|t| Some(t.range()?.first())));
    before.map(|addr| Thing::Block(Cidr::containing(addr, len)))
}

/// Whether a further share would help a claim that found the ones before full. What is longer than a share, and an
/// address by its number, never comes out of it.
pub fn fits_a_share(claim: &Claim) -> bool {
    let len = share(claim.kind, claim.holder.family);
    match claim.want {
        Want::Address => !matches!(claim.order, Order::Index(_)),
        Want::Block { len: wanted } => wanted >= len,
        Want::Range { .. } | Want::Vlan { .. } => false,
    }
}

/// Exactly the share around something that the claim's holder has.
pub fn around(block: &Claim, held: &Thing) -> Option<Claim> {
    let Want::Block { len } = block.want else {
        return None;
    };
    let share = Cidr::containing(held.range()?.first(), len);
    Some(Claim {
        fixed: Some(share.into()),
        ..block.clone()
    })
}

/// The pools that `claim` is served from, now that its cluster has these shares: what is written by hand first.
pub fn opened(pools: &Pools, claim: &Claim, shares: &[Lease]) -> Pools {
    let mut opened = Pools::default();
    let instance = pools.instances.get(&claim.instance);
    opened
        .instances
        .extend(instance.map(|i| (i.key.clone(), i.clone())));
    let here = |p: &&Prefix| p.instance == claim.instance;
    let by_hand = |p: &&Prefix| here(p) && p.kind != Kind::Aggregate;
    opened
        .prefixes
        .extend(pools.prefixes.iter().filter(by_hand).cloned());
    for lease in shares {
        let Thing::Block(cidr) = lease.thing else {
            continue;
        };
        let around = |p: &&Prefix| here(p) && Some(p.cidr) == lease.subnet;
        let source = pools.prefixes.iter().find(around);
        let Some(source) = source.filter(|_| opened.prefixes.iter().all(|p| p.cidr != cidr)) else {
            continue;
        };
        let mut labels: BTreeMap<String, String> = source.labels.clone();
        labels.insert(label::CLUSTER_NAME.into(), lease.holder.cluster.clone());
        let mut prefix = Prefix {
            cidr,
            kind: claim.kind,
            labels,
            ..source.clone()
        };
        prefix.fill_gateway();
        if prefix.gateway.is_some() {
            prefix.labels.insert(label::GATEWAY.into(), "true".into());
        }
        opened.prefixes.push(prefix);
    }
    opened
}

#[cfg(test)]
mod tests;
