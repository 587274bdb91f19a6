//! A compiled node in a kernel with VRFs, rules and FRR: the simulator says where packets go, and the kernel agrees.
//!
//! ```text
//!  near, one ── VLANs ─┐                                        ┌─ red, blue, green, gold   a host behind each VRF
//!       outside ─ host ┴─ hbn ─ node ══ VXLAN, EVPN ══ leaf ────┴─ far                      the same segment elsewhere
//! ```
//!
//! `node` is made of what the compiler says for it and of nothing else but its underlay and its trunk. Every address of
//! the table is on every host behind a VRF, so a packet that takes a wrong turn arrives, and is seen.

mod frr;
mod lab;
mod rules;

use std::fmt::Write as _;
use std::time::{Duration, Instant};

use mooring_api::Cidr;
use mooring_api::kinds::schiff::NodeNetworkConfigSpec;
use mooring_intent::trace::{End, Story, arriving, trace};

use crate::text;
use frr::Frr;
use lab::{Lab, Place};

/// An attachment of two VRFs, two of one VRF, an address that leads to two VRFs, and pods that lead to a VRF which asks
/// for routing by source. The subnet of `one` lies in a prefix of its Destination, the address in a source that leads elsewhere.
const NETWORK: &str = "
{apiVersion: v1, kind: Node, metadata: {name: a}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: red, labels: {zone: red, any: x}},
 spec: {vrf: red, vni: 100, routeTarget: '64500:100', prefixes: [10.0.0.0/8, '2001:db8:a::/48'], community: '64500:1'}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: blue, labels: {zone: blue, any: x}},
 spec: {vrf: blue, vni: 200, routeTarget: '64500:200', prefixes: [172.16.0.0/12, '2001:db8:b::/48']}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: green, labels: {zone: green}},
 spec: {vrf: green, vni: 300, routeTarget: '64500:300', prefixes: [203.0.113.0/24]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Destination, metadata: {name: gold, labels: {zone: gold}},
 spec: {vrf: gold, vni: 400, routeTarget: '64500:400', prefixes: [192.88.0.0/16], sbr: {enabled: true}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: one},
 spec: {network: {vlanID: 10, vni: 1010, ipv4: {subnet: 10.20.0.0/24}}, interfaceName: one, destinations: {matchLabels: {zone: red}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: both},
 spec: {network: {vlanID: 11, vni: 1011, ipv4: {subnet: 192.0.3.0/24}, subnet: '2001:db8:3::/64'}, interfaceName: both,
        destinations: {matchLabels: {any: x}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: Layer2Attachment, metadata: {name: third},
 spec: {network: {vlanID: 12, vni: 1012, ipv4: {subnet: 192.0.4.0/24}}, interfaceName: third, destinations: {matchLabels: {zone: green}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFAttachment, metadata: {name: v},
 spec: {network: {ipv4: {subnet: 198.51.100.0/24}, subnet: '2001:db8:9::/64'}, destinations: {matchLabels: {any: x}},
        connections: [{name: in, direction: inbound, addresses: [198.51.100.1, '2001:db8:9::1']}]}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: PodNetwork, metadata: {name: pods},
 spec: {network: {ipv4: {subnet: 198.18.0.0/19}}, destinations: {matchLabels: {zone: gold}}}}
---
{apiVersion: network.t-caas.telekom.com/v1alpha1, kind: VRFRouteConfiguration, metadata: {name: gold},
 spec: {vrf: gold, seq: 10, vni: 400, routeTarget: '64500:400', import: [], export: [], sbrPrefixes: [198.51.96.0/19]}}
";

/// What the fabric tells in each VRF: the prefixes of its Destination.
const TOLD: [(&str, &[&str]); 4] = [
    ("red", &["10.0.0.0/8", "2001:db8:a::/48"]),
    ("blue", &["172.16.0.0/12", "2001:db8:b::/48"]),
    ("green", &["203.0.113.0/24"]),
    ("gold", &["192.88.0.0/16"]),
];

/// From where, by which address, and where to.
const PACKETS: &[(Place, &str, &str)] = &[
    // A segment of two VRFs: by prefix, and nothing else passes.
    (Place::Near, "192.0.3.7", "10.1.2.3"),
    (Place::Near, "192.0.3.7", "172.16.1.1"),
    (Place::Near, "192.0.3.7", "203.0.113.5"),
    (Place::Near, "192.0.3.7", "8.8.8.8"),
    (Place::Near, "192.0.3.7", "198.51.100.1"),
    (Place::Near, "192.0.3.7", "192.0.3.9"),
    (Place::Near, "192.0.3.7", "10.20.0.7"),
    (Place::Near, "2001:db8:3::7", "2001:db8:a::1"),
    (Place::Near, "2001:db8:3::7", "2001:db8:b::1"),
    (Place::Near, "2001:db8:3::7", "2001:db8:9::1"),
    // The same segment behind another node, whose gateway we are.
    (Place::Far, "192.0.3.9", "10.1.2.3"),
    (Place::Far, "192.0.3.9", "172.16.1.1"),
    // A segment of one VRF.
    (Place::One, "10.20.0.7", "10.1.2.3"),
    (Place::One, "10.20.0.7", "192.0.3.7"),
    // An address that leads to two VRFs: by source.
    (Place::Host, "198.51.100.1", "10.1.2.3"),
    (Place::Host, "198.51.100.1", "172.16.1.1"),
    (Place::Host, "198.51.100.1", "203.0.113.5"),
    (Place::Host, "198.51.100.1", "8.8.8.8"),
    (Place::Host, "2001:db8:9::1", "2001:db8:a::1"),
    (Place::Host, "2001:db8:9::1", "2001:db8:b::1"),
    // Pods of a network of their own, and any other pod.
    (Place::Host, "198.18.1.5", "192.88.1.1"),
    (Place::Host, "10.244.0.9", "10.1.2.3"),
    (Place::Host, "10.244.0.9", "203.0.113.5"),
    (Place::Host, "10.244.0.9", "172.16.1.1"),
    (Place::Host, "10.244.0.9", "10.20.0.7"),
    // Back, out of every VRF.
    (Place::Fabric("red"), "10.1.2.3", "192.0.3.7"),
    (Place::Fabric("red"), "10.1.2.3", "10.20.0.7"),
    (Place::Fabric("red"), "10.1.2.3", "198.51.100.1"),
    (Place::Fabric("red"), "10.1.2.3", "198.51.100.9"),
    (Place::Fabric("red"), "2001:db8:a::1", "2001:db8:3::7"),
    (Place::Fabric("red"), "2001:db8:a::1", "2001:db8:9::1"),
    (Place::Fabric("blue"), "172.16.1.1", "192.0.3.7"),
    (Place::Fabric("blue"), "172.16.1.1", "198.51.100.1"),
    (Place::Fabric("blue"), "2001:db8:b::1", "2001:db8:3::7"),
    (Place::Fabric("gold"), "192.88.1.1", "198.18.1.5"),
];

fn compiled() -> NodeNetworkConfigSpec {
    let compiled = text(NETWORK);
    let errors: Vec<_> = compiled
        .findings
        .iter()
        .filter(|f| f.severity == mooring_api::Severity::Error)
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    NodeNetworkConfigSpec::clone(&compiled.nodes["a"].network)
}

/// Waits for a state, and says the last one when it does not come.
#[track_caller]
fn until<T>(what: &str, mut look: impl FnMut() -> Result<T, String>) -> T {
    let end = Instant::now() + Duration::from_mins(1);
    loop {
        match look() {
            Ok(found) => return found,
            Err(last) if Instant::now() > end => panic!("{what}: not within a minute; {last}"),
            Err(_) => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Where the simulator says that a packet goes.
fn simulated(node: &NodeNetworkConfigSpec, from: Place, source: &str, target: &str) -> Story {
    let (source, target) = (source.parse().unwrap(), target.parse().unwrap());
    match from {
        Place::Fabric(vrf) => arriving(node, vrf, source, target),
        _ => trace(node, source, target),
    }
}

/// In words that the kernel can say too: the VRFs with a route, and the end.
fn said(story: &Story) -> (Vec<String>, String) {
    let mut vrfs: Vec<String> = story.steps.iter().map(|s| s.vrf.clone()).collect();
    let end = match &story.end {
        End::Segment { vlan } => format!("segment {vlan}"),
        End::Host => "host".to_owned(),
        End::Fabric { vrf, .. } => format!("fabric {vrf}"),
        // The kernel does not say in which table it found none.
        End::Swallowed { .. } | End::NoRoute { .. } => {
            vrfs.pop();
            match story.end {
                End::NoRoute { .. } => "no route".to_owned(),
                _ => "swallowed".to_owned(),
            }
        }
        End::Loop => "loop".to_owned(),
    };
    vrfs.dedup();
    (vrfs, end)
}

#[test]
#[ignore = "kernel: uml"]
fn a_compiled_node_forwards_both_ways_as_the_simulator_says() {
    let node = compiled();
    let Some(lab) = Lab::new(&node) else { return };
    let mut differ = Vec::new();
    for (from, source, target) in PACKETS.iter().copied() {
        let story = simulated(&node, from, source, target);
        let row = format!("{from:?} {source} -> {target}");
        let tables = lab.walk(from, source, target);
        if tables != said(&story) {
            differ.push(format!("{row}: tables {tables:?}, simulator {story:?}"));
        }
        let wanted = expected(&node, &lab, from, source, target);
        let seen = lab.send(from, source, target, &wanted);
        println!("{row}: {} by {:?}, {seen:?}", tables.1, tables.0);
        if seen != wanted {
            differ.push(format!("{row}: packet {seen:?}, simulator {wanted:?}"));
        }
        if let End::Fabric {
            vrf,
            known: true,
            communities,
        } = &story.end
        {
            let there = lab.communities(vrf, &told(&node, vrf, source));
            if there != *communities {
                differ.push(format!(
                    "{row}: told with {there:?}, simulator {communities:?}"
                ));
            }
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}

/// The prefix by which a source is told. Its host may be known too, by the MAC route of its segment, which has no communities.
fn told(node: &NodeNetworkConfigSpec, vrf: &str, source: &str) -> String {
    let lines = node.fabric_vrfs[vrf].evpn_export_filter.items.iter();
    let prefixes = lines.filter_map(|line| line.matcher.prefix.as_ref()?.prefix.parse().ok());
    let source = source.parse().unwrap();
    let covering = prefixes.filter(|prefix: &Cidr| prefix.contains(source));
    covering.max_by_key(Cidr::prefix_len).unwrap().to_string()
}

/// Who sees the packet, and whether an answer comes, by the simulator in both directions.
fn expected(
    node: &NodeNetworkConfigSpec,
    lab: &Lab,
    from: Place,
    source: &str,
    target: &str,
) -> lab::Arrived {
    let there = simulated(node, from, source, target);
    let Some(at) = lab.place(&there.end, target) else {
        return lab::Arrived::default();
    };
    let known = !matches!(there.end, End::Fabric { known: false, .. });
    let back = match at {
        // Its way back is not over the node.
        Place::Outside => Some(from),
        _ => lab.place(&simulated(node, at, target, source).end, source),
    };
    lab::Arrived {
        at: vec![at],
        answered: known && back == Some(from),
    }
}

#[test]
#[ignore = "kernel: uml"]
fn routes_into_other_vrfs_survive_reloads_in_any_order() {
    let node = compiled();
    let Some(bin) = lab::frr() else { return };
    let sandbox = mooring_testkit::Sandbox::new("reloads of FRR").expect("root, with namespaces");
    let netns = sandbox.netns("node");
    let mut links = String::new();
    for (name, table) in frr::tables(&node) {
        let _ = writeln!(links, "link add {name} type vrf table {table}");
        let _ = writeln!(links, "link set {name} up");
    }
    let mut wanted = Vec::new();
    for (name, vrf) in &node.local_vrfs {
        for route in &vrf.static_routes {
            let hop = route.next_hop.clone().unwrap().vrf.unwrap();
            wanted.push(format!("{name} {} {hop}", route.prefix));
        }
    }
    wanted.sort();
    assert_eq!(
        wanted.len(),
        8,
        "two VRFs of the node, four prefixes each: {wanted:?}"
    );

    let mut daemon = Frr::new(&bin, &netns, "reload");
    daemon.start();
    let base = frr::blocks(&node, "192.0.2.1", &[]);
    let mut turned = base.clone();
    turned.reverse();
    for block in turned.iter_mut().filter(|b| b[0].starts_with("vrf ")) {
        let last = block.len() - 1;
        block[1..last].reverse();
    }
    // A last line per round: when its route is there, all lines before it were taken.
    let mark = |n: u8, blocks: &[frr::Block]| {
        let vrf = "cluster";
        format!(
            "{}vrf {vrf}\n ip route 192.0.2.{n}/32 blackhole\nexit-vrf\n",
            frr::text(blocks)
        )
    };
    let check = |daemon: &Frr, n: u8, when: &str| {
        let marked = format!("192.0.2.{n}");
        until("the last line of a reload counts", || {
            let table = netns.ip("route show table 10");
            table.contains(&marked).then_some(()).ok_or(table)
        });
        // The kernel may still have what ended daemons left; this is what the running ones have.
        until("FRR has the routes", || {
            let all = [
                "show ip route vrf all static",
                "show ipv6 route vrf all static",
            ];
            let all: String = all.iter().map(|q| daemon.ask(q)).collect();
            let lines = all.lines().filter(|line| line.starts_with("S>*"));
            let led = lines.filter(|line| line.contains("(vrf ")).count();
            (led == wanted.len()).then_some(()).ok_or(all)
        });
        until("routes into other VRFs", || {
            let there = lab::into_vrfs(&netns, &node);
            (there == wanted)
                .then_some(())
                .ok_or_else(|| format!("{when}: {there:?}, wanted {wanted:?}"))
        });
    };

    // The file before the links, then the links: a node that boots.
    daemon.apply(&mark(1, &base));
    lab::batch(&netns, &[], &links);
    check(&daemon, 1, "links after the file");
    // The same lines again, turned round.
    daemon.apply(&mark(2, &turned));
    check(&daemon, 2, "turned round");
    // Taken away, and written in the other order.
    let mut none = String::new();
    for line in base.iter().filter(|b| b[0].starts_with("vrf s-")).flatten() {
        let word = if line.starts_with(" ip") { " no" } else { "" };
        let _ = writeln!(none, "{word}{line}");
    }
    daemon.apply(&none);
    until("routes are taken away", || {
        let there = lab::into_vrfs(&netns, &node);
        there.is_empty().then_some(()).ok_or(format!("{there:?}"))
    });
    daemon.apply(&mark(3, &turned));
    check(&daemon, 3, "taken away and written turned round");
    // Started anew, over what the last ones left in the kernel.
    daemon.stop();
    daemon.start();
    daemon.apply(&mark(4, &base));
    check(&daemon, 4, "started anew");
}
