//! `moor completions SHELL`: the script that a shell sources.

use clap::CommandFactory as _;

use crate::args::{Cli, CompletionsArgs};
use crate::output::Output;
use crate::world::Exit;

pub(crate) fn run(args: &CompletionsArgs, output: &mut Output) -> anyhow::Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "moor", &mut script);
    output.data(&String::from_utf8_lossy(&script))?;
    Ok(Exit::Done)
}
