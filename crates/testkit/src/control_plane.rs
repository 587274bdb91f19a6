//! A real Kubernetes control plane for tests: etcd and kube-apiserver on the loopback interface, with certificates, ports
//! and data of their own; kube-controller-manager for those who ask for it.
//!
//! ```text
//!  to change                                   open
//!  what a component is started with            control_plane/flags.rs
//!  waiting, and "is this server ours"          control_plane/start.rs, https.rs; port.rs
//!  processes that end with the test            control_plane/process.rs
//!  processes that stay, for `cargo xtask up`   control_plane/detached.rs
//! ```
//!
//! Tests of one binary share one ([`ControlPlane::shared`]) and use namespaces or names of their own; a test that stops
//! a component starts its own ([`ControlPlane::start`]). Easy to get wrong: there are no nodes and no scheduler, so no
//! Pod ever runs, and without the controller manager nothing is collected and a deleted namespace stays.

mod certs;
mod detached;
mod flags;
mod https;
mod process;
mod start;
#[cfg(test)]
mod tests;

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::Duration;

use rustix::process::Signal;

use crate::bounded::bounded;
use crate::{Said, must, skip};
pub use detached::Detached;
use process::{Life, Process};
use start::{Plan, Programs};

/// How often other ports are tried when somebody was quicker.
const ATTEMPTS: usize = 5;
/// How long one `kubectl` may take.
const KUBECTL_BOUND: Duration = Duration::from_mins(2);

/// Why a control plane is not there.
#[derive(Debug)]
pub struct Failure {
    text: String,
    port_taken: bool,
}

/// What may differ from one control plane to the next.
#[derive(Clone, Debug)]
pub struct Options {
    /// Every commit of etcd reaches the disk, as in a cluster. Off, load tests measure the API and not the disk.
    pub durable: bool,
    /// Further flags for kube-apiserver.
    pub api_server_flags: Vec<String>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            durable: true,
            api_server_flags: Vec::new(),
        }
    }
}

/// A running control plane. Its processes and its directory go when it is dropped, and when this process ends in
/// whatever way.
pub struct ControlPlane {
    plan: Plan,
    running: Mutex<Running>,
    installed: Mutex<BTreeSet<PathBuf>>,
}

#[derive(Default)]
struct Running {
    manager: Option<Process>,
    api: Option<Process>,
    etcd: Option<Process>,
}

