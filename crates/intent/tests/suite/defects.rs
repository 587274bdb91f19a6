//! Defects of the operator that we take over from, as far as they are about compiling, each by a test that would have shown it.
//!
//! ```text
//!   1  one bad intent reaches every node         settle::an_object_that_turns_bad_…, rollout's own tests
//!   2  a node is given the gateway's address     facts::node_addresses_are_for_selected_nodes_and_never_the_gateway
//!   3  counts and freed addresses are ignored    facts::counts_grow_and_shrink_…, explicit_addresses_of_all_objects_…
//!   4  every node is given an address            facts::node_addresses_are_for_selected_nodes_…
//!   7  a tunnel is lost beside an attachment     facts::a_tunnel_stands_beside_attachments_…
//!   8  lists grow with the nodes                 the same, and properties::order_does_not_matter_…
//!   9  a peer without address and range          below
//!  10  a VRF without route target is null lists  below, and facts::a_written_identity_counts_…
//!  14  `bgp` makes no BGPAdvertisement           below
//!  15  another way leaves the old objects        below
//!  16  equal names prune each other's pools      below
//!  17  provenance is empty                       facts::every_part_of_a_form_has_an_origin
//!  22  matching nothing counts as resolved       facts::a_selector_that_matches_nothing_is_not_resolved
//! ```
//!
//! The others (5, 6, 11 to 13, 18 to 21) are about controllers, secrets and agents.

use mooring_api::kinds::schiff::{NodeNetworkConfigSpec, Vrf};
use mooring_intent::{Answers, Prior, plan};
use mooring_testkit::cases;
use serde_json::Value;

use crate::cases::{compiled, here};
use crate::{codes, documents, run, text};

const BASE: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.102.0.0/16, 'fda5:25c1:193c::/48']}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: blue, labels: {zone: blue}},
 spec: {vrf: blue, vni: 200, routeTarget: '64500:200', prefixes: [10.102.1.0/24, 'fda5:25c1:193d::/48']}}
";

fn attachment(name: &str, subnet: &str, connection: &str) -> String {
    format!(
        "---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {{name: {name}}}, \
         spec: {{network: {{ipv4: {{subnet: {subnet}}}}}, destinations: {{matchLabels: {{zone: red}}}}, connections: [{connection}]}}}}\n"
    )
}

fn vrfs(network: &NodeNetworkConfigSpec) -> Vec<&Vrf> {
    let fabric = network.fabric_vrfs.values().map(|f| &f.vrf);
    let local = network.local_vrfs.values();
    fabric.chain(local).chain(&network.cluster_vrf).collect()
}

#[test]
fn every_peer_has_an_address_or_a_listen_range_and_every_vrf_its_route_targets() {
    let (mut peers, mut fabric) = (0, 0);
    for case in cases(here()) {
        let (compiled, _) = compiled(&case);
        for (node, config) in &compiled.nodes {
            for peer in vrfs(&config.network).iter().flat_map(|vrf| &vrf.bgp_peers) {
                let said = peer.address.is_some() != peer.listen_range.is_some();
                assert!(said, "{} {node}: {peer:?}", case.name);
                peers += 1;
            }
            for (name, vrf) in &config.network.fabric_vrfs {
                let targets = [
                    &vrf.evpn_import_route_targets,
                    &vrf.evpn_export_route_targets,
                ];
                let all = targets.iter().all(|t| t.len() == 1);
                assert!(all, "{} {node} {name}", case.name);
                fabric += 1;
            }
        }
    }
    assert!(peers > 10 && fabric > 50, "{peers} peers, {fabric} VRFs");
}

#[test]
fn a_vrf_that_nobody_gave_a_route_target_is_on_no_node() {
    let compiled = text(
        &format!(
            "{BASE}{}",
            attachment("v", "192.0.2.0/24", "{name: in, direction: inbound}")
        )
        .replace(", vni: 100, routeTarget: '64500:100'", ""),
    );
    assert!(codes(&compiled).contains(&"VNIUnresolved".to_owned()));
    assert!(compiled.nodes["a"].network.fabric_vrfs.is_empty());
}

