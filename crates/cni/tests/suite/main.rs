//! The built program, from outside: one module per topic.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "test code: it reports by panicking, and makes its own inputs"
)]

mod amd;
mod announce;
mod bridge;
mod conformance;
mod crash;
mod doctor;
mod hands;
mod host_device;
mod hostile;
mod install;
mod ipam;
mod ipvlan;
mod kernels;
mod keys;
mod macvlan;
mod ovs;
mod protocol;
mod sbr;
mod segment;
mod sriov;
mod stage;
mod story;
mod switch;
mod tuning;
mod unique;
mod vlan;
