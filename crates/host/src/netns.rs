//! Network namespaces: the only place that enters or makes one.
//!
//! Called by everything that works in a pod's namespace. A namespace belongs to a thread, so work inside another one runs on
//! a thread made for it, which ends with the work. A program that does one thing and ends ([`visit_in_person`]) saves that: its own
//! thread goes, and is back before the caller sees the result, also after a panic. A socket keeps the namespace it was opened
//! in, hence [`Netns::netlink`] costs one such visit and later calls none.
//!
//! Easy to get wrong: a path under `/run/netns` whose namespace is gone is still a file, an empty one. [`Netns::open`]
//! refuses it, and [`NetnsError::is_gone`] tells it apart from trouble.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::sched::CloneFlags;
use nix::sys::statfs::{FsType, fstatfs};

use crate::{Netlink, NetlinkError};

/// The file system of namespace files (`NSFS_MAGIC`).
const NSFS: FsType = FsType(0x6e73_6673);
/// The namespace of the calling thread. Not `/proc/self`: that is the main thread's.
const CURRENT: &str = "/proc/thread-self/ns/net";

/// A network namespace, held open: it lives at least as long as this value.
#[derive(Debug)]
pub struct Netns {
    file: File,
    path: PathBuf,
    id: NetnsId,
}

/// Which namespace it is. Two paths that lead to one namespace have one id; an id is used again after its namespace
/// ended.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct NetnsId {
    /// The device of nsfs.
    pub dev: u64,
    /// The inode: what `ip netns identify` and `lsns` show.
    pub inode: u64,
}

impl NetnsId {
    /// Of a namespace file.
    fn of(metadata: &Metadata) -> Self {
        Self {
            dev: metadata.dev(),
            inode: metadata.ino(),
        }
    }
}

/// A namespace could not be opened, entered or made.
#[derive(Debug, thiserror::Error)]
pub enum NetnsError {
    /// The path could not be opened.
    #[error("cannot open the network namespace {path}")]
    Open {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The path is something else, such as the empty file that stays behind a namespace.
    #[error("{path} is no network namespace: it is {found}")]
    NotNetns {
        /// The path.
        path: PathBuf,
        /// What it is.
        found: String,
    },
    /// The kernel did not let us in.
    #[error("cannot enter the network namespace {path}")]
    Enter {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The kernel did not make one.
    #[error("cannot make a network namespace")]
    Make(#[source] io::Error),
    /// No thread could be started.
    #[error("cannot start a thread for the network namespace {path}")]
    Thread {
        /// The path.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No netlink socket could be opened inside.
    #[error("cannot open netlink in the network namespace {path}")]
    Netlink {
        /// The path.
        path: PathBuf,
        /// Why.
        source: NetlinkError,
    },
}

impl NetnsError {
    /// Whether the namespace is simply no longer there: nothing at the path, or what a namespace leaves behind.
    pub fn is_gone(&self) -> bool {
        match self {
            // ENXIO and ESRCH: `/proc/<pid>/ns/net` of a process that is ending.
            Self::Open { source, .. } => {
                source.kind() == io::ErrorKind::NotFound
                    || source.kind() == io::ErrorKind::NotADirectory
                    || matches!(
                        source.raw_os_error(),
                        Some(nix::libc::ENXIO | nix::libc::ESRCH)
                    )
            }
            Self::NotNetns { .. } => true,
            _ => false,
        }
    }
}

impl Netns {
    /// Opens the namespace at a path: `/run/netns/<name>`, `/proc/<pid>/ns/net`, or any bind mount of one.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, NetnsError> {
        let path = path.as_ref();
        let fail = |source| NetnsError::Open {
            path: path.to_owned(),
            source,
        };
        // A pipe at the path would make a plain open wait for its other end.
        let file = OpenOptions::new()
            .read(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(path)
            .map_err(fail)?;
        let is_nsfs = fstatfs(&file)
            .map_err(|e| fail(e.into()))?
            .filesystem_type()
            == NSFS;
        let metadata = file.metadata().map_err(fail)?;
        let found = if is_nsfs {
            let kind = namespace_kind(&file).map_err(|e| fail(e.into()))?;
            (kind != CloneFlags::CLONE_NEWNET.bits())
                .then(|| "a namespace of another kind".to_owned())
        } else if metadata.is_file() && metadata.len() == 0 {
            Some("an empty file, the remains of one".to_owned())
        } else if metadata.is_dir() {
            Some("a directory".to_owned())
        } else {
            Some("a file of another kind".to_owned())
        };
        match found {
            Some(found) => Err(NetnsError::NotNetns {
                path: path.to_owned(),
                found,
            }),
            None => Ok(Self {
                file,
                path: path.to_owned(),
                id: NetnsId::of(&metadata),
            }),
        }
    }

    /// The namespace of the calling thread.
    pub fn current() -> Result<Self, NetnsError> {
        Self::open(CURRENT)
    }

    /// A new and empty namespace that ends with this value (and with what was put into it).
    pub fn temporary() -> Result<Self, NetnsError> {
        let made = std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                #[expect(
                    clippy::disallowed_methods,
                    reason = "this module is where threads change their namespace; this one has just been made"
                )]
                nix::sched::unshare(CloneFlags::CLONE_NEWNET)
                    .map_err(|e| NetnsError::Make(e.into()))?;
                Self::current()
            });
            match thread.map_err(NetnsError::Make)?.join() {
                Ok(made) => made,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })?;
        Ok(Self {
            path: PathBuf::from(format!("net:[{}]", made.id.inode)),
            ..made
        })
    }

    /// Which namespace it is.
    pub fn id(&self) -> NetnsId {
        self.id
    }

    /// The path it was opened at.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the calling thread is in it.
    pub fn is_current(&self) -> bool {
        std::fs::metadata(CURRENT).is_ok_and(|current| self.id == NetnsId::of(&current))
    }

    /// Runs `f` inside it. A panic of `f` goes on in the caller.
    pub fn run<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
        if self.is_current() {
            return Ok(f());
        }
        if IN_PERSON.load(Ordering::Relaxed)
            && let Some(home) = Home::of_this_thread()
        {
            return self.run_in_person(&home, f);
        }
        self.run_apart(f)
    }

    /// On the calling thread, which goes back when `home` does.
    fn run_in_person<T>(&self, _home: &Home, f: impl FnOnce() -> T) -> Result<T, NetnsError> {
        self.enter()?;
        Ok(f())
    }

    fn enter(&self) -> Result<(), NetnsError> {
        enter(&self.file).map_err(|e| NetnsError::Enter {
            path: self.path.clone(),
            source: e.into(),
        })
    }

    /// On a thread of its own, which ends there.
    fn run_apart<T: Send>(&self, f: impl FnOnce() -> T + Send) -> Result<T, NetnsError> {
        std::thread::scope(|scope| {
            let thread = std::thread::Builder::new().spawn_scoped(scope, || {
                self.enter()?;
                Ok(f())
            });
            let thread = thread.map_err(|source| NetnsError::Thread {
                path: self.path.clone(),
                source,
            })?;
            match thread.join() {
                Ok(result) => result,
                Err(panic) => std::panic::resume_unwind(panic),
            }
        })
    }

    /// A netlink socket that stays in it.
    pub fn netlink(&self) -> Result<Netlink, NetnsError> {
        self.run(Netlink::open)?
            .map_err(|source| NetnsError::Netlink {
                path: self.path.clone(),
                source,
            })
    }
}

