//! State files that survive a crash, and locks between processes.
//!
//! Called by whoever keeps state on a node: records, host-local's addresses, VLAN reference counts. A file is either the
//! old one or the new one, never half of one, also after power loss: written beside its place, synced, renamed, and the
//! directory synced.
//!
//! Easy to get wrong: a rename replaces what is there. For "only the first may" use [`create_exclusive`], or [`Draft`] where a
//! lock is held meanwhile.

mod lock;

use std::ffi::OsStr;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::fcntl::{AT_FDCWD, AtFlags};

pub use lock::{Lock, LockError};

/// Puts `bytes` at `path`, whole or not at all; the directory is made when absent. Mode 0600.
pub fn write_atomic(path: impl AsRef<Path>, bytes: &[u8]) -> io::Result<()> {
    write_atomic_mode(path, bytes, 0o600)
}

/// The same with another mode.
pub fn write_atomic_mode(path: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<()> {
    let path = path.as_ref();
    let file = nameless(directory(path), bytes, mode)?;
    if let Some(file) = &file {
        // Where nothing is to be replaced the name is all it lacks, and a kill leaves the whole file or none.
        match link(file, path) {
            Ok(()) => return sync_directory(path),
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(e),
        }
    }
    let temporary = match &file {
        Some(file) => Temporary::link(path, file)?,
        None => Temporary::named(path, bytes, mode)?,
    };
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
    Draft::write(directory(path), bytes, mode)?.name(path)?;
    sync_directory(path)
}

/// A file that is written and synced before it is known what it will be called: the slow part, which needs no lock. Nobody
/// sees it, and it goes with this value.
#[derive(Debug)]
pub struct Draft {
    /// `None` where the file system has no nameless files; then it is written when it gets its name.
    file: Option<File>,
    bytes: Vec<u8>,
    mode: u32,
}

impl Draft {
    /// A draft for a directory, which is made when absent.
    pub fn write(directory: impl AsRef<Path>, bytes: &[u8], mode: u32) -> io::Result<Self> {
        Ok(Self {
            file: nameless(directory.as_ref(), bytes, mode)?,
            bytes: bytes.to_owned(),
            mode,
        })
    }

    /// Puts it at a path of that directory, only when nothing is there; otherwise `AlreadyExists`. Its bytes outlive a power
    /// cut if the name does, and the directory is not synced for the name.
    pub fn name(self, path: impl AsRef<Path>) -> io::Result<()> {
        let path = path.as_ref();
        if let Some(file) = &self.file {
            return link(file, path);
        }
        let temporary = Temporary::named(path, &self.bytes, self.mode)?;
        // A link, unlike a rename, refuses to replace.
        std::fs::hard_link(&temporary.path, path)
    }
}

/// A file without a name in a directory, written and synced: a kill leaves nothing of it. `None` where the file system
/// cannot.
fn nameless(directory: &Path, bytes: &[u8], mode: u32) -> io::Result<Option<File>> {
    let open = || {
        OpenOptions::new()
            .write(true)
            .mode(mode)
            .custom_flags(nix::libc::O_TMPFILE)
            .open(directory)
    };
    let opened = match open() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(directory)?;
            open()
        }
        opened => opened,
    };
    let Ok(mut file) = opened else {
        return Ok(None);
    };
    file.write_all(bytes)?;
    file.sync_all()?;
    Ok(Some(file))
}

/// Gives a nameless file its name, which nothing may have.
fn link(file: &File, path: &Path) -> io::Result<()> {
    let by_descriptor = format!("/proc/self/fd/{}", file.as_raw_fd());
    let flags = AtFlags::AT_SYMLINK_FOLLOW;
    nix::unistd::linkat(AT_FDCWD, by_descriptor.as_str(), AT_FDCWD, path, flags)?;
    Ok(())
}

/// The bytes at `path`; `None` when nothing is there.
pub fn read(path: impl AsRef<Path>) -> io::Result<Option<Vec<u8>>> {
    absent(std::fs::read(path))
}

