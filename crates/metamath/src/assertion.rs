//! Assertions: what a tactic names, and what a theorem states.

/// The bit that marks a node of a pattern as one of the assertion's own variables; the rest is its
/// slot.
pub(crate) const SLOT: u32 = 1 << 31;

/// The place of an assertion among the database's logical assertions, in database order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct AssertionId(pub u32);

/// A mandatory hypothesis, in the order in which a Metamath proof supplies them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mandatory {
    /// The term for a slot.
    Floating(u16),
    /// The proof of an essential hypothesis.
    Essential(u16),
}

/// An axiom, definition or theorem: essential hypotheses, a conclusion, and conditions on its
/// variables.
#[derive(Debug)]
pub struct Assertion {
    pub(crate) label: Box<str>,
    /// The place of the statement in the database, counted over all statements.
    pub(crate) ordinal: u32,
    pub(crate) axiom: bool,
    /// Whether the database holds a complete proof.
    pub(crate) proved: bool,
    /// The variables, by slot.
    pub(crate) slots: Box<[u32]>,
    /// Their typecodes.
    pub(crate) typecodes: Box<[u32]>,
    pub(crate) mandatory: Box<[Mandatory]>,
    pub(crate) conclusion: Box<[u32]>,
    pub(crate) essentials: Box<[Box<[u32]>]>,
    /// Pairs of slots that must be given terms without a common variable.
    pub(crate) distinct: Box<[(u16, u16)]>,
    /// Slots that do not occur in the conclusion: a tactic must say what they stand for.
    pub(crate) open: Box<[u16]>,
}

impl Assertion {
    /// The name.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Whether it is an axiom or a definition rather than a theorem.
    pub fn is_axiom(&self) -> bool {
        self.axiom
    }

    /// How many essential hypotheses it has.
    pub fn hypotheses(&self) -> usize {
        self.essentials.len()
    }

    /// Turns a pattern of this assertion into the term it is, over its own variables.
    pub(crate) fn concrete(&self, pattern: &[u32]) -> Box<[u32]> {
        pattern
            .iter()
            .map(|&node| if node & SLOT != 0 { self.slots[(node & !SLOT) as usize] } else { node })
            .collect()
    }
}
