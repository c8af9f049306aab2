//! Prompts whose keys and values are in the cache, kept for when the same state is asked about
//! again.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use rustc_hash::FxHashMap;

use crate::Runs;

/// A prompt in the cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Prefix {
    /// Its first cache row.
    pub first: u32,
    /// Its rows.
    pub len: u32,
}

struct Kept {
    prefix: Prefix,
    /// Samples and questions that need it; it cannot be dropped before they are done.
    users: usize,
    used: u64,
}

/// The cache's rows: prompts that stay as long as there is room, and the rows of samples in flight.
/// These have places of their own, so that samples, which come and go, do not cut the room for
/// prompts into pieces; where there are too few, any room will do.
pub(crate) struct Prefixes {
    runs: Runs,
    /// First rows of the samples' own places that are free.
    places: Vec<u32>,
    /// Rows of all these places, from the first row of the cache on.
    reserved: u32,
    /// Rows of one sample.
    sample: usize,
    kept: FxHashMap<Arc<[u32]>, Kept>,
    /// Those of them that are computed, in order: those that begin alike are neighbours.
    sorted: BTreeSet<Arc<[u32]>>,
    /// The others.
    fresh: Vec<Arc<[u32]>>,
    /// Prompts that nobody uses, by when they were last asked for.
    idle: BTreeMap<u64, Arc<[u32]>>,
    clock: u64,
}

impl Prefixes {
    /// `capacity` rows, of which so many `samples` of `sample` rows each are set aside.
    pub fn new(capacity: usize, samples: usize, sample: usize) -> Self {
        let mut runs = Runs::new(capacity);
        let reserved = (samples * sample) as u32;
        if reserved > 0 {
            runs.take(reserved as usize);
        }
        let places = (0..samples).rev().map(|i| (i * sample) as u32).collect();
        Prefixes {
            runs,
            places,
            reserved,
            sample,
            kept: FxHashMap::default(),
            sorted: BTreeSet::new(),
            fresh: Vec::new(),
            idle: BTreeMap::new(),
            clock: 0,
        }
    }

    /// A prompt that is in the cache; it stays until [`Prefixes::release`].
    pub fn find(&mut self, prompt: &[u32]) -> Option<Prefix> {
        let kept = self.kept.get_mut(prompt)?;
        if kept.users == 0 {
            self.idle.remove(&kept.used);
        }
        self.clock += 1;
        kept.used = self.clock;
        kept.users += 1;
        Some(kept.prefix)
    }

    /// The most of its first tokens that a prompt has in common with one that is computed: rows
    /// that there is no need to compute again. They are there until room is made the next time.
    pub fn known(&self, prompt: &[u32]) -> Prefix {
        let common = |other: &Arc<[u32]>| {
            let Prefix { first, len } = self.kept[other].prefix;
            let own = &other[..len as usize];
            let len = prompt.iter().zip(own).take_while(|(one, other)| one == other).count();
            Prefix { first, len: len as u32 }
        };
        let (before, after) = ((Unbounded, Excluded(prompt)), (Included(prompt), Unbounded));
        let before = self.sorted.range::<[u32], _>(before).next_back();
        let after = self.sorted.range::<[u32], _>(after).next();
        let both = before.into_iter().chain(after).map(common);
        both.max_by_key(|prefix| prefix.len).unwrap_or(Prefix { first: 0, len: 0 })
    }

    /// Room for so many rows of a prompt that is not in the cache; it stays until
    /// [`Prefixes::release`]. [`Prefixes::settle`] says that it is computed.
    pub fn insert(&mut self, prompt: &Arc<[u32]>, rows: usize) -> Option<Prefix> {
        let first = if rows == 0 { 0 } else { self.take(rows)? };
        let prefix = Prefix { first, len: rows as u32 };
        self.clock += 1;
        self.kept.insert(Arc::clone(prompt), Kept { prefix, users: 1, used: self.clock });
        self.fresh.push(Arc::clone(prompt));
        Some(prefix)
    }

    /// Says that all prompts so far are computed.
    pub fn settle(&mut self) {
        self.sorted.extend(self.fresh.drain(..));
    }

