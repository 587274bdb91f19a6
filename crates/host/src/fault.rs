//! Places at which a test may kill this process: between two steps that a crash can separate.
//!
//! Called by whoever changes the kernel or a state file (`host`, `cni`), read by the crash tests. Two variables, honoured
//! only in builds with debug assertions; a release build has an empty function here:
//!
//! | variable | what it does |
//! |---|---|
//! | `MOOR_CNI_DIE_AT` | `7`: die at the seventh point reached. `moved`: die at the first point of that name |
//! | `MOOR_CNI_POINTS` | a file; the name of each point reached is appended to it, a line each |
//!
//! So a test runs once with `MOOR_CNI_POINTS`, counts the lines, and then runs once per line with `MOOR_CNI_DIE_AT`.
//! Dying is SIGKILL: no destructor, no flush, no panic hook. Easy to get wrong: a point belongs *between* two effects
//! (after the write, before the move), and never inside a lock's own code.

/// A place where a test may end the process. `name` says what has just been done, for example `record-written`.
#[cfg(not(debug_assertions))]
#[inline]
pub fn point(_name: &'static str) {}

/// A place where a test may end the process. `name` says what has just been done, for example `record-written`.
#[cfg(debug_assertions)]
pub fn point(name: &'static str) {
    use std::sync::atomic::{AtomicU32, Ordering};

    static REACHED: AtomicU32 = AtomicU32::new(0);
    let nth = REACHED.fetch_add(1, Ordering::SeqCst) + 1;
    if let Some(path) = std::env::var_os("MOOR_CNI_POINTS") {
        note(path.as_ref(), name);
    }
    if let Ok(wanted) = std::env::var("MOOR_CNI_DIE_AT")
        && is_here(&wanted, nth, name)
    {
        die();
    }
}

/// Whether the point reached as the `nth`, called `name`, is the one that was asked for.
#[cfg(debug_assertions)]
fn is_here(wanted: &str, nth: u32, name: &str) -> bool {
    wanted.parse::<u32>().map_or(wanted == name, |n| n == nth)
}

#[cfg(debug_assertions)]
fn note(path: &std::path::Path, name: &str) {
    use std::io::Write as _;

    // A test reads it; a test that cannot write there fails by its own count.
    if let Ok(mut file) = std::fs::OpenOptions::new()
        .create(true)
        .append(true)
        .open(path)
    {
        let _ = file.write_all(format!("{name}\n").as_bytes());
    }
}

#[cfg(debug_assertions)]
fn die() -> ! {
    use nix::sys::signal::{Signal, kill};

    let _ = kill(nix::unistd::Pid::this(), Signal::SIGKILL);
    // Not reached: a process cannot block SIGKILL.
    std::process::abort()
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_point_is_found_by_number_or_by_name() {
        assert!(super::is_here("3", 3, "moved"));
        assert!(!super::is_here("3", 2, "moved"));
        assert!(super::is_here("moved", 9, "moved"));
        assert!(!super::is_here("moved", 9, "configured"));
        assert!(!super::is_here("", 1, "moved"));
    }
}
