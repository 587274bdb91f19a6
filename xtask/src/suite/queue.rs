//! The whole suite by two hands that take from one queue: tests of the controllers mostly wait for an API server, most others
//! compute. One after the other they would take half as long again.
//!
//! ```text
//!  cargo test --workspace --no-run ─► executables ─► the longest first, the doc tests last ─┬─► one hand
//!                                                                                           └─► the other
//! ```
//!
//! Easy to get wrong: what cargo sets for a test it starts must be set here too: its directory is the package's.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{cargo, show};

/// The packages whose integration tests take minutes. Begun last, they would keep one hand busy and the other idle.
const LONG: [&str; 2] = ["crates/controller", "crates/cni"];

/// A test program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Program {
    executable: PathBuf,
    package: PathBuf,
    is_integration: bool,
}

impl Program {
    /// From one message of cargo; None for what is no test program.
    fn read(message: &str) -> Option<Self> {
        let message: Value = serde_json::from_str(message).ok()?;
        let text = |at: &str| message.pointer(at).and_then(Value::as_str);
        let is_test = message.pointer("/profile/test") == Some(&Value::Bool(true));
        if text("/reason") != Some("compiler-artifact") || !is_test {
            return None;
        }
        Some(Self {
            executable: text("/executable")?.into(),
            package: Path::new(text("/manifest_path")?).parent()?.to_owned(),
            is_integration: text("/target/kind/0") == Some("test"),
        })
    }

    fn is_long(&self) -> bool {
        self.is_integration && LONG.iter().any(|long| self.package.ends_with(long))
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.executable);
        command
            .current_dir(&self.package)
            .env("CARGO_MANIFEST_DIR", &self.package);
        command
    }
}

/// Builds everything and says what is to be run; an error is a build that failed.
pub(super) fn build() -> Result<Vec<Program>> {
    let mut command = cargo(&[
        "test",
        "--workspace",
        "--no-run",
        "--message-format=json-render-diagnostics",
    ]);
    let shown = show(&command);
    let output = command.stderr(Stdio::inherit()).output();
    let output = output.with_context(|| format!("cannot start `{shown}`"))?;
    anyhow::ensure!(output.status.success(), "`{shown}` failed");
    let messages = String::from_utf8_lossy(&output.stdout);
    Ok(messages.lines().filter_map(Program::read).collect())
}

/// What is to be run, in the order in which it is begun.
pub(super) fn of(programs: &[Program]) -> VecDeque<Command> {
    let (long, others): (Vec<_>, Vec<_>) = programs.iter().partition(|p| p.is_long());
    let tests = long.into_iter().chain(others).map(Program::command);
    let docs = cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]);
    tests.chain([docs]).collect()
}

/// Takes and runs until nothing is left; every line is told as it comes. Whether everything went well.
pub(super) fn work(queue: &Mutex<VecDeque<Command>>, tell: &Sender<String>) -> Result<bool> {
    let take = || {
        let mut queue = queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.pop_front()
    };
    let mut well = true;
    while let Some(mut command) = take() {
        let shown = show(&command);
        let child = command.stdout(Stdio::piped()).spawn();
        let mut child = child.with_context(|| format!("cannot start `{shown}`"))?;
        let stdout = child.stdout.take().context("the child has no stdout")?;
        let mut lines = BufReader::new(stdout);
        let mut line = Vec::new();
        // Nobody listens any more when the run broke elsewhere; the child still ends by itself.
        let _ = tell.send(format!("\n     Running {shown}\n"));
        while lines.read_until(b'\n', &mut line)? > 0 {
            let _ = tell.send(String::from_utf8_lossy(&line).into_owned());
            line.clear();
        }
        well &= child.wait()?.success();
    }
    Ok(well)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn test_programs_are_told_from_other_artifacts_and_the_long_ones_come_first() {
        let message = |package: &str, kind: &str, test: bool| {
            format!(
                r#"{{"reason":"compiler-artifact","manifest_path":"/w/{package}/Cargo.toml",
                "target":{{"kind":["{kind}"]}},"profile":{{"test":{test}}},"executable":"/w/target/x"}}"#
            )
        };
        let read =
            |package: &str, kind: &str, test: bool| Program::read(&message(package, kind, test));
        assert_eq!(read("crates/book", "lib", false), None);
        assert_eq!(
            Program::read(r#"{"reason":"build-finished","success":true}"#),
            None
        );
        assert!(read("crates/controller", "test", true).unwrap().is_long());
        assert!(!read("crates/controller", "bin", true).unwrap().is_long());
        let book = read("crates/book", "test", true).unwrap();
        assert!(!book.is_long());
        assert_eq!(book.package, Path::new("/w/crates/book"));
        let cni = read("crates/cni", "test", true).unwrap();
        let order: Vec<_> = of(&[book, cni])
            .iter()
            .map(|command| command.get_current_dir().map(Path::to_owned))
            .collect();
        let packages = ["/w/crates/cni", "/w/crates/book"].map(|at| Some(PathBuf::from(at)));
        assert_eq!(order[..2], packages);
        assert_eq!(order.len(), 3, "and the doc tests");
    }
}
