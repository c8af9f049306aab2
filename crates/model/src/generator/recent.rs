//! A map that remembers what was used lately and forgets the rest.

use std::borrow::Borrow;
use std::hash::Hash;

use rustc_hash::FxHashMap;

/// Two generations: a key that is looked up or inserted is in the young one; when that is full, the
/// old one is forgotten.
pub(super) struct Recent<K, V> {
    young: FxHashMap<K, V>,
    old: FxHashMap<K, V>,
    /// Keys of a generation.
    most: usize,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Remembers at least the last `most` keys.
    pub fn new(most: usize) -> Self {
        Recent { young: FxHashMap::default(), old: FxHashMap::default(), most }
    }

    pub fn get<Q: Eq + Hash + ?Sized>(&mut self, key: &Q) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        self.young.get(key)
    }

    pub fn insert(&mut self, key: K, value: V) {
        if self.young.len() >= self.most {
            self.old = std::mem::take(&mut self.young);
        }
        // At once: a map that grows puts every key in its place again and again.
        if self.young.capacity() == 0 {
            self.young.reserve(self.most);
        }
        self.young.insert(key, value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_stays() {
        let mut recent = Recent::new(3);
        for i in 0..20 {
            recent.insert(i, i * i);
            assert_eq!(recent.get(&0), Some(&0), "used all the time");
            assert_eq!(recent.get(&i), Some(&(i * i)));
        }
        assert!(recent.young.len() + recent.old.len() <= 6);
        assert_eq!(recent.get(&5), None);
    }
}
