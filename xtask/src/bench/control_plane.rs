//! On a real API server: the controller with thousands of claims, and sixteen clients that take addresses at once.
//!
//! ```text
//!  claims   10,000 IPClaims over 20 prefixes ─► moor-controller ─► Ready; then the controller again: it writes nothing
//!  taking   16 clients: the book, then bare POSTs of the very objects that the book wrote, then whereabouts
//!  server   etcd and kube-apiserver of the testkit, requests, and the server's own count of writes
//! ```
//!
//! Everything runs on this one machine: server, database and clients share its processors. Easy to get wrong: writes are
//! counted by the server, not only by us; a write that we forgot to count is one that we also forgot to save.

mod claims;
mod program;
mod server;
mod taking;

use anyhow::Result;

use super::Report;
use crate::setup;
use crate::shell::{cargo, output};

pub(super) fn control_plane() -> Result<Report> {
    for name in ["etcd", "kube-apiserver", "kubectl", "whereabouts"] {
        setup::place(name)?;
    }
    let build = ["build", "--release", "--quiet", "-p", "mooring-controller"];
    output(&mut cargo(&build))?;
    let mut report = Report::default();
    taking::measure(&mut report)?;
    claims::measure(&mut report)?;
    Ok(report)
}
