//! A node in namespaces, on which a directory of plugins attaches and detaches pods.
//!
//! ```text
//!  fabric ── br0 ── veth ── node: eth1, and what a plugin makes
//!                           pods: one namespace each, made for one attachment
//!  state: a temporary directory; host-local and tuning are told so by `dataDir`, ours also by MOOR_CNI_ROOT
//! ```
//!
//! Easy to get wrong: a plugin runs in the *node's* namespace and is only told the pod's.

pub(crate) mod device;
pub(crate) mod shown;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use mooring_testkit::{Netns, Said, Sandbox};
use serde_json::{Value, json};

pub(crate) use self::device::Device;
pub(crate) use self::shown::Shown;
use super::peer::Peer;
use crate::ovs::switch::Switch;

/// One plugin of one implementation, and a node for it.
pub(crate) struct Bed<'a> {
    pub(crate) peer: &'a Peer,
    pub(crate) plugin: &'static str,
    pub(crate) node: Netns,
    sandbox: Sandbox,
    state: tempfile::TempDir,
    /// For the plugin that needs one.
    switch: Option<Switch>,
    /// Whether a device's own addresses give way to the pool's.
    pooled: Cell<bool>,
    made: Cell<u32>,
    pods: RefCell<Vec<String>>,
}

/// One interface of one pod, before or after its ADD.
#[derive(Clone, Debug)]
pub(crate) struct Attachment {
    pub(crate) container: String,
    pub(crate) ifname: String,
    pub(crate) pod: Netns,
    /// For a plugin that moves one: a device of its own.
    pub(crate) device: Option<Device>,
    /// A route that the pod is to have: where to, and by whom.
    pub(crate) route: (String, String),
    /// What the plugin gets on its stdin.
    pub(crate) config: Value,
    /// What a runtime sets beyond the usual, or instead; an empty one is left out.
    pub(crate) variables: BTreeMap<&'static str, String>,
}

/// The subnet of every configuration here: five addresses.
pub(crate) const SUBNET: &str = "10.77.0.0/29";

impl<'a> Bed<'a> {
    /// None is a counted skip.
    pub(crate) fn new(peer: &'a Peer, plugin: &'static str) -> Option<Self> {
        let what = format!("{plugin} of {}", peer.name);
        let sandbox = Sandbox::new(&what)?;
        let fabric = sandbox.fabric("fabric");
        let node = sandbox.plugged(&fabric, "node");
        let switch = match plugin {
            "ovs" => Some(Switch::on(&node, &what, "netdev")?),
            _ => None,
        };
        Some(Self {
            peer,
            plugin,
            node,
            sandbox,
            state: tempfile::tempdir().unwrap(),
            switch,
            pooled: Cell::new(false),
            made: Cell::new(0),
            pods: RefCell::default(),
        })
    }

    /// A pod without interfaces, and the configuration that would give it one. Nothing of other attachments is used, except
    /// that all are in one network and so share its addresses.
    pub(crate) fn attachment(&self, version: &str) -> Attachment {
        let nth = self.made.get() + 1;
        self.made.set(nth);
        let pod = self.sandbox.netns(&format!("pod{nth}"));
        self.pods.borrow_mut().push(name(&pod));
        let moves = matches!(self.plugin, "host-device" | "amd-host-device" | "sriov");
        let device = moves.then(|| self.device(nth));
        let mut config = self.config(version, nth, &pod, device.as_ref());
        let route = if config.get("ipam").is_some() {
            ("192.0.2.0/24".to_owned(), "10.77.0.1".to_owned())
        } else {
            let gateway = format!("{}.1", device::own_net(nth));
            (device::own_route(nth), gateway)
        };
        config["cniVersion"] = json!(version);
        config["name"] = json!("net");
        config["type"] = json!(self.plugin);
        Attachment {
            container: format!("container-{nth}"),
            ifname: "net1".to_owned(),
            pod,
            device,
            route,
            config,
            variables: BTreeMap::new(),
        }
    }

    /// From here on, devices with addresses of their own get some of the pool instead, or not.
    pub(crate) fn pool(&self, pooled: bool) {
        self.pooled.set(pooled);
    }

