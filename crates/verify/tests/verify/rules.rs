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

const RULES: &[(&str, Code)] = &[
    ("address-twice", Code::DuplicateAddress),
    ("address-reserved", Code::DuplicateAddress),
    ("nad-attached-twice", Code::DuplicateAddress),
    ("ranges-overlap", Code::OverlappingRanges),
    ("ranges-overlap-inside", Code::OverlappingRanges),
    ("address-in-range", Code::OverlappingRanges),
    ("host-local-shared", Code::HostLocalNotPinned),
    ("host-local-moves", Code::HostLocalNotPinned),
    ("address-outside-subnet", Code::AddressOutsideSubnet),
    ("router-outside-subnet", Code::AddressOutsideSubnet),
    ("address-not-usable", Code::AddressNotUsable),
    ("route-to-sibling", Code::MissingRoute),
    ("cluster-network", Code::ClusterNetworkOverlap),
    ("cluster-api", Code::ClusterNetworkOverlap),
    ("cluster-networks-unknown", Code::ClusterNetworksUnknown),
    ("cluster-address", Code::ClusterAddressOnFabric),
    ("overlay", Code::ClusterAddressOnFabric),
    ("static-without-address", Code::StaticWithoutAddress),
    ("two-carriers", Code::TwoCarriers),
    ("upf-dynamic", Code::DynamicUpfAddress),
    ("primary-interface", Code::NadAsPrimary),
    ("host-network", Code::NetworksOnHostNetwork),
    ("nad-missing", Code::NadMissing),
    ("nad-json", Code::InvalidNad),
    ("networks-annotation", Code::InvalidNetworksAnnotation),
    ("replicas", Code::SharedStaticAddress),
    ("one-nad-two-workloads", Code::SharedStaticAddress),
    ("surge", Code::SurgingStrategy),
    ("cni-missing", Code::UnsupportedCni),
    ("nic-missing", Code::NoFittingNic),
    ("sriov-resource", Code::NoFittingNic),
    ("vlan-missing", Code::VlanMissing),
    ("vlan-shared", Code::SharedVlan),
    ("mtu", Code::MtuTooLarge),
    ("meta-plugin", Code::MetaPluginUnused),
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
    for (rule, code) in RULES {
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
        let known = RULES.iter().any(|(name, _)| *name == rule) || rule.starts_with("seed-");
        assert!(known, "no rule is called {rule}: {}", case.name);
    }
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
            let row = RULES.iter().any(|(_, code)| code.as_str() == name);
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
