//! Folder cases: `tests/cases/<behaviour>/` with what goes in and what is expected, compared whole.
//!
//! ```text
//!  tests/cases/two-interfaces/
//!    input/         the package, the management directory, whatever the test reads
//!    expected/      the produced tree, compared by Case::check_tree
//!    findings.txt   a text beside it, compared by Case::check_text
//! ```
//!
//! `MOOR_UPDATE=1 cargo test -p mooring-<room>` writes what was produced over what was expected and prints
//! every change; the diff is then reviewed like code. CI never sets it.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use crate::{copy_tree, must, tree, unified};

/// One directory of cases.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The directory's name: the behaviour.
    pub name: String,
    /// Where it is.
    pub dir: PathBuf,
}

/// The cases below a directory, by name. A directory without cases is a mistake, and panics.
pub fn cases(dir: impl AsRef<Path>) -> Vec<Case> {
    let dir = dir.as_ref();
    let mut cases = Vec::new();
    for entry in must(fs::read_dir(dir), "read the cases in", dir) {
        let entry = must(entry, "read", dir);
        if entry.path().is_dir() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let dir = entry.path();
            cases.push(Case { name, dir });
        }
    }
    assert!(!cases.is_empty(), "there is no case in {}", dir.display());
    cases.sort_by(|a, b| a.name.cmp(&b.name));
    cases
}

/// Runs every case, also after one has failed, and fails at the end with the names of those that did.
pub fn each_case(dir: impl AsRef<Path>, run: impl Fn(&Case)) {
    let cases = cases(dir);
    let failed: Vec<&str> = cases
        .iter()
        .filter(|case| {
            let outcome = catch_unwind(AssertUnwindSafe(|| run(case)));
            outcome.is_err()
        })
        .map(|case| case.name.as_str())
        .collect();
    assert!(
        failed.is_empty(),
        "{} of {} cases failed (see above): {}",
        failed.len(),
        cases.len(),
        failed.join(", ")
    );
}

impl Case {
    /// `input/`.
    pub fn input(&self) -> PathBuf {
        self.dir.join("input")
    }

    /// `expected/`.
    pub fn expected(&self) -> PathBuf {
        self.dir.join("expected")
    }

    /// A copy of `input/` to work in.
    pub fn copy_input(&self) -> tempfile::TempDir {
        copy_tree(&self.input())
    }

    /// A text file of the case, if it is there: arguments, options.
    pub fn text(&self, file: &str) -> Option<String> {
        fs::read_to_string(self.dir.join(file)).ok()
    }

    /// Compares everything below `produced` with `expected/`.
    #[track_caller]
    pub fn check_tree(&self, produced: &Path) {
        let expected = self.expected();
        let (left, right) = (tree::read(&expected), tree::read(produced));
        let diff = tree::differences(&left, &right);
        if diff.is_empty() {
            return;
        }
        if self.updates(&diff) {
            if expected.exists() {
                must(fs::remove_dir_all(&expected), "replace", &expected);
            }
            tree::write(&expected, &right);
        }
    }

    /// Compares a text with a file of the case. An absent file is an empty text.
    #[track_caller]
    pub fn check_text(&self, file: &str, produced: &str) {
        let expected = self.text(file).unwrap_or_default();
        let diff = unified(file, &expected, produced);
        if diff.is_empty() {
            return;
        }
        if self.updates(&diff) {
            let name = file.to_owned();
            let entry = tree::Entry::File(produced.as_bytes().to_vec());
            tree::write(&self.dir, &tree::Tree::from([(name, entry)]));
        }
    }

    /// True when what is expected shall be written anew; panics with the difference otherwise.
    #[track_caller]
    fn updates(&self, diff: &str) -> bool {
        let wanted = std::env::var_os("MOOR_UPDATE").is_some_and(|v| v == "1");
        assert!(
            wanted,
            "case {}: not what was expected; MOOR_UPDATE=1 accepts it\n{diff}",
            self.name
        );
        use std::io::Write as _;
        // Past the harness's capture: an update that nobody sees is an update that nobody reviews.
        let _ = writeln!(std::io::stdout(), "UPDATED case {}\n{diff}", self.name);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn case_with(files: &[(&str, &str)]) -> (tempfile::TempDir, Case) {
        let root = tempfile::tempdir().unwrap();
        let dir = root.path().join("a-behaviour");
        for (name, text) in files {
            let path = dir.join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let case = cases(root.path()).remove(0);
        (root, case)
    }

    #[test]
    fn a_case_passes_when_the_whole_tree_is_as_expected() {
        let (_root, case) = case_with(&[("input/a", "1\n"), ("expected/a", "1\n")]);
        assert_eq!(case.name, "a-behaviour");
        case.check_tree(case.copy_input().path());
    }

    #[test]
    #[should_panic(expected = "not expected: b")]
    fn a_file_too_many_fails_the_case() {
        let (_root, case) = case_with(&[
            ("input/a", "1\n"),
            ("input/b", "2\n"),
            ("expected/a", "1\n"),
        ]);
        case.check_tree(case.copy_input().path());
    }

    #[test]
    #[should_panic(expected = "-old\n+new")]
    fn another_text_fails_the_case() {
        let (_root, case) = case_with(&[("findings.txt", "old\n")]);
        case.check_text("findings.txt", "new\n");
    }

    #[test]
    #[should_panic(expected = "1 of 2 cases failed (see above): first")]
    fn a_failing_case_does_not_hide_the_others() {
        let root = tempfile::tempdir().unwrap();
        for name in ["first", "second"] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        each_case(root.path(), |case| assert_eq!(case.name, "second"));
    }

    #[test]
    #[should_panic(expected = "there is no case")]
    fn a_directory_without_cases_is_a_mistake() {
        let root = tempfile::tempdir().unwrap();
        cases(root.path());
    }
}
