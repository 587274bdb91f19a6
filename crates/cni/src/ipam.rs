//! IPAM plugins: where an attachment's addresses come from.
//!
//! They run in this process, for themselves (`host-local` on the command line of a foreign plugin) or on behalf of one of
//! our own. Each is a decision over values with as little acting as it needs.

mod asked;
pub(crate) mod host_local;
pub(crate) mod static_;
