//! Programs that end: one that takes too long is killed, with all that it started.
//!
//! Whoever runs a program for a test calls [`bounded`]; a machine, whose console is read while it runs, has a [`Clock`]. The bound is ours and not the program `timeout`'s: in a kernel of our own the
//! start of a program is what costs, and this one would be started for every other.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use crate::Said;

/// Kills a process with its group, unless it is stopped in time.
pub(crate) struct Clock {
    done: Sender<()>,
    thread: JoinHandle<bool>,
}

impl Clock {
    /// For a child that leads a group of its own.
    pub(crate) fn of(child: &Child, bound: Duration) -> Self {
        let group = Pid::from_child(child);
        let (done, waits) = mpsc::channel();
        let thread = std::thread::spawn(move || {
            let late = waits.recv_timeout(bound) == Err(RecvTimeoutError::Timeout);
            if late {
                let _ = kill_process_group(group, Signal::KILL);
            }
            late
        });
        Self { done, thread }
    }

    /// Stops it; whether it had to kill.
    pub(crate) fn stop(self) -> bool {
        drop(self.done);
        self.thread.join().unwrap_or_default()
    }
}

/// Runs it with this text on its stdin and waits for its end. One that was killed has no code.
pub(crate) fn bounded(command: &mut Command, stdin: &str, bound: Duration) -> io::Result<Said> {
    let mut child = command
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let clock = Clock::of(&child, bound);
    let pipe = child.stdin.take().filter(|_| !stdin.is_empty());
    let output = std::thread::scope(|scope| {
        // From a thread: a program that writes much before it reads on would wait for us, and we for it.
        if let Some(mut pipe) = pipe {
            // A program that does not read its stdin closes it, which is no failure.
            scope.spawn(move || _ = pipe.write_all(stdin.as_bytes()));
        }
        child.wait_with_output()
    });
    let late = clock.stop();
    let mut said = Said::from(output?);
    if late {
        let seconds = bound.as_secs();
        let _ = writeln!(said.stderr, "\nit was ended after {seconds} s");
    }
    Ok(said)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, stdin: &str, bound: u64) -> Said {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        bounded(&mut command, stdin, Duration::from_secs(bound)).unwrap()
    }

    #[test]
    fn a_program_says_what_it_says_whether_it_reads_its_stdin_or_not() {
        let said = run("cat; echo why >&2; exit 3", "in\n", 60);
        assert_eq!(said.code, Some(3));
        assert_eq!((&*said.stdout, &*said.stderr), ("in\n", "why\n"));
        let long = "x".repeat(1 << 20);
        assert_eq!(run("exec <&-; echo out", &long, 60).stdout, "out\n");
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let said = run("sleep 600 & echo here; wait", "", 1);
        assert_eq!(said.code, None);
        assert_eq!(said.stdout, "here\n");
        assert!(said.stderr.contains("ended after 1 s"), "{}", said.stderr);
    }
}
