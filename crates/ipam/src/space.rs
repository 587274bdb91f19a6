//! Where there is room: the part of a prefix that may be handed out, minus what is taken.
//!
//! ```text
//!  segments   hosts ∩ ranges − exclusions − gateway − kept − prefixes inside      (few, from Pools)
//!  sets       addresses and ranges, blocks, what was offered already              (many, from the Table)
//! ```
//!
//! Nothing is enumerated: a question costs O(log segments + levels of the sets), and a /64 costs what a /29
//! does. Walking all free runs is linear in the runs.

use std::borrow::Cow;

use mooring_api::{AddrRange, Family};

use crate::table::Bits;

/// Inclusive numbers.
pub(crate) type Span = (u128, u128);

/// A range as numbers.
pub(crate) fn span(range: AddrRange) -> Span {
    (Family::number(range.first()), Family::number(range.last()))
}

/// `from`, which is ascending and disjoint, without `holes`.
pub(crate) fn without(from: &[Span], mut holes: Vec<Span>) -> Vec<Span> {
    holes.sort_unstable();
    let mut left = Vec::with_capacity(from.len() + holes.len());
    for (first, last) in from.iter().copied() {
        let mut at = Some(first);
        for (from, to) in holes
            .iter()
            .copied()
            .filter(|h| h.1 >= first && h.0 <= last)
        {
            let Some(start) = at else { break };
            if from > start {
                left.push((start, from - 1));
            }
            // Holes may overlap, so a later one can end earlier.
            at = to.checked_add(1).map(|next| next.max(start));
        }
        if let Some(start) = at.filter(|start| *start <= last) {
            left.push((start, last));
        }
    }
    left
}

/// Ascending, neighbours and overlaps joined: a block may lie across two ranges that touch.
pub(crate) fn joined(mut spans: Vec<Span>) -> Vec<Span> {
    spans.sort_unstable();
    spans.dedup_by(|span, before| {
        let touch = before.1.saturating_add(1) >= span.0;
        if touch {
            before.1 = before.1.max(span.1);
        }
        touch
    });
    spans
}

/// The part of both.
pub(crate) fn within(spans: &[Span], bounds: Span) -> Vec<Span> {
    spans
        .iter()
        .map(|s| (s.0.max(bounds.0), s.1.min(bounds.1)))
        .filter(|s| s.0 <= s.1)
        .collect()
}

/// Room to take from.
#[derive(Clone, Debug)]
pub(crate) struct Space<'a> {
    segments: Vec<Span>,
    sets: Vec<Cow<'a, Bits>>,
    /// Offered before, by this very iterator. Most claims take the first offer and never need it.
    offered: Option<Box<Bits>>,
}

impl<'a> Space<'a> {
    /// `segments` ascending and disjoint.
    pub(crate) fn new(segments: Vec<Span>, sets: Vec<Cow<'a, Bits>>) -> Self {
        Self {
            segments,
            sets,
            offered: None,
        }
    }

    /// The same sets over other segments.
    pub(crate) fn over(&self, segments: Vec<Span>) -> Self {
        Self {
            segments,
            sets: self.sets.clone(),
            offered: None,
        }
    }

    /// What may be handed out, taken or not.
    pub(crate) fn segments(&self) -> &[Span] {
        &self.segments
    }

    /// How many may be handed out, taken or not.
    pub(crate) fn size(&self) -> u128 {
        self.segments.iter().fold(0, |sum, (a, b)| {
            sum.saturating_add((b - a).saturating_add(1))
        })
    }

    /// Never offer it again.
    pub(crate) fn offered(&mut self, first: u128, last: u128) {
        self.offered.get_or_insert_default().fill(first, last);
    }

    fn sets(&self) -> impl Iterator<Item = &Bits> {
        self.sets
            .iter()
            .map(AsRef::as_ref)
            .chain(self.offered.as_deref())
    }

    /// The first free number from `x` on.
    pub(crate) fn next_free(&self, mut x: u128) -> Option<u128> {
        loop {
            let at = self.segments.partition_point(|s| s.1 < x);
            let (first, last) = *self.segments.get(at)?;
            x = x.max(first);
            // Each set moves it on; done when as many as there are agree in a row.
            let (mut y, mut agree) = (x, 0);
            let sets = self.sets().count();
            while agree < sets {
                for set in self.sets() {
                    let moved = set.next_free(y)?;
                    agree = if moved == y { agree + 1 } else { 1 };
                    y = moved;
                }
            }
            if y <= last {
                return Some(y);
            }
            x = y;
        }
    }

    /// The last free number in a row from `x` on, which is free.
    pub(crate) fn run_end(&self, x: u128) -> u128 {
        let at = self.segments.partition_point(|s| s.1 < x);
        let end = self.segments.get(at).map_or(x, |s| s.1);
        self.sets()
            .filter_map(|set| set.next_taken(x))
            .map(|taken| taken.saturating_sub(1))
            .fold(end, u128::min)
    }

