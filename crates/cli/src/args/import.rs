//! Raw arguments of `moor import`: what another system knows of addresses.

use std::path::PathBuf;

use clap::Subcommand;

use super::{BookArg, FormatArg, MgmtArg};

/// `moor import …`
#[derive(Debug, Subcommand)]
pub(crate) enum ImportCommand {
    Nephio(ImportNephioArgs),
}

/// Take over the addresses and VLANs of a Nephio installation
///
/// Reads the tables of its resource backend (the ConfigMaps ipam-INSTANCE and vlan-INDEX), IPClaim, VLANClaim and IPPrefix
/// objects as kubectl writes them, and rendered packages. What a package has gets the identity under which `moor render`
/// finds it again; everything else is reserved for the object that has it. All of it is imported, or nothing.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    kubectl get configmaps,ipclaims,vlanclaims,ipprefixes -A -o yaml > nephio.yaml\n  \
    moor import nephio nephio.yaml deployed/ --mgmt mgmt --check   # exit code 3: something would be imported\n  \
    moor import nephio nephio.yaml deployed/ --mgmt mgmt")]
pub(crate) struct ImportNephioArgs {
    /// Files as kubectl writes them, and rendered packages or directories of them
    #[arg(required = true, value_name = "PATH")]
    pub(crate) sources: Vec<PathBuf>,
    /// Say what would be imported; write nothing
    #[arg(long)]
    pub(crate) check: bool,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
