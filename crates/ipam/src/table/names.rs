//! Names as numbers: a cluster that stands in a million leases is kept once.
//!
//! One string, one offset per name, and hash chains by number: 12 bytes and the text per name. The hash
//! has no random key, so equal tables have equal layout; nothing ever iterates in hash order.

const NONE: u32 = u32::MAX;

/// Interned names. Never shrinks by itself: [`crate::Table`] builds a new one when most are unused.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    text: String,
    ends: Vec<u32>,
    next: Vec<u32>,
    heads: Vec<u32>,
}

/// FNV-1a, then a multiply that spreads it over the upper bits.
fn hash(name: &str) -> u64 {
    let fnv = name.bytes().fold(0xcbf2_9ce4_8422_2325u64, |h, b| {
        (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3)
    });
    fnv.wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// The chain of a hash among a power of two of them.
pub(super) fn chain(hash: u64, chains: usize) -> usize {
    // The upper bits are the mixed ones.
    usize::try_from(hash >> 32).expect("32 bits fit a usize") & (chains - 1)
}

/// Room for one more, growing by a quarter: doubling would leave a budget half empty.
pub(super) fn grow<T>(list: &mut Vec<T>) {
    if list.len() == list.capacity() {
        list.reserve_exact((list.len() / 4).max(16));
    }
}

impl Names {
    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    pub(super) fn get(&self, number: u32) -> &str {
        let number = number as usize;
        let from = number.checked_sub(1).map_or(0, |n| self.ends[n] as usize);
        &self.text[from..self.ends[number] as usize]
    }

    /// The number of a name that is known.
    pub(super) fn find(&self, name: &str) -> Option<u32> {
        if self.heads.is_empty() {
            return None;
        }
        let mut at = self.heads[chain(hash(name), self.heads.len())];
        while at != NONE {
            if self.get(at) == name {
                return Some(at);
            }
            at = self.next[at as usize];
        }
        None
    }

    /// The number of a name, a new one where it is not known.
    pub(super) fn intern(&mut self, name: &str) -> u32 {
        if let Some(known) = self.find(name) {
            return known;
        }
        let number = u32::try_from(self.ends.len()).expect("fewer than 2^32 names");
        if self.text.capacity() - self.text.len() < name.len() {
            self.text
                .reserve_exact((self.text.len() / 4).max(name.len()).max(64));
        }
        self.text.push_str(name);
        grow(&mut self.ends);
        self.ends
            .push(u32::try_from(self.text.len()).expect("names of one instance fit 4 GiB"));
        grow(&mut self.next);
        self.next.push(NONE);
        if self.ends.len() > self.heads.len() {
            self.rehash();
        } else {
            self.link(number);
        }
        number
    }

    fn link(&mut self, number: u32) {
        let at = chain(hash(self.get(number)), self.heads.len());
        self.next[number as usize] = self.heads[at];
        self.heads[at] = number;
    }

    fn rehash(&mut self) {
        self.heads = vec![NONE; self.ends.len().next_power_of_two().max(16)];
        for number in 0..self.ends.len() {
            self.link(u32::try_from(number).expect("fewer than 2^32 names"));
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let numbers = self.ends.capacity() + self.next.capacity() + self.heads.capacity();
        self.text.capacity() + numbers * size_of::<u32>()
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
        assert_eq!(names.intern(""), 500);
        assert_eq!(names.get(500), "");
        assert_eq!(names.find("absent"), None);
    }
}
