//! Seed 001 through the rules: every manifest in it, and everything it warns of, gives exactly its finding.
//!
//! ```text
//!  697@my-ran 722@my-core = none      blocks by their line, each in a cluster (`edge` where none is said)
//!  1052:n2-network = InvalidNad       a block without a name gets this one; so does a NAD under another name
//!  2744/10-calico.conflist = none     a JSON block as CNI configuration file of a node
//!  501 : REASON                       no manifest
//!  673 CASE ! CODE                    a warning in prose: a folder case says this code and no other
//! ```
//!
//! Every YAML and JSON block needs a row of its own or in a fleet, and a row needs its block.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use mooring_testkit::{skip, workspace_root};
use serde_json::{Map, Value, json};

use crate::block::{self, Block};
use crate::fleet::Files;

const TABLE: &str = include_str!("../seed-001.txt");

/// The rows that name blocks, without comments: what is judged, and what it gives.
fn rows() -> Vec<(usize, &'static str)> {
    let lines = TABLE.lines().enumerate();
    let lines = lines.map(|(at, line)| (at + 1, line.split(" ;").next().unwrap_or_default()));
    let whole = lines.filter(|(_, line)| !line.trim().is_empty() && !line.starts_with('#'));
    whole.collect()
}

fn seed() -> Option<Vec<Block>> {
    let dir = workspace_root().join("../shared/seeds");
    let Ok(entries) = fs::read_dir(&dir) else {
        skip("seeds-absent", "seed 001 through the rules");
        return None;
    };
    let mut names = entries.map(|e| e.unwrap().path());
    let is_it = |p: &Path| {
        let name = p.file_name().unwrap_or_default().to_string_lossy();
        name.starts_with("001_")
    };
    let path = names.find(|p| is_it(p)).expect("the seeds have a 001");
    Some(block::find(&fs::read_to_string(path).unwrap()))
}

/// `697@my-ran`, `1052:n2-network`, `2744/10-calico.conflist`.
struct Word<'a> {
    line: usize,
    cluster: &'a str,
    name: Option<&'a str>,
    file: Option<&'a str>,
}

fn word(text: &str) -> Word<'_> {
    let (text, file) = match text.split_once('/') {
        Some((text, file)) => (text, Some(file)),
        None => (text, None),
    };
    let (text, name) = match text.split_once(':') {
        Some((text, name)) => (text, Some(name)),
        None => (text, None),
    };
    let (line, cluster) = text.split_once('@').unwrap_or((text, "edge"));
    Word {
        line: line.parse().unwrap(),
        cluster,
        name,
        file,
    }
}

#[test]
fn every_manifest_of_the_seed_gives_exactly_its_findings() {
    let Some(blocks) = seed() else { return };
    let mut wrong = Vec::new();
    let mut judged = 0;
    for (number, row) in rows() {
        let Some((what, wanted)) = row.split_once('=') else {
            continue;
        };
        let mut files = Files::default();
        for text in what.split_whitespace() {
            let word = word(text);
            let block = blocks.iter().find(|b| b.line == word.line);
            let Some(block) = block else {
                wrong.push(format!("row {number}: no block at {}", word.line));
                continue;
            };
            put(&mut files, block, &word);
        }
        let mut said: Vec<String> = files
            .verify(false)
            .findings()
            .map(|f| f.code.to_string())
            .collect();
        said.sort();
        let wanted: Vec<&str> = wanted
            .split_whitespace()
            .filter(|code| *code != "none")
            .collect();
        if said != wanted {
            wrong.push(format!(
                "row {number}: {what}gives {said:?}, not {wanted:?}"
            ));
        }
        judged += 1;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(judged >= 50, "only {judged} rows were judged");
}

/// Adds a block's objects; a part of an object is made whole.
fn put(files: &mut Files, block: &Block, word: &Word<'_>) {
    if let Some(name) = word.file {
        return files.conf(word.cluster, name, block.text());
    }
    for (at, mut object) in block.objects().into_iter().enumerate() {
        if let Some(networks) = object.get("k8s.v1.cni.cncf.io/networks") {
            object = json!({
                "apiVersion": "v1", "kind": "Pod",
                "metadata": {"name": "pod", "annotations": {"k8s.v1.cni.cncf.io/networks": networks}},
            });
        } else if object.get("kind").is_none() {
            object["apiVersion"] = "k8s.cni.cncf.io/v1".into();
            object["kind"] = "NetworkAttachmentDefinition".into();
            object["metadata"] = Value::Object(Map::new());
        }
        if let Some(name) = word.name {
            object["metadata"]["name"] = name.into();
        }
        let file = format!("{}-{at}.yaml", word.line);
        files.object(word.cluster, "", &file, object);
    }
}

#[test]
fn every_manifest_of_the_seed_has_its_row() {
    let Some(blocks) = seed() else { return };
    let mut named = BTreeSet::new();
    for (_, row) in rows().iter().filter(|(_, row)| !row.contains('!')) {
        let words = row.split(['=', ':']).next().unwrap_or_default();
        let end = row.find(" = ").unwrap_or(words.len());
        named.extend(row[..end].split_whitespace().map(|text| word(text).line));
    }
    let there: BTreeSet<usize> = blocks
        .iter()
        .filter(|b| matches!(b.what.as_str(), "yaml" | "json"))
        .map(|b| b.line)
        .collect();
    let missing: Vec<&usize> = there.difference(&named).collect();
    assert!(missing.is_empty(), "blocks without a row: {missing:?}");
    let gone: Vec<&usize> = named.difference(&there).collect();
    assert!(gone.is_empty(), "rows without a block: {gone:?}");
}

#[test]
fn everything_the_seed_warns_of_has_a_case_that_says_it_and_nothing_else() {
    let mut warned = 0;
    for (number, row) in rows() {
        let Some((what, code)) = row.split_once('!') else {
            continue;
        };
        let [_line, case] = what.split_whitespace().collect::<Vec<_>>()[..] else {
            panic!("row {number} is not `LINE CASE ! CODE`");
        };
        let dir = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/cases")
            .join(case)
            .join("input");
        assert!(dir.is_dir(), "row {number}: there is no case {case}");
        let report = Files::read(&dir).verify(false);
        let codes: BTreeSet<String> = report.findings().map(|f| f.code.to_string()).collect();
        let wanted = BTreeSet::from([code.trim().to_owned()]);
        assert_eq!(codes, wanted, "row {number}: {case}");
        warned += 1;
    }
    assert!(warned >= 10, "only {warned} warnings");
}
