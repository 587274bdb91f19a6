//! Facts that the operator's own tests state, and its defects, each as a test that would have shown it.

use mooring_api::kinds::schiff::ActionType;
use mooring_intent::{Answers, Inputs, Prior, allocate, wants};

use crate::{codes, documents, run, text};

const BASE: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.0.0.0/8]}}
";

fn routes(rest: &str) -> String {
    format!(
        "---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFRouteConfiguration, metadata: {{name: m2m}}, \
         spec: {{vrf: m2m, vni: 5000, routeTarget: '65001:5000', seq: 10, {rest}}}}}\n"
    )
}

#[test]
fn one_cidr_with_other_bounds_or_another_action_is_legal_and_the_same_line_twice_is_not() {
    let legal = "import: [{cidr: '::/0', action: deny}, {cidr: '::/0', action: permit, ge: 44, le: 128}, {cidr: 10.0.0.0/16, action: permit, le: 32}], export: []";
    let compiled = text(&format!("{BASE}{}", routes(legal)));
    assert_eq!(compiled.findings, []);
    let cluster = compiled.nodes["a"].network.cluster_vrf.as_ref().unwrap();
    let lines = &cluster.vrf_imports[0].filter.items;
    let kinds: Vec<_> = lines.iter().map(|l| l.action.kind).collect();
    // As written: a deny gives the lines of its VRF an order that matters.
    assert_eq!(
        kinds,
        [ActionType::Reject, ActionType::Accept, ActionType::Accept]
    );
    for bad in [
        "import: [{cidr: 10.0.0.0/8, action: permit}, {cidr: 10.0.0.0/8, action: permit}], export: []",
        "import: [{cidr: 10.0.0.0/8, action: permit, seq: 1}, {cidr: 10.1.0.0/16, action: permit, seq: 1}], export: []",
        "import: [{cidr: 10.0.0.0/8, action: permit, le: 64}], export: []",
        "import: [{cidr: 10.0.0.0/8, action: permit, ge: 4}], export: []",
    ] {
        let compiled = text(&format!("{BASE}{}", routes(bad)));
        assert_eq!(codes(&compiled), ["InvalidField"], "{bad}");
    }
}

#[test]
fn a_written_identity_counts_before_the_platforms_and_none_at_all_is_an_error() {
    let config = "---\n{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {name: cluster}, \
                  spec: {vrfs: {m2m: {vni: 7, routeTarget: '1:7'}, c2m: {vni: 8, routeTarget: '1:8'}}}}\n";
    let c2m = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFRouteConfiguration, metadata: {name: c2m}, \
               spec: {vrf: c2m, seq: 10, import: [], export: []}}\n";
    let compiled = text(&format!(
        "{BASE}{config}{c2m}{}",
        routes("import: [], export: []")
    ));
    let vrfs = &compiled.nodes["a"].network.fabric_vrfs;
    assert_eq!((vrfs["m2m"].vni, vrfs["c2m"].vni), (5000, 8));
    let compiled = text(&format!("{BASE}{c2m}"));
    assert_eq!(codes(&compiled), ["VNIUnresolved"]);
}

#[test]
fn loopbacks_are_sticky_per_node_and_lowest_first() {
    let low = routes("import: [], export: [], loopbacks: [{name: lo.mir, subnet: 10.99.0.0/29}]");
    let objects = documents(&format!("{BASE}{low}"));
    let (compiled, answers) = run(&objects, &Answers::default(), &Prior::default());
    let address = |c: &mooring_intent::Compiled, node: &str| {
        c.nodes[node].network.fabric_vrfs["m2m"].vrf.loopbacks["lo.mir"].ip_addresses[0].clone()
    };
    assert_eq!(address(&compiled, "a"), "10.99.0.1/32");
    assert_eq!(address(&compiled, "b"), "10.99.0.2/32");
    // A node that sorts before both takes what is free and moves nobody.
    let more = format!("{BASE}{low}---\n{{apiVersion: v1, kind: Node, metadata: {{name: '0'}}}}\n");
    let (compiled, _) = run(&documents(&more), &answers, &Prior::default());
    assert_eq!(address(&compiled, "a"), "10.99.0.1/32");
    assert_eq!(address(&compiled, "0"), "10.99.0.3/32");
    // Another subnet: what lies outside is given anew.
    let moved = format!("{BASE}{}", low.replace("10.99.0.0/29", "10.98.0.0/29"));
    let (compiled, _) = run(&documents(&moved), &answers, &Prior::default());
    assert_eq!(address(&compiled, "b"), "10.98.0.2/32");
    // The fabric is told the host.
    let filter = &compiled.nodes["b"].network.fabric_vrfs["m2m"].evpn_export_filter;
    let host = filter.items[0].matcher.prefix.as_ref().unwrap();
    assert_eq!(host.prefix, "10.98.0.2/32");
}

