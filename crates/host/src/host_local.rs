//! What a file of host-local's store says: whose an address is.
//!
//! Read by the IPAM plugin, which writes them, and by the doctor. The form is the reference plugin's:
//! `<container>\r\n<interface>`; older ones wrote the container alone.

use std::fs;
use std::io;
use std::path::Path;

/// Whose an address is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owner {
    /// The container.
    pub container: String,
    /// Its interface; older plugins did not say.
    pub ifname: Option<String>,
}

impl Owner {
    /// An attachment.
    pub fn new(container: &str, ifname: &str) -> Self {
        Self {
            container: container.to_owned(),
            ifname: Some(ifname.to_owned()),
        }
    }

    /// Whether it may be that attachment's: a file without interface name is any of the container's.
    pub fn may_be(&self, other: &Self) -> bool {
        self.container == other.container
            && (self.ifname == other.ifname || self.ifname.is_none() || other.ifname.is_none())
    }
}

/// What is in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Content {
    /// Empty, or what a power cut makes of a file that was not synced: zeros.
    Nothing,
    /// Somebody's.
    Owned(Owner),
    /// Not to be read: it stays taken.
    Unknown,
    /// There is no such file any more.
    Gone,
}

/// Reads one file.
pub fn content(path: &Path) -> Content {
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Content::Gone,
        Err(_) => return Content::Unknown,
    };
    parse(&bytes)
}

/// Any bytes.
pub fn parse(bytes: &[u8]) -> Content {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return Content::Unknown;
    };
    let text = trim(text);
    if text.is_empty() {
        return Content::Nothing;
    }
    let (container, ifname) = match text.split_once("\r\n") {
        Some((container, ifname)) => (trim(container), Some(trim(ifname).to_owned())),
        None => (text, None),
    };
    Content::Owned(Owner {
        container: container.to_owned(),
        ifname,
    })
}

fn trim(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || c == '\0')
}
