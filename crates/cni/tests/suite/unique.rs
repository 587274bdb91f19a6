//! Whether an address is anybody else's, for every main plugin on a real segment: detection, probes, and what is announced.
//!
//! ovs has the same in its own module, since it needs a switch.

use std::net::{SocketAddr, UdpSocket};

use mooring_host::Netns;
use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::host_device::bed;
use crate::segment::{Segment, mac};
use crate::stage::Pod;

const MAIN: [&str; 8] = [
    "macvlan",
    "ipvlan",
    "vlan",
    "bridge",
    "host-device",
    "amd-host-device",
    "sriov",
    "ovs",
];
const PF: &str = "0000:3b:00.0";
const VF: &str = "0000:3b:10.2";

/// A static address, or none.
fn ipam(address: &str) -> Value {
    json!({"type": "static", "addresses": [{"address": address}]})
}

/// The node's `eth1` as what a plugin works on, and the plugin's keys that say so.
fn keys(segment: &Segment, plugin: &str) -> Value {
    let node = &segment.stage.node;
    match plugin {
        "macvlan" => json!({"type": plugin, "master": "eth1"}),
        "bridge" => {
            if node.link("br1").is_none() {
                // With a MAC of its own, or it follows its ports and CHECK sees it.
                node.ip("link add br1 address 02:00:00:00:00:b1 type bridge");
                node.ip("link set br1 up");
                node.ip("link set eth1 master br1");
            }
            json!({"type": plugin, "bridge": "br1"})
        }
        "host-device" => json!({"type": plugin, "device": "eth1"}),
        "amd-host-device" => {
            bed::sysfs(segment.stage.root(), PF, "eth1");
            json!({"type": plugin, "deviceID": PF})
        }
        "sriov" => {
            use std::os::unix::fs::symlink;

            let vf = bed::sysfs(segment.stage.root(), VF, "eth1");
            let pf = bed::sysfs(segment.stage.root(), PF, "pf0");
            if !vf.join("physfn").exists() {
                symlink(&pf, vf.join("physfn")).unwrap();
                symlink(&vf, pf.join("virtfn0")).unwrap();
            }
            json!({"type": plugin, "deviceID": VF})
        }
        _ => panic!("{plugin} is not tried here"),
    }
}

/// The pod's IPv6 address that is not the kernel's own, as `ip` shows it.
#[track_caller]
pub(crate) fn address(pod: &Pod) -> Value {
    let link = pod.link().expect("the interface is there");
    let mut all = link["addr_info"].as_array().unwrap().iter();
    let own = |a: &&Value| a["family"] == "inet6" && a["scope"] == "global";
    all.find(own).expect("an IPv6 address").clone()
}

/// Whether the pod can use its address now.
pub(crate) fn is_usable(pod: &Pod) -> bool {
    let ip: std::net::IpAddr = address(pod)["local"].as_str().unwrap().parse().unwrap();
    let netns = Netns::open(pod.netns.path()).unwrap();
    netns
        .run(|| UdpSocket::bind(SocketAddr::new(ip, 0)).is_ok())
        .unwrap()
}

/// Waits until the pod's address is as wanted; fails with what it was last.
#[track_caller]
pub(crate) fn await_address(pod: &Pod, what: &str, is: impl Fn(&Value) -> bool) {
    let mut last = json!(null);
    for _ in 0..400 {
        last = address(pod);
        if is(&last) {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(25));
    }
    panic!("the address is not {what}: {last}");
}

pub(crate) fn is_detected(address: &Value) -> bool {
    address["tentative"].is_null() && address["dadfailed"].is_null()
}

#[test]
fn an_address_is_used_at_once_and_detected_only_where_it_is_asked_for() {
    let pool =
        json!({"type": "host-local", "subnet": "2001:db8::/64", "rangeStart": "2001:db8::20"});
    for (plugin, more, settled) in [
        // Who wrote the address, or the pool, has decided whose it is.
        ("macvlan", json!({}), true),
        ("macvlan", json!({"ipam": pool}), true),
        ("macvlan", json!({"probe": "async"}), true),
        ("macvlan", json!({"probe": "block(60)"}), true),
        ("macvlan", json!({"enabledad": false}), true),
        ("macvlan", json!({"enabledad": true}), false),
        (
            "macvlan",
            json!({"enabledad": true, "probe": "block(60)"}),
            false,
        ),
        ("bridge", json!({}), true),
        ("bridge", json!({"enabledad": true}), false),
        ("host-device", json!({}), true),
        ("host-device", json!({"enabledad": true}), false),
        // The NIC brings the address that it had.
        ("amd-host-device", json!({"ipam": null}), true),
        (
            "amd-host-device",
            json!({"ipam": null, "enabledad": true}),
            false,
        ),
        ("amd-host-device", json!({}), true),
        ("sriov", json!({}), true),
        ("sriov", json!({"enabledad": true}), false),
    ] {
        let Some(segment) = Segment::new("detection of addresses") else {
            return;
        };
        segment
            .stage
            .node
            .ip("addr add 2001:db8::7/64 dev eth1 nodad");
        let mut config = keys(&segment, plugin);
        config["ipam"] = ipam("2001:db8::20/64");
        for (key, value) in more.as_object().unwrap() {
            config[key] = value.clone();
        }
        let what = config.to_string();
        let pod = segment.stage.pod("c1", config);
        let result = pod.add();
        let seen = address(&pod);
        assert_eq!(seen["nodad"] == true, settled, "{what}: {seen}");
        assert!(is_usable(&pod), "{what}: {}", address(&pod));
        await_address(&pod, "free of detection", is_detected);
        pod.check(&result).ok();
        pod.del();
    }
}

