//! Fleets in miniature: what is a duplicate, what only looks like one, and that the walk agrees with
//! comparing everything with everything.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use mooring_api::{AddrRange, Cidr, Code, ObjectRef};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use serde_json::{Value, json};

use super::*;

/// An object with its place, kept alive for the [`Input`]s that borrow it.
#[derive(Clone)]
struct Doc {
    origin: Origin,
    scope: Option<String>,
    value: Value,
}

fn doc(place: &str, value: Value) -> Doc {
    let (cluster, rest) = place.split_once('/').unwrap();
    let (package, file) = rest.split_once('/').unwrap_or((rest, "o.yaml"));
    let text = |path: &str| {
        let value = value.pointer(path).and_then(Value::as_str);
        value.unwrap_or_default().to_owned()
    };
    let object = ObjectRef::new(text("/apiVersion"), text("/kind"), text("/metadata/name"))
        .within(text("/metadata/namespace"));
    let origin = Origin {
        cluster: cluster.into(),
        package: package.into(),
        file: file.into(),
        object,
    };
    Doc {
        origin,
        scope: None,
        value,
    }
}

fn nad(place: &str, name: &str, ipam: &Value) -> Doc {
    let config = json!({"cniVersion": "0.3.1", "type": "macvlan", "ipam": ipam}).to_string();
    let value = json!({
        "apiVersion": "k8s.cni.cncf.io/v1", "kind": "NetworkAttachmentDefinition",
        "metadata": {"name": name, "namespace": "ns"}, "spec": {"config": config}
    });
    doc(place, value)
}

fn holds(place: &str, name: &str, addresses: &[&str]) -> Doc {
    let list: Vec<Value> = addresses.iter().map(|a| json!({"address": a})).collect();
    nad(place, name, &json!({"type": "static", "addresses": list}))
}

fn hands_out(place: &str, name: &str, subnet: &str, range: &str) -> Doc {
    let range: AddrRange = range.parse().unwrap();
    let (first, last) = (range.first().to_string(), range.last().to_string());
    let gateway = subnet.parse::<Cidr>().unwrap().hosts().last().to_string();
    let set = json!({"subnet": subnet, "rangeStart": first, "rangeEnd": last, "gateway": gateway});
    nad(
        place,
        name,
        &json!({"type": "host-local", "ranges": [[set]]}),
    )
}

fn deployment(place: &str, name: &str, networks: &str) -> Doc {
    let value = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": name, "namespace": "ns"},
        "spec": {"template": {"metadata": {"annotations": {"k8s.v1.cni.cncf.io/networks": networks}}}}
    });
    doc(place, value)
}

fn run(docs: &[Doc]) -> Report {
    verify(docs.iter().map(|d| Input {
        origin: d.origin.clone(),
        scope: d.scope.clone(),
        value: &d.value,
    }))
}

/// The errors; these small fleets leave out strategies and networks, which others' warnings are about.
fn codes(docs: &[Doc]) -> Vec<Code> {
    let report = run(docs);
    let errors = report.findings().filter(|f| f.is_error());
    errors.map(|f| f.code).collect()
}

#[test]
fn an_address_in_two_clusters_names_both_places() {
    let report = run(&[
        holds("edge02/amf/nad_n2.yaml", "n2", &["10.1.2.20/24"]),
        holds(
            "edge01/gnb/nad_n2.yaml",
            "n2",
            &["10.1.2.20/24", "10.1.2.21/24"],
        ),
    ]);
    assert_eq!(report.found.len(), 1);
    let Found { finding, origin } = &report.found[0];
    assert_eq!(finding.code, Code::DuplicateAddress);
    assert_eq!(
        finding.message,
        "10.1.2.20 is used twice: here by NetworkAttachmentDefinition/n2 in ns (cluster edge02, package amf, \
         nad_n2.yaml), and by NetworkAttachmentDefinition/n2 in ns (cluster edge01, package gnb, nad_n2.yaml)"
    );
    assert_eq!(origin.file, "nad_n2.yaml");
    assert_eq!(finding.field.as_deref(), Some("spec.config"));
    assert_eq!(
        report.summary.to_string(),
        "2 addresses and 0 ranges over 2 clusters and 2 packages: 1 used twice"
    );
}

#[test]
fn an_address_under_a_key_in_odd_case_is_an_address() {
    let mut odd = holds("b/p", "n2", &[]);
    odd.value["spec"]["config"] = json!(
        r#"{"type": "macvlan", "IPAM": {"Type": "static", "ADDRESSES": [{"Address": "10.1.2.20/24"}]}}"#
    );
    let docs = [holds("a/p", "n2", &["10.1.2.20/24"]), odd];
    assert_eq!(codes(&docs), [Code::DuplicateAddress]);
}

