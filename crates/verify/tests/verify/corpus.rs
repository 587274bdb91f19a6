//! Manifests that are right: blueprints of others, our examples, everything that a render writes. A rule
//! that finds an error in one of them is wrong.

use mooring_testkit::{cases, oracles, workspace_root};
use mooring_verify::Report;

use crate::fleet::Files;

fn errors(report: &Report) -> Vec<String> {
    let errors = report.found.iter().filter(|f| f.finding.is_error());
    errors
        .map(|f| format!("{}: {}", f.origin, f.finding))
        .collect()
}

#[test]
fn no_blueprint_of_nephio_is_refused() {
    let Some(oracles) = oracles("nephio blueprints") else {
        return;
    };
    let files = Files::package("edge", &oracles.join("nephio/blueprints"));
    assert!(files.len() > 20, "only {} objects were read", files.len());
    let report = files.verify(false);
    assert_eq!(report.found, [], "a blueprint has nothing to find yet");
}

/// Packages of the catalogue, what functions of others take and give, CRDs, intents of another operator: each directory by
/// itself. Nothing is found in any of them, so nothing is excused either.
#[test]
fn nothing_of_the_oracles_gives_a_finding() {
    let Some(oracles) = oracles("every directory of the oracles") else {
        return;
    };
    let mut dirs = vec![oracles.clone()];
    let (mut objects, mut addresses) = (0, 0);
    let mut said = Vec::new();
    while let Some(dir) = dirs.pop() {
        let below = std::fs::read_dir(&dir).unwrap();
        let below = below.map(|entry| entry.unwrap().path());
        dirs.extend(below.filter(|path| path.is_dir()));
        for files in Files::alone("edge", &dir) {
            let report = files.verify(false);
            objects += report.summary.objects;
            addresses += report.summary.addresses + report.summary.ranges;
            let found = report.found.iter();
            said.extend(found.map(|f| format!("{}: {}: {}", dir.display(), f.origin, f.finding)));
        }
    }
    said.sort();
    assert!(said.is_empty(), "{}", said.join("\n"));
    assert!(objects > 300, "only {objects} objects were read");
    assert!(addresses >= 10, "only {addresses} addresses were read");
}

#[test]
fn no_example_is_refused() {
    let files = Files::package("edge", &workspace_root().join("examples"));
    assert!(files.len() > 20, "only {} objects were read", files.len());
    assert_eq!(errors(&files.verify(false)), [""; 0]);
}

#[test]
fn nothing_that_a_render_writes_is_refused() {
    let dir = workspace_root().join("crates/package/tests/cases");
    let mut read = 0;
    let mut wrong = Vec::new();
    for case in cases(dir) {
        let expected = case.expected();
        if !expected.is_dir() {
            continue;
        }
        let mut files = Files::package("edge", &expected);
        // Which instances are isolated stands with the pools.
        let pools = case.dir.join("mgmt");
        if pools.is_dir() {
            files.also("", &pools);
        }
        read += files.len();
        for error in errors(&files.verify(false)) {
            wrong.push(format!("{}: {error}", case.name));
        }
    }
    assert!(read > 500, "only {read} objects were read");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