    fn config(&self, version: &str, nth: u32, pod: &Netns, device: Option<&Device>) -> Value {
        let ipam = json!({"type": "host-local", "dataDir": self.data(), "subnet": SUBNET,
            "routes": [{"dst": "192.0.2.0/24"}]});
        match self.plugin {
            "macvlan" | "ipvlan" => json!({"master": "eth1", "ipam": ipam}),
            "vlan" => json!({"master": "eth1", "vlanId": 100 + nth, "ipam": ipam}),
            "bridge" => json!({"bridge": "br1", "ipam": ipam}),
            "ovs" => json!({"bridge": "br1", "ipam": ipam}),
            "host-device" => json!({"device": device.map(|d| &d.name), "ipam": ipam}),
            "sriov" => json!({"deviceID": device.map(|d| &d.pci), "ipam": ipam}),
            "amd-host-device" if self.pooled.get() => {
                json!({"deviceID": device.map(|d| &d.pci), "ipam": ipam})
            }
            "amd-host-device" => json!({"deviceID": device.map(|d| &d.pci)}),
            "tuning" => {
                let prev = self.by_hand(version, nth, pod);
                json!({"mtu": 1400, "sysctl": {"net.ipv4.conf.IFNAME.arp_filter": "1"},
                    "dataDir": self.data(), "prevResult": prev})
            }
            "sbr" => json!({"prevResult": self.by_hand(version, nth, pod)}),
            "static" => json!({"ipam": {"type": "static", "routes": [{"dst": "192.0.2.0/24"}],
                "addresses": [{"address": format!("10.77.1.{nth}/24"), "gateway": "10.77.1.254"}]}}),
            "host-local" => json!({"ipam": ipam}),
            other => panic!("no configuration for {other}"),
        }
    }

    /// An interface as an earlier plugin of the list would have made it, and its result.
    fn by_hand(&self, version: &str, nth: u32, pod: &Netns) -> Value {
        let name = name(pod);
        self.node.batch(&format!(
            "link add hand{nth} type veth peer name net1 netns {name}\nlink set hand{nth} up\n"
        ));
        let shown = pod.batch(
            "link set net1 up\naddr add 10.77.2.2/24 dev net1\nroute add default via 10.77.2.1 dev net1\n\
             addr show dev net1\n",
        );
        let mac = shown[0][0]["address"].clone();
        if version < "0.3.0" {
            return json!({"cniVersion": version, "ip4": {"ip": "10.77.2.2/24", "gateway": "10.77.2.1",
                "routes": [{"dst": "0.0.0.0/0", "gw": "10.77.2.1"}]}, "dns": {"nameservers": ["192.0.2.53"]}});
        }
        let mut prev = json!({"cniVersion": version,
            "interfaces": [{"name": "net1", "mac": mac, "sandbox": pod.path()}],
            "ips": [{"interface": 0, "address": "10.77.2.2/24", "gateway": "10.77.2.1"}],
            "routes": [{"dst": "0.0.0.0/0", "gw": "10.77.2.1"}],
            "dns": {"nameservers": ["192.0.2.53"], "domain": "example"}});
        if version < "1.0.0" {
            prev["ips"][0]["version"] = json!("4");
        }
        if version >= "1.1.0" {
            prev["routes"][0]["mtu"] = json!(1400);
            prev["routes"][0]["priority"] = json!(10);
        }
        prev
    }

    /// Where state is.
    pub(crate) fn data(&self) -> PathBuf {
        self.state.path().join("data")
    }

    /// Where ours keeps what no key places.
    pub(crate) fn root(&self) -> PathBuf {
        self.state.path().join("root")
    }

    /// Calls the plugin as a runtime does.
    pub(crate) fn call(&self, verb: &str, attachment: &Attachment) -> Said {
        self.call_of(self.peer, self.plugin, verb, attachment)
    }

    /// The same with another implementation or another plugin on the same node.
    pub(crate) fn call_of(
        &self,
        peer: &Peer,
        plugin: &str,
        verb: &str,
        attachment: &Attachment,
    ) -> Said {
        let text = attachment.config.to_string();
        self.call_raw(peer, plugin, verb, attachment, &text)
    }

    /// The same with other bytes on stdin.
    pub(crate) fn call_raw(
        &self,
        peer: &Peer,
        plugin: &str,
        verb: &str,
        attachment: &Attachment,
        stdin: &str,
    ) -> Said {
        self.caller().call(peer, plugin, verb, attachment, stdin)
    }

