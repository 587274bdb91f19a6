//! One writer per tree: locks that keep two renders from interleaving.
//!
//! ```text
//!  /srv         shared        a run over /srv would want this exclusively, and waits
//!  /srv/fleet   shared        (the walk up ends at a directory with .git)
//!  /srv/fleet/upf   EXCLUSIVE
//! ```
//!
//! The directories themselves are locked (`flock`), so nothing is left behind and a read-only tree
//! can be locked. Where a network file system refuses that, the file `.moor-lock` is locked instead.
//! The engine takes the lock before it reads and holds it until the book is committed.
//!
//! Easy to get wrong: a journal above the root belongs to a run over the whole tree above, so then
//! the lock is on that tree. And one run takes one lock: a second below the first waits for itself.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use mooring_api::{Code, Finding};

use super::{Disk as _, RealDisk, absent_is_none, is_absent};
use crate::journal;

/// How long a run waits for another one.
pub const LOCK_WAIT: Duration = Duration::from_secs(10);

/// Between two tries. Nobody can be woken by an unlock of `flock` with a bound on the wait.
const PAUSE: Duration = Duration::from_millis(20);

/// The right to write below a directory, until dropped.
#[derive(Debug)]
pub struct TreeLock {
    root: PathBuf,
    held: Vec<File>,
    /// Directories that were not there, the deepest first; those that are still empty go again.
    made: Vec<PathBuf>,
}

impl TreeLock {
    /// Waits until nobody else writes below `root`, nor in a tree around it. Makes `root` where it is
    /// missing.
    pub fn take(root: &Path, wait: Duration) -> Result<Self, Box<Finding>> {
        let deadline = Instant::now() + wait;
        let mut made = Vec::new();
        loop {
            // In the loop: the run that made the directory may take it away while we wait for it.
            let tried = match make(root, &mut made) {
                Ok(()) => Self::try_take(root),
                Err(e) if is_absent(&e) => Ok(Err(Busy::unknown(root))),
                Err(e) => return Err(Box::new(uncreatable(root, &e))),
            };
            let busy = match tried {
                Ok(Ok(mut lock)) => {
                    lock.made = made;
                    return Ok(lock);
                }
                Ok(Err(busy)) => busy,
                Err(source) => return Err(Box::new(unlockable(root, &source))),
            };
            if Instant::now() >= deadline {
                return Err(Finding::error(
                    Code::PackageBusy,
                    format!(
                        "{} is being written by {}",
                        busy.dir.display(),
                        busy.holder.as_deref().unwrap_or("another process")
                    ),
                )
                .help("wait until it ends, or end it, and run again; nothing was written")
                .into());
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// The directory that is locked: the root, or the one above with an interrupted run.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// All locks or none: waiting with some in hand could wait for somebody who waits for us.
    fn try_take(root: &Path) -> io::Result<Result<Self, Busy>> {
        let wanted = fs::canonicalize(root)?;
        let root = journal::pending(&RealDisk, &wanted)?.unwrap_or_else(|| wanted.clone());
        let mut held = Vec::new();
        for dir in journal::around(&RealDisk, &root) {
            if dir == root {
                continue;
            }
            // A directory above that we cannot open, nobody of ours can render.
            let Ok(file) = File::open(&dir) else { continue };
            match file.try_lock_shared() {
                Ok(()) => held.push(file),
                Err(TryLockError::WouldBlock) => return Ok(Err(Busy::at(dir, &file))),
                Err(TryLockError::Error(_)) => {}
            }
        }
        let mut file = File::open(&root)?;
        let dir = file.metadata()?;
        let tried = match file.try_lock() {
            Err(TryLockError::Error(_)) => {
                file = OpenOptions::new()
                    .create(true)
                    .truncate(false)
                    .write(true)
                    .open(root.join(".moor-lock"))?;
                file.try_lock()
            }
            tried => tried,
        };
        match tried {
            Ok(()) => held.push(file),
            Err(TryLockError::WouldBlock) => return Ok(Err(Busy::at(root, &file))),
            Err(TryLockError::Error(e)) => return Err(e),
        }
        // While we took it, a run above may have come and been interrupted, or the directory may have
        // been removed by the run that made it.
        let moved = journal::pending(&RealDisk, &root)?.is_some_and(|above| above != root);
        let gone = fs::metadata(&root).map_or(true, |now| !same_file(&now, &dir));
        if moved || gone {
            return Ok(Err(Busy::unknown(&root)));
        }
        let made = Vec::new();
        Ok(Ok(Self { root, held, made }))
    }
}

impl Drop for TreeLock {
    fn drop(&mut self) {
        for dir in &self.made {
            // Fails when it is not empty, which is what we want.
            if fs::remove_dir(dir).is_err() {
                break;
            }
        }
        self.held.clear();
    }
}

struct Busy {
    dir: PathBuf,
    holder: Option<String>,
}

impl Busy {
    fn at(dir: PathBuf, file: &File) -> Self {
        let holder = holder(file);
        Self { dir, holder }
    }

    fn unknown(dir: &Path) -> Self {
        let (dir, holder) = (dir.to_owned(), None);
        Self { dir, holder }
    }
}

fn same_file(a: &fs::Metadata, b: &fs::Metadata) -> bool {
    (a.dev(), a.ino()) == (b.dev(), b.ino())
}

/// Makes the directory and those above it; notes what was not there.
fn make(root: &Path, made: &mut Vec<PathBuf>) -> io::Result<()> {
    let above = root.ancestors().filter(|dir| !dir.as_os_str().is_empty());
    let missing: Vec<PathBuf> = above
        .take_while(|dir| absent_is_none(RealDisk.meta(dir)).is_ok_and(|meta| meta.is_none()))
        .map(Path::to_owned)
        .collect();
    journal::ensure_dir(&RealDisk, root)?;
    if !missing.is_empty() {
        *made = missing;
    }
    Ok(())
}

fn uncreatable(root: &Path, source: &io::Error) -> Finding {
    let text = format!("cannot create the directory {}: {source}", root.display());
    Finding::error(Code::FileUnwritable, text)
        .help("make the directory above it writable, or choose another place")
}

fn unlockable(root: &Path, source: &io::Error) -> Finding {
    let code = if source.kind() == io::ErrorKind::NotFound {
        Code::PackageMissing
    } else {
        Code::FileUnreadable
    };
    Finding::error(code, format!("cannot lock {}: {source}", root.display()))
        .help("check that the directory exists and that you may read it")
}

/// Who holds a lock on this file, from the kernel's list. `None` where it cannot be told: another
/// system, another process namespace.
fn holder(file: &File) -> Option<String> {
    let meta = file.metadata().ok()?;
    let (dev, ino) = (meta.dev(), meta.ino());
    let wanted = format!(
        "{:02x}:{:02x}:{ino}",
        rustix::fs::major(dev),
        rustix::fs::minor(dev)
    );
    let locks = fs::read_to_string("/proc/locks").ok()?;
    let pid = locks.lines().find_map(|line| {
        let words: Vec<_> = line.split_whitespace().collect();
        let at = words.iter().position(|w| *w == wanted)?;
        // `1: FLOCK ADVISORY WRITE pid device:inode`; a waiter has `->` after its number.
        (words[1] == "FLOCK").then(|| words[at - 1].parse::<u32>().ok())?
    })?;
    let name = fs::read_to_string(format!("/proc/{pid}/comm")).ok()?;
    Some(format!("{} (process {pid})", name.trim()))
}

#[cfg(test)]
mod tests;
