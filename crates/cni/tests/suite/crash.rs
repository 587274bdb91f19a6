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
mod orphans;
mod times;

use std::collections::BTreeSet;
use std::path::Path;

use serde_json::{Value, json};

use crate::conformance::bed::{Attachment, Bed, Shown as _, device, shown};
use crate::conformance::peer::Peer;
use crate::conformance::shape::{Wrong, result, silent, want};

/// In which version everything here speaks: the newest, for GC.
const VERSION: &str = "1.1.0";

/// The plugins that have something to lose, and for which this machine's kernel has everything.
const EVERY: [&str; 9] = [
    "macvlan",
    "bridge",
    "host-device",
    "amd-host-device",
    "sriov",
    "ovs",
    "tuning",
    "sbr",
    "host-local",
];

/// A node with a neighbour on it.
struct Scene<'a> {
    bed: Bed<'a>,
    neighbour: Attachment,
    /// The neighbour's interface and addresses.
    its: (Value, Vec<String>),
    /// The node's links with the neighbour.
    links: BTreeSet<String>,
    /// The ports of the switch with the neighbour.
    ports: Vec<String>,
}

impl<'a> Scene<'a> {
    /// None is a counted skip.
    fn new(peer: &'a Peer, plugin: &'static str) -> Option<Self> {
        let bed = Bed::new(peer, plugin)?;
        let mut neighbour = bed.attachment(VERSION);
        let value = result(&bed.call("ADD", &neighbour), VERSION);
        neighbour.config["prevResult"] =
            value.unwrap_or_else(|wrong| panic!("the neighbour: {wrong}"));
        let its = interface(&neighbour);
        let links = names(&bed.node.links());
        let ports = bed.ports();
        Some(Self {
            bed,
            neighbour,
            its,
            links,
            ports,
        })
    }

    /// An attachment that nobody has tried yet, with its pod as it is now.
    fn fresh(&self) -> Victim {
        let attachment = self.bed.attachment(VERSION);
        let pod = Picture::of(&attachment);
        Victim { attachment, pod }
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
        let shown = self.bed.node.batch("addr show\nroute show table all\n");
        if let Some(device) = &victim.attachment.device {
            let now = device::picture(&shown, &device.name);
            // A virtual one ends with its pod.
            want(
                now.as_ref() == Some(&device.before)
                    || (now.is_none() && !alive && device.pci.is_none()),
                format!("{} was {} and is {now:?}", device.name, device.before),
            )?;
        }
        let mut now = names(shown[0].as_array().map_or(&[], Vec::as_slice));
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
        let ports = self.bed.ports();
        want(
            ports == self.ports,
            format!("the switch had {:?} and has {ports:?}", self.ports),
        )?;
        self.neighbour_is_well()
    }

    fn neighbour_is_well(&self) -> Result<(), Wrong> {
        let now = interface(&self.neighbour);
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
}

/// What a pod looks like; for a chained plugin it had an interface before.
#[derive(Debug, PartialEq)]
struct Picture {
    links: Vec<(String, Value, Value, Vec<String>)>,
    rules: Value,
    routes: Vec<String>,
}

impl Picture {
    fn of(attachment: &Attachment) -> Self {
        let shown = attachment
            .pod
            .batch("addr show\nrule show\nroute show table all\n");
        let link = |link: &Value| {
            let name = link["ifname"].as_str().unwrap_or_default().to_owned();
            (
                name,
                link["mtu"].clone(),
                link["promiscuity"].clone(),
                shown::addresses(link),
            )
        };
        Self {
            links: shown[0]
                .as_array()
                .into_iter()
                .flatten()
                .map(link)
                .collect(),
            rules: shown[1].clone(),
            // Those of an interface that sbr had are left in its table, as the reference leaves them: they end with it.
            routes: if attachment.config["type"] == "sbr" {
                Vec::new()
            } else {
                shown::routes(&shown[2])
            },
        }
    }
}

/// The pod's interface and its addresses.
fn interface(attachment: &Attachment) -> (Value, Vec<String>) {
    let link = attachment.pod.link("net1").unwrap_or_default();
    let addresses = shown::addresses(&link);
    (link, addresses)
}

fn is_device(name: &str) -> bool {
    name.starts_with("dev") || name.starts_with("peer")
}

fn names(links: &[Value]) -> BTreeSet<String> {
    let name = |link: &Value| link["ifname"].as_str().unwrap_or_default().to_owned();
    links.iter().map(name).collect()
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
            let entry = entry.unwrap();
            let path = entry.path();
            let text =
                || String::from_utf8_lossy(&std::fs::read(&path).unwrap_or_default()).into_owned();
            let name = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            // Not through links: those of a sysfs lead round in circles.
            let kind = entry.file_type().unwrap();
            if kind.is_dir() {
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
