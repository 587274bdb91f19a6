//! Raw arguments of the commands that make packages: `demo`, `render`, `fn`.

use std::path::PathBuf;

use clap::ValueEnum;

use super::{BookArg, FormatArg, MgmtArg};

/// See it work: render an example fleet in three clusters and check it
///
/// Writes the example's inputs and what they become below one directory. Needs no cluster, no network and no root. A
/// second run changes nothing; files that you changed are kept.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor demo --out ./moor-demo")]
pub(crate) struct DemoArgs {
    /// Where to write
    #[arg(long, value_name = "DIR", default_value = "./moor-demo")]
    pub(crate) out: PathBuf,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Specialise a package, or every package below a directory, for a cluster
///
/// Runs the Kptfile's pipeline in process: the cluster is injected, every Interface gets its address from the book, its
/// NetworkAttachmentDefinition and its place in the workload's annotation. Comments and order of your files are kept. With
/// an error finding nothing is written.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor render gnb --mgmt mgmt --cluster my-ran --out deployed/my-ran/gnb\n  \
    moor render deployed --mgmt mgmt --check     # exit code 3: something would change")]
pub(crate) struct RenderArgs {
    /// A package (a directory with a Kptfile), or a directory of packages
    #[arg(value_name = "DIR")]
    pub(crate) source: PathBuf,
    /// Write here and leave DIR as it is [default: change DIR in place]
    #[arg(long, value_name = "OUT")]
    pub(crate) out: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    /// The WorkloadCluster to specialise for [default: the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// Packages that are rendered already: a Dependency may mean one of them. May be given several times
    #[arg(long, value_name = "PUBLISHED")]
    pub(crate) published: Vec<PathBuf>,
    #[command(flatten)]
    pub(crate) book: BookArg,
    /// Say what would change; write and reserve nothing
    #[arg(long)]
    pub(crate) check: bool,
    /// Give the package a new identity, and so new addresses: for a copy that shall live beside its original
    #[arg(long)]
    pub(crate) new_id: bool,
    /// Which names, conditions and order [default: by the package's own marks]
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectArg>,
    /// Ship IPClaim and IPAllocation to the cluster as inert records
    #[arg(long)]
    pub(crate) deploy_records: bool,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// A dialect of the package path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum DialectArg {
    /// Mooring's own
    Native,
    /// Nephio's names, conditions and best-fit order
    Nephio,
}

impl From<DialectArg> for mooring_package::Dialect {
    fn from(dialect: DialectArg) -> Self {
        match dialect {
            DialectArg::Native => Self::Native,
            DialectArg::Nephio => Self::Nephio,
        }
    }
}

/// Run one step as a KRM function: a ResourceList on stdin, the answer on stdout
///
/// The same runs by name: a link called `interface-fn` that leads to `moor` is that function.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor fn interface-fn < resourcelist.yaml\n  \
    kpt fn eval gnb --exec 'moor fn nad-fn'")]
pub(crate) struct FunctionArgs {
    /// The function: workload-cluster-injector, interface-fn, ipam-fn, vlan-fn, nad-fn, attach-fn; of Nephio's dialect
    /// also dnn-fn, nfdeploy-fn, configinject-fn; apply-replacements, set-namespace
    pub(crate) name: String,
    #[command(flatten)]
    pub(crate) book: BookArg,
    /// Which names, conditions and order [default: by the package's own marks]
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectArg>,
    /// In Nephio's dialect: end with an error when a condition could not be met
    #[arg(long)]
    pub(crate) strict: bool,
}
