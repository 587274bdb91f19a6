//! `hostReach`: the node and its macvlan pods talk, and nobody else notices.

use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::time::{Duration, Instant};

use mooring_host::Netns;
use mooring_testkit::Netns as Testns;
use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::segment::{Segment, kind, mac};
use crate::stage::Pod;

/// Sends a datagram from one namespace to an address of another, and back. Gives who the other side saw. A pod's first words
/// over IPv6 wait until nobody else has its address, and may be lost: so it is said again, for a while.
fn talk(from: &Testns, to: &Testns, address: &str) -> Result<IpAddr, String> {
    let end = Instant::now() + Duration::from_secs(15);
    loop {
        match try_to_talk(from, to, address) {
            Err(_) if Instant::now() < end => {}
            said => return said,
        }
    }
}

fn try_to_talk(from: &Testns, to: &Testns, address: &str) -> Result<IpAddr, String> {
    let bound = Duration::from_secs(2);
    let address: IpAddr = address.parse().unwrap();
    let open = |netns: &Testns, at: SocketAddr| {
        let netns = Netns::open(netns.path()).unwrap();
        let socket = netns.run(|| UdpSocket::bind(at)).unwrap();
        let socket = socket.map_err(|e| format!("bind {at}: {e}"))?;
        socket.set_read_timeout(Some(bound)).unwrap();
        Ok::<_, String>(socket)
    };
    let any: IpAddr = if address.is_ipv4() { "0.0.0.0" } else { "::" }
        .parse()
        .unwrap();
    let there = open(to, SocketAddr::new(address, 0))?;
    let here = open(from, SocketAddr::new(any, 0))?;
    let port = there.local_addr().unwrap().port();
    here.connect(SocketAddr::new(address, port))
        .map_err(|e| format!("connect: {e}"))?;
    here.send(b"ping").map_err(|e| format!("send: {e}"))?;
    let mut buffer = [0; 16];
    let (_, from) = there
        .recv_from(&mut buffer)
        .map_err(|e| format!("not heard: {e}"))?;
    there
        .send_to(b"pong", from)
        .map_err(|e| format!("answer: {e}"))?;
    here.recv(&mut buffer)
        .map_err(|e| format!("no answer: {e}"))?;
    Ok(from.ip())
}

fn node(what: &str) -> Option<Segment> {
    let segment = Segment::new(what)?;
    segment.stage.node.ip("addr add 10.1.2.5/24 dev eth1");
    segment
        .stage
        .node
        .ip("addr add 2001:db8::5/64 dev eth1 nodad");
    Some(segment)
}

const BOTH: &str = r#"{"type": "static", "addresses": [{"address": "10.1.2.20/24"}, {"address": "2001:db8::20/64"}]}"#;

#[test]
fn the_node_and_the_pod_reach_each_other_in_both_families() {
    let Some(segment) = node("macvlan hostReach") else {
        return;
    };
    let node = &segment.stage.node;
    let ipam: Value = serde_json::from_str(BOTH).unwrap();
    let plain = segment
        .pod("plain", "macvlan", "")
        .with("ipam", ipam.clone());
    plain.add();
    assert!(
        try_to_talk(node, &plain.netns, "10.1.2.20").is_err(),
        "macvlan alone does not"
    );
    plain.del();
    let pod = segment
        .pod("c1", "macvlan", "")
        .with("ipam", ipam)
        .with("hostReach", json!(true));
    pod.add();
    for (ours, theirs) in [("10.1.2.5", "10.1.2.20"), ("2001:db8::5", "2001:db8::20")] {
        let seen = talk(node, &pod.netns, theirs).unwrap();
        assert_eq!(seen.to_string(), ours);
        let seen = talk(&pod.netns, node, ours).unwrap();
        assert_eq!(seen.to_string(), theirs);
        // The rest of the segment is reached as before.
        talk(&segment.neighbour, &pod.netns, theirs).unwrap();
        talk(&segment.neighbour, node, ours).unwrap();
    }
    pod.del();
    assert_eq!(segment.node_links(), ["eth1"]);
    assert_eq!(segment.left_over(), [""; 0]);
    talk(&segment.neighbour, node, "10.1.2.5").unwrap();
}

