//! The only writer of package files: many files change in one act, or none does.
//!
//! ```text
//!  check ─► .moor-journal.new ─► sync ─► rename to .moor-journal ─► sync     nothing changed yet
//!                                                    │
//!            ┌───────────────────────────────────────┘ point of no return
//!            ▼
//!  apply (files, then renames) ─► sync all ─► commit the book ─► remove the journal ─► sync
//! ```
//!
//! The journal holds every new byte, so whoever finds it can do the whole act again; what was written
//! before the crash does not matter (`docs/decisions/001-journal-holds-the-bytes.md`). The engine
//! holds a [`TreeLock`](crate::disk::TreeLock), calls [`read_settled`] before it decides, then
//! [`check_files`] before it reserves, then [`Checked::commit`].
//!
//! Easy to get wrong: after [`CommitError::Interrupted`] or [`CommitError::Book`] the reservation must
//! not be aborted, because the next run finishes the act and commits it.

mod apply;
mod check;
mod format;
mod recover;

use std::io;
use std::path::{Path, PathBuf};

use mooring_api::{Code, Finding};
use mooring_ipam::TxnId;

pub use recover::{Recovered, pending, read_settled, recover};

pub(crate) use apply::ensure_dir;
pub(crate) use recover::around;

use crate::disk::{Access, Disk, absent_is_none};
use format::Step;

/// The journal's name, in the root of the act.
pub const JOURNAL: &str = ".moor-journal";
/// The journal while it is written.
pub(crate) const UNFINISHED: &str = ".moor-journal.new";
/// How temporary files begin; the number of the change follows.
pub(crate) const TEMP: &str = ".moor-tmp-";

/// One file of an act. Paths are relative to the root, with `/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// The file gets these bytes; directories on the way are made.
    Write {
        /// Where.
        path: String,
        /// What.
        bytes: Vec<u8>,
    },
    /// The file goes, and directories that it leaves empty. Absent is success.
    Remove {
        /// Where.
        path: String,
    },
}

impl Change {
    /// Where.
    pub fn path(&self) -> &str {
        match self {
            Self::Write { path, .. } | Self::Remove { path } => path,
        }
    }

    /// The new bytes; `None` for a removal.
    fn after(&self) -> Option<&[u8]> {
        match self {
            Self::Write { bytes, .. } => Some(bytes),
            Self::Remove { .. } => None,
        }
    }
}

/// One act.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The directory that all changes lie in.
    pub root: PathBuf,
    /// What changes. Every path once.
    pub changes: Vec<Change>,
    /// The reservation that goes with the files.
    pub txn: Option<TxnId>,
}

/// What an act came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// How many files were written or removed; those that were so already do not count.
    pub files: usize,
}

/// Why an act did not end.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// Nothing was written. Abort the reservation.
    #[error("nothing was written: {}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Refused(Vec<Finding>),
    /// Some files may be written; the next run finishes. Keep the reservation.
    #[error("interrupted: {0}")]
    Interrupted(Box<Finding>),
    /// All files are written; the next run commits the book. Keep the reservation.
    #[error("the files are written, but the book was not committed")]
    Book(#[source] mooring_book::Error),
}

/// Writes and removes all files of the plan, then commits the book. The caller holds the lock of the
/// tree and has reserved; `commit` is called once, after every file is durable.
pub fn commit_files(
    disk: &dyn Disk,
    plan: &Plan,
    commit: impl FnOnce(TxnId) -> Result<(), mooring_book::Error>,
) -> Result<Written, CommitError> {
    let checked = check_files(disk, &plan.root, &plan.changes).map_err(CommitError::Refused)?;
    checked.commit(disk, plan.txn, commit)
}

/// Changes whose targets were looked at, and found writable.
#[derive(Debug)]
pub struct Checked<'a> {
    root: &'a Path,
    steps: Vec<Step<'a>>,
    /// The permissions of what stands at the target of each step.
    known: Vec<Option<Access>>,
}

