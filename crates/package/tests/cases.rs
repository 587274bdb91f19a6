//! Folder cases of the render engine: one folder per rule, whole outputs.
//!
//! ```text
//!  tests/cases/<rule>/
//!    input/      the package (or a tree of packages)
//!    mgmt/       pools and clusters; else tests/site
//!    args        --cluster NAME, --out, --new-id, --deploy-records, --dialect NAME, one line
//!    then/       laid over the rendered package before a second act; `then/.removed` lists what goes
//!    expected/   the tree after the last act
//!    findings    what was said, in order
//!    holds       what the book holds at the end
//! ```
//!
//! Every case is rendered twice: the second run must change nothing. A case that ends in an error must
//! leave tree and book as they were. `MOOR_UPDATE=1` rewrites expectations; review the diff.

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
use mooring_package::{Dialect, Report, Request, render};
use mooring_testkit::{Case, each_case, hash_tree};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

#[test]
fn every_rule_has_its_case() {
    each_case(here().join("cases"), run);
}

fn run(case: &Case) {
    let work = case.copy_input();
    let source = work.path().join("package");
    let input = work.path().join("input");
    fs::create_dir_all(&input).unwrap();
    // The copied input becomes a directory with a stable name, so that findings show stable paths.
    for entry in fs::read_dir(work.path()).unwrap().map(Result::unwrap) {
        if entry.path() != input {
            fs::rename(entry.path(), input.join(entry.file_name())).unwrap();
        }
    }
    fs::rename(&input, &source).unwrap();

    let store = MemoryStore::new();
    let request = request(case, &source, work.path());
    let target = request.out.clone().unwrap_or_else(|| source.clone());
    let mut said = String::new();

    let before = (hash_tree(&target), holds(&store));
    let report = act(&store, &request, work.path(), &mut said);
    if report.has_errors() {
        assert_eq!(
            before,
            (hash_tree(&target), holds(&store)),
            "an error must change nothing"
        );
        check_refusal(case, &report);
        case.check_text("findings", &said);
        return;
    }
    settled(&store, &request, &target);

    let then = case.dir.join("then");
    if then.is_dir() {
        let removed = fs::read_to_string(then.join(".removed")).unwrap_or_default();
        for path in removed.lines().filter(|l| !l.is_empty()) {
            fs::remove_file(source.join(path)).unwrap();
        }
        lay_over(&then, &source);
        writeln!(said, "--- then").unwrap();
        let before = (hash_tree(&target), holds(&store));
        let report = act(&store, &request, work.path(), &mut said);
        if report.has_errors() {
            assert_eq!(
                before,
                (hash_tree(&target), holds(&store)),
                "an error must change nothing"
            );
        } else {
            settled(&store, &request, &target);
        }
    }
    case.check_text("findings", &said);
    case.check_text("holds", &holds(&store));
    case.check_tree(&target);
}

fn request(case: &Case, source: &Path, work: &Path) -> Request {
    let own = case.dir.join("mgmt");
    let mgmt = if own.is_dir() {
        own
    } else {
        here().join("site")
    };
    let mut request = Request {
        source: source.to_owned(),
        out: None,
        mgmt: Some(mgmt),
        cluster: None,
        dialect: None,
        check: false,
        new_id: false,
        draft: None,
        pinned: false,
        published: Vec::new(),
        deploy_records: false,
        now: Time(1_800_000_000),
        entropy: [7; 16],
    };
    let args = case.text("args").unwrap_or_default();
    let mut words = args.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "--cluster" => request.cluster = words.next().map(ToOwned::to_owned),
            "--out" => request.out = Some(work.join("out")),
            "--new-id" => request.new_id = true,
            "--deploy-records" => request.deploy_records = true,
            "--dialect" if words.next() == Some("nephio") => {
                request.dialect = Some(Dialect::Nephio);
            }
            "--dialect" => request.dialect = Some(Dialect::Native),
            other => panic!("{}: {other:?} is no argument of a case", case.name),
        }
    }
    request
}

fn act(store: &MemoryStore, request: &Request, work: &Path, said: &mut String) -> Report {
    let report = render(store, request, &|_, _| {}).unwrap();
    let roots = [work.display().to_string(), here().display().to_string()];
    for finding in &report.findings {
        let mut text = finding.to_string();
        if !finding.help.is_empty() {
            write!(text, "\n    help: {}", finding.help).unwrap();
        }
        for root in &roots {
            text = text.replace(&format!("{root}/"), "");
        }
        writeln!(said, "{text}").unwrap();
    }
    report
}

/// Every error names its place and a remedy, and a refused case expects no tree.
fn check_refusal(case: &Case, report: &Report) {
    for finding in report.findings.iter().filter(|f| f.is_error()) {
        assert!(!finding.help.is_empty(), "no remedy: {finding}");
        let placed = finding.location.is_some() || finding.code == Code::PackageMissing;
        assert!(placed, "no place: {finding}");
    }
    let stale = case.expected();
    assert!(!stale.exists(), "{} is not compared", stale.display());
}

/// A second run, with and without `--check`, changes nothing.
fn settled(store: &MemoryStore, request: &Request, target: &Path) {
    let request = Request {
        new_id: false,
        draft: None,
        pinned: false,
        ..request.clone()
    };
    let before = (hash_tree(target), holds(store));
    let check = Request {
        check: true,
        ..request.clone()
    };
    for request in [&check, &request, &check] {
        let report = render(store, request, &|_, _| {}).unwrap();
        assert!(
            !report.has_errors(),
            "a second run found errors: {:?}",
            report.findings
        );
        assert!(
            !report.is_changed(),
            "a second run would change {:?}",
            report.changes
        );
        assert_eq!(
            before,
            (hash_tree(target), holds(store)),
            "a second run changed something"
        );
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
    for entry in fs::read_dir(from).unwrap().map(Result::unwrap) {
        let target = to.join(entry.file_name());
        if entry.file_name() == ".removed" {
            continue;
        }
        if entry.path().is_dir() {
            fs::create_dir_all(&target).unwrap();
            lay_over(&entry.path(), &target);
        } else {
            fs::copy(entry.path(), target).unwrap();
        }
    }
}
