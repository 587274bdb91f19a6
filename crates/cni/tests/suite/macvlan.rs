//! macvlan in the kernel, judged by `ip -j`.

mod crash;
mod reach;

use serde_json::{Value, json};

use crate::conformance::peer::Peer;
use crate::segment::{Segment, kind, mac};
use crate::stage::Pod;

#[test]
fn a_pod_gets_a_child_of_the_master_with_its_addresses_and_routes() {
    let Some(segment) = Segment::new("macvlan with static addresses") else {
        return;
    };
    let ipam = json!({"type": "static",
        "addresses": [{"address": "10.1.2.20/24", "gateway": "10.1.2.1"}, {"address": "2001:db8::20/64"}],
        "routes": [{"dst": "192.0.2.0/24"}]});
    let pod = segment
        .pod("c1", "macvlan", "")
        .with("ipam", ipam)
        .with("mtu", json!(1400));
    let result = pod.add();
    let link = pod.link().unwrap();
    assert_eq!(kind(&link).0, "macvlan");
    assert_eq!(kind(&link).1["mode"], "bridge");
    assert_eq!(link["mtu"], 1400);
    assert_eq!(pod.addresses(), ["10.1.2.20/24", "2001:db8::20/64"]);
    let routes: Value = serde_json::from_str(&pod.netns.ip("-j route")).unwrap();
    let via = routes
        .as_array()
        .unwrap()
        .iter()
        .find(|r| r["dst"] == "192.0.2.0/24")
        .unwrap();
    assert_eq!(
        (&via["gateway"], &via["dev"]),
        (&json!("10.1.2.1"), &json!("net1"))
    );
    assert_eq!(
        result["interfaces"],
        json!([{"name": "net1", "mac": mac(&pod), "mtu": 1400, "sandbox": pod.netns.path()}])
    );
    assert_eq!(result["ips"][0]["interface"], 0);
    assert_eq!(result["ips"][1]["address"], "2001:db8::20/64");
    pod.check(&result).ok();
    pod.del();
    assert!(pod.link().is_none());
    assert_eq!(segment.left_over(), [""; 0]);
}

/// The destinations and routers of a pod's IPv4 routes, then of its IPv6 ones, as the kernel looks through them.
fn order(pod: &Pod) -> Vec<String> {
    let mut seen = Vec::new();
    for family in ["-4", "-6"] {
        let text = pod.netns.ip(&format!("-j {family} route"));
        let routes: Vec<Value> = serde_json::from_str(&text).unwrap();
        let made = routes
            .iter()
            .filter(|r| r["protocol"] != "kernel" && r["dst"] != "fe80::/64");
        for route in made {
            let hops = route["nexthops"].as_array().cloned();
            for hop in hops.unwrap_or_else(|| vec![route.clone()]) {
                seen.push(format!(
                    "{} {} {}",
                    route["dst"], hop["gateway"], hop["dev"]
                ));
            }
        }
    }
    seen
}

#[test]
fn a_route_goes_before_those_that_the_pod_has_as_with_the_reference() {
    let what = "macvlan and a pod with default routes";
    let Some(peer) = Peer::reference(what) else {
        return;
    };
    let Some(segment) = Segment::new(what) else {
        return;
    };
    let ipam = json!({"type": "static",
        "addresses": [{"address": "10.1.2.20/24", "gateway": "10.1.2.1"},
            {"address": "2001:db8::20/64", "gateway": "2001:db8::1"}],
        "routes": [{"dst": "0.0.0.0/0"}, {"dst": "::/0"},
            {"dst": "192.0.2.0/24", "gw": "10.1.2.2"}, {"dst": "192.0.2.0/24", "gw": "10.1.2.3"},
            {"dst": "2001:db8:5::/48", "gw": "2001:db8::2"}, {"dst": "2001:db8:5::/48", "gw": "2001:db8::3"}]});
    let orders = ["ours", "theirs"].map(|whose| {
        let pod = segment.pod(whose, "macvlan", "").with("ipam", ipam.clone());
        pod.netns.ip("link add eth0 type veth peer name other");
        pod.netns.ip("link set other up");
        pod.netns.ip("link set eth0 up");
        pod.netns.ip("addr add 10.0.0.5/24 dev eth0");
        pod.netns.ip("addr add fd00::5/64 dev eth0 nodad");
        pod.netns.ip("route add default via 10.0.0.1");
        pod.netns.ip("-6 route add default via fd00::1");
        let once = order(&pod);
        if whose == "ours" {
            pod.add();
            pod.add();
        } else {
            pod.clone().served_by(&peer.dir).add();
        }
        let all = order(&pod);
        let leads = pod.netns.ip("route get 198.51.100.1");
        assert!(leads.contains("via 10.1.2.1 dev net1"), "{whose}: {leads}");
        pod.del();
        assert_eq!(order(&pod), once, "{whose}");
        all
    });
    assert_eq!(orders[0], orders[1]);
}

