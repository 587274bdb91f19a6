//! A node with a device that has everything a device can have, and a picture of it to compare with.
//!
//! The device is one end of a veth; the other is in a fabric of its own. Easy to get wrong: a veth ends with its namespace and hardware
//! does not, so what happens to hardware is in the module `qemu`.

use std::path::{Path, PathBuf};

use mooring_testkit::Netns;
use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;
use crate::stage::{Pod, Stage};

/// The address of the PCI function that the fake sysfs shows behind the device.
pub(crate) const BDF: &str = "0000:3b:00.0";

/// A node with the device `dev0`.
pub(crate) struct Bed {
    pub(crate) stage: Stage,
    pub(crate) fabric: Netns,
}

impl Bed {
    pub(crate) fn new(what: &str) -> Option<Self> {
        let stage = Stage::new(what)?;
        let fabric = stage.sandbox.netns("fabric");
        let bed = Self { stage, fabric };
        bed.device("dev0", "02:00:00:00:00:10");
        bed.furnish("dev0");
        Some(bed)
    }

    pub(crate) fn node(&self) -> &Netns {
        &self.stage.node
    }

    /// A bare device.
    pub(crate) fn device(&self, name: &str, mac: &str) {
        let fabric = self.fabric.path();
        let fabric = fabric.rsplit('/').next().unwrap();
        self.node().ip(&format!(
            "link add {name} address {mac} type veth peer name far-{name} netns {fabric}"
        ));
        self.fabric.ip(&format!("link set far-{name} up"));
    }

    /// Gives it all that is to survive.
    fn furnish(&self, name: &str) {
        let node = self.node();
        for words in [
            "link set lo up",
            &format!("link set {name} mtu 1400 txqueuelen 77 alias rail-zero up"),
            &format!("link property add dev {name} altname a-long-name-of-the-device"),
            &format!("addr add 192.0.2.10/24 broadcast 192.0.2.255 label {name}:1 dev {name}"),
            &format!("addr add 192.0.2.11/24 dev {name}"),
            &format!("addr add 2001:db8::10/64 dev {name} nodad"),
            &format!("addr add 203.0.113.7/32 dev {name} metric 300"),
            &format!("route add 198.51.100.0/24 via 192.0.2.1 dev {name} metric 5 mtu 1300"),
            &format!("route add default via 192.0.2.1 dev {name} table 101"),
            &format!("route add 2001:db8:9::/48 via 2001:db8::1 dev {name}"),
            "rule add from 192.0.2.10 table 101 priority 1010",
            &format!("neigh add 192.0.2.1 lladdr 02:00:00:00:00:01 dev {name} nud permanent"),
        ] {
            node.ip(words);
        }
        let key = format!("net.ipv4.conf.{name}.arp_announce=2");
        node.run("sysctl", &["-w", &key]).ok();
    }

    /// All about a device, but for what the kernel counts or may still be settling.
    pub(crate) fn picture(&self, name: &str) -> Value {
        let node = self.node();
        let Some(link) = node.link(name) else {
            return json!(null);
        };
        let flags = link["flags"].as_array().cloned().unwrap_or_default();
        let mut addresses: Vec<String> = link["addr_info"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|a| a["scope"] != "link")
            .map(|a| {
                let keys = [
                    "local",
                    "prefixlen",
                    "scope",
                    "label",
                    "broadcast",
                    "metric",
                    "dynamic",
                ];
                keys.map(|k| a[k].to_string()).join(" ")
            })
            .collect();
        addresses.sort();
        let read = |words: &str| {
            let text = node.ip(words);
            let mut lines: Vec<String> = text
                .lines()
                .filter(|l| !l.contains("multicast ff00::") && !l.contains("fe80"))
                .map(|l| l.trim().replace(" linkdown", ""))
                .collect();
            lines.sort();
            lines
        };
        let sysctl = format!("net.ipv4.conf.{name}.arp_announce");
        json!({
            "mac": link["address"],
            "mtu": link["mtu"],
            "txqlen": link["txqlen"],
            "alias": link["ifalias"],
            "altnames": link["altnames"],
            "up": flags.iter().any(|f| f == "UP"),
            "addresses": addresses,
            "routes": read(&format!("-4 route show table all dev {name}")),
            "routes6": read(&format!("-6 route show table all dev {name}")),
            "rules": read("rule show"),
            "neighbours": read(&format!("neigh show dev {name} nud permanent")),
            "arp_announce": node.run("sysctl", &["-n", &sysctl]).stdout.trim(),
        })
    }

