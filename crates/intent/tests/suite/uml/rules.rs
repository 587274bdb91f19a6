//! What a rule sees of a packet that came in by a port of a VRF. It is why no gateway of several VRFs is in the cluster's.

use mooring_testkit::{Netns, Sandbox};

use super::frr::LAST;
use super::lab::batch;

/// A trunk and a segment in the cluster's VRF, and two ways out.
const NODE: &str = "
link add cluster type vrf table 10
link set cluster up
link add hbn type veth peer name host
link set hbn master cluster up
addr add 100.64.0.1/30 dev hbn
link add l2.99 type bridge
link set l2.99 master cluster up
addr add 192.0.9.1/24 dev l2.99
addr add 2001:db8:99::1/64 dev l2.99
link add by-vrf type dummy
link set by-vrf addrgenmode none up
link add by-rule type dummy
link set by-rule addrgenmode none up
route add 8.8.8.8/32 dev by-vrf table 10
route add 8.8.8.8/32 dev by-rule table 52
route add 2001:db8:8::8/128 dev by-vrf table 10
route add 2001:db8:8::8/128 dev by-rule table 52
";

fn sent(node: &Netns, link: &str) -> u64 {
    let file = format!("/sys/class/net/{link}/statistics/tx_packets");
    let said = node.run("cat", &[file]);
    said.ok().trim().parse().unwrap()
}

/// Which way a packet of the segment goes: it is sent, and seen on a link.
fn way(node: &Netns, workload: &Netns, ping: &std::path::Path, target: &str) -> &'static str {
    let before = ["by-vrf", "by-rule"].map(|link| sent(node, link));
    // Nobody answers; it is enough that it was sent.
    let args = ["-n", "-c", "1", "-W", "0.5", target];
    workload.run(ping, &args);
    let after = ["by-vrf", "by-rule"].map(|link| sent(node, link));
    match (after[0] > before[0], after[1] > before[1]) {
        (true, false) => "by-vrf",
        (false, true) => "by-rule",
        (false, false) => "nowhere",
        (true, true) => panic!("{target} left twice"),
    }
}

#[test]
#[ignore = "kernel: uml"]
fn a_rule_for_the_trunk_does_not_see_segments_and_a_table_without_an_end_is_passed_by() {
    let Some(ping) = mooring_testkit::component("iputils-ping", "packets in a VRF") else {
        return;
    };
    let ping = ping.join("bin/ping");
    let sandbox = Sandbox::new("rules and VRFs").expect("root, with namespaces");
    let (node, workload) = (sandbox.netns("node"), sandbox.netns("workload"));
    let script = "cd /proc/sys/net; echo 1 >ipv4/ip_forward; echo 1 >ipv6/conf/all/forwarding
for f in ipv6/conf/all/accept_dad ipv6/conf/default/accept_dad; do echo 0 >$f; done";
    for netns in [&node, &workload] {
        netns.run("sh", &["-c", script]).ok();
    }
    batch(&node, &[], NODE);
    for family in ["-4", "-6"] {
        batch(
            &node,
            &[family],
            "rule add pref 32765 lookup local\nrule del pref 0\n",
        );
    }
    let peer = workload.path();
    let peer = peer.rsplit('/').next().unwrap();
    let plug = format!(
        "link add port type veth peer name eth0 netns {peer}\nlink set port master l2.99 up\n"
    );
    batch(&node, &[], &plug);
    let own = "link set eth0 up\naddr add 192.0.9.7/24 dev eth0\naddr add 2001:db8:99::7/64 dev eth0\n\
               route add default via 192.0.9.1\nroute add ::/0 via 2001:db8:99::1\n";
    batch(&workload, &[], own);
    let (v4, v6) = ("8.8.8.8", "2001:db8:8::8");

    assert_eq!(way(&node, &workload, &ping, v4), "by-vrf");
    assert_eq!(way(&node, &workload, &ping, v6), "by-vrf");
    // The rules of today's agents: IPv4 by the trunk, IPv6 by the VRF.
    let rule = |way: &str, family: &str, from: &str, iif: &str| {
        let line = format!("rule {way} pref 100 from {from} iif {iif} lookup 52\n");
        batch(&node, &[family], &line);
    };
    rule("add", "-4", "192.0.9.0/24", "hbn");
    rule("add", "-6", "2001:db8:99::/64", "cluster");
    assert_eq!(
        way(&node, &workload, &ping, v4),
        "by-vrf",
        "IPv4 passes the rule by"
    );
    assert_eq!(way(&node, &workload, &ping, v6), "by-rule", "IPv6 does not");
    // With the VRF in both, both are caught: a kernel from 6.15 on shows an IPv4 rule the VRF too.
    rule("add", "-4", "192.0.9.0/24", "cluster");
    assert_eq!(way(&node, &workload, &ping, v4), "by-rule");
    rule("del", "-4", "192.0.9.0/24", "cluster");
    rule("add", "-4", "192.0.9.0/24", "l2.99");
    assert_eq!(
        way(&node, &workload, &ping, v4),
        "by-rule",
        "by its own port"
    );
    // A table without a route is passed by, and the next one asked; one with an end is not.
    batch(&node, &[], "route add 9.9.9.9/32 dev by-vrf table 10\n");
    assert_eq!(way(&node, &workload, &ping, "9.9.9.9"), "by-vrf");
    let end = format!("route add unreachable default metric {LAST} table 52\n");
    batch(&node, &[], &end);
    assert_eq!(way(&node, &workload, &ping, "9.9.9.9"), "nowhere");
    assert_eq!(way(&node, &workload, &ping, v4), "by-rule");
}

#[test]
#[ignore = "kernel: uml"]
fn a_rule_by_source_takes_arp_requests_of_that_source_along() {
    let Some(ping) = mooring_testkit::component("iputils-ping", "packets in a VRF") else {
        return;
    };
    let sandbox = Sandbox::new("rules and ARP").expect("root, with namespaces");
    let (node, host) = (sandbox.netns("node"), sandbox.netns("host"));
    batch(&node, &[], NODE);
    // The default route of the cluster, which local VRFs take too: a table without a route would be passed by.
    let rules = "rule add pref 32765 lookup local\nrule del pref 0\n\
                 rule add pref 100 from 198.51.100.1 iif hbn lookup 52\n\
                 route add 0.0.0.0/0 dev by-rule table 52\n";
    batch(&node, &[], rules);
    let peer = host.path();
    let peer = peer.rsplit('/').next().unwrap();
    batch(&node, &[], &format!("link set host netns {peer}\n"));
    let own =
        "link set host up\naddr add 100.64.0.2/30 dev host\naddr add 198.51.100.1/32 dev lo\n";
    batch(&host, &[], own);
    let asked = || {
        let args = [
            "-n",
            "-c",
            "1",
            "-W",
            "0.5",
            "-I",
            "198.51.100.1",
            "100.64.0.1",
        ];
        host.run(ping.join("bin/ping"), &args);
        let known = host.ip("neigh show 100.64.0.1").contains("lladdr");
        host.ip("neigh flush all");
        known
    };
    assert!(!asked(), "the sender of the request is steered away");
    let script = "echo 2 >/proc/sys/net/ipv4/conf/all/arp_announce";
    host.run("sh", &["-c", script]).ok();
    assert!(asked(), "an address of the link asks");
}
