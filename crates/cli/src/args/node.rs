//! Raw arguments of `moor node`.

use std::path::PathBuf;

use clap::Subcommand;

use super::FormatArg;

/// The commands about the node that one is logged in to.
#[derive(Debug, Subcommand)]
pub(crate) enum NodeCommand {
    Doctor(DoctorArgs),
}

/// Show what CNI plugins left on this node, whose it is, and what is wrong
///
/// Lists the interfaces that a runtime made and what CHECK says of them, the devices, VLANs, addresses and virtual functions that are kept
/// for pods, and which configuration the runtime takes. Exit code 1 where something is wrong. Nothing is changed, unless --fix is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor node doctor\n  \
    moor node doctor --fix\n  \
    moor node doctor --root /host -o json      # from a pod that sees the node's root there")]
pub(crate) struct DoctorArgs {
    /// Clean what is provably dead, and nothing else
    #[arg(long)]
    pub(crate) fix: bool,
    /// Do not start plugins to ask for CHECK
    #[arg(long)]
    pub(crate) no_check: bool,
    /// Where plugins are
    #[arg(long, value_name = "DIR", default_value = "/opt/cni/bin")]
    pub(crate) bin_dir: PathBuf,
    /// Where the runtime finds its configuration
    #[arg(long, value_name = "DIR", default_value = "/etc/cni/net.d")]
    pub(crate) conf_dir: PathBuf,
    /// Where the node's root is seen, from a pod; what only the node itself can tell is left out, and --fix is refused
    #[arg(long, value_name = "DIR")]
    pub(crate) root: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
