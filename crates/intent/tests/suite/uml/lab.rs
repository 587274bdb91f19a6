//! The lab around one node: a leaf of the fabric with a host behind every VRF, the node's own host, and workloads.
//!
//! Easy to get wrong: ICMP errors are rationed by the kernel, so "nobody saw it" is read from counters of echo requests,
//! never from what `ping` was told.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::PathBuf;

use mooring_api::kinds::schiff::NodeNetworkConfigSpec;
use mooring_intent::trace::End;
use mooring_testkit::{Netns, Sandbox};
use serde_json::Value;

use super::frr::{self, AS, Frr, TRUNK};
use super::{TOLD, until};

const VTEP: &str = "169.254.2.1";
const LEAF_VTEP: &str = "169.254.2.2";
/// On every host behind a VRF, and outside.
const TARGETS: [&str; 7] = [
    "10.1.2.3",
    "172.16.1.1",
    "203.0.113.5",
    "192.88.1.1",
    "8.8.8.8",
    "2001:db8:a::1",
    "2001:db8:b::1",
];
/// At the node's host: two addresses that lead somewhere, and pods.
const AT_HOST: [&str; 4] = ["198.51.100.1", "2001:db8:9::1", "198.51.97.5", "10.244.0.9"];
/// What the cluster's VRF has beside the configuration: its pods, and everything else over the host.
const BASE: [&str; 6] = [
    "ip route 198.51.100.1/32 100.64.0.2",
    "ip route 198.51.97.5/32 100.64.0.2",
    "ip route 10.244.0.0/24 100.64.0.2",
    "ip route 0.0.0.0/0 100.64.0.2",
    "ipv6 route 2001:db8:9::1/128 fd64::2",
    "ipv6 route ::/0 fd64::2",
];

/// Who sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Place {
    /// In the segment of two VRFs, on this node.
    Near,
    /// In the same, behind the leaf.
    Far,
    /// In the segment of one VRF.
    One,
    Host,
    /// Behind the host.
    Outside,
    /// Behind a VRF of the fabric.
    Fabric(&'static str),
}

/// What became of a packet.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Arrived {
    /// Who saw it.
    pub at: Vec<Place>,
    /// Whether an answer came.
    pub answered: bool,
}

/// Everything, running.
pub struct Lab {
    node: Netns,
    leaf: Netns,
    places: BTreeMap<Place, Netns>,
    vnis: BTreeMap<String, u32>,
    tables: BTreeMap<u32, String>,
    vlans: BTreeMap<String, String>,
    ping: PathBuf,
    seen: RefCell<BTreeMap<Place, u64>>,
    leaf_frr: Frr,
    _node_frr: Frr,
    _sandbox: Sandbox,
}

/// The programs of FRR, or a counted skip.
pub fn frr() -> Option<PathBuf> {
    Some(mooring_testkit::component("frr", "a compiled node in a kernel")?.join("bin"))
}

/// Lines for `ip`, after options.
#[track_caller]
pub fn batch(netns: &Netns, options: &[&str], lines: &str) {
    let args = [options, &["-batch", "-"]].concat();
    let said = netns.run_with("ip", &args, &[], lines);
    assert_eq!(said.code, Some(0), "{}\n{lines}", said.stderr);
}

/// Routes of local VRFs that lead into other ones: VRF, prefix, VRF.
pub fn into_vrfs(netns: &Netns, spec: &NodeNetworkConfigSpec) -> Vec<String> {
    let tables = frr::tables(spec);
    let mut found = Vec::new();
    for name in spec.local_vrfs.keys() {
        for family in ["-4", "-6"] {
            // An empty table of a VRF that is not there yet is an error, and as good as none.
            let table = tables[name].to_string();
            let said = netns.run("ip", &[family, "route", "show", "table", &table]);
            for line in said.stdout.lines() {
                let prefix = line.split_whitespace().next().unwrap_or_default();
                if let Some(dev) = after(line, "dev").filter(|dev| tables.contains_key(*dev)) {
                    found.push(format!("{name} {prefix} {dev}"));
                }
            }
        }
    }
    found.sort();
    found
}

fn after<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let mut words = line.split_whitespace();
    words.find(|w| *w == word)?;
    words.next()
}

