//! What survives a plugin that is killed, a DEL at the wrong time, and a reboot: the same questions to every plugin.
//!
//! ```text
//!  for n in 1.. until the call survives:   ADD or DEL dies at its n-th point
//!      then one of: DEL · ADD again · the namespace ends · GC · another pod comes
//!      then DEL, DEL ──► no link, file, rule or address of it is left, and the neighbour has all of its own
//! ```
//!
//! A neighbour is attached all the time; that it keeps its interface and its address is half of every check. Points lie between
//! two effects (`mooring_host::fault`); what lies between two points is tried by killing at swept instants. Easy to get wrong: a
//! file system keeps what a killed process wrote, so this says nothing about power cuts.

mod kills;
mod times;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::conformance::bed::{Attachment, Bed, Shown as _};
use crate::conformance::peer::Peer;
use crate::conformance::shape::{Wrong, result, silent, want};

/// In which version everything here speaks: the newest, for GC.
const VERSION: &str = "1.1.0";

/// A node with a neighbour on it.
struct Scene<'a> {
    bed: Bed<'a>,
    neighbour: Attachment,
    /// The neighbour's interface and addresses.
    its: (Value, Vec<String>),
    /// The node's links with the neighbour.
    links: BTreeSet<String>,
}

impl<'a> Scene<'a> {
    /// None is a counted skip.
    fn new(peer: &'a Peer, plugin: &'static str) -> Option<Self> {
        let bed = Bed::new(peer, plugin)?;
        let mut neighbour = bed.attachment(VERSION);
        let value = result(&bed.call("ADD", &neighbour), VERSION);
        neighbour.config["prevResult"] =
            value.unwrap_or_else(|wrong| panic!("the neighbour: {wrong}"));
        let its = (
            neighbour.pod.link("net1").unwrap_or_default(),
            neighbour.pod.addresses("net1"),
        );
        let links = links(&bed.node);
        Some(Self {
            bed,
            neighbour,
            its,
            links,
        })
    }

    /// An attachment that nobody has tried yet, with its pod as it is now.
    fn fresh(&self) -> Victim {
        let attachment = self.bed.attachment(VERSION);
        let pod = Picture::of(&attachment);
        let device = attachment.config["device"].as_str().map(str::to_owned);
        Victim {
            attachment,
            pod,
            device,
        }
    }

    /// Nothing of the victim is left, and the neighbour is as it was.
    fn clean(&self, victim: &Victim, alive: bool) -> Result<(), Wrong> {
        let container = &victim.attachment.container;
        if alive {
            let now = Picture::of(&victim.attachment);
            want(
                now == victim.pod,
                format!("the pod was {:?} and is {now:?}", victim.pod),
            )?;
        }
        let held = self.bed.held();
        let own = held
            .values()
            .filter(|by| by.starts_with(&format!("{container}\r")));
        want(own.count() == 0, format!("held: {held:?}"))?;
        let left = mentions(&self.bed.root(), container);
        want(left.is_empty(), format!("left below the root: {left:?}"))?;
        let left = mentions(&self.bed.data(), container);
        want(left.is_empty(), format!("left on disk: {left:?}"))?;
        let mut now = links(&self.bed.node);
        if let Some(device) = &victim.device {
            let there = now.remove(device);
            // A virtual one ends with its pod.
            want(
                there || !alive,
                format!("{device} is not back on the node, which has {now:?}"),
            )?;
            now.remove(&device.replace("dev", "peer"));
        }
        now.retain(|name| !name.starts_with("hand"));
        let before: BTreeSet<&String> = self
            .links
            .iter()
            .filter(|name| !name.starts_with("hand"))
            .collect();
        let now: BTreeSet<&String> = now.iter().filter(|name| !is_device(name)).collect();
        let before: BTreeSet<&String> =
            before.into_iter().filter(|name| !is_device(name)).collect();
        want(
            now == before,
            format!("the node had {before:?} and has {now:?}"),
        )?;
        self.neighbour_is_well()
    }

    fn neighbour_is_well(&self) -> Result<(), Wrong> {
        let now = (
            self.neighbour.pod.link("net1").unwrap_or_default(),
            self.neighbour.pod.addresses("net1"),
        );
        want(
            now.1 == self.its.1
                && now.0["address"] == self.its.0["address"]
                && now.0["mtu"] == self.its.0["mtu"],
            format!("the neighbour had {:?} and has {:?}", self.its.1, now.1),
        )?;
        if self.bed.plugin == "host-local" || self.neighbour.config.get("ipam").is_some() {
            let held = self.bed.held();
            let own = held
                .values()
                .any(|by| by.starts_with(&self.neighbour.container));
            want(
                own || self.bed.plugin == "static",
                format!("the neighbour's address is free: {held:?}"),
            )?;
        }
        silent(&self.bed.call("CHECK", &self.neighbour))
            .map_err(|wrong| format!("the neighbour: {wrong}"))
    }
}

/// An attachment under test.
struct Victim {
    attachment: Attachment,
    pod: Picture,
    device: Option<String>,
}

/// What a pod looks like; for a chained plugin it had an interface before.
#[derive(Debug, PartialEq)]
struct Picture {
    links: Vec<(String, Value, Value, Vec<String>)>,
    rules: String,
    routes: BTreeSet<String>,
}

impl Picture {
    fn of(attachment: &Attachment) -> Self {
        let pod = &attachment.pod;
        let shown = pod.links();
        let link = |link: &Value| {
            let name = link["ifname"].as_str().unwrap_or_default().to_owned();
            let addresses = pod.addresses(&name);
            (
                name,
                link["mtu"].clone(),
                link["promiscuity"].clone(),
                addresses,
            )
        };
        let routes = pod.ip("-4 route show table all");
        // Caches and the local table are the kernel's.
        let routes = routes
            .lines()
            .filter(|line| !line.contains("table local") && !line.starts_with("broadcast"));
        Self {
            links: shown.iter().map(link).collect(),
            rules: pod.ip("rule show"),
            // Those of an interface that sbr had are left in its table, as the reference leaves them: they end with it.
            routes: if attachment.config["type"] == "sbr" {
                BTreeSet::new()
            } else {
                routes.map(|line| line.trim().to_owned()).collect()
            },
        }
    }
}

fn is_device(name: &str) -> bool {
    name.starts_with("dev") || name.starts_with("peer")
}

fn links(netns: &mooring_testkit::Netns) -> BTreeSet<String> {
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    netns.links().iter().map(name).collect()
}

/// Files whose name or text has a word in it.
fn mentions(dir: &Path, word: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut todo = vec![dir.to_owned()];
    // `container-1` is no mention of `container-12`.
    let is_it = |text: &str| {
        text.match_indices(word).any(|(at, _)| {
            let behind = text[at + word.len()..].chars().next();
            !behind.is_some_and(|c| c.is_ascii_digit())
        })
    };
    while let Some(dir) = todo.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten() {
            let path = entry.unwrap().path();
            let text =
                || String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            if path.is_dir() {
                todo.push(path.clone());
            } else if !name.ends_with("lock") && (is_it(&name) || is_it(&text())) {
                found.push(path.display().to_string());
            }
        }
    }
    found
}

/// Valid attachments for a GC.
fn valid(attachments: &[&Attachment]) -> Value {
    let one = |a: &&Attachment| json!({"containerID": a.container, "ifname": a.ifname});
    Value::Array(attachments.iter().map(one).collect())
}
