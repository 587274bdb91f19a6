//! A node and its pods as namespaces, and calls of plugins in them.

use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use serde_json::{Value, json};

use super::Case;
use crate::dist::{BASE, MOOR_CNI};
use crate::setup;
use crate::shell::output;

/// The variable that tells the program inside which namespaces are its own.
pub(super) const NAME: &str = "MOOR_BENCH_NODE";

/// How many pods there are: so many are attached at once.
pub(super) const PODS: usize = 16;

/// Namespaces that end with this value.
pub(super) struct Namespaces {
    prefix: String,
}

impl Namespaces {
    /// A node with `eth1` on a bridge elsewhere, a bridge `br1`, devices `dev0` …, and empty pods.
    pub(super) fn make() -> Result<Self> {
        let made = Self {
            prefix: format!("bench-{}", std::process::id()),
        };
        let (node, fabric) = (made.name(), format!("{}-fabric", made.prefix));
        for name in [&node, &fabric] {
            ip(&format!("netns add {name}"))?;
            ip(&format!("-n {name} link set lo up"))?;
        }
        ip(&format!("-n {fabric} link add br0 type bridge"))?;
        ip(&format!("-n {fabric} link set br0 up"))?;
        ip(&format!(
            "-n {fabric} link add port type veth peer name eth1 netns {node}"
        ))?;
        ip(&format!("-n {fabric} link set port master br0 up"))?;
        ip(&format!("-n {node} link set eth1 up"))?;
        ip(&format!("-n {node} link add br1 type bridge"))?;
        ip(&format!("-n {node} link set br1 up"))?;
        for nth in 0..PODS {
            ip(&format!("netns add {}-pod{nth}", made.prefix))?;
            ip(&format!(
                "-n {node} link add dev{nth} type veth peer name peer{nth}"
            ))?;
            ip(&format!("-n {node} link set peer{nth} up"))?;
        }
        Ok(made)
    }

    pub(super) fn prefix(&self) -> &str {
        &self.prefix
    }

    pub(super) fn name(&self) -> String {
        format!("{}-node", self.prefix)
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        let pods = (0..PODS).map(|nth| format!("pod{nth}"));
        for word in pods.chain(["node".to_owned(), "fabric".to_owned()]) {
            let _ = ip(&format!("netns del {}-{word}", self.prefix));
        }
    }
}

fn ip(words: &str) -> Result<String> {
    output(Command::new("ip").args(words.split_whitespace()))
}

/// Whose program is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Who {
    Ours,
    Reference,
    Base,
}

impl Who {
    pub(super) const ALL: [Self; 3] = [Self::Ours, Self::Reference, Self::Base];
}

impl std::fmt::Display for Who {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ours => "ours",
            Self::Reference => "reference 1.9.1",
            Self::Base => "base",
        })
    }
}

/// The node, from inside.
pub(super) struct Node {
    prefix: String,
    state: tempfile::TempDir,
    reference: PathBuf,
    base: PathBuf,
}

/// One attachment: a pod, and what the runtime knows about it.
pub(super) struct Attachment {
    case: Case,
    pod: usize,
    config: Value,
}

impl Node {
    pub(super) fn new() -> Result<Self> {
        let prefix = std::env::var(NAME).context("the bench starts this itself")?;
        let state = tempfile::tempdir().context("cannot make a directory")?;
        let ours = state.path().join("ours");
        fs::create_dir(&ours)?;
        let program = MOOR_CNI.place();
        for name in ["macvlan", "bridge", "host-device", "static", "host-local"] {
            symlink(&program, ours.join(name))?;
        }
        // In memory, as a node has it; this process has its mounts to itself.
        let run = state.path().join("root/run");
        fs::create_dir_all(&run)?;
        output(
            Command::new("mount")
                .args(["-t", "tmpfs", "tmpfs"])
                .arg(&run),
        )?;
        Ok(Self {
            prefix,
            reference: setup::place("cni-plugins")?.join("bin"),
            base: BASE.place(),
            state,
        })
    }

    /// The directory of plugins.
    pub(super) fn plugins(&self, who: Who) -> PathBuf {
        match who {
            Who::Reference => self.reference.clone(),
            _ => self.state.path().join("ours"),
        }
    }

