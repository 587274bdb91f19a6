//! ipvlan: what is refused here, and what its kernel makes of it in User-mode Linux.

use serde_json::json;

use crate::segment::Segment;

#[test]
fn bad_values_are_named() {
    let Some(segment) = Segment::new("ipvlan refuses") else {
        return;
    };
    let bad = [
        ("mode", json!("l4")),
        ("mtu", json!(-1)),
        ("master", json!("eth9")),
        ("probe", json!("block(x)")),
    ];
    for (nth, (field, value)) in bad.into_iter().enumerate() {
        let pod = segment
            .pooled(&format!("c{nth}"), "ipvlan")
            .with(field, value);
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{field}: {text}");
        assert!(text.contains(field), "{field}: {text}");
        pod.del();
    }
    let alone = segment
        .stage
        .pod("c8", json!({"type": "ipvlan", "master": "eth1"}));
    let (code, text) = alone.refuse("ADD");
    assert_eq!((code, text.contains("ipam")), (7, true), "{text}");
    let prev = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "a"}, {"name": "b"}],
        "ips": [{"address": "10.1.2.20/24"}]});
    let unsure = segment
        .stage
        .pod("c9", json!({"type": "ipvlan", "prevResult": prev}));
    let (code, text) = unsure.refuse("ADD");
    assert_eq!((code, text.contains("master")), (7, true), "{text}");
    assert_eq!(segment.stage.held(), 0);
}

#[test]
fn status_without_a_master_asks_only_for_addresses() {
    let Some(segment) = Segment::new("ipvlan STATUS") else {
        return;
    };
    // The node has no default route; whether one is needed is known when there is a plugin before this one, or none.
    let pod = segment.pooled("c1", "ipvlan").with("master", json!(""));
    pod.call("STATUS").ok();
    let empty = json!({"type": "nobodys"});
    let (code, text) = pod.clone().with("ipam", empty).refuse("STATUS");
    assert_eq!(code, 50, "{text}");
    let (code, text) = pod.with("master", json!("eth9")).refuse("STATUS");
    assert_eq!((code, text.contains("eth9")), (50, true), "{text}");
}

mod uml {
    use serde_json::{Value, json};

    use crate::conformance::bed::Shown as _;
    use crate::conformance::peer::Peer;
    use crate::segment::{Segment, kind, mac};