    /// A pod that asks for the device by name.
    pub(crate) fn pod(&self, container: &str) -> Pod {
        let config = json!({"type": "host-device", "device": "dev0", "ipam": addresses()});
        self.stage.pod(container, config)
    }

    /// The files of records.
    pub(crate) fn records(&self) -> Vec<PathBuf> {
        let dir = self.stage.root().join("run/cni/moor/devices");
        let mut files: Vec<PathBuf> = std::fs::read_dir(dir)
            .into_iter()
            .flatten()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.extension().is_some_and(|e| e == "json"))
            .collect();
        files.sort();
        files
    }

    /// The node has started anew since the record was written.
    pub(crate) fn reboot(&self) {
        for path in self.records() {
            let mut record = read(&path);
            record["boot"] = json!("00000000-0000-0000-0000-000000000000");
            std::fs::write(&path, record.to_string()).unwrap();
        }
    }

    /// A sysfs in which a PCI function has an interface, under the state's root.
    pub(crate) fn sysfs(&self, bdf: &str, interface: &str) -> PathBuf {
        sysfs(self.stage.root(), bdf, interface)
    }

    /// Binds a PCI function to a driver.
    pub(crate) fn bind(&self, bdf: &str, driver: &str) {
        let sys = self.stage.root().join("sys");
        let driver = sys.join("bus/pci/drivers").join(driver);
        std::fs::create_dir_all(&driver).unwrap();
        let device = sys.join("devices/pci0000:00").join(bdf);
        std::os::unix::fs::symlink(driver, device.join("driver")).unwrap();
    }

    /// Moves the device out of a pod by hand, as the kernel does with hardware when the pod's namespace ends.
    pub(crate) fn fall_back(&self, pod: &Pod, name: &str) {
        let node = self.node().path();
        let node = node.rsplit('/').next().unwrap();
        let ifname = &pod.ifname;
        pod.netns.ip(&format!("link set {ifname} down"));
        pod.netns
            .ip(&format!("link set {ifname} name {name} netns {node}"));
        pod.end();
    }
}

/// A sysfs below a directory in which a PCI function has an interface; gives the function's own directory.
pub(crate) fn sysfs(root: &Path, bdf: &str, interface: &str) -> PathBuf {
    let sys = root.join("sys");
    let device = sys.join("devices/pci0000:00").join(bdf);
    std::fs::create_dir_all(device.join("net").join(interface)).unwrap();
    let bus = sys.join("bus/pci/devices");
    std::fs::create_dir_all(&bus).unwrap();
    let link = bus.join(bdf);
    if !link.exists() {
        std::os::unix::fs::symlink(&device, link).unwrap();
    }
    device
}

/// A static address that is not the node's.
pub(crate) fn addresses() -> Value {
    json!({
        "type": "static",
        "addresses": [{"address": "192.0.2.99/24", "gateway": "192.0.2.1"}],
        "routes": [{"dst": "198.18.0.0/15"}],
    })
}

/// An address of a pool, which tells who holds one.
pub(crate) fn pool() -> Value {
    json!({"type": "host-local", "ranges": [[{"subnet": "192.0.2.0/24", "rangeStart": "192.0.2.50"}]]})
}

pub(crate) fn read(path: &Path) -> Value {
    let text = std::fs::read(path).unwrap();
    serde_json::from_slice(&text).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}
