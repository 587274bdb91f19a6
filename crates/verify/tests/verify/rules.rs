//! Every rule has a fleet that it admits and one that it refuses.
//!
//! ```text
//!  tests/cases/<rule>-admit/    nothing but notes may be found
//!  tests/cases/<rule>-refuse/   the rule's code must be among what is found
//!    input/<cluster>/[<package>/]*.yaml   manifests
//!    input/<cluster>/net.d/*              CNI configuration files of its nodes
//!    input/reservations                   `ADDRESS HOLDER`, one per line
//!    findings, unjudged                   what is said, whole
//! ```

use std::fmt::Write as _;

use mooring_api::Code;
use mooring_testkit::{cases, each_case};
use mooring_verify::{Found, Report};

use crate::fleet::Files;

const CASES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases");

/// What is wrong, the name of its cases, and its code.
const RULES: &[(&str, &str, Code)] = &[
    (
        "the same address twice across clusters and packages; instances marked isolated are separate scopes",
        "address-twice",
        Code::DuplicateAddress,
    ),
    (
        "… in packages, NADs and annotations of one cluster",
        "address-twice-inside",
        Code::DuplicateAddress,
    ),
    (
        "… and a reservation",
        "address-reserved",
        Code::DuplicateAddress,
    ),
    (
        "… and a reserved range",
        "range-reserved",
        Code::OverlappingRanges,
    ),
    (
        "… in one pod, by attaching a NAD twice",
        "nad-attached-twice",
        Code::DuplicateAddress,
    ),
    (
        "overlapping host-local or whereabouts ranges of two clusters",
        "ranges-overlap",
        Code::OverlappingRanges,
    ),
    (
        "… of two NADs on one link of a cluster",
        "ranges-overlap-inside",
        Code::OverlappingRanges,
    ),
    (
        "a static address inside a range",
        "address-in-range",
        Code::OverlappingRanges,
    ),
    (
        "one host-local NAD used by several pods that are not pinned to one node",
        "host-local-shared",
        Code::HostLocalNotPinned,
    ),
    (
        "… or by a pod that can change node",
        "host-local-moves",
        Code::HostLocalNotPinned,
    ),
    (
        "an address outside its subnet",
        "address-outside-subnet",
        Code::AddressOutsideSubnet,
    ),
    (
        "… or a router that is",
        "router-outside-subnet",
        Code::AddressOutsideSubnet,
    ),
    (
        "the gateway, network or broadcast address handed out",
        "address-not-usable",
        Code::AddressNotUsable,
    ),
    (
        "no route to a sibling subnet",
        "route-to-sibling",
        Code::MissingRoute,
    ),
    (
        "overlap with a pod or service CIDR, from kubeadm or the WorkloadCluster",
        "cluster-network",
        Code::ClusterNetworkOverlap,
    ),
    (
        "… or from Cluster API",
        "cluster-api",
        Code::ClusterNetworkOverlap,
    ),
    (
        "… and a missing source is said",
        "cluster-networks-unknown",
        Code::ClusterNetworksUnknown,
    ),
    (
        "a Service address on a fabric interface",
        "cluster-address",
        Code::ClusterAddressOnFabric,
    ),
    (
        "… a pod or Ingress address",
        "pod-address",
        Code::ClusterAddressOnFabric,
    ),
    (
        "… an overlay address",
        "overlay",
        Code::ClusterAddressOnFabric,
    ),
    (
        "`ipam: static` that no workload gives an address",
        "static-without-address",
        Code::StaticWithoutAddress,
    ),
    ("both carriers at once", "two-carriers", Code::TwoCarriers),
    (
        "a UPF on dynamic IPAM, a gNB or simulator not",
        "upf-dynamic",
        Code::DynamicUpfAddress,
    ),
    (
        "a NAD used as primary interface, `default-route: [\"true\"]`",
        "primary-interface",
        Code::NadAsPrimary,
    ),
    (
        "a networks annotation on a hostNetwork pod",
        "host-network",
        Code::NetworksOnHostNetwork,
    ),
    (
        "a NAD referenced but missing, other namespaces included",
        "nad-missing",
        Code::NadMissing,
    ),
    (
        "NAD JSON that a CNI plugin would refuse, a `#` comment included",
        "nad-json",
        Code::InvalidNad,
    ),
    (
        "a networks annotation that cannot be read",
        "networks-annotation",
        Code::InvalidNetworksAnnotation,
    ),
    (
        "more than one replica or a DaemonSet on one static address",
        "replicas",
        Code::SharedStaticAddress,
    ),
    (
        "… several workloads on one NAD with an address",
        "one-nad-two-workloads",
        Code::SharedStaticAddress,
    ),
    ("… a surging Deployment", "surge", Code::SurgingStrategy),
    (
        "the CNI missing on the cluster",
        "cni-missing",
        Code::UnsupportedCni,
    ),
    ("the NIC missing", "nic-missing", Code::NoFittingNic),
    (
        "… or nobody serves the device plugin's resource",
        "sriov-resource",
        Code::NoFittingNic,
    ),
    ("the VLAN missing", "vlan-missing", Code::VlanMissing),
    ("two networks on one VLAN", "vlan-shared", Code::SharedVlan),
    ("MTU larger than the NIC's", "mtu", Code::MtuTooLarge),
    (
        "a meta-plugin configuration file that sorts after another and is never used",
        "meta-plugin",
        Code::MetaPluginUnused,
    ),
];

