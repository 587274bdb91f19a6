//! Names as numbers: a cluster that stands in a million leases is kept once.
//!
//! ```text
//!  tags      one byte of the hash, 0 where there is no name ┐ the same place in both, probed
//!  numbers   where the name's record begins                 ┘ upwards from where the hash says
//!  records   ┊ length (1, or 5 from 255 on) │ text ┊ length …
//! ```
//!
//! A new name is known to be new from a few tags, without a look at any other name: the tags of a million
//! names fit a processor's cache, the names do not. The hash has no random key, so equal tables have equal
//! layout; nothing ever iterates in hash order.

/// A length that does not fit its byte.
const LONG: u8 = u8::MAX;

/// Interned names. Never shrinks by itself: [`crate::Table`] builds a new one when most are unused.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    tags: Vec<u8>,
    numbers: Vec<u32>,
    records: Vec<u8>,
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
        std::str::from_utf8(self.text(number)).expect("only names are put in")
    }

    /// Whether a number is that of a name; any number will do.
    pub(super) fn is(&self, number: u32, name: &str) -> bool {
        (number as usize) < self.records.len() && self.text(number) == name.as_bytes()
    }

    fn text(&self, number: u32) -> &[u8] {
        let record = &self.records[number as usize..];
        let len = record[0];
        if len != LONG {
            return &record[1..=len.into()];
        }
        let (len, text) = record[1..]
            .split_first_chunk()
            .expect("a long name has a length");
        &text[..u32::from_le_bytes(*len) as usize]
    }

    /// The number of a name that is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        let hash = hash(name.as_bytes());
        self.probe(name.as_bytes(), hash).ok()
    }

    /// The number of a name, else where it would have its tag.
    fn probe(&self, name: &[u8], hash: u64) -> Result<u32, usize> {
        let mut at = self.home(hash);
        while let Some(found) = self.tags.get(at).filter(|tag| **tag != 0) {
            if *found == tag(hash) && self.text(self.numbers[at]) == name {
                return Ok(self.numbers[at]);
            }
            at = if at + 1 == self.tags.len() { 0 } else { at + 1 };
        }
        Err(at)
    }

    /// Where to look first. A product and not a remainder: the number of tags is no power of two.
    fn home(&self, hash: u64) -> usize {
        let place = u128::from(hash) * self.tags.len() as u128;
        usize::try_from(place >> 64).expect("less than the number of tags")
    }

    /// The number of a name, a new one where it is not known.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        let name = name.as_bytes();
        let hash = hash(name);
        let mut at = match self.probe(name, hash) {
            Ok(known) => return known,
            Err(at) => at,
        };
        // A fifth stays empty, else probing takes long.
        if self.len >= self.tags.len() / 5 * 4 {
            self.rehash();
            at = self.probe(name, hash).expect_err("it is new");
        }
        let number = u32::try_from(self.records.len()).expect("names of one instance fit 4 GiB");
        grow(&mut self.records, name.len() + 5);
        match u8::try_from(name.len()) {
            Ok(len) if len < LONG => self.records.push(len),
            _ => {
                let len = u32::try_from(name.len()).expect("a name is shorter than 4 GiB");
                self.records.push(LONG);
                self.records.extend(len.to_le_bytes());
            }
        }
        self.records.extend(name);
        (self.tags[at], self.numbers[at]) = (tag(hash), number);
        self.len += 1;
        number
    }

    fn rehash(&mut self) {
        let room = (self.tags.len() / 2 * 3).max(20);
        self.tags = vec![0; room];
        self.numbers = vec![0; room];
        let mut at = 0;
        while at < self.records.len() {
            let number = u32::try_from(at).expect("names of one instance fit 4 GiB");
            let text = self.text(number);
            let hash = hash(text);
            at += text.len() + if text.len() < LONG.into() { 1 } else { 5 };
            let free = self.probe(text, hash).expect_err("each name is there once");
            (self.tags[free], self.numbers[free]) = (tag(hash), number);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        self.records.capacity() + self.tags.capacity() + self.numbers.capacity() * size_of::<u32>()
    }
}

/// Never 0. The lowest bits, since the highest say where to look.
fn tag(hash: u64) -> u8 {
    hash.to_le_bytes()[0] | 1
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
