//! VLANs of a bridge, in a kernel that filters them.

use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::{Pod, Stage};

/// `(vlan, untagged and native)` of a port, with ranges spelled out.
fn vlans(stage: &Stage, port: &str) -> Vec<(u64, bool)> {
    let text = stage
        .node
        .run("bridge", &["-j", "vlan", "show"])
        .ok()
        .to_owned();
    let all: Value = serde_json::from_str(&text).unwrap();
    let all = all.as_array().unwrap();
    let found = all.iter().find(|p| p["ifname"] == port);
    let list = found
        .map(|p| p["vlans"].as_array().unwrap().clone())
        .unwrap_or_default();
    let mut seen = Vec::new();
    for vlan in list {
        let first = vlan["vlan"].as_u64().unwrap();
        let last = vlan["vlanEnd"].as_u64().unwrap_or(first);
        let flags = vlan["flags"].to_string();
        seen.extend(
            (first..=last).map(|id| (id, flags.contains("PVID") && flags.contains("Egress"))),
        );
    }
    seen
}

fn port(result: &Value) -> &str {
    result["interfaces"][1]["name"].as_str().unwrap()
}

fn stage() -> Stage {
    Stage::new("VLANs of a bridge").expect("root, with namespaces")
}

#[test]
#[ignore = "kernel: uml"]
fn a_port_is_in_its_vlan_alone_and_keeps_the_default_one_where_asked() {
    let stage = stage();
    let pod = stage.pod("c1", json!({"bridge": "br1", "vlan": 100}));
    let result = pod.add();
    assert_eq!(vlans(&stage, port(&result)), [(100, true)]);
    assert_eq!(
        stage.node.link("br1").unwrap()["linkinfo"]["info_data"]["vlan_filtering"],
        1
    );
    pod.check(&result).ok();
    let kept = stage.pod(
        "c2",
        json!({"bridge": "br1", "vlan": 100, "preserveDefaultVlan": true}),
    );
    let result = kept.add();
    assert_eq!(vlans(&stage, port(&result)), [(1, false), (100, true)]);
    let plain = stage.pod("c3", json!({"bridge": "br1"}));
    assert_eq!(vlans(&stage, port(&plain.add())), [(1, true)]);
}

#[test]
#[ignore = "kernel: uml"]
fn a_trunk_has_its_vlans_tagged_and_a_native_one() {
    let stage = stage();
    let trunk = json!([{"id": 5}, {"minID": 20, "maxID": 22}]);
    let pod = stage.pod("c1", json!({"bridge": "br1", "vlanTrunk": trunk}));
    let result = pod.add();
    assert_eq!(
        vlans(&stage, port(&result)),
        [(1, true), (5, false), (20, false), (21, false), (22, false)]
    );
    let native = stage.pod(
        "c2",
        json!({"bridge": "br1", "vlan": 21, "vlanTrunk": trunk}),
    );
    let result = native.add();
    assert_eq!(
        vlans(&stage, port(&result)),
        [(5, false), (20, false), (21, true), (22, false)]
    );
    native.check(&result).ok();
    let name = port(&result);
    stage
        .node
        .run("bridge", &["vlan", "del", "dev", name, "vid", "22"])
        .ok();
    let said = native.check(&result);
    assert!(
        said.code != Some(0) && said.stdout.contains("VLAN 22"),
        "{said:?}"
    );
    let whole = json!([{"minID": 1, "maxID": 4094}]);
    let all = stage.pod(
        "c3",
        json!({"bridge": "br1", "vlan": 7, "vlanTrunk": whole}),
    );
    let seen = vlans(&stage, port(&all.add()));
    assert_eq!(seen.len(), 4094);
    assert_eq!(
        seen.iter()
            .filter(|(_, native)| *native)
            .collect::<Vec<_>>(),
        [&(7, true)]
    );
}

#[test]
#[ignore = "kernel: uml"]
fn a_bridge_that_was_there_begins_to_filter() {
    let stage = stage();
    stage.node.ip("link add br1 type bridge");
    let pod = stage.pod("c1", json!({"bridge": "br1", "vlan": 100}));
    pod.add();
    assert_eq!(
        stage.node.link("br1").unwrap()["linkinfo"]["info_data"]["vlan_filtering"],
        1
    );
}

