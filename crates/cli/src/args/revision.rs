//! Raw arguments of `package`: packages in Git.

use std::path::PathBuf;

use clap::Subcommand;

use super::{BookArg, DialectArg, FormatArg, MgmtArg};

/// The acts on packages in Git.
#[derive(Debug, Subcommand)]
pub(crate) enum PackageCommand {
    Init(InitArgs),
    Clone(CloneArgs),
    Pull(PullArgs),
    Push(PushArgs),
    List(RevisionListArgs),
    Diff(DiffArgs),
    Propose(ProposeArgs),
    Approve(ApproveArgs),
    Reject(RejectArgs),
    Rollback(RollbackArgs),
    Delete(DeleteArgs),
}

/// Which repository.
#[derive(Debug, clap::Args)]
pub(crate) struct RepositoryArg {
    /// The Git repository of the packages: a URL or a path [default: $MOOR_REPOSITORY]
    #[arg(long, value_name = "URL")]
    pub(crate) repository: Option<String>,
    /// Its deployment branch
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub(crate) branch: String,
    #[arg(
        long,
        value_name = "PATH",
        default_value = "",
        hide_default_value = true,
        help = "The directory in it that packages are in [default: its root]"
    )]
    pub(crate) directory: String,
    /// Use the token in this file, over HTTP; without it, git's own configuration counts
    #[arg(long, value_name = "FILE", conflicts_with = "ssh_key")]
    pub(crate) token_file: Option<PathBuf>,
    /// The name that goes with the token
    #[arg(
        long,
        value_name = "NAME",
        default_value = "git",
        requires = "token_file"
    )]
    pub(crate) username: String,
    /// Use the key in this file, over ssh
    #[arg(long, value_name = "FILE")]
    pub(crate) ssh_key: Option<PathBuf>,
    /// The hosts to believe, over ssh; without it the first contact is believed
    #[arg(long, value_name = "FILE", requires = "ssh_key")]
    pub(crate) known_hosts: Option<PathBuf>,
    /// Where copies of repositories are kept
    #[arg(long, value_name = "DIR", hide = true)]
    pub(crate) git_cache: Option<PathBuf>,
    /// How long git may take for one question
    #[arg(long, value_name = "SECONDS", hide = true)]
    pub(crate) git_timeout: Option<u64>,
}

/// Where addresses come from.
#[derive(Debug, clap::Args)]
pub(crate) struct AddressesArg {
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) book: BookArg,
    /// The WorkloadCluster to specialise for [default: the package's own, else the only one]
    #[arg(long, value_name = "NAME")]
    pub(crate) cluster: Option<String>,
    /// How long a draft keeps its addresses
    #[arg(long, value_name = "SPAN", default_value = "30d")]
    pub(crate) hold: String,
    /// Which names, conditions and order [default: by the package's own marks]
    #[arg(long, value_enum, value_name = "DIALECT")]
    pub(crate) dialect: Option<DialectArg>,
    /// Ship IPClaim and IPAllocation to the cluster as inert records
    #[arg(long)]
    pub(crate) deploy_records: bool,
}

