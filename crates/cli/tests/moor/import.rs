//! `moor import nephio`: one folder per kind of input and per refusal, through the real program.
//!
//! ```text
//!  tests/import/<case>/
//!    before/    imported first, where it is there
//!    input/     what is imported
//!    terminal   what is said, and how it ends
//!    book       what the book holds then: network, thing, subnet, gateway, holder
//! ```
//!
//! Every case is looked at with `--check` first, and imported twice: `--check` writes nothing, the second time changes
//! nothing, and a refusal leaves no book behind. `MOOR_UPDATE=1` rewrites expectations.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mooring_testkit::{Case, each_case};
use serde_json::Value;

use crate::{fresh, moor};

fn import(dir: &Path, args: &[&str]) -> (String, i32) {
    let all = ["import", "nephio", "--book", "b.redb"];
    let output = moor(dir).args(all).args(args).output().unwrap();
    let mut text = String::from_utf8(output.stdout).unwrap();
    text += &String::from_utf8(output.stderr).unwrap();
    (text, output.status.code().unwrap())
}

/// What the book holds, without its times.
fn book(dir: &Path) -> String {
    if !dir.join("b.redb").exists() {
        return String::new();
    }
    let args = ["book", "export", "-o", "json", "--book", "b.redb"];
    let (text, code) = crate::stdout(moor(dir).args(args));
    assert_eq!(code, 0, "{text}");
    let book: Value = serde_json::from_str(&text).unwrap();
    let mut out = String::new();
    let plain = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => "-".to_owned(),
        other => other.to_string(),
    };
    for part in ["leases", "reservations", "packages"] {
        for entry in book[part].as_array().into_iter().flatten() {
            let fields = entry.as_object().unwrap().iter();
            let fields =
                fields.filter(|(key, _)| !["since", "at", "state"].contains(&key.as_str()));
            let words: Vec<String> = fields
                .map(|(key, value)| format!("{key}={}", plain(value)))
                .collect();
            let line = words.join(" ").replace(&dir.display().to_string(), "DIR");
            writeln!(out, "{part}: {line}").unwrap();
        }
    }
    out
}

#[test]
fn every_kind_of_input_has_its_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/import");
    each_case(cases, run);
}

fn run(case: &Case) {
    let work = fresh();
    let dir = work.path();
    for name in ["before", "input"] {
        let from = case.dir.join(name);
        if from.is_dir() {
            let copy = mooring_testkit::copy_tree(&from);
            fs::rename(copy.path(), dir.join(name)).unwrap();
        }
    }
    if dir.join("before").is_dir() {
        let (text, code) = import(dir, &["before"]);
        assert_eq!(code, 0, "{text}");
    }
    let before = book(dir);
    let (_, looked) = import(dir, &["input", "--check"]);
    assert_eq!(book(dir), before, "--check wrote");
    let (text, code) = import(dir, &["input"]);
    case.check_text("terminal", &format!("{text}exit code {code}\n"));
    let after = book(dir);
    case.check_text("book", &after);
    match code {
        0 => assert_eq!(looked, if before == after { 0 } else { 3 }, "--check"),
        _ => {
            assert_eq!(looked, code, "--check");
            assert_eq!(before, after, "a refusal wrote");
        }
    }
    // The file itself, so that a book that is only opened shows too.
    let bytes = fs::read(dir.join("b.redb")).ok();
    let (text, again) = import(dir, &["input"]);
    assert_eq!(again, code, "{text}");
    assert_eq!(
        fs::read(dir.join("b.redb")).ok(),
        bytes,
        "the second time wrote"
    );
    if code == 0 {
        assert!(text.contains(": unchanged"), "{text}");
    }
}
