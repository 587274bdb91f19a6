//! Every fenced block of the seed that these kinds come from, and what became of it.

use std::fs;

use mooring_testkit::{Case, workspace_root};
use serde_json::Value;

use crate::cases::{compiled, here};
use crate::{documents, objects};

enum Fate {
    /// An object of the case holds every field of it.
    Input(&'static str),
    /// The status of that kind in the case has every field of it, of the same type.
    Status(&'static str, &'static str),
    /// A drawing of what the case does; its corrections stand in `notes.md`.
    Drawn(&'static str),
    /// Nothing to compile.
    Not(&'static str),
}

use Fate::{Drawn, Input, Not, Status};

const ROWS: &[(usize, Fate)] = &[
    (33, Not("the pipeline as it was")),
    (80, Not("where controllers run")),
    (116, Not("option A")),
    (134, Not("option B, drawn")),
    (183, Input("seed-4-1-destination")),
    (
        197,
        Not("a selector alone; every attachment of the cases has it"),
    ),
    (232, Drawn("seed-6-2")),
    (281, Drawn("seed-4-5-collector")),
    (328, Input("seed-4-1-destination")),
    (367, Status("seed-4-1-destination", "Destination")),
    (385, Input("seed-4-2-layer2attachment")),
    (450, Status("seed-4-2-layer2attachment", "Layer2Attachment")),
    (480, Input("seed-4-2-vrfattachment")),
    (512, Status("seed-4-2-vrfattachment", "VRFAttachment")),
    (543, Input("seed-4-3-bgpneighbor")),
    (562, Status("seed-4-3-bgpneighbor", "BGPNeighbor")),
    (583, Input("seed-4-4-podnetwork")),
    (613, Input("seed-4-5-collector")),
    (636, Status("seed-4-5-collector", "Collector")),
    (668, Input("seed-4-5-collector")),
    (695, Status("seed-4-5-collector", "TrafficMirror")),
    (817, Drawn("seed-6-1")),
    (855, Drawn("seed-6-2")),
    (886, Drawn("seed-6-3")),
    (931, Not("the types in Go; ours are in mooring-api")),
];

/// Fenced blocks by the line on which they begin.
fn blocks(text: &str) -> Vec<(usize, String)> {
    let mut blocks = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (at, line) in text.lines().enumerate() {
        if line.starts_with("```") {
            match open.take() {
                Some(block) => blocks.push(block),
                None => open = Some((at + 1, String::new())),
            }
        } else if let Some((_, body)) = &mut open {
            body.push_str(line);
            body.push('\n');
        }
    }
    blocks
}

fn case(name: &str) -> Case {
    let (name, dir) = (name.to_owned(), here().join(name));
    Case { name, dir }
}

/// Whether `ours` has every field that the seed writes, with its value.
fn holds(ours: &Value, seed: &Value) -> bool {
    match (ours, seed) {
        (Value::Object(ours), Value::Object(seed)) => seed
            .iter()
            .all(|(key, value)| ours.get(key).is_some_and(|o| holds(o, value))),
        (Value::Array(ours), Value::Array(seed)) => {
            seed.iter().all(|s| ours.iter().any(|o| holds(o, s)))
        }
        _ => ours == seed,
    }
}

/// Fields of the seed that ours lacks, or has in another type.
fn lacking(ours: &Value, seed: &Value, at: &str, found: &mut Vec<String>) {
    match (ours, seed) {
        (Value::Object(ours), Value::Object(seed)) => {
            for (key, value) in seed {
                match ours.get(key) {
                    Some(ours) => lacking(ours, value, &format!("{at}.{key}"), found),
                    None => found.push(format!("{at}.{key}")),
                }
            }
        }
        (Value::Array(ours), Value::Array(seed)) => {
            if let (Some(ours), Some(seed)) = (ours.first(), seed.first()) {
                lacking(ours, seed, &format!("{at}[]"), found);
            }
        }
        (Value::String(_), Value::String(_))
        | (Value::Number(_), Value::Number(_))
        | (Value::Bool(_), Value::Bool(_)) => {}
        _ => found.push(format!("{at} is {ours}, in the seed {seed}")),
    }
}

#[test]
fn every_block_of_the_seed_has_become_something() {
    let dir = workspace_root().join("../shared/seeds");
    let Ok(entries) = fs::read_dir(&dir) else {
        mooring_testkit::skip("seeds-absent", "seed 004 against its table");
        return;
    };
    let path = entries
        .map(|e| e.unwrap().path())
        .find(|p| p.file_name().unwrap().to_string_lossy().starts_with("004_"))
        .unwrap();
    let text = fs::read_to_string(path).unwrap();
    let blocks = blocks(&text);
    let lines: Vec<usize> = blocks.iter().map(|(line, _)| *line).collect();
    let rows: Vec<usize> = ROWS.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, rows, "a block without row, or a row without block");
    for ((line, body), (_, fate)) in blocks.iter().zip(ROWS) {
        match fate {
            Input(name) => {
                let seed = documents(body).remove(0);
                let case = case(name);
                let ours = objects(&case.input());
                let same =
                    |o: &&Value| o["kind"] == seed["kind"] && holds(&o["spec"], &seed["spec"]);
                assert!(
                    ours.iter().any(|o| same(&o)),
                    "line {line} is not in {name}"
                );
            }
            Status(name, kind) => {
                let seed = documents(body).remove(0);
                let (compiled, _) = compiled(&case(name));
                let missing = compiled
                    .statuses
                    .iter()
                    .filter(|(id, _)| id.kind == *kind)
                    .map(|(_, ours)| {
                        let mut found = Vec::new();
                        lacking(ours, &seed["status"], kind, &mut found);
                        // Conditions of rollout and platform are the controller's.
                        found.retain(|f| !f.contains(".conditions"));
                        found
                    });
                let best = missing.min_by_key(Vec::len).unwrap();
                assert_eq!(best, Vec::<String>::new(), "line {line}");
            }
            Drawn(name) => {
                let notes = case(name).text("notes.md");
                assert!(notes.is_some(), "{name} says nothing about line {line}");
            }
            Not(why) => assert!(!why.is_empty()),
        }
    }
    println!("{} blocks of seed 004", blocks.len());
}
