//! A node whose `eth1` is on a segment, with a neighbour on the same one: for plugins that put pods onto it.
//!
//! ```text
//!  fabric (br0) ── node: eth1 ◄── children in pods
//!              └── neighbour: eth1, 10.1.2.9/24, 2001:db8::9/64
//! ```

use std::path::Path;

use mooring_testkit::Netns;
use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::{Pod, Stage};

/// The node and who is beside it.
pub(crate) struct Segment {
    pub(crate) stage: Stage,
    pub(crate) neighbour: Netns,
    _fabric: Netns,
}

impl Segment {
    /// None is a counted skip.
    pub(crate) fn new(what: &str) -> Option<Self> {
        let stage = Stage::new(what)?;
        let fabric = stage.sandbox.fabric("fabric");
        let neighbour = stage.sandbox.plugged(&fabric, "neighbour");
        neighbour.ip("addr add 10.1.2.9/24 dev eth1");
        neighbour.ip("addr add 2001:db8::9/64 dev eth1 nodad");
        let path = stage.node.path();
        let node = path.rsplit('/').next().unwrap();
        fabric.ip(&format!(
            "link add port type veth peer name eth1 netns {node}"
        ));
        fabric.ip("link set port master br0 up");
        stage.node.ip("link set eth1 up");
        Some(Self {
            stage,
            neighbour,
            _fabric: fabric,
        })
    }

    /// A pod with a child of `eth1` and one static address.
    pub(crate) fn pod(&self, container: &str, plugin: &str, address: &str) -> Pod {
        let ipam = json!({"type": "static", "addresses": [{"address": address}]});
        let config = json!({"type": plugin, "master": "eth1", "ipam": ipam});
        self.stage.pod(container, config)
    }

    /// The same with addresses from host-local, of which there are five.
    pub(crate) fn pooled(&self, container: &str, plugin: &str) -> Pod {
        let ipam = json!({"type": "host-local", "subnet": "10.1.2.0/29",
            "routes": [{"dst": "192.0.2.0/24"}]});
        let config = json!({"type": plugin, "master": "eth1", "ipam": ipam});
        self.stage.pod(container, config)
    }

    /// The names of the node's links but loopback, in order.
    pub(crate) fn node_links(&self) -> Vec<String> {
        let links = self.stage.node.links();
        let names = links
            .iter()
            .map(|l| l["ifname"].as_str().unwrap().to_owned());
        let mut names: Vec<String> = names.filter(|name| name != "lo").collect();
        names.sort();
        names
    }

    /// Files of our own that a call left behind, without the directories that may stay.
    pub(crate) fn left_over(&self) -> Vec<String> {
        let mut found = Vec::new();
        walk(&self.stage.root().join("run/cni/moor"), &mut found);
        found
    }

    /// Waits until the neighbour knows `address` at that MAC; fails with what it knew last.
    #[track_caller]
    pub(crate) fn neighbour_learns(&self, address: &str, mac: &str) {
        self.neighbour_learns_while(|| (), address, mac);
    }

    /// The same while something is done again and again.
    #[track_caller]
    pub(crate) fn neighbour_learns_while(&self, act: impl Fn(), address: &str, mac: &str) {
        let mut last = String::new();
        for _ in 0..400 {
            act();
            last = self
                .neighbour
                .ip(&format!("-j neigh show {address} dev eth1"));
            if last.contains(mac) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(25));
        }
        panic!("the neighbour does not have {address} at {mac}: {last}");
    }

    /// The neighbour's `eth1` MAC.
    pub(crate) fn neighbour_mac(&self) -> String {
        let link = self.neighbour.link("eth1").unwrap();
        link["address"].as_str().unwrap().to_owned()
    }
}

fn walk(dir: &Path, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return;
    };
    for entry in entries {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push(path.display().to_string());
        }
    }
    found.sort();
}

/// The kind of a link and its data, as `ip -d` shows them.
pub(crate) fn kind(link: &Value) -> (&str, &Value) {
    let info = &link["linkinfo"];
    (info["info_kind"].as_str().unwrap_or(""), &info["info_data"])
}

/// The MAC of a pod's interface.
#[track_caller]
pub(crate) fn mac(pod: &Pod) -> String {
    let link = pod.link().expect("the interface is there");
    link["address"].as_str().unwrap().to_owned()
}
