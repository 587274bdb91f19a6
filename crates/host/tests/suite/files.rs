use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::process::{Command, Stdio};
use std::sync::Barrier;
use std::time::Duration;

use mooring_host::file::{self, Lock, LockError};

#[test]
fn a_file_is_replaced_whole_and_nothing_stays_beside_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/er/record.json");
    file::write_atomic(&path, b"one").unwrap();
    file::write_atomic(&path, b"two").unwrap();
    assert_eq!(file::read(&path).unwrap().unwrap(), b"two");
    let mode = std::fs::metadata(&path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
    assert!(file::remove(&path).unwrap());
    assert!(!file::remove(&path).unwrap(), "absent is success");
    assert_eq!(file::read(&path).unwrap(), None);
    // A directory in its place is refused, and the attempt leaves nothing.
    std::fs::create_dir(&path).unwrap();
    assert!(file::write_atomic(&path, b"three").is_err());
    let names: Vec<_> = std::fs::read_dir(path.parent().unwrap()).unwrap().collect();
    assert_eq!(names.len(), 1, "{names:?}");
}

#[test]
fn of_many_only_one_creates() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("10.0.0.5");
    let start = Barrier::new(8);
    let won: Vec<_> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|n| {
                let (path, start) = (&path, &start);
                scope.spawn(move || {
                    start.wait();
                    match file::create_exclusive(path, format!("owner {n}").as_bytes()) {
                        Ok(()) => Some(n),
                        Err(e) if e.kind() == ErrorKind::AlreadyExists => None,
                        Err(e) => panic!("{e}"),
                    }
                })
            })
            .collect();
        threads
            .into_iter()
            .filter_map(|t| t.join().unwrap())
            .collect()
    });
    assert_eq!(won.len(), 1, "{won:?}");
    let text = String::from_utf8(file::read(&path).unwrap().unwrap()).unwrap();
    assert_eq!(text, format!("owner {}", won[0]));
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 1);
}

#[test]
fn a_lock_of_another_process_is_waited_for_and_has_a_bound() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("locks/lock");
    drop(Lock::exclusive(&path, Duration::from_secs(1)).unwrap());
    // Another process: flock(1) holds it until its stdin ends, and says when it has it.
    let mut holder = Command::new("flock")
        .arg(&path)
        .args(["sh", "-c", "echo held; cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is there");
    let mut said = [0; 5];
    std::io::Read::read_exact(holder.stdout.as_mut().unwrap(), &mut said).unwrap();
    let busy = Lock::exclusive(&path, Duration::from_millis(30)).unwrap_err();
    assert!(matches!(busy, LockError::Busy { .. }), "{busy}");
    let waiting = std::thread::scope(|scope| {
        let waiter = scope.spawn(|| Lock::exclusive(&path, Duration::from_secs(30)));
        drop(holder.stdin.take());
        holder.wait().unwrap();
        waiter.join().unwrap()
    });
    let held = waiting.unwrap();
    assert!(Lock::exclusive(&path, Duration::from_millis(1)).is_err());
    drop(held);
    Lock::exclusive(&path, Duration::from_secs(30)).unwrap();
}

#[test]
fn a_lock_file_that_was_removed_is_no_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let old = Lock::exclusive(&path, Duration::from_secs(1)).unwrap();
    std::fs::remove_file(&path).unwrap();
    let new = Lock::exclusive(&path, Duration::from_secs(1)).unwrap();
    drop(old);
    assert!(Lock::exclusive(&path, Duration::from_millis(1)).is_err());
    drop(new);
    // A directory can be locked too.
    Lock::exclusive(directory.path(), Duration::from_secs(1)).unwrap();
}
