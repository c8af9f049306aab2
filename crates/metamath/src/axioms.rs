//! What assertions rest on: axioms, and theorems that the database states without proving.

use metamath_rs::StatementType;
use metamath_rs::statement::StatementRef;

use crate::database::Database;

/// A statement that is taken without a proof.
#[derive(Debug)]
struct Ground {
    label: Box<str>,
    /// A theorem whose proof in the database is missing or has a hole, rather than an axiom.
    unproved: bool,
}

/// For every assertion, syntax included, what its proof in the database comes down to.
#[derive(Debug)]
pub(crate) struct Axioms {
    /// In database order.
    grounds: Vec<Ground>,
    /// By statement: the row of an assertion.
    rows: Vec<u32>,
    /// One row of bits for each assertion.
    rests_on: Vec<u64>,
    words: usize,
}

/// What one proof rests on, by label and in database order.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct RestsOn {
    /// Axioms and definitions.
    pub(crate) axioms: Vec<String>,
    /// Theorems without a proof.
    pub(crate) unproved: Vec<String>,
}

impl RestsOn {
    /// All of it as the verdict lists it: a theorem without a proof is an axiom in all but name,
    /// and is marked.
    pub(crate) fn listed(self) -> Vec<String> {
        let marked = self.unproved.into_iter().map(|label| format!("{label} (without a proof)"));
        self.axioms.into_iter().chain(marked).collect()
    }
}

impl Axioms {
    pub(crate) fn new(database: &Database) -> Self {
        let assertions: Vec<StatementRef<'_>> =
            database.source.statements().filter(|statement| statement.is_assertion()).collect();
        let mut grounds = Vec::new();
        let mut own = Vec::with_capacity(assertions.len());
        for statement in &assertions {
            let unproved = statement.statement_type() == StatementType::Provable;
            let ground =
                if unproved { !is_proved(statement) } else { !is_syntax(database, statement) };
            own.push(ground.then_some(grounds.len()));
            if ground {
                grounds.push(Ground {
                    label: metamath_rs::as_str(statement.label()).into(),
                    unproved,
                });
            }
        }
        let words = grounds.len().div_ceil(64);
        let mut axioms = Axioms {
            grounds,
            rows: vec![u32::MAX; database.meaning.len()],
            rests_on: vec![0; words * assertions.len()],
            words,
        };
        // A proof names only earlier assertions, so one pass in database order suffices.
        for (row, (statement, own)) in assertions.iter().zip(own).enumerate() {
            if let Some(bit) = own {
                axioms.rests_on[row * words + bit / 64] |= 1 << (bit % 64);
            }
            for label in used(statement) {
                let Some(earlier) = axioms.row(database, label) else { continue };
                let (before, here) = axioms.rests_on.split_at_mut(row * words);
                let from = earlier * words;
                here.iter_mut()
                    .zip(&before[from..from + words])
                    .for_each(|(bits, more)| *bits |= more);
            }
            axioms.rows[database.ordinal(statement.address()) as usize] = row as u32;
        }
        axioms
    }

    /// What a proof that names these statements rests on.
    pub(crate) fn of<'l>(
        &self,
        database: &Database,
        labels: impl IntoIterator<Item = &'l str>,
    ) -> RestsOn {
        let mut bits = vec![0u64; self.words];
        for row in labels.into_iter().filter_map(|label| self.row(database, label.as_bytes())) {
            let from = row * self.words;
            bits.iter_mut()
                .zip(&self.rests_on[from..from + self.words])
                .for_each(|(bits, more)| *bits |= more);
        }
        let mut found = RestsOn::default();
        for (bit, ground) in self.grounds.iter().enumerate() {
            if bits[bit / 64] >> (bit % 64) & 1 == 1 {
                let list = if ground.unproved { &mut found.unproved } else { &mut found.axioms };
                list.push(ground.label.to_string());
            }
        }
        found
    }

    /// The row of an assertion that has been dealt with.
    fn row(&self, database: &Database, label: &[u8]) -> Option<usize> {
        let statement = database.source.statement(label)?;
        let row = self.rows[database.ordinal(statement.address()) as usize];
        (row != u32::MAX).then_some(row as usize)
    }
}

/// Whether a theorem's proof in the database is whole: `?` stands where a part is missing.
pub(crate) fn is_proved(statement: &StatementRef<'_>) -> bool {
    !(0..statement.proof_len()).any(|at| statement.proof_slice_at(at).contains(&b'?'))
}

/// Whether a statement builds terms rather than saying something.
fn is_syntax(database: &Database, statement: &StatementRef<'_>) -> bool {
    statement.math_len() > 0
        && database
            .symbols
            .get(metamath_rs::as_str(statement.math_at(0).slice))
            .is_some_and(|typecode| database.bodies.contains(typecode))
}

/// The labels that a proof names.
fn used<'d>(statement: &StatementRef<'d>) -> impl Iterator<Item = &'d [u8]> + use<'d> {
    let statement = *statement;
    (0..statement.proof_len())
        .map(move |at| statement.proof_slice_at(at))
        .take_while(|word| *word != b")")
}
