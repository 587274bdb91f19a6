//! The bridge plugin in the kernel, judged by `ip -j` and `nft -j`.

mod life;
mod ports;
mod rules;
mod switch;
mod uml;

use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::Stage;

/// Addresses of 10.88.0.0/24, with a gateway.
fn gateway() -> Value {
    json!({"bridge": "br1", "isGateway": true, "ipam": ipam("10.88.0.0/24")})
}

fn ipam(subnet: &str) -> Value {
    json!({"type": "host-local", "subnet": subnet})
}

/// The node has nothing of any pod; the bridge may stay.
#[track_caller]
fn assert_clean(stage: &Stage, when: &str) {
    assert_eq!(stage.pairs(), [""; 0], "{when}");
    assert_eq!(stage.held(), 0, "{when}");
}

#[test]
fn a_pods_interface_is_a_port_of_the_bridge_and_the_result_says_so_in_the_references_order() {
    let Some(stage) = Stage::new("the bridge plugin") else {
        return;
    };
    let pod = stage.pod("c1", gateway());
    let result = pod.add();
    let names: Vec<&str> = (0..3)
        .map(|n| result["interfaces"][n]["name"].as_str().unwrap())
        .collect();
    assert_eq!((names[0], names[2]), ("br1", "net1"));
    assert!(
        names[1].starts_with("veth") && names[1].len() == 15,
        "{names:?}"
    );
    assert_eq!(result["interfaces"].as_array().unwrap().len(), 3);
    assert_eq!(result["interfaces"][2]["sandbox"], pod.netns.path());
    assert_eq!(result["interfaces"][0].get("sandbox"), None);
    let bridge = stage.node.link("br1").unwrap();
    let port = stage.node.link(names[1]).unwrap();
    let own = pod.link().unwrap();
    for (nth, link) in [&bridge, &port, &own].into_iter().enumerate() {
        assert_eq!(result["interfaces"][nth]["mac"], link["address"], "{nth}");
    }
    assert_eq!(port["master"], "br1");
    assert_eq!(port["operstate"], "UP");
    assert_eq!(own["operstate"], "UP");
    assert_eq!(result["ips"][0]["interface"], 2);
    assert_eq!(result["ips"][0]["gateway"], "10.88.0.1");
    assert_eq!(pod.addresses(), ["10.88.0.2/24"]);
    assert_eq!(stage.node.addresses("br1"), ["10.88.0.1/24"]);
    let forwards = stage.node.run("cat", &["/proc/sys/net/ipv4/ip_forward"]);
    assert_eq!(forwards.stdout, "1\n");
    pod.check(&result).ok();
    pod.del();
    assert_eq!(pod.link(), None);
    assert_clean(&stage, "after DEL");
}

#[test]
fn the_mac_of_the_bridge_is_its_own_and_stays_while_ports_come_and_go() {
    let Some(stage) = Stage::new("a bridge's MAC") else {
        return;
    };
    let mac = || stage.node.link("br1").unwrap()["address"].clone();
    let (a, b) = (stage.pod("c1", gateway()), stage.pod("c2", gateway()));
    let first = a.add();
    let own = mac();
    assert_eq!(first["interfaces"][0]["mac"], own);
    for _ in 0..3 {
        b.add();
        assert_eq!(mac(), own);
        b.del();
        assert_eq!(mac(), own);
    }
    a.del();
    assert_eq!(mac(), own);
    // A bridge that somebody else made keeps the MAC it has when it becomes a gateway.
    stage.node.ip("link add br2 type bridge");
    let before = stage.node.link("br2").unwrap()["address"].clone();
    let pod = a
        .with("bridge", json!("br2"))
        .with("ipam", ipam("10.89.0.0/24"));
    pod.add();
    assert_eq!(stage.node.link("br2").unwrap()["address"], before);
}

#[test]
fn a_result_shows_somebody_elses_bridge_as_its_ports_made_it() {
    let Some(stage) = Stage::new("a bridge that follows its ports") else {
        return;
    };
    stage.node.ip("link add br2 type bridge");
    let config = json!({"bridge": "br2", "ipam": ipam("10.88.0.0/24")});
    // The first port decides, then the lowest; with six at random some are lower and some are not.
    for (container, mtu) in [
        ("c1", 9000),
        ("c2", 9000),
        ("c3", 1500),
        ("c4", 1500),
        ("c5", 1400),
        ("c6", 1400),
    ] {
        let pod = stage.pod(container, config.clone());
        let result = pod.with("mtu", json!(mtu)).add();
        let bridge = stage.node.link("br2").unwrap();
        let shown = &result["interfaces"][0];
        assert_eq!(shown["mac"], bridge["address"], "{container}");
        if shown.get("mtu").is_some() {
            assert_eq!(shown["mtu"], bridge["mtu"], "{container}");
        }
        assert_eq!(bridge["mtu"], mtu, "{container}");
    }
}

