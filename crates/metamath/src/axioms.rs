//! The axioms that assertions rest on.

use metamath_rs::statement::StatementRef;

use crate::assertion::AssertionId;
use crate::database::Database;

/// For every assertion, the axioms and definitions that its proof in the database comes down to.
pub(crate) struct Axioms {
    /// The axioms, in database order.
    axioms: Vec<AssertionId>,
    /// One row of bits for each assertion.
    rests_on: Vec<u64>,
    words: usize,
}

impl Axioms {
    pub(crate) fn new(database: &Database) -> Self {
        let axioms: Vec<AssertionId> = (0..database.assertions.len() as u32)
            .map(AssertionId)
            .filter(|id| database.assertion(*id).axiom)
            .collect();
        let words = axioms.len().div_ceil(64);
        let mut rests_on = vec![0; words * database.assertions.len()];
        for (bit, axiom) in axioms.iter().enumerate() {
            rests_on[axiom.0 as usize * words + bit / 64] |= 1 << (bit % 64);
        }
        // A proof names only earlier assertions, so one pass in database order suffices.
        for (index, assertion) in database.assertions.iter().enumerate() {
            let Some(statement) = database.source.statement(assertion.label.as_bytes()) else {
                continue;
            };
            for label in used(&statement) {
                if let Some(earlier) =
                    std::str::from_utf8(label).ok().and_then(|label| database.find(label))
                    && (earlier.0 as usize) < index
                {
                    let (before, row) = rests_on.split_at_mut(index * words);
                    let from = earlier.0 as usize * words;
                    row.iter_mut()
                        .zip(&before[from..from + words])
                        .for_each(|(bits, more)| *bits |= more);
                }
            }
        }
        Axioms { axioms, rests_on, words }
    }

    /// The labels of the axioms that these assertions rest on, in database order.
    pub(crate) fn of(&self, database: &Database, labels: &[Box<str>]) -> Vec<String> {
        let mut bits = vec![0u64; self.words];
        for id in labels.iter().filter_map(|label| database.find(label)) {
            let from = id.0 as usize * self.words;
            bits.iter_mut()
                .zip(&self.rests_on[from..from + self.words])
                .for_each(|(bits, more)| *bits |= more);
        }
        let set = |bit: &usize| bits[bit / 64] >> (bit % 64) & 1 == 1;
        (0..self.axioms.len())
            .filter(set)
            .map(|bit| database.assertion(self.axioms[bit]).label().to_owned())
            .collect()
    }
}

/// The labels that a proof names.
fn used<'d>(statement: &StatementRef<'d>) -> impl Iterator<Item = &'d [u8]> + use<'d> {
    let statement = *statement;
    (0..statement.proof_len())
        .map(move |at| statement.proof_slice_at(at))
        .take_while(|word| *word != b")")
}