#[test]
fn a_full_loopback_subnet_is_a_finding() {
    let low = routes("import: [], export: [], loopbacks: [{name: lo.mir, subnet: 10.99.0.0/32}]");
    let compiled = text(&format!("{BASE}{low}"));
    assert_eq!(codes(&compiled), ["PoolExhausted"]);
}

const ATTACHMENT: &str = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: v}, \
    spec: {network: {ipv4: {subnet: 192.0.2.0/29}}, destinations: {matchLabels: {zone: red}}, \
    connections: [{name: in, direction: inbound, count: COUNT}, {name: out, direction: outbound, count: 1}]}}\n";

fn given(count: u16, before: &Answers) -> Answers {
    let objects = documents(&format!(
        "{BASE}{}",
        ATTACHMENT.replace("COUNT", &count.to_string())
    ));
    let (answers, findings) = allocate(&wants(&Inputs::read(&objects)), before);
    assert_eq!(findings, []);
    answers
}

#[test]
fn counts_grow_and_shrink_without_moving_anybody_and_freed_addresses_are_used_again() {
    let two = given(2, &Answers::default());
    let shown = |a: &Answers| -> Vec<String> {
        a.iter()
            .map(|(k, c)| format!("{} {}", k.rsplit_once('/').unwrap().1, c.network()))
            .collect()
    };
    assert_eq!(shown(&two), ["0 192.0.2.1", "1 192.0.2.2", "0 192.0.2.3"]);
    let three = given(3, &two);
    assert_eq!(
        shown(&three),
        ["0 192.0.2.1", "1 192.0.2.2", "2 192.0.2.4", "0 192.0.2.3"]
    );
    let one = given(1, &three);
    assert_eq!(shown(&one), ["0 192.0.2.1", "0 192.0.2.3"]);
    assert_eq!(given(3, &one), three, "what was freed is free");
}

#[test]
fn more_addresses_than_the_subnet_has_are_refused() {
    let compiled = text(&format!("{BASE}{}", ATTACHMENT.replace("COUNT", "6")));
    assert!(codes(&compiled).contains(&"PoolExhausted".to_owned()));
    assert!(compiled.platform.is_empty(), "it is set aside whole");
}

#[test]
fn explicit_addresses_of_all_objects_are_kept_free() {
    let fixed = ATTACHMENT
        .replace("name: v}", "name: z}")
        .replace("count: COUNT}", "addresses: [192.0.2.1]}");
    let objects = documents(&format!(
        "{BASE}{}{fixed}",
        ATTACHMENT.replace("COUNT", "1")
    ));
    let (answers, _) = allocate(&wants(&Inputs::read(&objects)), &Answers::default());
    assert_eq!(
        answers
            .address("vrfattachment/z/in/ipv4/0")
            .unwrap()
            .to_string(),
        "192.0.2.1"
    );
    assert_eq!(
        answers
            .address("vrfattachment/v/in/ipv4/0")
            .unwrap()
            .to_string(),
        "192.0.2.2"
    );
}

#[test]
fn a_nodes_own_address_is_never_in_a_pool() {
    let node = "{apiVersion: v1, kind: Node, metadata: {name: c}, status: {addresses: [{type: InternalIP, address: 192.0.2.1}]}}";
    let base = format!("{BASE}---\n{node}\n");
    let compiled = text(&format!("{base}{}", ATTACHMENT.replace("COUNT", "1")));
    let pool = compiled
        .platform
        .iter()
        .find(|o| o["kind"] == "IPAddressPool")
        .unwrap();
    assert_eq!(pool["spec"]["addresses"][0], "192.0.2.2/32");
    let fixed = ATTACHMENT.replace("count: COUNT}", "addresses: [192.0.2.1]}");
    let compiled = text(&format!("{base}{fixed}"));
    assert!(
        codes(&compiled)
            .iter()
            .any(|c| c == "DuplicateAddress" || c == "AddressNotUsable")
    );
}

const SEGMENT: &str = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: s}, \
    spec: {network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/SIZE}}, interfaceName: s, nodeSelector: {matchLabels: {pick: me}}, \
    destinations: {matchLabels: {zone: red}}, nodeIPs: {enabled: true, reservedForPods: PODS}}}\n";

fn picked() -> String {
    BASE.replace("{name: a}", "{name: a, labels: {pick: me}}")
}

