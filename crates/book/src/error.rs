//! What can go wrong in a store. A refusal (no free address) is not an error, see `mooring_ipam::Refusal`.

use mooring_ipam::TxnId;

/// What can go wrong in a store.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Another process has the book open.
    #[error("the book {path} is in use{}", holder.as_ref().map(|h| format!(" by {h}")).unwrap_or_default())]
    Busy {
        /// The book.
        path: String,
        /// Who holds it, where that is known: `pid 123 (moor render …)`.
        holder: Option<String>,
    },
    /// Another process changed the book between reading it and opening it for writing. What was decided may not hold
    /// any more: decide again.
    #[error("overtaken: another run changed the book {path} while this one decided")]
    Overtaken {
        /// The book.
        path: String,
    },
    /// The book cannot be opened, read or written.
    #[error("cannot use the book {path}: {remedy}")]
    Unusable {
        /// The book.
        path: String,
        /// What to do about it.
        remedy: &'static str,
        /// Why.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// A later version of the program wrote the book.
    #[error(
        "the book {path} was written by a newer version: it has schema {schema}, this one reads {reads}"
    )]
    Newer {
        /// The book.
        path: String,
        /// What it has.
        schema: u64,
        /// What this version reads.
        reads: u64,
    },
    /// The API server does not answer, or answers that it cannot.
    #[error("cannot {doing} at {path}")]
    Unreachable {
        /// The book: the API server.
        path: String,
        /// What was tried.
        doing: String,
        /// Why not.
        #[source]
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// This process may not write any more: another one leads.
    #[error("nothing is written to {path}: this process does not lead any more")]
    Fenced {
        /// The book: the API server.
        path: String,
    },
    /// A change was planned from a book that is not so any more.
    #[error("{0} is not what it was when the change was planned; nothing was changed")]
    Amended(String),
    /// A transaction of this process is being made: reserve or drop it first.
    #[error("transaction {} is still being made", .0.0)]
    InTransaction(TxnId),
    /// The transaction is not open (any more).
    #[error("transaction {} is not open: it was committed, aborted, or it expired", .0.0)]
    NotOpen(TxnId),
}

impl Error {
    /// A short word for findings, conditions and metric labels.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Busy { .. } | Self::Overtaken { .. } => "BookBusy",
            Self::Unreachable { .. } | Self::Fenced { .. } => "BookBusy",
            Self::Unusable { .. } => "BookUnreadable",
            Self::Newer { .. } => "BookNewer",
            Self::Amended(_) => "BookBusy",
            Self::InTransaction(_) => "InTransaction",
            Self::NotOpen(_) => "TransactionNotOpen",
        }
    }

    /// Whether trying again later may help without anybody changing anything.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Busy { .. }
                | Self::Overtaken { .. }
                | Self::Unreachable { .. }
                | Self::Fenced { .. }
        )
    }
}