/// Looks at every target, so that what cannot be written is known before the book is told anything.
pub fn check_files<'a>(
    disk: &dyn Disk,
    root: &'a Path,
    changes: &'a [Change],
) -> Result<Checked<'a>, Vec<Finding>> {
    let steps: Vec<Step<'_>> = changes.iter().map(Step::from).collect();
    let seen = check::check(disk, root, &steps)?;
    let (steps, known) = check::changed(steps, &seen);
    Ok(Checked { root, steps, known })
}

impl Checked<'_> {
    /// The rest of [`commit_files`].
    pub fn commit(
        &self,
        disk: &dyn Disk,
        txn: Option<TxnId>,
        commit: impl FnOnce(TxnId) -> Result<(), mooring_book::Error>,
    ) -> Result<Written, CommitError> {
        let Self { root, steps, known } = self;
        let files = steps.len();
        if files > 0 {
            write_journal(disk, root, txn, steps)?;
            apply::apply(disk, root, steps, known).map_err(|e| interrupted(root, &e))?;
        }
        if let Some(txn) = txn {
            commit(txn).map_err(CommitError::Book)?;
        }
        if files > 0 {
            remove_journal(disk, root).map_err(|e| interrupted(root, &e))?;
        }
        Ok(Written { files })
    }
}

fn write_journal(
    disk: &dyn Disk,
    root: &Path,
    txn: Option<TxnId>,
    steps: &[Step<'_>],
) -> Result<(), CommitError> {
    let unfinished = root.join(UNFINISHED);
    let journal = root.join(JOURNAL);
    let prepare = || -> io::Result<()> {
        ensure_dir(disk, root)?;
        if absent_is_none(disk.meta(&journal))?.is_some() {
            return Err(io::Error::new(
                io::ErrorKind::AlreadyExists,
                "an interrupted run was not settled",
            ));
        }
        apply::write_fresh(
            disk,
            &unfinished,
            &format::encode(txn, steps),
            Access::Private,
        )?;
        disk.sync_file(&unfinished)?;
        disk.rename(&unfinished, &journal)
    };
    if let Err(e) = prepare() {
        // Absent is success; what cannot be removed now, the next run removes.
        let _ = disk.remove_file(&unfinished);
        return Err(CommitError::Refused(vec![unwritable(&journal, &e)]));
    }
    disk.sync_dir(root)
        .map_err(|e| interrupted(root, &Failed::new("sync", root, e)))
}

fn remove_journal(disk: &dyn Disk, root: &Path) -> Result<(), Failed> {
    let journal = root.join(JOURNAL);
    disk.remove_file(&journal)
        .map_err(|e| Failed::new("remove", &journal, e))?;
    disk.sync_dir(root)
        .map_err(|e| Failed::new("sync", root, e))
}

/// An operation of the disk that failed after the point of no return.
#[derive(Debug)]
struct Failed {
    act: &'static str,
    path: PathBuf,
    source: io::Error,
}

impl Failed {
    fn new(act: &'static str, path: &Path, source: io::Error) -> Self {
        let path = path.to_owned();
        Self { act, path, source }
    }

    fn finding(&self, root: &Path) -> Finding {
        Finding::error(
            Code::FileUnwritable,
            format!(
                "cannot {} {}: {}",
                self.act,
                self.path.display(),
                self.source
            ),
        )
        .help(format!(
            "remove the cause and run again: {} holds the rest of the work",
            root.join(JOURNAL).display()
        ))
    }
}

fn interrupted(root: &Path, failed: &Failed) -> CommitError {
    CommitError::Interrupted(Box::new(failed.finding(root)))
}

/// A path that cannot be written, found before anything was.
fn unwritable(path: &Path, source: &io::Error) -> Finding {
    Finding::error(
        Code::FileUnwritable,
        format!("cannot write {}: {source}", path.display()),
    )
    .help("make it writable (`chmod u+w`), or write elsewhere with --out; nothing was written")
}

#[cfg(test)]
mod tests;