    /// What it takes to call a plugin, for several threads at once.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            node: self.node.clone(),
            root: self.root(),
            variables: self.variables(),
        }
    }

    /// What every call has in its environment beyond the usual.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        self.switch
            .as_ref()
            .map(Switch::variables)
            .unwrap_or_default()
    }

    /// The ports of the switch; none without one.
    pub(crate) fn ports(&self) -> Vec<String> {
        let switch = self.switch.as_ref();
        switch.map_or_else(Vec::new, |switch| switch.ports_on(&self.node))
    }

    /// Addresses that the network holds, with whose they are.
    pub(crate) fn held(&self) -> BTreeMap<String, String> {
        let Ok(entries) = std::fs::read_dir(self.data().join("net")) else {
            return BTreeMap::new();
        };
        let paths = entries.map(|entry| entry.unwrap().path());
        let is_address = |path: &PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy();
            name.parse::<std::net::IpAddr>().is_ok()
        };
        let read = |path: PathBuf| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(path).unwrap())
        };
        paths.filter(is_address).map(read).collect()
    }

    /// Ends a pod's namespace before its DEL.
    pub(crate) fn kill(&self, attachment: &Attachment) {
        self.fall_back(attachment);
        let name = name(&attachment.pod);
        let output = Command::new("ip").args(["netns", "del", &name]).output();
        assert!(output.unwrap().status.success(), "{name} cannot be removed");
    }

    /// Makes the node as it was: no pods, no interfaces but its own, no state.
    pub(crate) fn sweep(&self) {
        let pods = self.pods.borrow_mut().drain(..).collect::<Vec<_>>();
        let dels = pods.iter().map(|pod| format!("netns del {pod}\n"));
        batch(&[], &dels.collect::<String>());
        if let Some(switch) = &self.switch {
            let ports = switch.ports_on(&self.node);
            let dels = ports.iter().flat_map(|port| ["--", "del-port", port]);
            let words: Vec<&str> = ["--no-wait"].into_iter().chain(dels).collect();
            if !ports.is_empty() {
                switch.ask_on(&self.node, &words);
            }
        }
        let links = self.node.links().into_iter().filter_map(|link| {
            let name = link["ifname"].as_str().unwrap();
            let own = self.switch.is_some() && (name == "br1" || name.starts_with("ovs-"));
            (name != "lo" && name != "eth1" && !own).then(|| format!("link del {name}\n"))
        });
        batch(&["-n", &name(&self.node)], &links.collect::<String>());
        for dir in [self.data(), self.root()] {
            let _ = std::fs::remove_dir_all(dir);
        }
    }
}

/// Several commands of one `ip`. Some are about what is gone already: a dead pod, the other end of a link that has just gone.
fn batch(options: &[&str], commands: &str) {
    if commands.is_empty() {
        return;
    }
    let mut ip = Command::new("ip")
        .args(options)
        .args(["-force", "-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let mut stdin = ip.stdin.take().unwrap();
    stdin.write_all(commands.as_bytes()).unwrap();
    drop(stdin);
    ip.wait().unwrap();
}

/// Calls plugins on a node.
pub(crate) struct Caller {
    node: Netns,
    root: PathBuf,
    variables: Vec<(&'static str, String)>,
}

impl Caller {
    pub(crate) fn call(
        &self,
        peer: &Peer,
        plugin: &str,
        verb: &str,
        attachment: &Attachment,
        stdin: &str,
    ) -> Said {
        let mut variables = BTreeMap::from([
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", attachment.container.clone()),
            ("CNI_IFNAME", attachment.ifname.clone()),
            ("CNI_NETNS", attachment.pod.path()),
            ("CNI_PATH", peer.dir.display().to_string()),
            ("MOOR_CNI_ROOT", self.root.display().to_string()),
        ]);
        variables.extend(self.variables.iter().cloned());
        variables.extend(attachment.variables.clone());
        variables.retain(|_, value| !value.is_empty());
        let variables: Vec<(&str, String)> = variables.into_iter().collect();
        let none: [&str; 0] = [];
        self.node
            .run_with(peer.program(plugin), &none, &variables, stdin)
    }
}

/// A namespace's name, as `ip netns` calls it.
pub(crate) fn name(netns: &Netns) -> String {
    name_of(&netns.path())
}

fn name_of(path: &str) -> String {
    path.rsplit('/').next().unwrap_or_default().to_owned()
}
