//! The low-level network of the operator that we take over from, as it is used in its own tests.

use std::fs;

use mooring_intent::{Answers, Prior};
use mooring_testkit::oracles;
use serde_json::{Value, json};

use crate::{documents, run};

fn node(name: &str) -> Value {
    json!({ "apiVersion": "v1", "kind": "Node", "metadata": { "name": name, "labels": {} } })
}

#[test]
fn the_low_level_network_of_the_oracles_compiles_as_its_own_operator_builds_it() {
    let Some(oracles) = oracles("the low-level network of das-schiff") else {
        return;
    };
    let text = fs::read_to_string(oracles.join("schiff/network-operator-configs.yaml")).unwrap();
    let mut objects = documents(&text);
    assert_eq!(objects.len(), 5);
    objects.push(node("worker-1"));
    let (compiled, _) = run(&objects, &Answers::default(), &Prior::default());
    assert_eq!(compiled.findings, [], "nothing is wrong with it");
    let spec = &compiled.nodes["worker-1"].network;

    let names: Vec<_> = spec.fabric_vrfs.keys().map(String::as_str).collect();
    assert_eq!(names, ["c2m", "m2m"]);
    let names: Vec<_> = spec.local_vrfs.keys().map(String::as_str).collect();
    assert_eq!(names, ["s-c2m", "s-m2m"]);
    let m2m = &spec.fabric_vrfs["m2m"];
    assert_eq!(m2m.vni, 2_002_026);
    assert_eq!(m2m.evpn_export_route_targets, ["65188:2026"]);
    assert_eq!(m2m.evpn_export_filter.items.len(), 10);
    assert_eq!(m2m.vrf.vrf_imports.len(), 1, "from the cluster alone");
    assert_eq!(m2m.vrf.vrf_imports[0].filter, m2m.evpn_export_filter);
    assert_eq!(m2m.vrf.static_routes.len(), 6, "the aggregates");
    let cluster = spec.cluster_vrf.as_ref().unwrap();
    // c2m imports nothing, so there is no entry for it.
    assert_eq!(cluster.vrf_imports.len(), 1);
    assert_eq!(cluster.vrf_imports[0].from_vrf, "m2m");
    assert_eq!(cluster.vrf_imports[0].filter.items.len(), 2);
    assert_eq!(cluster.policy_routes.len(), 8);
    for (vlan, vrf) in [("501", "m2m"), ("502", "m2m"), ("503", "c2m")] {
        let irb = spec.layer2s[vlan].irb.as_ref().unwrap();
        assert_eq!(irb.vrf, vrf);
        assert_eq!(irb.ip_addresses.len(), 2);
    }
    let netplan = &compiled.nodes["worker-1"].netplan.desired_state.network;
    let names: Vec<_> = netplan.vlans.keys().map(String::as_str).collect();
    assert_eq!(names, ["vlan.501", "vlan.502", "vlan.503"]);
    assert_eq!(netplan.vlans["vlan.501"]["link"], "hbn");
}

#[test]
fn an_intent_that_says_what_a_low_level_object_says_gives_no_new_revision() {
    let low = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata: {name: vlan1}
spec: {id: 501, mtu: 1500, vni: 4000002, vrf: m2m, anycastMac: '1a:ee:cf:2f:a7:a8', anycastGateways: [10.250.0.1/24]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: m2m}
spec: {vrf: m2m, vni: 2002026, routeTarget: '65188:2026', seq: 10,
       import: [{cidr: 10.102.0.0/16, action: permit}], export: [{cidr: 10.250.0.0/24, action: permit}]}
---
{apiVersion: v1, kind: Node, metadata: {name: worker-1}}
";
    let intents = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Destination
metadata: {name: gateway, labels: {type: gateway}}
spec: {vrf: m2m, vni: 2002026, routeTarget: '65188:2026', prefixes: [10.102.0.0/16]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2Attachment
metadata: {name: vlan1}
spec:
  network: {vlanID: 501, vni: 4000002, ipv4: {subnet: 10.250.0.0/24}}
  anycastMac: 1a:ee:cf:2f:a7:a8
  interfaceName: vlan1
  destinations: {matchLabels: {type: gateway}}
";
    let node = "{apiVersion: v1, kind: Node, metadata: {name: worker-1}}";
    let compiled = |text: &str| run(&documents(text), &Answers::default(), &Prior::default()).0;
    let before = compiled(low);
    let beside = compiled(&format!("{low}---\n{intents}"));
    let after = compiled(&format!("{intents}---\n{node}"));
    assert!(
        beside.findings.iter().all(|f| !f.is_error()),
        "{:#?}",
        beside.findings
    );
    assert_eq!(before.digest, beside.digest);
    assert_eq!(before.digest, after.digest);
    assert_eq!(before.revision.spec, after.revision.spec);
    for compiled in [&beside, &after] {
        assert_eq!(
            before.nodes["worker-1"].network, compiled.nodes["worker-1"].network,
            "the node's agent is told the same"
        );
    }
    let vlans = |c: &mooring_intent::Compiled| -> Vec<String> {
        let network = &c.nodes["worker-1"].netplan.desired_state.network;
        network.vlans.keys().cloned().collect()
    };
    assert_eq!(vlans(&before), ["vlan.501"]);
    assert_eq!(vlans(&beside), ["l2.vlan1"], "one VLAN has one device");
}
