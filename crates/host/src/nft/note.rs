//! Who has rules in nftables: a file each in `/run/cni/moor/rules`, written before the first rule and removed after the last one.
//!
//! Written by the bridge plugin, read by the doctor too. A reboot ends notes and rules together. Easy to get wrong: the file's name is a
//! hash of interface and container, so only what is in it tells whose it is.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

/// The attachment, as it was when it got its rules.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// The network, by whose hash the rules are found.
    pub network: String,
    /// The container.
    pub container: String,
    /// Its interface.
    pub ifname: String,
}

impl Note {
    /// Any bytes; none where they are no note.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        serde_json::from_slice(bytes).ok()
    }

    /// As it is written.
    pub fn to_bytes(&self) -> Vec<u8> {
        serde_json::to_vec(self).expect("plain values")
    }
}

/// Where they are, below our own directory.
pub fn dir(own: &Path) -> PathBuf {
    own.join("rules")
}
