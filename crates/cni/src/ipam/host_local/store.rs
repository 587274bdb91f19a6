//! Where host-local keeps addresses: a directory per network with a file per address, byte for byte as the reference plugin
//! writes it, so that a node can be switched over and back.
//!
//! ```text
//!  <dataDir>/<network>/10.1.2.7              "<container>\r\n<interface>"; older plugins: "<container>"
//!                      last_reserved_ip.0    "10.1.2.7": where the next search begins, for set 0
//!                      lock                  flock, held by whoever reads or writes the rest
//! ```
//!
//! A file appears whole: it is written without a name, synced, and linked to its name, which fails where the name is taken. So
//! no crash leaves an empty file, as the reference's does. What is in it does not depend on the address, so it is written and
//! synced before the lock is asked for: many pods at once wait for the disk side by side. The directory is not synced: a power
//! cut that loses the name also ended the container that had the address. Easy to get wrong: an *empty* file is a leak of a crashed plugin only
//! because we hold the lock, under which the reference writes too.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write as _};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use mooring_host::fault;
use mooring_host::file::{Draft, Lock, LockError};
use mooring_host::host_local::{Content, Owner, content, content_in};

use super::decide::Held;

/// How long to wait for others, each of whom needs some milliseconds.
const BOUND: Duration = Duration::from_secs(30);

/// What cannot be done with the store.
#[derive(Debug, thiserror::Error)]
pub(super) enum StoreError {
    #[error("cannot {verb} {}", path.display())]
    Io {
        verb: &'static str,
        path: PathBuf,
        source: io::Error,
    },
    #[error("cannot lock the addresses of this network")]
    Lock(#[from] LockError),
}

fn at<T>(verb: &'static str, path: &Path, outcome: io::Result<T>) -> Result<T, StoreError> {
    outcome.map_err(|source| StoreError::Io {
        verb,
        path: path.to_owned(),
        source,
    })
}

/// The addresses of one network, locked.
#[derive(Debug)]
pub(super) struct Store {
    dir: PathBuf,
    /// Files for addresses to come.
    drafts: Vec<Draft>,
    _lock: Lock,
}

impl Store {
    /// Locks a network's addresses, of which the owner will want that many; its directory is made where it is absent.
    pub(super) fn create(dir: &Path, owner: &Owner, count: usize) -> Result<Self, StoreError> {
        let mut builder = fs::DirBuilder::new();
        at("make", dir, builder.recursive(true).mode(0o755).create(dir))?;
        let drafts = (0..count).map(|_| draft(dir, owner));
        let drafts = drafts.collect::<Result<_, _>>()?;
        let locked = Self::lock(dir)?;
        Ok(Self { drafts, ..locked })
    }

    /// The same where there is something; None where the network never gave an address.
    pub(super) fn open(dir: &Path) -> Result<Option<Self>, StoreError> {
        if !dir.is_dir() {
            return Ok(None);
        }
        Self::lock(dir).map(Some)
    }

    fn lock(dir: &Path) -> Result<Self, StoreError> {
        Ok(Self {
            dir: dir.to_owned(),
            drafts: Vec::new(),
            _lock: Lock::exclusive(dir.join("lock"), BOUND)?,
        })
    }

    /// All that is held. Empty files are leaks of a plugin that was killed, and go now.
    pub(super) fn held(&self) -> Result<Held, StoreError> {
        let mut held = Held::new();
        let directory = at("read", &self.dir, File::open(&self.dir))?;
        for entry in at("read", &self.dir, fs::read_dir(&self.dir))? {
            let entry = at("read", &self.dir, entry)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            if is_draft(&name) {
                let _ = fs::remove_file(entry.path());
                continue;
            }
            let Ok(addr) = name.parse::<IpAddr>() else {
                continue;
            };
            match content_in(&directory, &entry.file_name()) {
                Content::Nothing => at(
                    "remove",
                    &entry.path(),
                    absent_is_fine(fs::remove_file(entry.path())),
                )?,
                Content::Owned(owner) => {
                    held.insert(addr, Some(owner));
                }
                Content::Unknown => {
                    held.insert(addr, None);
                }
                Content::Gone => {}
            }
        }
        Ok(held)
    }

    /// Whose one address is, without reading all the others.
    pub(super) fn owner(&self, addr: IpAddr) -> Option<Owner> {
        match content(&self.path(addr)) {
            Content::Owned(owner) => Some(owner),
            _ => None,
        }
    }

    /// Makes an address the owner's. False: it is taken, by somebody who does not ask for the lock.
    pub(super) fn reserve(
        &mut self,
        addr: IpAddr,
        owner: &Owner,
        set: usize,
    ) -> Result<bool, StoreError> {
        let path = self.path(addr);
        let draft = match self.drafts.pop() {
            Some(draft) => draft,
            None => draft(&self.dir, owner)?,
        };
        match draft.name(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(false),
            outcome => at("write", &path, outcome)?,
        }
        fault::point("address-reserved");
        let last = self.dir.join(format!("last_reserved_ip.{set}"));
        at("write", &last, remember(&last, addr))?;
        fault::point("address-remembered");
        Ok(true)
    }

    /// Frees an address. Absent is success.
    pub(super) fn release(&self, addr: IpAddr) -> Result<(), StoreError> {
        let path = self.path(addr);
        at("remove", &path, absent_is_fine(fs::remove_file(&path)))?;
        fault::point("address-released");
        Ok(())
    }

    /// The address of a set that was given last. A file that cannot be read costs the turn, no more.
    pub(super) fn last(&self, set: usize) -> Option<IpAddr> {
        let text = fs::read_to_string(self.dir.join(format!("last_reserved_ip.{set}"))).ok()?;
        text.trim().parse().ok()
    }

    fn path(&self, addr: IpAddr) -> PathBuf {
        self.dir.join(addr.to_string())
    }
}

/// A file that says whose an address is, before it is known which.
fn draft(dir: &Path, owner: &Owner) -> Result<Draft, StoreError> {
    let ifname = owner.ifname.as_deref().unwrap_or_default();
    let text = format!("{}\r\n{ifname}", owner.container);
    at("write to", dir, Draft::write(dir, text.as_bytes(), 0o600))
}

/// What [`Draft`] names its files where it needs names; the reference passes over them.
fn is_draft(name: &str) -> bool {
    name.strip_suffix(".tmp")
        .is_some_and(|name| name.starts_with('.'))
}

/// In place: it is only where a search begins, and half of it does no harm. Not emptied first: a file system that guards
/// against that being half done (ext4) takes the closing for a sync and goes to the disk, while everybody waits for the lock.
fn remember(path: &Path, addr: IpAddr) -> io::Result<()> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(false).mode(0o600);
    let mut file = options.open(path)?;
    let text = addr.to_string();
    let length = text.len() as u64;
    file.write_all(text.as_bytes())?;
    if file.metadata()?.len() != length {
        file.set_len(length)?;
    }
    Ok(())
}

fn absent_is_fine(outcome: io::Result<()>) -> io::Result<()> {
    match outcome {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
