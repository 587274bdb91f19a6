//! The route simulator over compiled nodes.

use mooring_intent::trace::{End, exported, trace};

use crate::text;

const NETWORK: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red, any: x}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.0.0.0/8], community: '64500:1'}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: blue, labels: {zone: blue, any: x}},
 spec: {vrf: blue, vni: 200, routeTarget: '64500:200', prefixes: [172.16.0.0/12]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: one},
 spec: {network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: one, destinations: {matchLabels: {zone: red}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: both},
 spec: {network: {vlanID: 11, vni: 1011, ipv4: {subnet: 192.0.3.0/24}}, interfaceName: both, destinations: {matchLabels: {any: x}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: v},
 spec: {network: {ipv4: {subnet: 198.51.100.0/24}}, destinations: {matchLabels: {any: x}},
        connections: [{name: in, direction: inbound}]}}
";

fn end(source: &str, target: &str) -> End {
    let compiled = text(NETWORK);
    let node = &compiled.nodes["a"].network;
    trace(node, source.parse().unwrap(), target.parse().unwrap()).end
}

fn fabric(vrf: &str, communities: &[&str]) -> End {
    End::Fabric {
        vrf: vrf.to_owned(),
        known: true,
        communities: communities.iter().map(|c| (*c).to_owned()).collect(),
    }
}

#[test]
fn a_segment_of_one_vrf_leaves_through_it() {
    assert_eq!(end("192.0.2.7", "10.1.2.3"), fabric("red", &["64500:1"]));
    assert_eq!(end("192.0.2.7", "192.0.2.8"), End::Segment { vlan: 10 });
}

#[test]
fn a_segment_of_two_vrfs_leaves_by_prefix_and_nothing_else_passes() {
    assert_eq!(end("192.0.3.7", "10.1.2.3"), fabric("red", &["64500:1"]));
    assert_eq!(end("192.0.3.7", "172.16.1.1"), fabric("blue", &[]));
    let stray = end("192.0.3.7", "8.8.8.8");
    assert!(
        matches!(&stray, End::NoRoute { vrf } if vrf.starts_with("s-")),
        "{stray:?}"
    );
}

#[test]
fn both_vrfs_know_the_way_back_into_the_shared_segment() {
    let compiled = text(NETWORK);
    let node = &compiled.nodes["a"].network;
    for vrf in ["red", "blue"] {
        let subnet = "192.0.3.0/24".parse().unwrap();
        assert!(exported(node, vrf, subnet).is_some(), "{vrf}");
        let from = node.fabric_vrfs[vrf].vrf.vrf_imports.iter();
        let local = from.filter(|i| i.from_vrf.starts_with("s-")).count();
        assert_eq!(local, 1, "{vrf} takes the subnet from the local VRF");
    }
}

#[test]
fn an_address_of_a_connection_is_looked_up_by_source_where_it_leads_to_two_vrfs() {
    assert_eq!(end("198.51.100.1", "10.1.2.3"), fabric("red", &["64500:1"]));
    assert_eq!(end("198.51.100.1", "172.16.1.1"), fabric("blue", &[]));
    // Another source of the cluster has only what its own table says.
    assert_eq!(end("10.244.0.9", "172.16.1.1"), End::Host);
}

#[test]
fn a_story_names_every_table_that_is_asked() {
    let compiled = text(NETWORK);
    let node = &compiled.nodes["a"].network;
    let story = trace(
        node,
        "198.51.100.1".parse().unwrap(),
        "172.16.1.1".parse().unwrap(),
    );
    assert_eq!(story.steps.len(), 2);
    assert!(story.steps[0].why.contains("198.51.100.1/32"), "{story:?}");
    assert_eq!(story.steps[1].vrf, "blue");
}
