//! The functions of the nephio dialect against published cases, and against our own of the same form.
//!
//! ```text
//!  <function>/<case>/
//!    Kptfile, *.yaml       the package
//!    _pools.yaml           functionConfig: pools, for ipam-fn and vlan-fn
//!    _expected.yaml        the whole ResourceList
//!    _expected_error.txt   what is said where the function fails
//!    _expected_results.*   severity and a part of the message, one per result
//!    _notes                what is said on stderr, ours only
//! ```
//!
//! Compared by meaning: maps in any order, lists in order. Every case runs twice, and the second run changes
//! nothing. `MOOR_UPDATE=1` rewrites `_expected.yaml` and `_notes` of our own cases; review the diff.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a failed set-up is a failed test; inputs need no atomic writer"
)]

#[path = "nephio/list.rs"]
mod list;
#[path = "nephio/orders.rs"]
mod orders;

use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::{Finding, Severity, Time, VlanId};
use mooring_book::{MemoryStore, Store};
use mooring_ipam::{Candidate, Holder, InstanceKey, Thing};
use mooring_krm::File;
use mooring_package::{Answer, Call, Dialect, function_as};
use serde_json::Value;

const NOW: Time = Time(1_700_000_000);

/// Published cases that hold what Mooring would rather not write, and why they are met all the same.
const ENSHRINED: [(&str, &str); 5] = [
    (
        "nad-fn/create_full_resources",
        "sriov has a master, and no resourceName",
    ),
    (
        "nad-fn/create_full_resources_dual_stack",
        "sriov has a master; an address is a network",
    ),
    (
        "nad-fn/existing_nad_resources",
        "a NAD of an old name stays",
    ),
    (
        "nad-fn/only_ipclaim_sriovType",
        "sriov has a master, and no resourceName",
    ),
    (
        "ipam-fn/claim_network_prefix",
        "the condition has no reason, although the claim has an owner",
    ),
];

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/nephio")
}

/// The directories below, sorted.
fn directories(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    let mut all: Vec<PathBuf> = entries.map(|e| e.unwrap().path()).collect();
    all.retain(|p| p.is_dir());
    all.sort();
    all
}

fn call(name: &str, input: &str, store: &dyn Store) -> Answer {
    let call = Call {
        name,
        dialect: Some(Dialect::Nephio),
        strict: false,
    };
    function_as(&call, input.as_bytes(), store, NOW).unwrap()
}

fn parsed(text: &str) -> Value {
    let file = File::parse(text.as_bytes()).unwrap();
    file.documents()[0].value().clone()
}

fn read(dir: &Path, name: &str) -> Option<String> {
    fs::read_to_string(dir.join(name)).ok()
}

/// A book in which the first VLANs of a cluster are taken, so that the next one is 10.
fn book() -> MemoryStore {
    let store = MemoryStore::new();
    let mut txn = store.begin(NOW).unwrap();
    for cluster in ["cluster01", "cluster03"] {
        let index = InstanceKey::new("", cluster);
        for id in 2..10_u16 {
            let holder = Holder::outside(format!("fabric-{id}"), "vlan", mooring_api::Family::V4);
            let candidate = Candidate {
                thing: Thing::Vlan(VlanId::try_from(id).unwrap()),
                subnet: None,
                gateway: None,
            };
            txn.try_take(&index, &candidate, &holder).unwrap();
        }
    }
    let txn = txn.reserve(mooring_api::Span(60)).unwrap();
    store.commit(txn, NOW).unwrap();
    store
}

/// Runs one case; what differs, if anything.
fn run(function: &str, dir: &Path, pools: Option<String>, own: bool) -> Result<(), String> {
    let input = list::of(dir, pools.as_deref());
    let store = book();
    let answer = call(function, &input, &store);
    if let Some(wanted) = read(dir, "_expected_error.txt") {
        let said = answer
            .findings
            .iter()
            .any(|f| f.message.contains(wanted.trim()));
        if !said || !answer.failed {
            return Err(format!("{:?} instead of {wanted}", answer.findings));
        }
    } else if answer.failed {
        return Err(format!("it failed: {:?}", answer.findings));
    }
    results(dir, &answer)?;
    if own {
        keep(dir, "_notes", &shown(&answer.findings))?;
        if read(dir, "_expected_error.txt").is_none() {
            keep(dir, "_expected.yaml", &answer.stdout)?;
        }
    }
    if let Some(expected) = read(dir, "_expected.yaml") {
        let mut got = parsed(&answer.stdout);
        let map = got.as_object_mut().unwrap();
        // Our pools came with the list; they are no part of the case.
        map.shift_remove("functionConfig");
        let mut expected = parsed(&expected);
        expected
            .as_object_mut()
            .unwrap()
            .shift_remove("functionConfig");
        if got != expected {
            let text = |v: &Value| mooring_krm::emit(v);
            return Err(mooring_testkit::unified(
                "list",
                &text(&expected),
                &text(&got),
            ));
        }
    }
    let again = call(function, &answer.stdout, &store);
    if parsed(&again.stdout) != parsed(&answer.stdout) {
        return Err(format!(
            "a second run changes it:\n{}",
            mooring_testkit::unified("list", &answer.stdout, &again.stdout)
        ));
    }
    Ok(())
}

