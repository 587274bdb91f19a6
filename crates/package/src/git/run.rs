//! One call of `git`: a clean environment, a bound on time and size, an end of its whole process group, and words without secrets.
//!
//! Easy to get wrong: killing `git` does not end what it started (ssh, a remote helper, a server's hook over a path), so each call
//! has a process group of its own; and no background job may be left behind, because it would keep our pipes open.

use std::fmt::Write as _;
use std::io::{self, Read, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process_group};

use super::{Credentials, Error, Git, Repository};

/// What `git` may say on stderr before the rest is dropped.
const COMPLAINT: u64 = 64 * 1024;

/// A call that is being put together.
pub(super) struct Call<'a> {
    git: &'a Git,
    repository: &'a Repository,
    act: &'static str,
    dir: Option<PathBuf>,
    args: Vec<String>,
    input: Vec<u8>,
    limit: u64,
    remote: bool,
}

/// How a call ended.
#[derive(Debug)]
pub(super) struct Said {
    pub(super) ok: bool,
    pub(super) out: Vec<u8>,
    /// Without secrets.
    pub(super) complaint: String,
}

impl<'a> Call<'a> {
    /// `git ACT …`.
    pub(super) fn new(git: &'a Git, repository: &'a Repository, act: &'static str) -> Self {
        Self {
            git,
            repository,
            act,
            dir: None,
            args: Vec::new(),
            input: Vec::new(),
            limit: 64 << 20,
            remote: false,
        }
    }

    /// In this bare repository.
    pub(super) fn inside(mut self, dir: &Path) -> Self {
        self.dir = Some(dir.to_owned());
        self
    }

