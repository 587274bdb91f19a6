//! Device records: who has a device of the host, and what it was like before. Written ahead, one file per device.
//!
//! ```text
//!  prepared ──► configured            (taking)
//!      └────────────┴──► restoring ──► no file   (giving back; the file goes after the state was verified)
//! ```
//!
//! The mover ([`crate::device::Mover`]) writes them, for CNI and for the driver alike, so nothing here knows what the owner
//! is. A record is read and written only under the lock of its device. Easy to get wrong: `before` is taken once, before
//! the first change, and is never taken again while the record lives; a second attempt would keep what the first one left.

pub mod decide;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_api::Mac;
use mooring_api::net::{Link, LinkKind, Snapshot, Vf};
use serde::{Deserialize, Serialize};

use crate::NetnsId;
use crate::file::{self, Lock, LockError};
use crate::pci::Bdf;
use crate::rdma::RdmaDevice;

/// The form of the file. A file of another form is refused, not guessed.
const FORMAT: u32 = 1;

/// How long one waits for another who holds a device: moving takes milliseconds, a VF driver may take seconds.
const PATIENCE: Duration = Duration::from_mins(1);

/// What failed, and on which file.
#[derive(Debug, thiserror::Error)]
pub enum RecordError {
    /// A file or directory of records.
    #[error("cannot {doing} {}", path.display())]
    Io {
        /// What was tried.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Another process keeps the device longer than is sensible.
    #[error("device {key} is in use by another process")]
    Locked {
        /// The device.
        key: String,
        /// What the lock said.
        #[source]
        source: LockError,
    },
    /// The file does not hold a record.
    #[error("{} is not a device record of this program", path.display())]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Where it breaks.
        #[source]
        source: serde_json::Error,
    },
}

/// Which device: what stays the same when it is renamed, moved, or falls back.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Identity {
    /// Its PCI function.
    pub pci: Option<Bdf>,
    /// Its address on whatever bus, as the kernel tells it over netlink.
    pub bus: Option<String>,
    /// The MAC its hardware came with.
    pub permanent_mac: Option<Mac>,
    /// The port on the NIC.
    pub port: Option<String>,
    /// Which port of its function it is, from 0.
    pub port_number: u32,
    /// Its name on the host.
    pub name: String,
    /// Its other names on the host.
    pub altnames: Vec<String>,
    /// Its MAC on the host.
    pub mac: Option<Mac>,
    /// What kind of link it is.
    pub kind: LinkKind,
}

impl Identity {
    /// The identity of a link of the host.
    pub fn of(link: &Link, pci: Option<Bdf>) -> Self {
        Self {
            pci,
            port_number: 0,
            bus: link.device.clone(),
            permanent_mac: link.permanent_mac,
            port: link.port_name.clone(),
            name: link.name.clone(),
            altnames: link.altnames.clone(),
            mac: link.mac,
            kind: link.kind.clone(),
        }
    }

    /// Whether the device is hardware: its driver brings it back to the host when a namespace ends.
    pub fn is_hardware(&self) -> bool {
        self.kind == LinkKind::Device && (self.bus.is_some() || self.pci.is_some())
    }

    /// Whether a link, in any namespace and under any name, is this device.
    pub fn is(&self, link: &Link) -> bool {
        if let (Some(ours), Some(theirs)) = (&self.bus, &link.device) {
            // Two ports of one function share its address. The permanent MAC says nothing here: that of a VF is what its
            // physical function set last.
            let same_port = match (&self.port, &link.port_name) {
                (Some(ours), Some(theirs)) => ours == theirs,
                _ => true,
            };
            return ours == theirs && same_port;
        }
        if self.kind.word() != link.kind.word() {
            return false;
        }
        // VLANs of one parent share their MAC.
        if let (LinkKind::Vlan { id: ours, .. }, LinkKind::Vlan { id: theirs, .. }) =
            (&self.kind, &link.kind)
            && ours != theirs
        {
            return false;
        }
        if let (Some(ours), Some(theirs)) = (self.permanent_mac, link.permanent_mac) {
            return ours == theirs;
        }
        // Ours carry their host name as alias while they are away, also with a MAC that somebody changed.
        let same_mac = self.mac.is_some() && self.mac == link.mac;
        same_mac || link.alias.as_deref() == Some(self.name.as_str())
    }

