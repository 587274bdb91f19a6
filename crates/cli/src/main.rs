//! `moor`: the command line. Decides nothing: it reads arguments, calls the rooms, and says what happened.
//!
//! ```text
//!  args (raw) ─► commands/<name>: Request::check ─► the rooms ─► output
//!                     world: clock, environment, randomness, the book
//! ```
//!
//! Easy to get wrong: only `output` prints. Data goes to stdout, talk to stderr, and a closed pipe is not a failure.

mod args;
mod commands;
mod embedded;
mod moment;
mod output;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

use crate::args::{BookArg, BookCommand, Cli, Command, FunctionArgs, ImportCommand};
use crate::output::Output;
use crate::world::{Exit, World};

/// The one function whose well-known name does not end in `-fn`.
const INJECTOR: &str = "workload-cluster-injector";

fn main() -> ExitCode {
    let world = World::observe();
    let mut output = Output::standard();
    let cli = match parse() {
        Ok(cli) => cli,
        Err(answer) => return output.clap(&answer).into(),
    };
    run(cli.command, &world, &mut output)
        .unwrap_or_else(|error| output.failure(&error))
        .into()
}

/// The arguments; a link named after a function (`interface-fn`) is that function.
fn parse() -> Result<Cli, clap::Error> {
    let called = std::env::args_os().next().unwrap_or_default();
    let name = std::path::Path::new(&called)
        .file_stem()
        .unwrap_or_default();
    let others = [INJECTOR, "apply-replacements", "set-namespace"];
    let is_function = |name: &&str| name.ends_with("-fn") || others.contains(name);
    let Some(name) = name.to_str().filter(is_function) else {
        return Cli::try_parse();
    };
    let book = BookArg {
        book: None,
        wait: None,
    };
    let name = name.to_owned();
    Ok(Cli {
        command: Command::Function(FunctionArgs {
            name,
            book,
            dialect: None,
            strict: false,
        }),
    })
}

fn run(command: Command, world: &World, output: &mut Output) -> anyhow::Result<Exit> {
    match command {
        Command::Demo(args) => commands::demo::run(&args, world, output),
        Command::Render(args) => commands::render::run(&args, world, output),
        Command::Fleet(args) => commands::fleet::run(&args, world, output),
        Command::Function(args) => commands::function::run(&args, world, output),
        Command::Package(command) => commands::package::run(&command, world, output),
        Command::Pool(command) => commands::pool::run(&command, world, output),
        Command::Claim(args) => commands::claim::run(&args, world, output),
        Command::Reserve(args) => commands::reserve::run(&args, world, output),
        Command::Release(args) => commands::release::run(&args, world, output),
        Command::WhoHas(args) => commands::who_has::run(&args, world, output),
        Command::Book(BookCommand::Backup(args)) => commands::book::backup(&args, world, output),
        Command::Book(BookCommand::Restore(args)) => commands::book::restore(&args, world, output),
        Command::Book(BookCommand::Export(args)) => commands::book::export(&args, world, output),
        Command::Book(BookCommand::Import(args)) => commands::book::import(&args, world, output),
        Command::Book(BookCommand::Rebuild(args)) => commands::book::rebuild(&args, world, output),
        Command::Book(BookCommand::Audit(args)) => commands::book::audit(&args, world, output),
        Command::Import(ImportCommand::Nephio(args)) => {
            commands::import::nephio(&args, world, output)
        }
        Command::Node(command) => commands::node::run(&command, output),
        Command::Verify(args) => commands::verify::run(&args, world, output),
        Command::Plan(args) => commands::plan::run(&args, output),
        Command::Adopt(args) => commands::adopt::run(&args, output),
        Command::Graph(args) => commands::graph::run(&args, output),
        Command::Trace(args) => commands::trace::run(&args, world, output),
        Command::Explain(args) => commands::explain::run(&args, world, output),
        Command::Completions(args) => commands::completions::run(&args, output),
        Command::Reference => commands::reference::run(output),
    }
}