#[test]
fn without_ipam_the_interface_is_up_and_has_no_address() {
    let Some(segment) = Segment::new("macvlan for layer 2") else {
        return;
    };
    let pod = segment
        .stage
        .pod("c1", json!({"type": "macvlan", "master": "eth1"}));
    let result = pod.add();
    assert!(pod.link().unwrap()["flags"].to_string().contains("\"UP\""));
    assert_eq!(pod.addresses(), [""; 0]);
    assert_eq!(result["ips"], Value::Null);
    pod.check(&result).ok();
    pod.del();
}

#[test]
fn every_mode_is_the_kernels_and_others_are_refused() {
    let Some(segment) = Segment::new("macvlan modes") else {
        return;
    };
    for mode in ["private", "vepa", "bridge", "passthru"] {
        let config = json!({"type": "macvlan", "master": "eth1", "mode": mode, "bcqueuelen": 77});
        let pod = segment.stage.pod(mode, config);
        let result = pod.add();
        let link = pod.link().unwrap();
        assert_eq!(kind(&link).1["mode"], *mode, "{link}");
        assert_eq!(kind(&link).1["bcqueuelen"], 77, "{link}");
        let (code, text) = {
            let mut other = pod.clone();
            other.config["mode"] = json!(if mode == "vepa" { "private" } else { "vepa" });
            other.config["prevResult"] = result;
            other.refuse("CHECK")
        };
        assert_eq!(code, 999, "{text}");
        pod.del();
    }
    let pod = segment.stage.pod(
        "c9",
        json!({"type": "macvlan", "master": "eth1", "mode": "source"}),
    );
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("mode"), "{text}");
    assert!(pod.link().is_none());
}

#[test]
fn the_mac_comes_from_the_runtime_else_the_arguments_else_the_configuration() {
    let Some(segment) = Segment::new("macvlan MACs") else {
        return;
    };
    let config = json!({"type": "macvlan", "master": "eth1", "mac": "02:00:00:00:00:01"});
    let mut pod = segment.stage.pod("c1", config);
    pod.add();
    assert_eq!(mac(&pod), "02:00:00:00:00:01");
    pod.del();
    let args = "IgnoreUnknown=1;K8S_POD_NAME=x;MAC=02:00:00:00:00:02";
    pod.variables.insert("CNI_ARGS", args.to_owned());
    pod.add();
    assert_eq!(mac(&pod), "02:00:00:00:00:02");
    pod.del();
    pod.config["runtimeConfig"] = json!({"mac": "02:00:00:00:00:03"});
    assert_eq!(pod.add()["interfaces"][0]["mac"], "02:00:00:00:00:03");
    assert_eq!(mac(&pod), "02:00:00:00:00:03");
    pod.del();
    for bad in ["nonsense", "01:00:00:00:00:01"] {
        pod.config["runtimeConfig"] = json!({"mac": bad});
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{text}");
        assert!(text.contains("runtimeConfig.mac"), "{text}");
        assert!(pod.link().is_none());
        pod.del();
    }
}

#[test]
fn bad_values_are_named_and_nothing_is_made() {
    let Some(segment) = Segment::new("macvlan refuses") else {
        return;
    };
    let bad = [
        ("mtu", json!(9000)),
        ("mtu", json!(-1)),
        ("mtu", json!("big")),
        ("master", json!("eth9")),
        ("master", json!("eth9.100")),
        ("probe", json!("often")),
        ("probe", json!("block(0)")),
        ("bcqueuelen", json!(-1)),
        ("hostReach", json!("yes")),
    ];
    for (nth, (field, value)) in bad.into_iter().enumerate() {
        let pod = segment
            .pooled(&format!("c{nth}"), "macvlan")
            .with(field, value.clone());
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{field} {value}: {text}");
        assert!(text.contains(field), "{field} {value}: {text}");
        assert!(pod.link().is_none());
        assert_eq!(segment.stage.held(), 0, "{field} {value}");
        // A configuration that was never good is still deleted.
        pod.del();
    }
    assert_eq!(segment.left_over(), [""; 0]);
}

