//! Conflicts, budgets and last good forms: who stays, who goes, and what is said.

use std::fmt::Write as _;

use mooring_api::{Code, Finding};
use mooring_intent::{Answers, Compiled, Prior};

use crate::{codes, documents, run, text};

const NODES: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a1, labels: {network.t-caas.telekom.com/worker-group: a}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b1, labels: {network.t-caas.telekom.com/worker-group: b}}}
---
{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {name: cluster},
 spec: {vrfs: {red: {vni: 100, routeTarget: '64500:100'}, blue: {vni: 200, routeTarget: '64500:200'}}, localAS: 64501}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red}},
 spec: {vrf: red, prefixes: [10.0.0.0/8]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: blue, labels: {zone: blue}},
 spec: {vrf: blue, prefixes: [172.16.0.0/12]}}
";

/// A segment: name, time of creation, group, VLAN, VNI, interface, subnet, zone.
fn segment(name: &str, created: &str, group: &str, rest: &str) -> String {
    let time = if created.is_empty() {
        String::new()
    } else {
        format!(", creationTimestamp: '2026-01-{created}T00:00:00Z'")
    };
    format!(
        "---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, \
         metadata: {{name: {name}{time}}}, spec: {{workerGroups: [{group}], {rest}}}}}\n"
    )
}

fn errors(compiled: &Compiled) -> Vec<&Finding> {
    compiled.findings.iter().filter(|f| f.is_error()).collect()
}

fn loser(compiled: &Compiled) -> (String, Code, String) {
    let errors = errors(compiled);
    assert!(!errors.is_empty(), "nobody lost");
    let object = errors[0].object.clone().unwrap();
    (object.name, errors[0].code, errors[0].message.clone())
}

fn carried(compiled: &Compiled) -> Vec<&str> {
    let all = compiled.contributions.iter();
    let attachments = all.filter(|c| c.object.kind == "Layer2Attachment");
    attachments.map(|c| c.object.name.as_str()).collect()
}

#[test]
fn the_older_of_two_segments_with_one_vlan_on_a_shared_node_wins() {
    let one = "network: {vlanID: 10, vni: 1010}, interfaceName: one";
    let two = "network: {vlanID: 10, vni: 1011}, interfaceName: two";
    let clash = |first: &str, second: &str| {
        text(&format!(
            "{NODES}{}{}",
            segment("one", first, "a", one),
            segment("two", second, "a", two)
        ))
    };
    let (name, code, message) = loser(&clash("01", "02"));
    assert_eq!((name.as_str(), code), ("two", Code::Conflict));
    assert_eq!(message, "VLAN 10 belongs to Layer2Attachment/one");
    assert_eq!(loser(&clash("02", "01")).0, "one");
    // Files have no time of creation, and the finding says what that means.
    let (name, _, message) = loser(&clash("", ""));
    assert_eq!(name, "two");
    assert!(message.contains("a live cluster"), "{message}");
}

#[test]
fn one_vlan_on_nodes_that_nobody_shares_is_no_conflict() {
    let one = segment(
        "one",
        "01",
        "a",
        "network: {vlanID: 10, vni: 1010}, interfaceName: one",
    );
    let two = segment(
        "two",
        "02",
        "b",
        "network: {vlanID: 10, vni: 1011}, interfaceName: one",
    );
    let compiled = text(&format!("{NODES}{one}{two}"));
    assert_eq!(errors(&compiled), Vec::<&Finding>::new());
    assert_eq!(compiled.nodes["a1"].network.layer2s["10"].vni, 1010);
    assert_eq!(compiled.nodes["b1"].network.layer2s["10"].vni, 1011);
}

