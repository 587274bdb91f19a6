//! Independent work on all cores, answers in the order of the questions.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Below this many items a thread costs more than it brings.
const WORTH_A_THREAD: usize = 16;

/// How many threads may wait for the disk at once.
const WAITING: usize = 16;

/// Whether that many items are shared among threads.
pub(crate) fn is_shared(items: usize) -> bool {
    items >= WORTH_A_THREAD && cores() > 1
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

/// Applies `f` to every item.
pub(crate) fn map<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    on(cores(), items, f)
}

/// As [`map`], for work that waits for the disk and hardly computes.
pub(crate) fn wait<T: Send, R: Send>(items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    on(WAITING, items, f)
}

fn on<T: Send, R: Send>(threads: usize, items: Vec<T>, f: impl Fn(T) -> R + Sync) -> Vec<R> {
    if !is_shared(items.len()) {
        return items.into_iter().map(f).collect();
    }
    let questions: Vec<Mutex<Option<T>>> = items.into_iter().map(|i| Mutex::new(Some(i))).collect();
    let answers: Vec<Mutex<Option<R>>> = questions.iter().map(|_| Mutex::new(None)).collect();
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                loop {
                    let i = next.fetch_add(1, Ordering::Relaxed);
                    let Some(question) = questions.get(i) else {
                        return;
                    };
                    let item = question.lock().ok().and_then(|mut q| q.take());
                    let answer = item.map(&f);
                    if let Ok(mut place) = answers[i].lock() {
                        *place = answer;
                    }
                }
            });
        }
    });
    let taken = answers.into_iter().map(|a| a.into_inner().ok().flatten());
    taken
        .map(|a| a.expect("the scope joined every thread, and each index was answered once"))
        .collect()
}

#[cfg(test)]
mod tests {
    #[test]
    fn answers_come_in_the_order_of_the_questions() {
        let squares = super::map((0..1000u64).collect(), |n| n * n);
        assert!(
            squares
                .iter()
                .enumerate()
                .all(|(i, s)| *s == (i * i) as u64)
        );
    }
}
