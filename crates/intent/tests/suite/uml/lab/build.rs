//! The namespaces around the node and the links between them, and what the leaf's FRR is told.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use mooring_testkit::{Netns, Sandbox};

use super::super::TOLD;
use super::super::frr::{self, AS, TRUNK};
use super::{Place, batch, name};

pub(super) const VTEP: &str = "169.254.2.1";
pub(super) const LEAF_VTEP: &str = "169.254.2.2";
/// On every host behind a VRF, and outside.
pub(super) const TARGETS: [&str; 7] = [
    "10.1.2.3",
    "172.16.1.1",
    "203.0.113.5",
    "192.88.1.1",
    "8.8.8.8",
    "2001:db8:a::1",
    "2001:db8:b::1",
];
/// At the node's host: two addresses that lead somewhere, and pods.
pub(super) const AT_HOST: [&str; 4] = ["198.51.100.1", "2001:db8:9::1", "198.18.1.5", "10.244.0.9"];
/// What the cluster's VRF has beside the configuration: its pods, and everything else over the host.
pub(super) const BASE: [&str; 6] = [
    "ip route 198.51.100.1/32 100.64.0.2",
    "ip route 198.18.1.5/32 100.64.0.2",
    "ip route 10.244.0.0/24 100.64.0.2",
    "ip route 0.0.0.0/0 100.64.0.2",
    "ipv6 route 2001:db8:9::1/128 fd64::2",
    "ipv6 route ::/0 fd64::2",
];

/// A namespace that forwards, does not wait for duplicate addresses, and looks into VRFs before it takes a packet for its own.
pub(super) fn router(sandbox: &Sandbox, word: &str) -> Netns {
    let netns = plain(sandbox, word);
    let script =
        "for f in ipv4/ip_forward ipv6/conf/all/forwarding; do echo 1 >/proc/sys/net/$f; done";
    netns.run("sh", &["-c", script]).ok();
    for family in ["-4", "-6"] {
        let rules = "rule add pref 32765 lookup local\nrule del pref 0\n";
        batch(&netns, &[family], rules);
    }
    netns
}

fn plain(sandbox: &Sandbox, word: &str) -> Netns {
    let netns = sandbox.netns(word);
    let script = "cd /proc/sys/net
for f in ipv6/conf/all/accept_dad ipv6/conf/default/accept_dad ipv4/conf/all/rp_filter ipv4/conf/default/rp_filter
do echo 0 >$f; done";
    netns.run("sh", &["-c", script]).ok();
    netns
}

fn host_bits(address: &str) -> u8 {
    if address.contains(':') { 128 } else { 32 }
}

/// A link that is up, with addresses and routes, and addresses of the loopback.
fn live(netns: &Netns, link: &str, own: &[&str], routes: &[&str], more: &[&str]) {
    let mut text = format!("link set {link} up\n");
    for address in own {
        let _ = writeln!(text, "addr add {address} dev {link}");
    }
    for address in more {
        let _ = writeln!(text, "addr add {address}/{} dev lo", host_bits(address));
    }
    for route in routes {
        let _ = writeln!(text, "route add {route}");
    }
    batch(netns, &[], &text);
}

pub(super) fn underlay(node: &Netns, leaf: &Netns) {
    let peer = name(leaf);
    let text = format!("link add fab type veth peer name fab netns {peer}\n");
    batch(node, &[], &text);
    for (netns, own, vtep) in [
        (node, "169.254.1.1", VTEP),
        (leaf, "169.254.1.2", LEAF_VTEP),
    ] {
        let text =
            format!("addr add {own}/30 dev fab\nlink set fab up\naddr add {vtep}/32 dev lo\n");
        batch(netns, &[], &text);
    }
    // Nothing of a VRF may ever take it.
    batch(node, &[], "route add 0.0.0.0/0 via 169.254.1.2\n");
}

/// The trunk, what is at its other end, and what is behind that.
pub(super) fn host(sandbox: &Sandbox, node: &Netns, places: &mut BTreeMap<Place, Netns>) {
    let host = plain(sandbox, "host");
    let outside = plain(sandbox, "outside");
    let peer = name(&host);
    let text = format!(
        "link add cluster type vrf table 10\nlink set cluster up\n\
         link add {TRUNK} type veth peer name {TRUNK} netns {peer}\n\
         link set {TRUNK} master cluster up\n\
         addr add 100.64.0.1/30 dev {TRUNK}\naddr add fd64::1/64 dev {TRUNK}\n"
    );
    batch(node, &[], &text);
    // By its IPv6 next hop, as on real nodes: a rule by source would take ARP requests of that source too.
    let own = ["100.64.0.2/30", "fd64::2/64"];
    let routes = ["::/0 via fd64::1", "0.0.0.0/0 via inet6 fd64::1 dev hbn"];
    live(&host, TRUNK, &own, &routes, &AT_HOST);
    let peer = name(&outside);
    let text = format!(
        "link add out type veth peer name eth0 netns {peer}\nlink set out up\n\
         addr add 100.66.0.1/30 dev out\naddr add fd66::1/64 dev out\n\
         rule add pref 100 iif {TRUNK} lookup 77\nroute add 0.0.0.0/0 via 100.66.0.2 table 77\n"
    );
    batch(&host, &[], &text);
    // It has addresses of pods of its own, and forwards what comes from them by the trunk.
    let script = "cd /proc/sys/net/ipv4; echo 1 >ip_forward; echo 1 >conf/all/accept_local";
    host.run("sh", &["-c", script]).ok();
    let own = ["100.66.0.2/30"];
    live(
        &outside,
        "eth0",
        &own,
        &["0.0.0.0/0 via 100.66.0.1"],
        &TARGETS,
    );
    places.insert(Place::Host, host);
    places.insert(Place::Outside, outside);
}

