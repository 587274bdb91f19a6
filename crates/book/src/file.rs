//! The book as one crash-safe file, the default.
//!
//! ```text
//!  FileStore ─ Ledger (what a transaction means) ─ FileKeep (redb) ─ the file
//!                                                     └ <book>.holder: who has it open, for people
//! ```
//!
//! One process has the file for writing; others wait, then are told who it is. Reading never changes a byte.

mod holder;
mod keep;
mod open;
mod schema;

use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::ledger::{Ledger, store_over_ledger};
use keep::FileKeep;

pub(crate) use keep::unusable;
pub(crate) use open::patiently;

/// A book in a file.
pub struct FileStore(Ledger<FileKeep>);

/// How to open a book file.
#[derive(Clone, Debug)]
pub struct Options {
    /// How long to wait for another process.
    pub wait: Duration,
    /// What this process is called when others wait for it; None is its command line.
    pub who: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            wait: Duration::from_secs(10),
            who: None,
        }
    }
}

impl FileStore {
    /// Opens a book for writing, and makes it where there is none.
    pub fn open(path: &Path, options: &Options) -> Result<Self, Error> {
        open::for_writing(path, options).and_then(Self::over)
    }

    /// Opens a book without changing a byte of it: for `who-has` and for `--check`. A missing book is empty, and
    /// stays missing. Transactions can be drafted, but [`Txn::reserve`](crate::Txn::reserve) and everything else
    /// that would be durable is [`Error::Unusable`].
    ///
    /// Readers share the file with each other, not with a writer: drop the store early.
    pub fn open_to_read(path: &Path, options: &Options) -> Result<Self, Error> {
        open::to_read(path, options).and_then(Self::over)
    }

    /// Opens a book without changing a byte of it, until the first durable act opens it for writing. That act is
    /// [`Error::Overtaken`] where another process changed the book in between, and the store is closed then.
    pub(crate) fn open_to_draft(path: &Path, options: &Options) -> Result<Self, Error> {
        open::to_draft(path, options).and_then(Self::over)
    }

    /// Whether it gave the file up, because it could not be opened for writing or because it was overtaken.
    pub(crate) fn is_closed(&self) -> bool {
        self.0.keep(|keep| keep.closed().is_some())
    }

    /// Whether another process changed the book before this one could.
    pub(crate) fn is_overtaken(&self) -> bool {
        self.0.keep(|keep| keep.closed() == Some(true))
    }

    /// A book on something that behaves like a file; `name` stands in errors. Crash tests record what it is told.
    pub fn with_backend(name: &Path, backend: impl redb::StorageBackend) -> Result<Self, Error> {
        open::with_backend(name, backend).and_then(Self::over)
    }

    fn over(keep: FileKeep) -> Result<Self, Error> {
        Ok(Self(Ledger::new(keep)?))
    }
}

store_over_ledger!(FileStore);
