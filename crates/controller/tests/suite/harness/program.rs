//! The program as a process that ends with us, also when we end by SIGKILL.
//!
//! A shell starts it and reads a pipe of ours; when the pipe closes, the shell kills it. Health and metrics are on a port
//! that the kernel chose; the log says which.

use std::collections::BTreeMap;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::{Cluster, until};

/// `$1` the log, then the program. The last line is its exit code.
const KEEPER: &str = r#"
log=$1
shift
"$@" </dev/null >>"$log" 2>&1 &
child=$!
echo "$child"
{ cat >/dev/null; kill -KILL "$child" 2>/dev/null; } <&3 &
cat=$!
wait "$child"
echo "$?"
exec >&-
kill "$cat" 2>/dev/null
"#;

/// A running `moor-controller`.
pub(crate) struct Controller {
    args: Vec<String>,
    dir: tempfile::TempDir,
    run: Option<Run>,
    runs: usize,
}

struct Run {
    shell: Child,
    stdout: BufReader<std::process::ChildStdout>,
    pid: u32,
    log: PathBuf,
    listens: Option<SocketAddr>,
}

impl Controller {
    /// Starts it with these roles against the cluster, as its administrator, and waits until it is ready.
    #[track_caller]
    pub(crate) fn start(cluster: &Cluster, roles: &[&str], more: &[&str]) -> Self {
        let mut controller = Self::new(cluster, roles, more);
        controller.restart();
        controller
    }

    fn new(cluster: &Cluster, roles: &[&str], more: &[&str]) -> Self {
        cluster.namespace("mooring-system");
        let mut args = vec![
            format!("--roles={}", roles.join(",")),
            "--listen=127.0.0.1:0".to_owned(),
            "--log-format=json".to_owned(),
        ];
        // An argument of the test comes instead of ours.
        if !more.contains(&"--kubeconfig") {
            args.push(format!("--kubeconfig={}", cluster.kubeconfig().display()));
        }
        args.extend(more.iter().map(|&arg| arg.to_owned()));
        Self {
            args,
            dir: tempfile::tempdir().unwrap(),
            run: None,
            runs: 0,
        }
    }

