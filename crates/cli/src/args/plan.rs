//! Raw arguments of `plan`, and where the commands about intents read from.

use std::path::PathBuf;

use super::FormatArg;

/// Where intents are, and what was there before.
#[derive(Debug, clap::Args)]
pub(crate) struct NetworkArg {
    /// Intents, low-level objects, nodes, OperatorConfig and IPAddresses: a directory, a file, REVISION:PATH of Git, or - for stdin
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub(crate) files: Vec<String>,
    /// What was there before, with its addresses: what `moor plan --write` kept, else objects in the same forms as -f
    #[arg(long = "from", value_name = "PATH", requires = "files")]
    pub(crate) before: Option<String>,
}

/// Show what intents become, and what would change on nodes, addresses and the platform
///
/// Compiles all objects together, as the controller does, and compares with --from; without it, with a network that has nothing but
/// the nodes. Addresses that were given before stay; an object that ran before and is wrong now stays in its last good form. A new
/// one that is wrong is set aside, and everything else is compiled. Exit code 1 where a finding is an error.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor plan -f network\n  \
    moor plan -f network --from main:network         # what a branch changes\n  \
    moor plan -f network --from state --write state  # keeps addresses and last good forms\n  \
    moor plan -f network --show node/worker-1\n  \
    moor plan -f network --from main:network --show platform --diff")]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) network: NetworkArg,
    /// Show one result instead: low-level, revision, node/NAME, platform or statuses
    #[arg(long, value_name = "WHAT")]
    pub(crate) show: Option<Show>,
    /// With --show: as a diff against --from
    #[arg(long, requires = "show")]
    pub(crate) diff: bool,
    /// Keep addresses, last good forms and objects in this directory, for the next --from
    #[arg(long, value_name = "DIR")]
    pub(crate) write: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// One result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Show {
    /// Low-level objects that say the same.
    LowLevel,
    /// The NetworkConfigRevision.
    Revision,
    /// What a node is told.
    Node(String),
    /// MetalLB, Coil, Calico, SR-IOV and Cluster API IPAM objects.
    Platform,
    /// The status of every object.
    Statuses,
}

impl std::str::FromStr for Show {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match (text, text.strip_prefix("node/")) {
            (_, Some(name)) if !name.is_empty() => Ok(Self::Node(name.to_owned())),
            ("low-level", _) => Ok(Self::LowLevel),
            ("revision", _) => Ok(Self::Revision),
            ("platform", _) => Ok(Self::Platform),
            ("statuses", _) => Ok(Self::Statuses),
            _ => Err("there are low-level, revision, node/NAME, platform and statuses".to_owned()),
        }
    }
}