    pub(super) fn args<S: Into<String>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        self.args.extend(args.into_iter().map(Into::into));
        self
    }

    pub(super) fn input(mut self, input: Vec<u8>) -> Self {
        self.input = input;
        self
    }

    /// The answer may have this many bytes.
    pub(super) fn limit(mut self, bytes: u64) -> Self {
        self.limit = bytes;
        self
    }

    /// It talks to the server, and so gets the credentials.
    pub(super) fn remote(mut self) -> Self {
        self.remote = true;
        self
    }

    /// Runs it; a failure is an error.
    pub(super) fn run(self) -> Result<Vec<u8>, Error> {
        let (act, repository) = (self.act, self.repository);
        let remote = self.remote;
        let said = self.ask()?;
        if said.ok {
            return Ok(said.out);
        }
        Err(failed(act, repository, remote, &said.complaint))
    }

    /// Runs it; a failure is an answer.
    pub(super) fn ask(self) -> Result<Said, Error> {
        let url = self.repository.to_string();
        let mut child = self.command().spawn().map_err(|source| {
            if source.kind() == io::ErrorKind::NotFound {
                let program = self.git.program.clone();
                Error::NoGit { program }
            } else {
                let path = self.git.program.clone();
                let act = "run";
                Error::Disk { act, path, source }
            }
        })?;
        let timeout = Error::Timeout {
            act: self.act,
            url: url.clone(),
            seconds: self.git.timeout.as_secs(),
        };
        let deadline = Instant::now() + self.git.timeout;
        let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
        let (Some(mut stdin), Some(stdout), Some(stderr)) = pipes else {
            return Err(timeout);
        };
        let input = self.input.clone();
        // A child that ends early closes its end; its status then says why.
        thread::spawn(move || drop(stdin.write_all(&input)));
        let out = reader(stdout, self.limit);
        let complaint = reader(stderr, COMPLAINT);
        let mut end = Ending(Some(&mut child));
        let wait = |from: &mpsc::Receiver<io::Result<(Vec<u8>, bool)>>| {
            let left = deadline.saturating_duration_since(Instant::now());
            from.recv_timeout(left).ok().and_then(Result::ok)
        };
        let Some((out, whole)) = wait(&out) else {
            return Err(timeout);
        };
        if !whole {
            let what = format!("the answer of git {}", self.act);
            return Err(Error::TooLarge { url, what });
        }
        let Some((complaint, _)) = wait(&complaint) else {
            return Err(timeout);
        };
        let Some(status) = end.wait_until(deadline) else {
            return Err(timeout);
        };
        Ok(Said {
            ok: status.success(),
            out,
            complaint: self.scrub(&String::from_utf8_lossy(&complaint)),
        })
    }

    fn command(&self) -> Command {
        let mut command = Command::new(&self.git.program);
        let inherited = std::env::vars_os().map(|(name, _)| name);
        for name in inherited.filter(|name| is_unwanted(&name.to_string_lossy())) {
            command.env_remove(name);
        }
        command
            .env("LC_ALL", "C")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("SSH_ASKPASS_REQUIRE", "never")
            .env("GIT_ASKPASS", "true")
            .args(["--no-pager", "--literal-pathspecs", "--no-replace-objects"])
            .args([
                "-c",
                "core.hooksPath=/dev/null",
                "-c",
                "gc.autoDetach=false",
            ])
            .args([
                "-c",
                "maintenance.autoDetach=false",
                "-c",
                "core.fsmonitor=false",
            ])
            .args([
                "-c",
                "protocol.ext.allow=never",
                "-c",
                "advice.pushUpdateRejected=false",
            ])
            .args([
                "-c",
                "core.quotePath=false",
                "-c",
                "fetch.fsckObjects=false",
            ])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        if self.repository.credentials != Credentials::Ambient || !self.remote {
            command
                .env("GIT_CONFIG_NOSYSTEM", "1")
                .env("GIT_CONFIG_GLOBAL", "/dev/null");
        }
        if self.remote {
            self.credentials(&mut command);
        }
        if let Some(dir) = &self.dir {
            command.arg("--git-dir").arg(dir);
        }
        command.arg(self.act).args(&self.args);
        command
    }

    fn credentials(&self, command: &mut Command) {
        match &self.repository.credentials {
            Credentials::Ambient | Credentials::None => {}
            Credentials::Token { username, password } => {
                // Its text holds no secret, and it answers for one host only.
                let helper = "!f() { test \"$1\" = get && printf 'username=%s\\npassword=%s\\n' \
                              \"$MOOR_GIT_USERNAME\" \"$MOOR_GIT_PASSWORD\"; }; f";
                let host = self.repository.host().unwrap_or_default();
                command
                    .args([
                        "-c".to_owned(),
                        format!("credential.{host}.helper={helper}"),
                    ])
                    .env("MOOR_GIT_USERNAME", username)
                    .env("MOOR_GIT_PASSWORD", password.reveal());
            }
            Credentials::Ssh { key, known_hosts } => {
                command.env("GIT_SSH_COMMAND", ssh(key, known_hosts.as_deref()));
            }
        }
    }

    /// The text without the token in any of its forms.
    fn scrub(&self, text: &str) -> String {
        let Credentials::Token { username, password } = &self.repository.credentials else {
            return text.to_owned();
        };
        let secret = password.reveal();
        if secret.is_empty() {
            return text.to_owned();
        }
        let pair = base64(format!("{username}:{secret}").as_bytes());
        let forms = [secret.to_owned(), percent(secret), pair];
        let hide = |text: String, form: &String| text.replace(form.as_str(), "***");
        forms.iter().fold(text.to_owned(), hide)
    }
}

/// Ends what was started, whatever happens.
struct Ending<'c>(Option<&'c mut Child>);

