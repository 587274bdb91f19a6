//! What can be typed: the raw arguments, exactly as clap reads them.
//!
//! Nothing here decides. Each command turns its raw arguments into a checked request (its `Request::check`) before it
//! acts, so a usage mistake never leaves anything half done. `docs/reference/cli.md` is generated from this tree.
//!
//! Easy to get wrong: every command needs an example in `after_help`; a test walks the tree and fails without one.

mod adopt;
mod book;
mod fleet;
mod graph;
mod import;
mod keeping;
mod node;
mod package;
mod plan;
mod pool;
mod reserve;
mod revision;
mod verify;

use clap::{Parser, Subcommand, ValueEnum};

pub(crate) use adopt::AdoptArgs;
pub(crate) use book::{AuditArgs, BookArg, BookCommand, ClaimArgs, FamilyArg, MgmtArg};
pub(crate) use book::{RebuildArgs, WhoHasArgs};
pub(crate) use fleet::FleetArgs;
pub(crate) use graph::{Drawing, GraphArgs};
pub(crate) use import::{ImportCommand, ImportNephioArgs};
pub(crate) use keeping::{BackupArgs, ExportArgs, ImportArgs, KeepArg, RestoreArgs, TextFormat};
pub(crate) use node::{DoctorArgs, NodeCommand};
pub(crate) use package::{DemoArgs, DialectArg, FunctionArgs, RenderArgs};
pub(crate) use plan::{NetworkArg, PlanArgs, Show};
pub(crate) use pool::{
    ActArg, PoolCommand, PoolDrainArgs, PoolGrowArgs, PoolListArgs, PoolMapArgs, PoolRenumberArgs,
    PoolShrinkArgs, PoolSplitArgs, WhichArg,
};
pub(crate) use reserve::{ReleaseArgs, ReserveArgs};
pub(crate) use revision::{
    ActOn, AddressesArg, CloneArgs, DeleteArgs, DiffArgs, InitArgs, PackageCommand, PullArgs,
    PushArgs, RejectArgs, RepositoryArg, RevisionListArgs, RollbackArgs,
};
pub(crate) use verify::{TraceArgs, VerifyArgs, VerifyFormat};

/// Gives Kubernetes workloads secondary network interfaces that never move.
#[derive(Debug, Parser)]
#[command(
    name = "moor",
    version,
    after_help = "Start with: moor demo\n\n\
        Exit codes: 0 done or unchanged, 1 something is wrong (see the findings), 2 the command line is wrong, \
        3 --check would change something."
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Demo(DemoArgs),
    Render(RenderArgs),
    Fleet(FleetArgs),
    #[command(name = "fn")]
    Function(FunctionArgs),
    /// Packages in Git: drafts, proposals, versions, and their addresses
    #[command(
        subcommand,
        after_help = "Example:\n  moor package list --repository packages.git"
    )]
    Package(Box<PackageCommand>),
    /// Pools: what there is to take from, how full it is, and how it changes
    #[command(subcommand, after_help = "Example:\n  moor pool list --mgmt mgmt")]
    Pool(PoolCommand),
    Claim(ClaimArgs),
    Reserve(ReserveArgs),
    Release(ReleaseArgs),
    WhoHas(WhoHasArgs),
    /// The address book itself: back it up, merge it, rebuild it, read its history
    #[command(
        subcommand,
        after_help = "Example:\n  moor book rebuild --check deployed/"
    )]
    Book(BookCommand),
    /// Take over what another system knows of addresses
    #[command(
        subcommand,
        after_help = "Example:\n  moor import nephio nephio.yaml deployed/ --mgmt mgmt"
    )]
    Import(ImportCommand),
    /// The node that one is logged in to
    #[command(subcommand, after_help = "Example:\n  moor node doctor")]
    Node(NodeCommand),
    Verify(VerifyArgs),
    Plan(PlanArgs),
    Adopt(AdoptArgs),
    Graph(GraphArgs),
    Trace(TraceArgs),
    Explain(ExplainArgs),
    Completions(CompletionsArgs),
    /// Print the reference of every command as Markdown
    #[command(
        hide = true,
        after_help = "Example:\n  moor reference > docs/reference/cli.md"
    )]
    Reference,
}

/// Explain a finding, which IPAM fits your packages, or why something is in a network
///
/// With the code of a finding: what happened, why it matters, what to do. With `ipam`: which of the five ways to hand out
/// addresses fits each network of the packages below PATH, rendered or not, and why. With -f: which intent put a part of the network
/// there, through which field and rule, and on which nodes; of node/NAME everything or what stands under words such as
/// `vlan 234` or `vrf m2m_enc`, whatever is about `prefix CIDR`, or what KIND/NAME became.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  moor explain PoolExhausted\n  moor explain          # lists every code\n  \
        moor explain ipam deployed --mgmt mgmt\n  \
        moor explain node/worker-3 vlan 234 -f network\n  \
        moor explain prefix 10.0.0.0/24 -f network\n  \
        moor explain layer2attachment/example -f network"
)]
pub(crate) struct ExplainArgs {
    /// The code of a finding, such as DuplicateAddress, or ipam, node/NAME, prefix, KIND/NAME; without it, all codes are listed
    #[arg(value_name = "WHAT")]
    pub(crate) code: Option<String>,
    /// For ipam: where the packages are, as for `moor verify`, else the current directory; with -f: the rest of the question
    #[arg(value_name = "PATH|WORD")]
    pub(crate) sources: Vec<String>,
    #[command(flatten)]
    pub(crate) network: NetworkArg,
    #[command(flatten)]
    pub(crate) mgmt: MgmtArg,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}

/// Print a completion script for your shell
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  moor completions bash > ~/.local/share/bash-completion/completions/moor"
)]
pub(crate) struct CompletionsArgs {
    /// Which shell
    pub(crate) shell: clap_complete::Shell,
}

/// How data is printed.
#[derive(Debug, clap::Args)]
pub(crate) struct FormatArg {
    /// How to print the data on stdout
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Format::Table, value_name = "FORMAT")]
    pub(crate) format: Format,
}

/// A form of data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Aligned columns, for people
    #[default]
    Table,
    /// YAML, for files
    Yaml,
    /// JSON, for programs
    Json,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::Cli;

    #[test]
    fn the_tree_of_commands_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn every_command_has_a_sentence_and_an_example() {
        fn walk(command: &clap::Command, path: &str) {
            for sub in command.get_subcommands() {
                let path = format!("{path} {}", sub.get_name());
                assert!(sub.get_about().is_some(), "{path} has no sentence");
                let help = sub
                    .get_after_help()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                assert!(
                    help.contains("Example") && help.contains("moor "),
                    "{path} has no example"
                );
                walk(sub, &path);
            }
        }
        walk(&Cli::command(), "moor");
    }
}
