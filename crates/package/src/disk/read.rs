//! Reads a package tree: documents as bytes, everything else by name.
//!
//! The engine calls it once per run. Links are listed, never followed: a link inside the tree leads
//! to a file that is read under its own name, and reading it twice would make every object a
//! duplicate; a link that leads out is refused, because what it shows is not part of the package.
//!
//! Easy to get wrong: the kind comes from the directory, not from a `stat` per file; 20,000 files are
//! read in a fraction of a second only so.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Component, Path};

use mooring_api::{Code, Finding};

use super::{Disk, Entry, Kind, OURS, is_absent};
use crate::journal::{JOURNAL, TEMP};

/// The largest document that is read.
pub const MAX_FILE: u64 = 8 * 1024 * 1024;

/// How many directories may lie inside each other.
pub const MAX_DEPTH: usize = 64;

/// What a directory holds. Paths are relative to it, with `/`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tree {
    /// Documents: `*.yaml`, `*.yml`, `Kptfile`; and `.krmignore`, which says which of them count.
    pub files: BTreeMap<String, Vec<u8>>,
    /// Files that are not documents, and what can be opened by nobody (sockets, pipes).
    pub others: BTreeSet<String>,
    /// Links inside the tree, and where they lead as written.
    pub links: BTreeMap<String, String>,
    /// Directories below this one with a journal of an interrupted run.
    pub interrupted: Vec<String>,
    /// Files that the writer left behind and that no journal needs.
    pub strays: Vec<String>,
}

/// Reads every document below `root`, or says everything that keeps it from being read. `.git`, `.moor`
/// and `.moor-*` are skipped.
pub fn read_tree(disk: &dyn Disk, root: &Path) -> Result<Tree, Vec<Finding>> {
    // The dot: the root itself may be a link, since the person who names it means what it leads to.
    match disk.meta(&root.join(".")) {
        Ok(meta) if meta.kind == Kind::Dir => {}
        Ok(_) => return Err(vec![missing(root, "it is not a directory")]),
        Err(e) if is_absent(&e) => return Err(vec![missing(root, "it does not exist")]),
        Err(e) => return Err(vec![unreadable(root, &e)]),
    }
    let mut walk = Walk {
        disk,
        tree: Tree::default(),
        findings: Vec::new(),
    };
    walk.dir(root, "", 0);
    if walk.findings.is_empty() {
        Ok(walk.tree)
    } else {
        // Directories come in any order; a person should see the same list twice.
        walk.findings.sort_by(|a, b| a.message.cmp(&b.message));
        Err(walk.findings)
    }
}

struct Walk<'a> {
    disk: &'a dyn Disk,
    tree: Tree,
    findings: Vec<Finding>,
}

impl Walk<'_> {
    fn dir(&mut self, dir: &Path, prefix: &str, depth: usize) {
        if depth > MAX_DEPTH {
            self.findings.push(too_deep(dir));
            return;
        }
        let entries = match self.disk.list(dir) {
            Ok(entries) => entries,
            Err(e) => return self.findings.push(unreadable(dir, &e)),
        };
        for Entry { name, kind } in entries {
            let path = dir.join(&name);
            let Some(name) = name.to_str() else {
                self.findings.push(unnamed(&path));
                continue;
            };
            let full = format!("{prefix}{name}");
            if name == ".git" || name == ".moor" || name.starts_with(OURS) {
                self.ours(name, full, prefix);
                continue;
            }
            match kind {
                Kind::Dir => self.dir(&path, &format!("{full}/"), depth + 1),
                Kind::Link => self.link(full, &path, prefix),
                Kind::File if is_document(name) => self.document(full, &path),
                Kind::File | Kind::Special => {
                    self.tree.others.insert(full);
                }
            }
        }
    }

    fn ours(&mut self, name: &str, full: String, prefix: &str) {
        if name == JOURNAL && !prefix.is_empty() {
            let dir = prefix.trim_end_matches('/').to_owned();
            self.tree.interrupted.push(dir);
        } else if name.starts_with(TEMP) {
            self.tree.strays.push(full);
        }
    }

    fn link(&mut self, full: String, path: &Path, prefix: &str) {
        match self.disk.read_link(path) {
            Ok(to) if stays_inside(prefix, &to) => {
                let to = to.to_string_lossy().into_owned();
                self.tree.links.insert(full, to);
            }
            Ok(to) => self.findings.push(leads_out(path, &to)),
            Err(e) => self.findings.push(unreadable(path, &e)),
        }
    }

    fn document(&mut self, full: String, path: &Path) {
        match self.disk.read(path, MAX_FILE) {
            Ok(bytes) => {
                self.tree.files.insert(full, bytes);
            }
            Err(e) if e.kind() == io::ErrorKind::FileTooLarge => {
                let len = self.disk.meta(path).map_or(0, |meta| meta.len);
                self.findings.push(too_large(path, len));
            }
            Err(e) => self.findings.push(unreadable(path, &e)),
        }
    }
}

/// Whether a file name is that of a document.
pub(crate) fn is_document(name: &str) -> bool {
    let end = Path::new(name).extension();
    name == "Kptfile" || name == ".krmignore" || end.is_some_and(|e| e == "yaml" || e == "yml")
}

/// By its text: every link on the way is itself in the tree and judged on its own. An absolute link is
/// outside, since it breaks as soon as the package is moved or cloned.
fn stays_inside(prefix: &str, to: &Path) -> bool {
    let mut depth = prefix.matches('/').count();
    for part in to.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            Component::ParentDir | Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

fn missing(root: &Path, why: &str) -> Finding {
    Finding::error(
        Code::PackageMissing,
        format!("cannot read the package {}: {why}", root.display()),
    )
    .help("give the directory of a package, or a directory with packages below it")
}

fn unreadable(path: &Path, source: &io::Error) -> Finding {
    Finding::error(
        Code::FileUnreadable,
        format!("cannot read {}: {source}", path.display()),
    )
    .help("check its permissions (`ls -l`) and that the disk is healthy")
}

fn too_deep(dir: &Path) -> Finding {
    Finding::error(
        Code::FileUnreadable,
        format!("{} lies deeper than {MAX_DEPTH} directories", dir.display()),
    )
    .help("render a directory further down, or move the package up")
}

fn unnamed(path: &Path) -> Finding {
    Finding::error(
        Code::FileUnreadable,
        format!("the name of {} is not UTF-8", path.display()),
    )
    .help("rename the file")
}

fn too_large(path: &Path, len: u64) -> Finding {
    Finding::error(
        Code::FileTooLarge,
        format!(
            "{} has {len} bytes; documents up to {MAX_FILE} bytes (8 MiB) are read",
            path.display()
        ),
    )
    .help("split the file, or move it out of the package")
    .located(path.display().to_string(), 1, 1)
}

fn leads_out(path: &Path, to: &Path) -> Finding {
    Finding::error(
        Code::PathOutsidePackage,
        format!(
            "the link {} leads out of the package, to {}",
            path.display(),
            to.display()
        ),
    )
    .help("put a copy of the file into the package, or make the link relative and inside it")
    .located(path.display().to_string(), 1, 1)
}

#[cfg(test)]
mod tests;
