//! Whole directory trees as values: read, compared, hashed, copied.
//!
//! Hidden files count: a forgotten `.moor-journal` must fail a test. A symbolic link is its target's text and
//! is never followed, so a link out of the tree cannot be mistaken for a file.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use sha2::{Digest as _, Sha256};

use crate::{must, unified};

/// Every entry of a directory by its path with `/`.
pub(crate) type Tree = BTreeMap<String, Entry>;

/// One entry of a [`Tree`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    /// Its bytes.
    File(Vec<u8>),
    /// Its target.
    Link(String),
    /// An empty directory; others are implied by their files.
    EmptyDir,
}

/// All code of all rooms, as one text: for tests that hold a page to what it names.
pub fn sources() -> String {
    let mut text = String::new();
    let mut dirs = vec![crate::workspace_root().join("crates")];
    while let Some(dir) = dirs.pop() {
        for entry in must(fs::read_dir(&dir), "read", &dir) {
            let path = must(entry, "read", &dir).path();
            if path.is_dir() {
                dirs.push(path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                text += &must(fs::read_to_string(&path), "read", &path);
            }
        }
    }
    text
}

impl Entry {
    fn text(&self) -> String {
        match self {
            Self::File(bytes) => match str::from_utf8(bytes) {
                Ok(text) => text.to_owned(),
                Err(_) => format!("{} bytes that are not text\n", bytes.len()),
            },
            Self::Link(target) => format!("link to {target}\n"),
            Self::EmptyDir => "empty directory\n".to_owned(),
        }
    }

    fn tag(&self) -> (u8, &[u8]) {
        match self {
            Self::File(bytes) => (b'f', bytes),
            Self::Link(target) => (b'l', target.as_bytes()),
            Self::EmptyDir => (b'd', &[]),
        }
    }
}

/// Reads a tree. A directory that does not exist is empty.
pub(crate) fn read(root: &Path) -> Tree {
    let mut tree = Tree::new();
    if root.is_dir() {
        read_into(root, "", &mut tree);
        tree.remove("");
    }
    tree
}

fn read_into(dir: &Path, prefix: &str, tree: &mut Tree) {
    let entries = must(fs::read_dir(dir), "read", dir);
    let mut count = 0;
    for entry in entries {
        let entry = must(entry, "read", dir);
        count += 1;
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let path = entry.path();
        let kind = must(entry.file_type(), "read", &path);
        if kind.is_dir() {
            read_into(&path, &format!("{name}/"), tree);
        } else if kind.is_symlink() {
            let target = must(fs::read_link(&path), "read", &path);
            tree.insert(name, Entry::Link(target.to_string_lossy().into_owned()));
        } else {
            tree.insert(name, Entry::File(must(fs::read(&path), "read", &path)));
        }
    }
    if count == 0 {
        tree.insert(prefix.trim_end_matches('/').to_owned(), Entry::EmptyDir);
    }
}

/// The differences as unified diffs; empty when the trees are equal. Empty directories are ignored, because
/// Git cannot keep one in `expected/`.
pub(crate) fn differences(expected: &Tree, produced: &Tree) -> String {
    let paths: std::collections::BTreeSet<&String> =
        expected.keys().chain(produced.keys()).collect();
    let mut out = String::new();
    for path in paths {
        let side = |tree: &Tree| tree.get(path).filter(|e| **e != Entry::EmptyDir).cloned();
        let (left, right) = (side(expected), side(produced));
        if left == right {
            continue;
        }
        let what = match (&left, &right) {
            (Some(_), None) => "missing: ",
            (None, Some(_)) => "not expected: ",
            _ => "",
        };
        let text = |e: Option<Entry>| e.map_or_else(String::new, |e| e.text());
        let diff = unified(&format!("{what}{path}"), &text(left), &text(right));
        if diff.is_empty() {
            // Both sides read the same (an empty file, as many bytes), yet differ.
            let _ = writeln!(out, "--- {what}{path} (bytes differ)");
        }
        out.push_str(&diff);
    }
    out
}

/// Panics with unified diffs unless both directories hold the same files.
#[track_caller]
pub fn assert_same_tree(expected: &Path, produced: &Path) {
    let diff = differences(&read(expected), &read(produced));
    assert!(diff.is_empty(), "the trees differ\n{diff}");
}

/// A hash of everything below `path`, or of one file; the same before and after means that nothing was
/// written. Something absent hashes as absent, so a book that appears is seen.
pub fn hash_tree(path: &Path) -> String {
    let tree = if path.is_file() {
        let bytes = must(fs::read(path), "read", path);
        Tree::from([(String::new(), Entry::File(bytes))])
    } else {
        read(path)
    };
    let mut hash = Sha256::new();
    hash.update([u8::from(path.exists())]);
    for (name, entry) in &tree {
        let (tag, bytes) = entry.tag();
        // Lengths come first, so that no two trees can run together into the same bytes.
        hash.update((name.len() as u64).to_le_bytes());
        hash.update(name);
        hash.update([tag]);
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    }
    format!("{:x}", hash.finalize())
}

/// A copy in a fresh temporary directory, removed when the value is dropped.
pub fn copy_tree(from: &Path) -> tempfile::TempDir {
    assert!(from.is_dir(), "{} is not a directory", from.display());
    let dir = must(
        tempfile::tempdir(),
        "make",
        Path::new("a temporary directory"),
    );
    write(dir.path(), &read(from));
    dir
}

pub(crate) fn write(root: &Path, tree: &Tree) {
    for (name, entry) in tree {
        let path = root.join(name);
        let parent = if *entry == Entry::EmptyDir {
            Some(path.as_path())
        } else {
            path.parent()
        };
        if let Some(parent) = parent {
            must(fs::create_dir_all(parent), "make", parent);
        }
        match entry {
            Entry::File(bytes) => must(fs::write(&path, bytes), "write", &path),
            Entry::Link(target) => must(std::os::unix::fs::symlink(target, &path), "write", &path),
            Entry::EmptyDir => (),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree(entries: &[(&str, &str)]) -> Tree {
        let entry = |(name, text): &(&str, &str)| {
            ((*name).to_owned(), Entry::File(text.as_bytes().to_vec()))
        };
        entries.iter().map(entry).collect()
    }

    fn on_disk(tree: &Tree) -> tempfile::TempDir {
        let dir = tempfile::tempdir().unwrap();
        write(dir.path(), tree);
        dir
    }

    #[test]
    fn a_copy_is_the_same_tree_with_hidden_files_links_and_empty_directories() {
        let mut wanted = tree(&[
            ("a.yaml", "a: 1\n"),
            ("sub/.hidden", "x"),
            ("sub/deep/b", ""),
        ]);
        wanted.insert("link".to_owned(), Entry::Link("a.yaml".to_owned()));
        wanted.insert("empty".to_owned(), Entry::EmptyDir);
        let dir = on_disk(&wanted);
        let copy = copy_tree(dir.path());
        assert_eq!(read(copy.path()), wanted);
        assert_eq!(hash_tree(copy.path()), hash_tree(dir.path()));
    }

    #[test]
    fn the_hash_sees_every_kind_of_change() {
        let base = tree(&[("a", "1"), ("b", "2")]);
        let others = [
            tree(&[("a", "1"), ("b", "3")]),
            tree(&[("a", "1")]),
            tree(&[("a", "1"), ("c", "2")]),
            tree(&[("a", "12"), ("b", "")]),
            tree(&[("a", "1"), ("b", "2"), (".moor-journal", "")]),
        ];
        let hash = |t: &Tree| hash_tree(on_disk(t).path());
        assert_eq!(hash(&base), hash(&base.clone()));
        for other in &others {
            assert_ne!(hash(&base), hash(other), "{other:?}");
        }
    }

    #[test]
    fn something_absent_does_not_hash_like_something_empty() {
        let dir = tempfile::tempdir().unwrap();
        let book = dir.path().join("book.redb");
        let absent = hash_tree(&book);
        fs::write(&book, "").unwrap();
        assert_ne!(absent, hash_tree(&book));
    }

    #[test]
    fn differences_name_what_is_missing_and_what_is_too_much() {
        let diff = differences(
            &tree(&[("gone", "1\n"), ("same", "s")]),
            &tree(&[("new", "2\n"), ("same", "s")]),
        );
        assert!(diff.contains("missing: gone"), "{diff}");
        assert!(diff.contains("not expected: new"), "{diff}");
        assert!(!diff.contains("same"), "{diff}");
    }

    #[test]
    fn bytes_that_are_not_text_differ_too() {
        let side = |byte| Tree::from([("f".to_owned(), Entry::File(vec![0xff, byte]))]);
        let diff = differences(&side(1), &side(2));
        assert_eq!(diff, "--- f (bytes differ)\n");
        let diff = differences(&Tree::new(), &tree(&[("empty", "")]));
        assert_eq!(diff, "--- not expected: empty (bytes differ)\n");
    }
}
