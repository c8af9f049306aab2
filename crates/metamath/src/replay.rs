//! A list of tactics replayed by the kernel, with what is needed to write it down as a Metamath
//! proof.

use crate::assertion::AssertionId;
use crate::database::{Database, Scratch};
use crate::kernel::{Board, Given, GoalId, QED};
use crate::tactic::{self, Tactic};

/// One application: the goal it closes, the terms of the assertion's slots, the goals it rests on.
pub(crate) struct Application {
    pub(crate) goal: GoalId,
    pub(crate) assertion: AssertionId,
    /// Where the terms begin in [`Replay::nodes`], one more than there are slots.
    pub(crate) terms: Vec<u32>,
    pub(crate) children: Vec<GoalId>,
}

/// A proof under replay.
pub(crate) struct Replay {
    pub(crate) board: Board,
    pub(crate) state: u32,
    pub(crate) applications: Vec<Application>,
    pub(crate) nodes: Vec<u32>,
}

impl Replay {
    /// Begins the proof of a theorem.
    pub(crate) fn new(database: &Database, theorem: AssertionId) -> Self {
        let board = Board::new(database, theorem);
        let state = board.root();
        Replay { board, state, applications: Vec::new(), nodes: Vec::new() }
    }

    /// Replays tactics to the end; the reason for a failure names the tactic by its number.
    pub(crate) fn run(
        database: &Database,
        theorem: AssertionId,
        tactics: &[String],
    ) -> Result<Self, String> {
        let mut replay = Replay::new(database, theorem);
        let mut scratch = Scratch::default();
        for (index, text) in tactics.iter().enumerate() {
            let numbered = |reason: String| format!("tactic {}: {reason}", index + 1);
            let tactic =
                tactic::parse(database, &mut scratch, text, replay.board.at).map_err(numbered)?;
            replay.apply(database, &tactic).map_err(numbered)?;
        }
        match replay.board.goals(replay.state).count() {
            0 => Ok(replay),
            open => Err(format!("{open} goal(s) are left open after the last tactic")),
        }
    }

    /// Applies one tactic to the present state.
    pub(crate) fn apply(&mut self, database: &Database, tactic: &Tactic) -> Result<(), String> {
        let Tactic { assertion, given } = tactic;
        let goal = self.board.first(self.state).map_or(QED, |(goal, _)| goal);
        self.state =
            self.board.apply(database, self.state, *assertion, given).map_err(|refusal| {
                tactic::explain(database, &self.board, self.state, *assertion, refusal)
            })?;
        self.record(database, goal, *assertion, given);
        Ok(())
    }

    fn record(&mut self, database: &Database, goal: GoalId, id: AssertionId, given: &Given) {
        let slots = database.assertion(id).slots.len();
        let mut terms = Vec::with_capacity(slots + 1);
        for slot in 0..slots {
            terms.push(self.nodes.len() as u32);
            self.nodes.extend_from_slice(self.board.bound(slot, given));
        }
        terms.push(self.nodes.len() as u32);
        self.applications.push(Application {
            goal,
            assertion: id,
            terms,
            children: self.board.children.clone(),
        });
    }
}
