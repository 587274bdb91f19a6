//! The ovs plugin on a real Open vSwitch, with its database and its daemon in the node's namespace.
//!
//! On this machine's kernel the switch forwards in user space (`datapath_type=netdev`); in `uml` in the kernel.

mod doctor;
mod life;
pub(crate) mod switch;
mod uml;

use serde_json::{Value, json};

use self::switch::Switch;
use crate::segment::mac;
use crate::stage::{Pod, Stage};
use crate::unique;

/// Addresses of 10.66.0.0/24 on `br1`.
fn config() -> Value {
    json!({"type": "ovs", "bridge": "br1", "ipam": {"type": "host-local", "subnet": "10.66.0.0/24"}})
}

fn port(result: &Value) -> &str {
    result["interfaces"][0]["name"].as_str().unwrap()
}

#[track_caller]
fn assert_clean(stage: &Stage, switch: &Switch, when: &str) {
    assert_eq!(switch.ports(stage), [""; 0], "{when}");
    assert_eq!(stage.pairs(), [""; 0], "{when}");
    assert_eq!(stage.held(), 0, "{when}");
}

#[test]
fn a_pods_interface_is_a_port_of_the_switch_with_marks_that_say_whose() {
    let Some((stage, switch)) = Switch::stage("the ovs plugin") else {
        return;
    };
    let pod = stage.pod("c1", config()).with("mtu", json!(1400));
    let result = pod.add();
    assert_eq!(result["interfaces"].as_array().unwrap().len(), 2);
    assert_eq!(result["interfaces"][1]["name"], "net1");
    assert_eq!(result["interfaces"][1]["sandbox"], pod.netns.path());
    assert_eq!(result["ips"][0]["interface"], 1);
    let own = pod.link().unwrap();
    assert_eq!(result["interfaces"][1]["mac"], own["address"]);
    assert_eq!(
        (&own["operstate"], &own["mtu"]),
        (&json!("UP"), &json!(1400))
    );
    assert_eq!(pod.addresses(), ["10.66.0.2/24"]);
    assert_eq!(switch.ports(&stage), [port(&result)]);
    let ids = switch.ask(&stage, &["get", "Port", port(&result), "external_ids"]);
    for part in [
        "moor-container=c1",
        "moor-ifname=net1",
        "moor-network=net",
        "owner=mooring.dev",
        "contIface=net1",
    ] {
        assert!(ids.contains(part), "{part}: {ids}");
    }
    pod.check(&result).ok();
    pod.call("STATUS").ok();
    pod.del();
    assert_eq!(pod.link(), None);
    assert_clean(&stage, &switch, "after DEL");
    pod.del();
}

#[test]
fn vlans_of_a_port_are_access_trunk_or_native() {
    let Some((stage, switch)) = Switch::stage("VLANs of the ovs plugin") else {
        return;
    };
    let layer2 = |container: &str| stage.pod(container, json!({"type": "ovs", "bridge": "br1"}));
    let trunk = json!([{"id": 42}, {"minID": 1000, "maxID": 1002}]);
    for (pod, wanted) in [
        (layer2("c1"), "trunk [] []"),
        (layer2("c2").with("vlan", json!(100)), "access 100 []"),
        (
            layer2("c3").with("trunk", trunk.clone()),
            "trunk [] [42, 1000, 1001, 1002]",
        ),
        (
            layer2("c4").with("trunk", trunk).with("vlan", json!(7)),
            "native-untagged 7 [42, 1000, 1001, 1002]",
        ),
    ] {
        let result = pod.add();
        let seen = switch.ask(
            &stage,
            &["get", "Port", port(&result), "vlan_mode", "tag", "trunks"],
        );
        let seen: Vec<&str> = seen.lines().collect();
        assert_eq!(seen.join(" "), wanted);
        pod.check(&result).ok();
        switch.ask(&stage, &["set", "Port", port(&result), "tag=99"]);
        let said = pod.check(&result);
        assert!(
            said.code != Some(0) && said.stdout.contains("VLANs"),
            "{said:?}"
        );
    }
}

