//! Raw arguments of `reserve` and `release`.

use clap::builder::NonEmptyStringValueParser;

use super::{BookArg, FormatArg, MgmtArg};

/// Reserve an address or a range for what is no pod: a VM, a router, a host
///
/// Nobody else gets it while the reservation runs. It is shown by who-has, counted by pool list, and named in refusals. It ends
/// with moor release, or at --until. The same command again changes nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor reserve 10.1.2.5 --instance vpc-control --owner netops --reason \"leaf router\" --mgmt mgmt\n  \
    moor reserve 10.1.2.64/28 --instance vpc-control --owner upf-team --reason \"host-network UPF\" --until 30d --mgmt mgmt")]
pub(crate) struct ReserveArgs {
    /// One address, a range (FIRST-LAST) or a prefix
    #[arg(value_name = "ADDRESS|RANGE|CIDR")]
    pub(crate) what: String,
    /// The network instance (NAME or NAMESPACE/NAME)
    #[arg(long, value_name = "INSTANCE", visible_alias = "network")]
    pub(crate) instance: String,
    /// Whose it is: a team, a device
    #[arg(long, value_name = "NAME", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) owner: String,
    /// What for
    #[arg(long, value_name = "TEXT", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) reason: String,
    /// When it ends: a day (2027-01-31, the whole of it, in UTC), a moment (RFC 3339), or how long after it was made (30d)
    #[arg(long, value_name = "WHEN")]
    pub(crate) until: Option<String>,
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

/// Give an address back
///
/// Where the pool has a cool-down, the address rests before somebody else gets it. What a package holds is released by
/// rendering the package without its Interface; --force releases it anyway. A cluster that is gone is released as a whole.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor release 10.1.2.30 --mgmt mgmt\n  \
    moor release --holder leaf-1 --mgmt mgmt\n  \
    moor release --cluster edge-7 --mgmt mgmt --check     # who would lose what")]
#[group(id = "what", required = true, multiple = false, args = ["address", "holder", "cluster"])]
pub(crate) struct ReleaseArgs {
    /// The address, range or prefix, as it was taken
    #[arg(value_name = "ADDRESS|RANGE|CIDR")]
    pub(crate) address: Option<String>,
    /// Everything that this holder took or reserved by hand
    #[arg(long, value_name = "NAME")]
    pub(crate) holder: Option<String>,
    /// Everything that this cluster has, its packages' addresses too: the cluster is retired
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// The network instance, where the same address is held in several
    #[arg(long, value_name = "INSTANCE")]
    pub(crate) network: Option<String>,
    /// Also what a package holds
    #[arg(long)]
    pub(crate) force: bool,
    /// Do not ask before a whole cluster is released
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