#[test]
fn a_default_gateway_is_a_default_route_in_the_pod_per_family() {
    let Some(stage) = Stage::new("a default gateway") else {
        return;
    };
    let ranges = json!({"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}], [{"subnet": "fd88::/64"}]]});
    let config = json!({"bridge": "br1", "isDefaultGateway": true, "ipam": ranges});
    let pod = stage.pod("c1", config);
    let result = pod.add();
    assert!(
        pod.netns
            .ip("route")
            .contains("default via 10.88.0.1 dev net1")
    );
    assert!(
        pod.netns
            .ip("-6 route")
            .contains("default via fd88::1 dev net1")
    );
    let routes = result["routes"].to_string();
    assert!(
        routes.contains("10.88.0.1") && routes.contains("fd88::1"),
        "{routes}"
    );
    let mut own = stage.node.addresses("br1");
    own.sort();
    assert_eq!(own, ["10.88.0.1/24", "fd88::1/64"]);
    let forwards = stage
        .node
        .run("cat", &["/proc/sys/net/ipv6/conf/all/forwarding"]);
    assert_eq!(forwards.stdout, "1\n");
    // No second of waiting: the address can be used at once.
    assert!(!pod.netns.ip("-6 addr show dev net1").contains("tentative"));
    assert!(
        !stage
            .node
            .ip("-6 addr show dev br1 scope global")
            .contains("tentative")
    );
    let detection = pod
        .netns
        .run("cat", &["/proc/sys/net/ipv6/conf/net1/accept_dad"]);
    assert_eq!(detection.stdout, "0\n");
    pod.del();
    let asked = pod.with("enabledad", json!(true));
    asked.add();
    let detection = asked
        .netns
        .run("cat", &["/proc/sys/net/ipv6/conf/net1/accept_dad"]);
    assert_eq!(detection.stdout, "1\n");
}

#[test]
fn another_address_of_the_bridge_is_refused_or_with_force_replaced() {
    let Some(stage) = Stage::new("forceAddress") else {
        return;
    };
    stage.node.ip("link add br1 type bridge");
    stage.node.ip("addr add 10.99.0.1/24 dev br1");
    let pod = stage.pod("c1", gateway());
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("already has an IP address different from 10.88.0.1/24"),
        "{text}"
    );
    assert_eq!(pod.link(), None);
    assert_clean(&stage, "after a refusal");
    let pod = pod.with("forceAddress", json!(true));
    pod.add();
    assert_eq!(stage.node.addresses("br1"), ["10.88.0.1/24"]);
}

#[test]
fn two_subnets_of_one_pod_give_the_bridge_two_addresses() {
    let Some(stage) = Stage::new("two gateways") else {
        return;
    };
    let ranges = json!({"type": "host-local", "ranges": [[{"subnet": "10.88.0.0/24"}], [{"subnet": "10.89.0.0/24"}]]});
    let pod = stage.pod(
        "c1",
        json!({"bridge": "br1", "isGateway": true, "ipam": ranges}),
    );
    pod.add();
    assert_eq!(
        stage.node.addresses("br1"),
        ["10.88.0.1/24", "10.89.0.1/24"]
    );
    assert_eq!(pod.addresses(), ["10.88.0.2/24", "10.89.0.2/24"]);
}

#[test]
fn what_contradicts_itself_is_refused_before_anything_is_made() {
    let Some(stage) = Stage::new("bad keys of the bridge plugin") else {
        return;
    };
    for (config, field) in [
        (
            json!({"hairpinMode": true, "promiscMode": true}),
            "hairpinMode",
        ),
        (
            json!({"disableContainerInterface": true, "ipam": ipam("10.88.0.0/24")}),
            "disableContainerInterface",
        ),
        (json!({"vlan": 4095}), "vlan"),
        (json!({"vlan": -1}), "vlan"),
        (json!({"vlanTrunk": [{"minID": 5}]}), "vlanTrunk[0].maxID"),
        (json!({"mtu": -1}), "mtu"),
        (json!({"bridge": "a-name-of-16-byt"}), "bridge"),
        (json!({"bridge": "../etc"}), "bridge"),
        (
            json!({"bridge": "abcdefghijklmn", "vlan": 5, "isGateway": true}),
            "bridge",
        ),
        (json!({"ipMasqBackend": "ipfw"}), "ipMasqBackend"),
        (
            json!({"runtimeConfig": {"mac": "no mac"}}),
            "runtimeConfig.mac",
        ),
        (json!({"isGateway": "yes"}), "isGateway"),
    ] {
        let pod = stage.pod("c1", config.clone());
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{config}: {text}");
        assert!(text.contains(field), "{config}: {text}");
        let links = stage.node.links();
        assert_eq!(links.len(), 1, "{config} left {links:?}");
        pod.del();
        pod.end();
    }
    assert_eq!(stage.held(), 0);
}

#[test]
fn a_name_that_is_no_bridge_is_told_by_add_and_by_status() {
    let Some(stage) = Stage::new("a bridge that is none") else {
        return;
    };
    stage.node.ip("link add br1 type veth peer name br2");
    let pod = stage.pod("c1", gateway());
    let (code, text) = pod.refuse("ADD");
    assert!(
        code == 7 && text.contains("br1 already exists but is not a bridge"),
        "{text}"
    );
    assert_eq!(stage.held(), 0);
    let (code, text) = pod.refuse("STATUS");
    assert!(code == 50 && text.contains("br1"), "{text}");
    pod.with("bridge", json!("br3")).call("STATUS").ok();
}
