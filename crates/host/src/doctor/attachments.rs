//! The interfaces that a runtime made, from the cache that libcni keeps: one file per network, container and interface.
//!
//! Easy to get wrong: the cache is the runtime's. It is read here and never written.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::check::Verdict;
use crate::Life;

/// How libcni names the form of its files.
const KIND: &str = "cniCacheV1";

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

/// The file, as far as it is read.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Cached {
    kind: String,
    container_id: String,
    pub(super) config: String,
    if_name: String,
    network_name: String,
    netns: PathBuf,
    pub(super) cni_args: Vec<(String, String)>,
    pub(super) capability_args: serde_json::Map<String, Value>,
    pub(super) result: Value,
}

/// All of a directory, in order; and the files that say nothing.
pub(super) fn read(dir: &Path) -> (Vec<Attachment>, Vec<PathBuf>) {
    let (mut found, mut unread) = (Vec::new(), Vec::new());
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|e| e.path()).filter(|p| p.is_file()).collect();
    files.sort();
    for path in files {
        let bytes = fs::read(&path).unwrap_or_default();
        let cached = serde_json::from_slice::<Cached>(&bytes);
        match cached.ok().filter(|c| c.kind == KIND) {
            Some(cached) => found.push(attachment(cached)),
            None => unread.push(path),
        }
    }
    (found, unread)
}

fn attachment(cached: Cached) -> Attachment {
    let ips = cached.result.get("ips").and_then(Value::as_array);
    let text = |ip: &Value| Some(ip.get("address")?.as_str()?.to_owned());
    let addresses = ips.into_iter().flatten().filter_map(text).collect();
    Attachment {
        network: cached.network_name.clone(),
        container: cached.container_id.clone(),
        ifname: cached.if_name.clone(),
        netns: cached.netns.clone(),
        addresses,
        // The cache says neither boot nor inode: only a namespace that is not there proves anything.
        life: Life::of(&cached.netns, None, None, ""),
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
