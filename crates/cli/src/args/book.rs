//! Raw arguments of the commands about addresses: `claim`, `who-has`, `book`.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::FormatArg;
use super::keeping::{BackupArgs, ExportArgs, ImportArgs, RestoreArgs};

/// Where the book is.
#[derive(Debug, clap::Args)]
pub(crate) struct BookArg {
    /// The address book [default: $MOOR_BOOK, else .moor/book.redb in the management directory, else the state directory]
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,
    /// How long to wait while another run has the book [default: 10]
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) wait: Option<u64>,
}

/// Where pools and clusters are.
#[derive(Debug, clap::Args)]
pub(crate) struct MgmtArg {
    /// The directory with pools and clusters [default: $MOOR_MGMT]
    #[arg(long, value_name = "DIR")]
    pub(crate) mgmt: Option<PathBuf>,
}

/// Take an address by hand, for a router, a VM or a host
///
/// What no package renders still needs an address that nobody else gets. The same name always gets the same address.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor claim leaf-1 --network vpc-control --mgmt mgmt\n  \
    moor claim leaf-1 --network vpc-control --address 10.1.2.30 --mgmt mgmt")]
pub(crate) struct ClaimArgs {
    /// Who takes it
    pub(crate) name: String,
    /// The network instance (NAME or NAMESPACE/NAME)
    #[arg(long, value_name = "INSTANCE")]
    pub(crate) network: String,
    /// IPv4 or IPv6 [default: that of --address, else ipv4]
    #[arg(long, value_enum)]
    pub(crate) family: Option<FamilyArg>,
    /// This address and no other
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<IpAddr>,
    /// The cluster it is in, if it is in one
    #[arg(long, value_name = "NAME", default_value = "")]
    pub(crate) cluster: String,
    /// The interface of the holder, where one holder has several
    #[arg(long, value_name = "NAME", default_value = "claim")]
    pub(crate) interface: String,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum FamilyArg {
    /// IPv4
    Ipv4,
    /// IPv6
    Ipv6,
}

/// Say who holds an address
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor who-has 10.1.2.20 --mgmt mgmt")]
pub(crate) struct WhoHasArgs {
    /// The address
    #[arg(value_name = "ADDRESS")]
    pub(crate) address: IpAddr,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// `moor book …`
#[derive(Debug, Subcommand)]
pub(crate) enum BookCommand {
    Backup(BackupArgs),
    Restore(RestoreArgs),
    Export(ExportArgs),
    Import(ImportArgs),
    Rebuild(RebuildArgs),
    Audit(AuditArgs),
}

/// Put the addresses of rendered packages back into a book that lost them
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor book rebuild deployed/ --book new.redb\n  \
    moor book rebuild deployed/ --mgmt mgmt --check     # exit code 3: the book misses something")]
pub(crate) struct RebuildArgs {
    /// Rendered packages, or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) sources: Vec<PathBuf>,
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

/// Show who took and freed what, newest first
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor book audit --limit 20 --mgmt mgmt\n  \
    moor book audit --address 10.1.2.20 --since 7d --mgmt mgmt")]
pub(crate) struct AuditArgs {
    /// Only what covers this address
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) address: Option<IpAddr>,
    /// Only of this holder: workload, owner or interface
    #[arg(long, value_name = "NAME")]
    pub(crate) holder: Option<String>,
    /// Only of this package, by its name or its id
    #[arg(long, value_name = "NAME|ID")]
    pub(crate) package: Option<String>,
    /// Only of this cluster
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Not before: a day (2027-01-31), a moment (RFC 3339), or how long ago (7d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) since: Option<String>,
    /// At most so many entries
    #[arg(long, value_name = "N", default_value_t = 50)]
    pub(crate) limit: usize,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