/// A namespace that forwards, does not wait for duplicate addresses, and looks into VRFs before it takes a packet for its own.
fn router(sandbox: &Sandbox, word: &str) -> Netns {
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

fn name(netns: &Netns) -> String {
    netns.path().rsplit('/').next().unwrap().to_owned()
}

fn host_bits(address: &str) -> u8 {
    if address.contains(':') { 128 } else { 32 }
}

/// Addresses of the loopback, a pair of default routes, and a link that is up.
fn live(netns: &Netns, link: &str, own: &[&str], via: [&str; 2], more: &[&str]) {
    let mut text = format!("link set {link} up\n");
    for address in own {
        let _ = writeln!(text, "addr add {address} dev {link}");
    }
    for address in more {
        let _ = writeln!(text, "addr add {address}/{} dev lo", host_bits(address));
    }
    for via in via.iter().filter(|via| !via.is_empty()) {
        let kind = if via.contains(':') { "inet6" } else { "inet" };
        let all = if own.iter().any(|a| a.contains(':')) && via.contains(':') {
            "::/0"
        } else {
            "0.0.0.0/0"
        };
        let _ = writeln!(text, "route add {all} via {kind} {via} dev {link}");
    }
    batch(netns, &[], &text);
}

impl Lab {
    /// Builds it and waits until both sides of the fabric know each other's routes.
    pub fn new(spec: &NodeNetworkConfigSpec) -> Option<Self> {
        let bin = frr()?;
        let ping = mooring_testkit::component("iputils-ping", "packets in a lab")?.join("bin/ping");
        let sandbox = Sandbox::new("a compiled node").expect("root, with namespaces");
        let (node, leaf) = (router(&sandbox, "node"), router(&sandbox, "leaf"));
        let mut places = BTreeMap::new();
        Self::underlay(&node, &leaf);
        Self::host(&sandbox, &node, &mut places);
        batch(&node, &[], &frr::links(spec, VTEP));
        for (family, rules) in ["-4", "-6"].iter().zip(frr::rules(spec)) {
            batch(&node, &[family], &rules);
        }
        let vnis = spec.fabric_vrfs.iter();
        let vnis: BTreeMap<String, u32> = vnis.map(|(n, f)| (n.clone(), f.vni)).collect();
        Self::fabric(&sandbox, &leaf, &vnis, &mut places);
        Self::segments(&sandbox, &leaf, &mut places);

        let mut node_frr = Frr::new(&bin, &node, "node");
        let mut leaf_frr = Frr::new(&bin, &leaf, "leaf");
        node_frr.start();
        leaf_frr.start();
        let mut text = underlay_text(AS, "169.254.1.2", AS + 1, VTEP);
        text += &frr::text(&frr::blocks(spec, VTEP, &BASE));
        node_frr.apply(&text);
        leaf_frr.apply(&leaf_text(&vnis));
        let tables = frr::tables(spec).into_iter().map(|(n, t)| (t, n));
        let gateways = spec.layer2s.values();
        let vlans =
            gateways.filter_map(|l| Some((format!("l2.{}", l.vlan), l.irb.as_ref()?.vrf.clone())));
        let lab = Self {
            tables: tables.collect(),
            vlans: vlans.collect(),
            node,
            leaf,
            places,
            vnis,
            ping,
            seen: RefCell::default(),
            leaf_frr,
            _node_frr: node_frr,
            _sandbox: sandbox,
        };
        lab.wait(spec);
        lab.seen.replace(lab.echoes());
        Some(lab)
    }

    fn underlay(node: &Netns, leaf: &Netns) {
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
    fn host(sandbox: &Sandbox, node: &Netns, places: &mut BTreeMap<Place, Netns>) {
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
        live(
            &host,
            TRUNK,
            &["100.64.0.2/30", "fd64::2/64"],
            ["", "fd64::1"],
            &AT_HOST,
        );
        batch(
            &host,
            &[],
            &format!("route add 0.0.0.0/0 via inet6 fd64::1 dev {TRUNK}\n"),
        );
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
        live(
            &outside,
            "eth0",
            &["100.66.0.2/30"],
            ["100.66.0.1", ""],
            &TARGETS,
        );
        places.insert(Place::Host, host);
        places.insert(Place::Outside, outside);
    }

    /// VRFs on the leaf, and a host behind each.
    fn fabric(
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
            live(&behind, "eth0", &own, ["", "fd65::1"], &TARGETS);
            batch(&behind, &[], "route add 0.0.0.0/0 via 100.65.0.1\n");
            places.insert(Place::Fabric(vrf), behind);
        }
    }

    /// Workloads: two behind the trunk, one behind the leaf.
    fn segments(sandbox: &Sandbox, leaf: &Netns, places: &mut BTreeMap<Place, Netns>) {
        let host = places[&Place::Host].clone();
        for (place, word, vlan, own) in [
            (Place::One, "one", 10, &["10.20.0.7/24"][..]),
            (
                Place::Near,
                "near",
                11,
                &["192.0.3.7/24", "2001:db8:3::7/64"],
            ),
        ] {
            let netns = plain(sandbox, word);
            let peer = name(&netns);
            let text = format!(
                "link add link {TRUNK} name eth0 type vlan id {vlan}\nlink set eth0 netns {peer}\n"
            );
            batch(&host, &[], &text);
            places.insert(place, netns.clone());
            let (via, via6) = if vlan == 10 {
                ("10.20.0.1", "")
            } else {
                ("192.0.3.1", "2001:db8:3::1")
            };
            live(&netns, "eth0", own, ["", via6], &[]);
            batch(&netns, &[], &format!("route add 0.0.0.0/0 via {via}\n"));
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
        live(&far, "eth0", &["192.0.3.9/24"], ["192.0.3.1", ""], &[]);
        places.insert(Place::Far, far);
    }

    fn wait(&self, spec: &NodeNetworkConfigSpec) {
        let both = |netns: &Netns, table: u32| -> String {
            let shown = ["-4", "-6"].map(|family| {
                let words = [family, "route", "show", "table", &table.to_string()];
                netns.run("ip", &words).stdout
            });
            shown.concat()
        };
        let has = |table: &str, prefix: &str| {
            let prefix = prefix.trim_end_matches("/32").trim_end_matches("/128");
            table.lines().any(|line| {
                let mut words = line.split_whitespace();
                words.any(|word| word == prefix)
            })
        };
        for (vrf, told) in TOLD {
            let table = frr::tables(spec)[vrf];
            until("the node learns what the fabric tells", || {
                let there = both(&self.node, table);
                let all = told.iter().all(|prefix| has(&there, prefix));
                all.then_some(()).ok_or(format!("{vrf}: {there}"))
            });
            // What the node has and its filter names by one prefix; ranges are pods, which come and go.
            let lines = &spec.fabric_vrfs[vrf].evpn_export_filter.items;
            let exact: Vec<&str> = lines
                .iter()
                .filter_map(|line| line.matcher.prefix.as_ref())
                .filter(|m| m.le.is_none() && m.ge.is_none())
                .map(|m| m.prefix.as_str())
                .collect();
            until("the fabric learns what the node tells", || {
                let there = both(&self.leaf, self.vnis[vrf]);
                let lacks: Vec<_> = exact.iter().filter(|p| !has(&there, p)).collect();
                let none = lacks.is_empty();
                none.then_some(())
                    .ok_or(format!("{vrf} lacks {lacks:?}: {there}"))
            });
        }
    }

    /// Where the tables of the node lead a packet, one after the other; also where the leaf hands it back.
    pub fn walk(&self, from: Place, source: &str, target: &str) -> (Vec<String>, String) {
        let mut input = match from {
            Place::Near | Place::Far => Some("l2.11".to_owned()),
            Place::One => Some("l2.10".to_owned()),
            Place::Host | Place::Outside => Some(TRUNK.to_owned()),
            Place::Fabric(vrf) => Some(format!("br.{}", self.vnis[vrf])),
        };
        let mut looked: Option<String> = None;
        let mut vrfs: Vec<String> = Vec::new();
        for _ in 0..8 {
            let mut words = vec!["route", "get", target];
            match (&input, &looked) {
                (Some(link), _) => words.extend(["from", source, "iif", link]),
                (None, vrf) => words.extend(["vrf", vrf.as_deref().unwrap()]),
            }
            let said = self.node.run("ip", &words);
            let (line, error) = (said.stdout.trim(), said.stderr.trim());
            let end = |vrfs: Vec<String>, end: &str| (vrfs, end.to_owned());
            if line.starts_with("blackhole") || error.ends_with("Invalid argument") {
                vrfs.dedup();
                return end(vrfs, "swallowed");
            }
            let none = ["unreachable", "No route to host"];
            if none.iter().any(|n| error.ends_with(n)) || line.starts_with("unreachable") {
                vrfs.dedup();
                return end(vrfs, "no route");
            }
            let (Some(link), Some(table)) = (after(line, "dev"), after(line, "table")) else {
                return end(vrfs, &format!("{line}{error}"));
            };
            let table: u32 = table.parse().unwrap_or_default();
            vrfs.push(self.tables.get(&table).cloned().unwrap_or_default());
            input = None;
            if self.tables.values().any(|vrf| vrf == link) {
                looked = Some(link.to_owned());
                continue;
            }
            let (master, outcome) = if let Some(vrf) = self.vlans.get(link) {
                (vrf.clone(), format!("segment {}", &link[3..]))
            } else if link == TRUNK {
                ("cluster".to_owned(), "host".to_owned())
            } else if let Some((vrf, vni)) =
                self.vnis.iter().find(|(_, v)| link == format!("br.{v}"))
            {
                let words = ["route", "get", target, "vrf", vrf];
                let there = self.leaf.run("ip", &words).stdout;
                if after(&there, "dev") == Some(link) {
                    vrfs.push(vrf.clone());
                    input = Some(format!("br.{vni}"));
                    continue;
                }
                (vrf.clone(), format!("fabric {vrf}"))
            } else {
                (String::new(), line.to_owned())
            };
            vrfs.push(master);
            vrfs.dedup();
            return (vrfs, outcome);
        }
        (vrfs, "loop".to_owned())
    }

    /// Who gets a packet that ends so.
    pub fn place(&self, end: &End, target: &str) -> Option<Place> {
        match end {
            End::Segment { vlan: 10 } => Some(Place::One),
            End::Segment { .. } if target == "192.0.3.9" => Some(Place::Far),
            End::Segment { .. } => Some(Place::Near),
            End::Host if AT_HOST.contains(&target) => Some(Place::Host),
            End::Host => Some(Place::Outside),
            End::Fabric { vrf, .. } => {
                let all = self.places.keys();
                all.copied()
                    .find(|p| matches!(p, Place::Fabric(v) if v == vrf))
            }
            _ => None,
        }
    }

    /// Sends one echo request after the other, until what became of one is what is wanted, or a few were sent.
    pub fn send(&self, from: Place, source: &str, target: &str, wanted: &Arrived) -> Arrived {
        let mut last = Arrived::default();
        // The first one may be lost to neighbours that are not known yet.
        for _ in 0..3 {
            let args = ["-n", "-c", "1", "-W", "0.7", "-I", source, target];
            let said = self.places[&from].run(&self.ping, &args);
            let after = self.echoes();
            let before = self.seen.replace(after.clone());
            let at = after.iter().filter(|(place, n)| before[*place] != **n);
            last = Arrived {
                at: at.map(|(place, _)| *place).collect(),
                answered: said.code == Some(0),
            };
            if last == *wanted {
                break;
            }
        }
        last
    }

    /// Echo requests that each place has seen. All are asked at once: it is the most frequent question.
    fn echoes(&self) -> BTreeMap<Place, u64> {
        let files = ["/proc/net/snmp", "/proc/net/snmp6"];
        let args = [&["-all", "netns", "exec", "cat"][..], &files].concat();
        let said = self.node.run("ip", &args);
        let parts = said
            .ok()
            .split("netns: ")
            .filter_map(|part| part.split_once('\n'));
        let parts: BTreeMap<&str, &str> = parts.map(|(n, text)| (n.trim(), text)).collect();
        let of = |netns: &Netns| -> u64 {
            let text = parts[name(netns).as_str()];
            let mut icmp = text.lines().filter(|line| line.starts_with("Icmp: "));
            let (names, values) = (icmp.next().unwrap(), icmp.next().unwrap());
            let mut both = names.split_whitespace().zip(values.split_whitespace());
            let v4 = both.find(|(name, _)| *name == "InEchos").unwrap().1;
            let v6 = after(text, "Icmp6InEchos").unwrap();
            v4.parse::<u64>().unwrap() + v6.parse::<u64>().unwrap()
        };
        self.places.iter().map(|(p, n)| (*p, of(n))).collect()
    }

    /// With which communities the leaf has a route.
    pub fn communities(&self, vrf: &str, prefix: &str) -> Vec<String> {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let question = format!("show bgp vrf {vrf} {family} unicast {prefix} json");
        let said = self.leaf_frr.ask(&question);
        let said: Value = serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"));
        let list = said["paths"][0]["community"]["list"].as_array().cloned();
        let list = list.unwrap_or_default();
        list.iter()
            .filter_map(|c| Some(c.as_str()?.to_owned()))
            .collect()
    }
}

/// The instance that carries the others, with its one neighbour. Next hops are not shared between routes: `ip -6 route get`
/// names the table of any route that has the next hop.
fn underlay_text(own: u32, peer: &str, other: u32, vtep: &str) -> String {
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

fn leaf_text(vnis: &BTreeMap<String, u32>) -> String {
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
