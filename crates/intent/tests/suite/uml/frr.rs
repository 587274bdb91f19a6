//! A compiled node as FRR and the kernel are told it: text for `vtysh`, links and rules for `ip`.
//!
//! What the node's agent will do one day, in its shortest form. Easy to get wrong: `vtysh -f` gives a line to the daemons
//! that are there, so all of them must be before the first line.
#![expect(
    clippy::disallowed_methods,
    reason = "files of a kernel of our own, gone with it"
)]

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use mooring_api::kinds::schiff::{
    ActionType, Filter, FilterAction, NodeNetworkConfigSpec, StaticRoute, Vrf,
};
use mooring_testkit::Netns;

use super::until;

/// The AS of the node.
pub(super) const AS: u32 = 64512;
/// Its side of the trunk to the host, which is in the cluster's VRF.
pub(super) const TRUNK: &str = "hbn";

/// The metric of a route that is worse than any other, also in the eyes of FRR.
pub(super) const LAST: u32 = 4_278_198_272;

const DAEMONS: [&str; 4] = ["mgmtd", "zebra", "staticd", "bgpd"];

/// FRR in a namespace; it ends with this value.
pub(super) struct Frr {
    netns: Netns,
    bin: PathBuf,
    /// Its own directory below `/run/frr`.
    word: String,
    daemons: Vec<Child>,
}

impl Frr {
    /// Not started yet.
    pub(super) fn new(bin: &Path, netns: &Netns, word: &str) -> Self {
        Self {
            netns: netns.clone(),
            bin: bin.to_owned(),
            word: word.to_owned(),
            daemons: Vec::new(),
        }
    }

    /// Starts the daemons without any configuration, and waits until they listen.
    pub(super) fn start(&mut self) {
        accounts();
        let run = self.run_dir();
        for dir in [&run, &Path::new("/etc/frr").join(&self.word)] {
            std::fs::create_dir_all(dir).unwrap();
            std::fs::write(dir.join("vtysh.conf"), "username root nopassword\n").unwrap();
        }
        std::fs::create_dir_all(Path::new("/var/lib/frr").join(&self.word)).unwrap();
        let netns = self.netns.path();
        let netns = netns.rsplit('/').next().unwrap();
        for daemon in DAEMONS {
            let _ = std::fs::remove_file(run.join(format!("{daemon}.vty")));
            let log = format!("file:{}", run.join(format!("{daemon}.log")).display());
            let started = Command::new("ip")
                .args(["netns", "exec", netns])
                .arg(self.bin.join(daemon))
                .args(["-N", &self.word, "-u", "root", "-g", "root", "-P", "0"])
                .args(["--log", &log])
                .stdin(Stdio::null())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn();
            self.daemons.push(started.unwrap());
            // The others find the first one, and then it does not matter.
            let socket = run.join(format!("{daemon}.vty"));
            until("a daemon listens", || {
                let there = socket.exists();
                there
                    .then_some(())
                    .ok_or_else(|| format!("no {}", socket.display()))
            });
        }
    }

    /// Ends the daemons, as a crash would.
    pub(super) fn stop(&mut self) {
        for mut daemon in self.daemons.drain(..).rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }

    /// Reads a configuration into the running daemons.
    #[track_caller]
    pub(super) fn apply(&self, text: &str) {
        let file = self.run_dir().join("frr.conf");
        std::fs::write(&file, text).unwrap();
        let said = self.vtysh(&["-f", &file.to_string_lossy()]);
        let refused = said.lines().filter(|line| line.contains('%'));
        // The one thing that is not taken silently a second time.
        let refused = refused.filter(|line| !line.contains("RT specified already configured"));
        assert_eq!(refused.count(), 0, "{said}\n{text}");
    }

    /// Asks.
    #[track_caller]
    pub(super) fn ask(&self, question: &str) -> String {
        self.vtysh(&["-c", question])
    }

    #[track_caller]
    fn vtysh(&self, args: &[&str]) -> String {
        let all = [&["-N", self.word.as_str()], args].concat();
        let said = self.netns.run(self.bin.join("vtysh"), &all);
        said.ok();
        format!("{}{}", said.stdout, said.stderr)
    }

    fn run_dir(&self) -> PathBuf {
        Path::new("/run/frr").join(&self.word)
    }
}