/// Begin a new package: a draft with a Kptfile and its context
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor package init ran/gnb --workspace first --repository packages.git"
)]
pub(crate) struct InitArgs {
    /// The package: its path below the repository's directory
    pub(crate) package: String,
    /// The draft: what tells two of one package apart
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,
    /// What it is, in a sentence
    #[arg(long, value_name = "TEXT")]
    pub(crate) description: Option<String>,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Begin a package as a copy of one in another repository
///
/// The Kptfile of the draft says where it comes from (upstream, upstreamLock). It gets an identity, and so addresses, of its own.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  \
    moor package clone ran/gnb --workspace first --repository packages.git --from catalog.git --path gnb --ref gnb/v1")]
pub(crate) struct CloneArgs {
    /// The new package
    pub(crate) package: String,
    /// The draft
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,
    /// The repository that it comes from
    #[arg(long, value_name = "URL")]
    pub(crate) from: String,
    /// The directory of the package there [default: the name of the new package]
    #[arg(long, value_name = "PATH")]
    pub(crate) path: Option<String>,
    /// The branch, tag or commit there
    #[arg(long = "ref", value_name = "REF", default_value = "main")]
    pub(crate) reference: String,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Write a package into a directory: a draft, a version, or what is deployed
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor package pull ran/gnb gnb --workspace first --repository packages.git\n  \
    moor package pull ran/gnb gnb-old --version 1 --repository packages.git")]
pub(crate) struct PullArgs {
    /// The package
    pub(crate) package: String,
    /// Where to; a new or empty directory, or one that was pulled and not changed since
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The draft or proposal [default: what is deployed]
    #[arg(long, value_name = "NAME", conflicts_with = "version")]
    pub(crate) workspace: Option<String>,
    /// A published version
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Write a directory as a draft: one commit
///
/// With --mgmt the package is specialised first and its addresses are reserved for it; DIR then holds what was pushed. Without it, only
/// Git moves. It is refused when the draft has changed since DIR was pulled.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor package push gnb --workspace first --repository packages.git --mgmt mgmt --cluster my-ran\n  \
    moor package push gnb ran/gnb --workspace second --repository packages.git")]
pub(crate) struct PushArgs {
    /// The directory
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,
    /// The package [default: the one that DIR was pulled from]
    pub(crate) package: Option<String>,
    /// The draft [default: the one that DIR was pulled from]
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,
    /// DIR takes into account what was published since the draft began
    #[arg(long)]
    pub(crate) onto_published: bool,
    /// What the commit says
    #[arg(short, long, value_name = "TEXT")]
    pub(crate) message: Option<String>,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) addresses: AddressesArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// List drafts, proposals and versions
#[derive(Debug, clap::Args)]
#[command(after_help = "Example:\n  moor package list --repository packages.git")]
pub(crate) struct RevisionListArgs {
    /// Only this package
    pub(crate) package: Option<String>,
    /// Only drafts and proposals of this name
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Show what a draft or proposal changes
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor package diff ran/gnb --workspace second --repository packages.git"
)]
pub(crate) struct DiffArgs {
    /// The package
    pub(crate) package: String,
    /// The draft or proposal
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,
    /// Compare with this version [default: what is deployed]
    #[arg(long, value_name = "NUMBER")]
    pub(crate) version: Option<u32>,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Hand a draft over for approval
///
/// With --mgmt it is specialised once more, so that what is approved is what pools and clusters say now.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor package propose ran/gnb --workspace first --repository packages.git --mgmt mgmt"
)]
pub(crate) struct ProposeArgs {
    #[command(flatten)]
    pub(crate) act: ActOn,
}

/// Publish a proposal: onto the deployment branch, with the next version's tag
///
/// One atomic push. Only the package's own directory changes; what others committed meanwhile is kept. With --mgmt its addresses become
/// final.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor package approve ran/gnb --workspace first --repository packages.git --mgmt mgmt"
)]
pub(crate) struct ApproveArgs {
    #[command(flatten)]
    pub(crate) act: ActOn,
}

/// Make a draft of a proposal again, or remove either
///
/// With --mgmt what it has reserved is given back.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor package reject ran/gnb --workspace second --repository packages.git --mgmt mgmt\n  \
    moor package reject ran/gnb --workspace second --discard --repository packages.git --mgmt mgmt")]
pub(crate) struct RejectArgs {
    /// Remove the draft or proposal
    #[arg(long)]
    pub(crate) discard: bool,
    #[command(flatten)]
    pub(crate) act: ActOn,
}

/// Publish an older version again, as the next one
///
/// With --mgmt it gets the addresses that it had. Where one of them belongs to somebody else by now, it is refused.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor package rollback ran/gnb --to 1 --repository packages.git --mgmt mgmt"
)]
pub(crate) struct RollbackArgs {
    /// The package
    pub(crate) package: String,
    /// The version to publish again
    #[arg(long, value_name = "NUMBER")]
    pub(crate) to: u32,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) addresses: AddressesArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Remove a package from the deployment branch, with its drafts and proposals
///
/// Its tags stay. With --mgmt everything that it holds is released.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  moor package delete ran/gnb --yes --repository packages.git --mgmt mgmt\n  moor package delete ran/gnb --workspace second --yes --repository packages.git --mgmt mgmt"
)]
pub(crate) struct DeleteArgs {
    /// The package
    pub(crate) package: String,
    /// Only this draft or proposal, as `reject --discard`; what is published stays
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: Option<String>,
    /// Do not ask
    #[arg(long)]
    pub(crate) yes: bool,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) addresses: AddressesArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// One draft or proposal, and where its addresses come from.
#[derive(Debug, clap::Args)]
pub(crate) struct ActOn {
    /// The package
    pub(crate) package: String,
    /// The draft or proposal
    #[arg(long, value_name = "NAME")]
    pub(crate) workspace: String,
    #[command(flatten)]
    pub(crate) repository: RepositoryArg,
    #[command(flatten)]
    pub(crate) addresses: AddressesArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
