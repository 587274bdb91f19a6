//! How far a long run is: one line on stderr that replaces itself, only on a terminal and only after a second.

use std::cell::Cell;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// Work shorter than this is not worth a line.
const PATIENCE: Duration = Duration::from_secs(1);
/// How often the line changes.
const RHYTHM: Duration = Duration::from_millis(200);

/// A line that is removed when the value is dropped.
pub(crate) struct Progress {
    started: Instant,
    shown: Cell<Option<Instant>>,
    terminal: bool,
}

impl Progress {
    /// Starts counting.
    pub(crate) fn start() -> Self {
        Self {
            started: Instant::now(),
            shown: Cell::new(None),
            terminal: std::io::stderr().is_terminal(),
        }
    }

    /// So many of so many packages are done.
    pub(crate) fn tell(&self, done: usize, all: usize) {
        let now = Instant::now();
        let quiet = now.duration_since(self.started) < PATIENCE;
        let fresh = self
            .shown
            .get()
            .is_some_and(|last| now.duration_since(last) < RHYTHM);
        if !self.terminal || quiet || fresh {
            return;
        }
        self.shown.set(Some(now));
        let _ = write!(std::io::stderr(), "\r{done} of {all} packages\u{1b}[K");
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if self.shown.get().is_some() {
            let _ = write!(std::io::stderr(), "\r\u{1b}[K");
        }
    }
}
