//! What has been drawn at a node of a search without being put back.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::trie::{Place, Step, Trie};

/// The tactics drawn at one node so far, and what is left of its distribution. It belongs to the
/// node: a question about the node carries it to the policy, which draws tactics that are not in it
/// and adds them. A node has one open question at a time, so nobody ever waits for the lock, and
/// which thread answers makes no difference. Clones are the same urn.
#[derive(Clone, Debug, Default)]
pub struct Urn(Arc<Mutex<Contents>>);

#[derive(Debug)]
struct Contents {
    /// Numbers the draws, so that each has a random stream of its own.
    draws: u64,
    /// Draws whose tactic had been drawn before, in these or in other tokens.
    repeats: u64,
    /// Each tactic's share of the distribution.
    tactics: FxHashMap<Box<str>, f64>,
    left: f64,
    trie: Trie,
}

impl Default for Contents {
    fn default() -> Self {
        let (tactics, trie) = (FxHashMap::default(), Trie::default());
        Contents { draws: 0, repeats: 0, tactics, left: 1.0, trie }
    }
}

impl Urn {
    fn contents(&self) -> MutexGuard<'_, Contents> {
        // A policy that panicked has lost its answer, and the search is told so.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The number of the next draw, counted from 0 over the life of the node.
    pub fn next_draw(&self) -> u64 {
        let mut contents = self.contents();
        contents.draws += 1;
        contents.draws - 1
    }

    /// Takes a tactic out, given its share of the distribution that is sampled from; false if it
    /// was out already, and the share is then that of other tokens for the same tactic. Blanks
    /// around a tactic do not make it another one.
    pub fn take(&self, tactic: &str, share: f64) -> bool {
        let mut contents = self.contents();
        if let Some(whole) = contents.tactics.get_mut(tactic.trim()) {
            *whole += share;
            contents.repeats += 1;
            return false;
        }
        contents.tactics.insert(tactic.trim().into(), share);
        true
    }

    /// Whether a tactic was taken out.
    pub fn has_taken(&self, tactic: &str) -> bool {
        self.contents().tactics.contains_key(tactic.trim())
    }

    /// The share of a tactic that was taken out.
    pub fn share(&self, tactic: &str) -> Option<f64> {
        self.contents().tactics.get(tactic.trim()).copied()
    }

    /// The shares of all tactics taken out, summed.
    pub fn taken(&self) -> f64 {
        let contents = self.contents();
        // In an order that does not depend on the map's: sums round.
        let mut shares: Vec<f64> = contents.tactics.values().copied().collect();
        shares.sort_unstable_by(f64::total_cmp);
        shares.into_iter().sum()
    }

    /// The share of the distribution that is left; 0 if there is nothing more to draw.
    pub fn left(&self) -> f64 {
        self.contents().left
    }

    /// Says what is left.
    pub fn set_left(&self, left: f64) {
        self.contents().left = left;
    }

    /// Draws whose tactic had been drawn before.
    pub fn repeats(&self) -> u64 {
        self.contents().repeats
    }

    /// Shows the token sequences that were taken out.
    pub fn show<T>(&self, look: impl FnOnce(&Trie) -> T) -> T {
        look(&self.contents().trie)
    }

    /// See [`Trie::step`].
    pub fn step(&self, place: Place, token: u32) -> Option<Place> {
        self.contents().trie.step(place, token)
    }

    /// Takes a token sequence out; what is left is then what the trie says.
    pub fn take_tokens(&self, sequence: impl Iterator<Item = (u32, Step)>) {
        let mut contents = self.contents();
        contents.trie.take(sequence);
        contents.left = contents.trie.left();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tactic_is_taken_once_whatever_blanks_are_around_it() {
        let urn = Urn::default();
        assert!(urn.take("ax-1", 0.25) && urn.clone().take("ax-2", 0.5));
        assert!(!urn.take(" ax-1\n", 0.125));
        assert_eq!((urn.repeats(), urn.taken(), urn.left()), (1, 0.875, 1.0));
        assert_eq!((urn.share("ax-2 "), urn.share("ax-3")), (Some(0.5), None));
        assert_eq!([urn.next_draw(), urn.clone().next_draw()], [0, 1]);
    }
}
