//! State in the formats of other programs: read, and where a node may be switched back to them, written as they write it.
//!
//! | module | whose | where |
//! |---|---|---|
//! | [`amd`] | AMD's amd-host-device | `/var/lib/cni/amd-host-device/ip-interface-mappings.json` |
//! | [`sriov`] | sriov-cni | `/var/lib/cni/sriov` |
//! | [`tuning`] | the reference tuning | `/run/cni/tuning` |
//! | [`libcni`] | the runtime's library | `/var/lib/cni/results` |
//! | [`crate::host_local`] | the reference host-local | `/var/lib/cni/networks` |
//!
//! Called by the plugins that take their place and by the doctor. What reads bytes here is pure and takes any bytes. Easy to get wrong:
//! a file that cannot be read is somebody's all the same; it is left where it is.

pub mod amd;
mod fuzz;
pub mod libcni;
pub mod sriov;
pub mod tuning;

#[doc(hidden)]
pub use fuzz::fuzz_foreign;