/// Every expected result is there, by severity and a part of its message.
fn results(dir: &Path, answer: &Answer) -> Result<(), String> {
    let wanted = ["_expected_results.yaml", "_expected_results.txt"];
    let Some(wanted) = wanted.iter().find_map(|name| read(dir, name)) else {
        return Ok(());
    };
    let got = parsed(&answer.stdout)["results"].clone();
    for result in parsed(&wanted).as_array().unwrap() {
        let message = result["message"].as_str().unwrap();
        let fits = |r: &Value| {
            r["severity"] == result["severity"] && r["message"].as_str().unwrap().contains(message)
        };
        if !got.as_array().is_some_and(|all| all.iter().any(fits)) {
            return Err(format!("no result {result} in {got}"));
        }
    }
    Ok(())
}

fn shown(findings: &[Finding]) -> String {
    findings
        .iter()
        .fold(String::new(), |text, f| text + &f.to_string() + "\n")
}

/// An expectation of ours: compared, or rewritten.
fn keep(dir: &Path, name: &str, text: &str) -> Result<(), String> {
    let path = dir.join(name);
    if std::env::var_os("MOOR_UPDATE").is_some() {
        if text.is_empty() {
            let _ = fs::remove_file(&path);
        } else {
            fs::write(&path, text).unwrap();
        }
        return Ok(());
    }
    let known = fs::read_to_string(&path).unwrap_or_default();
    if name == "_notes" && known != text {
        return Err(mooring_testkit::unified(name, &known, text));
    }
    Ok(())
}

