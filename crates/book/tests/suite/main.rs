//! What every store of this room promises, and what the file store promises about crashes and processes.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "test code: it reports by panicking"
)]

mod agree;
mod allocating;
mod carrying;
mod contract;
mod crash;
mod disk;
mod files;
mod kubernetes;
mod lazy;
mod made;
mod merging;
mod processes;
