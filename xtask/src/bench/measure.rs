//! What benches share: timing, and building the tables of a report.

use std::time::Duration;

use anyhow::Result;

use super::{Curve, Row};

/// The best of several runs: the one that the machine disturbed least. The work times itself, so that its
/// preparation does not count.
pub(super) fn best_of(runs: u32, mut work: impl FnMut() -> Result<Duration>) -> Result<Duration> {
    let first = work()?;
    (1..runs).try_fold(first, |best, _| Ok(best.min(work()?)))
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
        }
    }
}
