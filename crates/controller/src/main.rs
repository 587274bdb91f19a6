//! A program: the reconcilers and webhooks that run beside a Kubernetes API.
//!
//! ```text
//!  main ─► args ─► telemetry ─► World (client, metrics, events, leader) ─► roles ─► join all at shutdown
//!                                                        ipam │ packages │ sync │ webhook
//! ```
//!
//! A role is a folder, a reconciler in it has the five steps *gather, check, decide, apply, report*. Nothing is decided
//! here: addresses in `ipam`, packages in `blueprint`, behind the stores and engines of `book` and `package`.
//!
//! Easy to get wrong: every role is one task of [`roles::run`]; a task that nobody joins outlives its leadership.

mod args;
mod backoff;
mod credentials;
mod error;
mod ipam;
mod leader;
mod living;
mod metrics;
mod packages;
mod roles;
mod serve;
mod shutdown;
mod sync;
mod telemetry;
mod told;
mod webhook;
mod world;

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    let args = args::Args::parse();
    let _telemetry = telemetry::start(&args.log);
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the program cannot start its threads");
            return ExitCode::FAILURE;
        }
    };
    match runtime.block_on(roles::run(args)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            tracing::error!(error = format!("{error:#}"), "stopped");
            ExitCode::FAILURE
        }
    }
}
