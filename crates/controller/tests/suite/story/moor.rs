//! `moor`, as a person types it. It is built together with the other programs of the workspace.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The program beside the one under test; None, counted, where only this package was built.
pub(super) fn program() -> Option<PathBuf> {
    let beside = Path::new(env!("CARGO_BIN_EXE_moor-controller")).with_file_name("moor");
    if beside.is_file() {
        return Some(beside);
    }
    mooring_testkit::skip(
        "moor-not-built",
        "the story needs moor: cargo build -p mooring-cli",
    );
    None
}

/// Runs it in a directory; a failure fails the test.
#[track_caller]
pub(super) fn run(program: &Path, dir: &Path, args: &[&str]) -> String {
    let said = Command::new(program)
        .args(args)
        .current_dir(dir)
        .env("HOME", dir)
        .env("XDG_CACHE_HOME", dir.join("cache"))
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (stdout, stderr) = (text(&said.stdout), text(&said.stderr));
    assert!(said.status.success(), "moor {args:?}\n{stdout}{stderr}");
    stdout
}
