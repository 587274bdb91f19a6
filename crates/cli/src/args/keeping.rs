//! Raw arguments of the commands that carry a whole book: `book backup`, `restore`, `export`, `import`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{BookArg, FormatArg, MgmtArg};

/// Write the whole book as one file, to restore it later
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor book backup book-2027-01-31.redb --mgmt mgmt")]
pub(crate) struct BackupArgs {
    /// Where to; it must not be there yet
    #[arg(value_name = "FILE")]
    pub(crate) to: PathBuf,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
}

/// Replace the whole book by a backup
///
/// Shows who gains, loses or changes what, and asks. The book that was there is kept beside it, as BOOK.before-restore; to
/// restore that one undoes this.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor book restore book-2027-01-31.redb --mgmt mgmt --check   # exit code 3: something would change\n  \
    moor book restore book-2027-01-31.redb --mgmt mgmt --yes")]
pub(crate) struct RestoreArgs {
    /// A backup, or any other book
    #[arg(value_name = "FILE")]
    pub(crate) from: PathBuf,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Say what would change; write nothing
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Write the book as text: every lease, reservation, package and the trail, sorted
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor book export --mgmt mgmt\n  \
    moor book export -o json --out book.json --mgmt mgmt")]
pub(crate) struct ExportArgs {
    /// Where to [default: stdout]
    #[arg(long, value_name = "FILE", help = "Where to [default: stdout]")]
    pub(crate) out: Option<PathBuf>,
    /// Replace the file if it is there
    #[arg(long)]
    pub(crate) force: bool,
    /// As which text
    #[arg(short = 'o', long = "output", value_enum, default_value_t = TextFormat::Yaml, value_name = "FORMAT")]
    pub(crate) format: TextFormat,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
}

/// A form of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum TextFormat {
    /// YAML, to read
    Yaml,
    /// JSON, for programs
    Json,
}

/// Merge an export or another book into this one, or give a cluster another name
///
/// What both have is skipped, what is new is added, and where they disagree both holders are named and nothing is written,
/// unless --keep decides. With --rename-cluster and without FILE, the book's own cluster is renamed, and every address stays.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor book import other.redb --mgmt mgmt --check\n  \
    moor book import other.yaml --keep ours --mgmt mgmt\n  \
    moor book import --rename-cluster edge=edge-west --mgmt mgmt")]
pub(crate) struct ImportArgs {
    /// What `moor book export` wrote, a backup, or another book
    #[arg(value_name = "FILE", required_unless_present = "rename_cluster")]
    pub(crate) from: Option<PathBuf>,
    /// Whom to believe where the two disagree
    #[arg(long, value_enum, value_name = "SIDE", requires = "from")]
    pub(crate) keep: Option<KeepArg>,
    /// Read what is said of cluster OLD as said of NEW
    #[arg(long, value_name = "OLD=NEW")]
    pub(crate) rename_cluster: Option<String>,
    /// Say what would change; write nothing
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Which of two books is believed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum KeepArg {
    /// The book that is merged into
    Ours,
    /// The one that comes
    Theirs,
}
