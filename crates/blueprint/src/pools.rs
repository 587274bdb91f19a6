//! NetworkInstances and IPPrefixes become pools, by the rules of DESIGN §4: an empty namespace is
//! `default`, a prefix without instance joins the one that contains it, the gateway is the first host
//! unless given, an allocation with host bits is one address.

use std::collections::BTreeMap;

use mooring_api::kinds::nephio::ipam::{IPPrefixSpec, NetworkInstanceSpec, PrefixKind};
use mooring_api::{AddrRange, Cidr, Code, Family, Finding, HostCidr, Span, annotation, label};
use mooring_ipam::{Instance, InstanceKey, Kept, Kind, Pools, Prefix};

use crate::bundle::{Object, group};
use crate::choices;

const RANGES: &str = "ranges `FIRST-LAST` or CIDRs, comma separated";
const SPAN: &str = "a duration such as 90s, 10m or 1h30m";

/// Reads every pool among `objects`, and says what is wrong with them.
pub fn read(objects: &[Object]) -> (Pools, Vec<Finding>) {
    let mut findings = Vec::new();
    let mut pools = Pools::default();
    for object in objects
        .iter()
        .filter(|o| o.is(group::IPAM, "NetworkInstance"))
    {
        if let Some(instance) = instance(object, &mut findings) {
            pools.instances.insert(instance.key.clone(), instance);
        }
    }
    for object in objects.iter().filter(|o| o.is(group::IPAM, "IPPrefix")) {
        match prefix(object, &pools, &mut findings) {
            Ok(prefix) => {
                let key = prefix.instance.clone();
                pools
                    .instances
                    .entry(key.clone())
                    .or_insert_with(|| Instance {
                        origin: object.reference(),
                        key,
                        isolated: false,
                        aggregates: Vec::new(),
                    });
                pools.prefixes.push(prefix);
            }
            Err(finding) => findings.push(finding),
        }
    }
    serve_from_instances(&mut pools);
    findings.extend(pools.check());
    (pools, findings)
}

fn instance(object: &Object, findings: &mut Vec<Finding>) -> Option<Instance> {
    let spec: NetworkInstanceSpec = match object.spec() {
        Ok(spec) => spec,
        Err(finding) => {
            findings.push(finding);
            return None;
        }
    };
    let aggregates = spec.prefixes.iter().enumerate();
    Some(Instance {
        origin: object.reference(),
        key: InstanceKey::new(object.namespace(), object.name()),
        isolated: choices::one(object, annotation::ISOLATED, "true or false", findings)
            .unwrap_or(false),
        aggregates: aggregates
            .map(|(i, p)| (p.prefix, format!("spec.prefixes[{i}].prefix")))
            .collect(),
    })
}

fn prefix(object: &Object, pools: &Pools, findings: &mut Vec<Finding>) -> Result<Prefix, Finding> {
    let spec: IPPrefixSpec = object.spec()?;
    let reference = object.reference();
    let cidr = spec.prefix.subnet();
    let mut labels: BTreeMap<String, String> = object.labels();
    labels.extend(spec.labels);
    let instance = match &spec.network_instance {
        Some(r) if !r.name.is_empty() => InstanceKey::new(&r.namespace, &r.name),
        _ => containing(pools, &cidr).ok_or_else(|| {
            Finding::error(
                Code::UnknownNetworkInstance,
                format!("{cidr} names no network instance, and none contains it"),
            )
            .on(&reference)
            .at("spec.networkInstance")
            .help("Set spec.networkInstance.name, or add the prefix to a NetworkInstance.")
        })?,
    };
    let written = labels.get(label::GATEWAY).is_some_and(|v| v == "true") && spec.prefix.is_host();
    let gateway = if written {
        spec.prefix.addr()
    } else {
        cidr.hosts().first()
    };
    let kept = spec.allocations.iter().map(|a| Kept {
        range: if a.prefix.is_host() {
            AddrRange::single(a.prefix.addr())
        } else {
            a.prefix.subnet().range()
        },
        claim: a
            .claim_ref
            .as_ref()
            .map(|r| r.name.clone())
            .unwrap_or_default(),
        cluster: a.cluster().unwrap_or_default().to_owned(),
    });
    Ok(Prefix {
        field: "spec.prefix".to_owned(),
        instance,
        cidr,
        kind: kind(spec.kind),
        gateway: has_gateway(spec.kind, cidr).then_some(gateway),
        ranges: choices::list(object, annotation::RANGES, RANGES, findings),
        exclude: choices::list(object, annotation::EXCLUDE, RANGES, findings),
        cool_down: choices::one(object, annotation::COOL_DOWN, SPAN, findings).unwrap_or_default(),
        drain: choices::one(object, annotation::DRAIN, "true or false", findings).unwrap_or(false),
        kept: kept.collect(),
        labels,
        origin: reference,
    })
}