#[test]
fn node_addresses_are_for_selected_nodes_and_never_the_gateway() {
    let segment = SEGMENT.replace("SIZE", "29").replace("PODS", "4");
    let (compiled, answers) = run(
        &documents(&format!("{}{segment}", picked())),
        &Answers::default(),
        &Prior::default(),
    );
    let given: Vec<_> = answers
        .iter()
        .map(|(k, c)| (k.to_owned(), c.to_string()))
        .collect();
    assert_eq!(
        given,
        [(
            "layer2attachment/s/ipv4/node/a".to_owned(),
            "192.0.2.2/32".to_owned()
        )]
    );
    let device = &compiled.nodes["a"].netplan.desired_state.network.vlans["l2.s"];
    assert_eq!(device["addresses"][0], "192.0.2.2/29");
    assert_eq!(device["routes"][0]["to"], "10.0.0.0/8");
    assert_eq!(device["routes"][0]["via"], "192.0.2.1");
    assert!(
        compiled.nodes["b"]
            .netplan
            .desired_state
            .network
            .vlans
            .is_empty()
    );
}

#[test]
fn too_few_addresses_for_the_promised_pods_are_refused_before_anything_is_sent() {
    let segment = SEGMENT.replace("SIZE", "29").replace("PODS", "5");
    let compiled = text(&format!("{}{segment}", picked()));
    assert!(codes(&compiled).contains(&"PoolExhausted".to_owned()));
    assert!(compiled.nodes["a"].network.layer2s.is_empty());
}

#[test]
fn a_gateway_needs_more_than_one_address() {
    let segment = SEGMENT
        .replace("SIZE", "32")
        .replace("PODS", "0")
        .replace("192.0.2.0/32", "192.0.2.1/32");
    let compiled = text(&format!("{}{segment}", picked()));
    assert!(codes(&compiled).contains(&"InvalidGateway".to_owned()));
}

#[test]
fn a_selector_that_matches_nothing_is_not_resolved() {
    let segment = SEGMENT
        .replace("SIZE", "29")
        .replace("PODS", "0")
        .replace("zone: red", "zone: grey");
    let compiled = text(&format!("{}{segment}", picked()));
    let status = compiled
        .statuses
        .iter()
        .find(|(id, _)| id.name == "s")
        .unwrap()
        .1;
    assert_eq!(status["conditions"][0]["type"], "Resolved");
    assert_eq!(status["conditions"][0]["status"], "False");
    assert_eq!(status["conditions"][0]["reason"], "NoDestinationMatched");
}

#[test]
fn a_tunnel_stands_beside_attachments_of_its_vrf_and_two_attachments_keep_their_lines() {
    // Defects 7 and 8 of the operator: merging lost tunnels, and shared lists grew with the nodes.
    let all = format!(
        "{}{}---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {{name: mir, labels: {{zone: red}}}}, \
         spec: {{vrf: red, vni: 100, routeTarget: '64500:100', loopbacks: [{{name: lo.mir, subnet: 10.99.0.0/24}}]}}}}\n\
         ---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Collector, metadata: {{name: c}}, \
         spec: {{address: 203.0.113.9, protocol: l3gre, mirrorDestination: {{name: mir}}}}}}\n\
         ---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: TrafficMirror, metadata: {{name: t}}, \
         spec: {{source: {{kind: Layer2Attachment, name: s}}, collector: c, direction: ingress}}}}\n",
        picked(),
        SEGMENT.replace("SIZE", "29").replace("PODS", "0")
    );
    let compiled = text(&all);
    let red = &compiled.nodes["a"].network.fabric_vrfs["red"];
    assert_eq!(red.vrf.gres.len(), 1);
    assert_eq!(
        compiled.nodes["a"].network.layer2s["10"].mirror_acls.len(),
        1
    );
    assert!(
        !compiled.nodes["b"].network.fabric_vrfs.contains_key("red"),
        "only where something is mirrored"
    );
    let more = format!(
        "{all}---\n{{apiVersion: v1, kind: Node, metadata: {{name: z, labels: {{pick: me}}}}}}\n"
    );
    let after = text(&more);
    assert_eq!(compiled.digest, after.digest);
    assert_eq!(compiled.nodes["a"], after.nodes["a"]);
}

#[test]
fn every_part_of_a_form_has_an_origin() {
    // Defect 17: the provenance was never filled.
    let compiled = text(&format!(
        "{}{}",
        picked(),
        SEGMENT.replace("SIZE", "29").replace("PODS", "0")
    ));
    let revisions = compiled.compiled_revisions();
    let spec = &revisions[0].spec;
    let known: Vec<&str> = spec.provenance.iter().map(|e| e.path.as_str()).collect();
    for (_, items) in compiled.form.scopes() {
        for item in items {
            assert!(known.contains(&item.path().as_str()), "{}", item.path());
        }
    }
    assert!(known.contains(&"vlan/10"), "{known:?}");
    assert_eq!(spec.nodes.len(), 2);
    assert_eq!(spec.bodies.len(), 2, "one has the segment, one has nothing");
}
