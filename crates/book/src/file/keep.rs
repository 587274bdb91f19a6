//! The redb side of the file store: one [`Change`] is one write transaction, one question is one read transaction.
//!
//! Easy to get wrong: redb trusts a file that was closed cleanly, so a damaged page can surface as a panic deep in
//! a read. Every use of the database goes through [`FileKeep::guarded`], which turns that into an error.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use mooring_ipam::{InstanceKey, Lease, Thing, TxnId};
use redb::{
    Database, Durability, ReadTransaction, ReadableDatabase, ReadableTable, ReadableTableMetadata,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::holder::HolderFile;
use super::schema::{
    AUDIT, CLASS_END, COMMITTED, HOLDERS, Keys, LEASES, META, META_CHANGES, META_NEXT_ENTRY,
    META_NEXT_TXN, META_SCHEMA, PACKAGES, RESERVATIONS, SCHEMA, TXNS, place,
};
use super::{Options, open};
use crate::audit::{AuditFilter, Entry};
use crate::error::Error;
use crate::keep::{Change, Keep, Open, PackageNote, REMEMBERED, TRAIL};
use crate::reservation::{Reservation, ReservationNote};
use crate::store::PackageRecord;

/// Why an operation on the database failed.
pub(crate) type Cause = Box<dyn std::error::Error + Send + Sync>;

/// Said to whoever asks a book that [`Keep::ready`] had to close.
const CLOSED: &str = "it was closed, and has to be opened again";

/// An open database.
pub(super) enum Source {
    /// We are the only process that has it. The side file goes before the lock does.
    Write {
        _named: Option<HolderFile>,
        db: Database,
    },
    /// Others may read too; nothing is ever written.
    Read(Box<dyn ReadableDatabase + Send + Sync>),
    /// There is no book yet, and none is made.
    Absent,
    /// It could not be opened for writing. What was read may not be so any more, so nothing is answered.
    Closed { overtaken: bool },
}

/// A book file.
pub(crate) struct FileKeep {
    path: PathBuf,
    source: Source,
    /// Read so far, and opened for writing when there is something to write.
    later: Option<Options>,
}

/// Tells a book from what it was earlier, and from another book in its place: next transaction, next entry of the
/// trail, changes.
type Generation = [u64; 3];

impl FileKeep {
    /// Checks the schema, and writes it into a database that has nothing in it yet.
    pub(super) fn new(path: PathBuf, source: Source) -> Result<Self, Error> {
        let mut keep = Self {
            path,
            source,
            later: None,
        };
        let mut newer = None;
        let empty = keep.read(true, |txn| {
            if txn.list_tables()?.next().is_none() {
                return Ok(true);
            }
            let meta = txn.open_table(META).map_err(|_| "it is not a book")?;
            match meta.get(META_SCHEMA)?.map(|v| v.value()) {
                Some(SCHEMA) => Ok(false),
                Some(other) if other > SCHEMA => {
                    newer = Some(other);
                    Ok(false)
                }
                Some(other) => {
                    Err(format!("it has schema {other}, this version reads {SCHEMA}").into())
                }
                None => Err("it is not a book".into()),
            }
        })?;
        if let Some(schema) = newer {
            return Err(Error::Newer {
                path: keep.path.display().to_string(),
                schema,
                reads: SCHEMA,
            });
        }
        if empty && keep.is_writable() {
            keep.guarded(|| {
                let txn = keep.database()?.begin_write()?;
                txn.open_table(META)?.insert(META_SCHEMA, SCHEMA)?;
                txn.open_table(LEASES)?;
                txn.open_table(HOLDERS)?;
                txn.open_table(PACKAGES)?;
                txn.open_table(RESERVATIONS)?;
                txn.open_table(TXNS)?;
                txn.open_table(COMMITTED)?;
                txn.open_table(AUDIT)?;
                Ok(txn.commit()?)
            })?;
        }
        if empty && !keep.is_writable() {
            keep.source = Source::Absent;
        }
        Ok(keep)
    }

    /// Lets the first [`Keep::ready`] open it for writing.
    pub(super) fn until_written(mut self, options: &Options) -> Self {
        self.later = Some(options.clone());
        self
    }

    /// Whether it answers nothing any more; and whether that is because somebody else was faster.
    pub(super) fn closed(&self) -> Option<bool> {
        match self.source {
            Source::Closed { overtaken } => Some(overtaken),
            Source::Write { .. } | Source::Read(_) | Source::Absent => None,
        }
    }

    fn close(&mut self, overtaken: bool) {
        let source = std::mem::replace(&mut self.source, Source::Closed { overtaken });
        // Closing writes too, and what it writes depends on what was read.
        let closed = guarded(|| {
            drop(source);
            Ok(())
        });
        // Nobody is left to tell; everything that was acknowledged is durable without a clean close.
        drop(closed);
    }

    fn generation(&self) -> Result<Generation, Error> {
        self.read([0; 3], |txn| {
            let meta = txn.open_table(META)?;
            let number =
                |name| -> Result<u64, Cause> { Ok(meta.get(name)?.map_or(0, |v| v.value())) };
            Ok([
                number(META_NEXT_TXN)?,
                number(META_NEXT_ENTRY)?,
                number(META_CHANGES)?,
            ])
        })
    }

    fn database(&self) -> Result<&Database, Cause> {
        match &self.source {
            Source::Write { db, .. } => Ok(db),
            Source::Read(_) | Source::Absent => Err("it was opened only to read".into()),
            Source::Closed { .. } => Err(CLOSED.into()),
        }
    }

    fn read<T>(
        &self,
        absent: T,
        ask: impl FnOnce(&ReadTransaction) -> Result<T, Cause>,
    ) -> Result<T, Error> {
        self.guarded(|| match &self.source {
            Source::Write { db, .. } => ask(&db.begin_read()?),
            Source::Read(db) => ask(&db.begin_read()?),
            Source::Absent => Ok(absent),
            Source::Closed { .. } => Err(CLOSED.into()),
        })
    }

    fn guarded<T>(&self, work: impl FnOnce() -> Result<T, Cause>) -> Result<T, Error> {
        guarded(work).map_err(|source| unusable(&self.path, source))
    }
}

impl Drop for FileKeep {
    fn drop(&mut self) {
        self.close(false);
    }
}

/// Runs something that must not take the process down with it.
pub(super) fn guarded<T>(work: impl FnOnce() -> Result<T, Cause>) -> Result<T, Cause> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(said(&*panic).into()))
}

