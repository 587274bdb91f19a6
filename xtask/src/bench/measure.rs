//! What benches share: timing, and building the tables of a report.

use std::fs;
use std::time::Duration;

use anyhow::{Context as _, Result};

use super::{Curve, Row};

/// How long this thread has run on a processor: what a busy machine takes away does not count.
pub(super) fn cpu_time() -> Result<Duration> {
    let path = "/proc/thread-self/schedstat";
    let text = fs::read_to_string(path).with_context(|| format!("cannot read {path}"))?;
    let nanos = text.split_whitespace().next().and_then(|n| n.parse().ok());
    Ok(Duration::from_nanos(
        nanos.with_context(|| format!("{path} has no time"))?,
    ))
}

/// How many of them fit into a second.
pub(super) fn per_second(count: u32, time: Duration) -> f64 {
    f64::from(count) / time.as_secs_f64()
}

/// A time for people.
pub(super) fn seconds(time: Duration) -> String {
    format!("{:.1} ms", time.as_secs_f64() * 1e3)
}

impl Curve {
    pub(super) fn new(title: &str, columns: &[&str]) -> Self {
        Self {
            title: title.to_owned(),
            columns: columns.iter().map(|c| (*c).to_owned()).collect(),
            points: Vec::new(),
        }
    }

    pub(super) fn push<const N: usize>(&mut self, point: [String; N]) {
        self.points.push(point.to_vec());
    }
}

impl Row {
    pub(super) fn new(work: &str, budget: &str, measured: String, met: bool) -> Self {
        Self {
            work: work.to_owned(),
            budget: budget.to_owned(),
            measured,
            met,
            floor_misses: false,
        }
    }

    /// Says whether the floor meets it: a budget that nobody could meet is told apart from one that we miss.
    pub(super) fn floor(mut self, met: bool) -> Self {
        self.floor_misses = !met;
        self
    }
}