fn all(root: &Path, own: bool, pools: impl Fn(&str, &Path) -> Option<String>) -> usize {
    let mut count = 0;
    let mut wrong = Vec::new();
    for function in directories(root) {
        let name = function.file_name().unwrap().to_str().unwrap().to_owned();
        if !name.ends_with("-fn") {
            continue;
        }
        for case in directories(&function) {
            count += 1;
            let label = format!("{name}/{}", case.file_name().unwrap().to_str().unwrap());
            if let Err(difference) = run(&name, &case, pools(&label, &case), own) {
                wrong.push(format!("=== {label}\n{difference}"));
            }
        }
    }
    assert!(
        wrong.is_empty(),
        "{} of {count}\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    count
}

#[test]
fn every_published_case_is_met() {
    let Some(oracles) = mooring_testkit::oracles("nephio") else {
        return;
    };
    let shared = fs::read_to_string(here().join("pools.yaml")).unwrap();
    let pools = |label: &str, _: &Path| {
        let meets = label.starts_with("ipam-fn/") || label.starts_with("vlan-fn/");
        meets.then(|| shared.clone())
    };
    let root = oracles.join("nephio");
    let count = all(&root, false, pools);
    assert!(count >= 25, "only {count} cases were found");
    for (case, why) in ENSHRINED {
        assert!(root.join(case).is_dir(), "{case} ({why}) is gone");
    }
}

#[test]
fn every_case_of_our_own_is_met() {
    let pools = |_: &str, dir: &Path| read(dir, "_pools.yaml");
    let count = all(&here(), true, pools);
    assert!(count >= 20, "only {count} cases were found");
}

#[test]
fn a_condition_that_fails_is_an_error_only_where_asked() {
    let dir = here().join("interface-fn/cni_mismatch_partial");
    let input = list::of(&dir, None);
    let plain = call("interface-fn", &input, &MemoryStore::new());
    assert!(!plain.failed && parsed(&plain.stdout).get("results").is_none());
    assert!(
        plain
            .findings
            .iter()
            .all(|f| f.severity == Severity::Warning)
    );
    let strict = Call {
        name: "interface-fn",
        dialect: Some(Dialect::Nephio),
        strict: true,
    };
    let strict = function_as(&strict, input.as_bytes(), &MemoryStore::new(), NOW).unwrap();
    assert!(strict.failed);
    let results = parsed(&strict.stdout)["results"].clone();
    assert_eq!(results[0]["severity"], "error");
    assert_eq!(results[0]["resourceRef"]["kind"], "Interface");
    assert_eq!(results[0]["field"]["path"], "spec.cniType");
    assert_eq!(results[0]["tags"]["code"], "UnsupportedCni");
    // The same items: kpt throws them away where a function fails, a person may want to see them.
    assert_eq!(
        parsed(&plain.stdout)["items"],
        parsed(&strict.stdout)["items"]
    );
    let config = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\ndata: {strict: \"true\"}\n";
    let configured = call(
        "interface-fn",
        &list::of(&dir, Some(config)),
        &MemoryStore::new(),
    );
    assert!(configured.failed);
}

#[test]
fn an_empty_list_is_no_error() {
    let empty = "apiVersion: config.kubernetes.io/v1\nkind: ResourceList\nitems: []\n";
    for name in [
        "interface-fn",
        "nad-fn",
        "dnn-fn",
        "nfdeploy-fn",
        "ipam-fn",
        "vlan-fn",
    ] {
        let answer = call(name, empty, &MemoryStore::new());
        assert!(!answer.failed);
        assert_eq!(
            parsed(&answer.stdout)["results"][0]["severity"],
            "info",
            "{name}"
        );
    }
}

#[test]
fn every_row_of_what_differs_names_a_test_that_exists() {
    let root = mooring_testkit::workspace_root();
    let page = fs::read_to_string(root.join("docs/concepts/nephio-differences.md")).unwrap();
    let code = mooring_testkit::sources();
    let oracles = mooring_testkit::oracles("published cases that the differences name");
    let is_row = |l: &&str| l.starts_with("| ");
    let (mut rows, mut wrong) = (0, Vec::new());
    for row in page.lines().filter(is_row) {
        let cells: Vec<&str> = row.trim_matches('|').split(" | ").map(str::trim).collect();
        let last = *cells.last().unwrap();
        if ["test", "case"].contains(&last) {
            continue;
        }
        rows += 1;
        let names: Vec<&str> = last.split('`').skip(1).step_by(2).collect();
        let exists = |name: &&str| {
            let Some((function, case)) = name.split_once('/') else {
                return code.contains(&format!("fn {name}("));
            };
            let below = |root: &Path| root.join(function).join(case).is_dir();
            let published = last.contains(&format!("published `{name}`"));
            match &oracles {
                Some(oracles) if published => below(&oracles.join("nephio")),
                None if published => true,
                _ => below(&here()),
            }
        };
        if names.is_empty() || !names.iter().all(exists) {
            wrong.push(row);
        }
    }
    assert!(rows > 50, "only {rows} rows were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn marks_choose_the_dialect() {
    let marked = list::of(&here().join("interface-fn/interface_loopback"), None);
    let by_marks =
        mooring_package::function("interface-fn", marked.as_bytes(), &MemoryStore::new(), NOW);
    let conditions = parsed(&by_marks.unwrap().stdout);
    let text = conditions.to_string();
    assert!(
        text.contains("req.nephio.org/v1alpha1.Interface.lo0"),
        "{text}"
    );
    let native = Call {
        name: "interface-fn",
        dialect: Some(Dialect::Native),
        strict: false,
    };
    let native = function_as(&native, marked.as_bytes(), &MemoryStore::new(), NOW).unwrap();
    assert!(
        !native.stdout.contains("Interface.lo0"),
        "{}",
        native.stdout
    );
}

#[test]
fn comments_stay_and_items_go_out_in_the_published_order() {
    let input = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata:
    name: sbi
    annotations:
      internal.config.kubernetes.io/path: sbi.yaml
  spec: # the pod network
    networkInstance: {name: default}
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata:
    name: amf # ours
  info:
    description: an AMF
- apiVersion: infra.nephio.org/v1alpha1
  kind: WorkloadCluster
  metadata: {name: c}
  spec: {clusterName: edge01, cnis: [macvlan], masterInterface: eth1} # one NIC
";
    let expected = "\
apiVersion: config.kubernetes.io/v1
kind: ResourceList
items:
- apiVersion: infra.nephio.org/v1alpha1
  kind: WorkloadCluster
  metadata: {name: c}
  spec: {clusterName: edge01, cnis: [macvlan], masterInterface: eth1} # one NIC
- apiVersion: kpt.dev/v1
  kind: Kptfile
  metadata:
    name: amf # ours
  info:
    description: an AMF
  status:
    conditions:
    - type: req.nephio.org/v1alpha1.Interface.sbi
      status: \"True\"
      message: update done
- apiVersion: req.nephio.org/v1alpha1
  kind: Interface
  metadata:
    name: sbi
    annotations:
      internal.config.kubernetes.io/path: sbi.yaml
  spec: # the pod network
    networkInstance: {name: default}
  status: {}
";
    let answer = call("interface-fn", input, &MemoryStore::new());
    assert_eq!(answer.stdout, expected);
}