#[test]
fn an_address_is_detected_and_asked_for_as_by_every_plugin() {
    let Some((stage, switch)) = Switch::stage("uniqueness with the ovs plugin") else {
        return;
    };
    let pod = |container: &str, address: &str| {
        let ipam = json!({"type": "static", "addresses": [{"address": address}]});
        stage.pod(
            container,
            json!({"type": "ovs", "bridge": "br1", "ipam": ipam}),
        )
    };
    let (four, six) = ("10.66.0.9/24", "2001:db8::9/64");
    let owners = [pod("c4", four), pod("c6", six)];
    for owner in &owners {
        owner.add();
    }
    unique::await_address(&owners[1], "free of detection", unique::is_detected);
    for (owner, address) in owners.iter().zip([four, six]) {
        let late = pod("late", address).with("probe", json!("block(5000)"));
        let (code, text) = late.refuse("ADD");
        assert_eq!(code, 11, "{text}");
        assert!(text.contains(&mac(owner)), "{text}");
        assert_eq!((late.link(), switch.ports(&stage).len()), (None, 2));
        late.end();
    }
    let late = pod("late6", six).with("enabledad", json!(true));
    let result = late.add();
    assert_eq!(unique::address(&late)["nodad"], Value::Null);
    unique::await_address(&late, "found to be taken", |a| a["dadfailed"] == true);
    let said = late.check(&result);
    assert!(said.stdout.contains("used by another host"), "{said:?}");
}

#[test]
fn a_port_gets_the_openflow_number_the_mac_and_the_logical_port_that_were_asked_for() {
    let Some((stage, switch)) = Switch::stage("requests to the ovs plugin") else {
        return;
    };
    let mut pod = stage
        .pod("c1", config())
        .with("ofport_request", json!(77))
        .with("interface_type", json!("system"));
    pod.config["args"] = json!({"cni": {"mac": "02:00:00:00:00:05", "ovnport": "logical-1"}});
    let result = pod.add();
    assert_eq!(result["interfaces"][1]["mac"], "02:00:00:00:00:05");
    let seen = switch.ask(
        &stage,
        &[
            "get",
            "Interface",
            port(&result),
            "ofport",
            "type",
            "external_ids:iface-id",
        ],
    );
    assert_eq!(
        seen.lines().collect::<Vec<_>>(),
        ["77", "system", "logical-1"]
    );
    let bare = stage.pod(
        "c2",
        json!({"type": "ovs", "args": {"cni": {"ovnPort": "logical-2"}}}),
    );
    let (code, text) = bare.refuse("ADD");
    assert!(code == 7 && text.contains("br-int"), "{code} {text}");
}

#[test]
fn pods_of_one_vlan_reach_each_other_and_of_two_do_not() {
    let what = "traffic through the switch";
    let (Some((stage, _switch)), Some(ping)) = (
        Switch::stage(what),
        mooring_testkit::component("iputils-ping", what),
    ) else {
        return;
    };
    let ping = ping.join("bin/ping");
    let reaches =
        |from: &Pod, to: &str| from.netns.run(&ping, &["-c", "2", "-W", "2", to]).code == Some(0);
    let pods = [("c1", 100), ("c2", 100), ("c3", 200)].map(|(name, vlan)| {
        let pod = stage.pod(name, config()).with("vlan", json!(vlan));
        pod.add();
        pod
    });
    assert!(reaches(&pods[0], "10.66.0.3"));
    assert!(!reaches(&pods[0], "10.66.0.4"));
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let Some((stage, switch)) = Switch::stage("bad keys of the ovs plugin") else {
        return;
    };
    for (key, value, code, word) in [
        ("bridge", json!(""), 7, "bridge"),
        ("bridge", json!("nobridge"), 7, "nobridge"),
        ("vlan", json!(4095), 7, "vlan"),
        (
            "trunk",
            json!([{"minID": 9, "maxID": 8}]),
            7,
            "trunk[0].minID",
        ),
        ("ofport_request", json!(65_280), 7, "ofport_request"),
        ("interface_type", json!("a b"), 7, "interface_type"),
        (
            "deviceID",
            json!("0000:03:00.1"),
            2,
            "deviceID = 0000:03:00.1",
        ),
        (
            "socket_file",
            json!("/nonexistent/db.sock"),
            11,
            "does not answer",
        ),
        (
            "configuration_path",
            json!("/nonexistent"),
            5,
            "/nonexistent",
        ),
    ] {
        let pod = stage.pod("c1", config()).with(key, value.clone());
        let (seen, text) = pod.refuse("ADD");
        assert!(
            seen == code && text.contains(word),
            "{key}={value}: {seen} {text}"
        );
        assert_clean(&stage, &switch, key);
        assert_eq!(pod.link(), None);
        pod.end();
    }
    let pod = stage.pod("c1", config()).with("bridge", json!("nobridge"));
    let (code, text) = pod.refuse("STATUS");
    assert!(
        code == 50 && text.contains("add-br nobridge"),
        "{code} {text}"
    );
}
