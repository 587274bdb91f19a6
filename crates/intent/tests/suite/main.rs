//! The compiler from outside: folder cases, the low-level network of the oracles, properties, published schemas.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test reports by panicking, and counts aloud what it read"
)]

mod again;
mod cases;
mod coverage;
mod defects;
mod facts;
mod guide;
mod hostile;
mod oracle;
mod originals;
mod plans;
mod properties;
mod published;
mod rules;
mod seed;
mod settle;
mod simulate;
mod uml;

use std::fs;
use std::path::Path;

use mooring_intent::{Answers, Compiled, Inputs, Prior, allocate, compile, wants};
use serde_json::Value;

/// The documents of a YAML text.
fn documents(text: &str) -> Vec<Value> {
    let options = serde_saphyr::options! { legacy_octal_numbers: true };
    serde_saphyr::from_multiple_with_options(text, options)
        .unwrap_or_else(|e| panic!("{e}\n{text}"))
}

/// Every document below a directory, by file name.
fn objects(dir: &Path) -> Vec<Value> {
    let mut files: Vec<_> = fs::read_dir(dir)
        .unwrap_or_else(|e| panic!("{}: {e}", dir.display()))
        .map(|e| e.unwrap().path())
        .collect();
    files.sort();
    files
        .iter()
        .flat_map(|file| documents(&fs::read_to_string(file).unwrap()))
        .collect()
}

/// Compiles objects with the answers that arithmetic gives, and what was there before.
fn run(objects: &[Value], before: &Answers, prior: &Prior) -> (Compiled, Answers) {
    let inputs = Inputs::read(objects);
    let (answers, findings) = allocate(&wants(&inputs), before);
    let mut compiled = compile(&inputs, &answers, prior);
    compiled.findings.extend(findings);
    (compiled, answers)
}

/// Compiles the documents of a text on their own.
fn text(text: &str) -> Compiled {
    run(&documents(text), &Answers::default(), &Prior::default()).0
}

/// Codes that were said, each once.
fn codes(compiled: &Compiled) -> Vec<String> {
    let mut codes: Vec<String> = compiled
        .findings
        .iter()
        .map(|f| f.code.to_string())
        .collect();
    codes.sort();
    codes.dedup();
    codes
}

#[test]
fn what_needs_user_mode_linux_runs_there() {
    mooring_testkit::uml_suite();
}
