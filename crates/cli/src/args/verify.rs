//! Raw arguments of the commands that prove: `verify`, `trace`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{FormatArg, MgmtArg, NetworkArg};

/// Prove that clusters do not collide: no address twice, every network reachable
///
/// Reads rendered packages, plain manifests and CNI configuration files of any number of clusters and judges them together.
/// The cluster of a package is its WorkloadCluster; plain manifests take the WorkloadCluster among them, else the first
/// directory below PATH, else the directory's name; a single file takes its own name. CLUSTER=PATH says it yourself.
/// REVISION:PATH is a directory or file of a Git revision, such as main:packages, where no file has that name.
/// Nothing is written, unless --fix is given.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor verify deployed --mgmt mgmt\n  \
    moor verify ran=manifests/a core=manifests/b --strict\n  \
    kubectl get net-attach-def,deployments,statefulsets,pods -A -o yaml | moor verify edge=- deployed\n  \
    moor verify main:deployed                  # as Git has it\n  \
    moor verify deployed --fix --check         # shows what --fix would change\n  \
    moor verify deployed -o sarif > moor.sarif")]
pub(crate) struct VerifyArgs {
    /// A directory of packages or manifests, a file, REVISION:PATH of Git, or - for stdin; CLUSTER=PATH names the cluster
    #[arg(required = true, value_name = "PATH")]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    /// Also compare with what this address book keeps for holders outside of packages
    #[arg(long, value_name = "FILE")]
    pub(crate) book: Option<PathBuf>,
    /// Exit code 1 for warnings too, and where there was no address to check
    #[arg(long)]
    pub(crate) strict: bool,
    /// Make the changes that are safe, in one act, and show what is left
    #[arg(long)]
    pub(crate) fix: bool,
    /// With --fix: show the changes as a diff and write nothing; exit code 3 if there are any
    #[arg(long, requires = "fix")]
    pub(crate) check: bool,
    /// How to print the data on stdout
    #[arg(short = 'o', long = "output", value_enum, default_value_t = VerifyFormat::Table, value_name = "FORMAT")]
    pub(crate) format: VerifyFormat,
}

/// A form of what was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum VerifyFormat {
    /// A line per cluster, for people
    Table,
    /// YAML, for files
    Yaml,
    /// JSON, for programs
    Json,
    /// SARIF 2.1.0, for code review tools
    Sarif,
}
/// Tell how a packet gets from one pod to another, or why it does not
///
/// Looks at the secondary interfaces only: which of them share a network, which route and gateway the packet takes, and whether
/// the answer finds its way back. With --node and -f: from one address to another on that node, through the VRFs that intents and
/// low-level objects give it. Exit code 1 where it does not arrive. Nothing is sent; the objects are enough.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor trace my-ran/gnb my-core/amf deployed\n  \
    moor trace Deployment/upf my-core/core-smf/smf deployed --mgmt mgmt -o json\n  \
    moor trace --node worker-1 10.1.2.3 192.0.2.7 -f network\n  \
    moor trace --node worker-1 --vrf m2m 192.0.2.7 10.1.2.3 -f network")]
pub(crate) struct TraceArgs {
    /// Who sends.
    #[arg(
        help = "Who sends: [CLUSTER/][NAMESPACE/][KIND/]NAME; with --node an address",
        value_name = "POD"
    )]
    pub(crate) from: String,
    /// Who is meant, in the same form
    #[arg(value_name = "POD")]
    pub(crate) to: String,
    /// Where the objects are, as for `moor verify`
    #[arg(
        required_unless_present = "node",
        conflicts_with = "node",
        value_name = "PATH"
    )]
    pub(crate) sources: Vec<String>,
    /// On this node, between two addresses; -f says where the network is
    #[arg(long, value_name = "NAME", requires = "files")]
    pub(crate) node: Option<String>,
    /// The packet comes out of the fabric in this VRF of the node; its answer is followed too
    #[arg(long, value_name = "NAME", requires = "node")]
    pub(crate) vrf: Option<String>,
    #[command(flatten)]
    pub(crate) network: NetworkArg,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
