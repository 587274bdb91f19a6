//! `moor fn NAME`: one step as a KRM function. stdout carries the ResourceList and nothing else.
//!
//! Easy to get wrong: kpt shows stderr to people and parses stdout; with an error the ResourceList is still written, since
//! its `results` say the same to programs.

use std::io::Read as _;

use anyhow::Context as _;
use mooring_book::{MemoryStore, Store};

use crate::args::FunctionArgs;
use crate::output::{Output, exit_of};
use crate::world::{Access, Exit, World};

pub(crate) fn run(args: &FunctionArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut input)
        .context("cannot read the ResourceList from stdin")?;
    let book = world.book(&args.book, None, Access::Write);
    let nothing = MemoryStore::default();
    let store: &dyn Store = if meets_the_book(&args.name) {
        &book
    } else {
        &nothing
    };
    let answer = mooring_package::function(&args.name, &input, store, world.now)?;
    output.data(&answer.stdout)?;
    output.findings(&answer.findings);
    Ok(exit_of(&answer.findings))
}

/// Only the ipam and vlan steps do. The others run where no book can be opened: in a container, with a read-only disk.
fn meets_the_book(name: &str) -> bool {
    name.contains("ipam") || name.contains("vlan")
}
