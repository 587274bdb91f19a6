//! A directory of CNI plugins: ours, or one of those that people run today.

use std::path::{Path, PathBuf};

use mooring_testkit::component;

/// Plugins of one implementation, each a program of its own name.
#[derive(Debug)]
pub(crate) struct Peer {
    /// As the documents call it.
    pub(crate) name: &'static str,
    pub(crate) dir: PathBuf,
    _made: Option<tempfile::TempDir>,
}

/// The plugins that ours replace.
const NAMES: [&str; 9] = [
    "bridge",
    "host-device",
    "host-local",
    "ipvlan",
    "macvlan",
    "sbr",
    "static",
    "tuning",
    "vlan",
];

/// Those that replace what nobody here has.
const OURS: [&str; 3] = ["amd-host-device", "ovs", "sriov"];

impl Peer {
    /// The built program under the names of its plugins.
    pub(crate) fn ours() -> Self {
        let names = NAMES.into_iter().chain(OURS);
        let links: Vec<(&str, PathBuf)> = names.map(|name| (name, program())).collect();
        Self::linked("moor-cni", &links)
    }

    /// The current release, built by `cargo xtask setup`.
    pub(crate) fn reference(what: &str) -> Option<Self> {
        let dir = component("cni-plugins", what)?.join("bin");
        Some(Self {
            name: "reference 1.9.1",
            dir,
            _made: None,
        })
    }

    /// What Debian has.
    pub(crate) fn debian(what: &str) -> Option<Self> {
        let dir = component("containernetworking-plugins", what)?.join("usr/lib/cni");
        Some(Self {
            name: "Debian 1.1.1",
            dir,
            _made: None,
        })
    }

    /// The plugins of one implementation with some of another: what a node has in the middle of a change.
    pub(crate) fn mixed(name: &'static str, base: &Self, other: &Self, taken: &[&str]) -> Self {
        let from = |plugin: &&'static str| {
            let peer = if taken.contains(plugin) { other } else { base };
            (*plugin, peer.program(plugin))
        };
        let links: Vec<(&str, PathBuf)> = NAMES.iter().map(from).collect();
        Self::linked(name, &links)
    }

    fn linked(name: &'static str, links: &[(&str, PathBuf)]) -> Self {
        let made = tempfile::tempdir().unwrap();
        for (plugin, target) in links {
            // Through every link to the file, but never through ours: its own name says which plugin it is.
            let target = match target.canonicalize() {
                Ok(real) if !is_ours(&real) => real,
                _ => program(),
            };
            std::os::unix::fs::symlink(target, made.path().join(plugin)).unwrap();
        }
        Self {
            name,
            dir: made.path().to_owned(),
            _made: Some(made),
        }
    }

    /// One plugin's program.
    pub(crate) fn program(&self, plugin: &str) -> PathBuf {
        self.dir.join(plugin)
    }
}

fn is_ours(path: &Path) -> bool {
    path.file_name() == program().file_name()
}

fn program() -> PathBuf {
    PathBuf::from(env!("CARGO_BIN_EXE_moor-cni"))
}
