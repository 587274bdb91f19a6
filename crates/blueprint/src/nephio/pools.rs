//! Pools as Nephio reads them: a gateway only where a label says so, and an address with host bits is taken.
//!
//! `package` makes these for `moor fn` and for a render in this dialect. Easy to get wrong: several IPPrefixes may
//! speak of one subnet, each with an address that lives in it; together they are one pool.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use mooring_api::kinds::nephio::ipam::IPPrefixSpec;
use mooring_api::{AddrRange, Cidr, Code, Finding, ObjectRef, Severity, label};
use mooring_ipam::{InstanceKey, Kind, Pools, Prefix};

use crate::bundle::{Object, group};

/// Reads the pools among `objects`. Overlaps between instances are only said: the published backend allows them.
pub fn pools(objects: &[Object]) -> (Pools, Vec<Finding>) {
    let (mut pools, mut findings) = crate::pools::read(objects);
    let apart = pools.check();
    findings.retain(|f| !apart.contains(f));
    let written: BTreeMap<ObjectRef, &Object> = objects
        .iter()
        .filter(|o| o.is(group::IPAM, "IPPrefix"))
        .map(|o| (o.reference(), o))
        .collect();
    let mut joined: Vec<Prefix> = Vec::new();
    let mut places: BTreeMap<(InstanceKey, Cidr, Kind), usize> = BTreeMap::new();
    for mut prefix in std::mem::take(&mut pools.prefixes) {
        let object = written.get(&prefix.origin).copied();
        adjust(&mut prefix, object);
        let key = (prefix.instance.clone(), prefix.cidr, prefix.kind);
        match places.entry(key) {
            Entry::Vacant(place) => {
                place.insert(joined.len());
                joined.push(prefix);
            }
            Entry::Occupied(place) => {
                let known = &mut joined[*place.get()];
                known.gateway = known.gateway.or(prefix.gateway);
                known.exclude.extend(prefix.exclude);
                known.kept.extend(prefix.kept);
                for (key, value) in prefix.labels {
                    known.labels.entry(key).or_insert(value);
                }
            }
        }
    }
    pools.prefixes = joined;
    findings.extend(pools.check().into_iter().map(|mut finding| {
        if finding.code == Code::OverlappingPrefixes {
            finding.severity = Severity::Warning;
        }
        finding
    }));
    (pools, findings)
}

fn adjust(prefix: &mut Prefix, object: Option<&Object>) {
    prefix.gateway = None;
    let Some(Ok(spec)) = object.map(Object::spec::<IPPrefixSpec>) else {
        return;
    };
    let labelled = prefix
        .labels
        .get(label::GATEWAY)
        .is_some_and(|v| v == "true");
    match (labelled, spec.prefix.is_host()) {
        (true, true) => prefix.gateway = Some(spec.prefix.addr()),
        // The label speaks of an address, and none is written: the first host is what people mean by it.
        (true, false) => prefix.fill_gateway(),
        (false, true) => prefix.exclude.push(AddrRange::single(spec.prefix.addr())),
        (false, false) => {}
    }
}
