//! `moor` as its users meet it: the real program, its streams and its exit codes.
#![expect(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reports by panicking, and makes its own inputs"
)]
#![expect(
    clippy::needless_raw_string_hashes,
    reason = "snapbox writes its snapshots so"
)]

#[path = "moor/adopt.rs"]
mod adopt;
#[path = "moor/book.rs"]
mod book;
#[path = "moor/daytwo.rs"]
mod daytwo;
#[path = "moor/demo.rs"]
mod demo;
#[path = "moor/examples.rs"]
mod examples;
#[path = "moor/explain.rs"]
mod explain;
#[path = "moor/fix.rs"]
mod fix;
#[path = "moor/fleet.rs"]
mod fleet;
#[path = "moor/function.rs"]
mod function;
#[path = "moor/graph.rs"]
mod graph;
#[path = "moor/guides.rs"]
mod guides;
#[path = "moor/help.rs"]
mod help;
#[path = "moor/hostile.rs"]
mod hostile;
#[path = "moor/import.rs"]
mod import;
#[path = "moor/kpt.rs"]
mod kpt;
#[path = "moor/node.rs"]
mod node;
#[path = "moor/package.rs"]
mod package;
#[path = "moor/plan.rs"]
mod plan;
#[path = "moor/plugins.rs"]
mod plugins;
#[path = "moor/pool.rs"]
mod pool;
#[path = "moor/processes.rs"]
mod processes;
#[path = "moor/render.rs"]
mod render;
#[path = "moor/reserve.rs"]
mod reserve;
#[path = "moor/revision.rs"]
mod revision;
#[path = "moor/trace.rs"]
mod trace;
#[path = "moor/verify.rs"]
mod verify;

use std::path::{Path, PathBuf};

use snapbox::cmd::Command;

/// The program, in a directory, with nothing of the developer's environment.
fn moor(dir: &Path) -> Command {
    Command::new(env!("CARGO_BIN_EXE_moor"))
        .current_dir(dir)
        .env_remove("MOOR_BOOK")
        .env_remove("MOOR_MGMT")
        .env_remove("MOOR_REPOSITORY")
        .env_remove("XDG_STATE_HOME")
        .env_remove("XDG_CACHE_HOME")
        .env("HOME", dir)
        .env("COLUMNS", "100")
}

/// A copy of `examples/<name>` in a fresh directory.
fn example(name: &str) -> tempfile::TempDir {
    mooring_testkit::copy_tree(&examples().join(name))
}

fn examples() -> PathBuf {
    mooring_testkit::workspace_root().join("examples")
}

/// A fresh directory.
fn fresh() -> tempfile::TempDir {
    tempfile::tempdir().unwrap()
}

/// What a run wrote to stdout, and how it ended.
fn stdout(command: Command) -> (String, i32) {
    let output = command.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    (text, output.status.code().unwrap())
}
