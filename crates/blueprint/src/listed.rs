//! A list in document order whose members are found by name without a walk.
//!
//! A package of a thousand interfaces has five thousand objects, and every step asks for some of them by name;
//! walks would make that quadratic. Easy to get wrong: members may be edited in place, but never renamed; remove
//! one and push another instead.

use std::ops::{Deref, DerefMut};

/// Something with a name.
pub trait Named {
    /// What it is found by. Several may share one.
    fn key(&self) -> &str;
}

impl Named for String {
    fn key(&self) -> &str {
        self
    }
}

/// Members in order, and their places by name.
#[derive(Clone, Debug)]
pub struct Listed<T> {
    items: Vec<T>,
    /// Places, sorted by name and then by place. Numbers instead of names: a copy is one `memcpy`.
    by_name: Vec<usize>,
}

impl<T: Named> Listed<T> {
    /// Places of all members of this name, in order.
    pub fn places(&self, key: &str) -> &[usize] {
        let first = self.by_name.partition_point(|p| self.items[*p].key() < key);
        let rest = &self.by_name[first..];
        let count = rest.iter().take_while(|p| self.items[**p].key() == key);
        &rest[..count.count()]
    }

    /// All members of this name, in order.
    pub fn named<'a>(&'a self, key: &str) -> impl Iterator<Item = &'a T> + use<'a, T> {
        self.places(key).iter().map(|p| &self.items[*p])
    }

    /// Whether there is one of this name.
    pub fn has(&self, key: &str) -> bool {
        !self.places(key).is_empty()
    }

    /// Adds a member at the end.
    pub fn push(&mut self, item: T) {
        let key = item.key();
        let at = self
            .by_name
            .partition_point(|p| self.items[*p].key() <= key);
        self.by_name.insert(at, self.items.len());
        self.items.push(item);
    }

    /// Keeps only some.
    pub fn retain(&mut self, keep: impl FnMut(&T) -> bool) {
        let before = self.items.len();
        self.items.retain(keep);
        if self.items.len() != before {
            self.index();
        }
    }

    fn index(&mut self) {
        self.by_name = (0..self.items.len()).collect();
        // Stable: places of one name stay in order.
        self.by_name
            .sort_by(|a, b| self.items[*a].key().cmp(self.items[*b].key()));
    }
}

impl<T> Default for Listed<T> {
    fn default() -> Self {
        Self {
            items: Vec::new(),
            by_name: Vec::new(),
        }
    }
}

impl<T: Named> From<Vec<T>> for Listed<T> {
    fn from(items: Vec<T>) -> Self {
        let mut listed = Self {
            items,
            by_name: Vec::new(),
        };
        listed.index();
        listed
    }
}

impl<T: Named> FromIterator<T> for Listed<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Self {
        items.into_iter().collect::<Vec<T>>().into()
    }
}

impl<T: PartialEq> PartialEq for Listed<T> {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl<T> Deref for Listed<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.items
    }
}

impl<T> DerefMut for Listed<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.items
    }
}

impl<'a, T> IntoIterator for &'a Listed<T> {
    type Item = &'a T;
    type IntoIter = std::slice::Iter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter()
    }
}

impl<'a, T> IntoIterator for &'a mut Listed<T> {
    type Item = &'a mut T;
    type IntoIter = std::slice::IterMut<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.items.iter_mut()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_those_of_a_walk_after_any_pushes_and_removals() {
        let mut listed: Listed<String> = ["b", "a", "b"].map(str::to_owned).to_vec().into();
        for n in 0..200_u32 {
            listed.push(format!("{}", (n * 7919) % 50));
            if n % 40 == 39 {
                listed.retain(|name| name.len() != (n as usize / 40) % 3);
            }
            for key in ["a", "b", "c", "0", "7", "49", "50"] {
                let walked: Vec<usize> = (0..listed.len()).filter(|i| listed[*i] == key).collect();
                assert_eq!(listed.places(key), walked, "{key} after {n}");
            }
        }
        assert!(listed.len() > 20);
    }
}
