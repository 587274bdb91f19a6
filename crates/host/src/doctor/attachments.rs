//! The interfaces that a runtime made, from the cache that libcni keeps: one file per network, container and interface.
//!
//! Easy to get wrong: the cache is the runtime's. It is read here and never written.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::check::Verdict;
use crate::foreign::libcni::Cached;
use crate::{Life, Paths};

/// One interface of one container.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Attachment {
    /// The network's name.
    pub network: String,
    /// The container.
    pub container: String,
    /// The interface's name in it.
    pub ifname: String,
    /// Its namespace.
    pub netns: PathBuf,
    /// Its addresses, as the plugin said.
    pub addresses: Vec<String>,
    /// Whether it is there.
    #[serde(flatten)]
    pub life: Life,
    /// What CHECK said, where it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verdict: Option<Verdict>,
    #[serde(skip)]
    pub(super) cached: Cached,
}

/// All of a directory, in order; and the files that say nothing.
pub(super) fn read(paths: &Paths) -> (Vec<Attachment>, Vec<PathBuf>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(paths.data.join("results"))
        .into_iter()
        .flatten()
        .flatten();
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    for path in files {
        let bytes = fs::read(&path).unwrap_or_default();
        match Cached::parse(&bytes) {
            Some(cached) => found.push(attachment(cached, &paths.node)),
            None => unread.push(path),
        }
    }
    (found, unread)
}

fn attachment(cached: Cached, node: &Path) -> Attachment {
    Attachment {
        network: cached.network_name.clone(),
        container: cached.container_id.clone(),
        ifname: cached.if_name.clone(),
        netns: cached.netns.clone(),
        addresses: cached.addresses(),
        // The cache says neither boot nor inode: only a namespace that is not there proves anything.
        life: Life::of(node, &cached.netns, None, None, ""),
        verdict: None,
        cached,
    }
}

impl fmt::Display for Attachment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let short: String = self.container.chars().take(12).collect();
        write!(f, "{} of {short} (network {})", self.ifname, self.network)
    }
}
