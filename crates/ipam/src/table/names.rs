//! Names as numbers: a cluster that stands in a million leases is kept once.
//!
//! ```text
//!  records   ┊ next in chain (4) │ length (1, or 5 from 255 on) │ text ┊ next …
//!  heads     hash ─► first record of its chain
//! ```
//!
//! A name's number is where its record begins, so one look at memory compares a name and finds the next.
//! The hash has no random key, so equal tables have equal layout; nothing ever iterates in hash order.

const NONE: u32 = u32::MAX;
/// A length that does not fit its byte.
const LONG: u8 = u8::MAX;

/// Interned names. Never shrinks by itself: [`crate::Table`] builds a new one when most are unused.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    records: Vec<u8>,
    heads: Vec<u32>,
    len: usize,
}

/// A hash of words: each is folded in with both halves of a product, so every bit reaches every bit.
pub(super) fn mix(words: impl IntoIterator<Item = u64>) -> u64 {
    words.into_iter().fold(0x51_7cc1_b727_220a, |hash, word| {
        let [low, high] = halves(u128::from(hash ^ word) * 0x9e37_79b9_7f4a_7c15);
        low ^ high
    })
}

/// The lower and the upper half.
pub(super) fn halves(n: u128) -> [u64; 2] {
    let low = n & u128::from(u64::MAX);
    [low, n >> 64].map(|half| u64::try_from(half).expect("half of 128 bits fits 64"))
}

fn hash(name: &[u8]) -> u64 {
    let (words, rest) = name.as_chunks::<8>();
    // The length keeps a name apart from one that ends in zeros.
    let last = rest
        .iter()
        .fold(name.len() as u64, |n, byte| n << 8 | u64::from(*byte));
    mix(words
        .iter()
        .map(|word| u64::from_le_bytes(*word))
        .chain([last]))
}

/// The chain of a hash among a power of two of them.
pub(super) fn chain(hash: u64, chains: usize) -> usize {
    usize::try_from(hash >> 32).expect("32 bits fit a usize") & (chains - 1)
}

/// How many chains `len` members want, where there are `now`: about one and a half in each at most, since
/// chains are memory too.
pub(super) fn chains(len: usize, now: usize) -> usize {
    if len <= now + now / 2 {
        now
    } else {
        (2 * now).max(16)
    }
}

/// Room for more, growing by an eighth: doubling would leave a budget half empty.
pub(super) fn grow<T>(list: &mut Vec<T>, more: usize) {
    if list.capacity() - list.len() < more {
        list.reserve_exact((list.len() / 8).max(more).max(16));
    }
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let (_, text) = self.record(number);
        std::str::from_utf8(text).expect("only names are put in")
    }

    /// Next of the chain, and text.
    fn record(&self, number: u32) -> (u32, &[u8]) {
        let (next, rest) = self.records[number as usize..]
            .split_first_chunk()
            .expect("a number is where a record begins");
        let next = u32::from_le_bytes(*next);
        if rest[0] != LONG {
            return (next, &rest[1..=rest[0].into()]);
        }
        let (len, rest) = rest[1..]
            .split_first_chunk()
            .expect("a long name has a length");
        (next, &rest[..u32::from_le_bytes(*len) as usize])
    }

    /// The number of a name that is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        self.find_hashed(name.as_bytes(), hash(name.as_bytes()))
    }

    fn find_hashed(&self, name: &[u8], hash: u64) -> Option<u32> {
        if self.heads.is_empty() {
            return None;
        }
        let mut at = self.heads[chain(hash, self.heads.len())];
        while at != NONE {
            let (next, text) = self.record(at);
            if text == name {
                return Some(at);
            }
            at = next;
        }
        None
    }

    /// The number of a name, a new one where it is not known.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        let name = name.as_bytes();
        let hash = hash(name);
        if let Some(known) = self.find_hashed(name, hash) {
            return known;
        }
        self.len += 1;
        let wanted = chains(self.len, self.heads.len());
        if wanted > self.heads.len() {
            self.rehash(wanted);
        }
        let number = u32::try_from(self.records.len())
            .ok()
            .filter(|n| *n < NONE)
            .expect("names of one instance fit 4 GiB");
        let head = &mut self.heads[chain(hash, wanted)];
        let next = std::mem::replace(head, number);
        grow(&mut self.records, name.len() + 9);
        self.records.extend(next.to_le_bytes());
        match u8::try_from(name.len()) {
            Ok(len) if len < LONG => self.records.push(len),
            _ => {
                let len = u32::try_from(name.len()).expect("a name is shorter than 4 GiB");
                self.records.push(LONG);
                self.records.extend(len.to_le_bytes());
            }
        }
        self.records.extend(name);
        number
    }

    fn rehash(&mut self, chains: usize) {
        self.heads = vec![NONE; chains];
        let mut at = 0;
        while at < self.records.len() {
            let number = u32::try_from(at).expect("names of one instance fit 4 GiB");
            let (_, text) = self.record(number);
            let (head, len) = (chain(hash(text), chains), text.len());
            let next = std::mem::replace(&mut self.heads[head], number);
            self.records[at..at + 4].copy_from_slice(&next.to_le_bytes());
            at += len + if len < LONG.into() { 5 } else { 9 };
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.records.capacity() + self.heads.capacity() * size_of::<u32>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_keeps_its_number_while_others_come() {
        let mut names = Names::default();
        let first: Vec<u32> = (0..500).map(|i| names.intern(&format!("n{i}"))).collect();
        let again: Vec<u32> = (0..500).map(|i| names.intern(&format!("n{i}"))).collect();
        assert_eq!(first, again);
        assert_eq!(names.len(), 500);
        assert_eq!(names.get(first[77]), "n77");
        let empty = names.intern("");
        assert_eq!(names.len(), 501);
        assert_eq!(names.get(empty), "");
        assert_eq!(names.find("absent"), None);
    }

    #[test]
    fn a_name_may_have_any_length() {
        let mut names = Names::default();
        let lengths = [0, 1, 7, 8, 9, 253, 254, 255, 256, 70_000];
        let all: Vec<String> = lengths.iter().map(|len| "x".repeat(*len)).collect();
        let numbers: Vec<u32> = all.iter().map(|name| names.intern(name)).collect();
        // Enough others that the chains are made anew.
        (0..200).for_each(|i| {
            names.intern(&format!("n{i}"));
        });
        for (name, number) in all.iter().zip(numbers) {
            assert_eq!(names.find(name), Some(number));
            assert_eq!(names.get(number), name);
        }
    }

    #[test]
    fn names_that_differ_a_little_lie_in_different_chains() {
        let mut used = vec![0; 1 << 12];
        for n in 0..1 << 12 {
            let name = format!("StatefulSet/{n:010}");
            used[chain(hash(name.as_bytes()), 1 << 12)] += 1;
        }
        // As many names as chains, at random: 63 % are used and none has ten.
        assert!(used.iter().filter(|n| **n > 0).count() > 2400);
        assert!(used.iter().all(|n| *n < 10));
    }
}
