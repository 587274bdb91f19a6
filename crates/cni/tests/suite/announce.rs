//! Announcements and probes as a neighbour on the segment sees them.

use serde_json::json;

use crate::segment::{Segment, mac};

#[test]
fn a_neighbour_learns_the_new_mac_of_an_address_without_asking() {
    let Some(segment) = Segment::new("announcements of macvlan") else {
        return;
    };
    let ipam = json!({"type": "static",
        "addresses": [{"address": "10.1.2.20/24"}, {"address": "2001:db8::20/64"}]});
    for (round, key, value) in [
        ("c1", "probe", json!("off")),
        ("c2", "probe", json!("block(60)")),
    ] {
        let pod = segment.pod(round, "macvlan", "").with("ipam", ipam.clone());
        let pod = pod.with(key, value);
        // What the neighbour remembers of the pod that had the address before.
        for address in ["10.1.2.20", "2001:db8::20"] {
            segment.neighbour.ip(&format!(
                "neigh replace {address} lladdr 02:00:00:00:00:99 dev eth1 nud stale"
            ));
        }
        pod.add();
        for address in ["10.1.2.20", "2001:db8::20"] {
            segment.neighbour_learns(address, &mac(&pod));
        }
        pod.del();
    }
}

#[test]
fn an_address_that_is_in_use_is_refused_with_the_mac_that_answered() {
    let Some(segment) = Segment::new("blocking probes") else {
        return;
    };
    for (nth, address) in ["10.1.2.9/24", "2001:db8::9/64"].iter().enumerate() {
        let pod = segment.pod(&format!("c{nth}"), "macvlan", address);
        let pod = pod.with("probe", json!("block(5000)"));
        let (code, text) = pod.refuse("ADD");
        assert_eq!(code, 11, "{text}");
        assert!(text.contains(&segment.neighbour_mac()), "{text}");
        assert!(text.contains(address.split('/').next().unwrap()), "{text}");
        assert!(pod.link().is_none(), "{:?}", pod.link());
        // Without the probe nobody asks; that is the default.
        let pod = pod.with("probe", json!("async"));
        pod.add();
        pod.del();
    }
}

#[test]
fn a_refused_address_goes_back_to_its_pool() {
    let Some(segment) = Segment::new("blocking probes and a pool") else {
        return;
    };
    segment.neighbour.ip("addr add 10.1.2.2/24 dev eth1");
    let pod = segment
        .pooled("c1", "macvlan")
        .with("probe", json!("block(5000)"));
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    assert_eq!(segment.stage.held(), 0, "{text}");
}

#[test]
fn an_address_that_is_free_passes_the_probe_and_is_used() {
    let Some(segment) = Segment::new("blocking probes of free addresses") else {
        return;
    };
    let ipam = json!({"type": "static",
        "addresses": [{"address": "10.1.2.20/24"}, {"address": "2001:db8::20/64"}]});
    let pod = segment.pod("c1", "macvlan", "").with("ipam", ipam);
    let pod = pod.with("probe", json!("block(60)"));
    let result = pod.add();
    assert_eq!(pod.addresses(), ["10.1.2.20/24", "2001:db8::20/64"]);
    pod.check(&result).ok();
    pod.del();
}

#[test]
fn an_answer_is_heard_where_the_runtime_switched_ipv6_off() {
    let Some(segment) = Segment::new("blocking probes without IPv6") else {
        return;
    };
    let pod = segment.pod("c1", "macvlan", "2001:db8::9/64");
    let off = "for d in all default; do echo 1 > /proc/sys/net/ipv6/conf/$d/disable_ipv6; done";
    pod.netns.run("sh", &["-c", off]).ok();
    let pod = pod.with("probe", json!("block(5000)"));
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 11, "{text}");
    let pod = pod.with("probe", json!("off"));
    pod.add();
    assert_eq!(pod.addresses(), ["2001:db8::9/64"]);
    pod.del();
}