#[test]
fn an_address_used_by_many_is_said_once_per_newcomer() {
    let places = ["a/p", "b/p", "c/p", "d/p"];
    let docs: Vec<Doc> = places.map(|p| holds(p, "n2", &["10.1.2.20/24"])).into();
    assert_eq!(codes(&docs), [Code::DuplicateAddress; 3]);
}

#[test]
fn the_length_does_not_make_it_another_address() {
    let docs = [
        holds("a/p", "n2", &["10.1.2.20/24"]),
        holds("b/p", "n2", &["10.1.2.20/16"]),
    ];
    assert_eq!(codes(&docs), [Code::DuplicateAddress]);
}

#[test]
fn two_interfaces_of_one_package_are_two_users() {
    let docs = [
        holds("a/p", "n2", &["10.1.2.20/24"]),
        holds("a/p", "n3", &["10.1.2.20/24"]),
    ];
    assert_eq!(codes(&docs), [Code::DuplicateAddress]);
}

#[test]
fn the_same_nad_twice_and_its_variants_per_node_are_one_user() {
    let mut variants = [
        holds("a/p/nad.yaml", "n2-node1", &["10.1.2.20/24"]),
        holds("a/p/nad.yaml", "n2-node2", &["10.1.2.20/24"]),
        holds("a/p/copy.yaml", "n2-node2", &["10.1.2.20/24"]),
    ];
    assert_eq!(codes(&variants[1..]), []);
    for doc in &mut variants {
        doc.value["metadata"]["annotations"] = json!({"mooring.dev/owned-by": "Interface/n2"});
    }
    assert_eq!(codes(&variants), []);
}

#[test]
fn isolated_scopes_may_repeat_addresses_and_ranges() {
    let mut docs = vec![
        holds("a/p", "n2", &["10.1.2.20/24"]),
        holds("b/p", "n2", &["10.1.2.20/24"]),
        hands_out("b/p", "n3", "10.1.0.0/16", "10.1.2.0-10.1.2.99"),
    ];
    assert_eq!(
        codes(&docs),
        [
            Code::DuplicateAddress,
            Code::OverlappingRanges,
            Code::OverlappingRanges
        ]
    );
    docs[0].scope = Some("vpc-red".into());
    docs[2].scope = Some("vpc-blue".into());
    assert_eq!(codes(&docs), []);
}

#[test]
fn records_and_local_config_are_not_uses() {
    let record = doc(
        "b/p",
        json!({"apiVersion": "ipam.resource.nephio.org/v1alpha1", "kind": "IPAllocation",
            "metadata": {"name": "n2"}, "spec": {"address": "10.1.2.20/32"}}),
    );
    let mut local = holds("c/p", "n2", &["10.1.2.20/24"]);
    local.value["metadata"]["annotations"] = json!({"config.kubernetes.io/local-config": "true"});
    assert_eq!(
        codes(&[holds("a/p", "n2", &["10.1.2.20/24"]), record, local]),
        []
    );
}