    pub(super) fn program(&self, who: Who, plugin: &str) -> PathBuf {
        self.plugins(who).join(plugin)
    }

    /// A directory of its own in the state.
    pub(super) fn place(&self, name: &str) -> PathBuf {
        self.state.path().join(name)
    }

    pub(super) fn attachment(&self, who: Who, case: Case, pod: usize) -> Attachment {
        let Case { plugin, ipam, v6 } = case;
        let (net, all) = if v6 {
            ("fd00:200::", "::/0")
        } else {
            ("10.200.0.", "0.0.0.0/0")
        };
        let length = if v6 { 64 } else { 24 };
        let (address, gateway) = (format!("{net}{}/{length}", 10 + pod), format!("{net}1"));
        let mut config = json!({"cniVersion": "1.0.0", "name": "bench", "type": plugin});
        config["ipam"] = if ipam == "static" {
            json!({"type": "static", "addresses": [{"address": address, "gateway": gateway}], "routes": [{"dst": all}]})
        } else {
            let subnet = if v6 { "fd00:200::/64" } else { "10.200.0.0/24" };
            let dir = self.place(&format!(
                "data-{}",
                if who == Who::Ours {
                    "ours"
                } else {
                    "reference"
                }
            ));
            json!({"type": "host-local", "dataDir": dir, "ranges": [[{"subnet": subnet}]], "routes": [{"dst": all}]})
        };
        match plugin {
            "macvlan" => config["master"] = json!("eth1"),
            "bridge" => config["bridge"] = json!("br1"),
            _ => config["device"] = json!(format!("dev{pod}")),
        }
        Attachment { case, pod, config }
    }

    /// A command that makes the call, without its stdin; `input` is what belongs there.
    pub(super) fn command(
        &self,
        who: Who,
        verb: &str,
        attachment: &Attachment,
    ) -> Result<(Command, File)> {
        let Attachment { case, pod, config } = attachment;
        let netns = format!("/run/netns/{}-pod{pod}", self.prefix);
        let file = self.place(&format!("stdin-{pod}"));
        fs::write(&file, config.to_string())?;
        let input = File::open(&file)?;
        if who == Who::Base {
            let mut command = Command::new(&self.base);
            let link = match case.plugin {
                "macvlan" => "eth1".to_owned(),
                "bridge" => "br1".to_owned(),
                _ => format!("dev{pod}"),
            };
            let (address, gateway) = if case.v6 {
                (format!("fd00:200::{}/64", 10 + pod), "fd00:200::1")
            } else {
                (format!("10.200.0.{}/24", 10 + pod), "10.200.0.1")
            };
            command.args([
                case.plugin,
                &verb.to_lowercase(),
                &netns,
                "net1",
                &link,
                &address,
                gateway,
            ]);
            return Ok((command, input));
        }
        let mut command = Command::new(self.program(who, case.plugin));
        command
            .env_clear()
            .env("CNI_COMMAND", verb)
            .env("CNI_CONTAINERID", format!("container-{pod}"))
            .env("CNI_IFNAME", "net1")
            .env("CNI_NETNS", netns)
            .env("CNI_PATH", self.plugins(who))
            .env("MOOR_CNI_ROOT", self.place("root"));
        Ok((command, input))
    }

    /// Makes the call, and says how long it took from start to exit.
    pub(super) fn call(
        &self,
        who: Who,
        verb: &str,
        attachment: &mut Attachment,
    ) -> Result<Duration> {
        let (mut command, input) = self.command(who, verb, attachment)?;
        command
            .stdin(input)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let begin = Instant::now();
        let output = command.output().context("cannot start a plugin")?;
        let took = begin.elapsed();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        let complaint = String::from_utf8_lossy(&output.stderr).into_owned();
        ensure!(
            output.status.success(),
            "{verb} of {who} for {}: {said} {complaint}",
            attachment.case
        );
        if verb == "ADD" && who != Who::Base {
            attachment.config["prevResult"] = serde_json::from_str(&said).context("no result")?;
        }
        Ok(took)
    }
}
