//! A node in a namespace, pods beside it, and programs that the plugins call: for tests that look at the kernel.
//!
//! ```text
//!  Stage::new ── node (where the plugin runs) ── pod("c1", config) ── add / del / check / gc
//! ```
//!
//! State is below a temporary `MOOR_CNI_ROOT`. Easy to get wrong: `nft` and Open vSwitch come from private directories,
//! with libraries of their own; wrappers in [`Tools`] set those for the one program and for nothing else.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mooring_testkit::{Netns, Said, Sandbox, component, script};
use serde_json::{Value, json};

use crate::conformance::bed::Shown as _;

/// Programs of private packages, in one directory for `PATH`.
pub(crate) struct Tools {
    dir: tempfile::TempDir,
    /// Lines of shell.
    variables: String,
}

impl Tools {
    /// `nft`, and iptables in its nftables form. None is a counted skip.
    pub(crate) fn nft(what: &str) -> Option<Self> {
        let libraries = ["libnftables1", "libnftnl11", "libjansson4"];
        let mut tools = Self::with(&libraries, what)?;
        tools.link(&component("nftables", what)?.join("usr/sbin/nft"), "nft");
        let iptables = component("iptables", what)?;
        let matches = iptables.join("usr/lib/x86_64-linux-gnu/xtables");
        tools.set("XTABLES_LIBDIR", &matches.display().to_string());
        let xtables = iptables.join("usr/sbin/xtables-nft-multi");
        for name in ["iptables", "iptables-save", "iptables-restore"] {
            tools.link(&xtables, name);
            tools.link(&xtables, &name.replacen("ip", "ip6", 1));
        }
        Some(tools)
    }

    /// Open vSwitch. None is a counted skip.
    pub(crate) fn ovs(what: &str) -> Option<Self> {
        let tools = Self::with(&["libxdp1", "libbpf1"], what)?;
        let common = component("openvswitch-common", what)?;
        let switch = component("openvswitch-switch", what)?;
        tools.link(&common.join("usr/bin/ovs-vsctl"), "ovs-vsctl");
        for (place, name) in [
            ("usr/bin/ovs-vsctl", "ovs-vsctl"),
            ("usr/bin/ovsdb-tool", "ovsdb-tool"),
            ("usr/bin/ovs-ofctl", "ovs-ofctl"),
            ("usr/sbin/ovsdb-server", "ovsdb-server"),
            ("usr/lib/openvswitch-switch/ovs-vswitchd", "ovs-vswitchd"),
        ] {
            let found = [&common, &switch].map(|dir| dir.join(place));
            if let Some(found) = found.iter().find(|path| path.is_file()) {
                tools.link(found, name);
            }
        }
        Some(tools)
    }

    fn with(libraries: &[&str], what: &str) -> Option<Self> {
        let mut path = String::new();
        for library in libraries {
            let place = component(library, what)?;
            for dir in ["usr/lib/x86_64-linux-gnu", "lib/x86_64-linux-gnu"] {
                let _ = write!(path, "{}:", place.join(dir).display());
            }
        }
        let mut tools = Self {
            dir: tempfile::tempdir().unwrap(),
            variables: String::new(),
        };
        tools.set("LD_LIBRARY_PATH", &path);
        Some(tools)
    }

    /// A variable for every program that is linked from here on.
    fn set(&mut self, name: &str, value: &str) {
        let _ = writeln!(self.variables, "export {name}={value}");
    }

    fn link(&self, program: &Path, name: &str) {
        let file = self.dir.path().join(name);
        // Its own name as argument zero: xtables is one program with many.
        let text = format!(
            "#!/bin/bash\n{}exec -a {name} {} \"$@\"\n",
            self.variables,
            program.display()
        );
        script(&file, &text);
    }

    /// For `PATH`: these first.
    pub(crate) fn path(&self) -> String {
        let rest = std::env::var("PATH").unwrap_or_default();
        format!("{}:{rest}", self.dir.path().display())
    }
}

/// A node, its state, and the sandbox that ends with it.
pub(crate) struct Stage {
    pub(crate) node: Netns,
    pub(crate) sandbox: Sandbox,
    state: tempfile::TempDir,
    tools: Option<Tools>,
    /// Set for every call.
    pub(crate) variables: Vec<(&'static str, String)>,
}

impl Stage {
    /// None is a counted skip.
    pub(crate) fn new(what: &str) -> Option<Self> {
        let sandbox = Sandbox::new(what)?;
        Some(Self {
            node: sandbox.netns("node"),
            sandbox,
            state: tempfile::tempdir().unwrap(),
            tools: None,
            variables: Vec::new(),
        })
    }

