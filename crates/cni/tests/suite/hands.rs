//! Several nodes at once: most of what a plugin does is to wait for the kernel, and one test after the other would wait in turn.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread::ScopedJoinHandle;

/// How many jobs of one test run at a time. The harness runs tests beside each other already, and some measure time.
const HANDS: usize = 2;

/// Does all jobs, some at a time; gives what came of each, in their order.
pub(crate) fn each<J: Sync, R: Send>(jobs: &[J], job: impl Fn(&J) -> R + Sync) -> Vec<R> {
    let next = AtomicUsize::new(0);
    let hand = || {
        let take = || {
            let nth = next.fetch_add(1, Ordering::Relaxed);
            jobs.get(nth).map(|one| (nth, job(one)))
        };
        std::iter::from_fn(take).collect::<Vec<_>>()
    };
    let mut done = std::thread::scope(|scope| {
        let hands: Vec<_> = (0..HANDS.min(jobs.len()))
            .map(|_| scope.spawn(hand))
            .collect();
        let ended = hands.into_iter().map(ScopedJoinHandle::join);
        // A panic of a job is the test's.
        ended
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect::<Vec<_>>()
    });
    done.sort_by_key(|(nth, _)| *nth);
    done.into_iter().map(|(_, result)| result).collect()
}
