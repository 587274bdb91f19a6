//! Which numbers are taken: the free-space index.
//!
//! ```text
//!  level 2   one bit = 4096 addresses, all taken
//!  level 1   one bit = 64 addresses, all taken
//!  level 0   one bit = one address
//! ```
//!
//! A word of 64 set bits is replaced by one bit a level higher, and a word without bits is dropped, so a
//! full /8 is a handful of words and one with every second address free is 262,144 of them (about
//! 10 MiB). IPv6 costs what is taken in it, never its size. Asking for the next free or next taken
//! number touches one word per level that has any: O(levels · log words), however much is taken before it.
//!
//! Easy to get wrong: `fill` wants numbers that are all free, `clear` numbers that are all taken. The
//! table asks first.

use std::collections::BTreeMap;

/// 22 levels of 6 bits cover 128.
const LEVELS: u32 = 22;

/// A set of numbers, cheap where they are dense and where they are far apart.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bits {
    /// Up to the highest that has words.
    levels: Vec<BTreeMap<u128, u64>>,
    /// Taken numbers in a row: what was filled last, with what was filled right before it. Whoever takes
    /// the lowest free number again and again finds its end here.
    run: Option<(u128, u128)>,
}

impl PartialEq for Bits {
    fn eq(&self, other: &Self) -> bool {
        self.levels == other.levels
    }
}

impl Eq for Bits {}

/// Bits `from..=to` of a word.
fn mask(from: u128, to: u128) -> u64 {
    (u64::MAX << (from & 63)) & (u64::MAX >> (63 - (to & 63)))
}

/// A number in units of a level.
fn unit(x: u128, level: u32) -> u128 {
    x.checked_shr(6 * level).unwrap_or(0)
}

/// First number of a unit; None past the end of the number space.
fn start(unit: u128, level: u32) -> Option<u128> {
    let shift = 6 * level;
    if unit == 0 {
        return Some(0);
    }
    (shift <= unit.leading_zeros()).then(|| unit << shift)
}

impl Bits {
    fn level(&mut self, level: u32) -> &mut BTreeMap<u128, u64> {
        let level = level as usize;
        if level >= self.levels.len() {
            self.levels.resize_with(level + 1, BTreeMap::new);
        }
        &mut self.levels[level]
    }

    fn drop_word(&mut self, level: u32, key: u128) {
        self.level(level).remove(&key);
        while self.levels.last().is_some_and(BTreeMap::is_empty) {
            self.levels.pop();
        }
    }

    /// The levels that have words, highest first.
    fn used(&self) -> impl DoubleEndedIterator<Item = (u32, &BTreeMap<u128, u64>)> {
        (0..LEVELS)
            .zip(&self.levels)
            .rev()
            .filter(|(_, words)| !words.is_empty())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.levels.is_empty()
    }

    pub(crate) fn contains(&self, x: u128) -> bool {
        self.used().any(|(level, words)| {
            let unit = unit(x, level);
            words
                .get(&(unit >> 6))
                .is_some_and(|word| word >> (unit & 63) & 1 == 1)
        })
    }

    /// Marks `first..=last`, all of them free before.
    pub(crate) fn fill(&mut self, first: u128, last: u128) {
        let joins = |run: &(u128, u128)| run.1.checked_add(1) == Some(first);
        let from = self.run.filter(joins).map_or(first, |run| run.0);
        self.run = Some((from, last));
        let (mut lo, mut hi) = (first, last);
        for level in 0..LEVELS {
            if lo >> 6 == hi >> 6 {
                self.set(level, lo >> 6, mask(lo, hi));
                return;
            }
            if lo & 63 != 0 {
                self.set(level, lo >> 6, mask(lo, 63));
                lo = (lo | 63) + 1;
            }
            if hi & 63 != 63 {
                self.set(level, hi >> 6, mask(0, hi));
                // The two ends lie in different words, so there is a word below this one.
                hi = (hi & !63) - 1;
            }
            if lo > hi {
                return;
            }
            (lo, hi) = (lo >> 6, hi >> 6);
        }
    }

