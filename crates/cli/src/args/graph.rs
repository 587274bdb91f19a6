//! Raw arguments of `graph`.

use clap::ValueEnum;

use super::NetworkArg;

/// Draw who selects which Destination, which VRF that is, and who names whom
///
/// Three columns: what people attach, Destinations and Collectors, VRFs. What is not in force has a dashed frame.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    moor graph -f network > network.svg\n  \
    moor graph -f network -o dot | dot -Tpng > network.png")]
pub(crate) struct GraphArgs {
    #[command(flatten)]
    pub(crate) network: NetworkArg,
    /// How to write it to stdout
    #[arg(short = 'o', long = "output", value_enum, default_value_t = Drawing::Svg, value_name = "FORMAT")]
    pub(crate) format: Drawing,
}

/// A form of the picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Drawing {
    /// For a browser
    Svg,
    /// For Graphviz
    Dot,
    /// For programs
    Json,
}
