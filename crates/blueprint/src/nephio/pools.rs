//! Pools as Nephio reads them: a gateway only where a label says so, and an address with host bits is taken.
//!
//! `package` makes these for `moor fn` and for a render in this dialect. Easy to get wrong: several IPPrefixes may
//! speak of one subnet, each with an address that lives in it; together they are one pool.

use mooring_api::kinds::nephio::ipam::IPPrefixSpec;
use mooring_api::{AddrRange, Code, Finding, Severity, label};
use mooring_ipam::{Pools, Prefix};

use crate::bundle::{Object, group};

/// Reads the pools among `objects`. Overlaps between instances are only said: the published backend allows them.
pub fn pools(objects: &[Object]) -> (Pools, Vec<Finding>) {
    let (mut pools, mut findings) = crate::pools::read(objects);
    let apart = pools.check();
    findings.retain(|f| !apart.contains(f));
    for prefix in &mut pools.prefixes {
        adjust(prefix, objects);
    }
    let mut joined: Vec<Prefix> = Vec::new();
    for prefix in std::mem::take(&mut pools.prefixes) {
        let same = |p: &&mut Prefix| {
            p.instance == prefix.instance && p.cidr == prefix.cidr && p.kind == prefix.kind
        };
        match joined.iter_mut().find(same) {
            Some(known) => {
                known.gateway = known.gateway.or(prefix.gateway);
                known.exclude.extend(prefix.exclude);
                known.kept.extend(prefix.kept);
                for (key, value) in prefix.labels {
                    known.labels.entry(key).or_insert(value);
                }
            }
            None => joined.push(prefix),
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

fn adjust(prefix: &mut Prefix, objects: &[Object]) {
    prefix.gateway = None;
    let origin = |o: &&Object| o.is(group::IPAM, "IPPrefix") && o.reference() == prefix.origin;
    let Some(object) = objects.iter().find(origin) else {
        return;
    };
    let Ok(spec) = object.spec::<IPPrefixSpec>() else {
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