    pub(crate) fn with(mut self, tools: Tools) -> Self {
        self.tools = Some(tools);
        self
    }

    pub(crate) fn root(&self) -> &Path {
        self.state.path()
    }

    /// Runs a program of the tools on the node.
    #[track_caller]
    pub(crate) fn run(&self, program: &str, words: &[&str]) -> Said {
        let path = self.tools.as_ref().map(Tools::path);
        let mut variables: Vec<(&str, String)> = path.map(|p| ("PATH", p)).into_iter().collect();
        variables.extend(self.variables.iter().cloned());
        self.node.run_with(program, words, &variables, "")
    }

    /// What nftables has, as text; empty without a rule.
    #[track_caller]
    pub(crate) fn rules(&self) -> String {
        self.run("nft", &["-j", "list", "ruleset"]).ok().to_owned()
    }

    /// A pod with a configuration; `type` and `name` may be left out of it where they are `bridge` and `net`.
    pub(crate) fn pod(&self, container: &str, config: Value) -> Pod {
        let pod = self.sandbox.netns(container);
        self.pod_in(pod, container, config)
    }

    /// The same in a namespace that is there.
    pub(crate) fn pod_in(&self, netns: Netns, container: &str, config: Value) -> Pod {
        let mut all = json!({"cniVersion": "1.1.0", "name": "net", "type": "bridge"});
        for (key, value) in config.as_object().unwrap() {
            all[key] = value.clone();
        }
        let mut variables: BTreeMap<_, _> = self.variables.iter().cloned().collect();
        if let Some(tools) = &self.tools {
            variables.insert("PATH", tools.path());
        }
        Pod {
            node: self.node.clone(),
            root: self.root().to_owned(),
            container: container.to_owned(),
            ifname: "net1".to_owned(),
            netns,
            config: all,
            variables,
            program: PathBuf::from(env!("CARGO_BIN_EXE_moor-cni")),
            plugins: PathBuf::from("/nonexistent"),
        }
    }

    /// How many addresses host-local holds for the network.
    pub(crate) fn held(&self) -> usize {
        let dir = self.root().join("var/lib/cni/networks/net");
        let entries = std::fs::read_dir(dir).map(|d| d.filter_map(Result::ok).collect::<Vec<_>>());
        let names = entries
            .unwrap_or_default()
            .into_iter()
            .map(|e| e.file_name());
        let is_address =
            |n: &std::ffi::OsString| n.to_string_lossy().parse::<std::net::IpAddr>().is_ok();
        names.filter(is_address).count()
    }

    /// Pairs on the node.
    pub(crate) fn pairs(&self) -> Vec<String> {
        let links = self.node.links();
        let veths = links
            .iter()
            .filter(|l| l["linkinfo"]["info_kind"] == "veth");
        veths
            .map(|l| l["ifname"].as_str().unwrap().to_owned())
            .collect()
    }
}

/// One attachment.
#[derive(Clone)]
pub(crate) struct Pod {
    node: Netns,
    root: PathBuf,
    pub(crate) container: String,
    pub(crate) ifname: String,
    pub(crate) netns: Netns,
    pub(crate) config: Value,
    pub(crate) variables: BTreeMap<&'static str, String>,
    program: PathBuf,
    plugins: PathBuf,
}

impl Pod {
    /// The same with another value in the configuration.
    pub(crate) fn with(mut self, key: &str, value: Value) -> Self {
        self.config[key] = value;
        self
    }

    /// The same served by another implementation's directory of plugins.
    pub(crate) fn served_by(mut self, dir: &Path) -> Self {
        self.program = dir.join(self.config["type"].as_str().unwrap());
        dir.clone_into(&mut self.plugins);
        // Ours keeps its addresses below the root; the others are told to.
        let data = self.root.join("var/lib/cni/networks");
        if self.config["ipam"]["type"] == "host-local" {
            self.config["ipam"]["dataDir"] = json!(data);
        }
        if self.config["type"] == "tuning" {
            self.config["dataDir"] = json!(self.root.join("run/cni/tuning"));
        }
        self
    }

    pub(crate) fn call(&self, verb: &str) -> Said {
        self.call_with(verb, &[])
    }