    fn set(&mut self, level: u32, key: u128, bits: u64) {
        let word = self.level(level).entry(key).or_default();
        *word |= bits;
        if *word == u64::MAX && level + 1 < LEVELS {
            self.drop_word(level, key);
            self.set(level + 1, key >> 6, 1 << (key & 63));
        }
    }

    /// Frees `first..=last`, all of them taken before.
    pub(crate) fn clear(&mut self, first: u128, last: u128) {
        self.run = self.run.filter(|run| last < run.0 || run.1 < first);
        let (mut lo, mut hi) = (first, last);
        for level in 0..LEVELS {
            if lo >> 6 == hi >> 6 {
                self.unset(level, lo >> 6, mask(lo, hi));
                return;
            }
            if lo & 63 != 0 {
                self.unset(level, lo >> 6, mask(lo, 63));
                lo = (lo | 63) + 1;
            }
            if hi & 63 != 63 {
                self.unset(level, hi >> 6, mask(0, hi));
                hi = (hi & !63) - 1;
            }
            if lo > hi {
                return;
            }
            (lo, hi) = (lo >> 6, hi >> 6);
        }
    }

    fn unset(&mut self, level: u32, key: u128, bits: u64) {
        self.open(level, key);
        if let Some(word) = self.level(level).get_mut(&key) {
            *word &= !bits;
            if *word == 0 {
                self.drop_word(level, key);
            }
        }
    }

    /// Makes a word explicit whose numbers are all taken by a bit of a higher level.
    fn open(&mut self, level: u32, key: u128) {
        if self.level(level).contains_key(&key) || level + 1 >= LEVELS {
            return;
        }
        self.unset(level + 1, key >> 6, 1 << (key & 63));
        self.level(level).insert(key, u64::MAX);
    }

