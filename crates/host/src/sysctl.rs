//! Kernel parameters under `/proc/sys/net`, of a namespace.
//!
//! Keys are in the slash form, `net/ipv4/conf/ens3.100/arp_notify`, because a link's name may hold dots. The kernel shows
//! the parameters of the *reading thread's* namespace, so every access runs inside. Easy to get wrong: an absent key is
//! not always a mistake; without IPv6 in the kernel there is no `net/ipv6`.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs::File;
use std::io::{self, Read as _, Write as _};
use std::path::{Component, Path, PathBuf};

use nix::fcntl::{OFlag, openat};
use nix::sys::stat::Mode;

use crate::{Netns, NetnsError};

const ROOT: &str = "/proc/sys";

/// A parameter could not be read or written.
#[derive(Debug, thiserror::Error)]
pub enum SysctlError {
    /// The namespace could not be entered.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The key leads out of `/proc/sys`, or is empty.
    #[error("{0:?} is no sysctl key: write it with slashes, such as net/ipv4/conf/eth0/arp_notify")]
    Key(String),
    /// It could not be read.
    #[error("cannot read sysctl {key}")]
    Read {
        /// The key.
        key: String,
        /// Why.
        source: io::Error,
    },
    /// It could not be written.
    #[error("cannot set sysctl {key} to {value:?}")]
    Write {
        /// The key.
        key: String,
        /// The value.
        value: String,
        /// Why.
        source: io::Error,
    },
}

impl SysctlError {
    /// Whether the kernel has no such parameter (here, now).
    pub fn is_absent(&self) -> bool {
        match self {
            Self::Read { source, .. } | Self::Write { source, .. } => {
                source.kind() == io::ErrorKind::NotFound
            }
            _ => false,
        }
    }
}

/// The value of a parameter in a namespace, without the line end.
pub fn read(netns: &Netns, key: &str) -> Result<String, SysctlError> {
    netns.run(|| read_here(key))?
}

/// Sets a parameter in a namespace.
pub fn write(netns: &Netns, key: &str, value: &str) -> Result<(), SysctlError> {
    netns.run(|| write_here(key, value))?
}

/// Sets several in a namespace, in that order, in one go; the first failure ends it.
pub fn write_all<K: AsRef<str> + Sync, V: AsRef<str> + Sync>(
    netns: &Netns,
    pairs: &[(K, V)],
) -> Result<(), SysctlError> {
    netns.run(|| {
        let mut pairs = pairs.iter();
        pairs.try_for_each(|(key, value)| write_here(key.as_ref(), value.as_ref()))
    })?
}

/// The same for the calling thread's namespace: for use inside [`Netns::run`].
pub fn read_here(key: &str) -> Result<String, SysctlError> {
    let text = std::fs::read_to_string(path(key)?).map_err(|source| SysctlError::Read {
        key: key.to_owned(),
        source,
    })?;
    Ok(text.trim_end_matches('\n').to_owned())
}

/// The same for the calling thread's namespace: for use inside [`Netns::run`].
pub fn write_here(key: &str, value: &str) -> Result<(), SysctlError> {
    let path = path(key)?;
    let written = std::fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()));
    written.map_err(|source| SysctlError::Write {
        key: key.to_owned(),
        value: value.to_owned(),
        source,
    })
}

/// All parameters in a directory of the calling thread's namespace, by name; none when it is absent. What cannot be read (an
/// unset secret) is left out.
pub fn all_here(directory: &str) -> BTreeMap<String, String> {
    let entries = path(directory).map(std::fs::read_dir);
    let Ok(Ok(entries)) = entries else {
        return BTreeMap::new();
    };
    let names = entries.flatten().map(|entry| entry.file_name());
    some_here(directory, names)
}

/// Some of them, the same way.
pub fn some_here<N: AsRef<OsStr>>(
    directory: &str,
    names: impl IntoIterator<Item = N>,
) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    // Each is opened by its own name, not by its path: a link has more than a hundred, and the kernel looks up every part
    // of a path here anew.
    let below = path(directory).map(File::open);
    let Ok(Ok(below)) = below else {
        return found;
    };
    for name in names {
        let name = name.as_ref();
        let flags = OFlag::O_RDONLY | OFlag::O_CLOEXEC;
        let opened = openat(&below, name, flags, Mode::empty());
        // The kernel gives a parameter whole in one read, and the longest of them is a secret of 39 characters.
        let mut buffer = [0; 1024];
        let read = opened.map(|fd| File::from(fd).read(&mut buffer));
        let text = match read {
            Ok(Ok(length)) => std::str::from_utf8(&buffer[..length]),
            _ => continue,
        };
        if let Ok(text) = text {
            let value = text.trim_end_matches('\n').to_owned();
            found.insert(name.to_string_lossy().into_owned(), value);
        }
    }
    found
}

fn path(key: &str) -> Result<PathBuf, SysctlError> {
    let plain = |part: Component<'_>| matches!(part, Component::Normal(_));
    let relative = Path::new(key);
    if key.is_empty() || !relative.components().all(plain) {
        return Err(SysctlError::Key(key.to_owned()));
    }
    Ok(Path::new(ROOT).join(relative))
}
