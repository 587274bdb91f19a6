//! A bare copy of a repository in the cache: fetched under a lock, read without one.
//!
//! ```text
//!  <cache>/<16 hex of SHA-256 of the URL>.git    the mirror: refs as on the server, pruned
//!  <cache>/<16 hex …>.lock                       held while it is made and fetched
//! ```
//!
//! Easy to get wrong: a fetch that was killed leaves git's own lock files behind, and every later fetch would fail. Nothing but a fetch
//! writes refs here, and only one runs at a time, so whoever has our lock may remove those.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use mooring_api::Time;
use sha2::{Digest, Sha256};

use super::run::Call;
use super::{Error, Git, Oid, Repository};

/// Between two tries to get the lock.
const PAUSE: Duration = Duration::from_millis(20);

/// A branch or tag, as it was at the last fetch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ref {
    /// What a push must expect there: the commit, or the tag object of an annotated tag.
    pub object: Oid,
    /// The commit.
    pub commit: Oid,
    /// When it was made.
    pub at: Time,
    /// Its trailers, by key.
    pub trailers: BTreeMap<String, String>,
}

/// A repository as it was when it was fetched.
#[derive(Clone, Debug)]
pub struct Mirror {
    pub(super) git: Git,
    pub(super) repository: Repository,
    pub(super) dir: PathBuf,
    refs: BTreeMap<String, Ref>,
}

impl Mirror {
    pub(super) fn open(git: &Git, repository: &Repository) -> Result<Self, Error> {
        let mut mirror = Self::at(git, repository)?;
        mirror.fetch()?;
        Ok(mirror)
    }

    fn at(git: &Git, repository: &Repository) -> Result<Self, Error> {
        repository.check()?;
        let mut name = String::with_capacity(16);
        for byte in &Sha256::digest(repository.url.as_bytes())[..8] {
            let _ = write!(name, "{byte:02x}");
        }
        Ok(Self {
            git: git.clone(),
            repository: repository.clone(),
            dir: git.cache.join(format!("{name}.git")),
            refs: BTreeMap::new(),
        })
    }

    /// As of the last fetch, whoever made it; fetched where nothing is known.
    pub(super) fn known(git: &Git, repository: &Repository) -> Result<Self, Error> {
        let mut mirror = Self::at(git, repository)?;
        if mirror.dir.join("HEAD").exists() {
            let lock = mirror.lock()?;
            mirror.refs = mirror.list()?;
            drop(lock);
        }
        // A repository without anything is asked again: perhaps it was made and never fetched.
        if mirror.refs.is_empty() {
            mirror.fetch()?;
        }
        Ok(mirror)
    }

    /// Fetches again.
    pub fn fetch(&mut self) -> Result<(), Error> {
        let lock = self.lock()?;
        if !self.dir.join("HEAD").exists() {
            let dir = self.dir.display().to_string();
            let args = ["--bare", "--quiet", "--template=", dir.as_str()];
            self.call("init").args(args).run()?;
        }
        if let Err(error) = self.fetch_all() {
            if !self.remove_locks() {
                return Err(error);
            }
            self.fetch_all()?;
        }
        self.refs = self.list()?;
        drop(lock);
        Ok(())
    }

    /// Branches and tags by their full names.
    pub fn refs(&self) -> &BTreeMap<String, Ref> {
        &self.refs
    }

    /// The branch of this name.
    pub fn branch(&self, name: &str) -> Option<&Ref> {
        self.refs.get(&format!("refs/heads/{name}"))
    }

    /// The tag of this name.
    pub fn tag(&self, name: &str) -> Option<&Ref> {
        self.refs.get(&format!("refs/tags/{name}"))
    }

    /// The repository.
    pub fn repository(&self) -> &Repository {
        &self.repository
    }

