//! Decides whether the owner of something lives, from its namespace and its boot.
//!
//! Called by the notes of shared links and by the doctor. Easy to get wrong: what cannot be looked at is not known to be gone.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::{Netns, NetnsId};

/// Whether somebody lives.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "life", rename_all = "camelCase")]
pub enum Life {
    /// Its namespace is there.
    Alive,
    /// It ended, and cannot come back.
    Gone {
        /// How that is known, as the end of a sentence.
        why: String,
    },
    /// Nothing says either.
    Unknown,
}

impl Life {
    pub(crate) fn gone(why: &str) -> Self {
        Self::Gone {
            why: why.to_owned(),
        }
    }

    /// Of whoever has this namespace. `id` and `boot` are those in which it began, where they are known; `node` is where the
    /// node's paths begin.
    pub(crate) fn of(
        node: &Path,
        netns: &Path,
        id: Option<NetnsId>,
        boot: Option<&str>,
        this_boot: &str,
    ) -> Self {
        if boot.is_some_and(|boot| boot != this_boot) {
            return Self::gone("the node was restarted since");
        }
        let is_home = node == Path::new("/");
        let path = if is_home {
            netns.to_owned()
        } else {
            below(node, netns)
        };
        match Netns::open(&path) {
            Ok(now) if id.is_none_or(|id| id == now.id()) => Self::Alive,
            Ok(_) if is_home || is_below(node, &path) => {
                Self::gone("its namespace is another one now")
            }
            Err(error) if error.is_gone() && (is_home || is_missing(node, &path)) => {
                Self::gone("its namespace is gone")
            }
            _ => Self::Unknown,
        }
    }
}

/// Where a path of the node is seen. `/var/run` is a link that leads out of there, to our own `/run`.
fn below(node: &Path, path: &Path) -> PathBuf {
    let path = match path.strip_prefix("/var/run") {
        Ok(rest) => Path::new("run").join(rest),
        Err(_) => path.strip_prefix("/").unwrap_or(path).to_owned(),
    };
    node.join(path)
}

/// Whether the directory of a file is the node's, and not our own by some link.
fn is_below(node: &Path, path: &Path) -> bool {
    let directory = path.parent().and_then(|dir| dir.canonicalize().ok());
    let node = node.canonicalize().ok();
    directory.is_some_and(|dir| node.is_some_and(|node| dir.starts_with(node)))
}

/// Whether the node has no such file any more. One that is there and is no namespace proves nothing: what the node mounts
/// on it later than we began is not seen here.
fn is_missing(node: &Path, path: &Path) -> bool {
    is_below(node, path) && !path.exists()
}

impl fmt::Display for Life {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Alive => "lives",
            Self::Gone { .. } => "gone",
            Self::Unknown => "not known",
        })
    }
}

#[cfg(test)]
mod tests {
    use mooring_testkit::Sandbox;

    use super::*;

    #[test]
    fn from_a_pod_only_a_file_that_the_node_removed_proves_an_end() {
        let root = tempfile::tempdir().unwrap();
        let node = root.path();
        let of = |path: &str| Life::of(node, Path::new(path), None, Some("b"), "b");
        let gone = Life::gone("its namespace is gone");
        // The node's directory is not to be seen at all, or only through a link that leads elsewhere.
        assert_eq!(of("/run/netns/a"), Life::Unknown);
        std::os::unix::fs::symlink("/tmp", node.join("mnt")).unwrap();
        assert_eq!(of("/mnt/no-such-namespace"), Life::Unknown);
        std::fs::create_dir_all(node.join("run/netns")).unwrap();
        assert_eq!(of("/run/netns/a"), gone);
        assert_eq!(of("/var/run/netns/a"), gone);
        // The mount over it did not come through.
        std::fs::File::create(node.join("run/netns/a")).unwrap();
        assert_eq!(of("/run/netns/a"), Life::Unknown);
        assert_eq!(of("/proc/1/ns/net"), Life::Unknown);
        let before = Life::of(node, Path::new("/run/netns/a"), None, Some("b"), "c");
        assert_eq!(before, Life::gone("the node was restarted since"));
        // On the node itself both are ends.
        let path = node.join("run/netns/a");
        assert_eq!(Life::of(Path::new("/"), &path, None, None, ""), gone);
    }

    #[test]
    fn from_a_pod_a_namespace_that_is_seen_lives_or_is_another() {
        let Some(sandbox) = Sandbox::new("a node that is looked at from a pod") else {
            return;
        };
        let pod = sandbox.netns("pod");
        let own = Netns::open(pod.path()).unwrap().id();
        let other = Netns::open("/proc/self/ns/net").unwrap().id();
        // A root that is not called so, with the same directories in it.
        let root = tempfile::tempdir().unwrap();
        let node = root.path().join("host");
        std::os::unix::fs::symlink("/", &node).unwrap();
        let of = |id| Life::of(&node, pod.path().as_ref(), Some(id), None, "");
        assert_eq!(of(own), Life::Alive);
        assert_eq!(of(other), Life::gone("its namespace is another one now"));
    }
}
