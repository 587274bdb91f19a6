//! Where state is kept: every directory that a plugin reads or writes on its own, in one place.
//!
//! Tests put all of it under `MOOR_CNI_ROOT`. Easy to get wrong: keys such as host-local's `dataDir` still
//! win, and the runtime's namespace paths are never moved.

use std::path::{Path, PathBuf};

/// The variable that moves all state under one directory.
pub const ROOT: &str = "MOOR_CNI_ROOT";

/// Directories of state.
#[derive(Clone, Debug)]
pub struct Paths {
    /// `/var/lib/cni`: what outlives a reboot, in the reference plugins' formats.
    pub data: PathBuf,
    /// `/run/cni`: what a reboot ends.
    pub run: PathBuf,
    /// `/run/cni/moor`: our own records (devices, node VLANs, shims) and locks. A reboot ends what they speak of.
    pub own: PathBuf,
    /// `/etc/cni`: allow lists.
    pub etc: PathBuf,
    /// `/sys`; under the root only where a test has put one there.
    pub sys: PathBuf,
    /// `/proc`; likewise.
    pub proc: PathBuf,
    /// Where the runtime's namespace paths begin: `/`, but for who looks at a node from a pod.
    pub node: PathBuf,
}

impl Paths {
    /// The compiled defaults, or all under `MOOR_CNI_ROOT`.
    pub fn from_env() -> Self {
        let root = std::env::var_os(ROOT).filter(|root| !root.is_empty());
        Self::under(Path::new(root.as_deref().unwrap_or("/".as_ref())))
    }

    /// All of it under a directory.
    pub fn under(root: &Path) -> Self {
        let kernel = |name: &str| {
            let own = root.join(name);
            if own.is_dir() {
                own
            } else {
                Path::new("/").join(name)
            }
        };
        let data = root.join("var/lib/cni");
        let run = root.join("run/cni");
        Self {
            own: run.join("moor"),
            etc: root.join("etc/cni"),
            sys: kernel("sys"),
            proc: kernel("proc"),
            data,
            run,
            node: PathBuf::from("/"),
        }
    }

    /// Those of a node whose root is seen at a directory, from a pod.
    pub fn of_node_at(root: &Path) -> Self {
        Self {
            node: root.to_owned(),
            ..Self::under(root)
        }
    }

    /// Whether this is the node itself.
    pub fn is_home(&self) -> bool {
        self.node == Path::new("/")
    }
}
