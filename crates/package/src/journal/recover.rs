//! Before a run: finishes or undoes what an earlier one left.
//!
//! A whole `.moor-journal` is done again from its beginning; `.moor-journal.new` never came to the
//! point of no return and is removed. The engine calls [`read_settled`], which also finds journals
//! above the root (that run covered more) and below it (that run covered less).
//!
//! Easy to get wrong: the book may have closed the transaction, because it was committed just before
//! the crash or because it expired. Both are fine: the same holders take the same leases again in the
//! next render. So `NotOpen` is not an error here, and every other one is.

use std::io;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use mooring_ipam::TxnId;

use super::{Failed, JOURNAL, UNFINISHED, apply, check, format, remove_journal, unwritable};
use crate::disk::{Disk, Kind, Tree, absent_is_none, read_tree};

/// What an earlier run had left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovered {
    /// Nothing.
    None,
    /// A run that had passed the point of no return: its files are now all written.
    Finished {
        /// The directory it covered.
        root: PathBuf,
        /// Its reservation.
        txn: Option<TxnId>,
        /// How many files it changes.
        files: usize,
        /// The book committed now; `false` where it had closed the transaction before.
        committed: bool,
    },
    /// A run that had changed nothing yet: its leavings are removed.
    Undone {
        /// The directory it covered.
        root: PathBuf,
    },
}

impl Recovered {
    /// What a person is told about it.
    pub fn finding(&self) -> Option<Finding> {
        let text = match self {
            Self::None => return None,
            Self::Finished { root, files, .. } => format!(
                "an interrupted run in {} was finished: {files} files",
                root.display()
            ),
            Self::Undone { root } => format!(
                "an interrupted run in {} was undone: it had changed nothing",
                root.display()
            ),
        };
        Some(Finding::info(Code::RenderRecovered, text))
    }
}

/// Finishes or undoes what an earlier run left in `root` or in a directory around it. The caller holds
/// the lock. `commit` is called for a finished run with a reservation.
pub fn recover(
    disk: &dyn Disk,
    root: &Path,
    commit: impl FnOnce(TxnId) -> Result<(), mooring_book::Error>,
) -> Result<Recovered, Vec<Finding>> {
    let failed = |e: io::Error| vec![unwritable(root, &e)];
    let Some(resolved) = absent_is_none(disk.resolve(root)).map_err(failed)? else {
        return Ok(Recovered::None);
    };
    let above = pending(disk, &resolved).map_err(failed)?;
    let root = above.as_deref().unwrap_or(&resolved);
    let finished = if above.is_some() {
        finish(disk, root, commit)?
    } else {
        Recovered::None
    };
    let undone = undo(disk, root).map_err(failed)?;
    Ok(match (finished, undone) {
        (Recovered::None, true) => Recovered::Undone {
            root: root.to_owned(),
        },
        (finished, _) => finished,
    })
}

/// The directory with the journal of an interrupted run: `root` itself or one around it.
pub fn pending(disk: &dyn Disk, root: &Path) -> io::Result<Option<PathBuf>> {
    for dir in around(disk, root) {
        if absent_is_none(disk.meta(&dir.join(JOURNAL)))?.is_some() {
            return Ok(Some(dir));
        }
    }
    Ok(None)
}

/// `root` and the directories around it that one run may cover: up to the one with `.git`.
pub(crate) fn around(disk: &dyn Disk, root: &Path) -> Vec<PathBuf> {
    let mut dirs = Vec::new();
    for dir in root.ancestors() {
        dirs.push(dir.to_owned());
        if disk.meta(&dir.join(".git")).is_ok() {
            break;
        }
    }
    dirs
}

