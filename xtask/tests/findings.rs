//! Every finding code has its page, the page says the three things a reader came for, and some test shows the code.
#![expect(
    clippy::panic,
    reason = "the functions between the tests fail like tests"
)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use mooring_api::Code;

const PARTS: &[&str] = &["## What happened", "## Why it matters", "## What to do"];

fn page(code: Code) -> String {
    let path = mooring_testkit::workspace_root().join(format!("docs/findings/{code}.md"));
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

#[test]
fn every_code_has_a_page_with_its_three_parts_in_order() {
    for code in Code::ALL {
        let text = page(*code);
        assert!(
            text.starts_with(&format!("# {code}\n")),
            "{code}: the page has another title"
        );
        let places: Vec<Option<usize>> = PARTS.iter().map(|part| text.find(part)).collect();
        assert!(
            places.iter().all(Option::is_some),
            "{code}: a part is missing: {places:?}"
        );
        assert!(places.is_sorted(), "{code}: the parts are not in order");
    }
}

#[test]
fn a_page_is_read_without_scrolling() {
    for code in Code::ALL {
        let lines = page(*code).lines().count();
        assert!(
            (8..=40).contains(&lines),
            "{code}: the page has {lines} lines"
        );
    }
}

/// A file that names more codes than this is a list of them, and shows none.
const LIST: usize = 20;

fn files(dir: &Path, into: &mut Vec<PathBuf>) {
    let entries = std::fs::read_dir(dir).unwrap_or_else(|e| panic!("{}: {e}", dir.display()));
    for entry in entries {
        let path = entry
            .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
            .path();
        // A link is nobody's test, and may lead anywhere.
        if path.is_symlink() {
            continue;
        }
        if path.is_dir() {
            files(&path, into);
        } else {
            into.push(path);
        }
    }
}

/// The part of a file that is a test: all of it below `tests`, else what follows `#[cfg(test)]`.
fn test_text(path: &Path) -> Option<String> {
    let text = std::fs::read_to_string(path).ok()?;
    let below_tests = path.components().any(|c| c.as_os_str() == "tests");
    if below_tests || path.file_name().is_some_and(|n| n == "tests.rs") {
        return Some(text);
    }
    let (_, tests) = text.split_once("#[cfg(test)]\nmod ")?;
    Some(tests.to_owned())
}

fn codes_in(text: &str) -> BTreeSet<&str> {
    let words = text.split(|c: char| !c.is_ascii_alphanumeric());
    words.filter(|w| w.parse::<Code>().is_ok()).collect()
}

#[test]
fn every_code_is_shown_by_a_case_or_a_test() {
    let mut paths = Vec::new();
    files(
        &mooring_testkit::workspace_root().join("crates"),
        &mut paths,
    );
    let texts: Vec<String> = paths.iter().filter_map(|p| test_text(p)).collect();
    let shown: BTreeSet<&str> = texts
        .iter()
        .map(|text| codes_in(text))
        .filter(|codes| codes.len() <= LIST)
        .flatten()
        .collect();
    let hidden: Vec<&str> = Code::ALL
        .iter()
        .map(|c| c.as_str())
        .filter(|c| !shown.contains(c))
        .collect();
    assert!(
        hidden.is_empty(),
        "no folder case and no test shows {hidden:?}"
    );
}

#[test]
fn a_code_is_a_whole_word() {
    let found = codes_in("error [PoolExhausted]: x; PoolExhaustedTwice, Code::BookBusy");
    assert_eq!(
        found.into_iter().collect::<Vec<_>>(),
        ["BookBusy", "PoolExhausted"]
    );
}
