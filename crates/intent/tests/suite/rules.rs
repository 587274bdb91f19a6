//! Every validation rule of the seed (§4.1 to §4.6), by name: what it admits and what it refuses, and with which finding.
//!
//! Rules that one object can break are in the schema and refused at the door; rules between objects are findings of the
//! compiler, since objects may come in any order.

use mooring_api::Code;

use crate::text;

struct Rule {
    name: &'static str,
    code: Code,
    admits: String,
    refuses: String,
}

const GROUP: &str = "apiVersion: network.t-caas.telekom.com/v1alpha1";

const BASE: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {network.t-caas.telekom.com/worker-group: g}}}
---
{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {name: cluster},
 spec: {localAS: 64501, defaultWorkloadAS: 65000, profile: bm4x, transferRanges: [{name: t, ipv4: 198.18.0.0/24}],
        sriov: {g: {resourceName: vf, bridge: br0}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red, any: x}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.0.0.0/8]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: blue, labels: {zone: blue, any: x}},
 spec: {vrf: blue, vni: 200, routeTarget: '64500:200', prefixes: [172.16.0.0/12], loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: base},
 spec: {network: {vlanID: 4000, vni: 4000}, interfaceName: base, workerGroups: [g]}}
";

fn object(kind: &str, spec: &str) -> String {
    format!("{{{GROUP}, kind: {kind}, metadata: {{name: x}}, spec: {spec}}}")
}

fn rule(name: &'static str, code: Code, kind: &str, admits: &str, refuses: &str) -> Rule {
    Rule {
        name,
        code,
        admits: object(kind, admits),
        refuses: object(kind, refuses),
    }
}

