//! The book of a run, opened at first use.
//!
//! Most KRM functions and every `--help` need no book, and one process at a time may have it open; so a command that does
//! not ask for an address never waits for the lock, and never leaves an empty book behind.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use mooring_api::Time;
use mooring_book::{
    AuditFilter, Entry, Error, FileStore, Filter, Options, PackageRecord, Pending, Restored, Store,
    Txn,
};
use mooring_ipam::{Lease, TxnId};

/// What a command does to the book.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Changes no byte of it, and creates none.
    Read,
    /// Takes and releases.
    Write,
}

/// A store that is opened when it is first asked.
pub(crate) struct Book {
    path: PathBuf,
    access: Access,
    store: OnceCell<FileStore>,
}

impl Book {
    /// The book in this file.
    pub(crate) fn at(path: PathBuf, access: Access) -> Self {
        let store = OnceCell::new();
        Self {
            path,
            access,
            store,
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

    fn store(&self) -> Result<&FileStore, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store);
        }
        let options = Options::default();
        let opened = match self.access {
            Access::Read => FileStore::open_to_read(&self.path, &options)?,
            Access::Write => FileStore::open(&self.path, &options)?,
        };
        Ok(self.store.get_or_init(|| opened))
    }
}

impl Store for Book {
    fn begin(&self, now: Time) -> Result<Box<dyn Txn + '_>, Error> {
        self.store()?.begin(now)
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
        self.store()?.restore(leases, packages, now)
    }
}
