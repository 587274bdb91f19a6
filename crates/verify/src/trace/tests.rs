//! Packet stories in miniature.

use mooring_api::ObjectRef;
use serde_json::{Value, json};

use super::*;
use crate::input::{Input, Origin};

struct Doc {
    origin: Origin,
    scope: Option<String>,
    value: Value,
}

fn doc(cluster: &str, value: Value) -> Doc {
    let text = |path: &str| {
        value
            .pointer(path)
            .and_then(Value::as_str)
            .unwrap_or_default()
    };
    let object = ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"))
        .within(text("/metadata/namespace"));
    let origin = Origin {
        cluster: cluster.to_owned(),
        object,
        ..Origin::default()
    };
    Doc {
        origin,
        scope: None,
        value,
    }
}

/// A NAD of a cluster; the main plugin's keys are laid over a macvlan on eth1.
fn nad(cluster: &str, name: &str, keys: &Value) -> Doc {
    let mut config = json!({"cniVersion": "0.3.1", "type": "macvlan", "master": "eth1"});
    for (key, value) in keys.as_object().unwrap() {
        config[key] = value.clone();
    }
    let value = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"config": config.to_string()}
    });
    doc(cluster, value)
}

fn fixed(cluster: &str, name: &str, address: &str, routes: &Value) -> Doc {
    let ipam = json!({"type": "static", "addresses": [{"address": address}], "routes": routes});
    nad(cluster, name, &json!({"ipam": ipam}))
}

fn pod(cluster: &str, name: &str, networks: &str) -> Doc {
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "ns"},
        "spec": {"template": {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": networks}}}}
    });
    doc(cluster, value)
}

fn told(docs: &[Doc], from: &str, to: &str) -> Result<Story, Unclear> {
    let input = |d: &'_ Doc| (d.origin.clone(), d.scope.clone());
    let objects = docs.iter().map(|d| {
        let (origin, scope) = input(d);
        let value = &d.value;
        Input {
            origin,
            scope,
            value,
        }
    });
    let fleet = Fleet {
        objects: objects.collect(),
        ..Fleet::default()
    };
    trace(&fleet, from, to)
}

fn words(story: &Story) -> Vec<&str> {
    story.steps.iter().map(|s| s.what).collect()
}

fn reason(docs: &[Doc]) -> Reason {
    let story = told(docs, "gnb", "amf").unwrap();
    assert_eq!(
        story.verdict.reached,
        matches!(story.verdict.reason, Reason::Direct | Reason::Routed)
    );
    assert_eq!(
        story.verdict.help.is_empty(),
        story.verdict.reached,
        "{story:?}"
    );
    story.verdict.reason
}

#[test]
fn one_subnet_is_arp_and_no_gateway() {
    let docs = [
        fixed(
            "ran",
            "n2",
            "192.168.100.50/24",
            &json!([{"dst": "0.0.0.0/0", "gw": "192.168.100.1"}]),
        ),
        fixed("core", "n2", "192.168.100.100/24", &json!([])),
        pod("ran", "gnb", "n2@n2"),
        pod(
            "core",
            "amf",
            r#"[{"name": "n2", "interface": "n2", "mac": "02:42:c0:a8:64:64"}]"#,
        ),
    ];
    let story = told(&docs, "ran/gnb", "core/ns/Deployment/amf").unwrap();
    assert_eq!(
        words(&story),
        ["send", "route", "neighbour", "out", "switch", "in", "back"]
    );
    let all: Vec<&str> = story.steps.iter().map(|s| s.text.as_str()).collect();
    assert_eq!(
        all[1],
        "192.168.100.0/24 dev n2 scope link: the same subnet, so no gateway"
    );
    assert_eq!(
        all[2],
        "n2 asks who has 192.168.100.100 (ARP); amf answers 02:42:c0:a8:64:64"
    );
    assert_eq!(all[3], "n2 (macvlan on eth1) of a node of ran");
    assert_eq!(story.verdict.reason, Reason::Direct);
    assert!(
        !all.join(" ").contains("192.168.100.1 "),
        "no gateway: {all:?}"
    );
}

