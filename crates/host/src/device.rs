//! Devices of the host that others may have for a while: found, taken, brought home.
//!
//! ```text
//!  Selector ── look_up ──► the link of the host         (sysfs, netlink)
//!  Mover::prepare ── record ──► Prepared::enter ── move ──► Prepared::configured
//!  Mover::give_back ── find it wherever it is ── home, name, state, verified ──► no record
//! ```
//!
//! Called by the CNI plugins host-device, amd-host-device and sriov, and by the driver; there is one mover per node, and
//! its memory is [`crate::record`]. Easy to get wrong: hardware whose namespace ended is on the host again, under the name it
//! had in the pod or under `dev3`. Only the bus address tells what it is.

mod find;
mod give;
mod home;
mod take;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use mooring_api::Mac;

use crate::pci::{Bdf, Devices};
use crate::rdma::RdmaError;
use crate::record::{Boot, Identity, Owner, RecordError, Records};
use crate::{NetlinkError, Netns, NetnsError, RestoreError};

pub use find::{Found, look_up};
pub use give::Returned;
pub use take::Prepared;

/// How a device of the host is named by who wants it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selector {
    /// Its interface's name.
    Name(String),
    /// Its MAC.
    Mac(Mac),
    /// Its directory under `/sys/devices`.
    Path(PathBuf),
    /// Its PCI function.
    Pci(Bdf),
    /// Its name on the auxiliary bus.
    Auxiliary(String),
}

impl Selector {
    /// Whether a device that is away is what this asks for.
    pub fn selects(&self, device: &Identity) -> bool {
        match self {
            Self::Name(name) => device.name == *name || device.altnames.contains(name),
            Self::Mac(mac) => device.permanent_mac == Some(*mac) || device.mac == Some(*mac),
            Self::Pci(bdf) => device.pci.as_ref() == Some(bdf),
            Self::Auxiliary(name) => device.bus.as_ref() == Some(name),
            Self::Path(path) => {
                let bus = device.bus.as_deref().map(Path::new);
                if bus.is_some_and(|bus| path.ends_with(bus)) {
                    return true;
                }
                let last = path
                    .iter()
                    .rev()
                    .find_map(|part| part.to_str()?.parse().ok());
                last.is_some() && device.pci == last
            }
        }
    }
}

impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => write!(f, "interface {name}"),
            Self::Mac(mac) => write!(f, "the interface with MAC {mac}"),
            Self::Path(path) => write!(f, "the device at {}", path.display()),
            Self::Pci(bdf) => write!(f, "PCI device {bdf}"),
            Self::Auxiliary(name) => write!(f, "auxiliary device {name}"),
        }
    }
}

/// What failed, and on which device.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// There is no such device, and there is no record that somebody has it.
    #[error("{0} is not in the host's network namespace")]
    Absent(Selector),
    /// Somebody who lives has it.
    #[error("{device} belongs to {} as {}, which is running: wait until it has ended", owner.holder, owner.ifname)]
    Busy {
        /// The device's name on the host.
        device: String,
        /// Who has it.
        owner: Box<Owner>,
    },
    /// It is in a namespace that has no path and no process we can see, or on its way out of one.
    #[error(
        "{device} is in a network namespace that cannot be reached; it comes back to the host when that namespace ends"
    )]
    Hidden {
        /// The device's name on the host.
        device: String,
    },
    /// It is in a namespace that is not its owner's.
    #[error(
        "{device} is in {}, which was given it by somebody else; it can be had when it is on the host again", netns.display()
    )]
    Taken {
        /// The device's name on the host.
        device: String,
        /// Where it is.
        netns: PathBuf,
    },
    /// The name is taken where the device goes.
    #[error("{device} cannot be called {name} in {}: another interface has that name", netns.display())]
    NameTaken {
        /// The device.
        device: String,
        /// The name.
        name: String,
        /// Where.
        netns: PathBuf,
    },
    /// It is home, and some of what it had is not back.
    #[error("{device} is back on the host without {}", left.join("; "))]
    Incomplete {
        /// The device's name on the host.
        device: String,
        /// What is missing.
        left: Vec<String>,
    },
    /// State that could not be read or put back.
    #[error("cannot restore {device}")]
    Restore {
        /// The device's name on the host.
        device: String,
        /// Why not.
        #[source]
        source: RestoreError,
    },
    /// A record.
    #[error(transparent)]
    Record(#[from] RecordError),
    /// A namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The kernel refused.
    #[error("cannot {doing} {device}")]
    Netlink {
        /// What was tried.
        doing: &'static str,
        /// On which device.
        device: String,
        /// Why not.
        #[source]
        source: NetlinkError,
    },
    /// sysfs.
    #[error("cannot look for {what} in sysfs")]
    Sysfs {
        /// What was looked for.
        what: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Its RDMA device.
    #[error("the RDMA device of {device}")]
    Rdma {
        /// The device's name on the host.
        device: String,
        /// Why not.
        #[source]
        source: RdmaError,
    },
}

impl DeviceError {
    /// Whether asking again later may succeed without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Hidden { .. }
                | Self::Taken { .. }
                | Self::Record(RecordError::Locked { .. })
        )
    }
}

/// Moves devices out and home, and keeps the records of it.
#[derive(Debug)]
pub struct Mover {
    host: Netns,
    devices: Devices,
    records: Records,
    boot: Boot,
    proc: PathBuf,
}

impl Mover {
    /// A mover for the namespace of the calling thread, which is the host's. `sys` and `proc` are where the kernel shows itself.
    pub fn new(
        records: impl Into<PathBuf>,
        sys: impl Into<PathBuf>,
        proc: impl Into<PathBuf>,
    ) -> Result<Self, DeviceError> {
        let proc = proc.into();
        Ok(Self {
            host: Netns::current()?,
            devices: Devices::new(sys),
            records: Records::new(records),
            boot: Boot::read(&proc)?,
            proc,
        })
    }

    /// The namespace of the host.
    pub fn host(&self) -> &Netns {
        &self.host
    }

    /// What sysfs shows.
    pub fn devices(&self) -> &Devices {
        &self.devices
    }

    /// The records.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// This run of the node.
    pub fn boot(&self) -> &Boot {
        &self.boot
    }
}

/// An error of the kernel about a device.
fn refused(doing: &'static str, device: &str) -> impl FnOnce(NetlinkError) -> DeviceError {
    let device = device.to_owned();
    move |source| DeviceError::Netlink {
        doing,
        device,
        source,
    }
}

#[cfg(test)]
mod tests;
