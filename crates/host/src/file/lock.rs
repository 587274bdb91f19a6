//! A lock between processes: flock with a bound.
//!
//! The kernel releases it when the process ends, however it ends. Easy to get wrong: whoever removes a lock file takes it
//! from those who wait for it; [`Lock`] notices that and starts again. And a program that we started outlives our being
//! killed: what it still does must be under the lock too, see [`Lock::lend`].

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use nix::fcntl::{FcntlArg, FdFlag, fcntl};

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub struct Lock {
    file: File,
}

/// A lock was not had.
#[derive(Debug, thiserror::Error)]
pub enum LockError {
    /// Somebody else held it for too long.
    #[error("another process holds the lock {path} for more than {} s", bound.as_secs_f32())]
    Busy {
        /// The lock.
        path: PathBuf,
        /// How long we waited.
        bound: Duration,
    },
    /// The file could not be opened or locked.
    #[error("cannot take the lock {path}")]
    Io {
        /// The lock.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl Lock {
    /// Takes the lock at `path` alone, waiting at most `bound`. The file and its directory are made when absent.
    pub fn exclusive(path: impl AsRef<Path>, bound: Duration) -> Result<Self, LockError> {
        let path = path.as_ref();
        let fail = |source| LockError::Io {
            path: path.to_owned(),
            source,
        };
        let end = Instant::now() + bound;
        loop {
            let file = open(path).map_err(fail)?;
            let file = match file.try_lock() {
                Ok(()) => file,
                Err(TryLockError::WouldBlock) => {
                    let left = end.saturating_duration_since(Instant::now());
                    let waited = wait(file, left).map_err(fail)?;
                    waited.ok_or_else(|| LockError::Busy {
                        path: path.to_owned(),
                        bound,
                    })?
                }
                Err(TryLockError::Error(e)) => return Err(fail(e)),
            };
            if is_still_there(&file, path).map_err(fail)? {
                return Ok(Self { file });
            }
        }
    }

    /// Does `work`, and every program that it starts holds the lock as well, until that program ends: should we be killed,
    /// nobody else has the lock before it has ended. Not for programs that may hang.
    pub fn lend<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        let set = |flags| fcntl(&self.file, FcntlArg::F_SETFD(flags)).map(drop);
        set(FdFlag::empty())?;
        let done = work();
        set(FdFlag::FD_CLOEXEC)?;
        Ok(done)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Said aloud: a program that it was lent to may be running still, with a copy of the descriptor.
        let _ = self.file.unlock();
    }
}

fn open(path: &Path) -> io::Result<File> {
    let attempt = || {
        OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .mode(0o600)
            .open(path)
    };
    match attempt() {
        Err(e) if e.kind() == io::ErrorKind::NotFound => {
            std::fs::create_dir_all(super::directory(path))?;
            attempt()
        }
        // A directory can be locked too, as the reference host-local does.
        Err(e) if e.kind() == io::ErrorKind::IsADirectory => File::open(path),
        opened => opened,
    }
}

/// Waits in a thread, because flock has no bound of its own. A thread that nobody waits for any more gives the lock back
/// as soon as it has it.
fn wait(file: File, bound: Duration) -> io::Result<Option<File>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    std::thread::Builder::new().spawn(move || {
        let locked = file.lock().map(|()| file);
        let _ = sender.send(locked);
    })?;
    match receiver.recv_timeout(bound) {
        Ok(locked) => locked.map(Some),
        Err(RecvTimeoutError::Timeout) => Ok(None),
        Err(RecvTimeoutError::Disconnected) => Err(io::Error::other("the waiting thread ended")),
    }
}

fn is_still_there(file: &File, path: &Path) -> io::Result<bool> {
    let ours = file.metadata()?;
    match std::fs::metadata(path) {
        Ok(there) => Ok(ours.dev() == there.dev() && ours.ino() == there.ino()),
        Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(e) => Err(e),
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_lock_that_was_lent_is_held_until_the_program_has_ended_but_not_against_ourselves() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let take = |bound| Lock::exclusive(&path, Duration::from_millis(bound));
        let cat = || {
            Command::new("cat")
                .stdin(Stdio::piped())
                .spawn()
                .expect("coreutils are there")
        };
        let mut lock = take(1000).unwrap();
        let mut alone = cat();
        let mut heir = lock.lend(cat).unwrap();
        // As a kill of ours would: the descriptor goes, and nobody says that the lock is free.
        let other = File::open("/dev/null").unwrap();
        drop(std::mem::replace(&mut lock.file, other));
        assert!(take(30).is_err(), "the program has it");
        drop(heir.stdin.take());
        heir.wait().unwrap();
        let lock = take(30_000).unwrap();
        // What is given back is free, whoever has a copy still.
        let mut heir = lock.lend(cat).unwrap();
        drop(lock);
        take(1000).unwrap();
        for child in [&mut alone, &mut heir] {
            drop(child.stdin.take());
            child.wait().unwrap();
        }
    }
}