#[test]
fn every_exclusive_key_names_the_object_that_has_it() {
    let red = "destinations: {matchLabels: {zone: red}}";
    let rows = [
        (
            "network: {vlanID: 10, vni: 1010}, interfaceName: one",
            "network: {vlanID: 11, vni: 1010}, interfaceName: two",
            "VNI 1010",
        ),
        (
            "network: {vlanID: 10, vni: 1010}, interfaceName: one",
            "network: {vlanID: 11, vni: 1011}, interfaceName: one",
            "interface l2.one",
        ),
        (
            &format!(
                "network: {{vlanID: 10, vni: 1010, ipv4: {{subnet: 192.0.2.0/25}}}}, interfaceName: one, {red}"
            ),
            &format!(
                "network: {{vlanID: 11, vni: 1011, ipv4: {{subnet: 192.0.2.0/24}}}}, interfaceName: two, {red}"
            ),
            "subnet 192.0.2.0/25 of VRF red",
        ),
        (
            &format!(
                "network: {{vlanID: 10, vni: 1010, ipv4: {{subnet: 192.0.2.0/24}}}}, interfaceName: one, {red}"
            ),
            "network: {vlanID: 11, vni: 100}, interfaceName: two",
            "VNI 100",
        ),
    ];
    for (first, second, wanted) in rows {
        let objects = segment("one", "01", "a", first) + &segment("two", "02", "a", second);
        let compiled = text(&format!("{NODES}{objects}"));
        let (name, code, message) = loser(&compiled);
        assert_eq!((name.as_str(), code), ("two", Code::Conflict), "{message}");
        let said: Vec<&str> = errors(&compiled)
            .iter()
            .map(|f| f.message.as_str())
            .collect();
        assert!(
            said.iter().any(|m| m.starts_with(wanted)),
            "{wanted}: {said:?}"
        );
        assert_eq!(carried(&compiled), ["one"]);
    }
}

#[test]
fn a_segment_whose_derived_route_target_is_that_of_a_vrf_is_refused() {
    let red = segment(
        "red",
        "01",
        "a",
        "network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: one, destinations: {matchLabels: {zone: own}}",
    );
    let own = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: own, labels: {zone: own}}, \
               spec: {vrf: own, vni: 300, routeTarget: '64501:1011'}}\n";
    let two = segment(
        "two",
        "02",
        "b",
        "network: {vlanID: 11, vni: 1011}, interfaceName: two",
    );
    let compiled = text(&format!("{NODES}{own}{red}{two}"));
    let (name, _, message) = loser(&compiled);
    assert_eq!(name, "two");
    assert!(message.starts_with("route target 64501:1011"), "{message}");
}

#[test]
fn a_second_destination_never_changes_the_identity_of_a_vrf() {
    let other = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: NAME, creationTimestamp: '2026-01-DAYT00:00:00Z'}, \
                 spec: {vrf: green, vni: VNI, routeTarget: '64500:VNI'}}\n";
    let one = other
        .replace("NAME", "one")
        .replace("DAY", "01")
        .replace("VNI", "300");
    let two = other
        .replace("NAME", "two")
        .replace("DAY", "02")
        .replace("VNI", "301");
    let (name, code, message) = loser(&text(&format!("{NODES}{two}{one}")));
    assert_eq!((name.as_str(), code), ("two", Code::Conflict));
    assert!(message.contains("by Destination/one"), "{message}");
}

#[test]
fn the_platforms_own_numbers_are_nobodys() {
    let config = NODES.replace(
        "localAS: 64501",
        "localAS: 64501, reservedVNIs: [77], reservedVRFs: [mgmt]",
    );
    let segment = segment(
        "one",
        "01",
        "a",
        "network: {vlanID: 10, vni: 77}, interfaceName: one",
    );
    let mgmt = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: mgmt}, \
                spec: {vrf: mgmt, vni: 5, routeTarget: '1:5'}}\n";
    let compiled = text(&format!("{config}{segment}{mgmt}"));
    let messages: Vec<&str> = errors(&compiled)
        .iter()
        .map(|f| f.message.as_str())
        .collect();
    assert!(
        messages.contains(&"VNI 77 belongs to the platform"),
        "{messages:?}"
    );
    assert!(
        messages.contains(&"VRF mgmt belongs to the platform"),
        "{messages:?}"
    );
}