#[test]
fn another_subnet_needs_a_route_there_and_one_back() {
    let there = json!([{"dst": "10.2.0.0/24", "gw": "10.1.0.1"}]);
    let back = json!([{"dst": "10.1.0.0/16", "gw": "10.2.0.1"}]);
    let docs = |there: &Value, back: &Value| {
        [
            fixed("ran", "n2", "10.1.0.5/24", there),
            fixed("core", "n2", "10.2.0.5/24", back),
            pod("ran", "gnb", "n2"),
            pod("core", "amf", "n2"),
        ]
    };
    let story = told(&docs(&there, &back), "gnb", "amf").unwrap();
    assert_eq!(
        words(&story),
        ["send", "route", "neighbour", "out", "router", "in", "back"]
    );
    assert_eq!(story.verdict.text, "through 10.1.0.1 and 10.2.0.1");
    assert!(
        story.steps[2].text.contains("who has 10.1.0.1"),
        "{story:?}"
    );
    let none = json!([]);
    assert_eq!(reason(&docs(&none, &back)), Reason::NoRoute);
    assert_eq!(reason(&docs(&there, &none)), Reason::NoReturnRoute);
    let wrong = json!([{"dst": "10.2.0.0/24", "gw": "10.9.0.1"}]);
    assert_eq!(reason(&docs(&wrong, &back)), Reason::GatewayOutsideSubnet);
    assert_eq!(
        reason(&docs(
            &there,
            &json!([{"dst": "10.1.0.0/16", "gw": "10.9.0.1"}])
        )),
        Reason::NoReturnRoute
    );
}

