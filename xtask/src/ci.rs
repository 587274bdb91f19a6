//! What CI runs, fastest first, so that a mistake is heard of early. A person can run the same.
//!
//! The tests come last: their closing line is then the last line of the run.

use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};

use crate::shell::{cargo, run as exec};
use crate::suite;

/// Rooms that must build with their own features alone: a workspace build unites the features of all rooms
/// and would hide one that is missing here, or one too many.
const LEAVES: &[&str] = &[
    "mooring-api",
    "mooring-ipam",
    "mooring-krm",
    "mooring-attach",
];

type Step = (&'static str, fn() -> Result<()>);

const STEPS: &[Step] = &[
    ("format", || exec(&mut cargo(&["fmt", "--all", "--check"]))),
    ("generated files", || crate::gen_all(true)),
    ("clippy", || {
        exec(&mut cargo(&[
            "clippy",
            "--workspace",
            "--all-targets",
            "--features",
            "xtask/bench,xtask/up",
            "--quiet",
            "--",
            "-D",
            "warnings",
        ]))
    }),
    ("leaf rooms alone", || {
        LEAVES.iter().try_for_each(|leaf| {
            exec(&mut cargo(&[
                "check",
                "--quiet",
                "--no-default-features",
                "-p",
                leaf,
            ]))
        })
    }),
    ("documentation", || {
        let mut doc = cargo(&["doc", "--workspace", "--no-deps", "--quiet"]);
        exec(doc.env("RUSTDOCFLAGS", "-Dwarnings"))
    }),
];

/// Stops at the first step that fails.
pub(crate) fn run() -> Result<()> {
    let begin = Instant::now();
    for (name, step) in STEPS {
        timed(name, step)?;
    }
    let summary = timed("tests", || suite::run(None, false))?;
    eprintln!("ci: everything {}", seconds(begin.elapsed()));
    println!("{summary}");
    summary.into_result()
}

fn timed<T>(name: &str, step: impl FnOnce() -> Result<T>) -> Result<T> {
    eprintln!("ci: {name} …");
    let begin = Instant::now();
    let outcome = step();
    let verdict = if outcome.is_ok() { "done" } else { "FAILED" };
    eprintln!("ci: {name} {verdict} {}", seconds(begin.elapsed()));
    outcome.with_context(|| format!("step \"{name}\""))
}

fn seconds(time: Duration) -> String {
    format!("({:.1} s)", time.as_secs_f64())
}
