//! The kinds of Nephio that a package carries, by group. Fields of the published CRDs keep their
//! meaning; what the seeds add is optional.

pub mod infra;
pub mod ipam;
pub mod req;
pub mod vlan;