    pub(crate) fn call_with(&self, verb: &str, more: &[(&'static str, String)]) -> Said {
        let mut variables = BTreeMap::from([
            ("CNI_COMMAND", verb.to_owned()),
            ("CNI_CONTAINERID", self.container.clone()),
            ("CNI_IFNAME", self.ifname.clone()),
            ("CNI_NETNS", self.netns.path()),
            ("CNI_PATH", self.plugins.display().to_string()),
            ("MOOR_CNI_ROOT", self.root.display().to_string()),
        ]);
        variables.extend(self.variables.clone());
        variables.extend(more.iter().cloned());
        variables.retain(|_, value| !value.is_empty());
        let variables: Vec<(&str, String)> = variables.into_iter().collect();
        let none: [&str; 0] = [];
        let text = self.config.to_string();
        self.node.run_with(&self.program, &none, &variables, &text)
    }

    /// ADD, which must succeed; gives the result.
    #[track_caller]
    pub(crate) fn add(&self) -> Value {
        let said = self.call("ADD");
        serde_json::from_str(said.ok()).unwrap_or_else(|e| panic!("{e}: {said:?}"))
    }

    /// DEL, which must succeed.
    #[track_caller]
    pub(crate) fn del(&self) {
        let said = self.call("DEL");
        assert_eq!(said.ok(), "", "{said:?}");
    }

    /// DEL as after a reboot of the runtime: no namespace, no result.
    #[track_caller]
    pub(crate) fn del_blind(&self) {
        let said = self.call_with("DEL", &[("CNI_NETNS", String::new())]);
        said.ok();
    }

    /// CHECK after an ADD with that result.
    pub(crate) fn check(&self, result: &Value) -> Said {
        let mut again = self.clone();
        again.config["prevResult"] = result.clone();
        again.call("CHECK")
    }

    /// GC of the network with these containers, each with this interface's name.
    #[track_caller]
    pub(crate) fn gc(&self, valid: &[&str]) {
        let mut again = self.clone();
        let list: Vec<Value> = valid
            .iter()
            .map(|id| json!({"containerID": id, "ifname": self.ifname}))
            .collect();
        again.config["cni.dev/valid-attachments"] = json!(list);
        again.call("GC").ok();
    }

    /// A failure; gives its code and its text.
    #[track_caller]
    pub(crate) fn refuse(&self, verb: &str) -> (u64, String) {
        let said = self.call(verb);
        let error: Value =
            serde_json::from_str(&said.stdout).unwrap_or_else(|e| panic!("{e}: {said:?}"));
        assert_ne!(said.code, Some(0), "{said:?}");
        let text = format!("{} {}", error["msg"], error["details"]);
        (error["code"].as_u64().unwrap(), text)
    }

    /// The names of the places at which a call of this verb may be killed.
    pub(crate) fn points(&self, verb: &str) -> Vec<String> {
        let file = self.root.join(format!("points-{}-{verb}", self.container));
        let said = self.call_with(verb, &[("MOOR_CNI_POINTS", file.display().to_string())]);
        said.ok();
        let text = std::fs::read_to_string(&file).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }

    /// A call that is killed at the nth point.
    pub(crate) fn killed(&self, verb: &str, nth: usize) {
        let said = self.call_with(verb, &[("MOOR_CNI_DIE_AT", (nth + 1).to_string())]);
        // `timeout` reports a signal as 128 and its number.
        assert!(
            matches!(said.code, None | Some(137)),
            "not killed at {nth}: {said:?}"
        );
    }

    /// A call that is killed at a point of that name; says whether it came there.
    pub(crate) fn killed_at(&self, verb: &str, point: &str) -> bool {
        let said = self.call_with(verb, &[("MOOR_CNI_DIE_AT", point.to_owned())]);
        matches!(said.code, None | Some(137))
    }

    /// Ends the namespace.
    pub(crate) fn end(&self) {
        let path = self.netns.path();
        let name = path.rsplit('/').next().unwrap();
        let gone = std::process::Command::new("ip")
            .args(["netns", "del", name])
            .output();
        assert!(gone.unwrap().status.success(), "{name}");
    }

    /// The interface as `ip` shows it.
    pub(crate) fn link(&self) -> Option<Value> {
        self.netns.link(&self.ifname)
    }

    pub(crate) fn addresses(&self) -> Vec<String> {
        self.netns.addresses(&self.ifname)
    }
}
