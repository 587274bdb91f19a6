//! `moor claim NAME --network INSTANCE`: takes an address for somebody that no package renders.

use mooring_ipam::InstanceKey;

use crate::args::ClaimArgs;
use crate::output::Output;
use crate::world::{Exit, World};

pub(crate) fn run(args: &ClaimArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let _ = (args, world, output);
    anyhow::bail!("claim waits for the book")
}

/// `NAME` or `NAMESPACE/NAME`.
pub(super) fn instance(text: &str) -> InstanceKey {
    let (namespace, name) = text.split_once('/').unwrap_or(("", text));
    InstanceKey::new(namespace, name)
}
