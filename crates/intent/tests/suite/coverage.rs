//! What the folder cases cover: every kind in every family, both values of every boolean.
//!
//! The cases themselves are compared elsewhere; these tests fail when somebody removes one that was the only one of its sort.

use std::collections::{BTreeMap, BTreeSet};

use mooring_testkit::Case;
use serde_json::Value;

use crate::cases::{compiled, here};
use crate::objects;

const KINDS: [(&str, &str, bool); 7] = [
    // The kind, the beginning of its cases, and whether it makes objects of the platform.
    ("Destination", "loopbacks", false),
    ("Layer2Attachment", "layer2", false),
    ("VRFAttachment", "vrf", true),
    ("BGPNeighbor", "bgp-neighbor", false),
    ("PodNetwork", "pods", true),
    ("Collector", "mirror-claims", true),
    ("TrafficMirror", "mirror-claims", true),
];

/// Every boolean that the seed writes.
const BOOLEANS: [(&str, &str); 12] = [
    ("Destination", "/spec/sbr/enabled"),
    ("Layer2Attachment", "/spec/network/disablev6"),
    ("Layer2Attachment", "/spec/disableAnycast"),
    ("Layer2Attachment", "/spec/disableNeighborSuppression"),
    ("Layer2Attachment", "/spec/bgp/enabled"),
    ("Layer2Attachment", "/spec/bgp/advertiseTransferNetwork"),
    ("Layer2Attachment", "/spec/sriov/enabled"),
    ("Layer2Attachment", "/spec/nodeIPs/enabled"),
    ("VRFAttachment", "/spec/network/disablev6"),
    ("VRFAttachment", "/spec/connections/*/disableLoadBalancer"),
    ("BGPNeighbor", "/spec/advertiseTransferNetwork"),
    ("PodNetwork", "/spec/network/disablev6"),
];

/// The values at a path, in which `*` is every entry of a list.
fn at<'v>(value: &'v Value, path: &str) -> Vec<&'v Value> {
    match path.split_once("/*") {
        None => value.pointer(path).into_iter().collect(),
        Some((list, rest)) => {
            let entries = value.pointer(list).and_then(Value::as_array);
            let entries = entries.into_iter().flatten();
            entries.flat_map(|entry| at(entry, rest)).collect()
        }
    }
}

#[test]
fn both_values_of_every_boolean_of_the_seed_are_cases() {
    let mut seen: BTreeMap<(&str, &str), BTreeSet<bool>> = BTreeMap::new();
    for case in mooring_testkit::cases(here()) {
        for object in objects(&case.input()) {
            let own = BOOLEANS.iter().filter(|(kind, _)| object["kind"] == **kind);
            for (kind, path) in own {
                let values = at(&object, path).into_iter().filter_map(Value::as_bool);
                seen.entry((kind, path)).or_default().extend(values);
            }
        }
    }
    for boolean in BOOLEANS {
        assert_eq!(seen[&boolean].len(), 2, "{boolean:?}: {:?}", seen[&boolean]);
    }
}

/// Which families the texts of a value are of: addresses and networks, whole or inside a text.
fn families(value: &Value, found: &mut BTreeSet<u8>) {
    match value {
        Value::String(text) => {
            let parts = text.split(|c: char| !(c.is_ascii_hexdigit() || ".:".contains(c)));
            for address in parts.filter_map(|part| part.parse::<std::net::IpAddr>().ok()) {
                found.insert(if address.is_ipv4() { 4 } else { 6 });
            }
        }
        Value::Array(all) => all.iter().for_each(|v| families(v, found)),
        Value::Object(all) => all.values().for_each(|v| families(v, found)),
        _ => {}
    }
}

#[test]
fn every_kind_ends_in_nodes_platform_and_status_in_every_family() {
    for (kind, cases, platform) in KINDS {
        for (suffix, wanted) in [("v4", vec![4]), ("v6", vec![6]), ("dual", vec![4, 6])] {
            let name = format!("{cases}-{suffix}");
            let dir = here().join(&name);
            let (compiled, _) = compiled(&Case {
                name: name.clone(),
                dir,
            });
            let statuses = compiled.statuses.iter();
            let own: Vec<_> = statuses.filter(|(id, _)| id.kind == kind).collect();
            assert!(!own.is_empty(), "{name} has no status of a {kind}");
            assert_eq!(platform, !compiled.platform.is_empty(), "{name}: platform");
            let contributed = |c: &&std::sync::Arc<mooring_intent::Contribution>| {
                c.object.kind == kind && !c.items.is_empty()
            };
            let items = compiled.contributions.iter().filter(contributed).count();
            assert!(items > 0, "{name}: a {kind} put nothing on a node");
            let mut told = BTreeSet::new();
            let [mut network, netplan] = compiled.nodes["worker-1"].objects("worker-1", "");
            // The host as its router sees it is of one family whatever is carried.
            for route in at(
                &network.clone(),
                "/spec/clusterVRF/staticRoutes/*/nextHop/address",
            ) {
                assert_eq!(route, "fd00:7:caa5::1");
            }
            if let Some(routes) = network.pointer_mut("/spec/clusterVRF/staticRoutes") {
                *routes = Value::Null;
            }
            families(&network, &mut told);
            families(&netplan, &mut told);
            let said = own.iter().map(|(_, status)| *status);
            for value in compiled.platform.iter().chain(said) {
                families(value, &mut told);
            }
            assert_eq!(told.into_iter().collect::<Vec<_>>(), wanted, "{name}");
        }
    }
}