#[test]
fn the_second_pod_with_an_address_finds_it_failed_and_check_says_so() {
    let pool = |dir: &str| json!({"type": "host-local", "subnet": "2001:db8::/64", "rangeStart": "2001:db8::20", "dataDir": dir});
    let address = ipam("2001:db8::20/64");
    for (plugin, more, ipams) in [
        (
            "macvlan",
            json!({"enabledad": true}),
            [address.clone(), address.clone()],
        ),
        // Two nodes with one pool each.
        (
            "macvlan",
            json!({"enabledad": true}),
            [pool("one"), pool("two")],
        ),
        (
            "bridge",
            json!({"enabledad": true}),
            [address.clone(), address],
        ),
    ] {
        let Some(segment) = Segment::new("one address in two pods") else {
            return;
        };
        let root = segment.stage.root().display().to_string();
        let [first, second] = [("c1", 0), ("c2", 1)].map(|(container, nth)| {
            let mut config = keys(&segment, plugin);
            config["ipam"] = ipams[nth].clone();
            if let Some(dir) = ipams[nth]["dataDir"].as_str() {
                config["ipam"]["dataDir"] = json!(format!("{root}/{dir}"));
            }
            for (key, value) in more.as_object().unwrap() {
                config[key] = value.clone();
            }
            segment.stage.pod(container, config)
        });
        let kept = first.add();
        await_address(&first, "free of detection", is_detected);
        let result = second.add();
        assert_eq!(result["ips"][0]["address"], "2001:db8::20/64", "{plugin}");
        await_address(&second, "found to be taken", |a| a["dadfailed"] == true);
        let said = second.check(&result);
        let error: Value = serde_json::from_str(&said.stdout).unwrap();
        assert_eq!(error["code"], 999, "{plugin}: {error}");
        let text = error["msg"].as_str().unwrap();
        assert!(
            text.contains("address 2001:db8::20/64 is used by another host"),
            "{plugin}: {text}"
        );
        first.check(&kept).ok();
        second.del();
        first.del();
    }
}

/// A pod on the segment, whose neighbour remembers the MAC of the pod that had the address before.
fn remembered(segment: &Segment, plugin: &str, more: &Value) -> Pod {
    let mut config = keys(segment, plugin);
    config["ipam"] = ipam("2001:db8::20/64");
    for (key, value) in more.as_object().unwrap() {
        config[key] = value.clone();
    }
    segment
        .neighbour
        .ip("neigh replace 2001:db8::20 lladdr 02:00:00:00:00:99 dev eth1 nud reachable");
    segment.stage.pod("c1", config)
}

#[test]
fn an_address_whose_detection_runs_is_not_announced_and_the_pods_first_words_tell_it() {
    for (plugin, more) in [
        ("macvlan", json!({"enabledad": true})),
        // What the pod sends comes back to it.
        ("bridge", json!({"enabledad": true, "hairpinMode": true})),
        ("host-device", json!({"enabledad": true})),
        ("sriov", json!({"enabledad": true})),
    ] {
        let Some(segment) = Segment::new("announcements and detection") else {
            return;
        };
        let pod = remembered(&segment, plugin, &more);
        let result = pod.add();
        let netns = Netns::open(pod.netns.path()).unwrap();
        let socket = netns.run(|| UdpSocket::bind("[2001:db8::20]:0")).unwrap();
        let socket = socket.unwrap();
        // The kernel keeps only some of what waits for a neighbour, and an error tells of an earlier one.
        let speak = || _ = socket.send_to(b"hello", "[2001:db8::9]:9");
        segment.neighbour_learns_while(speak, "2001:db8::20", &mac(&pod));
        // In this order: the kernel ends detection first and speaks then.
        let seen = address(&pod);
        assert!(is_detected(&seen), "{plugin}: told of {seen}");
        pod.check(&result).ok();
        pod.del();
    }
}

