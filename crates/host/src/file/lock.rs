//! A lock between processes: flock with a bound.
//!
//! The kernel releases it when the process ends, however it ends. Easy to get wrong: whoever removes a lock file takes it
//! from those who wait for it; [`Lock`] notices that and starts again.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

/// A lock that is held until this value is dropped.
#[derive(Debug)]
pub struct Lock {
    _file: File,
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
                return Ok(Self { _file: file });
            }
        }
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
