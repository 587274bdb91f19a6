//! The book of one run: a file that is opened when it is first asked, and for writing only when it is first told.
//!
//! ```text
//!  first question ─► read, together with others ─► first durable act ─► alone, to write
//!                    (no file: an empty book)       │ (reserve, commit, abort, restore)
//!                                                   └ another run was faster ─► Overtaken ─► once more, alone
//! ```
//!
//! `cli` uses it for every command. A run that is refused, or that changes nothing, leaves every byte of the book as it
//! was, and no book where none was; one that asks nothing never waits for the lock.
//!
//! Easy to get wrong: what a run decided from reading is worth nothing if the book has changed since. Such a run gives
//! the file up and is made once more, [`LazyStore::settle`]: the file is given up, not kept, because a run locks the
//! directory that it writes before it locks the book, and the second time must keep to that order.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use mooring_api::Time;
use mooring_ipam::{Lease, TxnId};

use crate::amend::Amendment;
use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::file::{FileStore, Options};
use crate::reservation::Reservation;
use crate::restore::Restored;
use crate::store::{Filter, PackageRecord, Pending, Store, Txn};

/// What a run may do to the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Changes no byte of it, and creates none.
    Read,
    /// Takes and releases.
    Write,
}

/// A book that is opened as late and as little as can be.
pub struct LazyStore {
    path: PathBuf,
    access: Access,
    options: Options,
    /// Reads, and writes once it has to.
    drafting: OnceLock<FileStore>,
    /// Open for writing before anything is read, so never overtaken. Used when `drafting` had to give the file up.
    alone: OnceLock<FileStore>,
}

impl LazyStore {
    /// The book in this file, which is not touched yet.
    pub fn at(path: PathBuf, access: Access, options: Options) -> Self {
        Self {
            path,
            access,
            options,
            drafting: OnceLock::new(),
            alone: OnceLock::new(),
        }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether there is one. An absent book reads as an empty one; a person should still be told.
    pub fn exists(&self) -> bool {
        self.path.exists()
    }

    /// Runs something that asks, drafts and reserves; once more where another run changed the book in between.
    ///
    /// The second time the book is opened for writing at the first question, so there is no third time.
    pub fn settle<T, E>(&self, mut act: impl FnMut(&Self) -> Result<T, E>) -> Result<T, E> {
        let outcome = act(self);
        // Where `alone` is in use, the second time is over, or an act of the store itself was repeated.
        if outcome.is_err() && self.alone.get().is_none() && self.is_overtaken() {
            return act(self);
        }
        outcome
    }

    fn is_overtaken(&self) -> bool {
        self.drafting.get().is_some_and(FileStore::is_overtaken)
    }

    fn file(&self) -> Result<&FileStore, Error> {
        let given_up = self.drafting.get().is_some_and(FileStore::is_closed);
        let cell = if given_up {
            &self.alone
        } else {
            &self.drafting
        };
        if let Some(file) = cell.get() {
            return Ok(file);
        }
        let opened = match self.access {
            Access::Read => FileStore::open_to_read(&self.path, &self.options),
            Access::Write if given_up => FileStore::open(&self.path, &self.options),
            Access::Write => FileStore::open_to_draft(&self.path, &self.options),
        }?;
        Ok(cell.get_or_init(|| opened))
    }

    /// An act that needs nothing that was asked before: done again here where it was overtaken.
    fn act<T>(&self, act: impl Fn(&FileStore) -> Result<T, Error>) -> Result<T, Error> {
        match act(self.file()?) {
            Err(Error::Overtaken { .. }) => act(self.file()?),
            outcome => outcome,
        }
    }
}

impl Store for LazyStore {
    fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error> {
        self.file()?.begin(now)
    }

    fn commit(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        self.act(|file| file.commit(txn, now))
    }

    fn abort(&self, txn: TxnId, now: Time) -> Result<(), Error> {
        self.act(|file| file.abort(txn, now))
    }

    fn leases(&self, filter: &Filter) -> Result<Vec<Lease>, Error> {
        self.file()?.leases(filter)
    }

    fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        self.file()?.packages()
    }

    fn pending(&self) -> Result<Vec<Pending>, Error> {
        self.file()?.pending()
    }

    fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        self.file()?.reservations()
    }

    fn amend(&self, amendment: &Amendment, now: Time) -> Result<(), Error> {
        // Not repeated when overtaken: what it was planned from is gone. See `settle`.
        self.file()?.amend(amendment, now)
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        self.file()?.audit(filter, limit)
    }

    fn restore(
        &self,
        leases: &[Lease],
        packages: &[PackageRecord],
        now: Time,
    ) -> Result<Restored, Error> {
        self.act(|file| file.restore(leases, packages, now))
    }
}
