//! What this process saw happen: one write per address leaves no room for an audit object beside it.
//!
//! Each entry goes to the observer that the store was opened with (the controller logs and counts it) and into a ring
//! that [`Store::audit`](crate::Store::audit) reads. Another process has another ring; the whole story is in the logs.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use super::Observer;
use crate::audit::{AuditFilter, Entry};

/// How many entries are kept.
const RING: usize = 10_000;

/// The latest entries, and who hears of each.
pub(super) struct Trail {
    ring: Mutex<VecDeque<Entry>>,
    observer: Option<Observer>,
}

impl Trail {
    pub(super) fn new(observer: Option<Observer>) -> Self {
        Self {
            ring: Mutex::default(),
            observer,
        }
    }

    pub(super) fn tell(&self, entry: Entry) {
        if let Some(observer) = &self.observer {
            observer(&entry);
        }
        let mut ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        ring.push_back(entry);
        if ring.len() > RING {
            ring.pop_front();
        }
    }

    pub(super) fn read(&self, filter: &AuditFilter, limit: usize) -> Vec<Entry> {
        let ring = self.ring.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = ring.iter().rev().filter(|entry| filter.fits(entry));
        let mut found: Vec<Entry> = fitting.take(limit).cloned().collect();
        found.reverse();
        found
    }
}
