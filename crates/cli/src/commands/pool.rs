//! `moor pool list`: every pool, its size, and what is left.

use crate::args::PoolListArgs;
use crate::output::Output;
use crate::world::{Exit, World};

pub(crate) fn list(
    args: &PoolListArgs,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    let _ = (args, world, output);
    anyhow::bail!("pool list waits for the book")
}