fn rules() -> Vec<Rule> {
    let destination = "Destination";
    let layer2 = "Layer2Attachment";
    let vrf = "VRFAttachment";
    let seg = |rest: &str| {
        format!(
            "{{network: {{vlanID: 5, vni: 50, ipv4: {{subnet: 192.0.2.0/24}}}}, workerGroups: [g], {rest}}}"
        )
    };
    let att = |rest: &str| {
        format!(
            "{{network: {{ipv4: {{subnet: 192.0.2.0/29}}}}, workerGroups: [g], destinations: {{matchLabels: {{zone: red}}}}, {rest}}}"
        )
    };
    let inbound = "connections: [{name: in, direction: inbound, disableLoadBalancer: true}]";
    let neighbor = |connection: &str, name: &str| {
        format!(
            "{}\n---\n{{{GROUP}, kind: BGPNeighbor, metadata: {{name: peer}}, spec: {{allowedConnections: [{{vrfAttachment: {{name: x}}, connectionNames: [{name}]}}]}}}}",
            object(vrf, &att(&format!("connections: [{connection}]")))
        )
    };
    let collector = |rest: &str| format!("{{protocol: l3gre, {rest}}}");
    let mirror = |rest: &str| {
        format!(
            "{{{GROUP}, kind: Collector, metadata: {{name: c}}, spec: {{address: 203.0.113.1, protocol: l3gre, mirrorDestination: {{name: blue}}}}}}\n---\n{}",
            object("TrafficMirror", rest)
        )
    };
    let between = |name, code, admits, refuses| Rule {
        name,
        code,
        admits,
        refuses,
    };
    vec![
        // 4.1
        rule(
            "vrf is required",
            Code::InvalidField,
            destination,
            "{vrf: v, vni: 1, routeTarget: '1:1'}",
            "{prefixes: []}",
        ),
        rule(
            "a VRF name has at most 12 characters",
            Code::InvalidField,
            destination,
            "{vrf: abcdefghijkl, vni: 1, routeTarget: '1:1'}",
            "{vrf: abcdefghijklm, vni: 1, routeTarget: '1:1'}",
        ),
        rule(
            "prefixes are networks",
            Code::InvalidField,
            destination,
            "{vrf: v, vni: 1, routeTarget: '1:1', prefixes: [10.0.0.0/8, '2001:db8::/32']}",
            "{vrf: v, vni: 1, routeTarget: '1:1', prefixes: [10.0.0.1/8]}",
        ),
        // 4.2, layer 2
        rule(
            "interfaceName is required without SR-IOV",
            Code::InvalidField,
            layer2,
            &seg("interfaceName: i"),
            &seg("sriov: {enabled: false}"),
        ),
        rule(
            "no node addresses with SR-IOV and without interface",
            Code::InvalidField,
            layer2,
            &seg("sriov: {enabled: true}, nodeIPs: {enabled: false}"),
            &seg("sriov: {enabled: true}, nodeIPs: {enabled: true}"),
        ),
        rule(
            "no neighbour suppression without anycast",
            Code::InvalidField,
            layer2,
            &seg("interfaceName: i, disableAnycast: true, disableNeighborSuppression: true"),
            &seg("interfaceName: i, disableAnycast: true, disableNeighborSuppression: false"),
        ),
        rule(
            "BM4X has one VRF with SR-IOV and interface",
            Code::MultipleVRFs,
            layer2,
            &seg(
                "interfaceName: i, sriov: {enabled: true}, destinations: {matchLabels: {zone: red}}",
            ),
            &seg("interfaceName: i, sriov: {enabled: true}, destinations: {matchLabels: {any: x}}"),
        ),
        // 4.2, VRF
        rule(
            "at least one Destination matches",
            Code::NoDestinationMatched,
            vrf,
            &att(inbound),
            &att(inbound).replace("zone: red", "zone: grey"),
        ),
        rule(
            "a subnet does not contain route prefixes",
            Code::OverlappingPrefixes,
            vrf,
            &att(inbound),
            &att(inbound).replace("192.0.2.0/29", "10.0.0.0/7"),
        ),
        rule(
            "counts fit into the usable addresses",
            Code::PoolExhausted,
            vrf,
            &att(
                "connections: [{name: in, direction: inbound, count: 5}, {name: out, direction: outbound, count: 1}]",
            ),
            &att(
                "connections: [{name: in, direction: inbound, count: 5}, {name: out, direction: outbound, count: 2}]",
            ),
        ),
        rule(
            "no two routes have identical prefixes",
            Code::OverlappingPrefixes,
            vrf,
            &att(
                "connections: [{name: in, direction: inbound, routes: [{prefixes: [203.0.113.0/24]}, {prefixes: [203.0.112.0/24]}]}]",
            ),
            &att(
                "connections: [{name: in, direction: inbound, routes: [{prefixes: [203.0.113.0/24]}, {prefixes: [203.0.113.0/24]}]}]",
            ),
        ),
        rule(
            "bidirectional connections are not there yet",
            Code::InvalidField,
            vrf,
            &att(inbound),
            &att("connections: [{name: in, direction: bidirectional}]"),
        ),
        rule(
            "an empty selector is refused",
            Code::InvalidField,
            vrf,
            &att(inbound),
            &att(inbound).replace("{matchLabels: {zone: red}}", "{}"),
        ),
        // 4.3
        between(
            "connections of a BGPNeighbor have no load balancer",
            Code::ConnectionNotAllowed,
            neighbor(
                "{name: in, direction: inbound, disableLoadBalancer: true}",
                "in",
            ),
            neighbor(
                "{name: in, direction: inbound, disableLoadBalancer: false}",
                "in",
            ),
        ),
        between(
            "connections of a BGPNeighbor are inbound",
            Code::ConnectionNotAllowed,
            neighbor(
                "{name: in, direction: inbound, disableLoadBalancer: true}",
                "in",
            ),
            neighbor(
                "{name: in, direction: outbound, disableLoadBalancer: true}",
                "in",
            ),
        ),
        between(
            "connections of a BGPNeighbor exist",
            Code::ReferenceNotFound,
            neighbor(
                "{name: in, direction: inbound, disableLoadBalancer: true}",
                "in",
            ),
            neighbor(
                "{name: in, direction: inbound, disableLoadBalancer: true}",
                "other",
            ),
        ),
        // 4.5
        rule(
            "the address of a Collector is an address",
            Code::InvalidField,
            "Collector",
            &collector("address: 203.0.113.9, mirrorDestination: {name: blue}"),
            &collector("address: collector, mirrorDestination: {name: blue}"),
        ),
        rule(
            "the protocol is l3gre or l2gre",
            Code::InvalidField,
            "Collector",
            "{protocol: l2gre, address: 203.0.113.9, mirrorDestination: {name: blue}}",
            "{protocol: vxlan, address: 203.0.113.9, mirrorDestination: {name: blue}}",
        ),
        rule(
            "the mirror Destination exists",
            Code::ReferenceNotFound,
            "Collector",
            &collector("address: 203.0.113.9, mirrorDestination: {name: blue}"),
            &collector("address: 203.0.113.9, mirrorDestination: {name: green}"),
        ),
        rule(
            "the mirror Destination has loopbacks",
            Code::NoLoopback,
            "Collector",
            &collector("address: 203.0.113.9, mirrorDestination: {name: blue}"),
            &collector("address: 203.0.113.9, mirrorDestination: {name: red}"),
        ),
        // 4.6
        between(
            "the source is a Layer2Attachment or a VRFAttachment",
            Code::InvalidField,
            mirror(
                "{source: {kind: Layer2Attachment, name: base}, collector: c, direction: ingress}",
            ),
            mirror("{source: {kind: PodNetwork, name: base}, collector: c, direction: ingress}"),
        ),
        between(
            "the source exists",
            Code::ReferenceNotFound,
            mirror(
                "{source: {kind: Layer2Attachment, name: base}, collector: c, direction: ingress}",
            ),
            mirror("{source: {kind: VRFAttachment, name: base}, collector: c, direction: ingress}"),
        ),
        between(
            "the collector exists",
            Code::ReferenceNotFound,
            mirror(
                "{source: {kind: Layer2Attachment, name: base}, collector: c, direction: ingress}",
            ),
            mirror(
                "{source: {kind: Layer2Attachment, name: base}, collector: d, direction: ingress}",
            ),
        ),
        between(
            "the direction is required",
            Code::InvalidField,
            mirror(
                "{source: {kind: Layer2Attachment, name: base}, collector: c, direction: egress}",
            ),
            mirror("{source: {kind: Layer2Attachment, name: base}, collector: c}"),
        ),
    ]
}

#[test]
fn every_rule_of_the_seed_admits_and_refuses() {
    for rule in rules() {
        let said = |objects: &str| {
            let compiled = text(&format!("{BASE}---\n{objects}\n"));
            let errors = compiled
                .findings
                .into_iter()
                .filter(mooring_api::Finding::is_error);
            errors.map(|f| (f.code, f.message)).collect::<Vec<_>>()
        };
        assert_eq!(said(&rule.admits), [], "{}: {}", rule.name, rule.admits);
        let refused = said(&rule.refuses);
        let named = refused.iter().any(|(code, _)| *code == rule.code);
        assert!(named, "{}: {} {refused:?}", rule.name, rule.refuses);
    }
    println!("{} rules of the seed", rules().len());
}
