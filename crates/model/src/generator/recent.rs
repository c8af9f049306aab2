//! A map that remembers what was used lately and forgets the rest.

use std::borrow::Borrow;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A hasher for long keys that come from searches of our own, not from an adversary.
#[derive(Default)]
pub(crate) struct Quick(u64);

impl Hasher for Quick {
    fn write(&mut self, bytes: &[u8]) {
        let (words, rest) = bytes.as_chunks::<8>();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        if !rest.is_empty() {
            let mut word = [0; 8];
            word[..rest.len()].copy_from_slice(rest);
            self.write_u64(u64::from_le_bytes(word));
        }
    }

    fn write_u64(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }

    fn finish(&self) -> u64 {
        let z = (self.0 ^ (self.0 >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z ^ (z >> 29)
    }
}

/// A map with that hasher.
pub(crate) type QuickMap<K, V> = HashMap<K, V, BuildHasherDefault<Quick>>;

/// Two generations: a key that is looked up or inserted is in the young one; when that is full, the old one is forgotten.
pub(super) struct Recent<K, V> {
    young: QuickMap<K, V>,
    old: QuickMap<K, V>,
    /// Keys of a generation.
    most: usize,
}

impl<K: Eq + Hash, V> Recent<K, V> {
    /// Remembers at least the last `most` keys.
    pub fn new(most: usize) -> Self {
        Recent { young: QuickMap::default(), old: QuickMap::default(), most }
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

    #[test]
    fn keys_that_differ_in_one_place_are_told_apart() {
        let hash = |text: &str| {
            let mut hasher = Quick::default();
            text.hash(&mut hasher);
            hasher.finish()
        };
        let texts: Vec<String> = (0..40).flat_map(|i| ('a'..='z').map(move |c| format!("{}{c}", "x".repeat(i)))).collect();
        let hashes: std::collections::HashSet<u64> = texts.iter().map(|text| hash(text)).collect();
        assert_eq!(hashes.len(), texts.len());
        let high: std::collections::HashSet<u64> = hashes.iter().map(|h| h >> 57).collect();
        let low: std::collections::HashSet<u64> = hashes.iter().map(|h| h & 127).collect();
        assert!(high.len() == 128 && low.len() == 128, "the bits that a map looks at are spread");
    }
}