#[test]
fn another_way_to_be_known_makes_its_object_and_takes_the_old_one_away() {
    let with = |way: &str| {
        let connection = format!("{{name: in, direction: inbound, advertisement: {way}}}");
        text(&format!(
            "{BASE}{}",
            attachment("v", "192.0.2.0/24", &connection)
        ))
    };
    let kinds = |objects: &[Value]| -> Vec<String> {
        let kind = |o: &Value| o["kind"].as_str().unwrap().to_owned();
        objects.iter().map(kind).collect()
    };
    let plan = plan(&with("l2"), &with("bgp"));
    assert_eq!(kinds(&plan.created), ["BGPAdvertisement"]);
    assert_eq!(kinds(&plan.deleted), ["L2Advertisement"]);
}

#[test]
fn objects_of_two_attachments_that_would_bear_one_name_are_a_conflict() {
    let pool = "{name: in, direction: inbound}";
    let apart = text(&format!(
        "{BASE}{}{}",
        attachment("one", "192.0.2.0/25", pool),
        attachment("two", "192.0.2.128/25", pool)
    ));
    assert!(
        apart.findings.iter().all(|f| !f.is_error()),
        "{:#?}",
        apart.findings
    );
    let pools = apart
        .platform
        .iter()
        .filter(|o| o["kind"] == "IPAddressPool");
    assert_eq!(pools.count(), 2);

    // `a` with `b-c` and `a-b` with `c` are one name.
    let met = text(&format!(
        "{BASE}{}{}",
        attachment("a", "192.0.2.0/25", "{name: b-c, direction: inbound}"),
        attachment("a-b", "192.0.2.128/25", "{name: c, direction: inbound}")
    ));
    let lost: Vec<String> = met
        .findings
        .iter()
        .filter(|f| f.is_error())
        .map(|f| format!("{}: {}", f.object.as_ref().unwrap(), f.message))
        .collect();
    assert!(
        lost.iter()
            .any(|m| m
                .starts_with("VRFAttachment/a-b: IPAddressPool a-b-c belongs to VRFAttachment/a")),
        "{lost:#?}"
    );
}

#[test]
fn sources_are_looked_up_by_prefix_where_they_lead_to_two_vrfs_and_in_one_where_they_lead_to_one() {
    // The facts of its end-to-end tests: a rule has a source and no destination; the prefixes decide inside.
    let outbound = "{name: out, direction: outbound, addresses: [10.250.4.40]}";
    let forced = BASE.replace("'64500:100',", "'64500:100', sbr: {enabled: true},");
    let one = text(&format!(
        "{forced}{}",
        attachment("v", "10.250.4.0/24", outbound)
    ));
    let both = attachment("v", "10.250.4.0/24", outbound).replace(
        "matchLabels: {zone: red}",
        "matchExpressions: [{key: zone, operator: Exists}]",
    );
    let both = run(
        &documents(&format!("{BASE}{both}")),
        &Answers::default(),
        &Prior::default(),
    )
    .0;
    for compiled in [&one, &both] {
        let network = &compiled.nodes["a"].network;
        let rules = &network.cluster_vrf.as_ref().unwrap().policy_routes;
        assert_eq!(rules.len(), 1);
        let rule = &rules[0];
        assert_eq!(
            rule.traffic_match.src_prefix.as_deref(),
            Some("10.250.4.40/32")
        );
        assert_eq!(rule.traffic_match.dst_prefix, None);
        let into = rule.next_hop.vrf.as_deref().unwrap();
        assert!(network.local_vrfs.contains_key(into), "{into}");
    }
    assert!(one.nodes["a"].network.local_vrfs.contains_key("s-red"));
    let local = both.nodes["a"].network.local_vrfs.values().next().unwrap();
    let routes: Vec<(&str, &str)> = local
        .static_routes
        .iter()
        .map(|r| {
            (
                r.prefix.as_str(),
                r.next_hop.as_ref().unwrap().vrf.as_deref().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        routes,
        [
            ("10.102.0.0/16", "red"),
            ("10.102.1.0/24", "blue"),
            ("fda5:25c1:193c::/48", "red"),
            ("fda5:25c1:193d::/48", "blue"),
        ]
    );
}
