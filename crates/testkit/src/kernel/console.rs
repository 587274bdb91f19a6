//! The console of a machine: read line by line while it runs, until it says how the command ended.
//!
//! Easy to get wrong: kernels end lines with a carriage return and may say something of their own between two lines of
//! ours, also after the end; what stands outside `begin` and `exit` is kept apart, to be shown when something is wrong.

use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};

use super::MARK;
use crate::bounded::Clock;
use crate::{Said, must};

/// What came out.
#[derive(Debug, Default)]
pub(crate) struct Console {
    /// What the command printed.
    pub(crate) said: String,
    /// What the machine printed before and after.
    pub(crate) machine: String,
    /// Lines of the guest's log of skips.
    pub(crate) skips: Vec<String>,
    /// The command's exit code, once it ended.
    pub(crate) code: Option<i32>,
    began: bool,
}

impl Console {
    /// One line, without its end. Whether more is to be expected.
    pub(super) fn line(&mut self, line: &str) -> bool {
        let rest = line.strip_prefix(MARK).map(str::trim_start);
        match rest.map(|rest| rest.split_once(' ').unwrap_or((rest, ""))) {
            Some(("begin", _)) => self.began = true,
            Some(("skip", skip)) => self.skips.push(skip.to_owned()),
            Some(("exit", code)) => {
                self.code = code.parse().ok();
                return false;
            }
            // What else is marked is the command's own, and its caller's to read.
            _ => {
                let to = if self.began {
                    &mut self.said
                } else {
                    &mut self.machine
                };
                to.push_str(line);
                to.push('\n');
            }
        }
        true
    }
}

impl From<Console> for Said {
    fn from(console: Console) -> Self {
        Self {
            code: console.code,
            stdout: console.said,
            stderr: console.machine,
        }
    }
}

/// A machine that runs: it goes, with all its processes, when this value does.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        // Nothing in the machine is worth a clean halt: its files are ours, read-only.
        let _ = kill_process_group(Pid::from_child(&self.0), Signal::KILL);
        let _ = self.0.wait();
    }
}

/// Runs the machine and reads its console until the command ends, or `bound` is over; each line is handed on as it comes.
///
/// The machine also goes when this process is killed. Its own complaints, which it makes on stderr, go to a file.
#[track_caller]
pub(crate) fn watch(
    machine: &Command,
    complaints: &Path,
    bound: Duration,
    mut each: impl FnMut(&str),
) -> Console {
    let file = must(File::create(complaints), "make", complaints);
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL"]);
    command.arg(machine.get_program()).args(machine.get_args());
    if let Some(dir) = machine.get_current_dir() {
        command.current_dir(dir);
    }
    command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(file);
    let mut running = match command.spawn() {
        Ok(child) => Running(child),
        Err(e) => panic!("cannot start setpriv: {e}"),
    };
    let stdout = running.0.stdout.take().expect("stdout was piped");
    let clock = Clock::of(&running.0, bound);
    let mut console = Console::default();
    read(BufReader::new(stdout), &mut console, &mut each);
    // First the clock, so that it cannot end somebody who got this number later.
    let late = clock.stop();
    drop(running);
    let said = must(fs::read(complaints), "read", complaints);
    console.machine.push_str(&String::from_utf8_lossy(&said));
    if late {
        let _ = writeln!(
            console.machine,
            "the machine was ended after {} s",
            bound.as_secs()
        );
    }
    console
}

fn read(mut lines: impl BufRead, console: &mut Console, each: &mut impl FnMut(&str)) {
    let mut bytes = Vec::new();
    while matches!(lines.read_until(b'\n', &mut bytes), Ok(1..)) {
        let line = String::from_utf8_lossy(&bytes);
        let line = line.trim_end_matches(['\r', '\n']);
        each(line);
        if !console.line(line) {
            return;
        }
        bytes.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(script: &str, bound: u64) -> Console {
        let complaints = tempfile::NamedTempFile::new().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        watch(
            &command,
            complaints.path(),
            Duration::from_secs(bound),
            |_| {},
        )
    }

    /// Gone, or dead and waiting for its parent: such a one has no command line.
    fn assert_goes(process: &str) {
        let line = format!("/proc/{process}/cmdline");
        let since = std::time::Instant::now();
        while fs::read(&line).is_ok_and(|line| !line.is_empty()) {
            assert!(since.elapsed().as_secs() < 20, "{process} is still there");
            std::thread::yield_now();
        }
    }

    #[test]
    fn what_the_command_said_is_told_from_what_the_machine_said() {
        let mut console = Console::default();
        let lines = [
            "Linux version",
            "@moor begin",
            "hello",
            "@moor test a::uml::b",
            "@moor skip exe main no-network x",
        ];
        assert!(lines.iter().all(|line| console.line(line)));
        assert!(!console.line("@moor exit 3"));
        assert_eq!(console.code, Some(3));
        assert_eq!(console.said, "hello\n@moor test a::uml::b\n");
        assert_eq!(console.machine, "Linux version\n");
        assert_eq!(console.skips, ["exe main no-network x"]);
    }

    #[test]
    fn a_machine_that_ends_without_a_word_has_no_code() {
        let console = run("echo @moor begin; echo panic; echo why >&2", 60);
        assert_eq!(console.code, None);
        assert_eq!((&*console.said, &*console.machine), ("panic\n", "why\n"));
    }

    #[test]
    fn a_machine_goes_with_its_last_word_and_so_does_what_it_started() {
        let console = run(
            "sleep 600 & echo @moor begin; echo $!; echo @moor exit 0; wait",
            60,
        );
        assert_eq!(console.code, Some(0));
        assert_goes(console.said.trim());
    }

    #[test]
    fn a_machine_that_hangs_is_ended_after_its_bound() {
        let console = run("echo @moor begin; echo $$; exec sleep 600", 1);
        assert_eq!(console.code, None);
        assert!(
            console.machine.contains("ended after 1 s"),
            "{}",
            console.machine
        );
        assert_goes(console.said.trim());
    }
}