    /// The one that all tests on the shared cluster use, by roles. It lives as long as the test program.
    #[track_caller]
    pub(crate) fn shared(roles: &[&str]) -> Option<&'static Self> {
        static RUNNING: Mutex<BTreeMap<String, &'static Controller>> = Mutex::new(BTreeMap::new());
        let cluster = Cluster::shared()?;
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        let start = || &*Box::leak(Box::new(Self::start(cluster, roles, &[])));
        Some(running.entry(roles.join(",")).or_insert_with(start))
    }

    /// Starts it (again) with the same arguments and waits until it is ready.
    #[track_caller]
    pub(crate) fn restart(&mut self) {
        self.launch();
        until("the controller is ready", || {
            if self.is_ready() {
                return Ok(());
            }
            assert!(self.is_running(), "it ended: {}", self.log());
            Err(self.log())
        });
    }

    #[track_caller]
    fn launch(&mut self) {
        self.kill();
        self.runs += 1;
        let log = self.dir.path().join(format!("{}.log", self.runs));
        // The shell's own stdin would be /dev/null for what runs in the background.
        let mut shell = Command::new("sh")
            .args(["-c", &format!("exec 3<&0\n{KEEPER}"), "sh"])
            .arg(&log)
            .arg(env!("CARGO_BIN_EXE_moor-controller"))
            .args(&self.args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.dir.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut stdout = BufReader::new(shell.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        let pid = line.trim().parse().expect("the shell says the pid");
        let mut run = Run {
            shell,
            stdout,
            pid,
            log,
            listens: None,
        };
        // It ends early where its arguments are wrong: that is for the caller to see.
        until("the controller listens", || {
            run.listens = address(&fs::read_to_string(&run.log).unwrap_or_default());
            if run.listens.is_some() || !is_running(pid) {
                return Ok(());
            }
            Err(fs::read_to_string(&run.log).unwrap_or_default())
        });
        self.run = Some(run);
    }

    /// Whether it runs; a frozen one does.
    pub(crate) fn is_running(&self) -> bool {
        self.run.as_ref().is_some_and(|run| is_running(run.pid))
    }

    /// Whether `/readyz` says ok.
    pub(crate) fn is_ready(&self) -> bool {
        self.http("/readyz").is_some_and(|(code, _)| code == 200)
    }

    /// SIGKILL; returns when it is gone.
    pub(crate) fn kill(&mut self) {
        if self.run.is_some() {
            self.signal("KILL");
            self.reap();
        }
    }

    /// SIGTERM; returns its exit code.
    pub(crate) fn terminate(&mut self) -> Option<i32> {
        self.signal("TERM");
        self.reap()
    }

    /// SIGSTOP: it stands still, and its connections stay.
    pub(crate) fn freeze(&self) {
        self.signal("STOP");
    }

    /// SIGCONT.
    pub(crate) fn thaw(&self) {
        self.signal("CONT");
    }

    fn signal(&self, name: &str) {
        let run = self.run.as_ref().expect("it was started");
        let pid = run.pid.to_string();
        let _ = Command::new("kill")
            .args(["-s", name, &pid])
            .stderr(Stdio::null())
            .status();
    }

    /// Waits for its end. The log stays.
    fn reap(&mut self) -> Option<i32> {
        let run = self.run.as_mut()?;
        let mut line = String::new();
        let read = run.stdout.read_line(&mut line);
        let _ = run.shell.wait();
        read.ok().and_then(|_| line.trim().parse().ok())
    }

    /// All that this run has logged: JSON lines.
    pub(crate) fn log(&self) -> String {
        let log = self.run.as_ref().map(|run| run.log.as_path());
        log.and_then(|log| fs::read_to_string(log).ok())
            .unwrap_or_default()
    }

    /// The text of `/metrics`.
    #[track_caller]
    pub(crate) fn metrics(&self) -> String {
        let (code, text) = self.http("/metrics").expect("metrics are served");
        assert_eq!(code, 200, "{text}");
        text
    }

    /// The sum of the samples with that name and those labels; None where there is none.
    #[track_caller]
    pub(crate) fn metric(&self, name: &str, labels: &[(&str, &str)]) -> Option<f64> {
        let text = self.metrics();
        let fits = |line: &&str| {
            let bare = line.split(['{', ' ']).next() == Some(name);
            let has = |(k, v): &(&str, &str)| line.contains(&format!("{k}=\"{v}\""));
            bare && labels.iter().all(has)
        };
        let values = text.lines().filter(fits);
        let value = |line: &str| line.rsplit(' ').next().and_then(|v| v.parse::<f64>().ok());
        values.filter_map(value).reduce(|a, b| a + b)
    }

    /// Code and body of a GET on its plain HTTP port.
    pub(crate) fn http(&self, path: &str) -> Option<(u16, String)> {
        let address = self.run.as_ref()?.listens?;
        let mut stream = TcpStream::connect_timeout(&address, Duration::from_secs(5)).ok()?;
        let bound = Some(Duration::from_secs(10));
        stream.set_read_timeout(bound).ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let code = head.split(' ').nth(1)?.parse().ok()?;
        Some((code, body.to_owned()))
    }
}

impl Drop for Controller {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Where it serves, by its log.
fn address(log: &str) -> Option<SocketAddr> {
    let said = |line: &str| {
        let line: Value = serde_json::from_str(line).ok()?;
        let serves = line["message"] == "serving health and metrics";
        serves.then(|| line["address"].as_str()?.parse().ok())?
    };
    log.lines().find_map(said)
}

fn is_running(pid: u32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat
        .rsplit_once(") ")
        .and_then(|(_, rest)| rest.chars().next());
    state.is_some_and(|state| !"ZX".contains(state))
}
