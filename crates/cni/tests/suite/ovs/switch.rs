//! Open vSwitch in the node's namespace: database and daemon of its own, ended with the test.

use std::path::PathBuf;

use mooring_testkit::{Netns, Said};

use crate::stage::{Stage, Tools};

/// A running switch with the bridge `br1`.
pub(crate) struct Switch {
    dir: tempfile::TempDir,
    tools: Tools,
}

impl Switch {
    /// A node with a switch that forwards in user space. None is a counted skip.
    pub(crate) fn stage(what: &str) -> Option<(Stage, Self)> {
        Self::with(what, "netdev")
    }

    /// The same with another way to forward.
    pub(super) fn with(what: &str, datapath: &str) -> Option<(Stage, Self)> {
        let mut stage = Stage::new(what)?;
        let switch = Self::on(&stage.node, what, datapath)?;
        stage.variables = switch.variables();
        Some((stage, switch))
    }

    /// Starts one on a node. None is a counted skip.
    pub(crate) fn on(node: &Netns, what: &str, datapath: &str) -> Option<Self> {
        let tools = Tools::ovs(what)?;
        let schema = mooring_testkit::component("openvswitch-switch", what)?;
        let schema = schema.join("usr/share/openvswitch/vswitch.ovsschema");
        let switch = Self {
            dir: tempfile::tempdir().unwrap(),
            tools,
        };
        let file = |name: &str| switch.dir.path().join(name).display().to_string();
        let (base, socket) = (file("conf.db"), format!("unix:{}", file("db.sock")));
        let must = |program: &str, words: &[&str]| switch.run(node, program, words).ok().to_owned();
        must(
            "ovsdb-tool",
            &["create", &base, &schema.display().to_string()],
        );
        let daemon = ["--detach", "--no-chdir"];
        let own = |name: &str| {
            [
                format!("--pidfile={}", file(&format!("{name}.pid"))),
                format!("--log-file={}", file(&format!("{name}.log"))),
            ]
        };
        let words = own("db");
        must(
            "ovsdb-server",
            &[
                &base,
                &format!("--remote=p{socket}"),
                &words[0],
                &words[1],
                daemon[0],
                daemon[1],
            ],
        );
        must("ovs-vsctl", &["--no-wait", "init"]);
        let words = own("switch");
        await_processors();
        must(
            "ovs-vswitchd",
            &[&socket, &words[0], &words[1], daemon[0], daemon[1]],
        );
        let datapath = format!("datapath_type={datapath}");
        must(
            "ovs-vsctl",
            &[
                "--timeout=20",
                "add-br",
                "br1",
                "--",
                "set",
                "Bridge",
                "br1",
                &datapath,
            ],
        );
        Some(switch)
    }

    /// What whoever calls its programs has in the environment.
    pub(crate) fn variables(&self) -> Vec<(&'static str, String)> {
        let dir = self.dir.path().display().to_string();
        vec![
            ("PATH", self.tools.path()),
            ("OVS_RUNDIR", dir.clone()),
            ("OVS_DBDIR", dir),
        ]
    }

    #[track_caller]
    fn run(&self, node: &Netns, program: &str, words: &[&str]) -> Said {
        node.run_with(program, words, &self.variables(), "")
    }

    /// What `ovs-vsctl` answers.
    #[track_caller]
    pub(super) fn ask(&self, stage: &Stage, words: &[&str]) -> String {
        self.ask_on(&stage.node, words)
    }

    /// The same on a node that is no stage's.
    #[track_caller]
    pub(crate) fn ask_on(&self, node: &Netns, words: &[&str]) -> String {
        let database = format!("--db=unix:{}", self.dir.path().join("db.sock").display());
        let all = [&["--timeout=10", &*database], words].concat();
        self.run(node, "ovs-vsctl", &all).ok().to_owned()
    }

    /// The ports of `br1`.
    #[track_caller]
    pub(crate) fn ports(&self, stage: &Stage) -> Vec<String> {
        self.ports_on(&stage.node)
    }

    /// The same on a node that is no stage's.
    #[track_caller]
    pub(crate) fn ports_on(&self, node: &Netns) -> Vec<String> {
        let text = self.ask_on(node, &["list-ports", "br1"]);
        text.lines().map(str::to_owned).collect()
    }

    /// What the daemon wrote, for a failed test.
    pub(super) fn log(&self) -> String {
        std::fs::read_to_string(self.dir.path().join("switch.log")).unwrap_or_default()
    }

    /// Ends the daemon, as a restart of it or of the node would.
    pub(super) fn end(&self, name: &str) {
        let file: PathBuf = self.dir.path().join(format!("{name}.pid"));
        if let Ok(text) = std::fs::read_to_string(&file) {
            let _ = std::process::Command::new("kill")
                .args(["-9", text.trim()])
                .output();
            let _ = std::fs::remove_file(file);
        }
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        self.end("switch");
        self.end("db");
    }
}

/// In the first ten seconds after boot the switch believes that there is no processor (it remembers a count from the
/// beginning of time), and serves nobody.
fn await_processors() {
    let uptime = || {
        let text = std::fs::read_to_string("/proc/uptime").unwrap();
        text.split('.').next().unwrap().parse::<u32>().unwrap()
    };
    for _ in 0..100 {
        if uptime() > 10 {
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    panic!("up for {} s", uptime());
}
