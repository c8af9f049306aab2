//! States as text.
//!
//! ```text
//! state = { "$e " formula " " } "$p " formula { " $p " formula }
//! ```
//!
//! First the theorem's hypotheses, then the open goals, the first goal first: it is the one that
//! the next tactic is applied to. A formula is its Metamath symbols, separated by single spaces;
//! its typecode (`|-`) is left out where the database has only one for formulas. `$` cannot occur
//! in a Metamath symbol, so the markers cannot be mistaken. A theorem that is one of its own
//! hypotheses has a root state without goals.

use crate::database::Database;
use crate::kernel::{Board, GoalId};

/// The texts of a board's goals, each made once.
pub(crate) struct Texts {
    hypotheses: String,
    goals: Vec<Option<Box<str>>>,
}

impl Texts {
    pub(crate) fn new(database: &Database, board: &Board) -> Self {
        let theorem = database.assertion(board.theorem);
        let mut hypotheses = String::new();
        for essential in &theorem.essentials {
            database.write_formula("$e", &theorem.concrete(essential), &mut hypotheses);
        }
        Texts { hypotheses, goals: Vec::new() }
    }

    /// The text of a state.
    pub(crate) fn state(&mut self, database: &Database, board: &Board, state: u32) -> String {
        let mut out = self.hypotheses.clone();
        for goal in board.goals(state) {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(self.goal(database, board, goal));
        }
        out
    }

    fn goal(&mut self, database: &Database, board: &Board, goal: GoalId) -> &str {
        let index = goal as usize;
        if self.goals.len() <= index {
            self.goals.resize(index + 1, None);
        }
        self.goals[index].get_or_insert_with(|| {
            let mut text = String::new();
            database.write_formula("$p", board.formula(goal), &mut text);
            text.into()
        })
    }
}
