//! NetworkInstances and IPPrefixes become pools, by the rules of DESIGN §4: an empty namespace is
//! `default`, a prefix without instance joins the one that contains it, the gateway is the first host
//! unless given, an allocation with host bits is one address.

use std::collections::BTreeMap;

use mooring_api::kinds::nephio::ipam::{Allocation, IPPrefixSpec, NetworkInstanceSpec, PrefixKind};
use mooring_api::{AddrRange, Cidr, Code, Family, Finding, HostCidr, Span, annotation, label};
use mooring_ipam::{Instance, InstanceKey, Kept, Kind, Pools, Prefix};

use crate::bundle::{Object, group};
use crate::choices;

const RANGES: &str = "ranges `FIRST-LAST` or CIDRs, comma separated";
const ALLOCATIONS: &str = "ADDRESS=CLAIM or ADDRESS=CLAIM@CLUSTER, comma separated";
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
    let mut wrong = Vec::new();
    let mut ranges = |field: &str, written: Vec<AddrRange>, key: &str| {
        let written = (!written.is_empty()).then_some(written);
        choices::twin(object, (field, written), (key, RANGES), many, &mut wrong).unwrap_or_default()
    };
    let (inside, exclude) = (
        ranges("spec.ranges", spec.ranges, annotation::RANGES),
        ranges("spec.exclude", spec.exclude, annotation::EXCLUDE),
    );
    let cool_down = choices::twin(
        object,
        ("spec.coolDown", spec.cool_down),
        (annotation::COOL_DOWN, SPAN),
        |text| text.parse().ok(),
        &mut wrong,
    );
    let allocations: Vec<Kept> = spec.allocations.iter().map(kept).collect();
    let allocations = choices::twin(
        object,
        (
            "spec.allocations",
            (!allocations.is_empty()).then_some(allocations),
        ),
        (annotation::ALLOCATIONS, ALLOCATIONS),
        many_kept,
        &mut wrong,
    );
    let drain = choices::one(object, annotation::DRAIN, "true or false", &mut wrong);
    // Where nobody knows which addresses are meant, who has one keeps it, and nobody gets a new one.
    let unsure = !wrong.is_empty();
    findings.append(&mut wrong);
    Ok(Prefix {
        field: "spec.prefix".to_owned(),
        instance,
        cidr,
        kind: kind(spec.kind),
        gateway: has_gateway(spec.kind, cidr).then_some(gateway),
        ranges: inside,
        exclude,
        cool_down: cool_down.unwrap_or_default(),
        drain: drain.unwrap_or(false) || unsure,
        kept: allocations.unwrap_or_default(),
        labels,
        origin: reference,
    })
}

/// An allocation of the spec.
fn kept(a: &Allocation) -> Kept {
    Kept {
        range: written_range(a.prefix),
        claim: a
            .claim_ref
            .as_ref()
            .map(|r| r.name.clone())
            .unwrap_or_default(),
        cluster: a.cluster().unwrap_or_default().to_owned(),
    }
}

/// With host bits it is that one address.
fn written_range(prefix: HostCidr) -> AddrRange {
    if prefix.is_host() {
        AddrRange::single(prefix.addr())
    } else {
        prefix.subnet().range()
    }
}

fn listed<T>(text: &str, parse: impl Fn(&str) -> Option<T>) -> Option<Vec<T>> {
    let words = text.split(',').map(str::trim).filter(|t| !t.is_empty());
    words.map(parse).collect()
}

fn many(text: &str) -> Option<Vec<AddrRange>> {
    listed(text, |t| t.parse().ok())
}

fn many_kept(text: &str) -> Option<Vec<Kept>> {
    listed(text, |entry| {
        let (prefix, claim) = entry.split_once('=')?;
        let (claim, cluster) = claim.split_once('@').unwrap_or((claim, ""));
        let one = |text: &str| text.parse().ok().map(HostCidr::single);
        let prefix = prefix.trim();
        let prefix = prefix.parse().ok().or_else(|| one(prefix))?;
        (!claim.trim().is_empty()).then(|| Kept {
            range: written_range(prefix),
            claim: claim.trim().to_owned(),
            cluster: cluster.trim().to_owned(),
        })
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

/// Lets a prefix that an error is about hand out nothing new; who has an address in it keeps it. For hands that serve
/// many people's pools: what is wrong with one must not stop the others.
pub fn set_aside(pools: &mut Pools, findings: &[Finding]) {
    let wrong: Vec<_> = findings
        .iter()
        .filter(|f| f.is_error())
        .filter_map(|f| f.object.as_ref())
        .collect();
    for prefix in &mut pools.prefixes {
        prefix.drain |= wrong.contains(&&prefix.origin);
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

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn prefix(annotations: serde_json::Value, spec: serde_json::Value) -> Object {
        let mut value = json!({
            "apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPPrefix",
            "metadata": { "name": "n3", "annotations": annotations },
            "spec": { "prefix": "10.1.2.0/24", "networkInstance": { "name": "ran" } },
        });
        for (key, entry) in spec.as_object().unwrap() {
            value["spec"][key] = entry.clone();
        }
        Object {
            value,
            source: None,
        }
    }

    #[test]
    fn a_field_and_its_twin_say_the_same() {
        let spec = json!({ "ranges": ["10.1.2.20-10.1.2.29"], "exclude": ["10.1.2.25"], "coolDown": "10m",
            "allocations": [{ "prefix": "10.1.2.21/24", "claimRef": { "name": "upf", "cluster": "edge" } }] });
        let twins = json!({ "mooring.dev/ranges": "10.1.2.20-10.1.2.29", "mooring.dev/exclude": "10.1.2.25",
            "mooring.dev/cool-down": "10m", "mooring.dev/allocations": "10.1.2.21=upf@edge" });
        let (by_field, none) = read(&[prefix(json!({}), spec.clone())]);
        assert_eq!(none, []);
        for (annotations, spec) in [(twins.clone(), json!({})), (twins, spec)] {
            let (pools, findings) = read(&[prefix(annotations, spec)]);
            assert_eq!(findings, []);
            assert_eq!(pools.prefixes, by_field.prefixes);
        }
        assert_eq!(by_field.prefixes[0].cool_down, Span(600));
        assert_eq!(by_field.prefixes[0].kept[0].cluster, "edge");
    }

    #[test]
    fn where_field_and_twin_disagree_nothing_new_is_handed_out() {
        let spec = json!({ "ranges": ["10.1.2.20-10.1.2.29"] });
        let twin = json!({ "mooring.dev/ranges": "10.1.2.20-10.1.2.30" });
        let (pools, findings) = read(&[prefix(twin, spec)]);
        assert_eq!(findings[0].code, Code::InvalidAnnotation);
        assert!(pools.prefixes[0].drain);
    }
}
