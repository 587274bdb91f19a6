//! The hands on a real kernel, in namespaces of their own, judged by `ip -j` and `bridge -j`.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test's own helpers report by panicking, as the tests do"
)]

mod addrs;
mod bridges;
mod corpus;
mod files;
mod links;
mod namespaces;
mod routes;
mod snapshots;
mod uml;

use mooring_host::{Netlink, Netns};
use serde_json::Value;

/// A namespace of the sandbox, opened by us.
#[track_caller]
fn open(netns: &mooring_testkit::Netns) -> Netns {
    Netns::open(netns.path()).expect("the sandbox made it")
}

/// Netlink in a namespace of the sandbox.
#[track_caller]
fn netlink(netns: &mooring_testkit::Netns) -> Netlink {
    open(netns).netlink().expect("the sandbox made it")
}

/// What `ip -j -d` shows.
#[track_caller]
fn shown(netns: &mooring_testkit::Netns, words: &str) -> Value {
    let text = netns.ip(&format!("-j -d {words}"));
    // Nothing to show is an empty text for some commands.
    let text = if text.trim().is_empty() { "[]" } else { &text };
    serde_json::from_str(text).expect("ip writes JSON")
}

/// The index of a link of ours.
#[track_caller]
fn index(netlink: &mut Netlink, name: &str) -> u32 {
    let link = netlink.link(name).expect("netlink answers");
    link.unwrap_or_else(|| panic!("there is no link {name}"))
        .index
}

#[test]
fn what_needs_another_kernel_passes_in_user_mode_linux() {
    mooring_testkit::uml_suite();
}
