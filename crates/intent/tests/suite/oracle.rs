//! The low-level network of the operator that we take over from, as it is used in its own tests.

use std::fs;

use mooring_intent::trace::trace;
use mooring_intent::{Answers, Compiled, Inputs, Prior, adopt};
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
    assert_eq!(before.revision().spec, after.revision().spec);
    for compiled in [&beside, &after] {
        assert_eq!(
            before.nodes["worker-1"].network, compiled.nodes["worker-1"].network,
            "the node's agent is told the same"
        );
    }
    let vlans = |c: &Compiled| -> Vec<String> {
        let network = &c.nodes["worker-1"].netplan.desired_state.network;
        network.vlans.keys().cloned().collect()
    };
    assert_eq!(vlans(&before), ["vlan.501"]);
    assert_eq!(vlans(&beside), ["l2.vlan1"], "one VLAN has one device");
}

/// The same network as intents: segments, addresses for ingress and egress in both VRFs, looked up by source.
const SAME: &str = "
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: m2m, labels: {from: m2m-segment}},
 spec: {vrf: m2m, vni: 2002026, routeTarget: '65188:2026', prefixes: [10.102.0.1/32, 'fda5:25c1:193c::/64'], moreSpecifics: true}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: m2m-by-source, labels: {from: m2m}},
 spec: {vrf: m2m, vni: 2002026, routeTarget: '65188:2026', sbr: {enabled: true}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: c2m, labels: {from: c2m-segment}},
 spec: {vrf: c2m, vni: 2002027, routeTarget: '65188:2027'}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: c2m-by-source, labels: {from: c2m}},
 spec: {vrf: c2m, vni: 2002027, routeTarget: '65188:2027', sbr: {enabled: true}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: vlan1},
 spec: {network: {vlanID: 501, vni: 4000002, ipv4: {subnet: 10.250.0.0/24}, subnet: 'fd94:685b:30cf:501::/64'},
        anycastMac: '1a:ee:cf:2f:a7:a8', interfaceName: vlan1, destinations: {matchLabels: {from: m2m-segment}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: vlan2},
 spec: {network: {vlanID: 502, vni: 4000003, ipv4: {subnet: 10.250.1.0/24}, subnet: 'fd94:685b:30cf:502::/64'},
        anycastMac: '1a:ee:cf:2f:a7:a9', interfaceName: vlan2, destinations: {matchLabels: {from: m2m-segment}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: vlan3},
 spec: {network: {vlanID: 503, vni: 4000004, ipv4: {subnet: 10.250.30.0/24}, subnet: 'fd94:685b:30cf:503::/64'},
        anycastMac: '1a:ee:cf:2f:a7:a8', interfaceName: vlan3, destinations: {matchLabels: {from: c2m-segment}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: m2m-egress},
 spec: {network: {ipv4: {subnet: 10.250.2.0/30}, subnet: 'fd90:4dbf:396d::/126'}, destinations: {matchLabels: {from: m2m}},
        connections: [{name: out, direction: outbound}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: m2m-ingress},
 spec: {network: {ipv4: {subnet: 10.250.4.0/24}, subnet: 'fdbb:6b17:90ba::/64'}, destinations: {matchLabels: {from: m2m}},
        connections: [{name: in, direction: inbound, count: 4}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: c2m-egress},
 spec: {network: {ipv4: {subnet: 10.250.6.0/30}, subnet: 'fde8:e5cf:d314::/126'}, destinations: {matchLabels: {from: c2m}},
        connections: [{name: out, direction: outbound}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: c2m-ingress},
 spec: {network: {ipv4: {subnet: 10.250.5.0/24}, subnet: 'fdb2:e3e1:fcbf::/64'}, destinations: {matchLabels: {from: c2m}},
        connections: [{name: in, direction: inbound, count: 4}]}}
";

#[test]
fn intents_that_say_the_same_network_send_every_packet_the_same_way() {
    let Some(oracles) = oracles("packets of the low-level network and of its intents") else {
        return;
    };
    let text = fs::read_to_string(oracles.join("schiff/network-operator-configs.yaml")).unwrap();
    let compiled = |text: &str| {
        let mut objects = documents(text);
        objects.push(node("worker-1"));
        run(&objects, &Answers::default(), &Prior::default()).0
    };
    let (low, same) = (compiled(&text), compiled(SAME));
    assert!(
        same.findings.iter().all(|f| !f.is_error()),
        "{:#?}",
        same.findings
    );
    let (low, same) = (
        &low.nodes["worker-1"].network,
        &same.nodes["worker-1"].network,
    );
    assert_eq!(low.layer2s, same.layer2s, "segments are equal to the byte");
    let names = |spec: &mooring_api::kinds::schiff::NodeNetworkConfigSpec| -> Vec<String> {
        let fabric = spec.fabric_vrfs.keys();
        fabric.chain(spec.local_vrfs.keys()).cloned().collect()
    };
    assert_eq!(names(low), names(same));
    // What differs: filters name hosts instead of everything inside a subnet, rules hosts instead of subnets, and the
    // range of workload BGP (10.250.3.0/24) belongs to no intent here.
    let sources = [
        "10.250.0.7",
        "10.250.1.7",
        "10.250.30.7",
        "10.250.2.1",
        "10.250.4.1",
        "10.250.4.4",
        "10.250.6.1",
        "10.250.5.1",
        "10.244.0.1",
        "fd94:685b:30cf:501::7",
        "fd94:685b:30cf:503::7",
        "fdbb:6b17:90ba::1",
        "fdb2:e3e1:fcbf::2",
        "fd90:4dbf:396d::1",
    ];
    let targets = [
        "10.102.0.1",
        "10.102.0.2",
        "10.250.0.9",
        "10.250.1.9",
        "10.250.30.9",
        "8.8.8.8",
        "fda5:25c1:193c::5",
        "fd94:685b:30cf:502::9",
        "2001:db8::1",
    ];
    let mut told = 0;
    for source in sources {
        for target in targets
            .iter()
            .filter(|t| t.contains(':') == source.contains(':'))
        {
            let story = |spec| trace(spec, source.parse().unwrap(), target.parse().unwrap());
            let (one, other) = (story(low), story(same));
            assert_eq!(
                one.end, other.end,
                "{source} to {target}: {one:#?} {other:#?}"
            );
            told += 1;
        }
    }
    assert!(told > 60, "only {told} packets");
}

#[test]
fn adoption_of_the_low_level_network_changes_nothing_and_names_its_residue() {
    let Some(oracles) = oracles("adoption of the low-level network") else {
        return;
    };
    let text = fs::read_to_string(oracles.join("schiff/network-operator-configs.yaml")).unwrap();
    let mut objects = documents(&text);
    objects.push(node("worker-1"));
    let before = run(&objects, &Answers::default(), &Prior::default()).0;
    let adoption = adopt(&Inputs::read(&objects));
    assert_eq!(adoption.digest, before.digest);
    let named = |list: &[Value]| -> Vec<String> {
        let name = |o: &Value| {
            format!(
                "{}/{}",
                o["kind"].as_str().unwrap(),
                o["metadata"]["name"].as_str().unwrap()
            )
        };
        list.iter().map(name).collect()
    };
    assert_eq!(
        named(&adoption.intents),
        [
            "Destination/c2m",
            "Destination/m2m",
            "Destination/m2m-inside",
            "Layer2Attachment/vlan1",
            "Layer2Attachment/vlan2",
            "Layer2Attachment/vlan3",
        ]
    );
    // Lines with everything inside a subnet, sources and aggregates are what no intent says.
    let residue = [
        "VRFRouteConfiguration/c2m-test-vrf",
        "VRFRouteConfiguration/m2m-test-vrf",
    ];
    assert_eq!(named(&adoption.residue), residue);
    let m2m = &adoption.residue[1]["spec"];
    assert_eq!(
        m2m["import"].as_array().unwrap().len(),
        0,
        "the Destinations say them"
    );
    assert_eq!(m2m["export"].as_array().unwrap().len(), 10);

    // Beside the originals, and in their place: the same revision, the same agents.
    let mut beside = objects.clone();
    beside.extend(adoption.intents.clone());
    let mut instead = adoption.intents.clone();
    instead.extend(adoption.residue.clone());
    instead.push(node("worker-1"));
    for objects in [beside, instead] {
        let after = run(&objects, &Answers::default(), &Prior::default()).0;
        assert!(
            after.findings.iter().all(|f| !f.is_error()),
            "{:#?}",
            after.findings
        );
        assert_eq!(before.digest, after.digest);
        assert_eq!(
            before.nodes["worker-1"].network,
            after.nodes["worker-1"].network
        );
    }
}

#[test]
fn a_mirror_of_an_adopted_segment_is_adopted_too() {
    let low = "
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: Layer2NetworkConfiguration
metadata: {name: vlan1}
spec: {id: 501, mtu: 1500, vni: 4000002, nodeSelector: {matchLabels: {pick: me}}}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: VRFRouteConfiguration
metadata: {name: mirror}
spec: {vrf: mirror, vni: 900, routeTarget: '64500:900', seq: 10, import: [], export: [], loopbacks: [{name: lo.mir, subnet: 10.99.0.0/24}]}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorTarget
metadata: {name: collector}
spec: {type: l3gre, destinationIP: 192.0.2.100, key: 7, destinationVrf: mirror, sourceLoopback: lo.mir}
---
apiVersion: network.t-caas.telekom.com/v1alpha1
kind: MirrorSelector
metadata: {name: capture}
spec:
  {mirrorTarget: {kind: MirrorTarget, name: collector}, mirrorSource: {kind: Layer2NetworkConfiguration, name: vlan1}, direction: ingress,
   trafficMatch: {protocol: TCP, dstPort: 443}}
---
{apiVersion: v1, kind: Node, metadata: {name: worker-1, labels: {pick: me}}}
";
    let objects = documents(low);
    let before = run(&objects, &Answers::default(), &Prior::default()).0;
    assert_eq!(before.findings, []);
    let adoption = adopt(&Inputs::read(&objects));
    let kinds = |list: &[Value]| -> Vec<String> {
        let kind = |o: &Value| o["kind"].as_str().unwrap().to_owned();
        list.iter().map(kind).collect()
    };
    let intents = [
        "Destination",
        "Layer2Attachment",
        "Collector",
        "TrafficMirror",
    ];
    assert_eq!(kinds(&adoption.intents), intents);
    // The loopback is on every node of its VRF, which a Collector alone does not ask for.
    assert_eq!(kinds(&adoption.residue), ["VRFRouteConfiguration"]);
    let mut instead = adoption.intents;
    instead.extend(adoption.residue);
    instead.extend(objects.into_iter().filter(|o| o["kind"] == "Node"));
    let after = run(&instead, &Answers::default(), &Prior::default()).0;
    assert_eq!(before.digest, after.digest);
    assert_eq!(
        before.nodes["worker-1"].network,
        after.nodes["worker-1"].network
    );
    assert_eq!(
        after.nodes["worker-1"].network.fabric_vrfs["mirror"]
            .vrf
            .gres
            .len(),
        1
    );
}

/// A segment whose workloads announce, a loopback beside it, and a peering that no intent says.
const PEERS: &str = "
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2NetworkConfiguration, metadata: {name: vlan7},
 spec: {id: 7, mtu: 1500, vni: 70, vrf: m2m, anycastMac: '1a:ee:cf:2f:a7:a8', anycastGateways: [10.7.0.1/24], nodeSelector: {matchLabels: {pick: me}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFRouteConfiguration, metadata: {name: m2m},
 spec: {vrf: m2m, vni: 2002026, routeTarget: '65188:2026', seq: 10, import: [{cidr: 10.102.0.0/16, action: permit}],
        export: [{cidr: 10.7.0.0/24, action: permit}, {cidr: 10.9.0.0/16, le: 32, action: permit}], sbrPrefixes: [10.8.0.0/16],
        loopbacks: [{name: lo.x, subnet: 10.99.0.0/24}], nodeSelector: {matchLabels: {pick: me}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: BGPPeering, metadata: {name: workloads},
 spec: {peeringVlan: {name: vlan7}, remoteASN: 65511, enableBFD: false, maximumPrefixes: 5, holdTime: 9s, keepaliveTime: 3s,
        import: [{cidr: 10.7.0.0/24, le: 32, action: permit}, {cidr: 10.9.0.0/16, le: 32, action: permit}],
        export: [{cidr: 10.102.0.0/16, action: permit}], nodeSelector: {matchLabels: {pick: me}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: BGPPeering, metadata: {name: host},
 spec: {loopbackPeer: {ips: ['fd00:1::1']}, remoteASN: 65512, enableBFD: false, export: [], import: []}}
---
{apiVersion: v1, kind: Node, metadata: {name: worker-1, labels: {pick: me}}}
";

#[test]
fn peers_and_loopbacks_are_adopted_with_their_segment_and_what_stays_is_named() {
    let objects = documents(PEERS);
    let before = run(&objects, &Answers::default(), &Prior::default()).0;
    assert_eq!(before.findings, []);
    let adoption = adopt(&Inputs::read(&objects));
    let attachment = &adoption.intents[1];
    assert_eq!(attachment["kind"], "Layer2Attachment", "{adoption:#?}");
    assert_eq!(
        attachment["spec"]["bgp"],
        json!({"enabled": true, "advertiseTransferNetwork": true, "holdTime": "9s", "keepaliveTime": "3s",
                           "maximumPrefixes": 5, "workloadAS": "65511"})
    );
    assert_eq!(adoption.intents[0]["spec"]["loopbacks"][0]["name"], "lo.x");
    let said: Vec<String> = adoption
        .findings
        .iter()
        .map(|f| format!("{}: {}", f.object.as_ref().unwrap(), f.message))
        .collect();
    assert_eq!(
        said,
        [
            "BGPPeering/host: it stays low-level: no intent has a peer at a fixed address of the host",
            "VRFRouteConfiguration/m2m: it stays low-level: no intent says 1 of sbrPrefixes",
        ]
    );
    let help = &adoption.findings[1].help;
    assert!(help.contains("a VRFAttachment whose connections"), "{help}");
    let mut instead = adoption.intents.clone();
    instead.extend(adoption.residue);
    instead.extend(objects.iter().filter(|o| o["kind"] == "Node").cloned());
    let mut beside = objects.clone();
    beside.extend(adoption.intents);
    for objects in [beside, instead] {
        let after = run(&objects, &Answers::default(), &Prior::default()).0;
        let wrong: Vec<_> = after.findings.iter().filter(|f| f.is_error()).collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
        assert_eq!(before.digest, after.digest);
        let network = |c: &Compiled| c.nodes["worker-1"].network.clone();
        assert_eq!(network(&before), network(&after));
    }
}

#[test]
fn a_peering_that_asks_for_bfd_keeps_its_segment_low_level() {
    let objects = documents(&PEERS.replace("65511, enableBFD: false", "65511, enableBFD: true"));
    let adoption = adopt(&Inputs::read(&objects));
    let kinds: Vec<&str> = adoption
        .residue
        .iter()
        .filter_map(|o| o["kind"].as_str())
        .collect();
    assert_eq!(
        kinds,
        [
            "Layer2NetworkConfiguration",
            "VRFRouteConfiguration",
            "BGPPeering",
            "BGPPeering"
        ]
    );
    let bfd = adoption
        .findings
        .iter()
        .filter(|f| f.message.contains("BFD"));
    assert_eq!(bfd.count(), 1);
}