fn in_vlan(stage: &Stage, container: &str, vlan: u16) -> Pod {
    let subnet = format!("10.{vlan}.0.0/24");
    let ipam = json!({"type": "host-local", "subnet": subnet});
    let name = format!("net{vlan}");
    stage.pod(
        container,
        json!({"name": name, "bridge": "br1", "vlan": vlan, "isGateway": true, "ipam": ipam}),
    )
}

#[test]
#[ignore = "kernel: uml"]
fn the_gateway_of_a_vlan_is_an_interface_of_its_own_and_the_last_of_the_result() {
    let stage = stage();
    let (a, b) = (in_vlan(&stage, "c1", 100), in_vlan(&stage, "c2", 200));
    let result = a.add();
    assert_eq!(result["interfaces"][3]["name"], "br1.100");
    assert_eq!(stage.node.addresses("br1.100"), ["10.100.0.1/24"]);
    assert_eq!(stage.node.addresses("br1"), [""; 0]);
    assert_eq!(b.add()["interfaces"][3]["name"], "br1.200");
    assert_eq!(stage.node.addresses("br1.200"), ["10.200.0.1/24"]);
    let links = stage.node.links();
    let gateway = links.iter().find(|l| l["ifname"] == "br1.100").unwrap();
    assert_eq!(gateway["operstate"], "UP");
    let other = gateway["link"].as_str().unwrap();
    assert_eq!(vlans(&stage, other), [(100, true)]);
    a.check(&result).ok();
    // A second pod of the VLAN uses what is there.
    let before = links.len();
    in_vlan(&stage, "c3", 100).add();
    assert_eq!(stage.node.links().len(), before + 1);
}

#[test]
#[ignore = "kernel: uml"]
fn frames_stay_in_their_vlan() {
    let what = "frames in a VLAN";
    let Some(ping) = mooring_testkit::component("iputils-ping", what) else {
        return;
    };
    let ping = ping.join("bin/ping");
    let stage = stage();
    let (a, b, c) = (
        in_vlan(&stage, "c1", 100),
        in_vlan(&stage, "c2", 100),
        in_vlan(&stage, "c3", 200),
    );
    for pod in [&a, &b, &c] {
        pod.add();
    }
    let reaches =
        |from: &Pod, to: &str| from.netns.run(&ping, &["-c", "1", "-W", "2", to]).code == Some(0);
    assert!(reaches(&a, "10.100.0.1"), "its gateway");
    assert!(reaches(&a, "10.100.0.3"), "its neighbour");
    // The same subnet in the other VLAN is not reached, though it is on the same bridge.
    c.netns.ip("addr add 10.100.0.9/24 dev net1");
    assert!(!reaches(&a, "10.100.0.9"));
}

#[test]
#[ignore = "kernel: uml"]
fn a_kill_while_the_gateway_of_a_vlan_is_made_is_mended_by_the_next_add() {
    let stage = stage();
    let pod = in_vlan(&stage, "c1", 100);
    let points = pod.points("ADD");
    pod.del();
    assert!(
        points.iter().any(|p| p == "gateway-link-made"),
        "{points:?}"
    );
    for (nth, point) in points.iter().enumerate() {
        for name in ["br1.100", "br1"] {
            stage.node.run("ip", &["link", "del", name]);
        }
        pod.killed("ADD", nth);
        pod.del();
        pod.add();
        let links = stage.node.links();
        let gateway = links.iter().find(|l| l["ifname"] == "br1.100").unwrap();
        assert_eq!(gateway["operstate"], "UP", "{point}");
        assert_eq!(
            vlans(&stage, gateway["link"].as_str().unwrap()),
            [(100, true)],
            "{point}"
        );
        assert_eq!(
            stage.node.addresses("br1.100"),
            ["10.100.0.1/24"],
            "{point}"
        );
        pod.del();
    }
}
