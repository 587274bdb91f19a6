//! The book of a run, opened at first use.
//!
//! Most KRM functions and every `--help` need no book, and one process at a time may have it open; so a command that does
//! not ask for an address never waits for the lock, and never leaves an empty book behind.

use std::cell::OnceCell;
use std::path::{Path, PathBuf};

use mooring_api::Time;
use mooring_book::{
    AuditFilter, Entry, Error, Filter, PackageRecord, Pending, Restored, Store, Txn,
};
use mooring_ipam::{Lease, TxnId};

/// A store that is opened when it is first asked.
pub(crate) struct Book {
    path: PathBuf,
    store: OnceCell<Box<dyn Store>>,
}

impl Book {
    /// The book in this file.
    pub(crate) fn at(path: PathBuf) -> Self {
        let store = OnceCell::new();
        Self { path, store }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Whether anything was ever taken. Commands that only read ask this, so that they do not create a book.
    pub(crate) fn exists(&self) -> bool {
        self.path.exists()
    }

    fn store(&self) -> Result<&dyn Store, Error> {
        if let Some(store) = self.store.get() {
            return Ok(store.as_ref());
        }
        let opened: Box<dyn Store> = open(&self.path)?;
        Ok(self.store.get_or_init(|| opened).as_ref())
    }
}

fn open(path: &Path) -> Result<Box<dyn Store>, Error> {
    // The file store is being written; until then there is nothing to open.
    Err(Error::Unusable {
        path: path.display().to_string(),
        remedy: "this build has no file store yet",
        source: "no file store".into(),
    })
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