/// Settles what earlier runs left in, above and below `root`, then reads it. The caller holds the lock.
pub fn read_settled(
    disk: &dyn Disk,
    root: &Path,
    mut commit: impl FnMut(TxnId) -> Result<(), mooring_book::Error>,
) -> Result<(Tree, Vec<Recovered>), Vec<Finding>> {
    let mut done = vec![recover(disk, root, &mut commit)?];
    let mut tree = read_tree(disk, root)?;
    while !tree.interrupted.is_empty() {
        for below in &tree.interrupted {
            done.push(recover(disk, &root.join(below), &mut commit)?);
        }
        tree = read_tree(disk, root)?;
    }
    for stray in std::mem::take(&mut tree.strays) {
        let path = root.join(stray);
        absent_is_none(disk.remove_file(&path)).map_err(|e| vec![unwritable(&path, &e)])?;
    }
    done.retain(|r| *r != Recovered::None);
    Ok((tree, done))
}

fn finish(
    disk: &dyn Disk,
    root: &Path,
    commit: impl FnOnce(TxnId) -> Result<(), mooring_book::Error>,
) -> Result<Recovered, Vec<Finding>> {
    let failed = |e: Failed| vec![e.finding(root)];
    let bytes = believed(disk, root)?;
    let (txn, steps) = format::decode(&bytes).map_err(|e| vec![unbelieved(root, &e)])?;
    let seen = check::check(disk, root, &steps)?;
    let edited = check::edited(root, &steps, &seen);
    if !edited.is_empty() {
        return Err(edited);
    }
    let known: Vec<_> = seen.iter().map(check::Seen::access).collect();
    apply::apply(disk, root, &steps, &known).map_err(failed)?;
    let committed = match txn.map(commit) {
        None | Some(Err(mooring_book::Error::NotOpen(_))) => false,
        Some(Ok(())) => true,
        Some(Err(e)) => return Err(vec![book_failed(root, &e)]),
    };
    remove_journal(disk, root).map_err(failed)?;
    let (root, files) = (root.to_owned(), steps.len());
    Ok(Recovered::Finished {
        root,
        txn,
        files,
        committed,
    })
}

/// Removes the unfinished journal; whether there was one.
fn undo(disk: &dyn Disk, root: &Path) -> io::Result<bool> {
    let removed = absent_is_none(disk.remove_file(&root.join(UNFINISHED)))?.is_some();
    if removed {
        disk.sync_dir(root)?;
    }
    Ok(removed)
}

/// The journal's bytes, if it is one that we, the directory's owner or root wrote: in a directory that
/// everybody may write to, anybody could leave work for us.
fn believed(disk: &dyn Disk, root: &Path) -> Result<Vec<u8>, Vec<Finding>> {
    let path = root.join(JOURNAL);
    let read = || -> io::Result<Result<Vec<u8>, Finding>> {
        let journal = disk.meta(&path)?;
        let dir = disk.meta(&root.join("."))?;
        if journal.kind != Kind::File {
            return Ok(Err(unbelieved(root, &"it is not a plain file")));
        }
        if ![0, dir.owner, disk.user()].contains(&journal.owner) {
            let why = format!("it belongs to user {}", journal.owner);
            return Ok(Err(unbelieved(root, &why)));
        }
        disk.read(&path, u64::MAX).map(Ok)
    };
    match read() {
        Ok(Ok(bytes)) => Ok(bytes),
        Ok(Err(finding)) => Err(vec![finding]),
        Err(e) => Err(vec![unbelieved(root, &e)]),
    }
}

fn unbelieved(root: &Path, why: &dyn std::fmt::Display) -> Finding {
    let path = root.join(JOURNAL);
    Finding::error(
        Code::FileUnreadable,
        format!("cannot use the journal {}: {why}", path.display()),
    )
    .help("compare the files with Git, then remove the journal and run again")
}

fn book_failed(root: &Path, error: &mooring_book::Error) -> Finding {
    let code = match error {
        mooring_book::Error::Busy { .. } => Code::BookBusy,
        _ => Code::BookUnreadable,
    };
    Finding::error(
        code,
        format!(
            "the interrupted run in {} is written, but the book was not committed: {error}",
            root.display()
        ),
    )
    .help("run again with the same book")
}