fn said(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("it is damaged: {}", text.unwrap_or("an unknown failure"))
}

/// The book cannot be used, and what to do about that.
pub(crate) fn unusable(path: &Path, source: Cause) -> Error {
    use io::ErrorKind::{
        IsADirectory, NotFound, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull,
    };
    let remedy = match io_kind(&*source) {
        Some(PermissionDenied | ReadOnlyFilesystem) => {
            "check who may write it and the directory it is in"
        }
        Some(StorageFull | QuotaExceeded) => "make room on its disk, then run the command again",
        Some(NotFound) => "check the path: there is no such file or directory",
        Some(IsADirectory) => "name a file, not a directory",
        _ => "restore a backup, or move the file away and run `moor book rebuild`",
    };
    Error::Unusable {
        path: path.display().to_string(),
        remedy,
        source,
    }
}

/// What the operating system said, where it was asked. redb wraps it without naming it as its source.
fn io_kind(cause: &(dyn std::error::Error + Send + Sync + 'static)) -> Option<io::ErrorKind> {
    let storage = match (
        cause.downcast_ref::<redb::DatabaseError>(),
        cause.downcast_ref::<redb::CommitError>(),
        cause.downcast_ref::<redb::StorageError>(),
    ) {
        (Some(redb::DatabaseError::Storage(e)), _, _) => Some(e),
        (_, Some(redb::CommitError::Storage(e)), _) => Some(e),
        (_, _, plain) => plain,
    };
    match (storage, cause.downcast_ref::<io::Error>()) {
        (Some(redb::StorageError::Io(e)), _) | (_, Some(e)) => Some(e.kind()),
        _ => None,
    }
}

fn to_json(value: &impl Serialize) -> Result<Vec<u8>, Cause> {
    Ok(serde_json::to_vec(value)?)
}

fn from_json<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Cause> {
    Ok(serde_json::from_slice(bytes)?)
}

impl Keep for FileKeep {
    fn is_writable(&self) -> bool {
        matches!(self.source, Source::Write { .. })
    }

    fn ready(&mut self) -> Result<(), Error> {
        if self.is_writable() {
            return Ok(());
        }
        let Some(options) = self.later.take() else {
            return Err(Error::Unusable {
                path: self.path.display().to_string(),
                remedy: "open it for writing",
                source: "it was opened only to read".into(),
            });
        };
        let seen = self.generation()?;
        // Before the wait: two that read, and wait for each other to end that, would wait for ever.
        self.close(false);
        let mut opened = open::for_writing(&self.path, &options)?;
        if opened.generation()? != seen {
            self.source = Source::Closed { overtaken: true };
            return Err(Error::Overtaken {
                path: self.path.display().to_string(),
            });
        }
        std::mem::swap(&mut self.source, &mut opened.source);
        Ok(())
    }

    fn damaged(&self, why: String) -> Error {
        unusable(&self.path, why.into())
    }

    fn persist(&mut self, change: &Change) -> Result<(), Error> {
        self.guarded(|| {
            let mut txn = self.database()?.begin_write()?;
            txn.set_durability(Durability::Immediate)?;
            write(&txn, change)?;
            Ok(txn.commit()?)
        })
    }

    fn load(&self, instance: &InstanceKey) -> Result<Vec<Lease>, Error> {
        let (ns, name) = (instance.namespace(), instance.name());
        self.read(Vec::new(), |txn| {
            let leases = txn.open_table(LEASES)?;
            let range = (ns, name, 0, &[][..])..(ns, name, CLASS_END, &[][..]);
            let each = leases.range(range)?;
            each.map(|row| from_json(row?.1.value())).collect()
        })
    }

    fn instances(&self) -> Result<Vec<InstanceKey>, Error> {
        self.read(Vec::new(), |txn| {
            let leases = txn.open_table(LEASES)?;
            let mut found: Vec<InstanceKey> = Vec::new();
            loop {
                // One seek per instance instead of a walk over its leases.
                let last = found.last().cloned();
                let from = last.as_ref().map_or(("", "", 0, &[][..]), |i| {
                    (i.namespace(), i.name(), CLASS_END, &[][..])
                });
                let Some(row) = leases.range(from..)?.next() else {
                    return Ok(found);
                };
                let key = row?.0;
                let (ns, name, _, _) = key.value();
                found.push(InstanceKey::new(ns, name));
            }
        })
    }

    fn of_package(&self, cluster: &str, package: &str) -> Result<Vec<(InstanceKey, Thing)>, Error> {
        self.read(Vec::new(), |txn| {
            let (holders, leases) = (txn.open_table(HOLDERS)?, txn.open_table(LEASES)?);
            let mut found = Vec::new();
            for row in holders.range((cluster, package, "", "", 0, &[][..])..)? {
                let key = row?.0;
                let (c, p, ns, name, class, place) = key.value();
                if (c, p) != (cluster, package) {
                    break;
                }
                let lease = leases.get((ns, name, class, place))?;
                let lease = lease.ok_or("its index names a lease that is not there")?;
                let lease: Lease = from_json(lease.value())?;
                found.push((lease.instance, lease.thing));
            }
            Ok(found)
        })
    }

    fn open(&self) -> Result<(Vec<Open>, u64), Error> {
        self.read((Vec::new(), 0), |txn| {
            let txns = txn.open_table(TXNS)?;
            let open: Result<_, Cause> =
                txns.iter()?.map(|row| from_json(row?.1.value())).collect();
            let next = txn.open_table(META)?.get(META_NEXT_TXN)?;
            Ok((open?, next.map_or(0, |v| v.value())))
        })
    }

    fn was_committed(&self, id: TxnId) -> Result<bool, Error> {
        self.read(false, |txn| {
            Ok(txn.open_table(COMMITTED)?.get(id.0)?.is_some())
        })
    }

    fn package(&self, cluster: &str, id: &str) -> Result<Option<PackageRecord>, Error> {
        self.read(None, |txn| {
            let found = txn.open_table(PACKAGES)?.get((cluster, id))?;
            found.map(|v| from_json(v.value())).transpose()
        })
    }

    fn packages(&self) -> Result<Vec<PackageRecord>, Error> {
        self.read(Vec::new(), |txn| {
            let packages = txn.open_table(PACKAGES)?;
            let each = packages.iter()?;
            each.map(|row| from_json(row?.1.value())).collect()
        })
    }

    fn reservations(&self) -> Result<Vec<Reservation>, Error> {
        self.read(Vec::new(), |txn| {
            let table = match txn.open_table(RESERVATIONS) {
                Err(redb::TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                table => table?,
            };
            let each = table.iter()?;
            each.map(|row| from_json(row?.1.value())).collect()
        })
    }

    fn audit(&self, filter: &AuditFilter, limit: usize) -> Result<Vec<Entry>, Error> {
        self.read(Vec::new(), |txn| {
            let (trail, mut found) = (txn.open_table(AUDIT)?, Vec::new());
            for row in trail.iter()?.rev() {
                if found.len() == limit {
                    break;
                }
                let entry: Entry = from_json(row?.1.value())?;
                if filter.fits(&entry) {
                    found.push(entry);
                }
            }
            found.reverse();
            Ok(found)
        })
    }
}

fn write(txn: &redb::WriteTransaction, change: &Change) -> Result<(), Cause> {
    let mut leases = txn.open_table(LEASES)?;
    let mut holders = txn.open_table(HOLDERS)?;
    for lease in &change.drop {
        let keys = Keys::of(lease);
        leases.remove(keys.lease())?;
        holders.remove(keys.holder())?;
    }
    for lease in &change.put {
        let keys = Keys::of(lease);
        let known = leases.insert(keys.lease(), &*to_json(lease)?)?.is_some();
        // One that is known has the holder it had: else it was dropped above.
        if !known {
            holders.insert(keys.holder(), ())?;
        }
    }
    let mut txns = txn.open_table(TXNS)?;
    for id in &change.close {
        txns.remove(id.0)?;
    }
    for open in &change.open {
        txns.insert(open.id.0, &*to_json(open)?)?;
    }
    if let Some((id, at)) = change.committed {
        let mut committed = txn.open_table(COMMITTED)?;
        committed.insert(id.0, at.0)?;
        while committed.len()? > REMEMBERED as u64 {
            committed.pop_first()?;
        }
    }
    let mut packages = txn.open_table(PACKAGES)?;
    for note in &change.packages {
        match note {
            PackageNote::Note(record) => {
                packages.insert(note.key(), &*to_json(record)?)?;
            }
            PackageNote::Forget { .. } => {
                packages.remove(note.key())?;
            }
        }
    }
    if !change.reservations.is_empty() {
        let mut reservations = txn.open_table(RESERVATIONS)?;
        for note in &change.reservations {
            let (instance, thing) = note.key();
            let (class, place) = place(thing);
            let key = (instance.namespace(), instance.name(), class, &*place);
            match note {
                ReservationNote::Note(r) => reservations.insert(key, &*to_json(r)?)?,
                ReservationNote::Forget { .. } => reservations.remove(key)?,
            };
        }
    }
    let mut meta = txn.open_table(META)?;
    let mut number = meta.get(META_NEXT_ENTRY)?.map_or(0, |v| v.value());
    let mut trail = txn.open_table(AUDIT)?;
    for entry in &change.audit {
        trail.insert(number, &*to_json(entry)?)?;
        number += 1;
    }
    meta.insert(META_NEXT_ENTRY, number)?;
    for _ in (TRAIL as u64)..trail.len()? {
        trail.pop_first()?;
    }
    let changes = meta.get(META_CHANGES)?.map_or(0, |v| v.value());
    meta.insert(META_CHANGES, changes + 1)?;
    let next = meta.get(META_NEXT_TXN)?.map_or(0, |v| v.value());
    meta.insert(META_NEXT_TXN, next.max(change.next))?;
    Ok(())
}