impl Drop for Frr {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The groups that FRR asks for by name. The files are the machine's, and a copy in memory.
fn accounts() {
    for (file, lines) in [
        ("/etc/passwd", "frr:x:199:199::/:/bin/false\n"),
        ("/etc/group", "frr:x:199:\nfrrvty:x:198:frr,root\n"),
    ] {
        let mut text = std::fs::read_to_string(file).unwrap();
        if !text.contains("\nfrr:") {
            text.push_str(lines);
            std::fs::write(file, text).unwrap();
        }
    }
}

/// The tables of a node's VRFs, as its agent gives them: the cluster's own, then by name.
pub(super) fn tables(spec: &NodeNetworkConfigSpec) -> BTreeMap<String, u32> {
    let names = spec.fabric_vrfs.keys().chain(spec.local_vrfs.keys());
    let others = names.cloned().zip(50..);
    others.chain([("cluster".to_owned(), 10)]).collect()
}

/// VRFs and segments for `ip -batch`, where the underlay, the cluster's VRF and the trunk in it are there; `vtep` is the
/// node's address in the fabric.
pub(super) fn links(spec: &NodeNetworkConfigSpec, vtep: &str) -> String {
    let mut text = String::new();
    for (name, table) in tables(spec).iter().filter(|(name, _)| *name != "cluster") {
        let _ = writeln!(text, "link add {name} type vrf table {table}");
        let _ = writeln!(text, "link set {name} up");
        // Without an end of its own a table is passed by, and the packet finds the routes of the underlay.
        for all in ["0.0.0.0/0", "::/0"] {
            let end = format!("route add unreachable {all} metric {LAST} table {table}");
            let _ = writeln!(text, "{end}");
        }
    }
    for (name, fabric) in &spec.fabric_vrfs {
        text += &routed(fabric.vni, name, vtep);
    }
    for segment in spec.layer2s.values() {
        let (vlan, vni) = (segment.vlan, segment.vni);
        let bridge = format!("l2.{vlan}");
        let _ = writeln!(text, "link add {bridge} type bridge");
        if let Some(irb) = &segment.irb {
            let _ = writeln!(text, "link set {bridge} master {}", irb.vrf);
            let _ = writeln!(text, "link set {bridge} address {}", irb.mac_address);
        }
        let _ = writeln!(
            text,
            "link add link {TRUNK} name vlan.{vlan} type vlan id {vlan}"
        );
        let _ = writeln!(text, "link set vlan.{vlan} master {bridge} up");
        text += &tunnel(vni, &bridge, vtep);
        let _ = writeln!(text, "link set {bridge} up");
        for address in segment.irb.iter().flat_map(|irb| &irb.ip_addresses) {
            let _ = writeln!(text, "addr add {address} dev {bridge}");
        }
    }
    text
}

/// The pair of links that carries a VRF over the fabric.
pub(super) fn routed(vni: u32, vrf: &str, vtep: &str) -> String {
    let octets: std::net::Ipv4Addr = vtep.parse().unwrap();
    let [a, b, c, d] = octets.octets();
    let bridge = format!("br.{vni}");
    let mut text = format!(
        "link add {bridge} address 02:54:{a:02x}:{b:02x}:{c:02x}:{d:02x} type bridge\n\
         link set {bridge} master {vrf} addrgenmode none\n"
    );
    text += &tunnel(vni, &bridge, vtep);
    let _ = writeln!(text, "link set {bridge} up");
    text
}

/// A VXLAN below a bridge.
pub(super) fn tunnel(vni: u32, bridge: &str, vtep: &str) -> String {
    format!(
        "link add vx.{vni} type vxlan id {vni} local {vtep} dstport 4789 nolearning\n\
         link set vx.{vni} master {bridge} addrgenmode none\n\
         link set vx.{vni} up\n"
    )
}

/// Steering by source, by family: the kernel shows an IPv4 rule the port and an IPv6 rule the VRF that a packet came in by.
pub(super) fn rules(spec: &NodeNetworkConfigSpec) -> [String; 2] {
    let tables = tables(spec);
    let mut text = [String::new(), String::new()];
    for policy in spec.cluster_vrf.iter().flat_map(|c| &c.policy_routes) {
        let source = policy.traffic_match.src_prefix.as_deref().unwrap();
        let table = tables[policy.next_hop.vrf.as_deref().unwrap()];
        let v6 = source.contains(':');
        let iif = if v6 { "cluster" } else { TRUNK };
        let rule = format!("rule add pref 100 from {source} iif {iif} lookup {table}\n");
        text[usize::from(v6)].push_str(&rule);
    }
    text
}

/// A part of a configuration that stands for itself. Lines of one that begins with `vrf` have no order.
pub(super) type Block = Vec<String>;

/// Everything about a node but its underlay; `base` is what the cluster's VRF has from elsewhere.
pub(super) fn blocks(spec: &NodeNetworkConfigSpec, router: &str, base: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let none = Vrf::default();
    let cluster = spec.cluster_vrf.as_ref().unwrap_or(&none);
    let fabric = spec.fabric_vrfs.iter().map(|(n, f)| (n, &f.vrf));
    let all = fabric.chain(&spec.local_vrfs);
    let name = "cluster".to_owned();
    for (name, vrf) in all.chain([(&name, cluster)]) {
        let fabric = spec.fabric_vrfs.get(name);
        let mut block = vec![format!("vrf {name}")];
        block.extend(fabric.map(|f| format!(" vni {}", f.vni)));
        block.extend(vrf.static_routes.iter().map(route));
        if name == "cluster" {
            block.extend(base.iter().map(|line| format!(" {line}")));
        }
        block.push("exit-vrf".to_owned());
        blocks.push(block);

        let mut bgp = vec![
            format!("router bgp {AS} vrf {name}"),
            format!(" bgp router-id {router}"),
        ];
        for v6 in [false, true] {
            let (family, ip) = family(v6);
            bgp.push(format!(" address-family {family} unicast"));
            // Agents tell BGP everything; what goes further is a matter of filters.
            bgp.push("  redistribute connected".to_owned());
            bgp.push("  redistribute static".to_owned());
            if !vrf.vrf_imports.is_empty() {
                let map = format!("{name}-import-{ip}");
                bgp.push(format!("  import vrf route-map {map}"));
                let mut at = 0;
                for import in &vrf.vrf_imports {
                    bgp.push(format!("  import vrf {}", import.from_vrf));
                    let from = format!(" match source-vrf {}", import.from_vrf);
                    blocks.extend(filter(&map, &mut at, &import.filter, v6, Some(&from)));
                }
            }
            bgp.push(" exit-address-family".to_owned());
        }
        if let Some(fabric) = fabric {
            bgp.push(" address-family l2vpn evpn".to_owned());
            for (way, targets) in [
                ("import", &fabric.evpn_import_route_targets),
                ("export", &fabric.evpn_export_route_targets),
            ] {
                bgp.extend(targets.iter().map(|t| format!("  route-target {way} {t}")));
            }
            for v6 in [false, true] {
                let (family, ip) = family(v6);
                let map = format!("{name}-export-{ip}");
                bgp.push(format!("  advertise {family} unicast route-map {map}"));
                blocks.extend(filter(&map, &mut 0, &fabric.evpn_export_filter, v6, None));
            }
            bgp.push(" exit-address-family".to_owned());
        }
        bgp.push("exit".to_owned());
        blocks.push(bgp);
    }
    blocks
}

fn family(v6: bool) -> (&'static str, &'static str) {
    if v6 { ("ipv6", "ipv6") } else { ("ipv4", "ip") }
}

fn route(route: &StaticRoute) -> String {
    let (_, ip) = family(route.prefix.contains(':'));
    let hop = route.next_hop.as_ref();
    let to = match hop.map(|hop| (&hop.vrf, &hop.address)) {
        None => "blackhole".to_owned(),
        Some((Some(vrf), _)) => format!("{vrf} nexthop-vrf {vrf}"),
        Some((None, address)) => address.clone().unwrap(),
    };
    format!(" {ip} route {} {to}", route.prefix)
}

/// One filter as lines of a route map, which goes on at `at`; `from` narrows it to one VRF.
fn filter(map: &str, at: &mut u32, filter: &Filter, v6: bool, from: Option<&str>) -> Vec<Block> {
    let (_, ip) = family(v6);
    let mut blocks = Vec::new();
    for item in &filter.items {
        let prefix = item.matcher.prefix.as_ref().unwrap();
        if prefix.prefix.contains(':') != v6 {
            continue;
        }
        *at += 1;
        let list = format!("{map}-{at}");
        let bound =
            |word: &str, n: Option<u8>| n.map(|n| format!(" {word} {n}")).unwrap_or_default();
        let bounds = bound("ge", prefix.ge) + &bound("le", prefix.le);
        let prefix = &prefix.prefix;
        blocks.push(vec![format!(
            "{ip} prefix-list {list} seq 1 permit {prefix}{bounds}"
        )]);
        let matched = format!(" match {ip} address prefix-list {list}");
        let narrowed = from.into_iter().chain([matched.as_str()]);
        blocks.push(line(map, *at, &item.action, narrowed));
    }
    *at += 1;
    blocks.push(line(map, *at, &filter.default_action, from.into_iter()));
    blocks
}

fn line<'a>(
    map: &str,
    at: u32,
    action: &FilterAction,
    matched: impl Iterator<Item = &'a str>,
) -> Block {
    let word = match action.kind {
        ActionType::Accept => "permit",
        ActionType::Reject | ActionType::Next => "deny",
    };
    let mut block = vec![format!("route-map {map} {word} {at}")];
    block.extend(matched.map(str::to_owned));
    let communities = action.modify_route.iter().flat_map(|m| &m.add_communities);
    let communities: Vec<&str> = communities.map(String::as_str).collect();
    if !communities.is_empty() {
        block.push(format!(" set community {} additive", communities.join(" ")));
    }
    block.push("exit".to_owned());
    block
}

/// The text of blocks.
pub(super) fn text(blocks: &[Block]) -> String {
    let lines: Vec<&str> = blocks.iter().flatten().map(String::as_str).collect();
    lines.join("\n") + "\n"
}