    /// Says that one user of a prompt is done.
    pub fn release(&mut self, prompt: &Arc<[u32]>) {
        let Some(kept) = self.kept.get_mut(prompt) else { return };
        kept.users -= 1;
        // A prompt without rows has nothing to give back.
        if kept.users == 0 && kept.prefix.len > 0 {
            self.idle.insert(kept.used, Arc::clone(prompt));
        }
    }

    /// Drops prompts that nobody uses, the longest unused first, until there is room.
    fn take(&mut self, len: usize) -> Option<u32> {
        loop {
            if let Some(first) = self.runs.take(len) {
                return Some(first);
            }
            let (_, prompt) = self.idle.pop_first()?;
            let kept = self.kept.remove(&prompt)?;
            self.sorted.remove(&prompt);
            self.runs.give(kept.prefix.first, kept.prefix.len as usize);
        }
    }

    /// Rows for a sample in flight.
    pub fn take_own(&mut self) -> Option<u32> {
        self.places.pop().or_else(|| self.take(self.sample))
    }

    /// Gives a sample's rows back.
    pub fn give_own(&mut self, first: u32) {
        if first < self.reserved {
            self.places.push(first);
        } else {
            self.runs.give(first, self.sample);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_prompt_makes_room() {
        let mut p = Prefixes::new(10, 0, 3);
        let [one, two] = [1, 2].map(|token| Arc::<[u32]>::from([token; 5]));
        p.insert(&one, 4).unwrap();
        p.insert(&two, 4).unwrap();
        assert_eq!(p.take_own(), None, "both are in use");
        p.release(&one);
        p.release(&two);
        assert!(p.find(&one).is_some());
        p.release(&one);
        assert!(p.take_own().is_some());
        assert!(p.find(&two).is_none(), "2 was used longer ago than 1");
        assert!(p.find(&one).is_some());
    }

    #[test]
    fn the_longest_common_beginning_is_found_among_what_is_kept() {
        let mut p = Prefixes::new(12, 0, 3);
        let known = |p: &Prefixes, prompt: &[u32]| {
            let Prefix { first, len } = p.known(prompt);
            (first, len)
        };
        assert_eq!(known(&p, &[1, 2]), (0, 0));
        let prompts = [&[1, 2, 3, 9, 0][..], &[1, 2, 5, 5, 0], &[4, 4, 4, 4, 0]];
        let prompts = prompts.map(Arc::<[u32]>::from);
        for prompt in &prompts {
            p.insert(prompt, 4).unwrap();
        }
        assert_eq!(known(&p, &[1, 2, 3]).1, 0, "nothing is computed yet");
        p.settle();
        assert_eq!(known(&p, &[1, 2, 3, 8, 8]), (0, 3), "the one before in order");
        assert_eq!(known(&p, &[1, 2, 4, 8]).1, 2);
        assert_eq!(known(&p, &[4, 4, 1]), (8, 2), "the one after");
        assert_eq!(known(&p, &[4, 4, 4, 4, 0, 1]).1, 4, "a last token has no row");
        assert_eq!(known(&p, &[7]).1, 0);
        p.release(&prompts[0]);
        assert!(p.take_own().is_some());
        assert_eq!(known(&p, &[1, 2, 3, 8, 8]), (4, 2), "what made room is not known any more");
    }

    #[test]
    fn samples_have_places_of_their_own() {
        let mut p = Prefixes::new(20, 2, 4);
        let prompt = Arc::<[u32]>::from([1; 9]);
        let rows: Vec<u32> = (0..4).map_while(|_| p.take_own()).collect();
        assert_eq!(rows, [0, 4, 8, 12], "two places, then whatever is free");
        assert_eq!(p.insert(&prompt, 8), None);
        p.give_own(4);
        assert_eq!(p.insert(&prompt, 8), None, "a place is no room for a prompt");
        p.give_own(8);
        assert_eq!(p.insert(&prompt, 4), Some(Prefix { first: 8, len: 4 }));
        assert_eq!(p.take_own(), Some(4));
    }
}
