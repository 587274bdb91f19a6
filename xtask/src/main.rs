//! `cargo xtask`: everything about this workspace that is not the product. See `cargo xtask --help`.
//!
//! | to change | open |
//! |---|---|
//! | what CI runs, and in which order | `ci` |
//! | how results and skips are counted | `suite` |
//! | fuzz runs of `--soak` | `fuzz` |
//! | measurements and their table | `bench` |
//! | generated files | `generate` (CRDs, the chart's part), `findings` (the index) |
//! | container images | `images` |
//! | `moor-cni` as nodes get it | `dist` |
//! | components that tests build once | `setup` |
//! | a control plane on this machine | `up` |
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "it talks to a person at a terminal"
)]

mod bench;
mod ci;
mod dist;
mod findings;
mod fuzz;
#[path = "gen.rs"]
mod generate;
mod images;
mod setup;
mod shell;
mod suite;
mod up;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};

/// Set-up, tests, benchmarks and generated files of this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Installs what tests need beyond Rust, once, into the cache; without NAME lists it
    Setup {
        /// Only this component
        name: Option<String>,
    },
    /// Runs the tests, counts what was skipped and why
    Test {
        /// Only this room, such as `ipam`
        room: Option<String>,
        /// Also the long runs: tests marked `soak`, and a minute of fuzzing per target
        #[arg(long)]
        soak: bool,
    },
    /// Measures the budgets, prints met or missed, writes docs/bench.md
    Bench {
        /// Only this one; docs/bench.md is then left alone
        name: Option<String>,
        /// Measures in this process and prints JSON: how `bench` calls itself
        #[arg(long, hide = true, requires = "name")]
        child: bool,
    },
    /// Writes the generated files: CRDs, what the chart has of them, the findings index
    Gen {
        /// Writes nothing, fails when a file would change
        #[arg(long)]
        check: bool,
    },
    /// Makes container images as OCI layouts, without a container engine
    Images(images::Options),
    /// Builds moor-cni for nodes, as one file that needs no library; prints where it is
    Dist,
    /// Starts a control plane on this machine with Mooring's kinds and controllers; it stays until `down`
    Up(up::Place),
    /// Stops what `up` started, and removes its directory
    Down(up::Place),
    /// What .ci/run calls: fastest checks first
    Ci,
}

fn main() -> ExitCode {
    match run(Cli::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Setup { name } => setup::run(name.as_deref()),
        Command::Test { room, soak } => {
            let summary = suite::run(room.as_deref(), soak)?;
            println!("{summary}");
            summary.into_result()
        }
        Command::Bench {
            name: Some(name),
            child: true,
        } => bench::measure_here(&name),
        Command::Bench { name, .. } => bench::run(name.as_deref()),
        Command::Gen { check } => gen_all(check),
        Command::Images(options) => images::run(&options),
        Command::Dist => dist::dist(),
        Command::Up(place) => up::up(&place),
        Command::Down(place) => up::down(&place),
        Command::Ci => ci::run(),
    }
}

/// Every generated file; `ci` calls it too.
fn gen_all(check: bool) -> Result<()> {
    generate::run(check)?;
    findings::run(check)
}
