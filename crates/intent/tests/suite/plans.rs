//! What would change, who put it there, and the picture.

use mooring_intent::{Answers, Inputs, Prior, Question, explain, graph, plan};

use crate::{documents, run, text};

const BEFORE: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a, labels: {network.t-caas.telekom.com/worker-group: g}}}
---
{apiVersion: v1, kind: Node, metadata: {name: b}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.0.0.0/8]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: s},
 spec: {network: {vlanID: 10, vni: 1010, ipv4: {subnet: 192.0.2.0/24}}, interfaceName: s, workerGroups: [g],
        destinations: {matchLabels: {zone: red}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: v},
 spec: {network: {ipv4: {subnet: 198.51.100.0/24}}, workerGroups: [g], destinations: {matchLabels: {zone: red}},
        connections: [{name: in, direction: inbound, count: 2}]}}
";

#[test]
fn nothing_changes_nothing() {
    let (one, other) = (text(BEFORE), text(BEFORE));
    assert!(plan(&one, &other).is_empty());
}

#[test]
fn a_plan_names_what_comes_what_goes_and_whom_it_reaches() {
    let before = text(BEFORE);
    let after = text(
        &BEFORE
            .replace("count: 2", "count: 1")
            .replace("interfaceName: s", "mtu: 9000, interfaceName: s"),
    );
    let plan = plan(&before, &after);
    let paths = |parts: &[mooring_intent::Part]| -> Vec<String> {
        parts.iter().map(|p| p.path.clone()).collect()
    };
    assert_eq!(paths(&plan.added), ["host/l2.s", "vlan/10"]);
    assert_eq!(
        paths(&plan.removed),
        ["host/l2.s", "vlan/10", "vrf/red/export/198.51.100.2/32"]
    );
    assert!(plan.removed[2].origins[0].starts_with("VRFAttachment/v spec.connections[0]: "));
    assert_eq!(
        plan.agents.iter().collect::<Vec<_>>(),
        ["a"],
        "b has none of it"
    );
    assert_eq!(plan.hosts.iter().collect::<Vec<_>>(), ["a"]);
    assert_eq!(
        (plan.created.len(), plan.changed.len(), plan.deleted.len()),
        (0, 1, 0)
    );
    assert_eq!(plan.changed[0]["kind"], "IPAddressPool");
    let withdrawn: Vec<_> = plan
        .withdrawn
        .iter()
        .map(|(vrf, prefix)| format!("{vrf} {prefix}"))
        .collect();
    assert_eq!(withdrawn, ["red 198.51.100.2/32"]);
}

#[test]
fn an_object_that_goes_takes_its_platform_objects_along() {
    let (before, after) = BEFORE
        .rsplit_once("---\n")
        .map(|(rest, _)| (text(BEFORE), text(rest)))
        .unwrap();
    let plan = plan(&before, &after);
    let mut kinds: Vec<_> = plan
        .deleted
        .iter()
        .map(|o| o["kind"].as_str().unwrap())
        .collect();
    kinds.sort_unstable();
    assert_eq!(kinds, ["BGPAdvertisement", "IPAddressPool"]);
    assert!(plan.added.is_empty());
}

#[test]
fn the_picture_has_everything_once_and_marks_what_is_set_aside() {
    let all = BEFORE.replace("198.51.100.0/24", "192.0.2.0/25");
    let objects = documents(&all);
    let compiled = run(&objects, &Answers::default(), &Prior::default()).0;
    let graph = graph(&Inputs::read(&objects), &compiled);
    let names: Vec<_> = graph
        .nodes
        .iter()
        .map(|n| (n.id.as_str(), n.aside))
        .collect();
    assert_eq!(
        names,
        [
            ("Layer2Attachment/s", false),
            ("VRFAttachment/v", true),
            ("Destination/red", false),
            ("VRF/red", false),
            ("VRF/cluster", false),
        ]
    );
    assert!(
        graph
            .dot()
            .contains("\"Destination/red\" -> \"VRF/red\" [label=\"is\"];")
    );
    assert!(graph.dot().contains("\"VRFAttachment/v\" [style=dashed];"));
    // Its prefixes come into the cluster's VRF, its own subnet goes out.
    assert!(
        graph
            .dot()
            .contains("\"VRF/red\" -> \"VRF/cluster\" [label=\"leaks 10.0.0.0/8\"];"),
        "{}",
        graph.dot()
    );
    let svg = graph.svg();
    assert_eq!(svg.matches("<rect").count(), 5);
    assert_eq!(svg.matches("<line").count(), 5);
    assert_eq!(svg.matches("stroke-dasharray").count(), 1);
}

#[test]
fn a_vlan_a_prefix_and_an_object_are_explained_by_who_put_them_there() {
    let objects = documents(BEFORE);
    let inputs = Inputs::read(&objects);
    let compiled = run(&objects, &Answers::default(), &Prior::default()).0;
    let asked = |question: &Question| -> Vec<String> {
        let reasons = explain(&inputs, &compiled, question);
        let said = reasons.iter().map(|r| {
            let who: Vec<_> = r.origins.iter().map(|o| o.object.to_string()).collect();
            let nodes: Vec<_> = r.nodes.iter().map(String::as_str).collect();
            format!("{} by {} on {}", r.path, who.join(", "), nodes.join(", "))
        });
        said.collect()
    };
    let node = |name: &str, path: &str| Question::Node {
        name: name.to_owned(),
        path: path.to_owned(),
    };
    assert_eq!(
        asked(&node("a", "vlan/10")),
        ["vlan/10 by Layer2Attachment/s on a"]
    );
    assert_eq!(asked(&node("a", "vlan/1")), Vec::<String>::new());
    assert_eq!(asked(&node("b", "")), Vec::<String>::new());
    let prefix = Question::Prefix("10.0.0.0/24".parse().unwrap());
    let both = "vrf/red/import/10.0.0.0/8 by Layer2Attachment/s, VRFAttachment/v on a";
    assert_eq!(asked(&prefix), [both]);
    let object = Question::Object {
        kind: "layer2attachment".to_owned(),
        name: "s".to_owned(),
    };
    let paths: Vec<_> = asked(&object);
    assert_eq!(paths.len(), 5, "{paths:#?}");
}