    /// Free runs, ascending.
    pub(crate) fn runs(&self) -> impl Iterator<Item = Span> + '_ {
        let mut from = Some(0);
        std::iter::from_fn(move || {
            let first = self.next_free(from?)?;
            let last = self.run_end(first);
            from = last.checked_add(1);
            Some((first, last))
        })
    }

    /// How many are free. Linear in what is taken inside.
    pub(crate) fn free(&self) -> u128 {
        if let [only] = self.sets.as_slice()
            && self.offered.is_none()
        {
            let taken = self.segments.iter().map(|s| only.count(s.0, s.1));
            return self.size().saturating_sub(taken.sum());
        }
        self.runs().fold(0, |sum, (a, b)| {
            sum.saturating_add((b - a).saturating_add(1))
        })
    }

    /// The longest free run among the first 65,536.
    pub(crate) fn largest_run(&self) -> u128 {
        let runs = self.runs().take(1 << 16);
        runs.map(|(a, b)| (b - a).saturating_add(1))
            .max()
            .unwrap_or(0)
    }

    /// Whether all of them are free.
    pub(crate) fn is_free(&self, first: u128, last: u128) -> bool {
        self.next_free(first) == Some(first) && (first == last || self.run_end(first) >= last)
    }

    /// The lowest start from `x` on of `size` free numbers in a row, a multiple of `align`.
    pub(crate) fn next_fit(&self, mut x: u128, size: u128, align: u128) -> Option<u128> {
        loop {
            let free = self.next_free(x)?;
            let start = free.checked_next_multiple_of(align)?;
            if start != free && self.next_free(start)? != start {
                x = start;
                continue;
            }
            if size == 1 {
                return Some(start);
            }
            let end = self.run_end(start);
            if end - start >= size - 1 {
                return Some(start);
            }
            x = end.checked_add(1)?;
        }
    }

    /// The start of the smallest free aligned block of at least `size` (a power of two), the lowest among
    /// equals. Linear in the free runs, but done at the first block of exactly that size.
    pub(crate) fn best_block(&self, size: u128) -> Option<u128> {
        let wanted = size.trailing_zeros();
        let mut best: Option<(u32, u128)> = None;
        for (first, last) in self.runs() {
            for (start, bits) in aligned(first, last) {
                if bits >= wanted && best.is_none_or(|(b, _)| bits < b) {
                    best = Some((bits, start));
                }
            }
            if best.is_some_and(|(bits, _)| bits == wanted) {
                break;
            }
        }
        best.map(|(_, start)| start)
    }

    /// The start of the shortest free run of at least `size`, the lowest among equals.
    pub(crate) fn best_run(&self, size: u128) -> Option<u128> {
        let fitting = self.runs().filter(|(a, b)| b - a >= size - 1);
        fitting.min_by_key(|(a, b)| b - a).map(|(a, _)| a)
    }
}

/// A run cut into maximal aligned blocks: start and number of host bits.
pub(crate) fn aligned(first: u128, last: u128) -> impl Iterator<Item = (u128, u32)> {
    let mut at = Some(first);
    std::iter::from_fn(move || {
        let start = at.filter(|start| *start <= last)?;
        let left = last - start;
        let by_length = left.checked_add(1).map_or(127, |n| n.ilog2());
        let bits = start.trailing_zeros().min(by_length);
        at = start.checked_add(1u128 << bits);
        Some((start, bits))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_may_overlap_and_touch_the_edges() {
        assert_eq!(
            without(
                &joined(vec![(10, 20), (0, 9)]),
                vec![(0, 0), (5, 12), (6, 7), (20, 30)]
            ),
            [(1, 4), (13, 19)]
        );
        assert_eq!(without(&[(3, u128::MAX)], vec![(9, u128::MAX)]), [(3, 8)]);
        assert_eq!(without(&[(3, 5)], vec![(0, 9)]), []);
    }

    #[test]
    fn a_run_is_cut_at_its_alignment() {
        assert_eq!(
            aligned(1, 6).collect::<Vec<_>>(),
            [(1, 0), (2, 1), (4, 1), (6, 0)]
        );
        assert_eq!(aligned(0, 7).collect::<Vec<_>>(), [(0, 3)]);
        assert_eq!(aligned(u128::MAX, u128::MAX).count(), 1);
        assert_eq!(aligned(0, u128::MAX).count(), 2);
    }

    #[test]
    fn a_fit_jumps_over_what_is_taken() {
        let mut taken = Bits::default();
        taken.fill(0, 5);
        taken.fill(9, 9);
        let space = Space::new(vec![(0, 31)], vec![Cow::Owned(taken)]);
        assert_eq!(space.next_fit(0, 4, 4), Some(12));
        assert_eq!(space.next_fit(0, 3, 1), Some(6));
        assert_eq!(space.next_fit(0, 4, 1), Some(10));
        assert_eq!(space.next_fit(0, 32, 1), None);
        assert_eq!(space.runs().collect::<Vec<_>>(), [(6, 8), (10, 31)]);
        assert_eq!(space.best_run(3), Some(6));
    }
}
