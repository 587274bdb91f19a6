//! The program against a real API server: every test starts it as a process and looks at what the cluster says.
//!
//! [`harness`] has what all of them use. One module per role; in tests that share a server every test has namespaces
//! and names of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "test code: it reports by panicking, and makes its own inputs"
)]

mod deploy;
mod harness;
mod ipam;
mod packages;
mod soak;
mod starting;
mod story;
mod sync;
mod webhook;
mod whereabouts;
