//! One theorem under proof, below the interface of the search.

use crate::assertion::AssertionId;
use crate::database::{Database, Scratch};
use crate::kernel::{Board, QED};
use crate::state::Texts;
use crate::tactic::{self, Tactic};

/// A state of a proof: the list of its open goals. It belongs to the [`Prover`] that made it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Goals(u32);

impl Goals {
    /// Whether nothing is left to prove.
    pub fn is_proved(self) -> bool {
        self.0 == QED
    }
}

/// Proves one theorem: reads tactics, applies them to states, prints states. States stay valid as
/// long as the prover.
pub struct Prover {
    board: Board,
    texts: Texts,
    scratch: Scratch,
}

impl Prover {
    /// Opens a theorem. Later calls must be given the same database.
    pub fn new(database: &Database, theorem: AssertionId) -> Self {
        let board = Board::new(database, theorem);
        let texts = Texts::new(database, &board);
        Prover { board, texts, scratch: Scratch::default() }
    }

    /// The state with the theorem itself to prove.
    pub fn root(&self) -> Goals {
        Goals(self.board.root())
    }

    /// Reads a tactic; says why not if it is none.
    pub fn read(&mut self, database: &Database, text: &str) -> Result<Tactic, String> {
        tactic::parse(database, &mut self.scratch, text, self.board.at)
    }

    /// Applies a tactic to the first goal of a state; says why not if the kernel refuses.
    pub fn apply(
        &mut self,
        database: &Database,
        goals: Goals,
        tactic: &Tactic,
    ) -> Result<Goals, String> {
        let Tactic { assertion, given } = tactic;
        let refused = self.board.apply(database, goals.0, *assertion, given);
        refused
            .map(Goals)
            .map_err(|refusal| tactic::explain(database, &self.board, goals.0, *assertion, refusal))
    }

    /// A state as text.
    pub fn text(&mut self, database: &Database, goals: Goals) -> String {
        self.texts.state(database, &self.board, goals.0)
    }
}
