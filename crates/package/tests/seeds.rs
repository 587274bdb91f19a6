//! The seeds as cases: every fenced block of the two seeds that are about packages, and every object that
//! seed 000 draws in a box, has a row in `seeds/table.txt` that says what became of it.
//!
//! ```text
//!  000   12 box:IPPrefix  input of seed-000
//!  001  903 yaml          input of seed-001-solution-5
//!  001 4091 yaml          output of seed-001-whereabouts; but whereabouts finds its own kubeconfig
//!  001  240 bash          not ours: a shell transcript
//! ```
//!
//! A block without a row fails, and so does a row without a block. What is said to be an input or output of
//! a case is compared with it: the case holds every field of the seed with the seed's value (and may hold
//! more). `; but REASON` is for what is written differently on purpose, and is not compared.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a table or seed that cannot be read is a failed test"
)]

#[path = "seeds/block.rs"]
mod block;
#[path = "seeds/table.rs"]
mod table;

use std::fs;
use std::path::{Path, PathBuf};

use block::Block;
use mooring_testkit::workspace_root;
use serde_json::Value;
use table::{Row, Verdict};

fn here() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests")
}

fn rows() -> Vec<Row> {
    let text = fs::read_to_string(here().join("seeds/table.txt")).unwrap();
    table::parse(&text)
}

/// Text of the seed that has this number; a counted skip without the seeds.
fn seed(number: &str) -> Option<String> {
    let dir = workspace_root().join("../shared/seeds");
    let Ok(entries) = fs::read_dir(&dir) else {
        mooring_testkit::skip("seeds-absent", &format!("seed {number} against its table"));
        return None;
    };
    let names = entries.map(|e| e.unwrap().path());
    let is_it = |p: &PathBuf| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with(&format!("{number}_"))
    };
    let path = names.into_iter().find(is_it);
    let path = path.unwrap_or_else(|| panic!("seed {number} is not in {}", dir.display()));
    Some(fs::read_to_string(path).unwrap())
}

#[test]
fn every_named_case_is_there() {
    let gone: Vec<String> = rows()
        .iter()
        .filter_map(|row| row.verdict.case())
        .filter(|case| !here().join("cases").join(case).join("input").is_dir())
        .map(ToOwned::to_owned)
        .collect();
    assert!(
        gone.is_empty(),
        "the table names cases that do not exist: {gone:?}"
    );
}

#[test]
fn every_block_of_seed_000_has_its_row() {
    each_block_has_its_row("000");
}

#[test]
fn every_block_of_seed_001_has_its_row() {
    each_block_has_its_row("001");
}

fn each_block_has_its_row(number: &str) {
    let Some(text) = seed(number) else { return };
    let blocks = block::find(&text);
    let rows: Vec<Row> = rows().into_iter().filter(|r| r.seed == number).collect();
    let name = |line: usize, what: &str| format!("{number} {line} {what}");
    let mut wrong: Vec<String> = Vec::new();
    for block in &blocks {
        if !rows
            .iter()
            .any(|r| (r.line, &r.what) == (block.line, &block.what))
        {
            wrong.push(format!("{} has no row", name(block.line, &block.what)));
        }
    }
    for row in &rows {
        if !blocks
            .iter()
            .any(|b| (b.line, &b.what) == (row.line, &row.what))
        {
            wrong.push(format!("{} has no block", name(row.line, &row.what)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_a_row_calls_input_or_output_is_in_its_case() {
    let mut wrong = Vec::new();
    let mut compared = 0;
    for number in ["000", "001"] {
        let Some(text) = seed(number) else { return };
        let blocks = block::find(&text);
        for row in rows().iter().filter(|r| r.seed == number) {
            let (case, side) = match &row.verdict {
                Verdict::Input { case, but: None } => (case, Side::Input),
                Verdict::Output { case, but: None } => (case, Side::Output),
                _ => continue,
            };
            let of_row = |b: &&Block| (b.line, &b.what) == (row.line, &row.what);
            let Some(block) = blocks.iter().find(of_row) else {
                continue;
            };
            let held = objects(case, side);
            let wanted = block.objects();
            compared += wanted.len();
            if wanted.is_empty() {
                wrong.push(format!(
                    "{number} {} {}: no object in it",
                    row.line, row.what
                ));
            }
            for object in wanted {
                if !held.iter().any(|o| holds(o, &object)) {
                    wrong.push(format!(
                        "{number} {} {}: {case} lacks {object}",
                        row.line, row.what
                    ));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(compared >= 30, "only {compared} objects were compared");
}

#[derive(Clone, Copy, PartialEq)]
enum Side {
    Input,
    Output,
}

/// Every object of a case on one side. What goes in is the package and the management side.
fn objects(case: &str, side: Side) -> Vec<Value> {
    let dir = here().join("cases").join(case);
    let mut out = Vec::new();
    match side {
        Side::Output => read(&dir.join("expected"), &mut out),
        Side::Input => {
            read(&dir.join("input"), &mut out);
            let own = dir.join("mgmt");
            read(
                &if own.is_dir() {
                    own
                } else {
                    here().join("site")
                },
                &mut out,
            );
        }
    }
    out
}

fn read(dir: &Path, out: &mut Vec<Value>) {
    for entry in fs::read_dir(dir).unwrap().map(Result::unwrap) {
        if entry.path().is_dir() {
            read(&entry.path(), out);
        } else {
            out.extend(block::parse(&fs::read_to_string(entry.path()).unwrap()));
        }
    }
}

/// Whether `ours`, or something inside it, has everything that `seed` has.
fn holds(ours: &Value, seed: &Value) -> bool {
    let inside = match ours {
        Value::Object(map) => map.values().any(|v| holds(v, seed)),
        Value::Array(list) => list.iter().any(|v| holds(v, seed)),
        _ => false,
    };
    inside || includes(ours, seed)
}

fn includes(ours: &Value, seed: &Value) -> bool {
    match (ours, seed) {
        (Value::Object(ours), Value::Object(seed)) => {
            let has = |(k, v): (&String, &Value)| ours.get(k).is_some_and(|o| includes(o, v));
            seed.iter().all(has)
        }
        (Value::Array(ours), Value::Array(seed)) => {
            ours.len() == seed.len() && ours.iter().zip(seed).all(|(o, s)| includes(o, s))
        }
        (Value::String(ours), Value::String(seed)) => match (json(ours), json(seed)) {
            (Some(ours), Some(seed)) => includes(&ours, &seed),
            _ => ours == seed,
        },
        _ => ours == seed,
    }
}

/// JSON inside a string: a NAD's configuration, a networks annotation. The seeds write comments there.
fn json(text: &str) -> Option<Value> {
    let without: String = text
        .lines()
        .map(|line| line.split(" #").next().unwrap_or_default())
        .collect();
    let value: Value = serde_json::from_str(&without).ok()?;
    (value.is_object() || value.is_array()).then_some(value)
}
