//! Splices by byte range, joined once.
//!
//! Easy to get wrong: two splices at one place keep the order in which they were gathered, inner
//! collections before outer ones.

use std::ops::Range;

#[derive(Default)]
pub(super) struct Splices(Vec<(Range<usize>, String)>);

impl Splices {
    pub(super) fn replace(&mut self, range: Range<usize>, text: impl Into<String>) {
        let text = text.into();
        if !range.is_empty() || !text.is_empty() {
            self.0.push((range, text));
        }
    }

    pub(super) fn insert(&mut self, at: usize, text: impl Into<String>) {
        self.replace(at..at, text);
    }

    pub(super) fn delete(&mut self, range: Range<usize>) {
        self.replace(range, "");
    }

    pub(super) fn adds_at(&self, at: usize) -> bool {
        self.0
            .iter()
            .any(|(range, text)| range.end == at && !text.is_empty())
    }

    pub(super) fn replace_if_untouched(&mut self, range: Range<usize>, text: &str) {
        let touched = self
            .0
            .iter()
            .any(|(other, _)| other.start <= range.start && range.start < other.end);
        if !touched {
            self.replace(range, text);
        }
    }

    pub(super) fn join(mut self, source: &str) -> String {
        self.0.sort_by_key(|(range, _)| range.start);
        let added: usize = self.0.iter().map(|(_, text)| text.len()).sum();
        let mut out = String::with_capacity(source.len() + added);
        let mut at = 0;
        for (range, text) in self.0 {
            if range.start > at {
                out.push_str(&source[at..range.start]);
            }
            out.push_str(&text);
            at = at.max(range.end);
        }
        out.push_str(&source[at..]);
        out
    }
}