#[test]
fn the_shim_is_quiet_on_the_segment() {
    let Some(segment) = node("macvlan shim and the segment") else {
        return;
    };
    let pod = segment
        .pod("c1", "macvlan", "10.1.2.20/24")
        .with("hostReach", json!(true));
    pod.add();
    let shim = segment.stage.node.link("moor-eth1").unwrap();
    assert_eq!(kind(&shim).0, "macvlan");
    assert_eq!(shim["ifalias"], "mooring.dev/shim");
    assert_eq!(segment.stage.node.addresses("moor-eth1"), [""; 0]);
    let nic = segment.stage.node.link("eth1").unwrap()["address"].clone();
    // Asked afresh, the node answers from its NIC alone, in both families.
    for address in ["10.1.2.5", "2001:db8::5"] {
        segment.neighbour.ip("neigh flush dev eth1");
        talk(&segment.neighbour, &segment.stage.node, address).unwrap();
        talk(&segment.stage.node, &pod.netns, "10.1.2.20").unwrap();
        let known = segment.neighbour.ip(&format!("-j neigh show {address}"));
        assert!(known.contains(nic.as_str().unwrap()), "{address}: {known}");
        assert!(
            !known.contains(shim["address"].as_str().unwrap()),
            "{address}: {known}"
        );
    }
}

#[test]
fn the_shim_goes_with_the_last_pod_and_routes_with_their_own() {
    let Some(segment) = node("macvlan shim counted") else {
        return;
    };
    let reach = |container: &str, address: &str| {
        let pod = segment.pod(container, "macvlan", address);
        pod.with("hostReach", json!(true))
    };
    let (one, two) = (reach("c1", "10.1.2.20/24"), reach("c2", "10.1.2.21/24"));
    let result = one.add();
    one.check(&result).ok();
    let shim = segment.stage.node.link("moor-eth1").unwrap();
    two.add();
    segment.stage.node.ip("route del 10.1.2.20 dev moor-eth1");
    let said = one.check(&result);
    assert!(
        said.stdout.contains("10.1.2.20") && said.code == Some(1),
        "{said:?}"
    );
    one.add();
    let routes = || segment.stage.node.ip("route show dev moor-eth1");
    assert!(routes().contains("10.1.2.20") && routes().contains("10.1.2.21"));
    one.del();
    assert!(!routes().contains("10.1.2.20") && routes().contains("10.1.2.21"));
    talk(&segment.stage.node, &two.netns, "10.1.2.21").unwrap();
    two.del();
    assert_eq!(segment.node_links(), ["eth1"]);
    // Made again it is the same to whoever was told of it.
    one.add();
    assert_eq!(
        segment.stage.node.link("moor-eth1").unwrap()["address"],
        shim["address"]
    );
    one.del();
}

#[test]
fn a_late_del_takes_nothing_from_the_pod_that_has_the_address_now() {
    let Some(segment) = node("macvlan late DEL under hostReach") else {
        return;
    };
    let reach = |container: &str| {
        let pod = segment.pod(container, "macvlan", "10.1.2.20/24");
        pod.with("hostReach", json!(true))
    };
    let (old, new) = (reach("old"), reach("new"));
    old.add();
    old.netns.ip("link del net1");
    new.add();
    old.del();
    talk(&segment.stage.node, &new.netns, "10.1.2.20").unwrap();
    let known = segment.stage.node.ip("-j neigh show dev moor-eth1");
    assert!(known.contains(&mac(&new)), "{known}");
    new.del();
    assert_eq!(segment.node_links(), ["eth1"]);
}

