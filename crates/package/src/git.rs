//! Git repositories, through the user's `git` program: a bare mirror per URL, objects read and made in it, refs moved by one push.
//!
//! ```text
//!  Repository ─ Git::open ─► Mirror (fetched, refs as of now)
//!                              ├ read: ls-tree, cat-file ─► path → bytes
//!                              ├ commit: fast-import, no index and no work tree
//!                              └ push: one atomic push; what others moved meanwhile is Error::Moved
//! ```
//!
//! [`revision`](crate::revision) is the only caller that moves refs. Thousands of packages cost what one does: only the trees on the
//! way to a package are read and made anew.
//!
//! **Never a force.** A branch moves by an ordinary push, which a server refuses unless it is a fast-forward. A ref that is made or
//! deleted, and a draft that moves forward (an ordinary push would make it anew where somebody removed it), is guarded with `--force-with-lease=REF:EXPECTED`, where EXPECTED is the value that was read (nothing, for a new one):
//! a compare-and-swap that can create where nothing is and delete what was seen, and never overwrites anything.
//!
//! **Secrets.** A token reaches `git` in the environment of that one process, from where a credential helper hands it to the one host
//! it is for. It is in no argument, no URL, no file, no error.
//!
//! Easy to get wrong: the refs of a mirror are those of its last fetch, and another process may fetch again at any time. So
//! [`Mirror::refs`] is a copy that was taken under the lock, and everything is decided from that copy.

mod error;
mod mirror;
mod object;
mod push;
mod repository;
mod run;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use mooring_api::Time;

pub use error::Error;
pub use mirror::{Mirror, Ref};
pub use object::{Commit, Files, Oid, Put};
pub use push::Update;
pub use repository::{Credentials, Repository, Secret};

pub(crate) use repository::PLACE;

/// How long one call of `git` may take.
const TIMEOUT: Duration = Duration::from_mins(2);
/// How often an act is made again because somebody else pushed first. Beside a busy pusher on a slow machine most tries lose, and
/// waiting longer before one does not make it shorter; so there are many, and short pauses.
const TRIES: u32 = 40;

/// How long to wait before the next try, by the number of the last one. Randomness comes from outside.
pub type Pause = Arc<dyn Fn(u32) -> Duration + Send + Sync>;
/// Called between deciding and pushing, with the number of the try. For tests, which push something else there.
pub type BeforePush = Arc<dyn Fn(u32) + Send + Sync>;

/// How `git` is called.
#[derive(Clone)]
pub struct Git {
    /// Where mirrors are kept. Safe to share between processes; may be removed at any time that none runs.
    pub cache: PathBuf,
    /// Now: the time of commits.
    pub now: Time,
    /// The program.
    pub program: PathBuf,
    /// How long one call may take.
    pub timeout: Duration,
    /// Who commits: name and mail address.
    pub author: (String, String),
    /// How often an act is made again because somebody else pushed first.
    pub tries: u32,
    /// How long to wait before that.
    pub pause: Pause,
    /// For tests.
    pub before_push: Option<BeforePush>,
}

impl Git {
    /// The `git` in the path, with mirrors in this directory.
    pub fn new(cache: impl Into<PathBuf>, now: Time) -> Self {
        Self {
            cache: cache.into(),
            now,
            program: PathBuf::from("git"),
            timeout: TIMEOUT,
            author: ("Mooring".to_owned(), "moor@mooring.dev".to_owned()),
            tries: TRIES,
            pause: Arc::new(|nth| Duration::from_millis(50 << nth.min(3))),
            before_push: None,
        }
    }

    /// Commits as the person whom git's own configuration names, where it names one.
    #[must_use]
    pub fn as_user(mut self) -> Self {
        let ask = |key: &str| {
            let nowhere = Repository::new(".");
            let call = run::Call::new(&self, &nowhere, "config").args(["--get", key]);
            let said = call.remote().ask().ok().filter(|said| said.ok)?;
            let text = String::from_utf8_lossy(&said.out).trim().to_owned();
            (!text.is_empty()).then_some(text)
        };
        if let (Some(name), Some(mail)) = (ask("user.name"), ask("user.email")) {
            self.author = (name, mail);
        }
        self
    }

    /// The repository's mirror, fetched now.
    pub fn open(&self, repository: &Repository) -> Result<Mirror, Error> {
        Mirror::open(self, repository)
    }

    /// The repository's mirror as of its last fetch, whoever made it. It is fetched only where nothing is known.
    pub fn known(&self, repository: &Repository) -> Result<Mirror, Error> {
        Mirror::known(self, repository)
    }
}

impl fmt::Debug for Git {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Git")
            .field("cache", &self.cache)
            .field("program", &self.program)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
