//! A process of its own on the server: this program, started again to run one of the bodies here.
//!
//! The store asks its fence before every write. A child's fence counts, and at the write that its parent named it kills or
//! stops its own process: so a test reaches every point between two writes without a hook in the store.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::PathBuf;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use mooring_book::{KubeOptions, KubeStore};

use super::World;

const KUBECONFIG: &str = "MOORING_TEST_KUBECONFIG";
const NAME: &str = "MOORING_TEST_NAME";
const AT: &str = "MOORING_TEST_AT";
const SIGNAL: &str = "MOORING_TEST_SIGNAL";

/// What a child was told, and its store.
pub(super) struct Told {
    pub(super) name: String,
    pub(super) store: KubeStore,
}

impl Told {
    /// What the parent said.
    pub(super) fn new() -> Self {
        let path = PathBuf::from(std::env::var_os(KUBECONFIG).expect("a parent sets it"));
        let at: u32 = std::env::var(AT).map_or(u32::MAX, |n| n.parse().unwrap());
        let signal = std::env::var(SIGNAL).unwrap_or_default();
        let writes = AtomicU32::new(0);
        let fence = move || {
            if writes.fetch_add(1, Ordering::SeqCst) == at {
                let pid = std::process::id().to_string();
                let _ = Command::new("kill").args([&signal, &pid]).status();
                // A signal that ends us may come a moment after the program that sent it has ended.
                assert!(signal == "-STOP", "still alive");
            }
            true
        };
        let options = KubeOptions {
            fence: Some(Arc::new(fence)),
            ..KubeOptions::default()
        };
        let store = KubeStore::from_kubeconfig(&path, options).unwrap();
        store.synced().unwrap();
        Self {
            name: std::env::var(NAME).unwrap_or_default(),
            store,
        }
    }

    /// The same; says that it is ready, and waits until the parent closes its stdin: so all begin at once.
    pub(super) fn wait() -> Self {
        let told = Self::new();
        println!("\nREADY");
        std::io::stdin().read_line(&mut String::new()).unwrap();
        told
    }
}

/// A child as its parent sees it.
pub(super) struct Running {
    pub(super) child: Child,
    lines: Lines<BufReader<ChildStdout>>,
}

impl Running {
    pub(super) fn start(world: &World, body: &str, name: &str) -> Self {
        Self::start_until(world, body, name, u32::MAX, "")
    }

    /// The same; before its write number `at` it sends itself a signal.
    pub(super) fn start_until(
        world: &World,
        body: &str,
        name: &str,
        at: u32,
        signal: &str,
    ) -> Self {
        let mut command = Command::new(std::env::current_exe().unwrap());
        let body = format!("kubernetes::{body}");
        command.args([body.as_str(), "--exact", "--ignored", "--nocapture"]);
        command
            .env(KUBECONFIG, world.plane.kubeconfig())
            .env(NAME, name)
            .env(AT, at.to_string())
            .env(SIGNAL, signal)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let stdout = child.stdout.take().expect("it is piped");
        Self {
            child,
            lines: BufReader::new(stdout).lines(),
        }
    }

    /// Until it has said a line.
    pub(super) fn hear(&mut self, wanted: &str) {
        let heard = self.lines.by_ref().any(|line| line.unwrap() == wanted);
        assert!(heard, "a child ended before it said {wanted}");
    }

    pub(super) fn go(&mut self) {
        drop(self.child.stdin.take());
    }

    /// What it said after `start`, and whether it came to its end.
    pub(super) fn join(self, start: &str) -> (Vec<String>, bool, String) {
        let lines = self.lines.map(Result::unwrap);
        let said: Vec<String> = lines
            .filter_map(|line| line.strip_prefix(start).map(str::to_owned))
            .collect();
        let output = self.child.wait_with_output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        (said, output.status.success(), errors)
    }

    /// Whether it is stopped by a signal, by the kernel's word.
    pub(super) fn is_stopped(&self) -> Result<(), String> {
        let stat = std::fs::read_to_string(format!("/proc/{}/stat", self.child.id()));
        let stat = stat.unwrap_or_default();
        let state = stat.rsplit(") ").next().unwrap_or_default().to_owned();
        if state.starts_with('T') || state.starts_with('Z') {
            return Ok(());
        }
        Err(state)
    }

    pub(super) fn signal(&self, signal: &str) {
        let pid = self.child.id().to_string();
        assert!(
            Command::new("kill")
                .args([signal, &pid])
                .status()
                .unwrap()
                .success()
        );
    }
}