    /// The name of the record's file, without its ending.
    pub fn key(&self) -> String {
        let port = match (&self.port, self.port_number) {
            (Some(port), _) => format!("-{port}"),
            (None, 0) => String::new(),
            (None, number) => format!("-{number}"),
        };
        let text = match (&self.pci, &self.bus, self.permanent_mac) {
            (Some(pci), _, _) => format!("pci-{pci}{port}"),
            (None, Some(bus), _) => format!("bus-{bus}{port}"),
            (None, None, Some(mac)) => format!("mac-{mac}-{}", self.name),
            (None, None, None) => format!("name-{}", self.name),
        };
        plain(&text)
    }
}

/// A file name: whatever could mean something to a path is written as its number.
fn plain(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b":._-".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02x}");
        }
    }
    out
}

/// Who has a device.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Owner {
    /// The sandbox, or whatever else holds it.
    pub holder: String,
    /// The interface's name there.
    pub ifname: String,
    /// The set of holders that are cleaned up together.
    #[serde(default)]
    pub group: String,
    /// Its namespace.
    pub netns: PathBuf,
    /// The namespace that this path was.
    pub netns_id: NetnsId,
}

impl Owner {
    /// Whether the same holder asks for the same interface, in whichever namespace.
    pub fn same_as(&self, other: &Self) -> bool {
        self.holder == other.holder && self.ifname == other.ifname
    }
}

/// How far the taking or giving back of a device got.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Phase {
    /// Recorded; the device may have been touched, and may be with its owner: where it is says how far that got.
    #[default]
    #[serde(alias = "moved")]
    Prepared,
    /// The owner has all it asked for.
    Configured,
    /// On its way back.
    Restoring,
}

/// A VF as its physical function saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VfBefore {
    /// The physical function.
    pub pf: Option<Bdf>,
    /// Its interface.
    pub pf_name: String,
    /// What it had.
    pub vf: Vf,
}

/// What is known of a device that somebody has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The form of the file.
    pub format: u32,
    /// Which device.
    pub device: Identity,
    /// Who has it.
    pub owner: Owner,
    /// How far it got.
    pub phase: Phase,
    /// The boot in which it was taken.
    pub boot: String,
    /// Seconds since that boot at which it was taken; lifetimes of addresses count from there.
    #[serde(default)]
    pub uptime: u64,
    /// Everything it had.
    pub before: Snapshot,
    /// The name of the bridge, bond or VRF that it belonged to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub master: Option<String>,
    /// Where it is a VF: what its physical function had set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub vf: Option<VfBefore>,
    /// The RDMA device that goes with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rdma: Option<RdmaDevice>,
    /// How often its state could not be put back whole.
    #[serde(default)]
    pub tries: u32,
    /// What the owner wants to find again; nobody else reads it.
    #[serde(default, skip_serializing_if = "serde_json::Value::is_null")]
    pub kept: serde_json::Value,
}

impl Record {
    /// A record at the start of its life.
    pub fn new(device: Identity, owner: Owner, before: Snapshot, boot: &Boot) -> Self {
        Self {
            format: FORMAT,
            device,
            owner,
            phase: Phase::Prepared,
            boot: boot.id.clone(),
            uptime: boot.uptime,
            before,
            master: None,
            vf: None,
            rdma: None,
            tries: 0,
            kept: serde_json::Value::Null,
        }
    }

    /// Whether there is an interface. A function that a driver of user space has is recorded without one.
    pub fn has_link(&self) -> bool {
        self.before.link.index != 0
    }

    #[cfg(test)]
    pub(crate) fn sample() -> Self {
        let owner = Owner {
            holder: "a".to_owned(),
            ifname: "net1".to_owned(),
            group: "g".to_owned(),
            netns: "/run/netns/a".into(),
            netns_id: NetnsId { dev: 4, inode: 7 },
        };
        let boot = Boot {
            id: "b".to_owned(),
            uptime: 100,
        };
        Self::new(Identity::default(), owner, Snapshot::default(), &boot)
    }
}

/// This run of the node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Boot {
    /// The kernel's id of it.
    pub id: String,
    /// Seconds since its start.
    pub uptime: u64,
}