    /// The first free number from `x` on.
    pub(crate) fn next_free(&self, mut x: u128) -> Option<u128> {
        if let Some((_, last)) = self.run.filter(|run| run.0 <= x && x <= run.1) {
            x = last.checked_add(1)?;
        }
        'again: loop {
            for (level, words) in self.used() {
                let at = unit(x, level);
                let (key, bit) = (at >> 6, at & 63);
                let Some(word) = words.get(&key) else {
                    continue;
                };
                if word >> bit & 1 == 0 {
                    continue;
                }
                let free = !word & mask(bit, 63);
                if free == 0 {
                    x = start(key + 1, level + 1)?;
                    continue 'again;
                }
                // The word is there, so no higher level takes any of it: go on with the lower ones.
                x = start((key << 6) + u128::from(free.trailing_zeros()), level)?;
            }
            return Some(x);
        }
    }

    /// The first taken number from `x` on.
    pub(crate) fn next_taken(&self, x: u128) -> Option<u128> {
        self.used()
            .filter_map(|(level, words)| {
                let at = unit(x, level);
                let key = at >> 6;
                let here = words.get(&key).map_or(0, |word| word & mask(at, 63));
                let (key, word) = if here == 0 {
                    words.range(key + 1..).next().map(|(k, w)| (*k, *w))?
                } else {
                    (key, here)
                };
                start((key << 6) + u128::from(word.trailing_zeros()), level).map(|s| s.max(x))
            })
            .min()
    }

    /// How many of `first..=last` are taken. Linear in the words between them.
    pub(crate) fn count(&self, first: u128, last: u128) -> u128 {
        let mut total = 0u128;
        for (level, words) in self.used() {
            let (lo, hi) = (unit(first, level), unit(last, level));
            for (key, word) in words.range(lo >> 6..=hi >> 6) {
                let mut bits = *word;
                while bits != 0 {
                    let at = (key << 6) + u128::from(bits.trailing_zeros());
                    bits &= bits - 1;
                    let Some(from) = start(at, level) else { break };
                    let to = from | ((1u128 << (6 * level)) - 1);
                    if from <= last && to >= first {
                        total = total.saturating_add(to.min(last) - from.max(first) + 1);
                    }
                }
            }
        }
        total
    }

    /// Bytes on the heap, from the shape of the standard library's B-tree: nodes of 11, at least 5 full
    /// (a tree that only grew at its end has 6 in most).
    pub(crate) fn heap_bytes(&self) -> usize {
        let node = 11 * (size_of::<u128>() + size_of::<u64>()) + 16;
        let words: usize = self.levels.iter().map(BTreeMap::len).sum();
        words.div_ceil(6) * (node + node / 6) + size_of::<Self>()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn a_full_word_becomes_one_bit_a_level_higher() {
        let mut bits = Bits::default();
        bits.fill(0, (1 << 24) - 1);
        assert_eq!(bits.levels.iter().map(BTreeMap::len).sum::<usize>(), 1);
        assert_eq!(bits.next_free(5), Some(1 << 24));
        bits.clear(77, 77);
        assert_eq!(bits.next_free(5), Some(77));
        assert_eq!(bits.next_taken(77), Some(78));
        assert_eq!(bits.count(0, u128::MAX), (1 << 24) - 1);
        bits.fill(77, 77);
        assert_eq!(bits.levels.iter().map(BTreeMap::len).sum::<usize>(), 1);
        bits.clear(0, (1 << 24) - 1);
        assert!(bits.is_empty());
    }

    #[test]
    fn the_end_of_the_number_space_is_an_end() {
        let mut bits = Bits::default();
        bits.fill(u128::MAX - 9, u128::MAX);
        assert_eq!(bits.next_free(u128::MAX - 3), None);
        assert_eq!(bits.next_taken(0), Some(u128::MAX - 9));
        bits.clear(u128::MAX, u128::MAX);
        assert_eq!(bits.next_free(u128::MAX - 3), Some(u128::MAX));
        assert_eq!(bits.next_taken(u128::MAX), None);
    }

    #[test]
    fn an_alternating_slash_8_stays_far_below_its_budget() {
        let mut bits = Bits::default();
        for x in (0u128..1 << 16).step_by(2) {
            bits.fill(x, x);
        }
        // A /16 is 1/256 of a /8, whose budget is 64 MiB.
        assert!(bits.heap_bytes() * 256 < 64 << 20, "{}", bits.heap_bytes());
    }

    proptest::proptest! {
        #![proptest_config(proptest::test_runner::Config {
            rng_seed: proptest::test_runner::RngSeed::Fixed(1),
            failure_persistence: None,
            ..proptest::test_runner::Config::default()
        })]

        #[test]
        fn agrees_with_a_plain_set(ops in proptest::collection::vec((0u128..5000, 1u128..4500), 1..16)) {
            let (mut bits, mut plain) = (Bits::default(), BTreeSet::new());
            for (first, len) in ops {
                let last = first + len - 1;
                let within = (first..=last).filter(|x| plain.contains(x)).count() as u128;
                if within == 0 {
                    bits.fill(first, last);
                    plain.extend(first..=last);
                } else if within == len {
                    bits.clear(first, last);
                    plain.retain(|x| !(first..=last).contains(x));
                } else {
                    let whole: Vec<u128> = (first..=last).filter(|x| plain.contains(x)).collect();
                    for x in whole {
                        bits.clear(x, x);
                        plain.remove(&x);
                    }
                }
                proptest::prop_assert_eq!(bits.count(first, last + 99), plain.range(first..=last + 99).count() as u128);
                for x in [0, first, last, last + 1] {
                    proptest::prop_assert_eq!(bits.contains(x), plain.contains(&x));
                    proptest::prop_assert_eq!(bits.next_taken(x), plain.range(x..).next().copied());
                    proptest::prop_assert_eq!(bits.next_free(x), (x..20_000).find(|y| !plain.contains(y)));
                }
                let full = bits.levels.iter().flat_map(BTreeMap::values).any(|w| *w == 0 || *w == u64::MAX);
                proptest::prop_assert!(!full);
            }
        }
    }
}
