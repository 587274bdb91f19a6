//! The whole suite in two lanes: the controllers' tests, which mostly wait for an API server, beside everything else, which mostly
//! computes. One after the other they would take half as long again.
//!
//! ```text
//!  cargo test --workspace --no-run ─► executables ─┬─ one lane: the controllers' suite
//!                                                  └─ the other: all others in their order, then the doc tests
//! ```
//!
//! Easy to get wrong: what cargo sets for a test it starts must be set here too: its directory is the package's.

use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::Sender;

use anyhow::{Context as _, Result};
use serde_json::Value;

use crate::shell::{cargo, show};

/// The package whose integration tests have a lane of their own.
const WAITS: &str = "crates/controller";

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

    fn waits(&self) -> bool {
        self.is_integration && self.package.ends_with(WAITS)
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

/// Two lists of commands: each is run in its order, the two beside each other.
pub(super) fn lanes(programs: &[Program]) -> [Vec<Command>; 2] {
    let (waiting, others): (Vec<_>, Vec<_>) = programs.iter().partition(|p| p.waits());
    let mut others: Vec<Command> = others.into_iter().map(Program::command).collect();
    others.push(cargo(&["test", "--workspace", "--doc", "--no-fail-fast"]));
    [waiting.into_iter().map(Program::command).collect(), others]
}

/// Runs a lane; every line is told as it comes. Whether everything went well.
pub(super) fn run(lane: Vec<Command>, tell: &Sender<String>) -> Result<bool> {
    let mut well = true;
    for mut command in lane {
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
    fn test_programs_are_told_from_other_artifacts_and_go_to_their_lane() {
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
        assert!(read("crates/controller", "test", true).unwrap().waits());
        assert!(!read("crates/controller", "bin", true).unwrap().waits());
        let book = read("crates/book", "test", true).unwrap();
        assert!(!book.waits());
        assert_eq!(book.package, Path::new("/w/crates/book"));
    }
}
