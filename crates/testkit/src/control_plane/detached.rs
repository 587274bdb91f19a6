//! Processes that outlive whoever started them, for `cargo xtask up` and `down`: each has `<name>.pid` in its directory.
//!
//! Easy to get wrong: a pid is somebody else's after a while. The file holds the process's start time too, which the
//! kernel never gives twice for one pid since the machine was started; without a match nobody is stopped.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use super::Failure;
use super::certs::write;
use super::process::signal;

/// How long a process may take to end by itself.
const BOUND: Duration = Duration::from_secs(10);
const PAUSE: Duration = Duration::from_millis(50);

/// A process that was started into a directory, whether or not it still runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detached {
    /// The component's name.
    pub name: String,
    /// Its process id.
    pub pid: u32,
    started: String,
}

/// Notes a process that was just started.
pub(super) fn record(dir: &Path, name: &str, pid: u32) -> Result<(), Failure> {
    let started = start_time(pid).unwrap_or_default();
    write(&file(dir, name), &format!("{pid} {started}\n"))
}

fn file(dir: &Path, name: &str) -> PathBuf {
    dir.join(format!("{name}.pid"))
}

impl Detached {
    /// Those of a directory, by name. An absent directory has none.
    pub fn of(dir: &Path) -> Vec<Self> {
        let entries = fs::read_dir(dir).into_iter().flatten();
        let mut all: Vec<Self> = entries
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let name = path.file_name()?.to_str()?.strip_suffix(".pid")?.to_owned();
                let text = fs::read_to_string(&path).ok()?;
                let (pid, started) = text.trim().split_once(' ')?;
                Some(Self {
                    name,
                    pid: pid.parse().ok()?,
                    started: started.to_owned(),
                })
            })
            .collect();
        all.sort_by(|a, b| a.name.cmp(&b.name));
        all
    }

    /// Whether that very process runs, and not a later one with its pid.
    pub fn is_running(&self) -> bool {
        start_time(self.pid).is_some_and(|started| started == self.started)
    }

    /// Asks it to end, and ends it when it does not. One that has ended is success.
    pub fn stop(&self) -> Result<(), Failure> {
        for how in [Signal::TERM, Signal::KILL] {
            if self.is_running() {
                signal(self.pid, how);
            }
            let end = Instant::now() + BOUND;
            while self.is_running() && Instant::now() < end {
                std::thread::sleep(PAUSE);
            }
        }
        if self.is_running() {
            let Self { name, pid, .. } = self;
            return Err(Failure::new(format!("{name} does not end (pid {pid})")));
        }
        Ok(())
    }
}

/// In ticks since the machine was started. None for one that has ended, also while nobody has asked for its exit code.
fn start_time(pid: u32) -> Option<String> {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in brackets may itself hold a bracket and spaces: columns are counted from the last one, which is the third.
    let mut columns = stat.rsplit_once(") ")?.1.split(' ');
    let state = columns.next()?;
    (!["Z", "X"].contains(&state)).then_some(())?;
    columns.nth(18).map(str::to_owned)
}

/// Whether a process has not ended.
pub(super) fn is_running(pid: u32) -> bool {
    start_time(pid).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_stopped_and_one_with_its_pid_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let mut child = std::process::Command::new("sleep")
            .arg("600")
            .spawn()
            .unwrap();
        record(dir.path(), "sleep", child.id()).unwrap();
        // The same pid with another start time: a later process.
        fs::write(dir.path().join("later.pid"), format!("{} 1\n", child.id())).unwrap();
        let all = Detached::of(dir.path());
        let [later, ours] = &all[..] else {
            panic!("{all:?}");
        };
        assert!(ours.is_running());
        assert!(!later.is_running());
        later.stop().unwrap();
        assert!(ours.is_running(), "it was not the one that was noted");
        ours.stop().unwrap();
        assert!(!ours.is_running());
        assert!(!child.wait().unwrap().success());
    }
}