    fn segment(what: &str) -> Segment {
        Segment::new(what).expect("root, with namespaces")
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_every_mode_gives_an_interface_with_its_addresses() {
        let segment = segment("ipvlan modes");
        for mode in ["l2", "l3", "l3s"] {
            let pod = segment
                .pod(mode, "ipvlan", "10.1.2.20/24")
                .with("mode", json!(mode));
            let pod = pod.with("mtu", json!(1400));
            let result = pod.add();
            let link = pod.link().unwrap();
            assert_eq!(kind(&link).0, "ipvlan", "{link}");
            assert_eq!(kind(&link).1["mode"], *mode, "{link}");
            assert_eq!(link["mtu"], 1400, "{link}");
            assert_eq!(pod.addresses(), ["10.1.2.20/24"]);
            assert_eq!(result["interfaces"][0]["mac"], mac(&pod));
            pod.check(&result).ok();
            let other = pod
                .clone()
                .with("mode", json!(if mode == "l2" { "l3" } else { "l2" }));
            let said = other.check(&result);
            assert_ne!(said.code, Some(0), "{said:?}");
            pod.del();
            pod.del();
            assert!(pod.link().is_none());
        }
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_takes_addresses_and_master_from_an_earlier_plugin() {
        let segment = segment("ipvlan chained");
        let prev = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "eth1"}],
            "ips": [{"address": "10.1.2.30/24", "gateway": "10.1.2.1", "interface": 0}],
            "routes": [{"dst": "192.0.2.0/24"}], "dns": {"nameservers": ["192.0.2.53"]}});
        let config = json!({"type": "ipvlan", "prevResult": prev});
        let pod = segment.stage.pod("c1", config);
        let result = pod.add();
        assert_eq!(pod.addresses(), ["10.1.2.30/24"]);
        assert_eq!(result["interfaces"].as_array().unwrap().len(), 1);
        assert_eq!(result["interfaces"][0]["name"], "net1");
        assert_eq!(result["dns"]["nameservers"][0], "192.0.2.53");
        let routes = pod.netns.ip("route");
        assert!(routes.contains("192.0.2.0/24 via 10.1.2.1"), "{routes}");
        pod.check(&result).ok();
        pod.del();
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_with_addresses_of_its_own_still_takes_the_master_of_an_earlier_plugin() {
        let what = "ipvlan chained with ipam";
        let Some(peer) = Peer::reference(what) else {
            return;
        };
        let segment = segment(what);
        // What a plugin alone would take.
        let node = &segment.stage.node;
        node.ip("link add eth0 type dummy");
        node.ip("link set eth0 up");
        node.ip("addr add 10.0.0.5/24 dev eth0");
        node.ip("route add default via 10.0.0.1");
        let index = node.link("eth1").unwrap()["ifindex"].clone();
        let prev = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "eth1"}],
            "ips": [{"address": "10.1.2.30/24", "interface": 0}]});
        let pod = segment
            .pod("c1", "ipvlan", "10.1.2.40/24")
            .with("master", Value::Null)
            .with("prevResult", prev);
        for add in [pod.clone().served_by(&peer.dir), pod.clone()] {
            let result = add.add();
            assert_eq!(pod.link().unwrap()["link_index"], index);
            assert_eq!(pod.addresses(), ["10.1.2.40/24"]);
            pod.check(&result).ok();
            pod.del();
        }
        let two = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "a"}, {"name": "b"}]});
        let (code, text) = pod.with("prevResult", two).refuse("ADD");
        assert_eq!((code, text.contains("master")), (7, true), "{text}");
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_in_a_list_may_have_its_master_in_the_pod_and_is_checked() {
        let segment = segment("ipvlan chained in the container");
        let prev = json!({"cniVersion": "1.1.0", "interfaces": [{"name": "eth0"}],
            "ips": [{"address": "10.1.2.30/24", "interface": 0}]});
        let config = json!({"type": "ipvlan", "linkInContainer": true, "prevResult": prev});
        let pod = segment.stage.pod("c1", config);
        pod.netns.ip("link add eth0 type dummy");
        pod.netns.ip("link set eth0 up");
        let result = pod.add();
        assert_eq!(pod.link().unwrap()["link"], "eth0");
        pod.check(&result).ok();
        // Alone it takes the pod's default route.
        pod.del();
        pod.netns.ip("addr add 10.0.0.5/24 dev eth0");
        pod.netns.ip("route add default via 10.0.0.1");
        let ipam = json!({"type": "static", "addresses": [{"address": "10.1.2.40/24"}]});
        let alone = pod.with("prevResult", Value::Null).with("ipam", ipam);
        let result = alone.add();
        assert_eq!(alone.link().unwrap()["link"], "eth0");
        alone.check(&result).ok();
        alone.del();
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_del_needs_neither_master_nor_namespace() {
        let segment = segment("ipvlan DEL");
        let pod = segment.pooled("c1", "ipvlan");
        pod.add();
        pod.del_blind();
        assert_eq!(segment.stage.held(), 0);
        pod.del();
        let dead = segment.pooled("c2", "ipvlan");
        dead.add();
        dead.end();
        dead.del();
        let mut orphan = segment.pooled("c3", "ipvlan");
        orphan.add();
        segment.stage.node.ip("link del eth1");
        // No master in the configuration, no default route on the node.
        orphan.config["master"] = Value::Null;
        orphan.del();
        assert!(orphan.link().is_none());
        assert_eq!(segment.stage.held(), 0);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_and_vlan_may_change_between_the_reference_plugins_and_ours() {
        let what = "ipvlan and vlan in the middle of a change of plugins";
        let Some(peer) = Peer::reference(what) else {
            return;
        };
        let segment = segment(what);
        for plugin in ["ipvlan", "vlan"] {
            let ours = segment.pooled(plugin, plugin).with("vlanId", json!(100));
            let theirs = ours.clone().served_by(&peer.dir);
            for (adds, dels) in [(&theirs, &ours), (&ours, &theirs)] {
                let result = adds.add();
                assert_eq!(segment.stage.held(), 1);
                ours.check(&result).ok();
                dels.del();
                assert!(ours.link().is_none());
                assert_eq!(segment.stage.held(), 0);
            }
        }
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_names_that_clash_are_told_apart() {
        let segment = segment("ipvlan names");
        // Linux 6.1 makes the link on the node first, where this name is taken.
        segment.stage.node.ip("link add net1 type dummy");
        let pod = segment.pooled("c1", "ipvlan");
        pod.add();
        pod.add();
        assert_eq!(kind(&pod.link().unwrap()).0, "ipvlan");
        assert_eq!(segment.stage.held(), 1);
        pod.del();
        pod.netns.ip("link add net1 type dummy");
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 4, "{text}");
        assert_eq!(segment.stage.held(), 0);
        pod.del();
        assert_eq!(kind(&pod.link().unwrap()).0, "dummy");
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn ipvlan_killed_anywhere_is_cleaned_by_del() {
        let segment = segment("ipvlan killed");
        segment.stage.node.ip("link add net1 type dummy");
        let whole = segment
            .pooled("whole", "ipvlan")
            .with("master", json!("eth1.100"));
        let points = whole.points("ADD");
        whole.del();
        for wanted in [
            "vlan-user-noted",
            "vlan-made",
            "child-made-temporarily",
            "child-configured",
        ] {
            let is_there = points.iter().any(|point| point == wanted);
            // Newer kernels need no other name.
            assert!(
                is_there || wanted == "child-made-temporarily",
                "{wanted}: {points:?}"
            );
        }
        for (nth, name) in points.iter().enumerate() {
            let pod = segment
                .pooled(&format!("c{nth}"), "ipvlan")
                .with("master", json!("eth1.100"));
            pod.killed("ADD", nth);
            pod.del();
            assert!(pod.netns.ip("-o link").lines().count() == 1, "after {name}");
            assert_eq!(segment.node_links(), ["eth1", "net1"], "after {name}");
            assert_eq!(segment.left_over(), [""; 0], "after {name}");
            assert_eq!(segment.stage.held(), 0, "after {name}");
        }
    }
}