#[test]
fn the_default_routes_interface_is_the_default_master() {
    let Some(segment) = Segment::new("macvlan without master") else {
        return;
    };
    let pod = segment.stage.pod("c1", json!({"type": "macvlan"}));
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("default route"), "{text}");
    segment.stage.node.ip("addr add 10.1.2.5/24 dev eth1");
    segment
        .stage
        .node
        .ip("route add default via 10.1.2.1 dev eth1");
    pod.add();
    assert_eq!(kind(&pod.link().unwrap()).0, "macvlan");
    segment.stage.node.ip("route del default");
    pod.del();
    assert!(pod.link().is_none());
}

#[test]
fn a_name_that_the_node_has_is_free_in_the_pod() {
    let Some(segment) = Segment::new("macvlan with the node's name") else {
        return;
    };
    segment
        .stage
        .node
        .ip("link add net1 type veth peer name net1b");
    let pod = segment.pod("c1", "macvlan", "10.1.2.20/24");
    pod.add();
    assert_eq!(kind(&pod.link().unwrap()).0, "macvlan");
    pod.del();
    assert!(segment.node_links().contains(&"net1".to_owned()));
}

#[test]
fn somebody_elses_interface_is_never_replaced_or_removed() {
    let Some(segment) = Segment::new("macvlan meets another net1") else {
        return;
    };
    let pod = segment.pooled("c1", "macvlan");
    pod.netns.ip("link add net1 type veth peer name other");
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 4, "{text}");
    assert!(text.contains("net1"), "{text}");
    assert_eq!(segment.stage.held(), 0);
    pod.del();
    assert_eq!(kind(&pod.link().unwrap()).0, "veth");
}

#[test]
fn an_interface_that_is_only_also_called_so_is_somebody_elses() {
    let Some(segment) = Segment::new("macvlan meets a further name") else {
        return;
    };
    let mut first = segment.pod("c1", "macvlan", "10.1.2.20/24");
    "net0".clone_into(&mut first.ifname);
    first.add();
    first.netns.ip("link property add dev net0 altname net1");
    let mut second = first.clone();
    "net1".clone_into(&mut second.ifname);
    let (code, text) = second.refuse("ADD");
    assert_eq!(code, 4, "{text}");
    second.del();
    assert!(first.link().is_some());
}

#[test]
fn an_add_that_is_repeated_gives_one_interface_and_one_address() {
    let Some(segment) = Segment::new("macvlan ADD twice") else {
        return;
    };
    let pod = segment.pooled("c1", "macvlan");
    let first = pod.add();
    let second = pod.add();
    assert_eq!(first["ips"], second["ips"]);
    assert_eq!(pod.addresses().len(), 1);
    assert_eq!(segment.stage.held(), 1);
    pod.del();
    assert_eq!(segment.stage.held(), 0);
}

/// `passthru` allows one child: a leftover is in the way of the next one even under another name.
fn passthru_again(segment: &Segment) {
    let pod = segment
        .pooled("c1", "macvlan")
        .with("mode", json!("passthru"));
    let first = pod.add();
    let second = pod.add();
    assert_eq!(first["ips"], second["ips"]);
    assert_eq!(pod.addresses().len(), 1);
    assert_eq!(segment.stage.held(), 1);
    // Another pod takes neither the interface nor the address.
    let other = segment
        .pooled("c2", "macvlan")
        .with("mode", json!("passthru"));
    other.refuse("ADD");
    assert_eq!(pod.addresses().len(), 1);
    assert_eq!(segment.stage.held(), 1);
    pod.del();
    assert_eq!(segment.stage.held(), 0);
    other.add();
    other.del();
}

#[test]
fn a_passthru_add_that_is_repeated_keeps_its_address() {
    let Some(segment) = Segment::new("macvlan passthru ADD twice") else {
        return;
    };
    passthru_again(&segment);
}

/// Linux 6.1 looks for the name on the node, and so says first that there is a passthru child.
mod qemu {
    use serde_json::json;

