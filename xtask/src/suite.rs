//! Runs the tests, shows their output as it comes, and counts: passed, failed, skipped and why.
//!
//! `cargo xtask test` and `ci` call this. A test that skips itself has *passed* for the harness, and one that runs in
//! a kernel of its own was *ignored*; two logs, which the testkit writes, tell them apart. Reasons that
//! `ci/allowed-skips` does not list fail the run.

mod count;
mod queue;

use std::fs;
use std::io::Write as _;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Arc, Mutex, mpsc};

use anyhow::{Context as _, Result};

pub(crate) use count::Summary;

use crate::fuzz;
use crate::setup;
use crate::shell::{cargo, root, show};

/// Runs the tests of the workspace, or of one room. An error means that the run itself broke; failed tests
/// are in the summary.
pub(crate) fn run(room: Option<&str>, soak: bool) -> Result<Summary> {
    let allowed = fs::read_to_string(root().join("ci/allowed-skips"))
        .context("cannot read ci/allowed-skips")?;
    let mut summary = Summary::new(count::reasons(&allowed));
    setup::for_tests(room);
    run_tests(room, &[], &mut summary)?;
    if soak {
        let long = summary.long_runs();
        let skips = long.others.iter().flat_map(|name| ["--skip", name]);
        let args = ["--", "--ignored", "--exact"].into_iter().chain(skips);
        if long.any {
            run_tests(room, &args.collect::<Vec<_>>(), &mut summary)?;
        }
        for target in fuzz::targets(room) {
            let outcome = fuzz::run(target);
            summary.add_fuzz(target.name, outcome);
        }
    }
    Ok(summary)
}

fn run_tests(room: Option<&str>, which: &[&str], summary: &mut Summary) -> Result<()> {
    let package = match room {
        None => None,
        Some("xtask") => Some("xtask".to_owned()),
        Some(room) => Some(format!("mooring-{room}")),
    };
    let mut args = vec!["test", "--no-fail-fast"];
    match &package {
        Some(package) => args.extend(["-p", package]),
        None => args.push("--workspace"),
    }
    args.extend(which);
    let logs = Logs::new()?;
    if room.is_none() && which.is_empty() {
        let well = run_all(&logs, summary)?;
        return logs.finish(summary, "cargo test --workspace", well);
    }
    let mut command = cargo(&args);
    let shown = show(&command);
    logs.tell(&mut command);
    let (tell, told) = mpsc::channel();
    let hand = std::thread::spawn(move || queue::work(&Mutex::new([command].into()), &tell));
    listen(&told, summary);
    let well = hand.join().expect("a hand does not panic")?;
    logs.finish(summary, &shown, well)
}

/// Builds first, then runs with two hands.
fn run_all(logs: &Logs, summary: &mut Summary) -> Result<bool> {
    let mut queue = queue::of(&queue::build()?);
    for command in &mut queue {
        logs.tell(command);
    }
    let queue = Arc::new(Mutex::new(queue));
    let (tell, told) = mpsc::channel();
    let hands = [(); 2].map(|()| {
        let (queue, tell) = (Arc::clone(&queue), tell.clone());
        std::thread::spawn(move || queue::work(&queue, &tell))
    });
    drop(tell);
    listen(&told, summary);
    let mut well = true;
    for hand in hands {
        well &= hand.join().expect("a hand does not panic")?;
    }
    Ok(well)
}

/// Shows and counts every line until all hands are done.
fn listen(told: &mpsc::Receiver<String>, summary: &mut Summary) {
    for line in told {
        // A closed terminal must not stop the tests half-way.
        let _ = std::io::stdout().write_all(line.as_bytes());
        summary.read_line(&line);
    }
}

/// What tests write beside the harness.
struct Logs {
    skips: Log,
    kernels: Log,
}

impl Logs {
    fn new() -> Result<Self> {
        let (skips, kernels) = (Log::new("skips")?, Log::new("kernels")?);
        Ok(Self { skips, kernels })
    }

    fn tell(&self, command: &mut Command) {
        command
            .env("MOOR_SKIP_LOG", &self.skips.path)
            .env("MOOR_KERNEL_LOG", &self.kernels.path);
    }

    fn finish(&self, summary: &mut Summary, shown: &str, well: bool) -> Result<()> {
        // In this order: a test that skips itself in its kernel was counted there.
        summary.read_kernels(&self.kernels.read()?);
        summary.read_skips(&self.skips.read()?);
        summary.finish(shown, well);
        Ok(())
    }
}

/// Where tests write what the harness does not know; gone when the run ends.
struct Log {
    path: PathBuf,
}

impl Log {
    fn new(what: &str) -> Result<Self> {
        let dir = root().join("target/xtask");
        fs::create_dir_all(&dir).with_context(|| format!("cannot make {}", dir.display()))?;
        let path = dir.join(format!("{what}-{}.log", std::process::id()));
        fs::write(&path, "").with_context(|| format!("cannot write {}", path.display()))?;
        Ok(Self { path })
    }

    fn read(&self) -> Result<String> {
        fs::read_to_string(&self.path)
            .with_context(|| format!("cannot read {}", self.path.display()))
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}
