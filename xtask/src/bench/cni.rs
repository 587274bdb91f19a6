//! CNI calls: our plugins, the reference plugins, and a program that only sends the same netlink messages (*base*).
//!
//! ```text
//!  cni          builds, makes a node and pods (namespaces), runs itself inside the node
//!  cni-inside   every call is a process, from start to exit: one at a time in turns, then 16 at once
//! ```
//!
//! Ours is built as it is shipped, and base in the same way (`dist`). host-local writes to the disk that the temporary directory is on, ours with fsync,
//! the reference without. Easy to get wrong: most of a DEL is the kernel's, which all three wait for; so the budget is on
//! what lies above base. The same goes for many moves of devices at once: each holds the kernel's one lock for a grace period
//! of RCU (`rcu_barrier` in `__dev_change_net_namespace`), so base's rate is the most that anybody can have.

mod memory;
mod node;
mod one;
mod rush;

use std::process::Command;

use anyhow::{Context as _, Result};

use self::node::{Node, Who};
use super::{Curve, Report};
use crate::dist::{BASE, MOOR_CNI};
use crate::setup;
use crate::shell::output;

/// Plugins that are measured, each with each IPAM and family.
const PLUGINS: [&str; 3] = ["macvlan", "bridge", "host-device"];
const IPAMS: [&str; 2] = ["static", "host-local"];

/// What one call is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Case {
    plugin: &'static str,
    ipam: &'static str,
    v6: bool,
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let family = if self.v6 { "IPv6" } else { "IPv4" };
        write!(f, "{} + {}, {family}", self.plugin, self.ipam)
    }
}

/// How often each call is made: `MOOR_BENCH_ROUNDS`, for a short look.
fn rounds() -> usize {
    let set = std::env::var("MOOR_BENCH_ROUNDS").ok();
    set.and_then(|text| text.parse().ok()).unwrap_or(60)
}

/// Outside: what has to be built and made first.
pub(super) fn cni() -> Result<Report> {
    for program in [MOOR_CNI, BASE] {
        program.build()?;
    }
    setup::place("cni-plugins")?;
    let node = node::Namespaces::make()?;
    let mut command = Command::new("ip");
    command
        .args(["netns", "exec", &node.name()])
        .arg(std::env::current_exe()?)
        .args(["bench", "cni-inside", "--child"])
        .env(node::NAME, node.prefix());
    let json = output(&mut command)?;
    serde_json::from_str(&json).context("the bench inside printed no report")
}

/// Inside the node.
pub(super) fn inside() -> Result<Report> {
    let node = Node::new()?;
    let mut report = Report::default();
    one::measure(&node, &mut report)?;
    rush::measure(&node, &mut report)?;
    cost(&node, &mut report)?;
    Ok(report)
}

/// What a call costs beside time.
fn cost(node: &Node, report: &mut Report) -> Result<()> {
    let mut curve = Curve::new(
        "One ADD of macvlan + host-local: what it takes beside time",
        &["", "program", "peak memory", "programs started"],
    );
    let mut memory = Vec::new();
    for who in [Who::Ours, Who::Reference] {
        let file = std::fs::metadata(node.program(who, "macvlan"))?.len();
        let ipam = std::fs::metadata(node.program(who, "host-local"))?.len();
        let size = match who {
            // One file under every name.
            Who::Ours => format!("{:.1} MiB, all plugins", mib(file)),
            _ => format!("{:.1} MiB and {:.1} MiB", mib(file), mib(ipam)),
        };
        let peak = memory::peak_kib(node, who)?;
        memory.push(peak);
        let execs = memory::programs_started(node, who)?;
        curve.push([
            who.to_string(),
            size,
            format!("{:.1} MiB", mib(peak * 1024)),
            execs.to_string(),
        ]);
    }
    report.curves.push(curve);
    Ok(())
}

#[allow(clippy::cast_precision_loss, reason = "for people, with one digit")]
fn mib(bytes: u64) -> f64 {
    bytes as f64 / f64::from(1 << 20)
}
