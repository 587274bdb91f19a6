//! Plugins that are not ours: found in `CNI_PATH`, started with the runtime's own bytes and environment.
//!
//! Called for foreign IPAM types. Easy to get wrong: the delegate gets the configuration's text as it came,
//! not what we understood of it, and its error goes to the runtime with its own code. It differs from the
//! node's programs (`mooring_host::program`) in that: the environment is exactly ours, its complaints are
//! forwarded while it runs, and a child of its own that keeps a pipe open holds nobody up.

use std::fs::File;
use std::io::{self, Read, Seek as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use mooring_attach::cni::{CniError, CniResult, Verb, check_plugin};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::call::Call;
use crate::log;

/// How long a delegate may take. A runtime gives up on a pod after some minutes; we end before it does, so
/// that the user gets our message and the addresses are released.
const BOUND: Duration = Duration::from_secs(200);

/// An installer that copies over a running program makes exec fail for a moment ("text file busy").
const BUSY_TRIES: u32 = 20;
const BUSY_PAUSE: Duration = Duration::from_millis(100);

/// A delegate's answer, and how much of its complaints ends in our error.
const MAX_ANSWER: u64 = 8 << 20;
const MAX_COMPLAINT: usize = 2000;

/// A delegate's ADD.
pub(crate) fn add(call: &Call, name: &str) -> Result<CniResult, CniError> {
    let answer = exec(call, name, Verb::Add)?;
    CniResult::parse_answer(&answer, call.config().version)
        .map_err(|e| e.while_doing(format_args!("delegate {name}")))
}

/// Any other verb of a delegate; what it prints on success is ignored.
pub(crate) fn run(call: &Call, name: &str, verb: Verb) -> Result<(), CniError> {
    exec(call, name, verb).map(|_| ())
}

/// The delegate's program: the first regular file of that name in `CNI_PATH`.
fn look_up(call: &Call, name: &str) -> Result<PathBuf, CniError> {
    check_plugin("type", name)?;
    let dirs = &call.request.path;
    let program = |path: &PathBuf| {
        let meta = path.metadata();
        meta.is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
    };
    let found = dirs.iter().map(|dir| dir.join(name)).find(program);
    found.ok_or_else(|| {
        let dirs: Vec<String> = dirs.iter().map(|d| d.display().to_string()).collect();
        CniError::internal(format!(
            "failed to find plugin {name:?} in path [{}]",
            dirs.join(" ")
        ))
        .with_details(
            "install it there, or link moor-cni under that name if it is one of its plugins",
        )
    })
}

fn exec(call: &Call, name: &str, verb: Verb) -> Result<Vec<u8>, CniError> {
    let program = look_up(call, name)?;
    let trouble = |doing: &str, e: &dyn std::fmt::Display| {
        CniError::io(format!("{doing} delegate {}", program.display()), e)
    };
    // Files in memory on both ends: no pipe can fill up, so nothing has to be read while it runs.
    let input = memory(call.config().text().as_bytes()).map_err(|e| trouble("feeding", &e))?;
    let mut output = memory(b"").map_err(|e| trouble("hearing", &e))?;
    let mut child = start(|| {
        let mut command = Command::new(&program);
        command.env("CNI_COMMAND", verb.as_str());
        command
            .stdin(input.try_clone()?)
            .stdout(output.try_clone()?);
        command.stderr(Stdio::piped()).spawn()
    })
    .map_err(|e| trouble("starting", &e))?;
    let complaint = child.stderr.take().map(forward);
    let status = wait(child, BOUND).map_err(|e| trouble("waiting for", &e))?;
    let complaint = complaint.map(tail_of).unwrap_or_default();
    let Some(status) = status else {
        return Err(CniError::try_again(format!(
            "delegate {} did not end within {} s and was killed",
            program.display(),
            BOUND.as_secs()
        ))
        .with_details(complaint));
    };
    let mut answer = Vec::new();
    output
        .rewind()
        .and_then(|()| (&mut output).take(MAX_ANSWER + 1).read_to_end(&mut answer))
        .map_err(|e| trouble("hearing", &e))?;
    if answer.len() as u64 > MAX_ANSWER {
        return Err(CniError::decode(
            format!("the answer of delegate {name}"),
            format!("it is larger than {MAX_ANSWER} bytes"),
        ));
    }
    if status.success() {
        return Ok(answer);
    }
    Err(failure(name, status, &answer, &complaint))
}

/// The delegate's own error when it printed one; else what there is.
fn failure(name: &str, status: ExitStatus, answer: &[u8], complaint: &str) -> CniError {
    let said = serde_json::from_slice(answer).ok();
    if let Some(error) = said.as_ref().and_then(CniError::from_json) {
        return error;
    }
    let mut error = CniError::internal(format!("delegate {name} failed with {status}"));
    let text = String::from_utf8_lossy(answer);
    for part in [text.trim(), complaint.trim()] {
        let start = part.len().saturating_sub(MAX_COMPLAINT);
        let start = (start..=part.len()).find(|i| part.is_char_boundary(*i));
        error = error.with_details(&part[start.unwrap_or(0)..]);
    }
    error
}

fn memory(bytes: &[u8]) -> io::Result<File> {
    let fd = memfd_create(c"moor-cni", MFdFlags::MFD_CLOEXEC)?;
    let mut file = File::from(fd);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

fn start(mut spawn: impl FnMut() -> io::Result<Child>) -> io::Result<Child> {
    for _ in 0..BUSY_TRIES {
        match spawn() {
            Err(e) if e.kind() == io::ErrorKind::ExecutableFileBusy => thread::sleep(BUSY_PAUSE),
            other => return other,
        }
    }
    spawn()
}

/// Copies the delegate's complaints to ours while it runs, and keeps their end.
fn forward(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (tell, heard) = mpsc::channel();
    thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(n) = from.read(&mut buffer) {
            let Some(part) = buffer.get(..n).filter(|p| !p.is_empty()) else {
                return;
            };
            let _ = io::stderr().lock().write_all(part);
            if tell.send(part.to_vec()).is_err() {
                return;
            }
        }
    });
    heard
}

