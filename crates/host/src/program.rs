//! Runs one program of the node, such as `nft`, `ovs-vsctl` or a CNI plugin, and never waits for it without a bound.
//!
//! Called by the bridge and ovs plugins and by the doctor. The arguments go straight to `execve`, never through a shell. Easy to get wrong:
//! a runtime's `PATH` often lacks the `sbin` directories, where these programs live; so those are searched too.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use thiserror::Error;

/// Searched after `PATH`.
const USUAL: [&str; 4] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// What a program said, whatever its exit code.
#[derive(Debug)]
pub struct Said {
    /// Whether it ended with 0.
    pub ok: bool,
    /// Its standard output.
    pub stdout: String,
    /// Its standard error.
    pub stderr: String,
}

/// Why there is no answer at all.
#[derive(Debug, Error)]
pub enum ProgramError {
    /// It is not installed.
    #[error("the program {0} is not on this node: it is neither in PATH nor in /usr/sbin")]
    Absent(String),
    /// It could not be started.
    #[error("cannot run {program}")]
    Run {
        /// Which.
        program: String,
        /// Why.
        source: io::Error,
    },
    /// It was ended at its bound.
    #[error("{program} did not answer within {} s", bound.as_secs_f32())]
    Late {
        /// Which.
        program: String,
        /// After how long.
        bound: Duration,
    },
}

/// Where a program is.
pub fn find(name: &str) -> Result<PathBuf, ProgramError> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    find_in(&path, name).ok_or_else(|| ProgramError::Absent(name.to_owned()))
}

fn find_in(path: &OsStr, name: &str) -> Option<PathBuf> {
    let usual = USUAL.iter().map(PathBuf::from);
    let places = std::env::split_paths(path).filter(|dir| dir.is_absolute());
    places
        .chain(usual)
        .map(|dir| dir.join(name))
        .find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Runs a program to its end, with `stdin` as its input; kills it at the bound.
pub fn run<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    stdin: &[u8],
    bound: Duration,
) -> Result<Said, ProgramError> {
    run_with(program, args, &[], stdin, bound)
}

/// The same with variables beside those of our own environment.
pub fn run_with<S: AsRef<OsStr>>(
    program: &Path,
    args: &[S],
    variables: &[(&str, &OsStr)],
    stdin: &[u8],
    bound: Duration,
) -> Result<Said, ProgramError> {
    let name = || program.display().to_string();
    let failed = |source| ProgramError::Run {
        program: name(),
        source,
    };
    let deadline = Instant::now() + bound;
    let args: Vec<OsString> = args.iter().map(|a| a.as_ref().to_owned()).collect();
    let mut command = Command::new(program);
    command
        .args(args)
        // Messages are compared with the kernel's own words.
        .env("LC_ALL", "C")
        .envs(variables.iter().copied())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut child = loop {
        match command.spawn() {
            // Somebody is writing it at this moment: an installer that copies, or a fork of ours that has not exec'd yet.
            Err(error)
                if error.kind() == io::ErrorKind::ExecutableFileBusy
                    && Instant::now() < deadline =>
            {
                thread::sleep(Duration::from_millis(5));
            }
            spawned => break spawned.map_err(failed)?,
        }
    };
    let mut input = child.stdin.take().expect("stdin was piped");
    let stdin = stdin.to_vec();
    // A program that stops reading closes its end, which is no failure of ours.
    thread::spawn(move || drop(input.write_all(&stdin)));
    let (tell, told) = mpsc::channel();
    listen(child.stdout.take().expect("stdout was piped"), true, &tell);
    listen(child.stderr.take().expect("stderr was piped"), false, &tell);
    let (mut stdout, mut stderr) = (String::new(), String::new());
    for _ in 0..2 {
        let left = deadline.saturating_duration_since(Instant::now());
        match told.recv_timeout(left) {
            Ok((true, text)) => stdout = text,
            Ok((false, text)) => stderr = text,
            Err(_) => return Err(end(child, name(), bound)),
        }
    }
    loop {
        match child.try_wait().map_err(failed)? {
            Some(status) => return Ok(said(status, stdout, stderr)),
            None if Instant::now() >= deadline => return Err(end(child, name(), bound)),
            // Both its pipes are closed: it is on its way out.
            None => thread::sleep(Duration::from_micros(200)),
        }
    }
}

fn said(status: ExitStatus, stdout: String, stderr: String) -> Said {
    Said {
        ok: status.success(),
        stdout,
        stderr,
    }
}

fn end(mut child: Child, program: String, bound: Duration) -> ProgramError {
    let _ = child.kill();
    let _ = child.wait();
    ProgramError::Late { program, bound }
}

fn listen(mut pipe: impl Read + Send + 'static, out: bool, tell: &mpsc::Sender<(bool, String)>) {
    let tell = tell.clone();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let _ = pipe.read_to_end(&mut bytes);
        let _ = tell.send((out, String::from_utf8_lossy(&bytes).into_owned()));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, stdin: &str, bound: Duration) -> Result<Said, ProgramError> {
        run(
            Path::new("/bin/sh"),
            &["-c", script],
            stdin.as_bytes(),
            bound,
        )
    }

    #[test]
    fn a_program_is_answered_for_with_both_its_streams_and_its_input() {
        let said = sh("cat; echo aside >&2; exit 3", "in", Duration::from_secs(20)).unwrap();
        assert!(!said.ok);
        assert_eq!(
            (said.stdout.as_str(), said.stderr.as_str()),
            ("in", "aside\n")
        );
    }

    #[test]
    fn a_program_that_hangs_is_ended_at_the_bound() {
        let outcome = sh("exec sleep 600", "", Duration::from_millis(50));
        assert!(
            matches!(outcome, Err(ProgramError::Late { .. })),
            "{outcome:?}"
        );
        let outcome = sh(
            "exec >&- 2>&-; exec sleep 600",
            "",
            Duration::from_millis(50),
        );
        assert!(
            matches!(outcome, Err(ProgramError::Late { .. })),
            "{outcome:?}"
        );
    }

    #[test]
    fn a_program_is_found_in_path_then_where_distributions_put_it_and_never_in_a_relative_directory()
     {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("sh");
        std::fs::copy("/bin/sh", &file).unwrap();
        assert_eq!(find_in(dir.path().as_os_str(), "sh"), Some(file.clone()));
        assert!(find_in(OsStr::new(""), "sh").is_some());
        assert_eq!(find_in(OsStr::new("."), "no-such-program"), None);
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        assert_ne!(find_in(dir.path().as_os_str(), "sh"), Some(file));
    }
}