#[test]
fn addresses_of_the_clusters_pods_and_services_are_no_intents() {
    let config = NODES.replace(
        "localAS: 64501",
        "localAS: 64501, podCIDRs: [10.244.0.0/16], serviceCIDRs: ['fd00:10:96::/112']",
    );
    let group = "apiVersion: network.t-caas.telekom.com/v1alpha1";
    let all = format!(
        "{config}---
{{{group}, kind: Destination, metadata: {{name: d, labels: {{zone: d}}}},
 spec: {{vrf: d, vni: 9, routeTarget: '1:9', prefixes: [10.0.0.0/8]}}}}
---
{{{group}, kind: Destination, metadata: {{name: lo}},
 spec: {{vrf: lo, vni: 8, routeTarget: '1:8', loopbacks: [{{name: lo.x, subnet: 10.244.9.0/24}}]}}}}
---
{{{group}, kind: Layer2Attachment, metadata: {{name: wide}},
 spec: {{network: {{vlanID: 10, vni: 77, ipv4: {{subnet: 10.240.0.0/12}}}}, interfaceName: w, workerGroups: [a]}}}}
---
{{{group}, kind: Layer2Attachment, metadata: {{name: beside}},
 spec: {{network: {{vlanID: 11, vni: 78, ipv4: {{subnet: 10.245.0.0/16}}}}, interfaceName: b, workerGroups: [a]}}}}
---
{{{group}, kind: VRFAttachment, metadata: {{name: inside}},
 spec: {{network: {{subnet: 'fd00:10:96::40/122'}}, workerGroups: [a], destinations: {{matchLabels: {{zone: d}}}},
        connections: [{{name: in, direction: inbound}}]}}}}
---
{{{group}, kind: PodNetwork, metadata: {{name: pods}},
 spec: {{network: {{ipv4: {{subnet: 10.244.128.0/17}}}}, workerGroups: [a], destinations: {{matchLabels: {{zone: d}}}}}}}}
"
    );
    let compiled = text(&all);
    let mut said: Vec<String> = errors(&compiled)
        .iter()
        .map(|f| format!("{}: {}", f.object.as_ref().unwrap(), f.message))
        .collect();
    said.sort();
    assert_eq!(
        said,
        [
            "Destination/lo: 10.244.9.0/24 overlaps 10.244.0.0/16, which the cluster's pods have",
            "Layer2Attachment/wide: 10.240.0.0/12 overlaps 10.244.0.0/16, which the cluster's pods have",
            "PodNetwork/pods: 10.244.128.0/17 overlaps 10.244.0.0/16, which the cluster's pods have",
            "VRFAttachment/inside: fd00:10:96::40/122 overlaps fd00:10:96::/112, which the cluster's Services have",
        ]
    );
    assert!(errors(&compiled).iter().all(|f| f.code == Code::Conflict));
}

