//! State files that survive a crash, and locks between processes.
//!
//! Called by whoever keeps state on a node: records, host-local's addresses, VLAN reference counts. A file is either the
//! old one or the new one, never half of one, also after power loss: written beside its place, synced, renamed, and the
//! directory synced.
//!
//! Easy to get wrong: a rename replaces what is there. For "only the first may" use [`create_exclusive`].

mod lock;

use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

pub use lock::{Lock, LockError};

/// Puts `bytes` at `path`, whole or not at all; the directory is made when absent. Mode 0600.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_atomic_mode(path, bytes, 0o600)
}

/// The same with another mode.
pub fn write_atomic_mode(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    let temporary = Temporary::write(path, bytes, mode)?;
    std::fs::rename(&temporary.path, path)?;
    // The rename took it: there is nothing left to remove.
    std::mem::forget(temporary);
    sync_directory(path)
}

/// Puts `bytes` at `path` only when nothing is there; otherwise `AlreadyExists`. Others see the whole file or none.
pub fn create_exclusive(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    create_exclusive_mode(path, bytes, 0o600)
}

/// The same with another mode.
pub fn create_exclusive_mode(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    let temporary = Temporary::write(path, bytes, mode)?;
    // A link, unlike a rename, refuses to replace.
    std::fs::hard_link(&temporary.path, path)?;
    drop(temporary);
    sync_directory(path)
}

/// The bytes at `path`; `None` when nothing is there.
pub fn read(path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
    absent(std::fs::read(path))
}

/// Removes a file; absent is success. Says whether it was there.
pub fn remove(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref();
    match absent(std::fs::remove_file(path))? {
        Some(()) => sync_directory(path).map(|()| true),
        None => Ok(false),
    }
}

fn absent<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

fn directory(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

fn sync_directory(path: &Path) -> io::Result<()> {
    File::open(directory(path))?.sync_all()
}

/// A file beside its place, gone when it is dropped.
struct Temporary {
    path: PathBuf,
}

impl Temporary {
    fn write(target: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        let directory = directory(target);
        // A dot in front: those who list a directory of state leave it alone.
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(
            ".{}.{}.tmp",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        let path = directory.join(own);
        let open = || {
            OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(mode)
                .open(&path)
        };
        let mut file = match open() {
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                std::fs::create_dir_all(directory)?;
                open()?
            }
            opened => opened?,
        };
        let temporary = Self { path };
        file.write_all(bytes)?;
        file.sync_all()?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}
