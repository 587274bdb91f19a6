//! Opening a book file: for writing (alone, others wait), to read (together with other readers), or as a copy.
//!
//! Easy to get wrong: redb makes a file usable in several writes, so a crash in the middle of the first one leaves
//! something that is no database. A new book is therefore made under another name and linked into place.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use redb::backends::InMemoryBackend;
use redb::{Builder, Database, DatabaseError, ReadOnlyDatabase, StorageBackend};

use super::Options;
use super::holder::{self, HolderFile};
use super::keep::{Cause, FileKeep, Source, guarded, unusable};
use crate::error::Error;

/// A book is small; redb's own default of 1 GiB is for something else.
const CACHE_BYTES: usize = 64 * 1024 * 1024;

/// Whoever waits long must not ask so rarely that everybody who comes later gets in first.
const LONGEST_PAUSE: Duration = Duration::from_millis(8);

/// Tells the files of two threads apart.
static MADE: AtomicU64 = AtomicU64::new(0);

fn builder() -> Builder {
    let mut builder = Database::builder();
    builder.set_cache_size(CACHE_BYTES);
    builder
}

/// Opens for writing, and makes the file where there is none.
pub(super) fn for_writing(path: &Path, options: &Options) -> Result<FileKeep, Error> {
    if !path.try_exists().map_err(|e| unusable(path, e.into()))? {
        make(path).map_err(|source| unusable(path, source))?;
    }
    // `create` also serves an empty file, such as `mktemp` makes.
    let db = patiently(path, options, || builder().create(path))?;
    let named = HolderFile::write(path, options.who.as_deref());
    FileKeep::new(path.to_owned(), Source::Write { _named: named, db })
}

/// Opens without changing a byte. A missing or empty file is an empty book.
pub(super) fn to_read(path: &Path, options: &Options) -> Result<FileKeep, Error> {
    let absent = match fs::metadata(path) {
        Ok(known) => known.len() == 0,
        Err(e) if e.kind() == io::ErrorKind::NotFound => true,
        Err(e) => return Err(unusable(path, e.into())),
    };
    if absent {
        return FileKeep::new(path.to_owned(), Source::Absent);
    }
    let source = patiently(path, options, || match builder().open_read_only(path) {
        Ok(db) => Ok(Source::Read(Box::<ReadOnlyDatabase>::new(db))),
        // A crash left it: redb repairs by writing, so the repair happens in a copy.
        Err(DatabaseError::RepairAborted) => copied(path),
        Err(e) => Err(e),
    })?;
    FileKeep::new(path.to_owned(), source)
}

/// Opens like [`to_read`]; the first change opens it for writing.
pub(super) fn to_draft(path: &Path, options: &Options) -> Result<FileKeep, Error> {
    Ok(to_read(path, options)?.until_written(options))
}

/// Opens something that behaves like a file. `name` stands in errors.
pub(super) fn with_backend(name: &Path, backend: impl StorageBackend) -> Result<FileKeep, Error> {
    let opened = guarded(|| {
        // The first bytes are written last (see above): zeros mean that nothing was ever kept.
        let (mut magic, len) = ([0; 8], backend.len()?);
        if len >= 8 {
            backend.read(0, &mut magic)?;
        }
        if len > 0 && magic == [0; 8] {
            backend.set_len(0)?;
        }
        Ok(builder().create_with_backend(backend)?)
    });
    let db = opened.map_err(|source| unusable(name, source))?;
    FileKeep::new(name.to_owned(), Source::Write { _named: None, db })
}

fn make(path: &Path) -> Result<(), Cause> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
    let dir = dir.unwrap_or(Path::new("."));
    fs::create_dir_all(dir)?;
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let number = MADE.fetch_add(1, Ordering::Relaxed);
    let fresh = Scratch(dir.join(format!(".{name}.{}-{number}.new", std::process::id())));
    let db = builder().create(&fresh.0)?;
    drop(FileKeep::new(
        fresh.0.clone(),
        Source::Write { _named: None, db },
    )?);
    match fs::hard_link(&fresh.0, path) {
        Ok(()) => File::open(dir)?.sync_all()?,
        Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
        // No links on this filesystem: the caller makes it in place, which only a crash at the wrong time spoils.
        Err(_) => {}
    }
    Ok(())
}

/// A file that is removed again.
struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

/// Reads the file under a shared lock, which redb's writers respect, into memory.
fn copied(path: &Path) -> Result<Source, DatabaseError> {
    let file = File::open(path)?;
    match file.try_lock_shared() {
        Ok(()) => {}
        Err(fs::TryLockError::WouldBlock) => return Err(DatabaseError::DatabaseAlreadyOpen),
        Err(fs::TryLockError::Error(e)) => return Err(e.into()),
    }
    let bytes = fs::read(path)?;
    let memory = InMemoryBackend::new();
    memory.set_len(bytes.len() as u64)?;
    memory.write(0, &bytes)?;
    let db = builder().create_with_backend(memory)?;
    Ok(Source::Read(Box::<Database>::new(db)))
}

/// Which file has this name.
fn identity(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let known = fs::metadata(path).ok()?;
    Some((known.dev(), known.ino()))
}

/// Waits for others to close the book, at most as long as the options say.
///
/// A restore puts another file in the book's place, perhaps between opening it and getting its lock; then what was opened
/// is not the book any more, and is opened again. What it waited is the sum of its pauses: this room reads no clock.
pub(crate) fn patiently<T>(
    path: &Path,
    options: &Options,
    open: impl Fn() -> Result<T, DatabaseError>,
) -> Result<T, Error> {
    let (mut waited, mut pause) = (Duration::ZERO, Duration::from_millis(1));
    loop {
        let outcome = guarded(|| match (identity(path), open()) {
            (before, Ok(opened)) => Ok((before == identity(path)).then_some(opened)),
            (_, Err(DatabaseError::DatabaseAlreadyOpen)) => Ok(None),
            (_, Err(e)) => Err(e.into()),
        });
        if let Some(opened) = outcome.map_err(|source| unusable(path, source))? {
            return Ok(opened);
        }
        if waited >= options.wait {
            return Err(Error::Busy {
                path: path.display().to_string(),
                holder: holder::named(path),
            });
        }
        thread::sleep(pause);
        waited += pause;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}
