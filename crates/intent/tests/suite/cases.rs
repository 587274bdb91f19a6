//! Folder cases: what tenants write, and everything that becomes of it.
//!
//! ```text
//!  tests/cases/<behaviour>/
//!    before/     what was compiled and rolled out before, if anything
//!    input/      the objects
//!    expected/   nodes/<node>.yaml, revision.yaml, platform.yaml, status.yaml, answers, provenance
//!    findings    what was said
//!    notes.md    where the seed is corrected, and why
//! ```
//!
//! Every case is compiled again with its objects in reverse: the bytes must be the same. `MOOR_UPDATE=1` rewrites
//! expectations; review the diff.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use mooring_api::Finding;
use mooring_intent::{Answers, Compiled, Prior};
use mooring_testkit::{Case, each_case};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{objects, run};

pub(crate) fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases")
}

#[test]
fn every_behaviour_has_its_case() {
    each_case(here(), check);
}

/// What a case compiles to.
pub(crate) fn compiled(case: &Case) -> (Compiled, Answers) {
    let before = case.dir.join("before");
    let (prior, answers) = if before.is_dir() {
        let (ran, answers) = run(&objects(&before), &Answers::default(), &Prior::default());
        (Prior::new(ran.contributions), answers)
    } else {
        (Prior::default(), Answers::default())
    };
    let mut all = objects(&case.input());
    let forward = run(&all, &answers, &prior);
    all.reverse();
    let backward = run(&all, &answers, &prior);
    assert_eq!(
        written(&forward.0, &forward.1),
        written(&backward.0, &backward.1),
        "{}: another order, another result",
        case.name
    );
    forward
}

fn check(case: &Case) {
    let (compiled, answers) = compiled(case);
    let work = case.copy_input();
    let out = work.path().join("out");
    for (path, text) in written(&compiled, &answers) {
        let path = out.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        put(&path, &text);
    }
    case.check_text("findings", &said(&compiled.findings));
    case.check_tree(&out);
}

#[expect(clippy::disallowed_methods, reason = "a scratch directory")]
fn put(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
}

fn said(findings: &[Finding]) -> String {
    let mut lines: Vec<String> = findings
        .iter()
        .map(|f| format!("{f} ({})\n", f.field.clone().unwrap_or_default()))
        .collect();
    lines.sort();
    lines.concat()
}

fn yaml<T: Serialize>(value: &T) -> String {
    serde_saphyr::to_string(value).unwrap()
}

fn many(objects: &[Value]) -> String {
    let texts: Vec<String> = objects.iter().map(yaml).collect();
    texts.join("---\n")
}

fn written(compiled: &Compiled, answers: &Answers) -> Vec<(String, String)> {
    let mut files = Vec::new();
    for (node, config) in &compiled.nodes {
        files.push((
            format!("nodes/{node}.yaml"),
            many(&config.objects(node, &compiled.digest)),
        ));
    }
    let revision = json!({
        "apiVersion": "network.t-caas.telekom.com/v1alpha1",
        "kind": "NetworkConfigRevision",
        "metadata": { "name": compiled.revision().metadata.name },
        "spec": compiled.revision().spec,
    });
    files.push(("revision.yaml".to_owned(), yaml(&revision)));
    if !compiled.platform.is_empty() {
        files.push(("platform.yaml".to_owned(), many(&compiled.platform)));
    }
    if !compiled.nads.is_empty() {
        files.push(("nads.yaml".to_owned(), yaml(&compiled.nads)));
    }
    let statuses: Vec<Value> = compiled
        .statuses
        .iter()
        .map(|(id, status)| json!({ "kind": id.kind, "name": id.name, "status": status }))
        .collect();
    files.push(("status.yaml".to_owned(), many(&statuses)));
    let given = answers.iter().fold(String::new(), |mut text, (key, what)| {
        writeln!(text, "{key} {what}").unwrap();
        text
    });
    if !given.is_empty() {
        files.push(("answers".to_owned(), given));
    }
    let mut why = String::new();
    for part in compiled.compiled_revisions() {
        for entry in &part.spec.provenance {
            writeln!(why, "{}", entry.path).unwrap();
            for origin in &entry.origins {
                writeln!(why, "  {origin}").unwrap();
            }
        }
    }
    if !why.is_empty() {
        files.push(("provenance".to_owned(), why));
    }
    files
}
