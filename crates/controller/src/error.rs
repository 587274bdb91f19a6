//! What can go wrong in a reconciler, beside findings: the failed act with its cause, and what to do about it.
//!
//! Findings are for the person and end on the object; an error is for the program and ends in the log, a metric label
//! and a retry. Easy to get wrong: the label is [`Error::reason`], never a text with names in it.

use mooring_api::Finding;

/// A failed act of a reconciler.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Error {
    /// A request to the API server.
    #[error("cannot {act}")]
    Api {
        /// What was tried, as a verb and its object: `read the pools`.
        act: &'static str,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// A kind that we may not read.
    #[error(
        "the controller may not list and watch {kind} of {api_version} ({said}). Name it in packages.injectedKinds of the \
         chart, or bind a role that allows it to the controller's ServiceAccount"
    )]
    Unreadable {
        /// Which.
        kind: String,
        /// Of which version.
        api_version: String,
        /// What the server says.
        said: String,
    },
    /// The address book.
    #[error("the address book failed")]
    Book(#[from] mooring_book::Error),
    /// The engine that renders packages.
    #[error("the package engine failed")]
    Package(#[from] mooring_package::Error),
    /// An act on a package in Git.
    #[error("the act on Git failed")]
    Git(#[from] mooring_package::revision::Error),
    /// We are not the leader any more, so we do not act.
    #[error("another replica leads now")]
    NotLeader,
    /// Something that a watch will wake us for.
    #[error("waiting: {0}")]
    Waiting(Box<Finding>),
    /// Anything else that may go away by itself.
    #[error("{0}")]
    Other(String),
}

/// What to do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// Try again, later and later.
    Transient,
    /// A watch will wake us; a slow retry is only a net.
    Waiting,
}

impl Error {
    /// Names a failed request.
    pub(crate) fn api(act: &'static str) -> impl FnOnce(kube::Error) -> Self {
        move |source| Self::Api {
            act,
            source: Box::new(source),
        }
    }

    /// A short word for metric labels and events.
    pub(crate) fn reason(&self) -> &'static str {
        match self {
            Self::Api { source, .. } => match source.as_ref() {
                kube::Error::Api(status) if status.code == 409 => "Conflict",
                kube::Error::Api(status) if status.code == 403 => "Forbidden",
                kube::Error::Api(_) => "ApiRefused",
                _ => "ApiUnreachable",
            },
            Self::Unreadable { .. } => "Forbidden",
            Self::Book(_) => "BookFailed",
            Self::Package(_) => "PackageFailed",
            Self::Git(error) => error.reason(),
            Self::NotLeader => "NotLeader",
            Self::Waiting(_) => "Waiting",
            Self::Other(_) => "Failed",
        }
    }

    /// Whether somebody else pushed first, so that the same is to be decided again on what they left.
    pub(crate) fn is_overtaken(&self) -> bool {
        use mooring_package::revision::Error as Git;
        let Self::Git(error) = self else {
            return false;
        };
        matches!(
            error,
            Git::DraftMoved { .. }
                | Git::Outdated { .. }
                | Git::Absent { .. }
                | Git::Exists { .. }
                | Git::Wrong { .. }
                | Git::Git(mooring_package::git::Error::Moved { .. })
        )
    }

    /// What to do about it.
    pub(crate) fn trouble(&self) -> Trouble {
        match self {
            Self::Waiting(_) => Trouble::Waiting,
            _ => Trouble::Transient,
        }
    }
}

/// The whole chain in one line, for the log.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        next = cause.source();
    }
    text
}
