//! Somebody else who commits to the same branch all the while, and whose commits must not be lost.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mooring_testkit::GitServer;

/// Between two pushes, at least.
const REST: Duration = Duration::from_millis(400);

pub(crate) struct Pusher {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Vec<String>>,
    bare: PathBuf,
}

impl Pusher {
    /// Pushes a note now and then, on top of whatever is there.
    pub(crate) fn start(git: &GitServer, repository: &str) -> Self {
        let bare = git.path(repository);
        let stop = Arc::new(AtomicBool::new(false));
        let thread = std::thread::spawn({
            let (bare, stop) = (bare.clone(), stop.clone());
            move || push_until(&bare, &stop)
        });
        Self { stop, thread, bare }
    }

    /// Ends it; every commit that it pushed must still be there. Gives how many.
    pub(crate) fn finish(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let commits = self.thread.join().unwrap();
        for commit in &commits {
            let args = ["merge-base", "--is-ancestor", commit, "main"];
            assert!(git(&self.bare, &args).is_some(), "{commit} was lost");
        }
        commits.len()
    }
}

fn push_until(bare: &Path, stop: &AtomicBool) -> Vec<String> {
    let work = tempfile::tempdir().unwrap();
    let dir = work.path();
    git(dir, &["init", "--quiet", "--initial-branch=main"]).unwrap();
    git(dir, &["remote", "add", "origin", bare.to_str().unwrap()]).unwrap();
    let mut commits = Vec::new();
    let mut number = 0;
    while !stop.load(Ordering::Relaxed) {
        number += 1;
        let begin = Instant::now();
        git(dir, &["fetch", "--quiet", "origin"]).unwrap();
        if git(dir, &["rev-parse", "--verify", "--quiet", "origin/main"]).is_some() {
            git(dir, &["reset", "--quiet", "--hard", "origin/main"]).unwrap();
        }
        let notes = dir.join("notes");
        std::fs::create_dir_all(&notes).unwrap();
        std::fs::write(notes.join(format!("{number}.txt")), "a note\n").unwrap();
        git(dir, &["add", "--all"]).unwrap();
        git(dir, &["commit", "--quiet", "-m", "a note"]).unwrap();
        // Whoever was faster wins; then this one is made anew.
        if git(dir, &["push", "--quiet", "origin", "HEAD:main"]).is_some() {
            commits.extend(git(dir, &["rev-parse", "HEAD"]));
        }
        // On a slow machine every act takes longer; one who did not rest longer too would push into each of them.
        std::thread::sleep(REST.max(begin.elapsed() * 3));
    }
    commits
}

fn git(dir: &Path, args: &[&str]) -> Option<String> {
    let said = Command::new("git")
        .current_dir(dir)
        .args([
            "-c",
            "user.name=other",
            "-c",
            "user.email=other@example.com",
        ])
        .args(args)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&said.stdout).trim().to_owned();
    said.status.success().then_some(text)
}
