//! Folder cases of fleets: one folder per rule of variants, sets, expressions and injection.
//!
//! ```text
//!  tests/fleet/<rule>/
//!    input/      laid over tests/fleet-site (clusters, repositories, pools, blueprints in bp/): the fleet's directory
//!    before/     what stands in the output already
//!    args        --allow-empty, one line
//!    then/       laid over the fleet's directory before a second act; `then/.removed` lists what goes,
//!                `then/out-lost` which packages of the output are lost
//!    expected/   the output after the last act
//!    fleet       which package came from which variant, and what happened to it
//!    findings    what was said, in order
//!    holds       what the book holds at the end
//! ```
//!
//! Every case runs twice: the second run must change nothing. A case that ends in an error must leave output and book
//! as they were. `MOOR_UPDATE=1` rewrites expectations; review the diff.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a failed set-up is a failed test"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Time};
use mooring_book::{Filter, MemoryStore, Store};
use mooring_package::{FleetReport, FleetRequest, fleet};
use mooring_testkit::{Case, each_case, hash_tree};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn every_rule_of_a_fleet_has_its_case() {
    each_case(here().join("fleet"), run);
}

fn run(case: &Case) {
    let work = tempfile::tempdir().unwrap();
    let source = work.path().join("fleet");
    lay_over(&here().join("fleet-site"), &source);
    lay_over(&case.input(), &source);
    let out = work.path().join("out");
    if case.dir.join("before").is_dir() {
        lay_over(&case.dir.join("before"), &out);
    }
    let mut request = FleetRequest {
        source: source.clone(),
        blueprints: None,
        out: out.clone(),
        mgmt: None,
        dialect: None,
        check: false,
        allow_empty: false,
        draft: None,
        deploy_records: false,
        now: Time(1_800_000_000),
        entropy: [7; 16],
    };
    for word in case.text("args").unwrap_or_default().split_whitespace() {
        match word {
            "--allow-empty" => request.allow_empty = true,
            other => panic!("{}: {other:?} is no argument of a case", case.name),
        }
    }
    let store = MemoryStore::new();
    let mut told = Told::default();
    let mut ended = act(&store, &request, work.path(), &mut told);
    let then = case.dir.join("then");
    if then.is_dir() {
        assert!(ended, "{}: the first act was refused", case.name);
        let removed = fs::read_to_string(then.join(".removed")).unwrap_or_default();
        for path in removed.lines().filter(|l| !l.is_empty()) {
            fs::remove_file(source.join(path)).unwrap();
        }
        lay_over(&then, &source);
        let lost = fs::read_to_string(then.join("out-lost")).unwrap_or_default();
        for path in lost.lines() {
            fs::remove_dir_all(out.join(path)).unwrap();
        }
        told.then();
        // Other ids than before, so that one that is kept was kept and not minted again.
        request.entropy = [8; 16];
        ended = act(&store, &request, work.path(), &mut told);
    }
    case.check_text("findings", &told.findings);
    case.check_text("fleet", &told.fleet);
    if ended || then.is_dir() {
        case.check_text("holds", &holds(&store));
        case.check_tree(&out);
    } else {
        let stale = case.expected();
        assert!(!stale.exists(), "{} is not compared", stale.display());
    }
}

#[derive(Default)]
struct Told {
    findings: String,
    fleet: String,
}

impl Told {
    fn then(&mut self) {
        self.findings += "--- then\n";
        self.fleet += "--- then\n";
    }
}

/// Whether the act was done; then a second one, with and without `--check`, changes nothing.
fn act(store: &MemoryStore, request: &FleetRequest, work: &Path, told: &mut Told) -> bool {
    let state = || (hash_tree(&request.out), holds(store));
    let before = state();
    let check = FleetRequest {
        check: true,
        ..request.clone()
    };
    let looked = fleet(store, &check, &|_, _| {}).unwrap();
    assert_eq!(before, state(), "--check changed something");
    let done = fleet(store, request, &|_, _| {}).unwrap();
    tell(&done, work, told);
    assert_eq!(looked.report.findings, done.report.findings);
    assert_eq!(looked.texts.len(), done.report.changes.len());
    if done.report.has_errors() {
        assert_eq!(before.1, holds(store), "an error must change nothing");
        // The lock makes the directory that it locks.
        if before.0 != hash_tree(&work.join("nothing")) {
            assert_eq!(
                before.0,
                hash_tree(&request.out),
                "an error must change nothing"
            );
        }
        for finding in done.report.findings.iter().filter(|f| f.is_error()) {
            assert!(!finding.help.is_empty(), "no remedy: {finding}");
            let placed = finding.location.is_some() || finding.code == Code::PackageMissing;
            assert!(placed, "no place: {finding}");
        }
        return false;
    }
    let after = state();
    for request in [&check, request, &check] {
        let again = fleet(store, request, &|_, _| {}).unwrap();
        assert!(
            !again.report.has_errors(),
            "a second run found errors: {:?}",
            again.report.findings
        );
        assert!(
            !again.report.is_changed(),
            "a second run would change {:?}",
            again.report.changes
        );
        assert_eq!(after, state(), "a second run changed something");
    }
    true
}

fn tell(done: &FleetReport, work: &Path, told: &mut Told) {
    let short = |text: String| text.replace(&format!("{}/", work.display()), "");
    for finding in &done.report.findings {
        let mut text = finding.to_string();
        if !finding.help.is_empty() {
            write!(text, "\n    help: {}", finding.help).unwrap();
        }
        writeln!(told.findings, "{}", short(text)).unwrap();
    }
    for row in &done.downstreams {
        let (met, all) = row.conditions;
        let blueprint = short(row.blueprint.clone());
        writeln!(
            told.fleet,
            "{} of {} from {blueprint:?} for {:?}, {met} of {all} conditions: {:?}",
            row.path, row.variant, row.cluster, row.what
        )
        .unwrap();
    }
}

fn holds(store: &MemoryStore) -> String {
    let mut text = String::new();
    for lease in store.leases(&Filter::default()).unwrap() {
        writeln!(
            text,
            "{} {} {} {:?}",
            lease.instance, lease.thing, lease.holder, lease.state
        )
        .unwrap();
    }
    text
}

fn lay_over(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_name() == ".removed" {
            continue;
        }
        if entry.path().is_dir() {
            lay_over(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
