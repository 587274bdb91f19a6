//! Taking a snapshot of a link, and putting a link back as a snapshot says.

use mooring_api::net::Snapshot;

use crate::{Change, NetlinkError, Netns, NetnsError, sysctl::SysctlError};

/// A snapshot was not taken or not restored.
#[derive(Debug, thiserror::Error)]
pub enum RestoreError {
    /// The namespace.
    #[error(transparent)]
    Netns(#[from] NetnsError),
    /// The kernel's tables.
    #[error(transparent)]
    Netlink(#[from] NetlinkError),
    /// A parameter.
    #[error(transparent)]
    Sysctl(#[from] SysctlError),
    /// There is no such link.
    #[error("there is no link {index} in {netns}")]
    NoLink {
        /// The index.
        index: u32,
        /// The namespace.
        netns: String,
    },
}

/// Everything about a link, with its sysctls.
pub fn snapshot(netns: &Netns, index: u32) -> Result<Snapshot, RestoreError> {
    let mut netlink = netns.netlink()?;
    let link = netlink
        .link_at(index)?
        .ok_or_else(|| RestoreError::NoLink {
            index,
            netns: netns.path().display().to_string(),
        })?;
    Ok(Snapshot {
        link,
        ..Snapshot::default()
    })
}

/// Puts the link at `index` back as `wanted` says; gives the changes that it made.
pub fn restore(
    netns: &Netns,
    index: u32,
    wanted: &Snapshot,
) -> Result<Vec<Change<'static>>, RestoreError> {
    let seen = snapshot(netns, index)?;
    let changes = crate::diff(wanted, &seen);
    netns.netlink()?.apply(&changes)?;
    Ok(changes)
}
