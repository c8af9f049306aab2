//! Prompts whose keys and values are in the cache, kept for when the same state is asked about again.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

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
pub(crate) struct Prefixes {
    runs: Runs,
    kept: HashMap<Arc<[u32]>, Kept>,
    /// Prompts that nobody uses, by when they were last asked for.
    idle: BTreeMap<u64, Arc<[u32]>>,
    clock: u64,
}

impl Prefixes {
    pub fn new(capacity: usize) -> Self {
        Prefixes { runs: Runs::new(capacity), kept: HashMap::new(), idle: BTreeMap::new(), clock: 0 }
    }

    /// A prompt that is in the cache; it stays until [`Prefixes::release`].
    pub fn find(&mut self, tokens: &[u32]) -> Option<Prefix> {
        let kept = self.kept.get_mut(tokens)?;
        if kept.users == 0 {
            self.idle.remove(&kept.used);
        }
        self.clock += 1;
        kept.used = self.clock;
        kept.users += 1;
        Some(kept.prefix)
    }

    /// Room for a prompt that is not in the cache; it stays until [`Prefixes::release`].
    pub fn insert(&mut self, tokens: &[u32]) -> Option<Prefix> {
        let first = if tokens.is_empty() { 0 } else { self.take(tokens.len())? };
        let prefix = Prefix { first, len: tokens.len() as u32 };
        self.clock += 1;
        self.kept.insert(tokens.into(), Kept { prefix, users: 1, used: self.clock });
        Some(prefix)
    }

    /// Says that one user of a prompt is done.
    pub fn release(&mut self, tokens: &[u32]) {
        let Some((tokens, _)) = self.kept.get_key_value(tokens) else { return };
        let tokens = Arc::clone(tokens);
        let Some(kept) = self.kept.get_mut(&tokens) else { return };
        kept.users -= 1;
        // An empty prompt has no rows to give back.
        if kept.users == 0 && kept.prefix.len > 0 {
            self.idle.insert(kept.used, tokens);
        }
    }

    /// Rows for a sample in flight. Drops prompts that nobody uses, the longest unused first, until there is room.
    pub fn take(&mut self, len: usize) -> Option<u32> {
        loop {
            if let Some(first) = self.runs.take(len) {
                return Some(first);
            }
            let (_, tokens) = self.idle.pop_first()?;
            let kept = self.kept.remove(&tokens)?;
            self.runs.give(kept.prefix.first, kept.prefix.len as usize);
        }
    }

    /// Gives a sample's rows back.
    pub fn give(&mut self, first: u32, len: usize) {
        self.runs.give(first, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_unused_prompt_makes_room() {
        let mut p = Prefixes::new(10);
        for tokens in [[1, 1, 1, 1], [2, 2, 2, 2]] {
            p.insert(&tokens).unwrap();
        }
        assert_eq!(p.take(3), None, "both are in use");
        p.release(&[1; 4]);
        p.release(&[2; 4]);
        assert!(p.find(&[1; 4]).is_some());
        p.release(&[1; 4]);
        assert!(p.take(3).is_some());
        assert!(p.find(&[2; 4]).is_none(), "2 was used longer ago than 1");
        assert!(p.find(&[1; 4]).is_some());
    }
}
