//! Every YAML file of the oracles, and a few of our own: byte for byte back, one annotation set, and the
//! same values as another reader.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::format_push_string,
    clippy::format_collect,
    reason = "a test reports by panicking and printing"
)]

use std::fs;
use std::path::{Path, PathBuf};

use mooring_krm::{Edit, FieldPath, File, emit};
use serde_json::{Value, json};

fn yaml_files(directory: &Path, found: &mut Vec<PathBuf>) {
    let mut entries: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    entries.sort();
    for path in entries {
        if path.is_dir() {
            yaml_files(&path, found);
        } else if mooring_krm::is_krm(&path.file_name().unwrap().to_string_lossy()) {
            found.push(path);
        }
    }
}

/// Our own files, and the oracles where they are.
fn files(what: &str) -> Vec<(PathBuf, String)> {
    let mut found = Vec::new();
    yaml_files(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data"),
        &mut found,
    );
    assert!(found.len() >= 3);
    if let Some(oracles) = mooring_testkit::oracles(what) {
        let own = found.len();
        yaml_files(&oracles, &mut found);
        assert!(
            found.len() > own + 250,
            "only {} oracle files",
            found.len() - own
        );
    }
    found
        .into_iter()
        .map(|path| (path.clone(), fs::read_to_string(path).unwrap()))
        .collect()
}

/// The text as it is, with CRLF, without a last line break, and both.
fn variants(text: &str) -> Vec<String> {
    let crlf = text.replace("\r\n", "\n").replace('\n', "\r\n");
    let cut = |text: &str| text.trim_end_matches(['\r', '\n']).to_owned();
    vec![text.to_owned(), cut(text), cut(&crlf), crlf]
}

#[test]
fn every_file_comes_back_byte_for_byte() {
    let (mut count, mut documents) = (0, 0);
    for (path, text) in files("krm round trip") {
        for text in variants(&text) {
            let file =
                File::parse(text.as_bytes()).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
            assert_eq!(file.text(), text);
            assert_eq!(file.edit(&[]).unwrap(), text);
            let wanted: Vec<_> = file.documents().iter().map(|d| Some(d.value())).collect();
            assert_eq!(file.rewrite(&wanted, &[]).unwrap(), text);
            for document in file.documents() {
                let again = File::parse(emit(document.value()).as_bytes()).unwrap();
                assert_eq!(
                    again.documents()[0].value(),
                    document.value(),
                    "{}",
                    path.display()
                );
                documents += 1;
            }
        }
        count += 1;
    }
    println!("{count} files, {documents} documents in four variants");
}

/// The lines that differ: how many lines are common at the start and at the end, and what is between.
fn hunk<'t>(before: &'t str, after: &'t str) -> (Vec<&'t str>, Vec<&'t str>) {
    let (a, b): (Vec<_>, Vec<_>) = (before.lines().collect(), after.lines().collect());
    let shorter = a.len().min(b.len());
    let head = (0..shorter).take_while(|&i| a[i] == b[i]).count();
    let tail = (0..shorter - head)
        .take_while(|&i| a[a.len() - 1 - i] == b[b.len() - 1 - i])
        .count();
    (
        a[head..a.len() - tail].to_vec(),
        b[head..b.len() - tail].to_vec(),
    )
}

