//! One whole file in place of another, so that a crash leaves the old one or the new one.
//!
//! ```text
//!  write beside it ─► sync ─► (keep the previous under another name ─► sync dir) ─► rename ─► sync dir
//! ```
//!
//! Backups and restores are written with this; a book that is in use changes inside of itself instead. [`Disk`] exists so
//! that a test can record every step, lose what was not synced, and look at what is left. Easy to get wrong: a file's bytes
//! and its name are synced by different calls, and a name can reach the disk long before the bytes.

use std::ffi::OsString;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{MetadataExt as _, fchown};
use std::path::{Path, PathBuf};

/// What it takes to put a file in place.
pub trait Disk {
    /// Whether something stands there.
    fn exists(&self, path: &Path) -> io::Result<bool>;
    /// A new file with these bytes; one that is there already is an error. Who may use it, and whose it is, is as for
    /// `like` where that is there.
    fn create(&self, path: &Path, bytes: &[u8], like: &Path) -> io::Result<()>;
    /// Makes a file's bytes durable.
    fn sync(&self, path: &Path) -> io::Result<()>;
    /// A second name for a file; one that is there already is an error.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// Another name for a file, in place of what had it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    /// A name goes; absent is success.
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes the names in a directory durable.
    fn sync_dir(&self, dir: &Path) -> io::Result<()>;
}

/// The disk of this machine.
#[derive(Clone, Copy, Debug, Default)]
pub struct RealDisk;

impl Disk for RealDisk {
    fn exists(&self, path: &Path) -> io::Result<bool> {
        path.try_exists()
    }

    fn create(&self, path: &Path, bytes: &[u8], like: &Path) -> io::Result<()> {
        let mut file = OpenOptions::new().write(true).create_new(true).open(path)?;
        if let Ok(known) = fs::metadata(like) {
            // Giving a file away needs a right that few have; they do not lose the book without it.
            let _ = fchown(&file, Some(known.uid()), Some(known.gid()));
            file.set_permissions(known.permissions())?;
        }
        file.write_all(bytes)
    }

    fn sync(&self, path: &Path) -> io::Result<()> {
        File::open(path)?.sync_all()
    }

    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::hard_link(from, to)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match fs::remove_file(path) {
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
            outcome => outcome,
        }
    }

    fn sync_dir(&self, dir: &Path) -> io::Result<()> {
        File::open(dir)?.sync_all()
    }
}

/// What becomes of a file that is there already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Previous<'a> {
    /// It stays, and nothing is written: [`io::ErrorKind::AlreadyExists`].
    Stays,
    /// It goes.
    Goes,
    /// It gets this name.
    Becomes(&'a Path),
}

/// Puts a file in place. When this fails or crashes, the target is what it was, or the new file as a whole.
pub(crate) fn put_in_place(
    disk: &dyn Disk,
    bytes: &[u8],
    target: &Path,
    previous: Previous<'_>,
) -> io::Result<()> {
    let fresh = beside(target, "new");
    let outcome = write(disk, bytes, &fresh, target, previous);
    if outcome.is_err() {
        // Best effort: what is left has a name that nobody reads.
        let _ = disk.remove(&fresh);
    }
    outcome
}

fn write(
    disk: &dyn Disk,
    bytes: &[u8],
    fresh: &Path,
    target: &Path,
    previous: Previous<'_>,
) -> io::Result<()> {
    let dir = directory(target);
    // A crash may have left one, and process ids come again: in a container often.
    disk.remove(fresh)?;
    disk.create(fresh, bytes, target)?;
    disk.sync(fresh)?;
    match previous {
        Previous::Stays => match disk.link(fresh, target) {
            Ok(()) => disk.remove(fresh)?,
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => return Err(e),
            // No links on this file system; who asked has looked whether there is one.
            Err(_) => disk.rename(fresh, target)?,
        },
        Previous::Becomes(kept) if disk.exists(target)? => {
            let second = beside(kept, "old");
            disk.remove(&second)?;
            disk.link(target, &second)?;
            disk.rename(&second, kept)?;
            // Where both were names of one file already, a rename leaves both.
            disk.remove(&second)?;
            disk.sync_dir(dir)?;
            disk.rename(fresh, target)?;
        }
        Previous::Goes | Previous::Becomes(_) => disk.rename(fresh, target)?,
    }
    disk.sync_dir(dir)
}

/// Writes a file of one's own as a whole: an export. One that is there already is [`io::ErrorKind::AlreadyExists`], unless
/// `force` says that it goes.
pub fn write_whole(disk: &dyn Disk, path: &Path, bytes: &[u8], force: bool) -> io::Result<()> {
    let previous = if force {
        Previous::Goes
    } else {
        Previous::Stays
    };
    put_in_place(disk, bytes, path, previous)
}

/// The directory that a file is in.
pub(crate) fn directory(path: &Path) -> &Path {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
    dir.unwrap_or(Path::new("."))
}

/// `.name.pid.what` in the same directory, so that a rename stays on one file system.
fn beside(path: &Path, what: &str) -> PathBuf {
    let mut name = OsString::from(".");
    name.push(path.file_name().unwrap_or_default());
    name.push(format!(".{}.{what}", std::process::id()));
    path.with_file_name(name)
}
