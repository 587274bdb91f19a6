//! Who has the book open: a side file `<book>.holder`, only to name somebody in [`Error::Busy`](crate::Error::Busy).
//!
//! The lock is redb's, on the book itself. This file says nothing about whether the book is free: it may be stale
//! after a crash, or not yet written. A process that is gone is never named.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

/// Removes the side file when dropped.
pub(super) struct HolderFile(PathBuf);

impl HolderFile {
    /// Says that this process has the book. Failing to say so fails nothing.
    pub(super) fn write(book: &Path, who: Option<&str>) -> Option<Self> {
        let path = beside(book);
        let command = who.map_or_else(command_line, str::to_owned);
        let text = format!("{}\n{}\n", std::process::id(), one_line(&command));
        let mut file = File::create(&path).ok()?;
        file.write_all(text.as_bytes()).ok()?;
        Some(Self(path))
    }
}

impl Drop for HolderFile {
    fn drop(&mut self) {
        // Best effort: a stale file is recognised by its process.
        let _ = fs::remove_file(&self.0);
    }
}

/// `pid 123 (moor render …)`, where that process still runs.
pub(super) fn named(book: &Path) -> Option<String> {
    let text = fs::read_to_string(beside(book)).ok()?;
    let (pid, command) = text.trim_end().split_once('\n')?;
    let pid: u32 = pid.parse().ok()?;
    runs(pid).then(|| format!("pid {pid} ({command})"))
}

fn beside(book: &Path) -> PathBuf {
    let mut name = OsString::from(book.as_os_str());
    name.push(".holder");
    PathBuf::from(name)
}

/// Without a process table to look at, every process is taken to run.
fn runs(pid: u32) -> bool {
    let table = Path::new("/proc/self");
    !table.exists() || Path::new("/proc").join(pid.to_string()).exists()
}

fn command_line() -> String {
    let mut words = std::env::args_os();
    let program = words.next().map(PathBuf::from);
    let program = program.as_deref().and_then(Path::file_name);
    let mut line = program.unwrap_or_default().to_string_lossy().into_owned();
    for word in words {
        line.push(' ');
        line.push_str(&word.to_string_lossy());
    }
    line
}

/// At most 80 characters without line breaks.
fn one_line(text: &str) -> String {
    let clean = |c: char| if c.is_control() { ' ' } else { c };
    let mut line: String = text.chars().take(80).map(clean).collect();
    if text.chars().nth(80).is_some() {
        line.push('…');
    }
    line
}