#[test]
fn one_annotation_changes_one_hunk_and_nothing_else() {
    let (mut count, mut added_one, mut added_two, mut changed) = (0, 0, 0, 0);
    let annotation = FieldPath::keys(["metadata", "annotations", "mooring.dev/probe"]);
    for (path, text) in files("krm annotation edit") {
        for text in variants(&text) {
            let file = File::parse(text.as_bytes()).unwrap();
            let targets: Vec<_> = (0..file.documents().len())
                .filter(|&i| file.documents()[i].value().is_object())
                .collect();
            for &i in &targets {
                let after = file
                    .edit(&[(i, Edit::set(annotation.clone(), "x"))])
                    .unwrap_or_else(|e| panic!("{}: {e}", path.display()));
                let (old, new) = hunk(&text, &after);
                let is_new = |line: &&str| {
                    let line = line.trim();
                    ["mooring.dev/probe: x", "annotations:", "metadata:"].contains(&line)
                };
                match (old.as_slice(), new.len()) {
                    ([], 1) => added_one += 1,
                    ([], 2 | 3) => added_two += 1,
                    // A line in brackets, an empty value or a block text whose last line break is missing.
                    ([_], 1..=2) => changed += 1,
                    _ => panic!("{}: {old:?} became {new:?}", path.display()),
                }
                if old.is_empty() {
                    assert!(new.iter().all(is_new), "{}: {new:?}", path.display());
                }
                assert_eq!(
                    text.ends_with('\n'),
                    after.ends_with('\n'),
                    "{}",
                    path.display()
                );
                let again = File::parse(after.as_bytes()).unwrap();
                let mut intended = file.documents()[i].value().clone();
                if intended["metadata"]["annotations"].is_null() {
                    intended["metadata"]["annotations"] = json!({});
                }
                intended["metadata"]["annotations"]["mooring.dev/probe"] = json!("x");
                for (j, document) in again.documents().iter().enumerate() {
                    let expected = if j == i {
                        &intended
                    } else {
                        file.documents()[j].value()
                    };
                    assert_eq!(document.value(), expected, "{}", path.display());
                }
                // Taking it away again gives the bytes back, unless a mapping had to be made for it.
                let back = again
                    .edit(&[(i, Edit::remove(annotation.clone()))])
                    .unwrap();
                let had = file.documents()[i].value()["metadata"]["annotations"].is_object();
                if had && old.is_empty() {
                    assert_eq!(back, text, "{}", path.display());
                }
                count += 1;
            }
            // All documents in one go are the single edits together.
            let all: Vec<_> = targets
                .iter()
                .map(|&i| (i, Edit::set(annotation.clone(), "x")))
                .collect();
            let after = file.edit(&all).unwrap();
            assert!(after.matches("mooring.dev/probe").count() >= targets.len());
        }
    }
    println!(
        "{count} edits: {added_one} added one line, {added_two} added more, {changed} changed one"
    );
    assert!(added_one > 0 && added_two > 0 && changed > 0);
}

#[test]
fn another_reader_sees_the_same_values() {
    let (mut same, mut different, mut refused) = (0, 0, Vec::new());
    for (path, text) in files("krm against another reader") {
        let ours: Vec<_> = File::parse(text.as_bytes())
            .unwrap()
            .documents()
            .iter()
            .map(|d| d.value().clone())
            .filter(|v| !v.is_null())
            .collect();
        let options = serde_saphyr::options! { legacy_octal_numbers: true };
        match serde_saphyr::from_multiple_with_options::<Any>(&text, options) {
            Ok(theirs) => {
                let theirs: Vec<_> = theirs
                    .into_iter()
                    .map(|v| v.0)
                    .filter(|v| !v.is_null())
                    .collect();
                if path.ends_with("tests/data/anchors.yml") {
                    // Kubernetes' reader takes the key `on` for true, as it does with values.
                    assert_eq!(
                        (&ours[0]["one"]["true"], &theirs[0]["one"]["on"]),
                        (&json!(true), &json!(true))
                    );
                    different += 1;
                    continue;
                }
                assert_eq!(ours, theirs, "{}", path.display());
                same += 1;
            }
            Err(error) => refused.push(format!("{}: {error}", path.display())),
        }
    }
    println!(
        "{same} files read the same, {different} differ as known, {} refused there",
        refused.len()
    );
    // It does not take quoted text whose continuation is not indented; we and Kubernetes do.
    assert_eq!(different, 1);
    assert!(
        refused.len() == 1 && refused[0].contains("tests/data/nad.yaml"),
        "{refused:?}"
    );
}

struct Any(Value);

impl<'de> serde::Deserialize<'de> for Any {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Value::deserialize(deserializer).map(Any)
    }
}
