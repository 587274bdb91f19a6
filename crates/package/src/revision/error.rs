//! Why an act on a package was not done. Nothing was changed then.

use std::path::PathBuf;

use mooring_api::Finding;

use super::{Lifecycle, PackageName, Workspace};
use crate::git;

/// Why an act on a package was not done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Git failed.
    #[error(transparent)]
    Git(#[from] git::Error),
    /// The engine, the book or the disk failed.
    #[error(transparent)]
    Engine(#[from] crate::Error),
    /// What was asked for is not there.
    #[error("there is no {what} in {repository}")]
    Absent {
        /// What.
        what: String,
        /// Where.
        repository: String,
    },
    /// It is there already, with other content.
    #[error("{package} is there already: {what}")]
    Exists {
        /// Which.
        package: PackageName,
        /// As what.
        what: String,
    },
    /// The draft is not what the change was made from.
    #[error(
        "draft {workspace} of {package} has changed since: it is at {now}, and this was made from {from}"
    )]
    DraftMoved {
        /// Which.
        package: PackageName,
        /// Which draft.
        workspace: Workspace,
        /// Where it is.
        now: String,
        /// What the change was made from.
        from: String,
    },
    /// The package changed on the deployment branch since the draft began.
    #[error("{package} has changed on {branch} since draft {workspace} began")]
    Outdated {
        /// Which.
        package: PackageName,
        /// Which draft.
        workspace: Workspace,
        /// The deployment branch.
        branch: String,
    },
    /// It is in another part of its life.
    #[error("{workspace} of {package} is {is}")]
    Wrong {
        /// Which.
        package: PackageName,
        /// Which draft.
        workspace: Workspace,
        /// What it is.
        is: Lifecycle,
    },
    /// Its readiness gates are not met.
    #[error("{package} is not ready: {}", gates.join(", "))]
    NotReady {
        /// Which.
        package: PackageName,
        /// The gates that are not True.
        gates: Vec<String>,
    },
    /// A ref of another package or workspace has this name as a directory.
    #[error("{name} cannot be made, because {other} is there")]
    InTheWay {
        /// The branch or tag.
        name: String,
        /// What is there.
        other: String,
    },
    /// The directory has changes that would be lost, or was never pulled.
    #[error("{} has files of its own", dir.display())]
    DirectoryChanged {
        /// Which.
        dir: PathBuf,
    },
    /// The directory cannot be read or written.
    #[error("{}", .0.first().map(ToString::to_string).unwrap_or_default())]
    Directory(Vec<Finding>),
    /// The directory holds no package, or cannot be written as one.
    #[error("{what}")]
    NoPackage {
        /// Why.
        what: String,
    },
}

impl From<mooring_book::Error> for Error {
    fn from(error: mooring_book::Error) -> Self {
        Self::Engine(error.into())
    }
}

impl Error {
    /// A short word for conditions, events and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Git(error) => error.reason(),
            Self::Engine(crate::Error::Book(error)) => error.reason(),
            Self::Engine(_) => "DiskFailed",
            Self::Absent { .. } => "RevisionAbsent",
            Self::Exists { .. } => "RevisionExists",
            Self::DraftMoved { .. } => "DraftMoved",
            Self::Outdated { .. } => "DraftOutdated",
            Self::Wrong { .. } => "WrongLifecycle",
            Self::NotReady { .. } => "NotReady",
            Self::InTheWay { .. } => "RefInTheWay",
            Self::NoPackage { .. } => "PackageMissing",
            Self::DirectoryChanged { .. } => "DirectoryChanged",
            Self::Directory(_) => "DirectoryUnusable",
        }
    }

    /// Whether the same may work later, with nothing edited.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Git(error) => error.is_transient(),
            Self::Engine(_) => true,
            _ => false,
        }
    }

    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Git(error) => error.help(),
            Self::Engine(_) => "run it again: what was done is found and not done twice",
            Self::Absent { .. } => "`moor package list` shows what there is",
            Self::Exists { .. } => "choose another --workspace, or pull it, change it and push it",
            Self::DraftMoved { .. } => "pull the draft, bring your change in, and push again",
            Self::Outdated { .. } => {
                "compare with `moor package diff`, take over what was published meanwhile, and push with --onto-published"
            }
            Self::Wrong { .. } => {
                "a draft is proposed, a proposal is approved or rejected; push changes only drafts"
            }
            Self::NotReady { .. } => {
                "push or propose it with --mgmt, or let the controller specialise it; the Kptfile's conditions say what is missing"
            }
            Self::InTheWay { .. } => "choose another --workspace",
            Self::DirectoryChanged { .. } => "push your changes, or pull into another directory",
            Self::Directory(_) => "check the directory and its permissions",
            Self::NoPackage { .. } => "name a directory with a Kptfile",
        }
    }
}