#[test]
fn a_default_route_of_a_nad_takes_the_place_of_the_clusters_own() {
    let all = json!([{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]);
    let back = json!([{"dst": "10.1.0.0/24", "gw": "10.2.0.1"}]);
    let other = json!([{"dst": "0.0.0.0/0", "gw": "10.3.0.1"}]);
    let docs = |networks: &str| {
        [
            fixed("ran", "n2", "10.1.0.5/24", &all),
            fixed("ran", "n3", "10.3.0.5/24", &other),
            fixed("core", "n2", "10.2.0.5/24", &back),
            pod("ran", "gnb", networks),
            pod("core", "amf", "n2"),
        ]
    };
    assert_eq!(reason(&docs("n2")), Reason::Routed);
    let docs = docs("n2, n3");
    let story = told(&docs, "gnb", "amf").unwrap();
    assert_eq!(
        story.from.interface.as_deref(),
        Some("net2"),
        "the last that a plugin adds stands first"
    );
}

#[test]
fn the_annotation_takes_the_default_routes_of_nads_away() {
    let all = json!([{"dst": "0.0.0.0/0", "gw": "10.1.0.1"}]);
    let none = json!([]);
    let back = json!([{"dst": "10.3.0.0/24", "gw": "10.2.0.1"}]);
    let networks = r#"[{"name": "n3", "default-route": ["10.3.0.1"]}, {"name": "n2"}]"#;
    let docs = [
        fixed("ran", "n2", "10.1.0.5/24", &all),
        fixed("ran", "n3", "10.3.0.5/24", &none),
        fixed("core", "n2", "10.2.0.5/24", &back),
        pod("ran", "gnb", networks),
        pod("core", "amf", "n2"),
    ];
    let story = told(&docs, "gnb", "amf").unwrap();
    assert_eq!(story.from.interface.as_deref(), Some("net1"));
    assert_eq!(story.verdict.reason, Reason::Routed);
}

#[test]
fn an_ipv6_default_route_of_a_nad_stands_beside_the_clusters_own_and_is_nothing_to_rely_on() {
    let all = json!([{"dst": "::/0", "gw": "fd00:1::1"}]);
    let back = json!([{"dst": "fd00:1::/64", "gw": "fd00:2::1"}]);
    let docs = [
        fixed("ran", "n2", "fd00:1::5/64", &all),
        fixed("core", "n2", "fd00:2::5/64", &back),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    assert_eq!(reason(&docs), Reason::NoRoute);
}

#[test]
fn the_longest_prefix_decides_and_an_answer_by_another_interface_is_told() {
    let docs = [
        fixed("ran", "n2", "10.1.0.5/16", &json!([])),
        fixed("core", "n2", "10.1.9.5/16", &json!([])),
        fixed("core", "n3", "10.1.0.9/24", &json!([])),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2@n2, n3@n3"),
    ];
    let story = told(&docs, "gnb", "amf").unwrap();
    assert!(
        story.steps[6].text.contains("it leaves by n3, not by n2"),
        "{story:?}"
    );
}

#[test]
fn isolated_networks_meet_nowhere_even_with_one_subnet() {
    let mut docs = [
        fixed("ran", "n2", "10.1.0.5/24", &json!([])),
        fixed("core", "n2", "10.1.0.6/24", &json!([])),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    assert_eq!(reason(&docs), Reason::Direct);
    docs[1].scope = Some("default/blue".to_owned());
    assert_eq!(reason(&docs), Reason::NoCommonNetwork);
}

#[test]
fn pods_of_two_network_instances_share_no_network_and_pods_of_one_miss_a_route() {
    let instance = |name: &str, prefixes: &[&str]| {
        let prefixes: Vec<Value> = prefixes.iter().map(|p| json!({"prefix": p})).collect();
        let value = json!({"apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "NetworkInstance",
            "metadata": {"name": name}, "spec": {"prefixes": prefixes}});
        doc("", value)
    };
    let docs = |more: Vec<Doc>| {
        let mut docs = vec![
            fixed("ran", "n2", "10.1.0.5/24", &json!([])),
            fixed("core", "n2", "10.2.0.6/24", &json!([])),
            pod("ran", "gnb", "n2"),
            pod("core", "amf", "n2"),
        ];
        docs.extend(more);
        docs
    };
    let two = docs(vec![
        instance("n2", &["10.1.0.0/24"]),
        instance("n3", &["10.2.0.0/24"]),
    ]);
    let story = told(&two, "gnb", "amf").unwrap();
    assert_eq!(story.verdict.reason, Reason::NoCommonNetwork);
    assert_eq!(
        story.verdict.text,
        "gnb and amf share no network: n2 here, n3 there"
    );
    assert_eq!(story.shared, []);
    let one = docs(vec![instance("n2", &["10.1.0.0/24", "10.2.0.0/24"])]);
    assert_eq!(told(&one, "gnb", "amf").unwrap().shared[0].network, "n2");
    assert_eq!(reason(&one), Reason::NoRoute);
    // What is not known is not claimed.
    let half = docs(vec![instance("n2", &["10.1.0.0/24"])]);
    assert_eq!(reason(&half), Reason::NoRoute);
}

#[test]
fn one_subnet_on_two_vlans_is_not_one_network() {
    let vlan = |cluster: &str, address: &str, id: u16| {
        let ipam = json!({"type": "static", "addresses": [{"address": address}]});
        nad(
            cluster,
            "n2",
            &json!({"type": "vlan", "vlanId": id, "ipam": ipam}),
        )
    };
    let docs = |id: u16| {
        [
            vlan("ran", "10.1.0.5/24", 100),
            vlan("core", "10.1.0.6/24", id),
            pod("ran", "gnb", "n2"),
            pod("core", "amf", "n2"),
        ]
    };
    assert_eq!(reason(&docs(100)), Reason::Direct);
    assert_eq!(reason(&docs(200)), Reason::OtherVlan);
}

#[test]
fn a_duplicate_address_never_leaves_the_pod() {
    let docs = [
        fixed("ran", "n2", "10.1.0.5/24", &json!([])),
        fixed("core", "n2", "10.1.0.5/24", &json!([])),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    assert_eq!(reason(&docs), Reason::SameAddress);
}

#[test]
fn a_range_is_told_as_one_of_its_addresses_and_two_of_them_are_no_duplicate() {
    let ipam = json!({"type": "host-local", "ranges": [[{"subnet": "10.1.0.0/24", "rangeStart": "10.1.0.10",
        "rangeEnd": "10.1.0.99", "gateway": "10.1.0.1"}]]});
    let docs = [
        nad("ran", "n2", &json!({"ipam": ipam})),
        nad("core", "n2", &json!({"ipam": ipam})),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    let story = told(&docs, "gnb", "amf").unwrap();
    assert_eq!(story.verdict.reason, Reason::Direct);
    assert_eq!(
        story.to.address.as_deref(),
        Some("one of 10.1.0.10-10.1.0.99")
    );
}

#[test]
fn a_pod_without_address_and_a_pod_over_ipv6() {
    let docs = [
        nad("ran", "n2", &json!({})),
        fixed("core", "n2", "fd00::6/64", &json!([])),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    assert_eq!(reason(&docs), Reason::NoAddress);
    let docs = [
        fixed("ran", "n2", "fd00::5/64", &json!([])),
        fixed("core", "n2", "fd00::6/64", &json!([])),
        pod("ran", "gnb", "n2"),
        pod("core", "amf", "n2"),
    ];
    let story = told(&docs, "gnb", "amf").unwrap();
    assert!(
        story.steps[2].text.contains("neighbour discovery"),
        "{story:?}"
    );
}

#[test]
fn a_name_that_fits_several_or_none_is_refused_with_those_that_there_are() {
    let docs = [
        fixed("ran", "n2", "10.1.0.5/24", &json!([])),
        fixed("core", "n2", "10.1.0.6/24", &json!([])),
        pod("ran", "upf", "n2"),
        pod("core", "upf", "n2"),
    ];
    let several = told(&docs, "upf", "core/upf").unwrap_err();
    assert_eq!(
        several.help,
        "write one of core/ns/Deployment/upf, ran/ns/Deployment/upf"
    );
    let none = told(&docs, "core/smf", "core/upf").unwrap_err();
    assert!(none.message.contains("no pod core/smf"), "{none:?}");
    let same = told(&docs, "core/upf", "core/deployment/upf").unwrap_err();
    assert!(same.message.contains("both ends"), "{same:?}");
    // A pod that the workload makes, by its own name.
    assert!(told(&docs, "ran/upf-7d9f-x2x1", "core/ns/upf").is_ok());
}

#[test]
fn the_pods_of_the_5g_example_reach_each_other_by_their_annotations_alone() {
    let pod = |cluster: &str, name: &str, namespace: &str, address: &str| {
        let networks =
            format!(r#"[{{"name": "n2-network", "interface": "n2", "ips": ["{address}"]}}]"#);
        let value = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "namespace": namespace,
            "annotations": {"k8s.v1.cni.cncf.io/networks": networks}}});
        doc(cluster, value)
    };
    let docs = [
        pod("my-ran", "gnb-0", "ran-gnb", "192.168.100.50/24"),
        pod("my-core", "amf-0", "core-amf", "192.168.100.100/24"),
    ];
    let story = told(&docs, "ran-gnb/gnb-0", "Pod/amf-0").unwrap();
    assert_eq!(story.verdict.text, "directly, on 192.168.100.0/24");
    let back = told(&docs, "amf-0", "gnb-0").unwrap();
    assert_eq!(back.verdict.reason, Reason::Direct);
    assert_eq!((back.from, back.to), (story.to, story.from));
    let shared = Shared {
        network: "192.168.100.0/24".to_owned(),
        from: "n2".to_owned(),
        to: "n2".to_owned(),
    };
    assert_eq!(story.shared, [shared]);
}
