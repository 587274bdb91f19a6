//! The book of a run, opened at first use.
//!
//! ```text
//!  asked for the first time ─► there is a file ─► opened (alone to write, together to read)
//!                           └► there is none   ─► an empty draft in memory ─► reserve makes the file
//! ```
//!
//! Most KRM functions and every `--help` need no book, and one process at a time may have it open; so a command that does
//! not ask for an address never waits for the lock. And a run that is refused leaves no book behind where none was.
//!
//! Easy to get wrong: while a draft is made in memory, another run may make the file. Then the draft is worth nothing, and
//! the command runs once more, with the file in its hands: [`Book::settle`].

mod draft;

use std::cell::{Cell, OnceCell};
use std::path::{Path, PathBuf};

use mooring_api::Time;
use mooring_book::{
    AuditFilter, Entry, Error, FileStore, Filter, MemoryStore, Options, PackageRecord, Pending,
    Restored, Store, Txn,
};
use mooring_ipam::{Lease, TxnId};

use draft::Draft;

/// What a command does to the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Changes no byte of it, and creates none.
    Read,
    /// Takes and releases.
    Write,
}

/// A store that is opened when it is first asked, and made when it is first told something.
pub(crate) struct Book {
    path: PathBuf,
    access: Access,
    options: Options,
    file: OnceCell<FileStore>,
    /// Stands in while there is no file.
    nothing: MemoryStore,
    /// Another run made the file while we drafted.
    overtaken: Cell<bool>,
}

impl Book {
    /// The book in this file.
    pub(crate) fn at(path: PathBuf, access: Access, options: Options) -> Self {
        Self {
            path,
            access,
            options,
            file: OnceCell::new(),
            nothing: MemoryStore::default(),
            overtaken: Cell::new(false),
        }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is one. An absent book reads as an empty one; a person should still be told.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Runs something that drafts and reserves; once more, where another run made the book in between.
    pub(crate) fn settle<T, E>(&self, mut act: impl FnMut(&Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = act(self);
        if outcome.is_err() && self.overtaken.take() {
            return act(self);
        }
        outcome
    }

    /// The file; to write, it is made where there is none.
    fn file(&self) -> Result<&FileStore, Error> {
        if let Some(file) = self.file.get() {
            return Ok(file);
        }
        let opened = match self.access {
            Access::Read => FileStore::open_to_read(&self.path, &self.options)?,
            Access::Write => FileStore::open(&self.path, &self.options)?,
        };
        Ok(self.file.get_or_init(|| opened))
    }

    /// Whether everything so far happens in memory.
    fn is_draft(&self) -> bool {
        // What cannot be looked at is opened, so that the reason is told.
        let absent = || self.path.try_exists().is_ok_and(|there| !there);
        self.access == Access::Write && self.file.get().is_none() && absent()
    }

    fn store(&self) -> Result<&dyn Store, Error> {
        if self.is_draft() {
            return Ok(&self.nothing);
        }
        Ok(self.file()?)
    }
}

impl Store for Book {
    fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error> {
        if self.is_draft() {
            return Ok(Box::new(Draft::begin(self, now)?));
        }
        self.file()?.begin(now)
    }

    fn commit(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        self.store()?.commit(txn, now)
    }

    fn abort(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        self.store()?.abort(txn, now)
    }

    fn leases(&self, filter: &Filter) -> Result<Vec<Lease>, Error> {
        self.store()?.leases(filter)
    }

    fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        self.store()?.packages()
    }

    fn pending(&self) -> Result<Vec<Pending>, Error> {
        self.store()?.pending()
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        self.store()?.audit(filter, limit)
    }

    fn restore(
        &self,
        leases: &[Lease],
        packages: &[PackageRecord],
        now: Time,
    ) -> Result<Restored, Error> {
        self.file()?.restore(leases, packages, now)
    }
}

#[cfg(test)]
mod tests;
