//! A program that a test writes and somebody else starts.
//!
//! Easy to get wrong: a file that this process wrote cannot be executed while any copy of its descriptor is open ("text
//! file busy"), and a child that another thread is just starting has such a copy until its `exec`. So another process
//! writes the file, and nobody can inherit anything from this one.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::must;

/// Writes a script that can be executed at once. Panics when it cannot.
#[track_caller]
pub fn script(path: &Path, text: &str) {
    let mut writer = Command::new("sh");
    writer
        .args(["-c", "cat > \"$0\" && chmod 755 \"$0\""])
        .arg(path)
        .stdin(Stdio::piped());
    let mut child = must(writer.spawn(), "write", path);
    if let Some(mut stdin) = child.stdin.take() {
        must(stdin.write_all(text.as_bytes()), "write", path);
    }
    let status = must(child.wait(), "write", path);
    assert!(
        status.success(),
        "cannot write {}: {status}",
        path.display()
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_can_be_started_while_other_threads_start_programs() {
        let dir = tempfile::tempdir().unwrap();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..100 {
                        Command::new("true").status().unwrap();
                    }
                });
            }
            for nth in 0..40 {
                let path = dir.path().join(format!("{nth}"));
                script(&path, &format!("#!/bin/sh\nexit {nth}\n"));
                assert_eq!(Command::new(&path).status().unwrap().code(), Some(nth));
            }
        });
    }
}
