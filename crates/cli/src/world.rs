//! Everything a run takes from outside of its arguments: the clock, the environment, randomness, the book.
//!
//! Read once, in `main`, and handed down; so every command is a function of its arguments and a [`World`].

use std::ffi::OsString;
use std::fs::File;
use std::io::{IsTerminal as _, Read as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::Context as _;
use mooring_api::Time;
use mooring_book::Options;

pub(crate) use mooring_book::{Access, LazyStore as Book};

use crate::args::{BookArg, MgmtArg};
use crate::output::Output;

/// The variable that names the management directory.
const MGMT_VARIABLE: &str = "MOOR_MGMT";
/// The variable that names the repository of packages.
const REPOSITORY_VARIABLE: &str = "MOOR_REPOSITORY";

/// What is outside.
#[derive(Debug)]
pub(crate) struct World {
    /// The time of the whole run.
    pub(crate) now: Time,
    /// How to call this program again: as it was called, so that what we suggest works before it is installed.
    pub(crate) program: String,
    /// An environment variable; an empty one counts as unset.
    variable: fn(&str) -> Option<OsString>,
}

/// How a run ends. The numbers are a promise to scripts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Exit {
    /// Done, or nothing to do.
    Done = 0,
    /// A finding of severity error, or a failure.
    Wrong = 1,
    /// The command line is wrong.
    Usage = 2,
    /// `--check` would change something.
    WouldChange = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A mistake on the command line that clap cannot see: exit code 2.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub(crate) struct Usage {
    message: String,
    /// What to type instead.
    pub(crate) help: String,
}

impl Usage {
    pub(crate) fn new(message: impl Into<String>, help: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            help: help.into(),
        }
    }
}

impl World {
    /// Reads the clock, once.
    pub(crate) fn observe() -> Self {
        #[expect(
            clippy::disallowed_methods,
            reason = "a program reads the clock once, and hands the time down"
        )]
        let now = SystemTime::now();
        let seconds = now.duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs());
        Self {
            now: Time(seconds),
            program: program(std::env::args_os().next().unwrap_or_default()),
            variable: |name| std::env::var_os(name).filter(|value| !value.is_empty()),
        }
    }

    /// `--mgmt`, else `$MOOR_MGMT`. Nothing is guessed from the directory's surroundings.
    pub(crate) fn mgmt(&self, arg: &MgmtArg) -> Result<Option<PathBuf>, Usage> {
        let given = arg.mgmt.clone();
        let set = || (self.variable)(MGMT_VARIABLE).map(PathBuf::from);
        let Some(dir) = given.or_else(set) else {
            return Ok(None);
        };
        if dir.is_dir() {
            return Ok(Some(dir));
        }
        Err(Usage::new(
            format!(
                "the management directory {} is not a directory",
                dir.display()
            ),
            "--mgmt DIR (or $MOOR_MGMT) names a directory with IPPrefix, NetworkInstance and WorkloadCluster files",
        ))
    }

    /// The same, for a command that cannot do without.
    pub(crate) fn needed_mgmt(&self, arg: &MgmtArg) -> Result<PathBuf, Usage> {
        self.mgmt(arg)?.ok_or_else(|| {
            Usage::new(
                "no management directory is given",
                "add --mgmt DIR, or set MOOR_MGMT, to say where pools and clusters are",
            )
        })
    }

    /// `$MOOR_REPOSITORY`.
    pub(crate) fn repository(&self) -> Option<String> {
        (self.variable)(REPOSITORY_VARIABLE)?.into_string().ok()
    }

    /// Where copies of Git repositories are kept.
    pub(crate) fn git_cache(&self) -> PathBuf {
        let cache = (self.variable)("XDG_CACHE_HOME").map(PathBuf::from);
        let home = || Some(PathBuf::from((self.variable)("HOME")?).join(".cache"));
        let cache = cache.or_else(home).unwrap_or_else(std::env::temp_dir);
        cache.join("moor").join("git")
    }

    /// The book that the arguments, the environment and the management directory point at. It is opened at first use.
    pub(crate) fn book(&self, arg: &BookArg, mgmt: Option<&Path>, access: Access) -> Book {
        Book::at(self.book_path(arg, mgmt), access, self.book_options(arg))
    }

    /// Where that book is.
    pub(crate) fn book_path(&self, arg: &BookArg, mgmt: Option<&Path>) -> PathBuf {
        mooring_book::locate(arg.book.as_deref(), self.variable, mgmt)
    }

    /// How that book is opened.
    #[expect(clippy::unused_self, reason = "the environment may come to say it too")]
    pub(crate) fn book_options(&self, arg: &BookArg) -> Options {
        let mut options = Options::default();
        if let Some(seconds) = arg.wait {
            options.wait = Duration::from_secs(seconds);
        }
        options
    }

    /// Whether somebody at a terminal says yes. Without one, `--yes` has to.
    #[expect(clippy::unused_self, reason = "who answers is of the world, too")]
    pub(crate) fn confirm(&self, question: &str, output: &mut Output) -> Result<bool, Usage> {
        if !std::io::stdin().is_terminal() {
            return Err(Usage::new(
                "nobody is there to ask, and nothing was changed",
                "add --yes to do it, or --check to only look",
            ));
        }
        output.ask(&format!("{question} [y/N] "));
        let mut answer = String::new();
        let read = std::io::stdin().read_line(&mut answer);
        let word = answer.trim().to_lowercase();
        Ok(read.is_ok() && ["y", "yes"].contains(&word.as_str()))
    }
}

/// A path as it was typed; a bare name was found by the shell, and so will `moor` be.
fn program(called: OsString) -> String {
    let typed = called.into_string().unwrap_or_default();
    let is_path = typed.contains('/') && !typed.contains(char::is_whitespace);
    if is_path { typed } else { "moor".to_owned() }
}

/// Random bytes to mint ids from.
pub(crate) fn entropy() -> anyhow::Result<[u8; 16]> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")
        .and_then(|mut source| source.read_exact(&mut bytes))
        .context("cannot read random bytes from /dev/urandom")?;
    Ok(bytes)
}
