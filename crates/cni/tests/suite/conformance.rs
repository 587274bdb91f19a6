//! What the specification asks of a plugin, asked of any directory of plugins: ours, and those that people run today.
//!
//! ```text
//!  cases × plugins × versions ──► bed (a node in namespaces) ──► failures
//!                                    ours: none        others: exactly those of docs/reference/conformance.md
//! ```
//!
//! The others prove the suite: a case that nobody fails and nobody could fail would show here. Their failures stand in
//! the document, which this test compares, so that the list can neither grow nor shrink unseen; `MOOR_UPDATE=1` writes it.
//! Easy to get wrong: ipvlan and vlan need a kernel that has them; they run in User-mode Linux. A program starts ten times as slowly there,
//! so a rule is asked in the oldest and the newest version; how a version is spoken is the same code for all plugins.

pub(crate) mod bed;
mod cases;
pub(crate) mod peer;
mod report;
pub(crate) mod shape;

use std::collections::BTreeMap;

use self::bed::Bed;
use self::cases::{CASES, Which};
use self::peer::Peer;
use self::report::Report;
use self::shape::VERSIONS;
use crate::hands;

/// Plugins for which this machine's kernel has everything.
const HERE: [&str; 7] = [
    "macvlan",
    "bridge",
    "host-device",
    "tuning",
    "sbr",
    "static",
    "host-local",
];

/// Plugins of ours whose originals are not to be had, so nobody else is asked. A VF and a rail are veths that a sysfs of our own shows
/// behind PCI functions; the switch is a real one.
const OURS: [&str; 3] = ["amd-host-device", "sriov", "ovs"];

/// Runs every case that concerns the plugins; None where namespaces are not to be had.
fn failures(peer: &Peer, plugins: &[&'static str], which: Which) -> Option<Report> {
    let spoken = spoken(peer);
    let reports = hands::each(plugins, |plugin| {
        let mut report = Report::default();
        let bed = Bed::new(peer, plugin)?;
        for case in CASES.iter().filter(|case| case.is_for(plugin)) {
            for version in case.versions(&spoken, which) {
                let outcome = case.run(&bed, version);
                bed.sweep();
                report.note(plugin, case.name, version, outcome);
            }
        }
        println!("{plugin} was asked {} questions", report.asked);
        Some(report)
    });
    let mut report = Report::default();
    for one in reports {
        report.add(one?);
    }
    println!("{} was asked {} questions", peer.name, report.asked);
    print!("{}", report.text());
    Some(report)
}

/// The versions that an implementation claims. What it does not claim is one failure (`versions`) and no more.
fn spoken(peer: &Peer) -> Vec<&'static str> {
    let said = std::process::Command::new(peer.program("macvlan"))
        .env_clear()
        .env("CNI_COMMAND", "VERSION")
        .env("CNI_NETNS", "dummy")
        .env("CNI_IFNAME", "dummy")
        .env("CNI_PATH", "dummy")
        .stdin(std::process::Stdio::null())
        .output()
        .unwrap();
    let said: BTreeMap<String, serde_json::Value> = serde_json::from_slice(&said.stdout).unwrap();
    let listed = said["supportedVersions"].to_string();
    let claims = |version: &&&str| listed.contains(**version);
    VERSIONS.iter().filter(claims).copied().collect()
}

/// Kernels that this machine's is not. What is written there is gone with them, so their part of the document is edited by hand.
mod uml {
    use super::{Peer, Which, failures};

    const THERE: [&str; 2] = ["ipvlan", "vlan"];

    #[test]
    #[ignore = "kernel: uml"]
    fn our_ipvlan_and_vlan_pass_every_case() {
        let report = failures(&Peer::ours(), &THERE, Which::Ends)
            .expect("a kernel of our own has namespaces");
        assert!(report.failed.is_empty(), "{}", report.text());
        assert!(report.asked > 80, "only {} questions", report.asked);
    }

    #[test]
    #[ignore = "kernel: uml"]
    fn the_references_ipvlan_and_vlan_fail_where_the_document_says() {
        let Some(peer) = Peer::reference("conformance of the reference plugins") else {
            return;
        };
        let report =
            failures(&peer, &THERE, Which::Ends).expect("a kernel of our own has namespaces");
        report.compare("reference 1.9.1 in User-mode Linux");
    }
}

#[test]
fn our_plugins_pass_every_case() {
    let Some(report) = failures(&Peer::ours(), &HERE, Which::All) else {
        return;
    };
    assert!(report.failed.is_empty(), "{}", report.text());
    // What was not asked cannot fail.
    assert!(report.asked > 500, "only {} questions", report.asked);
}

#[test]
fn our_plugins_that_have_no_reference_pass_every_case() {
    let Some(report) = failures(&Peer::ours(), &OURS, Which::All) else {
        return;
    };
    assert!(report.failed.is_empty(), "{}", report.text());
    assert!(report.asked > 230, "only {} questions", report.asked);
}

#[test]
fn the_reference_plugins_fail_where_the_document_says() {
    let what = "conformance of the reference plugins";
    let Some(peer) = Peer::reference(what) else {
        return;
    };
    if let Some(report) = failures(&peer, &HERE, Which::All) {
        report.compare(peer.name);
    }
}

#[test]
fn the_plugins_of_debian_fail_where_the_document_says() {
    let Some(peer) = Peer::debian("conformance of Debian's plugins") else {
        return;
    };
    if let Some(report) = failures(&peer, &HERE, Which::All) {
        report.compare(peer.name);
    }
}
