//! Working copies: a package in a directory, with a note of where it comes from.
//!
//! `.moor-package` in the directory names the repository, the package and the commit it was pulled from. It is how a push knows
//! whether the draft has changed since, and it is no part of the package.
//!
//! Easy to get wrong: a pull may only write over files that it can bring back, so over those of the commit that the note names.

use std::collections::BTreeSet;
use std::path::Path;

use mooring_api::Finding;
use serde::{Deserialize, Serialize};

use super::{Content, Error, PackageName, Packages, Which, Workspace, read};
use crate::disk::{Disk, LOCK_WAIT, MAX_FILE, RealDisk, TreeLock, read_tree};
use crate::git::{Files, Oid};
use crate::journal::{self, Change, Plan};

/// The note's name.
const NOTE: &str = ".moor-package";

/// Where a working copy comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Origin {
    /// The repository.
    pub repository: String,
    /// The directory of packages in it.
    pub directory: String,
    /// The package.
    pub package: PackageName,
    /// The draft, where it is one.
    pub workspace: Option<Workspace>,
    /// The commit.
    pub commit: Oid,
}

/// What a pull did.
#[derive(Clone, Debug)]
pub struct Pulled {
    /// What was read.
    pub content: Content,
    /// How many files were written or removed.
    pub changed: usize,
}

/// As it is written.
#[derive(Serialize, Deserialize)]
struct Note {
    repository: String,
    #[serde(default)]
    directory: String,
    package: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    workspace: Option<String>,
    commit: String,
}

impl Origin {
    /// The note in a directory; None where there is none that can be read.
    pub fn read(dir: &Path) -> Option<Self> {
        let bytes = RealDisk.read(&dir.join(NOTE), MAX_FILE).ok()?;
        let note: Note = serde_json::from_slice(&bytes).ok()?;
        Some(Self {
            package: note.package.parse().ok()?,
            workspace: note.workspace.and_then(|w| w.parse().ok()),
            commit: Oid::parse(&note.commit)?,
            repository: note.repository,
            directory: note.directory,
        })
    }

    /// Writes the note.
    pub fn write(&self, dir: &Path) -> Result<(), Error> {
        let note = Note {
            repository: self.repository.clone(),
            directory: self.directory.clone(),
            package: self.package.to_string(),
            workspace: self.workspace.as_ref().map(ToString::to_string),
            commit: self.commit.to_string(),
        };
        let path = dir.join(NOTE);
        let text = serde_json::to_string_pretty(&note).unwrap_or_default() + "\n";
        mooring_book::write_whole(&mooring_book::RealDisk, &path, text.as_bytes(), true).map_err(
            |source| {
                let act = "write";
                Error::Engine(crate::Error::Disk { act, path, source })
            },
        )
    }
}

/// Every file of a directory, as a package to push. Links are left out, and so is what is ours or Git's.
pub fn read_directory(dir: &Path) -> Result<Files, Error> {
    let tree = read_tree(&RealDisk, dir).map_err(Error::Directory)?;
    let mut files = tree.files;
    for name in tree.others {
        let path = dir.join(&name);
        let bytes = RealDisk.read(&path, MAX_FILE).map_err(|source| {
            let act = "read";
            Error::Engine(crate::Error::Disk { act, path, source })
        })?;
        files.insert(name, bytes);
    }
    Ok(files)
}

impl Packages {
    /// Where a working copy of this content comes from.
    pub fn origin(
        &self,
        package: &PackageName,
        workspace: Option<&Workspace>,
        commit: &Oid,
    ) -> Origin {
        Origin {
            repository: self.repository.to_string(),
            directory: self.repository.directory.clone(),
            package: package.clone(),
            workspace: workspace.cloned(),
            commit: commit.clone(),
        }
    }

    /// Whether a directory is a working copy of this package.
    pub fn is_copy_of(&self, dir: &Path, package: &PackageName) -> bool {
        Origin::read(dir).is_some_and(|origin| {
            origin.repository == self.repository.to_string()
                && origin.directory == self.repository.directory
                && origin.package == *package
        })
    }

    /// Writes a package into a directory: a new or empty one, or a working copy without changes.
    pub fn pull(&self, package: &PackageName, which: &Which, dir: &Path) -> Result<Pulled, Error> {
        let mirror = self.open()?;
        let content = read(&mirror, package, which)?;
        let content = content.ok_or_else(|| self.absent(package, which.clone()))?;
        let refuse = |finding: Box<Finding>| Error::Directory(vec![*finding]);
        let lock = TreeLock::take(dir, LOCK_WAIT).map_err(refuse)?;
        let there = read_directory(dir)?;
        let known = Origin::read(dir).filter(|_| self.is_copy_of(dir, package));
        let pulled = match &known {
            Some(origin) => {
                let at = Which::Ref(origin.commit.to_string());
                let content = read(&mirror, package, &at).ok().flatten();
                content.is_some_and(|content| content.files == there)
            }
            None => false,
        };
        if !there.is_empty() && !pulled && there != content.files {
            let dir = dir.to_owned();
            return Err(Error::DirectoryChanged { dir });
        }
        let changed = lay_down(dir, &there, &content.files)?;
        let workspace = match which {
            Which::Draft(w) | Which::Proposed(w) | Which::Workspace(w) => Some(w),
            _ => None,
        };
        self.origin(package, workspace, &content.commit)
            .write(dir)?;
        drop(lock);
        Ok(Pulled { content, changed })
    }

    /// After a push: the directory holds what the draft holds. Where it changed since it was `read`, only the note is written.
    pub fn settle(
        &self,
        package: &PackageName,
        workspace: &Workspace,
        commit: &Oid,
        (dir, read): (&Path, &Files),
    ) -> Result<usize, Error> {
        let refuse = |finding: Box<Finding>| Error::Directory(vec![*finding]);
        let lock = TreeLock::take(dir, LOCK_WAIT).map_err(refuse)?;
        let content = self.need(package, &Which::Ref(commit.to_string()))?;
        let there = read_directory(dir)?;
        let changed = if there == *read {
            lay_down(dir, &there, &content.files)?
        } else {
            0
        };
        self.origin(package, Some(workspace), commit).write(dir)?;
        drop(lock);
        Ok(changed)
    }
}

/// Makes one set of files of another; how many changed.
fn lay_down(dir: &Path, there: &Files, wanted: &Files) -> Result<usize, Error> {
    let names: BTreeSet<&String> = there.keys().chain(wanted.keys()).collect();
    let mut changes = Vec::new();
    for name in names {
        let path = name.clone();
        match (there.get(name), wanted.get(name)) {
            (Some(old), Some(new)) if old == new => {}
            (_, Some(bytes)) => {
                let bytes = bytes.clone();
                changes.push(Change::Write { path, bytes });
            }
            (_, None) => changes.push(Change::Remove { path }),
        }
    }
    let changed = changes.len();
    let plan = Plan {
        root: dir.to_owned(),
        changes,
        txn: None,
    };
    if changed > 0 {
        journal::commit_files(&RealDisk, &plan, |_| Ok(())).map_err(|error| match error {
            journal::CommitError::Refused(findings) => Error::Directory(findings),
            journal::CommitError::Interrupted(finding) => Error::Directory(vec![*finding]),
            journal::CommitError::Book(error) => error.into(),
        })?;
    }
    Ok(changed)
}
