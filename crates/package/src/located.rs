//! Objects of files with their places: for hands that read packages and do not render them, and see no `krm`.
//!
//! Called by the sync role of the controller with the files of a directory in Git.

use mooring_api::{Finding, Location};
use serde_json::Value;

use crate::Files;
use crate::documents::{Documents, position};

/// An object, and where it stands.
#[derive(Clone, Debug, PartialEq)]
pub struct Located {
    /// The object.
    pub value: Value,
    /// Its file and line.
    pub location: Location,
}

/// Every object of every file that can hold one, in order of path and place. Documents that are no objects are left out, and so
/// is what lies below a hidden directory (`.status`, `.git`); a file that cannot be read is a finding with its line.
pub fn located(files: &Files) -> (Vec<Located>, Vec<Finding>) {
    let mut findings = Vec::new();
    let texts = files
        .iter()
        .map(|(path, bytes)| (path.as_str(), bytes.as_slice()));
    let texts = texts.filter(|(path, _)| mooring_krm::is_krm(path));
    let documents = Documents::parse(texts, ToOwned::to_owned, &mut findings);
    let object = |place: usize| {
        let (file, document) = documents.places[place];
        let parsed = &documents.files[file];
        let at = position(&parsed.file, document, "kind");
        let (line, column) = at.unwrap_or((1, 1));
        let file = parsed.shown.clone();
        Located {
            value: documents.value(place).clone(),
            location: Location { file, line, column },
        }
    };
    let objects = (0..documents.places.len()).map(object).collect();
    (objects, findings)
}

/// A document as YAML, written as every file of ours.
pub fn yaml(value: &Value) -> String {
    mooring_krm::emit(value)
}

#[cfg(test)]
mod tests {
    use mooring_api::Code;

    use super::*;

    fn files(files: &[(&str, &str)]) -> Files {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        files.iter().map(file).collect()
    }

    #[test]
    fn objects_have_the_line_of_their_kind_and_hidden_files_none() {
        let files = files(&[
            (
                "a.yaml",
                "# one\napiVersion: v1\nkind: A\n---\napiVersion: v1\nkind: B\n",
            ),
            ("values.yaml", "just: values\n"),
            (".status/sync-status.yaml", "apiVersion: v1\nkind: C\n"),
            ("notes.txt", "kind: {"),
        ]);
        let (objects, findings) = located(&files);
        assert_eq!(findings, []);
        let seen: Vec<_> = objects
            .iter()
            .map(|o| (o.value["kind"].as_str(), o.location.line))
            .collect();
        assert_eq!(seen, [(Some("A"), 3), (Some("B"), 6)]);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_a_finding_with_its_line_and_the_rest_is_read() {
        let files = files(&[
            ("a.yaml", "apiVersion: v1\nkind: A\n---\nkind: [\n"),
            ("b.yaml", "apiVersion: v1\nkind: B\n"),
        ]);
        let (objects, findings) = located(&files);
        assert_eq!(objects.len(), 1);
        assert_eq!(findings[0].code, Code::YamlInvalid);
        let at = findings[0]
            .location
            .as_ref()
            .map(|l| (l.file.as_str(), l.line >= 4));
        assert_eq!(at, Some(("a.yaml", true)));
    }
}
