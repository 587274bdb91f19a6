//! The lab around one node: a leaf of the fabric with a host behind every VRF, the node's own host, and workloads.
//!
//! Easy to get wrong: ICMP errors are rationed by the kernel, so "nobody saw it" is read from counters of echo requests,
//! never from what `ping` was told.

mod build;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

use mooring_api::kinds::schiff::NodeNetworkConfigSpec;
use mooring_intent::trace::End;
use mooring_testkit::{Netns, Sandbox};
use serde_json::Value;

use super::frr::{self, AS, Frr, TRUNK};
use super::{TOLD, until};

/// Who sends and receives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
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
pub(super) struct Arrived {
    /// Who saw it.
    pub(super) at: Vec<Place>,
    /// Whether an answer came.
    pub(super) answered: bool,
}

/// Everything, running.
pub(super) struct Lab {
    node: Netns,
    leaf: Netns,
    places: BTreeMap<Place, Netns>,
    vnis: BTreeMap<String, u32>,
    tables: BTreeMap<u32, String>,
    vlans: BTreeMap<String, String>,
    ping: PathBuf,
    seen: RefCell<BTreeMap<Place, u64>>,
    told: RefCell<BTreeMap<&'static str, Value>>,
    leaf_frr: Frr,
    _node_frr: Frr,
    _sandbox: Sandbox,
}

/// The programs of FRR, or a counted skip.
pub(super) fn frr() -> Option<PathBuf> {
    Some(mooring_testkit::component("frr", "a compiled node in a kernel")?.join("bin"))
}

/// Lines for `ip`, after options.
#[track_caller]
pub(super) fn batch(netns: &Netns, options: &[&str], lines: &str) {
    let args = [options, &["-batch", "-"]].concat();
    let said = netns.run_with("ip", &args, &[], lines);
    assert_eq!(said.code, Some(0), "{}\n{lines}", said.stderr);
}

/// Routes of local VRFs that lead into other ones: VRF, prefix, VRF.
pub(super) fn into_vrfs(netns: &Netns, spec: &NodeNetworkConfigSpec) -> Vec<String> {
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

fn name(netns: &Netns) -> String {
    netns.path().rsplit('/').next().unwrap().to_owned()
}

impl Lab {
    /// Builds it and waits until both sides of the fabric know each other's routes.
    pub(super) fn new(spec: &NodeNetworkConfigSpec) -> Option<Self> {
        let bin = frr()?;
        let ping = mooring_testkit::component("iputils-ping", "packets in a lab")?.join("bin/ping");
        let sandbox = Sandbox::new("a compiled node").expect("root, with namespaces");
        let (node, leaf) = (
            build::router(&sandbox, "node"),
            build::router(&sandbox, "leaf"),
        );
        let mut places = BTreeMap::new();
        build::underlay(&node, &leaf);
        build::host(&sandbox, &node, &mut places);
        batch(&node, &[], &frr::links(spec, build::VTEP));
        for (family, rules) in ["-4", "-6"].iter().zip(frr::rules(spec)) {
            batch(&node, &[family], &rules);
        }
        let vnis = spec.fabric_vrfs.iter();
        let vnis: BTreeMap<String, u32> = vnis.map(|(n, f)| (n.clone(), f.vni)).collect();
        build::fabric(&sandbox, &leaf, &vnis, &mut places);
        build::segments(&sandbox, &leaf, &mut places);

        let mut node_frr = Frr::new(&bin, &node, "node");
        let mut leaf_frr = Frr::new(&bin, &leaf, "leaf");
        node_frr.start();
        leaf_frr.start();
        let mut text = build::underlay_text(AS, "169.254.1.2", AS + 1, build::VTEP);
        text += &frr::text(&frr::blocks(spec, build::VTEP, &build::BASE));
        node_frr.apply(&text);
        leaf_frr.apply(&build::leaf_text(&vnis));
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
            told: RefCell::default(),
            leaf_frr,
            _node_frr: node_frr,
            _sandbox: sandbox,
        };
        lab.wait(spec);
        lab.seen.replace(lab.echoes());
        Some(lab)
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
    pub(super) fn walk(&self, from: Place, source: &str, target: &str) -> (Vec<String>, String) {
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
    pub(super) fn place(&self, end: &End, target: &str) -> Option<Place> {
        match end {
            End::Segment { vlan: 10 } => Some(Place::One),
            End::Segment { .. } if target == "192.0.3.9" => Some(Place::Far),
            End::Segment { .. } => Some(Place::Near),
            End::Host if build::AT_HOST.contains(&target) => Some(Place::Host),
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
    pub(super) fn send(
        &self,
        from: Place,
        source: &str,
        target: &str,
        wanted: &Arrived,
    ) -> Arrived {
        let mut last = Arrived::default();
        // The first one may be lost to neighbours that are not known yet.
        for _ in 0..3 {
            let args = ["-n", "-c", "1", "-W", "0.5", "-I", source, target];
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
    pub(super) fn communities(&self, vrf: &str, prefix: &str) -> Vec<String> {
        let family = if prefix.contains(':') { "ipv6" } else { "ipv4" };
        let mut told = self.told.borrow_mut();
        let told = told.entry(family).or_insert_with(|| {
            let question = format!("show bgp vrf all {family} unicast detail json");
            let said = self.leaf_frr.ask(&question);
            serde_json::from_str(&said).unwrap_or_else(|e| panic!("{e}: {said}"))
        });
        let path = told[vrf]["routes"][prefix].get(0);
        let path = path.unwrap_or_else(|| panic!("{vrf} has no {prefix}: {told}"));
        let list = path["community"]["list"].as_array();
        let list = list.into_iter().flatten();
        list.filter_map(|c| Some(c.as_str()?.to_owned())).collect()
    }
}