#[test]
fn no_address_is_in_two_pools_of_the_platform_whatever_the_vrf() {
    let group = "apiVersion: network.t-caas.telekom.com/v1alpha1";
    let vrf = |name: &str, zone: &str, subnet: &str| {
        format!(
            "---\n{{{group}, kind: VRFAttachment, metadata: {{name: {name}}}, spec: {{network: {{ipv4: {{subnet: {subnet}}}}}, \
             workerGroups: [a], destinations: {{matchLabels: {{zone: {zone}}}}}, connections: [{{name: in, direction: inbound}}]}}}}\n"
        )
    };
    let one = vrf("one", "red", "192.0.2.0/24");
    // The same subnet is one instance of addresses, so two attachments of it are apart.
    let same = text(&format!(
        "{NODES}{one}{}",
        vrf("two", "blue", "192.0.2.0/24")
    ));
    assert!(errors(&same).is_empty(), "{:#?}", same.findings);
    let pools = same
        .platform
        .iter()
        .filter(|o| o["kind"] == "IPAddressPool");
    let addresses: Vec<_> = pools.map(|o| o["spec"]["addresses"].to_string()).collect();
    assert_eq!(addresses, [r#"["192.0.2.1/32"]"#, r#"["192.0.2.2/32"]"#]);
    let part = text(&format!(
        "{NODES}{one}{}",
        vrf("two", "blue", "192.0.2.0/25")
    ));
    let (name, code, message) = loser(&part);
    assert_eq!((name.as_str(), code), ("two", Code::Conflict));
    let wanted = "subnet 192.0.2.0/24 in pools of the platform belongs to VRFAttachment/one";
    assert!(message.starts_with(wanted), "{message}");
    let pods = format!(
        "---\n{{{group}, kind: PodNetwork, metadata: {{name: pods}}, spec: {{network: {{ipv4: {{subnet: 192.0.2.0/24}}}}, \
         workerGroups: [b], destinations: {{matchLabels: {{zone: blue}}}}}}}}\n"
    );
    let pods = text(&format!("{NODES}{one}{pods}"));
    assert!(codes(&pods).contains(&"Conflict".to_owned()));
}

#[test]
fn an_object_that_turns_bad_keeps_its_last_good_form_and_a_new_one_is_set_aside() {
    let good = "network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: one, destinations: {matchLabels: {zone: red}}";
    let before = format!("{NODES}{}", segment("one", "01", "a", good));
    let (ran, answers) = run(&documents(&before), &Answers::default(), &Prior::default());
    let prior = Prior::new(ran.contributions.clone());
    // The Destination loses its label: the attachment that ran stays, a new one with the same selector does not run.
    let relabelled = before.replace("labels: {zone: red}", "labels: {zone: other}");
    let new = good
        .replace("10, vni: 1010", "11, vni: 1011")
        .replace("one", "new")
        .replace("192.0.2", "192.0.3");
    let now = format!("{relabelled}{}", segment("new", "03", "a", &new));
    let (compiled, _) = run(&documents(&now), &answers, &prior);
    let said = codes(&compiled);
    assert!(said.contains(&"Frozen".to_owned()), "{said:?}");
    let frozen: Vec<_> = compiled.frozen.iter().map(ToString::to_string).collect();
    assert_eq!(
        frozen,
        ["Layer2Attachment/one"],
        "and what it holds stays held"
    );
    assert!(
        said.contains(&"NoDestinationMatched".to_owned()),
        "{said:?}"
    );
    assert_eq!(carried(&compiled), ["one"]);
    assert_eq!(
        compiled.nodes["a1"].network.layer2s,
        ran.nodes["a1"].network.layer2s
    );
    assert_eq!(
        compiled.nodes["a1"].network.fabric_vrfs,
        ran.nodes["a1"].network.fabric_vrfs
    );
    // Deleting it withdraws it.
    let gone = relabelled
        .split("---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment")
        .next()
        .unwrap();
    let (compiled, _) = run(&documents(gone), &answers, &prior);
    assert_eq!(carried(&compiled), Vec::<&str>::new());
}

#[test]
fn an_object_that_breaks_its_schema_is_frozen_too() {
    let good = "network: {vlanID: 10, vni: 1010}, interfaceName: one";
    let before = format!("{NODES}{}", segment("one", "01", "a", good));
    let (ran, answers) = run(&documents(&before), &Answers::default(), &Prior::default());
    let bad = before.replace("interfaceName: one", "interfaceName: ONE");
    let (compiled, _) = run(
        &documents(&bad),
        &answers,
        &Prior::new(ran.contributions.clone()),
    );
    assert!(codes(&compiled).contains(&"Frozen".to_owned()));
    assert_eq!(compiled.digest, ran.digest);
}

#[test]
fn an_older_object_does_not_take_what_a_newer_one_runs_with() {
    let old = "network: {vlanID: 10, vni: 1010}, interfaceName: old";
    let new = "network: {vlanID: 11, vni: 1011}, interfaceName: new";
    let before = format!(
        "{NODES}{}{}",
        segment("old", "01", "a", old),
        segment("new", "02", "a", new)
    );
    let (ran, answers) = run(&documents(&before), &Answers::default(), &Prior::default());
    // The older one asks for the newer one's VLAN.
    let grabbing = before.replace("vlanID: 10, vni: 1010", "vlanID: 11, vni: 1010");
    let (compiled, _) = run(
        &documents(&grabbing),
        &answers,
        &Prior::new(ran.contributions.clone()),
    );
    assert_eq!(loser(&compiled).0, "old");
    assert_eq!(compiled.digest, ran.digest, "both run as they did");
}

#[test]
fn the_thirty_first_vrf_of_a_node_is_set_aside_with_its_object() {
    let mut all = NODES.to_owned();
    for n in 1..=31 {
        write!(
            all,
            "---\n{{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {{name: v{n}, labels: {{v: v{n}}}}}, \
             spec: {{vrf: v{n}, vni: {}, routeTarget: '64500:{}'}}}}\n",
            5000 + n,
            5000 + n
        )
        .unwrap();
        let rest = format!(
            "network: {{vlanID: {n}, vni: {}, ipv4: {{subnet: 10.{n}.0.0/24}}}}, interfaceName: i{n}, destinations: {{matchLabels: {{v: v{n}}}}}",
            6000 + n
        );
        all += &segment(&format!("s{n:02}"), &format!("{n:02}"), "a", &rest);
    }
    let compiled = text(&all);
    let (name, code, message) = loser(&compiled);
    assert_eq!((name.as_str(), code), ("s31", Code::VRFTableBudgetExceeded));
    assert!(message.contains("node a1"), "{message}");
    assert_eq!(compiled.nodes["a1"].network.fabric_vrfs.len(), 30);
}

#[test]
fn low_level_objects_are_warned_of_or_denied_as_the_platform_says() {
    let low = "---\n{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2NetworkConfiguration, metadata: {name: low}, \
               spec: {id: 5, mtu: 1500, vni: 50}}\n";
    let with = |choice: &str| {
        let config = NODES.replace(
            "localAS: 64501",
            &format!("localAS: 64501, lowLevel: {choice}"),
        );
        text(&format!("{config}{low}"))
    };
    assert_eq!(with("allow").findings, []);
    let warned = with("warn");
    assert_eq!(codes(&warned), ["LowLevelObject"]);
    assert!(warned.nodes["a1"].network.layer2s.contains_key("5"));
    let denied = with("deny");
    assert_eq!(loser(&denied).1, Code::LowLevelObject);
    assert!(denied.nodes["a1"].network.layer2s.is_empty());
}

#[test]
fn of_two_objects_with_one_name_neither_counts() {
    let one = segment(
        "same",
        "",
        "a",
        "network: {vlanID: 10, vni: 1010}, interfaceName: one",
    );
    let two = segment(
        "same",
        "",
        "a",
        "network: {vlanID: 11, vni: 1011}, interfaceName: two",
    );
    let compiled = text(&format!("{NODES}{one}{two}"));
    assert_eq!(codes(&compiled), ["DuplicateObject"]);
    assert_eq!(carried(&compiled), Vec::<&str>::new());
}

#[test]
fn a_second_operator_config_is_refused_and_changes_nothing() {
    let other = "---\n{apiVersion: mooring.dev/v1alpha1, kind: OperatorConfig, metadata: {name: other}, spec: {lowLevel: deny}}\n";
    let compiled = text(&format!("{NODES}{other}"));
    assert_eq!(codes(&compiled), ["InvalidField"]);
    assert_eq!(compiled.digest, text(NODES).digest);
}

#[test]
fn one_vni_has_one_mtu_wherever_it_is() {
    let one = segment(
        "one",
        "01",
        "a",
        "network: {vlanID: 10, vni: 1010}, interfaceName: one",
    );
    let two = segment(
        "two",
        "02",
        "b",
        "network: {vlanID: 10, vni: 1010}, mtu: 9000, interfaceName: one",
    );
    let (name, code, message) = loser(&text(&format!("{NODES}{one}{two}")));
    assert_eq!((name.as_str(), code), ("two", Code::Conflict));
    assert!(message.starts_with("VNI 1010"), "{message}");
    let same = two.replace("mtu: 9000, ", "");
    assert_eq!(
        errors(&text(&format!("{NODES}{one}{same}"))),
        Vec::<&Finding>::new()
    );
}