impl ControlPlane {
    /// The one of this test binary, started by whoever asks first. Where the programs are absent it is a counted skip
    /// `no-control-plane`, and `None`.
    pub fn shared() -> Option<&'static Self> {
        static SHARED: OnceLock<Result<ControlPlane, Failure>> = OnceLock::new();
        // Asked for by every test, so that every test without is counted.
        let programs = programs()?;
        let shared = SHARED.get_or_init(|| Self::start_here(programs, Options::default()));
        match shared {
            Ok(plane) => Some(plane),
            Err(e) => panic!("no control plane: {e}"),
        }
    }

    /// One of its own, stopped on drop.
    pub fn start() -> Option<Self> {
        Self::start_with(Options::default())
    }

    /// The same with options.
    pub fn start_with(options: Options) -> Option<Self> {
        let started = Self::start_here(programs()?, options);
        Some(started.unwrap_or_else(|e| panic!("no control plane: {e}")))
    }

    /// One with the controller manager in a directory that stays, whose processes outlive us: for `cargo xtask up`.
    /// Nothing of it is stopped on drop; [`Detached::of`] its directory says whom to stop.
    pub fn start_detached(dir: &Path) -> Result<Self, Failure> {
        let absent =
            |name| Failure::new(format!("{name} is not there: `cargo xtask setup {name}`"));
        let programs = Programs::find().map_err(absent)?;
        let plane = Self::start_in(dir, programs, Options::default(), Life::Own)?;
        match plane.plan.start_controller_manager() {
            Ok(manager) => lock(&plane.running).manager = Some(manager),
            Err(failure) => {
                plane.stop_all();
                return Err(failure);
            }
        }
        Ok(plane)
    }

    /// Starts another program beside one that was detached; it stays as they do.
    pub fn run_detached(
        &self,
        name: &'static str,
        program: &Path,
        args: &[String],
    ) -> Result<Detached, Failure> {
        Process::start(name, program, args, &self.plan.dir, Life::Own)?;
        let started = Detached::of(&self.plan.dir);
        let found = started.into_iter().find(|process| process.name == name);
        found.ok_or_else(|| Failure::new(format!("{name} is not noted")))
    }

    fn start_here(programs: Programs, options: Options) -> Result<Self, Failure> {
        let dir = tempfile::Builder::new()
            .prefix("moor-control-plane-")
            .tempdir();
        // From here on the directory is its processes' to remove, so that it goes also after SIGKILL.
        let dir = must(dir, "make", Path::new("a temporary directory")).keep();
        let started = Self::start_in(&dir, programs, options, Life::Ours);
        if started.is_err() {
            let _ = std::fs::remove_dir_all(&dir);
        }
        started
    }

    fn start_in(
        dir: &Path,
        programs: Programs,
        options: Options,
        life: Life,
    ) -> Result<Self, Failure> {
        let mut attempt = 1;
        loop {
            must(std::fs::create_dir_all(dir), "make", dir);
            let plan = Plan::new(dir, programs.clone(), options.clone(), life)?;
            let started = plan
                .start_etcd()
                .and_then(|etcd| match plan.start_api_server() {
                    Ok(api) => Ok((etcd, api)),
                    Err(failure) => {
                        etcd.stop();
                        Err(failure)
                    }
                });
            match started {
                Ok((etcd, api)) => {
                    let running = Running {
                        etcd: Some(etcd),
                        api: Some(api),
                        manager: None,
                    };
                    return Ok(Self {
                        plan,
                        running: Mutex::new(running),
                        installed: Mutex::default(),
                    });
                }
                Err(failure) if failure.port_taken && attempt < ATTEMPTS => {
                    // Data that says other ports than the next try has.
                    must(std::fs::remove_dir_all(dir), "remove", dir);
                    attempt += 1;
                }
                Err(failure) => return Err(failure),
            }
        }
    }

    /// The administrator's kubeconfig (`system:masters`).
    pub fn kubeconfig(&self) -> &Path {
        &self.plan.kubeconfig
    }

    /// `https://127.0.0.1:<port>`.
    pub fn server(&self) -> &str {
        &self.plan.server
    }

    /// A kubeconfig for another user, by client certificate, in two groups at most. It may nothing until RBAC says so.
    #[track_caller]
    pub fn user_kubeconfig(&self, user: &str, groups: &[&str]) -> PathBuf {
        let written = self.plan.user_kubeconfig(user, groups);
        written.unwrap_or_else(|e| panic!("no kubeconfig for {user}: {e}"))
    }

    /// Runs `kubectl` as the administrator.
    #[track_caller]
    pub fn kubectl(&self, args: &[&str]) -> Said {
        self.kubectl_stdin(args, "")
    }

    /// The same with text on its stdin, for `-f -`.
    #[track_caller]
    pub fn kubectl_stdin(&self, args: &[&str], stdin: &str) -> Said {
        let home = self.plan.dir.join("home");
        let mut kubectl = Command::new(&self.plan.programs.kubectl);
        kubectl
            .args(args)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", &home)
            .env("KUBECONFIG", &self.plan.kubeconfig);
        bounded(&mut kubectl, stdin, KUBECTL_BOUND)
            .unwrap_or_else(|e| panic!("cannot run kubectl: {e}"))
    }

    /// Applies a directory of CustomResourceDefinitions and waits until all are Established; a second time costs nothing.
    #[track_caller]
    pub fn install_crds(&self, dir: &Path) {
        self.install_crds_where(dir, |_| true);
    }

    /// The same with those files of it alone whose names are wanted: an API server spends seconds on every big one.
    #[track_caller]
    pub fn install_crds_where(&self, dir: &Path, wanted: impl Fn(&str) -> bool) {
        // Held while it works: tests that ask at once wait for the one that applies.
        let mut installed = lock(&self.installed);
        let files = must(std::fs::read_dir(dir), "read", dir);
        let mut files: Vec<PathBuf> = files.map(|file| must(file, "read", dir).path()).collect();
        files.retain(|file| {
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            name.ends_with(".yaml") && wanted(&name) && !installed.contains(file)
        });
        if files.is_empty() {
            return;
        }
        let paths: Vec<String> = files.iter().map(|f| f.display().to_string()).collect();
        let each = || paths.iter().flat_map(|path| ["-f", path]);
        let apply = ["apply", "--server-side"].into_iter().chain(each());
        self.kubectl(&apply.collect::<Vec<_>>()).ok();
        let wait = ["wait", "--for=condition=Established", "--timeout=60s"];
        let wait = wait.into_iter().chain(each());
        self.kubectl(&wait.collect::<Vec<_>>()).ok();
        installed.extend(files);
    }

    /// Ends the API server by SIGKILL. Absent is success.
    pub fn stop_api_server(&self) {
        if let Some(api) = lock(&self.running).api.take() {
            api.stop();
        }
    }

    /// Starts it again, on the same port and the same data, and waits until it is ready.
    #[track_caller]
    pub fn start_api_server(&self) {
        let started = self.try_start_api_server();
        started.unwrap_or_else(|e| panic!("the API server is not back: {e}"));
    }

    /// The same, with the reason when it is not to be.
    pub fn try_start_api_server(&self) -> Result<(), Failure> {
        let mut running = lock(&self.running);
        if running.api.is_none() {
            match self.plan.start_api_server() {
                Ok(api) => running.api = Some(api),
                Err(failure) => return Err(failure),
            }
        }
        Ok(())
    }

    /// Stops every request where it is: connections stay open and nothing answers.
    pub fn pause_api_server(&self) {
        if let Some(api) = &lock(&self.running).api {
            api.signal(Signal::STOP);
        }
    }

    /// Lets a paused one go on.
    pub fn resume_api_server(&self) {
        if let Some(api) = &lock(&self.running).api {
            api.signal(Signal::CONT);
        }
    }

    /// Ends etcd by SIGKILL, starts it on the same data, and waits until the API server is ready again.
    #[track_caller]
    pub fn restart_etcd(&self) {
        let mut running = lock(&self.running);
        if let Some(etcd) = running.etcd.take() {
            etcd.stop();
        }
        let etcd = self.plan.start_etcd();
        running.etcd = Some(etcd.unwrap_or_else(|e| panic!("etcd is not back: {e}")));
        if let Some(api) = &running.api {
            let ready = self.plan.wait_until_ready(api);
            ready.unwrap_or_else(|e| panic!("the API server did not find etcd again: {e}"));
        }
    }

    /// Starts kube-controller-manager, unless it runs: garbage collection, namespaces, Deployments to Pods, quotas.
    #[track_caller]
    pub fn controller_manager(&self) {
        let mut running = lock(&self.running);
        if running.manager.is_none() {
            let manager = self.plan.start_controller_manager();
            running.manager = Some(manager.unwrap_or_else(|e| panic!("{e}")));
        }
    }
}