/// VRFs on the leaf, and a host behind each.
pub(super) fn fabric(
    sandbox: &Sandbox,
    leaf: &Netns,
    vnis: &BTreeMap<String, u32>,
    places: &mut BTreeMap<Place, Netns>,
) {
    for (vrf, _) in TOLD {
        let behind = plain(sandbox, vrf);
        let (vni, peer) = (vnis[vrf], name(&behind));
        let mut text = format!("link add {vrf} type vrf table {vni}\nlink set {vrf} up\n");
        text += &frr::routed(vni, vrf, LEAF_VTEP);
        let _ = write!(
            text,
            "link add h-{vrf} type veth peer name eth0 netns {peer}\n\
             link set h-{vrf} master {vrf} up\n\
             addr add 100.65.0.1/30 dev h-{vrf}\naddr add fd65::1/64 dev h-{vrf}\n"
        );
        batch(leaf, &[], &text);
        let own = ["100.65.0.2/30", "fd65::2/64"];
        let routes = ["::/0 via fd65::1", "0.0.0.0/0 via 100.65.0.1"];
        live(&behind, "eth0", &own, &routes, &TARGETS);
        places.insert(Place::Fabric(vrf), behind);
    }
}

/// Workloads: two behind the trunk, one behind the leaf.
pub(super) fn segments(sandbox: &Sandbox, leaf: &Netns, places: &mut BTreeMap<Place, Netns>) {
    let host = places[&Place::Host].clone();
    for (place, word, vlan, own, routes) in [
        (
            Place::One,
            "one",
            10,
            &["10.20.0.7/24"][..],
            &["0.0.0.0/0 via 10.20.0.1"][..],
        ),
        (
            Place::Near,
            "near",
            11,
            &["192.0.3.7/24", "2001:db8:3::7/64"],
            &["0.0.0.0/0 via 192.0.3.1", "::/0 via 2001:db8:3::1"],
        ),
    ] {
        let netns = plain(sandbox, word);
        let peer = name(&netns);
        let text = format!(
            "link add link {TRUNK} name eth0 type vlan id {vlan}\nlink set eth0 netns {peer}\n"
        );
        batch(&host, &[], &text);
        live(&netns, "eth0", own, routes, &[]);
        places.insert(place, netns);
    }
    let far = plain(sandbox, "far");
    let peer = name(&far);
    let mut text = "link add l2.11 type bridge\n".to_owned();
    text += &frr::tunnel(1011, "l2.11", LEAF_VTEP);
    let _ = write!(
        text,
        "link add far type veth peer name eth0 netns {peer}\n\
         link set far master l2.11 up\nlink set l2.11 up\n"
    );
    batch(leaf, &[], &text);
    live(
        &far,
        "eth0",
        &["192.0.3.9/24"],
        &["0.0.0.0/0 via 192.0.3.1"],
        &[],
    );
    places.insert(Place::Far, far);
}

/// The instance that carries the others, with its one neighbour. Next hops are not shared between routes: `ip -6 route get`
/// names the table of any route that has the next hop.
pub(super) fn underlay_text(own: u32, peer: &str, other: u32, vtep: &str) -> String {
    format!(
        "frr defaults datacenter
no zebra nexthop kernel enable
router bgp {own}
 bgp router-id {vtep}
 no bgp default ipv4-unicast
 neighbor {peer} remote-as {other}
 neighbor {peer} timers connect 1
 address-family ipv4 unicast
  neighbor {peer} activate
  network {vtep}/32
 exit-address-family
 address-family l2vpn evpn
  neighbor {peer} activate
  advertise-all-vni
 exit-address-family
exit
"
    )
}

pub(super) fn leaf_text(vnis: &BTreeMap<String, u32>) -> String {
    let mut text = underlay_text(AS + 1, "169.254.1.1", AS, LEAF_VTEP);
    for (vrf, told) in TOLD {
        let vni = vnis[vrf];
        let _ = writeln!(text, "vrf {vrf}\n vni {vni}");
        for prefix in told {
            let (ip, via) = if prefix.contains(':') {
                ("ipv6", "fd65::2")
            } else {
                ("ip", "100.65.0.2")
            };
            let _ = writeln!(text, " {ip} route {prefix} {via}");
        }
        let _ = write!(
            text,
            "exit-vrf
router bgp {} vrf {vrf}
 bgp router-id {LEAF_VTEP}
 address-family ipv4 unicast
  redistribute static
 exit-address-family
 address-family ipv6 unicast
  redistribute static
 exit-address-family
 address-family l2vpn evpn
  route-target import 64500:{vni}
  route-target export 64500:{vni}
  advertise ipv4 unicast
  advertise ipv6 unicast
 exit-address-family
exit
",
            AS + 1
        );
    }
    text
}
