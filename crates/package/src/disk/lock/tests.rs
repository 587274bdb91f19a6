use std::process::{Child, Command, Stdio};

use tempfile::TempDir;

use super::*;

const AT_ONCE: Duration = Duration::ZERO;

/// Under a directory with `.git`, so that no lock reaches above.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    fs::create_dir_all(dir.path().join(".git")).unwrap();
    fs::create_dir_all(dir.path().join("fleet/a")).unwrap();
    fs::create_dir_all(dir.path().join("fleet/b")).unwrap();
    dir
}

fn take(dir: &TempDir, path: &str) -> Result<TreeLock, Code> {
    TreeLock::take(&dir.path().join(path), AT_ONCE).map_err(|f| f.code)
}

#[test]
fn two_runs_in_one_tree_exclude_each_other() {
    let dir = tree();
    let held = take(&dir, "fleet/a").unwrap();
    assert_eq!(take(&dir, "fleet/a").unwrap_err(), Code::PackageBusy);
    drop(held);
    take(&dir, "fleet/a").unwrap();
}

#[test]
fn a_run_over_a_directory_excludes_runs_below_and_siblings_do_not() {
    let dir = tree();
    let a = take(&dir, "fleet/a").unwrap();
    let b = take(&dir, "fleet/b").unwrap();
    assert_eq!(take(&dir, "fleet").unwrap_err(), Code::PackageBusy);
    drop((a, b));
    let _fleet = take(&dir, "fleet").unwrap();
    assert_eq!(take(&dir, "fleet/a").unwrap_err(), Code::PackageBusy);
}

#[test]
fn nothing_is_left_behind() {
    let dir = tree();
    drop(take(&dir, "fleet/a").unwrap());
    assert_eq!(fs::read_dir(dir.path().join("fleet/a")).unwrap().count(), 0);
    drop(take(&dir, "fleet/new").unwrap());
    assert!(!dir.path().join("fleet/new").exists());
    drop(take(&dir, "fleet/deep/down/here").unwrap());
    assert!(!dir.path().join("fleet/deep").exists());
    assert!(dir.path().join("fleet").exists());
    let held = take(&dir, "fleet/used").unwrap();
    fs::create_dir(held.root().join("something")).unwrap();
    drop(held);
    assert!(dir.path().join("fleet/used/something").exists());
}

#[test]
fn with_a_journal_above_the_lock_is_taken_there() {
    let dir = tree();
    File::create(dir.path().join("fleet").join(journal::JOURNAL)).unwrap();
    let held = take(&dir, "fleet/a").unwrap();
    assert!(held.root().ends_with("fleet"));
    assert_eq!(take(&dir, "fleet/b").unwrap_err(), Code::PackageBusy);
}

/// Another process with the lock, until dropped.
struct Other(Child);

impl Drop for Other {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// This test program, run again for the test below only, holds the lock and says so.
fn other(root: &Path) -> Other {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([
            "--exact",
            "disk::lock::tests::holds_the_lock_for_another_test",
        ])
        .args(["--ignored", "--nocapture"])
        .env("MOORING_TEST_LOCK", root)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let said = io::BufReader::new(child.stdout.take().unwrap());
    let held = io::BufRead::lines(said).any(|line| line.unwrap().contains("lock taken"));
    assert!(held);
    Other(child)
}

#[test]
#[ignore = "child: other tests start it as a process"]
fn holds_the_lock_for_another_test() {
    let root = std::env::var_os("MOORING_TEST_LOCK").unwrap();
    let _held = TreeLock::take(Path::new(&root), AT_ONCE).unwrap();
    println!("lock taken");
    // Until killed, or until the parent is gone.
    let _ = io::copy(&mut io::stdin(), &mut io::sink());
}

#[test]
fn another_process_is_named_and_its_death_frees_the_lock() {
    let dir = tree();
    let root = dir.path().join("fleet/a");
    let other = other(&root);
    let finding = TreeLock::take(&root, AT_ONCE).unwrap_err();
    assert_eq!(finding.code, Code::PackageBusy);
    let pid = format!("(process {})", other.0.id());
    assert!(finding.message.contains(&pid), "{finding}");
    drop(other);
    TreeLock::take(&root, AT_ONCE).unwrap();
}