#[test]
fn a_settled_address_is_announced_at_once() {
    for (plugin, more) in [
        ("macvlan", json!({})),
        ("bridge", json!({"hairpinMode": true})),
        ("host-device", json!({"probe": "block(60)"})),
        ("amd-host-device", json!({"ipam": null})),
        ("sriov", json!({})),
    ] {
        let Some(segment) = Segment::new("announcements of settled addresses") else {
            return;
        };
        segment
            .stage
            .node
            .ip("addr add 2001:db8::20/64 dev eth1 nodad");
        let pod = remembered(&segment, plugin, &more);
        pod.add();
        segment.neighbour_learns("2001:db8::20", &mac(&pod));
        pod.del();
    }
}

#[test]
fn every_main_plugin_refuses_a_probe_that_it_does_not_understand() {
    let Some(segment) = Segment::new("bad probes") else {
        return;
    };
    for plugin in MAIN {
        let before = segment.node_links();
        for (value, verb) in [
            (json!("nonsense"), "ADD"),
            (json!("block(0)"), "ADD"),
            (json!(200), "ADD"),
            (json!("nonsense"), "STATUS"),
        ] {
            let config = json!({"type": plugin, "master": "eth1", "device": "eth1", "vlanId": 5,
                "bridge": "br7", "ipam": ipam("10.1.2.20/24")});
            let pod = segment
                .stage
                .pod_in(segment.neighbour.clone(), "c1", config);
            let (code, text) = pod.with("probe", value.clone()).refuse(verb);
            assert_eq!(code, 7, "{plugin} {verb} {value}: {text}");
            assert!(text.contains("probe"), "{plugin} {verb} {value}: {text}");
        }
        assert_eq!(segment.node_links(), before, "{plugin}");
    }
}

#[test]
fn an_address_that_is_in_use_is_refused_by_every_plugin_that_asks() {
    for plugin in [
        "macvlan",
        "bridge",
        "host-device",
        "amd-host-device",
        "sriov",
    ] {
        let Some(segment) = Segment::new("blocking probes of every plugin") else {
            return;
        };
        for taken in ["10.1.2.9/24", "2001:db8::9/64"] {
            let mut config = keys(&segment, plugin);
            config["probe"] = json!("block(5000)");
            if plugin == "amd-host-device" {
                // As if the node's NIC had been given an address twice, and nobody had noticed.
                let node = &segment.stage.node;
                let dad = if taken.contains(':') { "nodad" } else { "" };
                node.ip("addr flush dev eth1 scope global");
                node.ip(&format!("addr add {taken} dev eth1 {dad}"));
            } else {
                config["ipam"] = ipam(taken);
            }
            let pod = segment.stage.pod(&format!("c{}", taken.len()), config);
            let before = segment.node_links();
            let (code, text) = pod.refuse("ADD");
            assert_eq!(code, 11, "{plugin}: {text}");
            let address = taken.split('/').next().unwrap();
            for part in [segment.neighbour_mac().as_str(), address] {
                assert!(text.contains(part), "{plugin}: {part} is not in {text}");
            }
            assert_eq!(pod.link(), None, "{plugin}");
            assert_eq!(segment.node_links(), before, "{plugin}");
            pod.del();
        }
    }
}

/// The other children, whose drivers not every kernel has.
mod uml {
    use super::*;

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_and_vlan_refuse_an_address_that_is_in_use() {
        for (plugin, more) in [
            ("ipvlan", json!({"master": "eth1"})),
            ("vlan", json!({"master": "eth1", "vlanId": 5})),
        ] {
            let what = "blocking probes of children";
            let segment = Segment::new(what).expect("root on a kernel of our own");
            let neighbour = &segment.neighbour;
            neighbour.ip("link add eth1.5 link eth1 type vlan id 5");
            neighbour.ip("link set eth1.5 up");
            for taken in ["10.1.2.8/24", "2001:db8::8/64"] {
                let dev = if plugin == "vlan" { "eth1.5" } else { "eth1" };
                let dad = if taken.contains(':') { "nodad" } else { "" };
                neighbour.ip(&format!("addr add {taken} dev {dev} {dad}"));
                let pod = segment
                    .stage
                    .pod(&format!("c{}", taken.len()), more.clone());
                let pod = pod.with("type", json!(plugin)).with("ipam", ipam(taken));
                let (code, text) = pod.with("probe", json!("block(5000)")).refuse("ADD");
                assert_eq!(code, 11, "{plugin}: {text}");
                assert!(text.contains(&segment.neighbour_mac()), "{plugin}: {text}");
                assert_eq!(segment.node_links(), ["eth1"], "{plugin}");
            }
        }
    }
}