/// Whether the calling thread goes itself.
static IN_PERSON: AtomicBool = AtomicBool::new(false);

/// From now on the threads of this process visit namespaces themselves. For a program that does one thing and ends: nobody else
/// of it can meet a thread that is away, and when many of them start at once, every thread less is a turn less to wait for.
pub fn visit_in_person() {
    IN_PERSON.store(true, Ordering::Relaxed);
}

/// The way back of a thread that goes elsewhere.
struct Home {
    file: File,
}

impl Home {
    /// None where the thread would not be let in again: its namespace belongs to users above its own.
    fn of_this_thread() -> Option<Self> {
        let file = File::open(CURRENT).ok()?;
        // It is there; what is asked is whether it may come.
        enter(&file).ok()?;
        Some(Self { file })
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        if enter(&self.file).is_err() {
            // A thread that stays would take the pod's links for the node's. All state survives a kill, so a kill it is.
            std::process::abort();
        }
    }
}

fn enter(file: &File) -> nix::Result<()> {
    #[expect(
        clippy::disallowed_methods,
        reason = "this module is where threads change their namespace"
    )]
    nix::sched::setns(file, CloneFlags::CLONE_NEWNET)
}

/// The kind of a namespace file, as the flag that makes one. A path does not tell: a bind mount shows its own.
fn namespace_kind(file: &File) -> nix::Result<i32> {
    // NS_GET_NSTYPE of linux/nsfs.h.
    nix::ioctl_none!(get_kind, 0xb7, 3);
    // SAFETY: the descriptor is open, and this request neither reads nor writes memory of ours.
    #[expect(unsafe_code, reason = "an ioctl without a wrapper")]
    unsafe {
        get_kind(file.as_raw_fd())
    }
}

impl AsFd for Netns {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use mooring_testkit::Sandbox;

    use super::*;

    #[test]
    fn a_thread_that_goes_itself_is_back_afterwards_also_by_a_panic() {
        let Some(sandbox) = Sandbox::new("work on the calling thread") else {
            return;
        };
        let before = Netns::current().unwrap().id();
        let pod = Netns::open(sandbox.netns("pod").path()).unwrap();
        let go = |f: fn() -> NetnsId| pod.run_in_person(&Home::of_this_thread().unwrap(), f);
        assert_eq!(go(|| Netns::current().unwrap().id()).unwrap(), pod.id());
        assert_eq!(Netns::current().unwrap().id(), before);
        let panicked = std::panic::catch_unwind(|| go(|| panic!("inside")));
        assert!(panicked.is_err(), "a panic goes on in the caller");
        assert_eq!(Netns::current().unwrap().id(), before);
    }

    #[test]
    fn a_thread_that_is_sent_leaves_the_caller_where_it_was() {
        let Some(sandbox) = Sandbox::new("work on a thread of its own") else {
            return;
        };
        let before = Netns::current().unwrap().id();
        let pod = Netns::open(sandbox.netns("pod").path()).unwrap();
        let inside = pod.run_apart(|| Netns::current().unwrap().id()).unwrap();
        assert_eq!(inside, pod.id());
        assert_eq!(Netns::current().unwrap().id(), before);
        let panicked = std::panic::catch_unwind(|| pod.run_apart(|| panic!("inside")));
        assert!(panicked.is_err(), "a panic goes on in the caller");
    }
}