#[test]
fn every_case_says_what_is_expected() {
    each_case(CASES, |case| {
        let files = Files::read(&case.input());
        let report = files.verify(false);
        assert_eq!(
            report,
            files.verify(true),
            "the order of the input shows in {}",
            case.name
        );
        case.check_text("findings", &text(&report.found));
        if case.name.starts_with("cluster-networks-unknown") {
            case.check_text("unjudged", &text(&report.unjudged));
        }
        let is_admit = case.name.ends_with("-admit");
        let quiet = report.found.is_empty();
        assert!(
            !is_admit || quiet,
            "{} is correct, and something was found",
            case.name
        );
    });
}

#[test]
fn every_rule_admits_and_refuses() {
    let all = cases(CASES);
    let codes = |name: &str| -> Vec<Code> {
        let case = all.iter().find(|case| case.name == name);
        let case = case.unwrap_or_else(|| panic!("there is no case {name}"));
        let Report {
            found, unjudged, ..
        } = Files::read(&case.input()).verify(false);
        let both = found.iter().chain(&unjudged);
        both.map(|f| f.finding.code).collect()
    };
    for (_, rule, code) in RULES {
        assert!(
            codes(&format!("{rule}-refuse")).contains(code),
            "{rule}-refuse does not say {code}"
        );
        assert!(
            !codes(&format!("{rule}-admit")).contains(code),
            "{rule}-admit says {code}"
        );
    }
    for case in &all {
        let rule = case.name.rsplit_once('-').map_or("", |(rule, _)| rule);
        let known = RULES.iter().any(|(_, name, _)| *name == rule) || rule.starts_with("seed-");
        assert!(known, "no rule is called {rule}: {}", case.name);
    }
}

/// `docs/reference/rules.md` is this table; `MOOR_UPDATE=1` writes it.
#[test]
#[expect(
    clippy::disallowed_methods,
    reason = "a page of the docs is no package file"
)]
fn the_page_of_rules_is_the_table() {
    let mut page = String::from(
        "<!-- Written by `MOOR_UPDATE=1 cargo test -p mooring-verify`; do not edit. -->\n\n# What moor verify finds\n\n\
         Each rule has a fleet that it admits and one that it refuses, `crates/verify/tests/cases/<case>-admit` and `-refuse`.\n\n\
         | what is wrong | finding | severity | case |\n|---|---|---|---|\n",
    );
    let all = cases(CASES);
    for (phrase, rule, code) in RULES {
        let name = format!("{rule}-refuse");
        let case = all.iter().find(|case| case.name == name);
        let report = Files::read(&case.expect("another test looks for it").input()).verify(false);
        let both = report.found.iter().chain(&report.unjudged);
        let mut severities: Vec<String> = both
            .filter(|f| f.finding.code == *code)
            .map(|f| f.finding.severity.to_string())
            .collect();
        severities.sort();
        severities.dedup();
        let severities = severities.join(" or ");
        let _ = writeln!(
            page,
            "| {phrase} | [{code}](../findings/{code}.md) | {severities} | `{rule}` |"
        );
    }
    let path = mooring_testkit::workspace_root().join("docs/reference/rules.md");
    if std::env::var_os("MOOR_UPDATE").is_some() {
        std::fs::write(&path, &page).unwrap();
    }
    let there = std::fs::read_to_string(&path).unwrap_or_default();
    let diff = mooring_testkit::unified("docs/reference/rules.md", &there, &page);
    assert!(diff.is_empty(), "MOOR_UPDATE=1 writes it\n{diff}");
}

#[test]
fn every_code_that_a_rule_can_say_has_its_row() {
    let mut sources = vec![std::path::PathBuf::from(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src"
    ))];
    let mut said = 0;
    while let Some(source) = sources.pop() {
        if source.is_dir() {
            let below = std::fs::read_dir(&source).unwrap();
            sources.extend(below.map(|entry| entry.unwrap().path()));
            continue;
        }
        if source.ends_with("tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&source).unwrap();
        for rest in text.split("Code::").skip(1) {
            let is_letter = |c: &char| c.is_ascii_alphanumeric();
            let name: String = rest.chars().take_while(is_letter).collect();
            let row = RULES.iter().any(|(_, _, code)| code.as_str() == name);
            assert!(
                row,
                "{name} of {} has no admit and refuse case",
                source.display()
            );
            said += 1;
        }
    }
    assert!(said > 20, "only {said} were found");
}

fn text(found: &[Found]) -> String {
    let mut out = String::new();
    for Found { finding, origin } in found {
        let _ = writeln!(out, "{} [{}] {origin}", finding.severity, finding.code);
        if let Some(field) = &finding.field {
            let _ = writeln!(out, "  at   {field}");
        }
        let _ = writeln!(out, "  says {}", finding.message);
        let _ = writeln!(out, "  help {}", finding.help);
    }
    out
}
