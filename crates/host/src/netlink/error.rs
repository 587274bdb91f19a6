//! What can go wrong between us and the kernel's netlink.

use std::io;

/// A netlink operation failed. Every variant says which one.
#[derive(Debug, thiserror::Error)]
pub enum NetlinkError {
    /// The kernel refused.
    #[error("cannot {operation}{}", detail(said.as_deref()))]
    Refused {
        /// What was asked.
        operation: String,
        /// The kernel's own words (extended ACK), where it has some.
        said: Option<String>,
        /// Its error number.
        source: io::Error,
    },
    /// The socket failed.
    #[error("netlink failed while it was asked to {operation}")]
    Socket {
        /// What was asked.
        operation: String,
        /// Why.
        source: io::Error,
    },
    /// The kernel's answer made no sense to us.
    #[error("cannot read the kernel's answer to {operation}: {what}")]
    Answer {
        /// What was asked.
        operation: String,
        /// What is wrong with the answer.
        what: String,
    },
    /// The tables changed under every attempt to read them.
    #[error(
        "the kernel's tables change too fast to {operation}; {attempts} attempts were interrupted"
    )]
    Interrupted {
        /// What was asked.
        operation: String,
        /// How often.
        attempts: u32,
    },
}

fn detail(said: Option<&str>) -> String {
    said.map_or_else(String::new, |text| format!(" (the kernel says: {text})"))
}

impl NetlinkError {
    /// The kernel's error number, when it refused.
    pub fn errno(&self) -> Option<i32> {
        match self {
            Self::Refused { source, .. } | Self::Socket { source, .. } => source.raw_os_error(),
            _ => None,
        }
    }

    /// Whether it says that the thing is not there: link, address, route, rule or neighbour.
    pub fn is_absent(&self) -> bool {
        use nix::libc::{EADDRNOTAVAIL, ENODEV, ENOENT, ENXIO, ESRCH};
        matches!(self, Self::Refused { .. })
            && matches!(
                self.errno(),
                Some(ENODEV | ENOENT | ESRCH | EADDRNOTAVAIL | ENXIO)
            )
    }

    /// Whether it says that the thing is there already.
    pub fn is_present(&self) -> bool {
        matches!(self, Self::Refused { .. }) && self.errno() == Some(nix::libc::EEXIST)
    }

    /// Whether it may pass: the device or the kernel is busy.
    pub fn is_transient(&self) -> bool {
        use nix::libc::{EAGAIN, EBUSY, EINTR, ENOBUFS};
        matches!(self, Self::Interrupted { .. })
            || matches!(self.errno(), Some(EAGAIN | EBUSY | EINTR | ENOBUFS))
    }

    /// A short word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Refused { .. } => "KernelRefused",
            Self::Socket { .. } => "NetlinkFailed",
            Self::Answer { .. } => "NetlinkAnswer",
            Self::Interrupted { .. } => "NetlinkInterrupted",
        }
    }
}