    /// A call inside of the mirror.
    pub(super) fn call(&self, act: &'static str) -> Call<'_> {
        let call = Call::new(&self.git, &self.repository, act);
        if act == "init" {
            call
        } else {
            call.inside(&self.dir)
        }
    }

    fn fetch_all(&self) -> Result<(), Error> {
        let args = [
            "--quiet",
            "--prune",
            "--force",
            "--no-tags",
            "--no-write-fetch-head",
        ];
        self.call("fetch")
            .args(args)
            .args([
                "--no-recurse-submodules",
                "--",
                self.repository.url.as_str(),
            ])
            .args(["+refs/heads/*:refs/heads/*", "+refs/tags/*:refs/tags/*"])
            .remote()
            .run()
            .map(drop)
    }

    fn list(&self) -> Result<BTreeMap<String, Ref>, Error> {
        const FORMAT: &str = "%(refname)%00%(objectname)%00%(*objectname)%00%(committerdate:unix)%00\
                              %(*committerdate:unix)%00%(contents:trailers:only,unfold)%00%(*objecttype)%(objecttype)%00";
        let format = format!("--format={FORMAT}");
        let call = self.call("for-each-ref").limit(256 << 20);
        let answer = call
            .args([format.as_str(), "refs/heads", "refs/tags"])
            .run()?;
        let answer = String::from_utf8_lossy(&answer);
        let fields: Vec<&str> = answer.split('\0').collect();
        let mut refs = BTreeMap::new();
        for fields in fields.chunks_exact(7) {
            let [name, object, peeled, at, peeled_at, trailers, kind] = fields else {
                continue;
            };
            let is_commit = *kind == "commit" || *kind == "committag";
            let commit = if peeled.is_empty() { object } else { peeled };
            let at = if peeled_at.is_empty() { at } else { peeled_at };
            let (Some(object), Some(commit), true) =
                (Oid::parse(object), Oid::parse(commit), is_commit)
            else {
                continue;
            };
            let at = Time(at.parse().unwrap_or_default());
            let trailers = trailers.lines().filter_map(|line| line.split_once(": "));
            let trailers = trailers
                .map(|(key, value)| (key.to_owned(), value.trim().to_owned()))
                .collect();
            let known = Ref {
                object,
                commit,
                at,
                trailers,
            };
            refs.insert(name.trim_start().to_owned(), known);
        }
        Ok(refs)
    }

    fn lock(&self) -> Result<File, Error> {
        let path = self.dir.with_extension("lock");
        let disk = |act, source| Error::Disk {
            act,
            path: path.clone(),
            source,
        };
        fs::create_dir_all(&self.git.cache).map_err(|e| disk("make the directory of", e))?;
        let mut options = OpenOptions::new();
        let options = options.create(true).truncate(false).write(true);
        let file = options.open(&path).map_err(|e| disk("open", e))?;
        let deadline = Instant::now() + self.git.timeout;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                Err(TryLockError::WouldBlock) if Instant::now() < deadline => thread::sleep(PAUSE),
                Err(TryLockError::WouldBlock) => {
                    let url = self.repository.to_string();
                    return Err(Error::Busy { url, path });
                }
                Err(TryLockError::Error(e)) => return Err(disk("lock", e)),
            }
        }
    }

    /// Removes what a killed fetch left; whether there was anything.
    fn remove_locks(&self) -> bool {
        let mut any = false;
        for name in [
            "packed-refs.lock",
            "HEAD.lock",
            "config.lock",
            "shallow.lock",
        ] {
            any |= fs::remove_file(self.dir.join(name)).is_ok();
        }
        any | remove_below(&self.dir.join("refs")).unwrap_or_default()
    }
}

fn remove_below(dir: &Path) -> io::Result<bool> {
    let mut any = false;
    for entry in fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            any |= remove_below(&entry.path())?;
        } else if entry.path().extension().is_some_and(|e| e == "lock") {
            any |= fs::remove_file(entry.path()).is_ok();
        }
    }
    Ok(any)
}
