//! One book file out, and one in: `moor book backup`, `moor book restore`.
//!
//! Both read the other file as bytes under its lock, open it in memory (which repairs what a crash left, checks the schema
//! and every lease), and write what came out as one whole file. So a damaged file is never copied as if it were good,
//! and looking at one changes no byte of it.
//!
//! Easy to get wrong: the book that is replaced may itself be unreadable. That is when a restore is needed most, so its
//! lock is taken without opening it.

use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::hash::{DefaultHasher, Hasher as _};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use redb::StorageBackend;

use crate::content::Content;
use crate::error::Error;
use crate::file::{FileStore, Options, patiently, unusable};
use crate::place::{Disk, Previous, directory, put_in_place};

/// How every redb file begins.
const MAGIC: &[u8] = b"redb";

/// Writes the book as one file. Where the file is there already and `force` is not given, it is
/// [`io::ErrorKind::AlreadyExists`] inside of [`Error::Unusable`].
pub fn backup(
    disk: &dyn Disk,
    book: &Path,
    to: &Path,
    force: bool,
    options: &Options,
) -> Result<Content, Error> {
    let bytes = whole(book, options)?.ok_or_else(|| absent(book))?;
    let (bytes, content) = opened(book, bytes)?;
    let previous = if force {
        Previous::Goes
    } else {
        Previous::Stays
    };
    let written = put_in_place(disk, &bytes, to, previous);
    written.map_err(|e| unusable(to, e.into()))?;
    Ok(content)
}

/// A restore that was looked at and not yet made.
#[derive(Debug)]
pub struct Restoration {
    book: PathBuf,
    bytes: Vec<u8>,
    /// What the book was when it was looked at; None is no book.
    seen: Option<u64>,
    /// What the book holds; None is no book, and an error is why it cannot be read.
    pub before: Result<Option<Content>, Error>,
    /// What it will hold.
    pub after: Content,
}

impl Restoration {
    /// Reads both, and changes nothing.
    pub fn prepare(book: &Path, from: &Path, options: &Options) -> Result<Self, Error> {
        let bytes = whole(from, options)?.ok_or_else(|| absent(from))?;
        let (bytes, after) = opened(from, bytes)?;
        // A link to the book stays a link to it.
        let linked = fs::symlink_metadata(book).is_ok_and(|known| known.is_symlink());
        let real = linked.then(|| fs::canonicalize(book).ok()).flatten();
        let book = &real.unwrap_or_else(|| book.to_owned());
        let current = whole(book, options)?;
        let seen = current.as_deref().map(fingerprint);
        let before = current.map(|bytes| opened(book, bytes)).transpose();
        Ok(Self {
            book: book.to_owned(),
            bytes,
            seen,
            before: before.map(|read| read.map(|(_, content)| content)),
            after,
        })
    }

    /// Where the book that is replaced will be found.
    pub fn previous(&self) -> Option<PathBuf> {
        let mut name = OsString::from(self.book.as_os_str());
        name.push(".before-restore");
        self.seen.map(|_| PathBuf::from(name))
    }

    /// Replaces the book, unless another run changed it since it was looked at: [`Error::Overtaken`].
    pub fn write(&self, disk: &dyn Disk, options: &Options) -> Result<(), Error> {
        let book = &self.book;
        let failed = |e: io::Error| unusable(book, e.into());
        fs::create_dir_all(directory(book)).map_err(failed)?;
        let lock = locked(book, options, File::try_lock)?;
        let mut current = None;
        if let Some(mut file) = lock.as_ref() {
            let mut bytes = Vec::new();
            file.read_to_end(&mut bytes).map_err(failed)?;
            current = Some(fingerprint(&bytes));
        }
        if current != self.seen {
            return Err(Error::Overtaken {
                path: book.display().to_string(),
            });
        }
        let kept = self.previous();
        let previous = match &kept {
            Some(kept) => Previous::Becomes(kept),
            // Made by somebody in this moment, it would not be what was looked at.
            None => Previous::Stays,
        };
        put_in_place(disk, &self.bytes, book, previous).map_err(failed)
    }
}

/// A book file read to be merged, whatever it is called.
pub fn is_book(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

fn fingerprint(bytes: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

fn absent(path: &Path) -> Error {
    unusable(path, io::Error::from(io::ErrorKind::NotFound).into())
}

/// All bytes of a file, while nobody writes it.
fn whole(path: &Path, options: &Options) -> Result<Option<Vec<u8>>, Error> {
    let Some(mut file) = locked(path, options, File::try_lock_shared)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let read = file.read_to_end(&mut bytes);
    read.map_err(|e| unusable(path, e.into()))?;
    Ok(Some(bytes))
}

/// The file with redb's own lock on it; None where there is none.
fn locked(
    path: &Path,
    options: &Options,
    lock: impl Fn(&File) -> Result<(), TryLockError>,
) -> Result<Option<File>, Error> {
    patiently(path, options, || {
        let file = match File::open(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => return Ok(None),
            file => file?,
        };
        match lock(&file) {
            Ok(()) => Ok(Some(file)),
            Err(TryLockError::WouldBlock) => Err(redb::DatabaseError::DatabaseAlreadyOpen),
            Err(TryLockError::Error(e)) => Err(e.into()),
        }
    })
}

/// The book in these bytes: repaired, checked, closed.
fn opened(name: &Path, bytes: Vec<u8>) -> Result<(Vec<u8>, Content), Error> {
    if !is_book(&bytes) {
        return Err(unusable(name, "it is not a book".into()));
    }
    let memory = Memory(Arc::new(Mutex::new(bytes)));
    let store = FileStore::with_backend(name, memory.clone())?;
    let content = Content::of(&store)?;
    drop(store);
    let bytes = std::mem::take(&mut *memory.bytes());
    Ok((bytes, content))
}

/// Bytes that behave like a file. Clones are the same.
#[derive(Clone, Debug)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Memory {
    fn bytes(&self) -> MutexGuard<'_, Vec<u8>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl StorageBackend for Memory {
    fn len(&self) -> io::Result<u64> {
        Ok(self.bytes().len() as u64)
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        let bytes = self.bytes();
        let start = place(offset)?;
        let found = start
            .checked_add(out.len())
            .and_then(|end| bytes.get(start..end));
        out.copy_from_slice(found.ok_or(io::ErrorKind::UnexpectedEof)?);
        Ok(())
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        self.bytes().resize(place(len)?, 0);
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        Ok(())
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let (mut bytes, start) = (self.bytes(), place(offset)?);
        let found = start
            .checked_add(data.len())
            .and_then(|end| bytes.get_mut(start..end));
        found
            .ok_or(io::ErrorKind::UnexpectedEof)?
            .copy_from_slice(data);
        Ok(())
    }
}

fn place(offset: u64) -> io::Result<usize> {
    usize::try_from(offset).map_err(|_| io::ErrorKind::InvalidInput.into())
}