#[test]
fn an_annotation_carries_addresses_with_and_without_length() {
    let asks = |place, ip| {
        let text = format!(r#"[{{"name": "n2-network", "interface": "n2", "ips": ["{ip}"]}}]"#);
        deployment(place, "amf", &text)
    };
    let report = run(&[
        asks("a/p", "192.168.100.100/24"),
        asks("b/p", "192.168.100.100"),
    ]);
    let finding = &report.found.last().unwrap().finding;
    assert_eq!(finding.code, Code::DuplicateAddress);
    assert_eq!(
        finding.field.as_deref(),
        Some("spec.template.metadata.annotations[k8s.v1.cni.cncf.io/networks]")
    );
    // Two workloads of one package are two users, whatever they call the interface.
    let other = deployment(
        "a/p",
        "smf",
        r#"[{"name": "n2-network", "interface": "n2", "ips": ["192.168.100.100/24"]}]"#,
    );
    assert_eq!(
        codes(&[asks("a/p", "192.168.100.100/24"), other]),
        [Code::DuplicateAddress]
    );
}

#[test]
fn a_pod_and_a_cron_job_are_read_too() {
    let networks = r#"[{"name": "x", "ips": ["10.0.0.9/24"]}]"#;
    let meta = json!({"name": "p", "annotations": {"k8s.v1.cni.cncf.io/networks": networks}});
    let pod = doc(
        "a/p",
        json!({"apiVersion": "v1", "kind": "Pod", "metadata": meta}),
    );
    let job = doc(
        "b/p",
        json!({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"},
            "spec": {"jobTemplate": {"spec": {"template": {"metadata": meta}}}}}),
    );
    let report = run(&[pod, job]);
    let twice = report.found.last().unwrap();
    let field = twice.finding.field.clone().unwrap();
    assert_eq!(
        field,
        "spec.jobTemplate.spec.template.metadata.annotations[k8s.v1.cni.cncf.io/networks]"
    );
}

#[test]
fn an_address_in_both_carriers_is_one_use_and_one_finding() {
    let docs = [
        holds("a/p", "n2", &["10.1.2.20/24"]),
        deployment("a/p", "amf", r#"[{"name": "n2", "ips": ["10.1.2.20/24"]}]"#),
    ];
    assert_eq!(codes(&docs), [Code::TwoCarriers]);
}

#[test]
fn a_pod_takes_the_scope_of_its_nad() {
    let asks = r#"[{"name": "n2", "ips": ["10.1.2.20/24"]}]"#;
    let mut docs = [
        nad("a/p", "n2", &json!({"type": "static"})),
        deployment("a/p", "amf", asks),
        deployment("b/p", "amf", asks),
    ];
    assert_eq!(codes(&docs), [Code::DuplicateAddress]);
    docs[0].scope = Some("vpc-red".into());
    assert_eq!(codes(&docs), []);
}

#[test]
fn a_pod_means_the_nad_of_its_own_package_first() {
    let docs = [
        holds("a/first", "n2", &["10.1.2.99/24"]),
        nad("a/second", "n2", &json!({"type": "static"})),
        deployment(
            "a/second",
            "amf",
            r#"[{"name": "n2", "ips": ["10.1.2.20/24"]}]"#,
        ),
    ];
    assert_eq!(codes(&docs), [], "the first one would be a second carrier");
    assert_eq!(
        codes(&[&docs[0], &docs[2]].map(Doc::clone)),
        [Code::TwoCarriers]
    );
}

#[test]
fn the_seeds_ranges_per_cluster_do_not_meet_and_one_more_address_would() {
    let subnet = "192.168.100.0/24";
    let split = |last: &str| {
        let ran = format!("192.168.100.10-{last}");
        [
            hands_out("ran/p", "macvlan-ran-net", subnet, &ran),
            hands_out(
                "core/p",
                "macvlan-core-net",
                subnet,
                "192.168.100.100-192.168.100.199",
            ),
        ]
    };
    assert_eq!(codes(&split("192.168.100.99")), []);
    let report = run(&split("192.168.100.100"));
    let message = &report.found[0].finding.message;
    assert!(
        message.starts_with("192.168.100.100-192.168.100.199, handed out here by"),
        "{message}"
    );
    assert!(
        message.contains("meets 192.168.100.10-192.168.100.100"),
        "{message}"
    );
    assert_eq!(
        report.summary.to_string(),
        "0 addresses and 2 ranges over 2 clusters and 2 packages: 1 overlap"
    );
}

#[test]
fn an_address_inside_another_clusters_range_may_be_handed_out_again() {
    let pool = || {
        nad(
            "core/p",
            "pool",
            &json!({"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.0.8/29"]}),
        )
    };
    let with = |place: &str, address: &str| codes(&[pool(), holds(place, "n2", &[address])]);
    assert_eq!(with("edge/p", "10.0.0.7/24"), [Code::OverlappingRanges]);
    assert_eq!(with("edge/p", "10.0.0.9/24"), [], "excluded there");
    assert_eq!(
        with("core/p", "10.0.0.7/24"),
        [Code::OverlappingRanges],
        "the pool of its own cluster does not know of it either"
    );
}

#[test]
fn pieces_of_one_range_are_said_once() {
    let ipam = json!({"type": "whereabouts", "range": "10.0.0.0/24", "exclude": ["10.0.0.8/29", "10.0.0.64/29"]});
    let docs = [nad("a/p", "pool", &ipam), nad("b/p", "pool", &ipam)];
    // Three pieces each, and piece for piece they meet.
    let report = run(&docs);
    assert_eq!(report.summary.ranges, 6);
    assert_eq!(report.found.len(), 1, "{:#?}", report.found);
}

#[test]
fn broken_objects_are_findings_on_themselves() {
    let mut bad = holds("a/p", "n2", &[]);
    bad.value["spec"]["config"] = json!("{ # no\n}");
    let mut docs = [bad, deployment("a/p", "amf", "n2,,n3")];
    let expected = [Code::InvalidNetworksAnnotation, Code::InvalidNad];
    assert_eq!(codes(&docs), expected);
    docs.reverse();
    assert_eq!(codes(&docs), expected, "the order of the input shows");
    let report = run(&docs);
    assert!(report.found.iter().all(|f| f.finding.object.is_some()));
}

#[test]
fn nothing_twice_is_said_so() {
    let docs = [
        holds("a/p", "n2", &["10.1.2.20/24"]),
        holds("b/p", "n2", &["fd00::20/64"]),
    ];
    assert_eq!(
        run(&docs).summary.to_string(),
        "2 addresses and 0 ranges over 2 clusters and 2 packages: no address twice"
    );
}

#[test]
fn a_fleet_of_one_address_stays_linear_in_what_it_says() {
    // All pairs would be two million findings.
    let docs: Vec<Doc> = (0..2000)
        .map(|i| {
            hands_out(
                &format!("c{i}/p"),
                "n2",
                "10.0.0.0/16",
                "10.0.0.10-10.0.0.20",
            )
        })
        .collect();
    let report = run(&docs);
    assert_eq!(report.found.len(), 1999);
    assert_eq!(report.summary.clusters, 2000);
}

/// One carrier: cluster, scope, and an address (`None`) or a range of a length.
type Row = (u8, bool, u8, Option<u8>);

fn text(row: Row) -> (String, String) {
    let (cluster, _, first, length) = row;
    let last = length.map_or(first, |l| first.saturating_add(l));
    (
        format!("c{cluster}/p"),
        format!("10.0.1.{first}-10.0.1.{last}"),
    )
}

fn fleet(rows: &[Row]) -> Vec<Doc> {
    let build = |(i, row): (usize, &Row)| {
        let (place, range) = text(*row);
        let name = format!("n{i}");
        let mut doc = match row.3 {
            None => holds(&place, &name, &[&format!("10.0.1.{}/16", row.2)]),
            Some(_) => hands_out(&place, &name, "10.0.0.0/16", &range),
        };
        doc.scope = row.1.then(|| "isolated".to_owned());
        doc
    };
    rows.iter().enumerate().map(build).collect()
}

/// Everything against everything: the names of the objects that meet something that sorts before.
fn naive(rows: &[Row]) -> (usize, BTreeSet<String>) {
    let ends =
        |(_, _, first, length): Row| (first, length.map_or(first, |l| first.saturating_add(l)));
    let rank = |i: usize, row: Row| {
        (
            row.2,
            row.3.is_none(),
            format!("c{}", row.0),
            format!("n{i}"),
        )
    };
    let mut duplicates = 0;
    let mut overlaps = BTreeSet::new();
    for (i, a) in rows.iter().enumerate() {
        let mut second = false;
        for (j, b) in rows.iter().enumerate() {
            if i == j || a.1 != b.1 || rank(j, *b) > rank(i, *a) {
                continue;
            }
            let meets = ends(*b).0 <= ends(*a).0 && ends(*a).0 <= ends(*b).1;
            second |= meets && a.3.is_none() && b.3.is_none();
            if meets && b.3.is_some() {
                overlaps.insert(format!("n{i}"));
            }
        }
        duplicates += usize::from(second);
    }
    (duplicates, overlaps)
}

#[test]
fn the_walk_agrees_with_comparing_everything() {
    let row = (
        0_u8..4,
        prop::bool::weighted(0.2),
        0_u8..60,
        prop::option::of(0_u8..9),
    );
    let settings = ProptestConfig {
        cases: 600,
        failure_persistence: None,
        ..ProptestConfig::default()
    };
    let rng = TestRng::deterministic_rng(RngAlgorithm::ChaCha);
    let met = std::cell::Cell::new([0_u32; 3]);
    let result =
        TestRunner::new_with_rng(settings, rng).run(&prop::collection::vec(row, 0..14), |rows| {
            let mut docs = fleet(&rows);
            let report = run(&docs);
            let (duplicates, overlaps) = naive(&rows);
            let said = |code| report.findings().filter(move |f| f.code == code);
            prop_assert_eq!(said(Code::DuplicateAddress).count(), duplicates);
            let names: BTreeSet<String> = said(Code::OverlappingRanges)
                .map(|f| f.object.clone().unwrap().name)
                .collect();
            prop_assert_eq!(&names, &overlaps);
            prop_assert_eq!(report.summary.duplicates, duplicates);

            let mut counts = met.get();
            counts[0] += u32::from(duplicates > 0);
            counts[1] += u32::from(!overlaps.is_empty());
            counts[2] += u32::from(duplicates == 0 && overlaps.is_empty());
            met.set(counts);

            docs.reverse();
            let mut lines = [String::new(), String::new()];
            for (out, report) in lines.iter_mut().zip([report, run(&docs)]) {
                for finding in report.findings() {
                    writeln!(out, "{finding}").unwrap();
                }
            }
            prop_assert_eq!(&lines[0], &lines[1], "the order of the input shows");
            Ok(())
        });
    result.unwrap();
    assert!(
        met.get().iter().all(|n| *n > 20),
        "an outcome was hardly ever met: {:?}",
        met.get()
    );
}
