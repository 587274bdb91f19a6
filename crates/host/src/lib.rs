//! Acts: Linux network namespaces, blocking netlink, sysfs, device records.
//!
//! ```text
//!  observe  Netns::netlink ─► Netlink::{link, addrs, routes, rules, neighbours} ─► api::net values
//!  diff     diff(wanted, seen) ─► Vec<Change>                                      pure
//!  apply    Netlink::apply / Batch: many messages, one send, one answer each
//! ```
//!
//! Called by the CNI plugins and the node agent. No Kubernetes, no policy, no async runtime: every call blocks, and every
//! wait has a bound. Netlink's own types end at this crate's door; callers see the values of [`mooring_api::net`].
//!
//! Easy to get wrong: only [`Netns`] changes the namespace of a thread, and only of a thread it has just made. A
//! [`Netlink`] stays in the namespace that it was opened in, so it may be used from anywhere.

mod announce;
mod change;
pub mod device;
mod diff;
pub mod doctor;
pub mod fault;
pub mod file;
pub mod foreign;
pub mod host_local;
mod life;
mod netlink;
mod netns;
pub mod nft;
pub mod ovs;
mod paths;
pub mod pci;
mod probe;
pub mod program;
pub mod rdma;
pub mod record;
mod shared;
mod shim;
mod snapshot;
pub mod sysctl;
pub mod sysfs;
pub mod vf;
mod vlan;

pub use announce::{AnnounceError, Announced, announce, announce_from, announce_with};
pub use change::Change;
pub use diff::diff;
pub use life::Life;
pub use netlink::{Batch, Netlink, NetlinkError};
pub use netns::{Netns, NetnsError, NetnsId, visit_in_person};
pub use paths::{Paths, ROOT};
pub use probe::{Heard, Probe, ProbeError, Taken, probe};
pub use shared::{SharedError, User};
pub use shim::{MARK as SHIM_MARK, Reach, ShimError, Shims, name as shim_name};
pub use snapshot::{RestoreError, missing, restore, snapshot, sysctls};
pub use vlan::{MARK as VLAN_MARK, VlanError, Vlans, parse as vlan_of};
