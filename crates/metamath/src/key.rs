//! Statements up to renaming, so that near-duplicates can be kept on one side of a split.

use std::hash::Hasher;

use rustc_hash::FxHasher;

use crate::assertion::{AssertionId, SLOT};
use crate::database::Database;

/// How many orders of the hypotheses are compared before the rest are taken for equal.
const MOST_ORDERS: usize = 720;

/// A statement under renaming: what has been written so far, and the numbers given to its
/// variables.
#[derive(Clone)]
struct Renaming {
    written: Vec<u32>,
    numbers: Vec<u32>,
    given: u32,
}

impl Renaming {
    /// Writes a formula; a variable met for the first time takes the next number. Typecodes stay
    /// visible.
    fn write(&mut self, typecodes: &[u32], pattern: &[u32]) {
        for &node in pattern {
            if node & SLOT == 0 {
                self.written.push(node);
                continue;
            }
            let slot = (node & !SLOT) as usize;
            if self.numbers[slot] == u32::MAX {
                self.numbers[slot] = self.given;
                self.given += 1;
            }
            self.written.extend([SLOT | self.numbers[slot], typecodes[slot]]);
        }
        self.written.push(u32::MAX);
    }
}

impl Database {
    /// A key that two assertions share if they say the same up to the names of variables and the
    /// order of hypotheses (distinct-variable conditions are ignored). It is the same on every run
    /// for the same database file, and means nothing between two files.
    pub fn key(&self, id: AssertionId) -> u64 {
        let assertion = self.assertion(id);
        let unnamed = vec![u32::MAX; assertion.slots.len()];
        let mut start = Renaming { written: Vec::new(), numbers: unnamed, given: 0 };
        start.write(&assertion.typecodes, &assertion.conclusion);
        // The smallest way to write the hypotheses one after the other: at each place only the
        // smallest next ones can lead there.
        let mut frontier = vec![(start, (0..assertion.essentials.len()).collect::<Vec<_>>())];
        for _ in 0..assertion.essentials.len() {
            let mut next: Vec<(Renaming, Vec<usize>)> = Vec::new();
            for (renaming, left) in &frontier {
                for (at, &hypothesis) in left.iter().enumerate() {
                    let mut written = renaming.clone();
                    written.write(&assertion.typecodes, &assertion.essentials[hypothesis]);
                    let best = next.first().map(|(best, _)| written.written.cmp(&best.written));
                    if best.is_some_and(|order| order.is_gt())
                        || next.len() == MOST_ORDERS && best.is_none_or(|order| order.is_eq())
                    {
                        continue;
                    }
                    if best.is_some_and(|order| order.is_lt()) {
                        next.clear();
                    }
                    let mut rest = left.clone();
                    rest.remove(at);
                    next.push((written, rest));
                }
            }
            frontier = next;
        }
        let mut hasher = FxHasher::default();
        if let Some((smallest, _)) = frontier.first() {
            for word in &smallest.written {
                hasher.write_u32(*word);
            }
        }
        hasher.finish()
    }
}