    use crate::segment::{Segment, kind};

    #[test]
    #[ignore = "kernel: qemu"]
    fn macvlan_passthru_repeated_on_an_older_kernel_keeps_its_address() {
        let segment = Segment::new("macvlan passthru ADD twice").expect("root, with namespaces");
        super::passthru_again(&segment);
    }

    #[test]
    #[ignore = "kernel: qemu"]
    fn macvlan_passthru_killed_before_its_name_is_made_again() {
        let segment = Segment::new("macvlan passthru killed").expect("root, with namespaces");
        let pod = segment
            .pooled("c1", "macvlan")
            .with("mode", json!("passthru"));
        segment.stage.node.ip("link add net1 type dummy");
        assert!(pod.killed_at("ADD", "child-made-temporarily"));
        segment.stage.node.ip("link del net1");
        pod.add();
        assert_eq!(kind(&pod.link().unwrap()).0, "macvlan");
        assert_eq!(segment.stage.held(), 1);
        pod.del();
        assert_eq!(segment.stage.held(), 0);
    }
}

#[test]
fn del_succeeds_twice_without_namespace_and_without_master() {
    let Some(segment) = Segment::new("macvlan DEL") else {
        return;
    };
    let pod = segment.pooled("c1", "macvlan");
    pod.del();
    pod.add();
    pod.del();
    pod.del();
    assert!(pod.link().is_none());
    let blind = segment.pooled("c2", "macvlan");
    blind.add();
    blind.del_blind();
    assert_eq!(segment.stage.held(), 0);
    let dead = segment.pooled("c3", "macvlan");
    dead.add();
    dead.end();
    dead.del();
    assert_eq!(segment.stage.held(), 0);
    let orphan = segment.pooled("c4", "macvlan");
    orphan.add();
    segment.stage.node.ip("link del eth1");
    orphan.del();
    orphan.del();
    assert_eq!(segment.stage.held(), 0);
    assert!(orphan.link().is_none());
}

#[test]
fn check_sees_what_changed() {
    let Some(segment) = Segment::new("macvlan CHECK") else {
        return;
    };
    let pod = segment.pod("c1", "macvlan", "10.1.2.20/24");
    let result = pod.add();
    pod.check(&result).ok();
    let fails = |with: &Value| {
        let said = pod.check(with);
        assert_ne!(said.code, Some(0), "{said:?}");
        said.stdout
    };
    pod.netns.ip("addr del 10.1.2.20/24 dev net1");
    assert!(fails(&result).contains("10.1.2.20"));
    pod.netns.ip("addr add 10.1.2.20/24 dev net1");
    pod.check(&result).ok();
    let before = mac(&pod);
    pod.netns.ip("link set net1 address 02:00:00:00:00:77");
    assert!(fails(&result).contains("02:00:00:00:00:77"));
    pod.netns.ip(&format!("link set net1 address {before}"));
    pod.check(&result).ok();
    let mut elsewhere = result.clone();
    elsewhere["interfaces"][0]["sandbox"] = json!("/run/netns/another");
    assert!(fails(&elsewhere).contains("namespace"));
    segment.stage.node.ip("link set eth1 down");
    segment.stage.node.ip("link set eth1 name eth2");
    assert!(fails(&result).contains("eth1"));
    pod.netns.ip("link del net1");
    assert!(fails(&result).contains("net1"));
}

#[test]
fn status_says_when_the_master_is_missing() {
    let Some(segment) = Segment::new("macvlan STATUS") else {
        return;
    };
    let pod = segment.pooled("c1", "macvlan");
    pod.call("STATUS").ok();
    // It would be made.
    segment
        .pooled("c2", "macvlan")
        .with("master", json!("eth1.100"))
        .call("STATUS")
        .ok();
    let away = segment
        .pooled("c3", "macvlan")
        .with("master", json!("eth9"));
    let (code, text) = away.refuse("STATUS");
    assert_eq!(code, 50, "{text}");
    assert!(text.contains("eth9"), "{text}");
    // It is there, and an ADD would be refused all the same.
    let large = segment.pooled("c4", "macvlan").with("mtu", json!(9000));
    let (code, text) = large.refuse("STATUS");
    assert_eq!(code, 7, "{text}");
    assert!(text.contains("9000"), "{text}");
    segment.stage.node.ip("link set eth1 down");
    let down = segment
        .pooled("c5", "macvlan")
        .with("master", json!("eth1.100"));
    let (code, text) = down.refuse("STATUS");
    assert_eq!(code, 50, "{text}");
    assert!(text.contains("eth1 is down"), "{text}");
}

