//! What can go wrong with `git`, and which of it goes away by itself.

use std::path::PathBuf;

/// Why something with a repository did not work. Texts hold no secrets.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// There is no such program.
    #[error("there is no program {}", program.display())]
    NoGit {
        /// As it was called.
        program: PathBuf,
    },
    /// The repository cannot be named so.
    #[error("the repository {url:?} cannot be used: {why}")]
    BadUrl {
        /// As given, without what may be a secret.
        url: String,
        /// Why.
        why: &'static str,
    },
    /// The server does not let us in.
    #[error("{url} does not accept the credentials: {said}")]
    Denied {
        /// The repository.
        url: String,
        /// What git said.
        said: String,
    },
    /// The server, or the repository, is not there.
    #[error("{url} cannot be reached: {said}")]
    Unreachable {
        /// The repository.
        url: String,
        /// What git said.
        said: String,
    },
    /// It took too long, and was ended.
    #[error("git {act} on {url} took more than {seconds} s and was ended")]
    Timeout {
        /// The command.
        act: &'static str,
        /// The repository.
        url: String,
        /// How long it had.
        seconds: u64,
    },
    /// Somebody else pushed first. Nothing was changed.
    #[error("{} moved while this was decided: {said}", refs.join(", "))]
    Moved {
        /// The refs.
        refs: Vec<String>,
        /// What git said.
        said: String,
    },
    /// The server refuses the push: a hook, a protected branch. Nothing was changed.
    #[error("{url} refuses the push: {said}")]
    Refused {
        /// The repository.
        url: String,
        /// What it said.
        said: String,
    },
    /// git failed in another way.
    #[error("git {act} on {url} failed: {said}")]
    Failed {
        /// The command.
        act: &'static str,
        /// The repository.
        url: String,
        /// What git said.
        said: String,
    },
    /// There is more than what is read.
    #[error("{what} of {url} is larger than what is read")]
    TooLarge {
        /// The repository.
        url: String,
        /// What.
        what: String,
    },
    /// Another process uses the mirror for too long.
    #[error("another process fetches {url} into {}", path.display())]
    Busy {
        /// The repository.
        url: String,
        /// The lock.
        path: PathBuf,
    },
    /// The mirror's directory cannot be used.
    #[error("cannot {act} {}", path.display())]
    Disk {
        /// What was tried.
        act: &'static str,
        /// On what.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
}

impl Error {
    /// A short word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::NoGit { .. } => "GitMissing",
            Self::BadUrl { .. } => "GitUrlInvalid",
            Self::Denied { .. } => "GitDenied",
            Self::Unreachable { .. } => "GitUnreachable",
            Self::Timeout { .. } => "GitTimeout",
            Self::Moved { .. } => "GitMoved",
            Self::Refused { .. } => "GitRefused",
            Self::Failed { .. } | Self::Disk { .. } => "GitFailed",
            Self::TooLarge { .. } => "GitTooLarge",
            Self::Busy { .. } => "GitBusy",
        }
    }

    /// Whether the same may work later, with nothing edited.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unreachable { .. }
                | Self::Timeout { .. }
                | Self::Moved { .. }
                | Self::Failed { .. }
                | Self::Busy { .. }
                | Self::Disk { .. }
        )
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::NoGit { .. } => "install git, version 2.31 or later",
            Self::BadUrl { .. } => {
                "write https://HOST/PATH, ssh://USER@HOST/PATH, USER@HOST:PATH, or a path; give secrets with --token-file or --ssh-key"
            }
            Self::Denied { .. } => {
                "check the token or key, and that it may write to this repository"
            }
            Self::Unreachable { .. } => {
                "check the address and the network; nothing was changed, run it again"
            }
            Self::Timeout { .. } | Self::Busy { .. } => {
                "run it again; what was done already is found and not done twice"
            }
            Self::Moved { .. } => "run it again: others push to this repository right now",
            Self::Refused { .. } => {
                "ask who keeps the repository: a hook or a rule for the branch is in the way"
            }
            Self::Failed { .. } => "run it again; removing the cache directory is always safe",
            Self::TooLarge { .. } => "keep large files out of packages",
            Self::Disk { .. } => "check the permissions of the cache directory",
        }
    }
}
