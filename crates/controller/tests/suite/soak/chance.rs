//! Numbers that are drawn again from the same seed. What threads make of them in which order is not: a seed repeats the
//! faults and the wishes, not the moment.

/// A stream of numbers (SplitMix64).
pub(super) struct Chance(u64);

impl Chance {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(super) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below a bound.
    pub(super) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

/// A seed that nobody has seen.
pub(super) fn fresh() -> u64 {
    use std::hash::{BuildHasher as _, RandomState};
    RandomState::new().hash_one("soak")
}
