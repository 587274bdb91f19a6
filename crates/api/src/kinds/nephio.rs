//! The kinds of Nephio that a package carries, by group. Fields of the published CRDs keep their
//! meaning; what the seeds add is optional.

pub mod config;
pub mod infra;
pub mod ipam;
pub mod req;
pub mod vlan;
pub mod workload;
