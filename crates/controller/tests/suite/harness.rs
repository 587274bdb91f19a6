//! A cluster and the program beside it, as processes.
//!
//! ```text
//!  Cluster::shared()   one API server for all tests with our CRDs    Cluster::own()   one for this test, to break
//!  Controller::start(cluster, roles, arguments) ─► ready             kill, freeze, thaw, terminate, restart, metric, log
//!  until("what", || look) ─► looks again and again, at most a minute, and shows what it saw last
//! ```
//!
//! Easy to get wrong: on the shared server a controller of another test sees your objects too. A test whose role acts on
//! everything it sees uses [`Controller::shared`], or a server of its own.

mod cluster;
mod collector;
mod program;

use std::time::{Duration, Instant};

use serde_json::Value;

pub(crate) use cluster::Cluster;
pub(crate) use collector::Collector;
pub(crate) use program::Controller;

/// How long a state may take to come.
const BOUND: Duration = Duration::from_mins(1);
/// Between two looks.
const PAUSE: Duration = Duration::from_millis(100);

/// Looks until it sees what is wanted. Fails after a minute with what it saw last.
#[track_caller]
pub(crate) fn until<T>(what: &str, look: impl FnMut() -> Result<T, String>) -> T {
    until_within(BOUND, what, look)
}

/// As [`until`], with another bound.
#[track_caller]
pub(crate) fn until_within<T>(
    bound: Duration,
    what: &str,
    mut look: impl FnMut() -> Result<T, String>,
) -> T {
    let end = Instant::now() + bound;
    loop {
        let seen = match look() {
            Ok(found) => return found,
            Err(seen) => seen,
        };
        assert!(
            Instant::now() < end,
            "not within {bound:?}: {what}\nlast seen: {seen}"
        );
        std::thread::sleep(PAUSE);
    }
}

/// Status and reason of a condition.
pub(crate) fn condition<'a>(object: &'a Value, kind: &str) -> Option<(&'a str, &'a str)> {
    let conditions = object["status"]["conditions"].as_array()?;
    let found = conditions.iter().find(|c| c["type"] == kind)?;
    Some((found["status"].as_str()?, found["reason"].as_str()?))
}

/// Waits until an object has a condition with that status and reason, and gives the object.
#[track_caller]
pub(crate) fn await_condition(
    cluster: &Cluster,
    path: &str,
    kind: &str,
    (status, reason): (&str, &str),
) -> Value {
    until(&format!("{path} is {kind}={status} ({reason})"), || {
        let object = cluster.get(path).ok_or("no such object")?;
        match condition(&object, kind) {
            Some(seen) if seen == (status, reason) => Ok(object),
            _ => Err(object["status"].to_string()),
        }
    })
}
