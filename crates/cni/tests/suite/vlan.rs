//! vlan, and the sub-interfaces `<nic>.<vlan>` that other plugins take as their master.

use serde_json::json;

use crate::segment::Segment;

#[test]
fn bad_values_are_named() {
    let Some(segment) = Segment::new("vlan refuses") else {
        return;
    };
    let bad = [
        ("vlanId", json!(4095)),
        ("vlanId", json!(-1)),
        ("master", json!("")),
        ("master", json!("eth9")),
        ("mtu", json!(9000)),
    ];
    for (nth, (field, value)) in bad.into_iter().enumerate() {
        let pod = segment
            .pooled(&format!("c{nth}"), "vlan")
            .with(field, value);
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 7, "{field}: {text}");
        assert!(text.contains(field), "{field}: {text}");
        assert_eq!(segment.stage.held(), 0, "{field}");
        // What was never good is deleted all the same.
        pod.del();
    }
    let config = json!({"type": "vlan", "master": "eth1", "vlanId": 100});
    let (code, text) = segment.stage.pod("c9", config).refuse("ADD");
    assert_eq!((code, text.contains("ipam")), (7, true), "{text}");
}

mod uml {
    use serde_json::json;

    use crate::conformance::bed::Shown as _;
    use crate::segment::{Segment, kind};
    use crate::stage::Pod;

    fn segment(what: &str) -> Segment {
        Segment::new(what).expect("root, with namespaces")
    }

