//! `moor graph -f PATH`: the picture of a network.

use anyhow::Context as _;
use mooring_intent::graph;

use super::plan::network::Network;
use crate::args::{Drawing, GraphArgs};
use crate::output::{Output, exit_of};
use crate::world::Exit;

pub(crate) fn run(args: &GraphArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let Some(network) = Network::read(&args.network, output)? else {
        return Ok(Exit::Wrong);
    };
    let graph = graph(&network.inputs, &network.compiled);
    let text = match args.format {
        Drawing::Svg => graph.svg(),
        Drawing::Dot => graph.dot(),
        Drawing::Json => serde_json::to_string_pretty(&graph).context("cannot write JSON")? + "\n",
    };
    output.data(&text)?;
    let errors = network.errors();
    output.findings(&errors);
    Ok(exit_of(&errors))
}
