//! Raw arguments of `pool …`.

use std::path::PathBuf;

use clap::Subcommand;
use mooring_api::{AddrRange, Cidr};

use super::{BookArg, FormatArg, MgmtArg};

/// `moor pool …`
#[derive(Debug, Subcommand)]
pub(crate) enum PoolCommand {
    List(PoolListArgs),
    Map(PoolMapArgs),
    Grow(PoolGrowArgs),
    Shrink(PoolShrinkArgs),
    Split(PoolSplitArgs),
    Drain(PoolDrainArgs),
    Renumber(PoolRenumberArgs),
}

/// Show every pool: how full it is, what is left, who has most
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor pool list --mgmt mgmt")]
pub(crate) struct PoolListArgs {
    /// Only pools of this network instance (NAME or NAMESPACE/NAME)
    #[arg(long, value_name = "INSTANCE")]
    pub(crate) network: Option<String>,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Draw a pool: which addresses are held, rest or are free
///
/// A cell is one address, or 2^k of them where the pool is large. Of a large IPv6 pool only the parts in use are drawn.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor pool map 10.1.2.0/24 --mgmt mgmt\n  \
    moor pool map control-pool --svg pool.svg --mgmt mgmt")]
pub(crate) struct PoolMapArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// Write it as SVG, to a file or to stdout (-)
    #[arg(long, value_name = "FILE")]
    pub(crate) svg: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Which pool.
#[derive(Debug, clap::Args)]
pub(crate) struct WhichArg {
    /// The prefix, such as 10.1.2.0/24, or the name of its IPPrefix
    #[arg(value_name = "PREFIX")]
    pub(crate) prefix: String,
    /// The network instance, where several have that prefix (NAME or NAMESPACE/NAME)
    #[arg(long, value_name = "INSTANCE")]
    pub(crate) network: Option<String>,
}

/// What every change of a pool takes.
#[derive(Debug, clap::Args)]
pub(crate) struct ActArg {
    /// Say who would change; change nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Do it without asking
    #[arg(long, conflicts_with = "check")]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Make a pool wider; every address stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor pool grow 10.1.2.0/24 --to 10.1.2.0/23 --check --mgmt mgmt\n  \
    moor pool grow control-pool --to 10.1.2.0/23 --ranges 10.1.2.20-10.1.3.199 --yes --mgmt mgmt")]
pub(crate) struct PoolGrowArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// The wider prefix around it
    #[arg(long, value_name = "PREFIX")]
    pub(crate) to: Cidr,
    /// Where addresses are taken from then
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    pub(crate) ranges: Option<Vec<AddrRange>>,
    #[command(flatten)]
    pub(crate) act: ActArg,
}

/// Make a pool smaller: a part of the prefix, other ranges, more exclusions
///
/// Refused while somebody would be left outside; --move gives those another address in what is left, in the same
/// transaction.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor pool shrink 10.1.2.0/24 --to 10.1.2.0/25 --check --mgmt mgmt\n  \
    moor pool shrink control-pool --exclude 10.1.2.20-10.1.2.29 --move --yes --mgmt mgmt")]
#[group(id = "less", required = true, multiple = true, args = ["to", "ranges", "exclude"])]
pub(crate) struct PoolShrinkArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// A part of the prefix
    #[arg(long, value_name = "PREFIX")]
    pub(crate) to: Option<Cidr>,
    /// Where addresses are taken from then
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    pub(crate) ranges: Vec<AddrRange>,
    /// What is not handed out any more
    #[arg(long, value_name = "RANGES", value_delimiter = ',')]
    pub(crate) exclude: Vec<AddrRange>,
    /// Give who cannot stay another address
    #[arg(long = "move")]
    pub(crate) moves: bool,
    #[command(flatten)]
    pub(crate) act: ActArg,
}

/// Make several pools of one; every address stays
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor pool split 10.1.2.0/24 --at 25 --check --mgmt mgmt")]
pub(crate) struct PoolSplitArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// The prefix length of the parts
    #[arg(long, value_name = "LENGTH")]
    pub(crate) at: u8,
    /// Give who would have the gateway or an edge of its part another address
    #[arg(long = "move")]
    pub(crate) moves: bool,
    #[command(flatten)]
    pub(crate) act: ActArg,
}

/// Hand out nothing new from a pool, and empty it
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor pool drain 10.1.2.0/24 --yes --mgmt mgmt\n  \
    moor pool drain control-pool --move --check --mgmt mgmt\n  \
    moor pool drain control-pool --undo --yes --mgmt mgmt")]
pub(crate) struct PoolDrainArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// Give its holders addresses of other pools that fit
    #[arg(long = "move")]
    pub(crate) moves: bool,
    /// End the drain
    #[arg(long, conflicts_with = "moves")]
    pub(crate) undo: bool,
    #[command(flatten)]
    pub(crate) act: ActArg,
}

/// Give every holder the same place in another prefix
///
/// Where the other prefix is an IPPrefix of the same instance, the holders go there and this one is drained; else this
/// one becomes the other.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor pool renumber 10.1.2.0/24 --to 10.9.2.0/24 --check --mgmt mgmt"
)]
pub(crate) struct PoolRenumberArgs {
    #[command(flatten)]
    pub(crate) which: WhichArg,
    /// The other prefix
    #[arg(long, value_name = "PREFIX")]
    pub(crate) to: Cidr,
    #[command(flatten)]
    pub(crate) act: ActArg,
}
