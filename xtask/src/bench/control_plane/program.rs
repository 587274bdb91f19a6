//! `moor-controller` beside the server, as a process that ends with its value.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

use super::server::Server;

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(20);
/// How long anything may take.
const BOUND: Duration = Duration::from_mins(4);

pub(super) struct Program {
    child: Child,
    listens: SocketAddr,
    _dir: tempfile::TempDir,
}

impl Program {
    /// Starts the role ipam and waits until it knows everything.
    pub(super) fn start(server: &Server) -> Result<Self> {
        let dir = tempfile::tempdir().context("cannot make a directory")?;
        let log = dir.path().join("log");
        let program = std::env::current_exe()?.with_file_name("moor-controller");
        let child = Command::new(&program)
            .args(["--roles=ipam", "--listen=127.0.0.1:0", "--log-format=json"])
            .args(["--log=info", "--lease-duration=3s"])
            .arg("--kubeconfig")
            .arg(server.plane.kubeconfig())
            .env_clear()
            .env("HOME", dir.path())
            .stdin(Stdio::null())
            .stdout(fs::File::create(&log)?)
            .stderr(fs::File::options().append(true).open(&log)?)
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let mut program = Self {
            child,
            listens: SocketAddr::from(([127, 0, 0, 1], 0)),
            _dir: dir,
        };
        program.listens = wait("the controller listens", || address(&log))?;
        wait("the controller is ready", || {
            program.http("/readyz").filter(|(code, _)| *code == 200)
        })?;
        Ok(program)
    }

    /// The sum of the samples with that name and those labels.
    pub(super) fn metric(&self, name: &str, labels: &[&str]) -> u64 {
        let text = self
            .http("/metrics")
            .map_or_else(String::new, |(_, text)| text);
        let fits = |line: &&str| {
            line.split(['{', ' ']).next() == Some(name) && labels.iter().all(|l| line.contains(l))
        };
        let value = |line: &str| line.rsplit(' ').next().and_then(|v| v.parse::<u64>().ok());
        text.lines().filter(fits).filter_map(value).sum()
    }

    /// Waits until a metric has reached a count.
    pub(super) fn reaches(&self, name: &str, labels: &[&str], count: u64) -> Result<()> {
        let what = format!("{name} {labels:?} reaches {count}");
        wait(&what, || (self.metric(name, labels) >= count).then_some(()))
    }

    /// The most memory that it has had, in KiB.
    pub(super) fn peak_kib(&self) -> Result<u64> {
        let path = format!("/proc/{}/status", self.child.id());
        let status = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        super::super::high_water_mark(&status).context("the process has no VmHWM")
    }

    /// How long it has been on a processor, in seconds.
    pub(super) fn cpu_seconds(&self) -> Result<f64> {
        let path = format!("/proc/{}/stat", self.child.id());
        let stat = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
        let columns = stat
            .rsplit_once(") ")
            .map(|(_, rest)| rest)
            .unwrap_or_default();
        // utime and stime, in hundredths.
        let ticks = columns.split(' ').skip(11).take(2);
        Ok(ticks.filter_map(|t| t.parse::<f64>().ok()).sum::<f64>() / 100.0)
    }

    fn http(&self, path: &str) -> Option<(u16, String)> {
        let mut stream = TcpStream::connect_timeout(&self.listens, Duration::from_secs(5)).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(10)))
            .ok()?;
        let request = format!("GET {path} HTTP/1.0\r\nHost: localhost\r\n\r\n");
        stream.write_all(request.as_bytes()).ok()?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).ok()?;
        let (head, body) = answer.split_once("\r\n\r\n")?;
        let code = head.split(' ').nth(1)?.parse().ok()?;
        Some((code, body.to_owned()))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks until there is something to see.
pub(super) fn wait<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> Result<T> {
    let end = Instant::now() + BOUND;
    loop {
        if let Some(seen) = look() {
            return Ok(seen);
        }
        if Instant::now() > end {
            bail!("not within {BOUND:?}: {what}");
        }
        std::thread::sleep(PAUSE);
    }
}

/// Where it serves, by its log.
fn address(log: &Path) -> Option<SocketAddr> {
    let log = fs::read_to_string(log).ok()?;
    log.lines().find_map(|line| {
        let line: Value = serde_json::from_str(line).ok()?;
        let serves = line["message"] == "serving health and metrics";
        serves.then(|| line["address"].as_str()?.parse().ok())?
    })
}
