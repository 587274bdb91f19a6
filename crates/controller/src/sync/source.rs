//! Reads what stands in Git: pure, from path → bytes to objects, or to findings with file and line.
//!
//! Left out: what is marked `local-config`, Kptfiles, documents that are no objects, everything below a hidden directory
//! (`.status` is one). One error refuses the whole commit, so that the last good one stays and nothing is half applied.

use mooring_api::{Code, Finding, annotation};
use mooring_package::git::Files;
use mooring_package::{Located, is_krm, located};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::object::{Kind, Written};

/// The objects that belong into the cluster.
pub(crate) fn read(files: &Files) -> Result<Vec<Written>, Vec<Finding>> {
    let (objects, mut findings) = located(files);
    let mut written = Vec::new();
    for object in objects {
        for object in flatten(object) {
            if is_local(&object.value) {
                continue;
            }
            match parse(object) {
                Ok(object) => written.push(object),
                Err(finding) => findings.push(*finding),
            }
        }
    }
    if findings.iter().any(Finding::is_error) {
        return Err(findings);
    }
    Ok(written)
}

/// A digest of the files that can hold objects, and of nothing else: two commits with the same one are the same to a cluster.
pub(crate) fn content(files: &Files) -> String {
    let mut hash = Sha256::new();
    for (path, bytes) in files.iter().filter(|(path, _)| is_krm(path)) {
        hash.update(path.as_bytes());
        hash.update([0]);
        hash.update((bytes.len() as u64).to_be_bytes());
        hash.update(bytes);
    }
    format!("sha256:{}", hex(&hash.finalize()))
}

/// Which RootSync applied an object: short enough for a label, whatever its name.
pub(crate) fn identity(namespace: &str, name: &str) -> String {
    let hash = Sha256::digest(format!("{namespace}/{name}").as_bytes());
    hex(&hash[..8])
}

fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// The items of a List in place of it.
fn flatten(object: Located) -> Vec<Located> {
    let is_list = object.value["apiVersion"] == "v1" && object.value["kind"] == "List";
    match &object.value["items"] {
        Value::Array(items) if is_list => {
            let item = |value: &Value| Located {
                value: value.clone(),
                location: object.location.clone(),
            };
            items.iter().map(item).collect()
        }
        _ => vec![object],
    }
}

/// As Config Sync reads it: any value but "false" keeps an object out of clusters.
fn is_local(value: &Value) -> bool {
    let annotations = &value["metadata"]["annotations"];
    let marked = annotations.get(annotation::LOCAL_CONFIG);
    let group = value["apiVersion"].as_str().unwrap_or_default();
    let is_kptfile = value["kind"] == "Kptfile" && group.starts_with("kpt.dev/");
    is_kptfile || marked.is_some_and(|mark| mark != "false")
}

fn parse(object: Located) -> Result<Written, Box<Finding>> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let api_version = text(&object.value["apiVersion"]);
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let metadata = &object.value["metadata"];
    let written = Written {
        kind: Kind {
            group: group.to_owned(),
            version: version.to_owned(),
            kind: text(&object.value["kind"]),
        },
        namespace: text(&metadata["namespace"]),
        name: text(&metadata["name"]),
        at: object.location,
        value: object.value,
    };
    let (field, message) = if written.kind.kind.is_empty() || version.is_empty() {
        ("kind", "an item of a List is no object")
    } else if written.name.is_empty() {
        ("metadata.name", "the object has no name")
    } else {
        return Ok(written);
    };
    let at = &written.at;
    let finding = Finding::error(Code::InvalidField, message)
        .on(&written.reference())
        .at(field)
        .located(&at.file, at.line, at.column)
        .help("Write apiVersion, kind and metadata.name; a generateName cannot be followed from commit to commit.");
    Err(Box::new(finding))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        files.iter().map(file).collect()
    }

    fn names(all: &[(&str, &str)]) -> Vec<String> {
        let written = read(&files(all)).expect("nothing is wrong");
        written.into_iter().map(|w| w.name).collect()
    }

    #[test]
    fn what_is_for_processing_only_stays_out() {
        let object = |name: &str, mark: &str| {
            format!(
                "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  annotations: {{{mark}}}\n"
            )
        };
        let all = [
            (
                "a.yaml",
                object("a", "config.kubernetes.io/local-config: \"true\""),
            ),
            (
                "b.yaml",
                object("b", "config.kubernetes.io/local-config: \"yes\""),
            ),
            (
                "c.yaml",
                object("c", "config.kubernetes.io/local-config: \"false\""),
            ),
            ("d.yaml", object("d", "")),
            (
                "Kptfile",
                "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: p}\n".to_owned(),
            ),
            (".status/x.yaml", object("x", "")),
            ("upf/.status/y.yaml", object("y", "")),
        ];
        let all: Vec<_> = all
            .iter()
            .map(|(path, text)| (*path, text.as_str()))
            .collect();
        assert_eq!(names(&all), ["c", "d"]);
    }

    #[test]
    fn a_list_is_its_items() {
        let list = "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: ConfigMap, metadata: {name: a}}\n\
                    - {apiVersion: v1, kind: ConfigMap, metadata: {name: b}}\n";
        assert_eq!(names(&[("l.yaml", list)]), ["a", "b"]);
    }

    #[test]
    fn an_object_without_a_name_refuses_the_commit_with_its_line() {
        let two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\napiVersion: v1\nkind: ConfigMap\n\
                   metadata: {generateName: b-}\n";
        let findings = read(&files(&[("dir/x.yaml", two)])).expect_err("one has no name");
        let at = findings[0]
            .location
            .as_ref()
            .map(|l| (l.file.as_str(), l.line));
        assert_eq!(
            (findings[0].code, at),
            (Code::InvalidField, Some(("dir/x.yaml", 6)))
        );
    }

    #[test]
    fn status_and_notes_are_no_change_and_a_file_is() {
        let one = [("a.yaml", "a: 1\n")];
        let before = content(&files(&one));
        let noted = [
            one[0],
            (".status/sync-status.yaml", "x: 1\n"),
            ("README.md", "hello"),
        ];
        assert_eq!(content(&files(&noted)), before);
        assert_ne!(content(&files(&[("a.yaml", "a: 2\n")])), before);
        assert_ne!(content(&files(&[("b.yaml", "a: 1\n")])), before);
    }

    #[test]
    fn an_identity_fits_into_a_label_and_tells_namespaces_apart() {
        assert_eq!(identity("a", &"b".repeat(200)).len(), 16);
        assert_ne!(identity("a", "b-c"), identity("a-b", "c"));
    }
}