/// Removes a file, and before it what a kill left of one that was to replace it; absent is success. Says whether it was
/// there.
pub fn remove(path: impl AsRef<Path>) -> io::Result<bool> {
    let path = path.as_ref();
    for left in Temporary::all(path)? {
        absent(std::fs::remove_file(left))?;
    }
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
    /// It has a name for as long as it takes to rename it, so that a kill hardly ever leaves one.
    fn link(target: &Path, file: &File) -> io::Result<Self> {
        let path = Self::path(target)?;
        // One of a process that had this number and was killed.
        absent(std::fs::remove_file(&path))?;
        link(file, &path)?;
        Ok(Self { path })
    }

    /// Those of a target, whoever wrote them.
    fn all(target: &Path) -> io::Result<Vec<PathBuf>> {
        let Some(entries) = absent(std::fs::read_dir(directory(target)))? else {
            return Ok(Vec::new());
        };
        let mut all = Vec::new();
        for entry in entries {
            let entry = entry?;
            if Self::is_of(&entry.file_name(), target) {
                all.push(entry.path());
            }
        }
        Ok(all)
    }

    /// Whether [`Self::path`] gives such a name.
    fn is_of(name: &OsStr, target: &Path) -> bool {
        let number = |word: &[u8]| !word.is_empty() && word.iter().all(u8::is_ascii_digit);
        let own = target.file_name().unwrap_or_default().as_bytes();
        let rest = name.as_bytes().strip_prefix(b".");
        let rest = rest.and_then(|rest| rest.strip_prefix(own));
        let rest = rest.and_then(|rest| rest.strip_prefix(b"."));
        let numbers = rest.and_then(|rest| rest.strip_suffix(b".tmp"));
        numbers.is_some_and(|numbers| {
            let mut words = numbers.split(|byte| *byte == b'.');
            words.next().is_some_and(number)
                && words.next().is_some_and(number)
                && words.next().is_none()
        })
    }

    fn path(target: &Path) -> io::Result<PathBuf> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // A dot in front: those who list a directory of state leave it alone.
        let mut own = std::ffi::OsString::from(".");
        own.push(name);
        own.push(format!(
            ".{}.{}.tmp",
            std::process::id(),
            NEXT.fetch_add(1, Ordering::Relaxed)
        ));
        Ok(directory(target).join(own))
    }

    /// For file systems that have no nameless files.
    fn named(target: &Path, bytes: &[u8], mode: u32) -> io::Result<Self> {
        let path = Self::path(target)?;
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
                std::fs::create_dir_all(directory(target))?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_kill_left_of_a_replacement_goes_with_the_file_and_nothing_else_does() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("eth1.json");
        let own = Temporary::path(&path).unwrap();
        let others = [
            // Of a file with a longer name, of one with a shorter one, and no temporary file at all.
            Temporary::path(&dir.path().join("eth1.json.1")).unwrap(),
            Temporary::path(&dir.path().join("eth1")).unwrap(),
            dir.path().join(".eth1.json.tmp"),
            dir.path().join("eth10.json"),
        ];
        for left in others.iter().chain([&own, &path]) {
            File::create(left).unwrap();
        }
        assert!(remove(&path).unwrap());
        assert!(!own.exists());
        assert!(others.iter().all(|other| other.exists()));
        // A kill between the two leaves the file, so that the next one finds it; the other way round nobody would.
        File::create(&own).unwrap();
        assert!(!remove(&path).unwrap());
        assert!(!own.exists());
        assert!(!remove(dir.path().join("absent/eth1.json")).unwrap());
    }

    #[test]
    fn a_draft_is_nobodys_until_it_is_named_and_never_replaces_another() {
        let dir = tempfile::tempdir().unwrap();
        let names = || {
            let entries = std::fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<_> = entries.map(|e| e.unwrap().file_name()).collect();
            names.sort();
            names
        };
        let draft = || Draft::write(dir.path(), b"whose", 0o600).unwrap();
        // As on a file system that has no nameless files.
        let plain = || Draft {
            file: None,
            ..draft()
        };
        let (one, two) = (dir.path().join("1"), dir.path().join("2"));
        let (first, second) = (draft(), plain());
        assert_eq!(names().len(), 0);
        first.name(&one).unwrap();
        second.name(&two).unwrap();
        for refused in [draft().name(&two), plain().name(&one)] {
            let kind = refused.map_err(|e| e.kind());
            assert_eq!(kind, Err(io::ErrorKind::AlreadyExists));
        }
        assert_eq!(names(), ["1", "2"]);
        assert_eq!(std::fs::read(&one).unwrap(), b"whose");
        assert_eq!(std::fs::read(&two).unwrap(), b"whose");
    }
}
