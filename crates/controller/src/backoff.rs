//! How long an object waits after a failed try: doubled from try to try, bounded, forgotten at the first success.
//!
//! Kept per object, so that one that fails for hours does not slow the others down.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

const FIRST: Duration = Duration::from_millis(500);
const LONGEST: Duration = Duration::from_mins(2);

/// The failures in a row, by object.
#[derive(Debug, Default)]
pub(crate) struct Backoff(Mutex<BTreeMap<String, u32>>);

impl Backoff {
    /// Counts a failure and says how long to wait.
    pub(crate) fn failed(&self, object: &str) -> Duration {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let count = failures.entry(object.to_owned()).or_default();
        let wait = FIRST.saturating_mul(1 << (*count).min(16)).min(LONGEST);
        *count += 1;
        wait
    }

    /// Forgets the failures.
    pub(crate) fn succeeded(&self, object: &str) {
        let mut failures = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        failures.remove(object);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_a_bound_and_start_again_after_success() {
        let backoff = Backoff::default();
        let waits: Vec<Duration> = (0..12).map(|_| backoff.failed("a")).collect();
        assert_eq!(waits[0], FIRST);
        assert_eq!(waits[1], FIRST * 2);
        assert_eq!(waits[11], LONGEST);
        assert_eq!(backoff.failed("b"), FIRST);
        backoff.succeeded("a");
        assert_eq!(backoff.failed("a"), FIRST);
    }
}
