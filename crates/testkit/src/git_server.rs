//! Git over smart HTTP with credentials, for tests: the real `git http-backend` behind a small server of ours.
//!
//! ```text
//!  git clone/push ──HTTP──> git_server/http.rs (who are you, may you) ──CGI──> git http-backend ──> bare repositories
//! ```
//!
//! Two credentials: one that may push, one that may only read. Easy to get wrong: Git asks without a credential first,
//! and sends one only after 401; and it compresses or chunks what is large.

mod http;

use std::fs;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::{must, port};

/// How long a port may stay taken after its server has stopped.
const BOUND: Duration = Duration::from_secs(10);
/// Between two tries.
const PAUSE: Duration = Duration::from_millis(5);

/// A server of bare repositories on 127.0.0.1. It and its repositories go when it is dropped.
pub struct GitServer {
    port: u16,
    /// Holds the repositories as long as the server lives.
    _dir: tempfile::TempDir,
    shared: Arc<Shared>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

/// What connections need.
struct Shared {
    root: PathBuf,
    token: String,
    read_only_token: String,
    stopping: AtomicBool,
    requests: Mutex<Vec<String>>,
}

const USER: &str = "mooring";

impl GitServer {
    /// A running one without repositories.
    pub fn start() -> Self {
        let dir = must(
            tempfile::tempdir(),
            "make",
            Path::new("a temporary directory"),
        );
        let root = dir.path().join("repositories");
        must(fs::create_dir(&root), "make", &root);
        // Other values in every server: a test cannot pass with a credential that it was not given.
        let word = |what: &str| {
            use sha2::{Digest as _, Sha256};
            let seed = format!("{what} {} {}", root.display(), std::process::id());
            format!("{what}-{:.16x}", Sha256::digest(seed))
        };
        let shared = Shared {
            token: word("writes"),
            read_only_token: word("reads"),
            root,
            stopping: AtomicBool::new(false),
            requests: Mutex::default(),
        };
        let socket = port::listen().unwrap_or_else(|| panic!("no port is free"));
        let address = must(socket.local_addr(), "listen for", dir.path());
        let server = Self {
            port: address.port(),
            _dir: dir,
            shared: Arc::new(shared),
            accepting: Mutex::default(),
        };
        server.serve(socket);
        server
    }

    /// Makes a bare repository with the default branch `main`, and gives its address.
    pub fn create(&self, name: &str) -> String {
        let path = self.path(name);
        let git = |args: &[&str]| {
            let status = Command::new("git").args(args).arg(&path).status();
            let status = must(status, "start git for", &path);
            assert!(
                status.success(),
                "git {args:?} {}: {status}",
                path.display()
            );
        };
        git(&["init", "--quiet", "--bare", "--initial-branch=main"]);
        self.url(name)
    }

    /// Where a client finds it; without a credential.
    pub fn url(&self, name: &str) -> String {
        format!("http://127.0.0.1:{}/{name}.git", self.port)
    }

    /// The same with the credential that may push, for a plain `git clone`.
    pub fn url_with_token(&self, name: &str) -> String {
        let url = self.url(name);
        url.replace("://", &format!("://{USER}:{}@", self.token()))
    }

    /// The user name of both credentials.
    pub fn user(&self) -> &'static str {
        USER
    }

    /// The password, or bearer token, that may push.
    pub fn token(&self) -> &str {
        &self.shared.token
    }

    /// The one that may only read: a push with it is 403.
    pub fn read_only_token(&self) -> &str {
        &self.shared.read_only_token
    }

    /// The bare repository itself.
    pub fn path(&self, name: &str) -> PathBuf {
        self.shared.root.join(format!("{name}.git"))
    }

    /// What was asked so far, as `GET /name.git/info/refs?service=… 200`.
    pub fn requests(&self) -> Vec<String> {
        lock(&self.shared.requests).clone()
    }

    /// Git is away: nobody listens on the port.
    pub fn stop(&self) {
        let Some(accepting) = lock(&self.accepting).take() else {
            return;
        };
        self.shared.stopping.store(true, Ordering::SeqCst);
        // It waits for a connection: this is the one that tells it to end.
        let _ = TcpStream::connect((Ipv4Addr::LOCALHOST, self.port));
        let _ = accepting.join();
    }

    /// Git is back, on the same port with the same repositories.
    pub fn start_again(&self) {
        if lock(&self.accepting).is_some() {
            return;
        }
        let end = Instant::now() + BOUND;
        loop {
            match TcpListener::bind((Ipv4Addr::LOCALHOST, self.port)) {
                Ok(socket) => return self.serve(socket),
                // A child that another thread is just starting has a copy of the old socket until its `exec`.
                Err(e) if e.kind() == ErrorKind::AddrInUse && Instant::now() < end => {
                    std::thread::sleep(PAUSE);
                }
                Err(e) => panic!("cannot listen on port {}: {e}", self.port),
            }
        }
    }

    fn serve(&self, socket: TcpListener) {
        self.shared.stopping.store(false, Ordering::SeqCst);
        let shared = Arc::clone(&self.shared);
        *lock(&self.accepting) = Some(std::thread::spawn(move || {
            for connection in socket.incoming().flatten() {
                if shared.stopping.load(Ordering::SeqCst) {
                    return;
                }
                let shared = Arc::clone(&shared);
                // Ends with its connection, which has a bound on every read.
                std::thread::spawn(move || _ = http::serve(connection, &shared));
            }
        }));
    }
}

impl Drop for GitServer {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
