//! A process that ends with us, also when we end by SIGKILL.
//!
//! ```text
//!  test ──pipe──> sh, in a process group of its own ──> etcd, kube-apiserver, …
//! ```
//!
//! The shell reads the pipe. When it closes, for whatever reason, the shell kills its child and removes the directory;
//! a last line `keep` leaves the directory. Easy to get wrong: the kernel's own death signal (`PR_SET_PDEATHSIG`) is
//! sent when the *thread* that started the child ends, and a test is a thread.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::{Failure, detached};

/// `$1` the directory, `$2` the log, then the program.
const KEEPER: &str = r#"
dir=$1 log=$2
shift 2
"$@" </dev/null >>"$log" 2>&1 &
child=$!
echo "$child"
exec >/dev/null 2>&1
last=
while read -r line; do last=$line; done
kill -KILL "$child"
wait "$child"
[ "$last" = keep ] || rm -rf -- "$dir"
"#;

/// `$1` the log, then the program: it stays when we and the terminal go.
const DETACHED: &str = r#"
log=$1
shift
trap '' HUP
exec "$@" </dev/null >>"$log" 2>&1
"#;

/// What ends a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Life {
    /// Our own end, however it comes.
    Ours,
    /// Whoever reads its pid (`detached.rs`).
    Own,
}

/// One running component.
pub(super) struct Process {
    pub(super) name: &'static str,
    pub(super) pid: u32,
    pub(super) log: PathBuf,
    life: Life,
    shell: Child,
}

impl Process {
    /// Starts a program with nothing of our environment but `PATH`: no proxy, no kubeconfig, no home.
    pub(super) fn start(
        name: &'static str,
        program: &Path,
        args: &[String],
        dir: &Path,
        life: Life,
    ) -> Result<Self, Failure> {
        let log = dir.join(format!("{name}.log"));
        let mut command = Command::new("sh");
        command.arg("-c");
        match life {
            Life::Ours => command.args([KEEPER, "sh"]).arg(dir),
            Life::Own => command.args([DETACHED, "sh"]),
        };
        command
            .arg(&log)
            .arg(program)
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", dir)
            .process_group(0)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let cannot = |e| Failure::new(format!("cannot start {name}: {e}"));
        let mut shell = command.spawn().map_err(cannot)?;
        let stdout = shell.stdout.take().expect("stdout was piped");
        let pid = match life {
            Life::Own => shell.id(),
            Life::Ours => {
                let mut line = String::new();
                BufReader::new(stdout)
                    .read_line(&mut line)
                    .map_err(cannot)?;
                let pid = line.trim().parse().ok();
                pid.ok_or_else(|| Failure::new(format!("cannot start {name}: no pid")))?
            }
        };
        let process = Self {
            name,
            pid,
            log,
            life,
            shell,
        };
        if life == Life::Own {
            let noted = detached::record(dir, name, pid);
            return process.or_stop(noted);
        }
        Ok(process)
    }

    /// False as soon as it has ended, also while nobody has asked for its exit code.
    pub(super) fn is_running(&self) -> bool {
        detached::is_running(self.pid)
    }

    /// Ends it by SIGKILL and waits for that; its files stay.
    pub(super) fn stop(mut self) {
        match self.life {
            Life::Ours => {
                if let Some(mut pipe) = self.shell.stdin.take() {
                    let _ = pipe.write_all(b"keep\n");
                }
            }
            Life::Own => self.signal(Signal::KILL),
        }
        let _ = self.shell.wait();
    }

    /// Itself when all is well; otherwise it is stopped, and its files stay for whoever else lives on them.
    pub(super) fn or_stop(self, outcome: Result<(), Failure>) -> Result<Self, Failure> {
        match outcome {
            Ok(()) => Ok(self),
            Err(failure) => {
                self.stop();
                Err(failure)
            }
        }
    }

    /// Sends it a signal. One that has ended takes none.
    pub(super) fn signal(&self, how: Signal) {
        signal(self.pid, how);
    }

    /// The end of its log, for a message.
    pub(super) fn tail(&self) -> String {
        let text = fs::read(&self.log).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(25)..].join("\n")
    }
}

/// Sends a signal to a process; one that has ended takes none.
pub(super) fn signal(pid: u32, how: Signal) {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    if let Some(pid) = pid {
        let _ = kill_process(pid, how);
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.life == Life::Ours {
            // Without `keep`: the shell takes the directory along.
            drop(self.shell.stdin.take());
            let _ = self.shell.wait();
        }
    }
}
