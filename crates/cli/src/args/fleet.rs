//! Raw arguments of `fleet`.

use std::path::PathBuf;

use super::{BookArg, DialectArg, FormatArg, MgmtArg};

/// Render the variants of many blueprints, one package per place, as one act
///
/// DIR holds PackageVariants and PackageVariantSets, with the Repository, WorkloadCluster and pool objects that they speak
/// of. Each variant clones its blueprint, changes the clone and renders it into OUT/REPOSITORY/PACKAGE. All of them are
/// written, or none. A package whose variant is gone goes too, with its addresses, unless its deletionPolicy is orphan.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor fleet fleet --out deployed --diff     # what would change; exit code 3: something would\n  \
    moor fleet fleet --out deployed --blueprints catalog")]
pub(crate) struct FleetArgs {
    /// Where the variants are; objects inside of packages do not count
    #[arg(value_name = "DIR")]
    pub(crate) source: PathBuf,
    /// Where the packages go
    #[arg(long, value_name = "OUT")]
    pub(crate) out: PathBuf,
    #[arg(
        long,
        value_name = "DIR",
        help = "Where the blueprints are, as REPOSITORY/PACKAGE or REPOSITORY/PACKAGE/vREVISION [default: the first DIR]"
    )]
    pub(crate) blueprints: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    /// Say what would change; write and reserve nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Show what would change as a unified diff; write and reserve nothing
    #[arg(long)]
    pub(crate) diff: bool,
    /// Accept that DIR asks for no package at all: every package of an earlier run goes
    #[arg(long)]
    pub(crate) allow_empty: bool,
    #[arg(
        long,
        value_enum,
        value_name = "DIALECT",
        help = "Which names, conditions and order [default: by each package's own marks]"
    )]
    pub(crate) dialect: Option<DialectArg>,
    /// Ship IPClaim and IPAllocation to the cluster as inert records
    #[arg(long)]
    pub(crate) deploy_records: bool,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