#[test]
fn users_that_vanished_do_not_keep_the_shim() {
    let Some(segment) = node("macvlan shim and dead namespaces") else {
        return;
    };
    let reach = |container: &str, address: &str| {
        let pod = segment.pod(container, "macvlan", address);
        pod.with("hostReach", json!(true))
    };
    let (lost, last) = (reach("lost", "10.1.2.20/24"), reach("last", "10.1.2.21/24"));
    lost.add();
    last.add();
    lost.end();
    last.del();
    assert_eq!(segment.node_links(), ["eth1"]);
    // Its own DEL comes after all.
    lost.del();
    assert_eq!(segment.left_over(), [""; 0]);
    let gone = reach("gone", "10.1.2.22/24");
    gone.add();
    last.gc(&["other"]);
    assert_eq!(segment.node_links(), ["eth1"]);
    assert_eq!(segment.left_over(), [""; 0]);
}

#[test]
fn the_nodes_addresses_may_be_named() {
    let Some(segment) = Segment::new("macvlan hostReach with addresses") else {
        return;
    };
    let node = &segment.stage.node;
    let ipam: Value = serde_json::from_str(BOTH).unwrap();
    let pod = segment
        .pod("c1", "macvlan", "")
        .with("ipam", ipam)
        .with("hostReach", json!(true));
    let (code, text) = pod.refuse("ADD");
    assert_eq!(code, 7, "{text}");
    assert!(
        text.contains("hostReach") && text.contains("10.1.2.0/24"),
        "{text}"
    );
    assert!(pod.link().is_none());
    assert_eq!(segment.left_over(), [""; 0]);
    let ours = json!({"addresses": ["10.1.2.250", "2001:db8::250"]});
    let pod = pod.with("hostReach", ours);
    pod.add();
    assert_eq!(
        talk(node, &pod.netns, "10.1.2.20").unwrap().to_string(),
        "10.1.2.250"
    );
    assert_eq!(
        talk(node, &pod.netns, "2001:db8::20").unwrap().to_string(),
        "2001:db8::250"
    );
    talk(&pod.netns, node, "10.1.2.250").unwrap();
    pod.del();
    assert_eq!(segment.node_links(), ["eth1"]);
}

#[test]
fn what_cannot_work_is_refused() {
    let Some(segment) = node("macvlan hostReach refused") else {
        return;
    };
    let base = || {
        segment
            .pod("c1", "macvlan", "10.1.2.20/24")
            .with("hostReach", json!(true))
    };
    let pod = base();
    let mut layer2 = pod.clone();
    layer2.config.as_object_mut().unwrap().remove("ipam");
    let others = [
        layer2,
        pod.clone().with("mode", json!("private")),
        pod.clone().with("linkInContainer", json!(true)),
    ];
    for other in others {
        let (code, text) = other.refuse("ADD");
        assert_eq!(code, 7, "{text}");
        assert!(text.contains("hostReach"), "{text}");
    }
    segment
        .stage
        .node
        .ip("link add moor-eth1 type veth peer name other");
    let (_, text) = pod.refuse("ADD");
    assert!(text.contains("moor-eth1"), "{text}");
    assert!(pod.link().is_none());
    pod.del();
    assert_eq!(segment.node_links(), ["eth1", "moor-eth1", "other"]);
    assert_eq!(segment.left_over(), [""; 0]);
}

#[test]
fn many_pods_at_once_share_one_shim() {
    let Some(segment) = node("macvlan hostReach at once") else {
        return;
    };
    let pods: Vec<Pod> = (0..6)
        .map(|n| {
            let pod = segment.pod(
                &format!("c{n}"),
                "macvlan",
                &format!("10.1.2.{}/24", 20 + n),
            );
            pod.with("hostReach", json!(true))
        })
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
    for _ in 0..2 {
        all("ADD");
        assert_eq!(segment.node_links(), ["eth1", "moor-eth1"]);
        for (n, pod) in pods.iter().enumerate() {
            talk(
                &segment.stage.node,
                &pod.netns,
                &format!("10.1.2.{}", 20 + n),
            )
            .unwrap();
        }
        all("DEL");
        assert_eq!(segment.node_links(), ["eth1"]);
        assert_eq!(segment.left_over(), [""; 0]);
    }
}
