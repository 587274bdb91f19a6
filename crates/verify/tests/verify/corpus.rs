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