/// A point-to-point or single-address prefix has no gateway of its own, nor has one that is not for
/// networks.
fn has_gateway(kind: PrefixKind, cidr: Cidr) -> bool {
    kind == PrefixKind::Network && cidr.prefix_len() + 1 < cidr.family().bits()
}

fn containing(pools: &Pools, cidr: &Cidr) -> Option<InstanceKey> {
    let covers = |i: &&Instance| i.aggregates.iter().any(|(a, _)| a.covers(cidr));
    pools.instances.values().find(covers).map(|i| i.key.clone())
}

/// An instance without any IPPrefix of a family serves from its own prefixes (seed 001 declares only
/// a NetworkInstance in places).
fn serve_from_instances(pools: &mut Pools) {
    let served: Vec<(InstanceKey, Family)> = pools
        .prefixes
        .iter()
        .map(|p| (p.instance.clone(), p.cidr.family()))
        .collect();
    for instance in pools.instances.values() {
        for (cidr, field) in &instance.aggregates {
            if served.contains(&(instance.key.clone(), cidr.family())) {
                continue;
            }
            pools.prefixes.push(Prefix {
                origin: instance.origin.clone(),
                field: field.clone(),
                instance: instance.key.clone(),
                cidr: *cidr,
                kind: Kind::Network,
                labels: BTreeMap::new(),
                gateway: has_gateway(PrefixKind::Network, *cidr).then(|| cidr.hosts().first()),
                ranges: Vec::new(),
                exclude: Vec::new(),
                cool_down: Span::default(),
                drain: false,
                kept: Vec::new(),
            });
        }
    }
}

/// The API's kind of a prefix as the arithmetic names it.
pub fn kind(kind: PrefixKind) -> Kind {
    match kind {
        PrefixKind::Network => Kind::Network,
        PrefixKind::Loopback => Kind::Loopback,
        PrefixKind::Pool => Kind::Pool,
        PrefixKind::Aggregate => Kind::Aggregate,
    }
}

/// Prefixes of the other clusters, where the instance has one subnet per cluster (seed 001, solution
/// 2): every network prefix of the family carries its own `nephio.org/cluster-name`.
pub fn siblings(pools: &Pools, instance: &InstanceKey, own: HostCidr) -> Vec<Cidr> {
    let family: Vec<&Prefix> = pools
        .prefixes
        .iter()
        .filter(|p| {
            p.instance == *instance && p.kind == Kind::Network && p.cidr.family() == own.family()
        })
        .collect();
    let mut clusters: Vec<&String> = family
        .iter()
        .filter_map(|p| p.labels.get(label::CLUSTER_NAME))
        .collect();
    clusters.sort();
    clusters.dedup();
    if clusters.len() != family.len() {
        return Vec::new();
    }
    let mut others: Vec<Cidr> = family
        .iter()
        .map(|p| p.cidr)
        .filter(|c| !c.contains(own.addr()))
        .collect();
    others.sort();
    others
}
