//! What the writer and the reader of package files ask of a disk, and the real one.
//!
//! [`journal`](crate::journal) is the only caller that writes; the engine only reads, through
//! [`read_tree`]. The trait exists so that a test can record every operation, lose what was not
//! synced, and look at what is left (`tests/crash.rs`).
//!
//! Easy to get wrong: no operation follows a symbolic link in its last component, and none makes
//! anything durable unless its name begins with `sync`.

mod lock;
mod read;
mod real;

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

pub use lock::{LOCK_WAIT, TreeLock};
pub use read::{MAX_DEPTH, MAX_FILE, Tree, read_tree};
pub use real::RealDisk;

pub(crate) use read::is_document;

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A plain file.
    File,
    /// A directory.
    Dir,
    /// A symbolic link, wherever it leads.
    Link,
    /// A socket, pipe or device: never opened.
    Special,
}

/// What is known of a path without opening it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Meta {
    /// What it is.
    pub kind: Kind,
    /// Length in bytes.
    pub len: u64,
    /// Permission bits.
    pub mode: u32,
    /// Owner.
    pub owner: u32,
    /// Group.
    pub group: u32,
    /// The file system it is on.
    pub device: u64,
}

/// A name in a directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The name.
    pub name: OsString,
    /// What it is.
    pub kind: Kind,
}

/// The permissions that a new file gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// As any new file of this user.
    Usual,
    /// For this user only: the journal holds everybody's bytes.
    Private,
    /// As the file that it will replace.
    Like(Meta),
}

/// The operations that package files are read and written with.
pub trait Disk: Sync {
    /// The path without links, absolute. Once per run, not per file.
    fn resolve(&self, path: &Path) -> io::Result<PathBuf>;
    /// What stands there; a link is a link.
    fn meta(&self, path: &Path) -> io::Result<Meta>;
    /// The names in a directory, in any order.
    fn list(&self, dir: &Path) -> io::Result<Vec<Entry>>;
    /// Where a link leads, as written.
    fn read_link(&self, path: &Path) -> io::Result<PathBuf>;
    /// The bytes of a plain file; `FileTooLarge` above `limit`, before reading.
    fn read(&self, path: &Path, limit: u64) -> io::Result<Vec<u8>>;
    /// Fails when this user may not write there, or nobody may by its permission bits.
    fn check_writable(&self, path: &Path) -> io::Result<()>;
    /// Whom we run as.
    fn user(&self) -> u32;

    /// Makes one directory.
    fn create_dir(&self, path: &Path) -> io::Result<()>;
    /// Writes a file that must not exist.
    fn write_new(&self, path: &Path, bytes: &[u8], access: Access) -> io::Result<()>;
    /// Renames a file, over another where there is one.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Removes a file or link.
    fn remove_file(&self, path: &Path) -> io::Result<()>;
    /// Removes an empty directory.
    fn remove_dir(&self, path: &Path) -> io::Result<()>;

    /// Makes a file's bytes durable.
    fn sync_file(&self, path: &Path) -> io::Result<()>;
    /// Makes the bytes of many files durable; at fault is the first that cannot be. A disk may do it all at
    /// once.
    fn sync_files<'p>(&self, paths: &'p [PathBuf]) -> Result<(), (&'p Path, io::Error)> {
        let mut paths = paths.iter().map(PathBuf::as_path);
        paths.try_for_each(|path| self.sync_file(path).map_err(|e| (path, e)))
    }
    /// Makes the names in a directory durable.
    fn sync_dir(&self, path: &Path) -> io::Result<()>;
    /// Makes everything on the file system of this directory durable. `Unsupported` where the
    /// system has no such call; the caller then syncs one by one.
    fn sync_filesystem(&self, dir: &Path) -> io::Result<()>;
}

/// The names that the writer keeps for itself; packages may not use them.
pub(crate) const OURS: &str = ".moor-";

/// `Ok(None)` where nothing stands.
pub(crate) fn absent_is_none<T>(result: io::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(e) if is_absent(&e) => Ok(None),
        Err(e) => Err(e),
    }
}

/// `NotADirectory` is absence too: `a/b` cannot exist where `a` is a file.
pub(crate) fn is_absent(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::NotFound | io::ErrorKind::NotADirectory
    )
}
