//! `moor fn NAME`: one step as a KRM function. stdout carries the ResourceList and nothing else.
//!
//! Easy to get wrong: kpt shows stderr to people and parses stdout; with an error the ResourceList is still written, since
//! its `results` say the same to programs.

use std::io::Read as _;

use anyhow::Context as _;
use mooring_package::Call;

use crate::args::FunctionArgs;
use crate::output::Output;
use crate::world::{Access, Exit, World};

pub(crate) fn run(args: &FunctionArgs, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    let mut input = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut input)
        .context("cannot read the ResourceList from stdin")?;
    let book = world.book(&args.book, None, Access::Write);
    let call = Call {
        name: &args.name,
        dialect: args.dialect.map(Into::into),
        strict: args.strict,
    };
    let answer =
        book.settle(|book| mooring_package::function_as(&call, &input, book, world.now))?;
    output.data(&answer.stdout)?;
    output.findings(&answer.findings);
    Ok(if answer.failed {
        Exit::Wrong
    } else {
        Exit::Done
    })
}
