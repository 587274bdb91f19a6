//! Skips that are counted. `cargo xtask test` reads the log, compares the reasons with `ci/allowed-skips`
//! and says in its last lines how many tests were skipped and why.
//!
//! Easy to get wrong: `println!` is captured by the test harness when the test passes, and a skipped test
//! passes. So the line goes to the real stdout, and to the file that `$MOOR_SKIP_LOG` names.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::PathBuf;

use crate::{must, workspace_root};

/// Says that something was not tested. `reason` is one word of `ci/allowed-skips`, such as `oracles-absent`.
///
/// The caller returns from the test afterwards.
pub fn skip(reason: &str, what: &str) {
    let what = what.replace(['\n', '\t'], " ");
    // A closed stdout must not turn a skip into a failure; the log is what counts.
    let _ = std::io::stdout().write_all(format!("SKIPPED {reason}: {what}\n").as_bytes());
    let Some(log) = std::env::var_os("MOOR_SKIP_LOG") else {
        return;
    };
    // The harness names a test's thread after the test: the reader counts tests, not lines.
    let exe = std::env::current_exe().unwrap_or_default();
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("main");
    let line = format!("{}\t{test}\t{reason}\t{what}\n", exe.display());
    // One write in append mode: tests of several processes do not tear each other's lines.
    let file = OpenOptions::new().create(true).append(true).open(&log);
    let written = file.and_then(|mut f| f.write_all(line.as_bytes()));
    must(written, "write the skip log", log.as_ref());
}

/// The directory of oracles: `$MOORING_ORACLES`, else `../shared/oracles` beside the workspace.
///
/// Absent is a counted skip, and `None`; the test returns. A variable that names no directory is a
/// mistake of whoever set it, and panics.
pub fn oracles(what: &str) -> Option<PathBuf> {
    if let Some(dir) = std::env::var_os("MOORING_ORACLES") {
        let dir = PathBuf::from(dir);
        assert!(
            dir.is_dir(),
            "$MOORING_ORACLES is {}, which is not a directory",
            dir.display()
        );
        return Some(dir);
    }
    let dir = workspace_root().join("../shared/oracles");
    if dir.is_dir() {
        return Some(dir);
    }
    skip("oracles-absent", what);
    None
}