impl ControlPlane {
    /// Clients first. The files stay.
    fn stop_all(&self) {
        let mut running = lock(&self.running);
        let processes = [
            running.manager.take(),
            running.api.take(),
            running.etcd.take(),
        ];
        for process in processes.into_iter().flatten() {
            process.stop();
        }
    }
}

impl Drop for ControlPlane {
    fn drop(&mut self) {
        if self.plan.life == Life::Ours {
            self.stop_all();
            let _ = std::fs::remove_dir_all(&self.plan.dir);
        }
    }
}

impl fmt::Debug for ControlPlane {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ControlPlane({})", self.plan.server)
    }
}

/// A test that failed while it held the lock has left nothing half-done that another would mistake.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn programs() -> Option<Programs> {
    match Programs::find() {
        Ok(programs) => Some(programs),
        Err(absent) => {
            skip("no-control-plane", &format!("{absent} is not there"));
            None
        }
    }
}

impl Failure {
    fn new(text: String) -> Self {
        let port_taken = false;
        Self { text, port_taken }
    }

    fn port_taken(text: String) -> Self {
        let port_taken = true;
        Self { text, port_taken }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl From<rcgen::Error> for Failure {
    fn from(error: rcgen::Error) -> Self {
        Self::new(format!("cannot make a certificate: {error}"))
    }
}