/// What was complained, once the delegate has ended. A grandchild that keeps the pipe open must not hold us.
fn tail_of(heard: mpsc::Receiver<Vec<u8>>) -> String {
    let mut text = Vec::new();
    while let Ok(part) = heard.recv_timeout(Duration::from_millis(200)) {
        text.extend(part);
        let extra = text.len().saturating_sub(MAX_COMPLAINT);
        text.drain(..extra);
    }
    String::from_utf8_lossy(&text).into_owned()
}

/// Waits at most that long; then the delegate is killed, and `None` says so.
fn wait(mut child: Child, bound: Duration) -> io::Result<Option<ExitStatus>> {
    let pid = Pid::from_raw(i32::try_from(child.id()).map_err(io::Error::other)?);
    let (tell, ended) = mpsc::channel();
    thread::spawn(move || tell.send(child.wait()));
    if let Ok(status) = ended.recv_timeout(bound) {
        return status.map(Some);
    }
    // Nobody has waited for it yet, so the number is still its own.
    if let Err(e) = kill(pid, Signal::SIGKILL) {
        log::say(format_args!("moor-cni: killing delegate {pid}: {e}"));
    }
    let _ = ended.recv_timeout(Duration::from_secs(5));
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn busy() -> io::Error {
        io::Error::from(io::ErrorKind::ExecutableFileBusy)
    }

    #[test]
    fn a_program_that_is_being_copied_is_tried_again_and_not_for_ever() {
        let mut tries = 0;
        let child = start(|| {
            tries += 1;
            if tries < 3 {
                Err(busy())
            } else {
                Command::new("true").spawn()
            }
        });
        assert!(child.expect("started").wait().is_ok_and(|s| s.success()));
        assert_eq!(tries, 3);
        let mut tries = 0;
        let error = start(|| {
            tries += 1;
            Err(io::Error::from(io::ErrorKind::NotFound))
        });
        assert_eq!(
            (error.map_err(|e| e.kind()).err(), tries),
            (Some(io::ErrorKind::NotFound), 1)
        );
    }

    #[test]
    fn a_delegate_that_does_not_end_is_killed_and_one_that_ends_is_not_waited_for() {
        let sleeper = Command::new("sleep").arg("1000").spawn().expect("sleep");
        let pid = sleeper.id();
        let late = wait(sleeper, Duration::from_millis(20)).expect("waited");
        assert!(late.is_none());
        // Killed and waited for, so the kernel knows it no more.
        assert!(!std::path::Path::new(&format!("/proc/{pid}")).exists());
        let quick = Command::new("true").spawn().expect("true");
        let status = wait(quick, BOUND).expect("waited");
        assert!(status.is_some_and(|status| status.success()));
    }

    #[test]
    fn what_a_failed_delegate_said_is_told_and_its_own_error_comes_first() {
        let status = Command::new("false").status().expect("false");
        let own = failure(
            "x",
            status,
            br#"{"code": 117, "msg": "no", "details": "d"}"#,
            "noise",
        );
        assert_eq!(own, CniError::new(117, "no").with_details("d"));
        let noise = "\u{e4}".repeat(MAX_COMPLAINT);
        let other = failure("x", status, b"half an ans", &noise);
        assert_eq!(other.code, CniError::INTERNAL);
        assert!(other.details.starts_with("half an ans; \u{e4}"), "{other}");
        assert!(other.details.len() < 2 * MAX_COMPLAINT);
    }
}