#[test]
fn the_master_may_be_in_the_pod() {
    let Some(segment) = Segment::new("macvlan in the container") else {
        return;
    };
    let first = segment.pod("c1", "macvlan", "10.1.2.20/24");
    first.add();
    let config = json!({"type": "macvlan", "master": "net1", "linkInContainer": true});
    let mut second = segment.stage.pod_in(first.netns.clone(), "c1", config);
    "net2".clone_into(&mut second.ifname);
    second.add();
    assert_eq!(kind(&second.link().unwrap()).0, "macvlan");
    second.del();
    assert!(second.link().is_none());
    assert!(first.link().is_some());
    let lost = second.clone().with("master", json!("eth1"));
    let (code, text) = lost.refuse("ADD");
    assert_eq!(code, 7, "{text}");
}

#[test]
fn the_pods_default_route_names_a_master_in_the_pod() {
    let what = "macvlan in the container without master";
    let Some(peer) = Peer::reference(what) else {
        return;
    };
    let Some(segment) = Segment::new(what) else {
        return;
    };
    let ipam = json!({"type": "static",
        "addresses": [{"address": "10.1.2.20/24", "gateway": "10.1.2.1"}],
        "routes": [{"dst": "0.0.0.0/0"}]});
    let config = json!({"type": "macvlan", "linkInContainer": true, "ipam": ipam});
    let pod = segment.stage.pod("c1", config);
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("the container has no default route"),
        "{text}"
    );
    pod.netns.ip("link add eth0 type veth peer name other");
    pod.netns.ip("link set eth0 up");
    pod.netns.ip("addr add 10.0.0.5/24 dev eth0");
    pod.netns.ip("route add default via 10.0.0.1");
    let below = || pod.link().unwrap()["link"].clone();
    pod.clone().served_by(&peer.dir).add();
    assert_eq!(below(), "eth0");
    pod.del();
    let result = pod.add();
    assert_eq!(below(), "eth0");
    pod.check(&result).ok();
    // Its own route is the first default route of the pod now.
    pod.add();
    assert_eq!(below(), "eth0");
    pod.del();
    assert!(pod.link().is_none());
}

#[test]
fn no_interface_is_its_own_master() {
    let Some(segment) = Segment::new("macvlan on itself") else {
        return;
    };
    let first = segment.pod("c1", "macvlan", "10.1.2.20/24");
    first.add();
    let second = first
        .clone()
        .with("master", json!("net1"))
        .with("linkInContainer", json!(true));
    let (code, text) = second.refuse("ADD");
    assert_eq!((code, text.contains("master")), (7, true), "{text}");
    assert!(first.link().is_some());
}

#[test]
fn a_pool_that_is_empty_leaves_no_interface() {
    let Some(segment) = Segment::new("macvlan and an exhausted pool") else {
        return;
    };
    let pods: Vec<_> = (0..5)
        .map(|n| segment.pooled(&format!("c{n}"), "macvlan"))
        .collect();
    for pod in &pods {
        pod.add();
    }
    let late = segment.pooled("c9", "macvlan");
    let (_, text) = late.refuse("ADD");
    assert!(
        text.contains("no IP addresses available in range set"),
        "{text}"
    );
    assert!(late.link().is_none());
    pods[2].del();
    late.add();
    assert_eq!(segment.stage.held(), 5);
}

#[test]
fn a_node_may_change_between_the_reference_plugins_and_ours() {
    let what = "macvlan in the middle of a change of plugins";
    let Some(peer) = Peer::reference(what) else {
        return;
    };
    let Some(segment) = Segment::new(what) else {
        return;
    };
    let ours = segment.pooled("c1", "macvlan");
    let theirs = ours.clone().served_by(&peer.dir);
    for (adds, dels) in [(&theirs, &ours), (&ours, &theirs)] {
        let result = adds.add();
        assert_eq!(segment.stage.held(), 1);
        ours.check(&result).ok();
        theirs.check(&result).ok();
        dels.del();
        assert!(ours.link().is_none());
        assert_eq!(segment.stage.held(), 0);
    }
}