impl Ending<'_> {
    fn wait_until(&mut self, deadline: Instant) -> Option<ExitStatus> {
        let child = self.0.as_mut()?;
        loop {
            // It closed its pipes, so it is about to end.
            if let Ok(Some(status)) = child.try_wait() {
                self.0 = None;
                return Some(status);
            }
            if Instant::now() >= deadline {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Ending<'_> {
    fn drop(&mut self) {
        if let Some(child) = self.0.take() {
            if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
                let _ = kill_process_group(group, Signal::KILL);
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

/// Reads in a thread of its own: the bytes, and whether that was all.
fn reader(
    from: impl Read + Send + 'static,
    limit: u64,
) -> mpsc::Receiver<io::Result<(Vec<u8>, bool)>> {
    let (send, receive) = mpsc::channel();
    thread::spawn(move || {
        let mut bytes = Vec::new();
        let mut from = from;
        let read = from.by_ref().take(limit + 1).read_to_end(&mut bytes);
        let whole = bytes.len() as u64 <= limit;
        let _ = send.send(read.map(|_| (bytes, whole)));
    });
    receive
}

/// Variables that would lead git elsewhere, or make it ask somebody.
fn is_unwanted(name: &str) -> bool {
    let kept = [
        "GIT_SSL_CAINFO",
        "GIT_SSL_CAPATH",
        "GIT_EXEC_PATH",
        "GIT_PROXY_SSL_CAINFO",
    ];
    (name.starts_with("GIT_") && !kept.contains(&name))
        || name.starts_with("MOOR_GIT_")
        || name == "SSH_ASKPASS"
}

fn ssh(key: &Path, known_hosts: Option<&Path>) -> String {
    let mut command = format!(
        "ssh -F /dev/null -o BatchMode=yes -o IdentitiesOnly=yes -o ConnectTimeout=15 -i {}",
        quoted(&key.to_string_lossy())
    );
    match known_hosts {
        Some(file) => {
            command += " -o StrictHostKeyChecking=yes -o GlobalKnownHostsFile=/dev/null ";
            // A list of files to ssh, which splits it at spaces unless it is quoted once more.
            let file = file.to_string_lossy().replace('%', "%%");
            let option = format!("UserKnownHostsFile=\"{file}\"");
            let _ = write!(command, "-o {}", quoted(&option));
        }
        None => command += " -o StrictHostKeyChecking=accept-new",
    }
    command
}

/// As a shell takes it for one word.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// What git's words mean.
fn failed(act: &'static str, repository: &Repository, remote: bool, complaint: &str) -> Error {
    let url = repository.to_string();
    let said = shortened(complaint);
    let low = complaint.to_lowercase();
    let any = |words: &[&str]| words.iter().any(|word| low.contains(word));
    if remote
        && any(&[
            "authentication failed",
            "could not read username",
            "could not read password",
            "permission denied",
            "error: 401",
            "error: 403",
            "invalid credentials",
            "host key verification failed",
            "access denied",
        ])
    {
        return Error::Denied { url, said };
    }
    if remote
        && any(&[
            "could not resolve",
            "connection refused",
            "connection timed out",
            "couldn't connect",
            "failed to connect",
            "does not appear to be a git repository",
            "repository not found",
            "not found",
            "does not exist",
            "could not read from remote repository",
            "unable to access",
            "hung up unexpectedly",
            "error: 50",
        ])
    {
        return Error::Unreachable { url, said };
    }
    Error::Failed { act, url, said }
}

/// Why a push failed before any ref was looked at.
pub(super) fn failed_push(repository: &Repository, complaint: &str, names: &[&str]) -> Error {
    match failed("push", repository, true, complaint) {
        Error::Failed { act, url, said } => {
            let said = format!("{}: {said}", names.join(", "));
            Error::Failed { act, url, said }
        }
        error => error,
    }
}

/// The lines that say something, as one.
pub(super) fn shortened(complaint: &str) -> String {
    let words = |line: &str| {
        let line = line.trim();
        let starts = ["fatal: ", "error: ", "remote: ", "warning: "];
        let cut = starts.iter().find_map(|start| line.strip_prefix(start));
        // ssh frames what it is most worried about.
        cut.unwrap_or(line).trim_matches('@').trim().to_owned()
    };
    let useful = |line: &String| {
        !line.is_empty()
            && !line.starts_with("Please make sure you have")
            && !line.starts_with("and the repository exists")
            && !line.starts_with("failed to push some refs")
    };
    let lines: Vec<String> = complaint
        .lines()
        .map(words)
        .filter(useful)
        .take(4)
        .collect();
    if lines.is_empty() {
        return "it said nothing".to_owned();
    }
    let mut text = lines.join("; ");
    if let Some((at, _)) = text.char_indices().nth(600) {
        text.truncate(at);
        text.push('…');
    }
    text
}

fn percent(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut out = String::new();
    for chunk in bytes.chunks(3) {
        let byte = |at: usize| u32::from(chunk.get(at).copied().unwrap_or_default());
        let number = byte(0) << 16 | byte(1) << 8 | byte(2);
        for at in 0..4 {
            let digit = (number >> (18 - 6 * at)) & 63;
            if at <= chunk.len() {
                out.push(char::from(DIGITS[digit as usize]));
            } else {
                out.push('=');
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64_is_that_of_everybody() {
        for (text, wanted) in [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v")] {
            assert_eq!(base64(text.as_bytes()), wanted);
        }
    }

    #[test]
    fn what_git_says_is_one_line_without_its_advice() {
        let said = "fatal: could not read from remote\n\nPlease make sure you have the right\nand the repository exists.\n";
        assert_eq!(shortened(said), "could not read from remote");
        assert_eq!(shortened(""), "it said nothing");
    }

    #[test]
    fn a_key_with_a_quote_in_its_name_is_one_word() {
        assert_eq!(quoted("a'b c"), r"'a'\''b c'");
    }
}
