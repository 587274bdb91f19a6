//! Raw arguments of `adopt`.

use super::FormatArg;

/// Find the intents that say what low-level objects say, and prove that nothing changes
///
/// A low-level object, or a line of one, is replaced only where the compiled network stays the same to the byte. What intents cannot say
/// stays low-level: the residue. Intents and residue together are the network that was there. Nothing is written; -o yaml prints
/// what to apply.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor adopt -f network\n  \
    moor adopt -f network -o yaml > adopted.yaml")]
pub(crate) struct AdoptArgs {
    /// Low-level objects, nodes, OperatorConfig and intents: a directory, a file, REVISION:PATH of Git, or - for stdin
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub(crate) files: Vec<String>,
    #[command(flatten)]
    pub(crate) format: FormatArg,
}