    fn shared(segment: &Segment, container: &str, master: &str) -> Pod {
        segment
            .pooled(container, "macvlan")
            .with("master", json!(master))
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_gives_a_pod_a_vlan_of_the_master() {
        let segment = segment("vlan");
        let pod = segment
            .pod("c1", "vlan", "10.1.2.20/24")
            .with("vlanId", json!(100));
        let pod = pod.with("mtu", json!(1400));
        let result = pod.add();
        let link = pod.link().unwrap();
        assert_eq!(kind(&link).0, "vlan");
        assert_eq!(
            (&kind(&link).1["id"], &link["mtu"]),
            (&json!(100), &json!(1400))
        );
        assert_eq!(pod.addresses(), ["10.1.2.20/24"]);
        pod.check(&result).ok();
        let other = pod.clone().with("vlanId", json!(101));
        assert_ne!(other.check(&result).code, Some(0));
        // A VLAN of one NIC is there once.
        let second = segment
            .pod("c2", "vlan", "10.1.2.21/24")
            .with("vlanId", json!(100));
        let (_, text) = second.refuse("ADD");
        assert!(text.contains("VLAN 100"), "{text}");
        assert!(second.link().is_none());
        second.del();
        pod.add();
        pod.del();
        pod.del();
        assert!(pod.link().is_none());
        second.add();
        segment.stage.node.ip("link del eth1");
        second.del();
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_zero_is_a_priority_tag() {
        let segment = segment("vlan 0");
        let pod = segment
            .pod("c1", "vlan", "10.1.2.20/24")
            .with("vlanId", json!(0));
        pod.add();
        assert_eq!(kind(&pod.link().unwrap()).1["id"], 0);
        pod.del();
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_are_made_shared_and_removed_with_the_last_user() {
        let segment = segment("sub-interfaces");
        let one = shared(&segment, "c1", "eth1.100");
        one.add();
        let made = segment.stage.node.link("eth1.100").unwrap();
        assert_eq!((kind(&made).0, &kind(&made).1["id"]), ("vlan", &json!(100)));
        assert_eq!(made["ifalias"], "mooring.dev/vlan");
        assert!(made["flags"].to_string().contains("\"UP\""), "{made}");
        let two = segment
            .pooled("c2", "ipvlan")
            .with("master", json!("eth1.200"));
        segment.stage.node.ip("link set eth1.100 down");
        let three = shared(&segment, "c3", "eth1.100");
        two.add();
        three.add();
        assert_eq!(segment.node_links(), ["eth1", "eth1.100", "eth1.200"]);
        let again = segment.stage.node.link("eth1.100").unwrap();
        assert!(again["flags"].to_string().contains("\"UP\""), "{again}");
        one.del();
        one.del();
        assert_eq!(segment.node_links(), ["eth1", "eth1.100", "eth1.200"]);
        assert!(three.link().is_some());
        three.del_blind();
        two.del();
        assert_eq!(segment.node_links(), ["eth1"]);
        assert_eq!(segment.left_over(), [""; 0]);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_of_others_stay() {
        let segment = segment("sub-interfaces of others");
        segment
            .stage
            .node
            .ip("link add link eth1 name eth1.100 type vlan id 100");
        segment.stage.node.ip("link set eth1.100 up");
        let pod = shared(&segment, "c1", "eth1.100");
        pod.add();
        assert_eq!(segment.left_over(), [""; 0]);
        pod.del();
        assert_eq!(segment.node_links(), ["eth1", "eth1.100"]);
        // One of ours that an administrator took over stays too.
        let pod = shared(&segment, "c2", "eth1.200");
        pod.add();
        segment.stage.node.ip("link set eth1.200 alias kept");
        pod.del();
        assert_eq!(segment.node_links(), ["eth1", "eth1.100", "eth1.200"]);
        assert_eq!(segment.left_over(), [""; 0]);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_do_not_wait_for_users_that_vanished() {
        let segment = segment("sub-interfaces of the dead");
        let (lost, last) = (
            shared(&segment, "c1", "eth1.100"),
            shared(&segment, "c2", "eth1.100"),
        );
        lost.add();
        last.add();
        lost.end();
        last.del();
        assert_eq!(segment.node_links(), ["eth1"]);
        lost.del();
        assert_eq!(segment.left_over(), [""; 0]);
        let gone = shared(&segment, "c3", "eth1.100");
        gone.add();
        last.gc(&["c3"]);
        assert_eq!(segment.node_links(), ["eth1", "eth1.100"]);
        // Another network's GC says nothing about this one.
        last.clone().with("name", json!("other")).gc(&[]);
        assert_eq!(segment.node_links(), ["eth1", "eth1.100"]);
        last.gc(&["c2"]);
        assert_eq!(segment.node_links(), ["eth1"]);
        assert_eq!(segment.left_over(), [""; 0]);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_follow_an_edited_network() {
        let segment = segment("sub-interfaces of an edited network");
        let pod = shared(&segment, "c1", "eth1.100");
        pod.add();
        // The network was edited; the DEL comes with its new text.
        let pod = pod.with("master", json!("eth1.200"));
        pod.del();
        assert_eq!(segment.node_links(), ["eth1"]);
        segment.stage.node.ip("link set eth1 down");
        let (code, text) = pod.refuse("ADD");
        assert_eq!((code, text.contains("down")), (11, true), "{text}");
        assert_eq!(segment.left_over(), [""; 0]);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_survive_a_kill_anywhere() {
        let segment = segment("sub-interfaces killed");
        let whole = shared(&segment, "whole", "eth1.100");
        let points = whole.points("ADD");
        let removal = whole.points("DEL");
        for (nth, name) in points.iter().enumerate() {
            let pod = shared(&segment, &format!("a{nth}"), "eth1.100");
            pod.killed("ADD", nth);
            pod.add();
            assert_eq!(segment.node_links(), ["eth1", "eth1.100"], "after {name}");
            pod.del();
            assert_eq!(segment.node_links(), ["eth1"], "after {name}");
            assert_eq!(segment.left_over(), [""; 0], "after {name}");
        }
        assert!(
            removal.iter().any(|point| point == "vlan-removed"),
            "{removal:?}"
        );
        for (nth, name) in removal.iter().enumerate() {
            let pod = shared(&segment, &format!("d{nth}"), "eth1.100");
            pod.add();
            pod.killed("DEL", nth);
            pod.del();
            assert_eq!(segment.node_links(), ["eth1"], "after {name}");
            assert_eq!(segment.left_over(), [""; 0], "after {name}");
        }
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn vlan_masters_of_many_pods_at_once_are_made_once() {
        let segment = segment("sub-interfaces at once");
        let pods: Vec<Pod> = (0..5)
            .map(|n| shared(&segment, &format!("c{n}"), "eth1.100"))
            .collect();
        let all = |verb: &str| {
            std::thread::scope(|scope| {
                let call = |pod| scope.spawn(move || Pod::call(pod, verb));
                let calls: Vec<_> = pods.iter().map(call).collect();
                for call in calls {
                    call.join().unwrap().ok();
                }
            });
        };
        for _ in 0..3 {
            all("ADD");
            assert_eq!(segment.node_links(), ["eth1", "eth1.100"]);
            assert_eq!(segment.stage.held(), 5);
            all("DEL");
            assert_eq!(segment.node_links(), ["eth1"]);
            assert_eq!(segment.left_over(), [""; 0]);
        }
    }
}
