//! Packages that are published already, as bytes: where a Dependency of another package finds what it needs.
//!
//! ```text
//!  files ─ needed_packages ─► names ─ Packages::neighbours ─► Neighbour (place, files) ─► Specialise::neighbours
//! ```
//!
//! Whoever specialises packages that live in Git asks for the names first: most packages need nobody, and then nothing is fetched.
//! Easy to get wrong: the neighbours are *all* packages of a name that may be meant. One that is left out because its repository could not
//! be read looks like one that is gone, and what it had given is taken away.

use std::collections::BTreeSet;
use std::path::PathBuf;

use mooring_blueprint::{Object, nephio};
use mooring_krm::File;

use crate::disk::is_document;
use crate::git::Files;

/// A package that is published already.
#[derive(Clone, Debug)]
pub struct Neighbour {
    /// What the book knows it as: [`Repository::place`](crate::git::Repository::place).
    pub place: PathBuf,
    /// Where it is, for people.
    pub shown: String,
    /// Its files.
    pub files: Files,
}

/// The names of the packages that the Dependencies in these files need. Files without one are not even parsed.
pub fn needed_packages(files: &Files) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for (path, bytes) in files {
        let name = path.rsplit('/').next().unwrap_or(path);
        if !is_document(name) || !has(bytes, b"Dependency") {
            continue;
        }
        // What cannot be parsed is told when the package is specialised.
        let Ok(file) = File::parse(bytes) else {
            continue;
        };
        for document in file.documents() {
            let object = Object {
                value: document.value().clone(),
                source: None,
            };
            names.extend(nephio::needed(&object).map(ToOwned::to_owned));
        }
    }
    names
}

/// Whether a text has a word in it.
pub(crate) fn has(text: &[u8], word: &[u8]) -> bool {
    text.windows(word.len()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(texts: &[(&str, &str)]) -> Files {
        let file = |(path, text): &(&str, &str)| ((*path).to_owned(), text.as_bytes().to_vec());
        texts.iter().map(file).collect()
    }

    #[test]
    fn only_dependencies_of_the_group_name_packages() {
        let one = "apiVersion: req.nephio.org/v1alpha1\nkind: Dependency\nmetadata: {name: upf}\nspec: {packageName: core-upf}\n";
        let other = "apiVersion: example.com/v1\nkind: Dependency\nmetadata: {name: x}\nspec: {packageName: other}\n";
        let two = format!("{one}---\n{}", one.replace("core-upf", "core-amf"));
        let found = needed_packages(&files(&[
            ("a.yaml", &two),
            ("inside/b.yaml", other),
            ("README.md", one),
            ("broken.yaml", "kind: Dependency\n  spec: [\n"),
        ]));
        assert_eq!(
            found.into_iter().collect::<Vec<_>>(),
            ["core-amf", "core-upf"]
        );
        assert!(needed_packages(&files(&[("Kptfile", "kind: Kptfile\n")])).is_empty());
    }
}
