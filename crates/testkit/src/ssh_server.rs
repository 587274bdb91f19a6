//! Git over ssh, for tests: the real `sshd` on a loopback port, with a host key and a user's key of its own.
//!
//! ```text
//!  git ──ssh──> sshd, in a mount namespace where /etc/passwd is ours ──> git-upload-pack, git-receive-pack ──> bare repositories
//! ```
//!
//! Easy to get wrong: sshd wants a user `sshd` and /run/sshd, which a machine without it does not have, and it must not be
//! given them: so it sees a passwd file and a /run of its own. That takes root; who is not is told so as a skip.

use std::fs;
use std::io::Read as _;
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::{component, free_port, must, skip};

/// How long it may take until it answers.
const BOUND: Duration = Duration::from_secs(20);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How often another port is tried.
const TRIES: usize = 5;

/// Ends sshd when our side of the pipe closes, for whatever reason. `$1` is the log, then the program.
const KEEPER: &str = r#"
log=$1
shift
"$@" </dev/null >>"$log" 2>&1 &
child=$!
cat >/dev/null
kill "$child"
wait "$child"
"#;

/// `$1` the directory, `$2` where libraries are, `$3` sshd.
const INSIDE: &str = r#"
set -e
mount --bind "$1/passwd" /etc/passwd
mount -t tmpfs none /run
mkdir /run/sshd
LD_LIBRARY_PATH=$2 exec "$3" -D -e -f "$1/config"
"#;

/// A server of bare repositories on 127.0.0.1. It and its repositories go when it is dropped.
pub struct SshServer {
    dir: tempfile::TempDir,
    port: u16,
    keeper: Child,
}

impl SshServer {
    /// A running one without repositories. None where it cannot be had, which is a counted skip.
    pub fn start(what: &str) -> Option<Self> {
        let server = component("openssh-server", what)?;
        let wrap = component("libwrap0", what)?;
        if !is_root() {
            skip("no-root", what);
            return None;
        }
        let dir = must(
            tempfile::tempdir(),
            "make",
            Path::new("a temporary directory"),
        );
        for name in ["host", "user", "stranger"] {
            let path = dir.path().join(name);
            run(Command::new("ssh-keygen")
                .args(["-q", "-t", "ed25519", "-N", "", "-C", name, "-f"])
                .arg(&path));
        }
        let home = dir.path().display().to_string();
        let users = [("root", 0), ("git", 0), ("sshd", 65_533)];
        let passwd = users.map(|(name, uid)| format!("{name}:x:{uid}:{uid}::{home}:/bin/sh\n"));
        write(&dir.path().join("passwd"), &passwd.concat());
        let started = (0..TRIES).find_map(|_| {
            let port = free_port()?;
            let keeper = launch(dir.path(), port, &server, &wrap)?;
            Some((port, keeper))
        });
        let log = || fs::read_to_string(dir.path().join("log")).unwrap_or_default();
        let (port, keeper) = started.unwrap_or_else(|| panic!("sshd does not start:\n{}", log()));
        Some(Self { dir, port, keeper })
    }

    /// Makes a bare repository with the default branch `main`, and gives its address.
    pub fn create(&self, name: &str) -> String {
        let path = self.path(name);
        run(Command::new("git")
            .args(["init", "--quiet", "--bare", "--initial-branch=main"])
            .arg(&path));
        format!("ssh://git@127.0.0.1:{}{}", self.port, path.display())
    }

    /// The bare repository itself.
    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(format!("{name}.git"))
    }

    /// The file with the private key that opens it.
    pub fn key(&self) -> PathBuf {
        self.dir.path().join("user")
    }

    /// The file with a private key that does not.
    pub fn other_key(&self) -> PathBuf {
        self.dir.path().join("stranger")
    }

    /// The line of a `known_hosts` file that names it.
    pub fn known_host(&self) -> String {
        self.host_line("host")
    }

    /// A line that names another server at its place.
    pub fn other_host(&self) -> String {
        self.host_line("stranger")
    }

    fn host_line(&self, key: &str) -> String {
        let path = self.dir.path().join(format!("{key}.pub"));
        let text = must(fs::read_to_string(&path), "read", &path);
        format!("[127.0.0.1]:{} {}\n", self.port, text.trim())
    }

    /// What it said.
    pub fn log(&self) -> String {
        fs::read_to_string(self.dir.path().join("log")).unwrap_or_default()
    }
}

impl Drop for SshServer {
    fn drop(&mut self) {
        // The shell sees the end of its input, and ends sshd before itself.
        drop(self.keeper.stdin.take());
        let _ = self.keeper.wait();
    }
}

/// Starts sshd, and waits until it greets; None where something else is on the port.
fn launch(dir: &Path, port: u16, server: &Path, wrap: &Path) -> Option<Child> {
    let shown = dir.display();
    let config = format!(
        "Port {port}\nListenAddress 127.0.0.1\nHostKey {shown}/host\nAuthorizedKeysFile {shown}/user.pub\nPidFile none\n\
         StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
         PermitRootLogin prohibit-password\n"
    );
    write(&dir.join("config"), &config);
    let libraries: Vec<String> = libraries(wrap)
        .iter()
        .map(|d| d.display().to_string())
        .collect();
    let keeper = Command::new("sh")
        .args(["-c", KEEPER, "sh"])
        .arg(dir.join("log"))
        .args(["unshare", "--mount", "sh", "-c", INSIDE, "sh"])
        .arg(dir)
        .arg(libraries.join(":"))
        .arg(server.join("usr/sbin/sshd"))
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut keeper = must(keeper, "start sh for", dir);
    let end = Instant::now() + BOUND;
    while Instant::now() < end {
        if greets(port) {
            return Some(keeper);
        }
        let log = fs::read_to_string(dir.join("log")).unwrap_or_default();
        if log.contains("Cannot bind") || log.contains("in use") {
            break;
        }
        std::thread::sleep(PAUSE);
    }
    drop(keeper.stdin.take());
    let _ = keeper.wait();
    None
}

/// Whether an ssh server speaks on the port.
fn greets(port: u16) -> bool {
    let Ok(mut stream) = TcpStream::connect((Ipv4Addr::LOCALHOST, port)) else {
        return false;
    };
    let mut start = [0; 4];
    stream.set_read_timeout(Some(BOUND)).is_ok()
        && stream.read_exact(&mut start).is_ok()
        && start == *b"SSH-"
}

/// Directories of a package that hold libraries.
fn libraries(package: &Path) -> Vec<PathBuf> {
    let roots = ["lib", "usr/lib"].map(|dir| package.join(dir));
    let below = |dir: &PathBuf| {
        let entries = fs::read_dir(dir).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path()))
    };
    let all = roots.iter().flat_map(below);
    all.filter(|path| path.is_dir()).collect()
}

fn is_root() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let uids = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uids.and_then(|uids| uids.split_whitespace().nth(1)) == Some("0")
}

fn write(path: &Path, text: &str) {
    must(fs::write(path, text), "write", path);
}

#[track_caller]
fn run(command: &mut Command) {
    let said = must(command.output(), "start", Path::new(command.get_program()));
    assert!(said.status.success(), "{command:?}: {said:?}");
}
