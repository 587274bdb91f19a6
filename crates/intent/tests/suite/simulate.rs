//! The route simulator over compiled nodes.

use mooring_api::kinds::schiff::NodeNetworkConfigSpec;
use mooring_intent::trace::{End, arriving, exported, trace};

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

/// What `NETWORK` lacks: a third VRF that the cluster reaches, pods, a source around an address of a connection, a segment
/// inside a prefix of its Destination, and one that is not announced.
const MORE: &str = "
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: green, labels: {zone: green}},
 spec: {vrf: green, vni: 300, routeTarget: '64500:300', prefixes: [203.0.113.0/24, 100.64.0.0/10]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: gold, labels: {zone: gold}},
 spec: {vrf: gold, vni: 400, routeTarget: '64500:400', prefixes: [192.88.0.0/16], sbr: {enabled: true}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: third},
 spec: {network: {vlanID: 12, vni: 1012, ipv4: {subnet: 100.70.0.0/24}}, interfaceName: third, destinations: {matchLabels: {zone: green}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: quiet},
 spec: {network: {vlanID: 13, vni: 1013, ipv4: {subnet: 100.71.0.0/24}}, interfaceName: quiet, destinations: {matchLabels: {zone: green}},
        bgp: {enabled: true, workloadAS: '64999', advertiseTransferNetwork: false}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: PodNetwork, metadata: {name: pods},
 spec: {network: {ipv4: {subnet: 198.18.0.0/19}}, destinations: {matchLabels: {zone: gold}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFRouteConfiguration, metadata: {name: gold},
 spec: {vrf: gold, seq: 10, vni: 400, routeTarget: '64500:400', import: [], export: [], sbrPrefixes: [198.51.96.0/19]}}
";

fn more() -> NodeNetworkConfigSpec {
    let compiled = text(&format!("{NETWORK}{MORE}"));
    NodeNetworkConfigSpec::clone(&compiled.nodes["a"].network)
}

#[test]
fn a_vrf_does_not_give_on_what_it_was_given() {
    // The cluster's VRF has the third VRF's prefix from there; who takes all of the cluster's does not get it.
    let node = more();
    let end = |source: &str| {
        let story = trace(
            &node,
            source.parse().unwrap(),
            "203.0.113.5".parse().unwrap(),
        );
        story.end
    };
    assert!(matches!(end("10.244.0.9"), End::Fabric { vrf, .. } if vrf == "green"));
    assert_eq!(end("198.51.100.1"), End::Host);
}

#[test]
fn what_a_vrf_has_from_its_fabric_leaves_at_once_and_comes_back_only_where_it_is_announced() {
    let node = more();
    let story = |target: &str| {
        trace(
            &node,
            "10.244.0.9".parse().unwrap(),
            target.parse().unwrap(),
        )
    };
    let back = story("100.70.0.7");
    assert_eq!(back.end, End::Segment { vlan: 12 });
    assert!(
        back.steps[1].why.contains("100.70.0.0/24 from here"),
        "{back:?}"
    );
    let gone = story("100.71.0.7");
    assert!(
        matches!(&gone.end, End::Fabric { vrf, .. } if vrf == "green"),
        "{gone:?}"
    );
}

#[test]
fn out_of_the_fabric_a_packet_finds_segments_addresses_and_pods_and_an_aggregate_takes_the_rest() {
    let node = more();
    let end = |vrf: &str, target: &str| {
        let source = "9.9.9.9".parse().unwrap();
        arriving(&node, vrf, source, target.parse().unwrap()).end
    };
    for vrf in ["red", "blue"] {
        assert_eq!(end(vrf, "192.0.3.7"), End::Segment { vlan: 11 });
        assert_eq!(end(vrf, "198.51.100.1"), End::Host);
        let vrf_of = |end| match end {
            End::Swallowed { vrf } => vrf,
            other => panic!("{other:?}"),
        };
        assert_eq!(vrf_of(end(vrf, "198.51.100.9")), vrf);
    }
    assert_eq!(end("gold", "198.18.1.5"), End::Host);
}

#[test]
fn the_longest_source_is_told_first_since_the_kernel_takes_the_first_rule_that_fits() {
    let node = more();
    let routes = node.cluster_vrf.unwrap().policy_routes;
    let sources: Vec<_> = routes
        .iter()
        .map(|r| r.traffic_match.src_prefix.as_deref().unwrap())
        .collect();
    assert_eq!(
        sources,
        ["198.51.100.1/32", "198.18.0.0/19", "198.51.96.0/19"]
    );
}

#[test]
fn no_gateway_is_in_the_clusters_vrf_whose_rules_would_not_see_it() {
    let node = more();
    let gateways = node.layer2s.values().filter_map(|l| l.irb.as_ref());
    let vrfs: Vec<&str> = gateways.map(|irb| irb.vrf.as_str()).collect();
    assert_eq!(vrfs.len(), 4);
    assert!(!vrfs.contains(&"cluster"), "{vrfs:?}");
}