impl Boot {
    /// As `/proc` says.
    pub fn read(proc: &Path) -> Result<Self, RecordError> {
        let read = |name: &str| {
            let path = proc.join(name);
            std::fs::read_to_string(&path).map_err(|source| RecordError::Io {
                doing: "read",
                path,
                source,
            })
        };
        let id = read("sys/kernel/random/boot_id")?.trim().to_owned();
        let uptime = read("uptime")?;
        let seconds = uptime.split('.').next().and_then(|s| s.parse().ok());
        Ok(Self {
            id,
            uptime: seconds.unwrap_or(0),
        })
    }
}

/// The directory of records.
#[derive(Clone, Debug)]
pub struct Records {
    dir: PathBuf,
}

/// The records of one device, for the one who holds its lock.
#[derive(Debug)]
pub struct Held {
    path: PathBuf,
    _lock: Lock,
}

impl Records {
    /// Records in a directory, which is made when it is needed.
    pub fn new(dir: impl Into<PathBuf>) -> Self {
        Self { dir: dir.into() }
    }

    /// Takes the lock of a device.
    pub fn lock(&self, key: &str) -> Result<Held, RecordError> {
        let key = plain(key);
        let path = self.dir.join(format!("{key}.lock"));
        let lock = Lock::exclusive(&path, PATIENCE).map_err(|source| RecordError::Locked {
            key: key.clone(),
            source,
        })?;
        Ok(Held {
            path: self.dir.join(format!("{key}.json")),
            _lock: lock,
        })
    }

    /// All records with their keys, without a lock: to find the one to lock. A file that is no record is passed over, and
    /// so is one that another process removes meanwhile; whoever locks the device reads it again.
    pub fn all(&self) -> Result<Vec<(String, Record)>, RecordError> {
        let io = |doing, path: &Path, source| RecordError::Io {
            doing,
            path: path.to_owned(),
            source,
        };
        let read = match std::fs::read_dir(&self.dir) {
            Ok(read) => read,
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(e) => return Err(io("read", &self.dir, e)),
        };
        let mut found = Vec::new();
        for entry in read {
            let path = entry.map_err(|e| io("read", &self.dir, e))?.path();
            let key = path
                .file_name()
                .and_then(|n| n.to_str())
                .and_then(|n| n.strip_suffix(".json"));
            if let Some(key) = key
                && let Ok(Some(record)) = load(&path)
            {
                found.push((key.to_owned(), record));
            }
        }
        found.sort_by(|a, b| a.0.cmp(&b.0));
        Ok(found)
    }

    /// Whether there is a file of that key, readable or not.
    pub fn has(&self, key: &str) -> bool {
        self.dir.join(format!("{}.json", plain(key))).exists()
    }

    /// The key of what a holder has under a name.
    pub fn held_by(&self, holder: &str, ifname: &str) -> Result<Option<String>, RecordError> {
        let found = self
            .all()?
            .into_iter()
            .find(|(_, record)| record.owner.holder == holder && record.owner.ifname == ifname);
        Ok(found.map(|(key, _)| key))
    }
}

impl Held {
    /// The record of this device.
    pub fn read(&self) -> Result<Option<Record>, RecordError> {
        load(&self.path)
    }

    /// Writes it, whole or not at all, and returns when it is on disk.
    pub fn write(&self, record: &Record) -> Result<(), RecordError> {
        let text = serde_json::to_vec(record).map_err(|source| RecordError::Unreadable {
            path: self.path.clone(),
            source,
        })?;
        file::write_atomic(&self.path, &text).map_err(|source| RecordError::Io {
            doing: "write",
            path: self.path.clone(),
            source,
        })
    }

    /// Removes it; absent is success.
    pub fn remove(&self) -> Result<(), RecordError> {
        let removed = file::remove(&self.path).map_err(|source| RecordError::Io {
            doing: "remove",
            path: self.path.clone(),
            source,
        });
        removed.map(|_| ())
    }
}

fn load(path: &Path) -> Result<Option<Record>, RecordError> {
    let read = file::read(path).map_err(|source| RecordError::Io {
        doing: "read",
        path: path.to_owned(),
        source,
    });
    let Some(text) = read? else {
        return Ok(None);
    };
    let unreadable = |source| RecordError::Unreadable {
        path: path.to_owned(),
        source,
    };
    let record: Record = serde_json::from_slice(&text).map_err(unreadable)?;
    if record.format != FORMAT {
        let why = format!("its form is {}, and {FORMAT} is known", record.format);
        return Err(unreadable(serde::de::Error::custom(why)));
    }
    Ok(Some(record))
}

#[cfg(test)]
mod tests;
