//! `moor package …`: the life of packages in Git.
//!
//! Each act is one function of `mooring-package`, with the book where a management directory is given and without it otherwise.

mod act;
mod look;
mod place;

use mooring_package::revision::{PackageName, Workspace};

use crate::args::PackageCommand;
use crate::output::Output;
use crate::world::{Exit, Usage, World};

pub(crate) fn run(
    command: &PackageCommand,
    world: &World,
    output: &mut Output,
) -> anyhow::Result<Exit> {
    match command {
        PackageCommand::Init(args) => act::init(args, world, output),
        PackageCommand::Clone(args) => act::clone(args, world, output),
        PackageCommand::Pull(args) => look::pull(args, world, output),
        PackageCommand::Push(args) => act::push(args, world, output),
        PackageCommand::List(args) => look::list(args, world, output),
        PackageCommand::Diff(args) => look::diff(args, world, output),
        PackageCommand::Propose(args) => act::propose(&args.act, world, output),
        PackageCommand::Approve(args) => act::approve(&args.act, world, output),
        PackageCommand::Reject(args) => act::reject(args, world, output),
        PackageCommand::Rollback(args) => act::rollback(args, world, output),
        PackageCommand::Delete(args) => act::delete(args, world, output),
    }
}

fn package(text: &str) -> Result<PackageName, Usage> {
    text.parse().map_err(|bad: mooring_api::BadValue| {
        Usage::new(
            bad.to_string(),
            "a package is named by its path in the repository, such as ran/gnb",
        )
    })
}

fn workspace(text: &str) -> Result<Workspace, Usage> {
    text.parse().map_err(|bad: mooring_api::BadValue| {
        Usage::new(bad.to_string(), "--workspace NAME, such as first")
    })
}
