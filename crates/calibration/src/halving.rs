//! Choosing among candidates by successive halving, as an ask/tell state machine.
//!
//! Every surviving candidate is searched on the same theorems, a longer prefix of the pool in every
//! round, and the better half goes on. Some candidates are controls (cross-entropy at several
//! temperatures): the best of them always survives, and in the end another candidate is chosen only
//! if it is ahead of the best control beyond noise: exact two-sided McNemar on the whole pool,
//! corrected (Holm) for every challenger that reached the last round, below 5 %. So the choice is
//! not worse than the best control, except by chance in one study of twenty.

use std::ops::Range;

use catamount_statistics::{Comparison, holm};
use serde::{Deserialize, Serialize};

/// What can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// Its name, unique.
    pub name: String,
    /// Whether it is one of those that the others must beat.
    pub control: bool,
}

/// A search that is asked for: one candidate on a stretch of the pool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Task {
    /// The candidate, by its place in the list.
    pub candidate: usize,
    /// Places of the theorems in the pool.
    pub theorems: Range<usize>,
}

/// Candidates or a pool that nothing can be chosen from.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HalvingError {
    /// No theorems.
    #[error("there are no validation theorems to choose on; give the split a validation part")]
    NoTheorems,
    /// No control.
    #[error("no candidate is a control; cross-entropy must be among the candidates")]
    NoControl,
    /// Two of a name.
    #[error("two candidates are called `{0}`")]
    Twice(String),
    /// An answer to another question.
    #[error("{outcomes} outcomes for candidate {candidate}, which was not asked for so many")]
    Unasked {
        /// The candidate.
        candidate: usize,
        /// How many outcomes came.
        outcomes: usize,
    },
}

/// How a candidate fared.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The candidate.
    #[serde(flatten)]
    pub candidate: Candidate,
    /// Theorems it was searched on before it was dropped, or all.
    pub theorems: usize,
    /// Of these, proved.
    pub proved: usize,
    /// Against the best control, for those that reached the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub against_control: Option<Comparison>,
    /// p of that, corrected for the challengers of the last round.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub holm_p: Option<f64>,
}

/// The end of a tournament.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The candidate to deploy.
    pub chosen: String,
    /// The best control, which it is, or which it beat.
    pub control: String,
    /// Every candidate, in the order given.
    pub outcomes: Vec<Outcome>,
}

/// Beyond noise.
const LEVEL: f64 = 0.05;
/// The first round has at least so many theorems (or all): fewer would drop candidates by chance.
const LEAST: usize = 32;

/// A tournament.
#[derive(Clone, Debug)]
pub struct Halving {
    candidates: Vec<Candidate>,
    /// What each candidate did, theorem by theorem.
    proved: Vec<Vec<bool>>,
    survivors: Vec<usize>,
    /// Theorems of every round; the last is the pool.
    rounds: Vec<usize>,
    round: usize,
}

impl Halving {
    /// A tournament over a pool of `theorems`.
    pub fn new(candidates: Vec<Candidate>, theorems: usize) -> Result<Self, HalvingError> {
        if theorems == 0 {
            return Err(HalvingError::NoTheorems);
        }
        if !candidates.iter().any(|candidate| candidate.control) {
            return Err(HalvingError::NoControl);
        }
        for (index, candidate) in candidates.iter().enumerate() {
            if candidates[..index].iter().any(|other| other.name == candidate.name) {
                return Err(HalvingError::Twice(candidate.name.clone()));
            }
        }
        // As many halvings as leave two, each with half the theorems of the next.
        let mut rounds = vec![theorems];
        let mut left = candidates.len();
        while left > 2 && rounds[0] >= 2 * LEAST {
            rounds.insert(0, rounds[0].div_ceil(2));
            left = left.div_ceil(2);
        }
        let proved = vec![Vec::new(); candidates.len()];
        let survivors = (0..candidates.len()).collect();
        Ok(Halving { candidates, proved, survivors, rounds, round: 0 })
    }

    /// The searches of this round that are still to be done; none when the tournament is over.
    pub fn ask(&self) -> Vec<Task> {
        let Some(&until) = self.rounds.get(self.round) else { return Vec::new() };
        let open = |&candidate: &usize| {
            let theorems = self.proved[candidate].len()..until;
            (!theorems.is_empty()).then_some(Task { candidate, theorems })
        };
        self.survivors.iter().filter_map(open).collect()
    }

    /// The answer to one task: for each of its theorems, in order, whether it was proved.
    pub fn tell(&mut self, candidate: usize, proved: &[bool]) -> Result<(), HalvingError> {
        let asked = self.ask().into_iter().find(|task| task.candidate == candidate);
        if asked.is_none_or(|task| task.theorems.len() != proved.len()) {
            return Err(HalvingError::Unasked { candidate, outcomes: proved.len() });
        }
        self.proved[candidate].extend_from_slice(proved);
        if self.ask().is_empty() {
            self.close();
        }
        Ok(())
    }

    /// Ends a round: the better half goes on, and the best control with it.
    fn close(&mut self) {
        self.round += 1;
        if self.round == self.rounds.len() {
            return;
        }
        let order = self.ranking();
        let mut survivors = order[..order.len().div_ceil(2)].to_vec();
        let control = self.best_control();
        if !survivors.contains(&control) {
            // In the place of the last, so that a round costs what it should; but not of the last
            // challenger.
            if survivors.len() > 1 {
                survivors.pop();
            }
            survivors.push(control);
        }
        survivors.sort_unstable();
        self.survivors = survivors;
    }

    /// Survivors, the best first; of equal ones the earlier in the list.
    fn ranking(&self) -> Vec<usize> {
        let mut order = self.survivors.clone();
        order.sort_by_key(|&candidate| (std::cmp::Reverse(self.count(candidate)), candidate));
        order
    }

    fn best_control(&self) -> usize {
        let controls = self.ranking().into_iter().find(|&c| self.candidates[c].control);
        controls.expect("a control always survives")
    }

    fn count(&self, candidate: usize) -> usize {
        self.proved[candidate].iter().filter(|&&proved| proved).count()
    }

    /// The choice; none while searches are still asked for.
    pub fn choice(&self) -> Option<Choice> {
        if !self.ask().is_empty() || self.round < self.rounds.len() {
            return None;
        }
        let control = self.best_control();
        let challengers: Vec<usize> =
            self.survivors.iter().copied().filter(|&c| !self.candidates[c].control).collect();
        let against = |challenger: usize| {
            let pairs = self.proved[control].iter().zip(&self.proved[challenger]);
            Comparison::of_pairs(pairs.map(|(&first, &second)| (first, second)))
        };
        let comparisons: Vec<Comparison> = challengers.iter().map(|&c| against(c)).collect();
        let corrected = holm(&comparisons.iter().map(|c| c.p).collect::<Vec<_>>());
        let ahead = |i: &usize| comparisons[*i].gain_pp > 0.0 && corrected[*i] < LEVEL;
        let winner = (0..challengers.len())
            .filter(ahead)
            .max_by_key(|&i| (self.count(challengers[i]), std::cmp::Reverse(challengers[i])));
        let chosen = winner.map_or(control, |i| challengers[i]);
        let outcome = |(index, candidate): (usize, &Candidate)| {
            let place = challengers.iter().position(|&challenger| challenger == index);
            Outcome {
                candidate: candidate.clone(),
                theorems: self.proved[index].len(),
                proved: self.count(index),
                against_control: place.map(|place| comparisons[place]),
                holm_p: place.map(|place| corrected[place]),
            }
        };
        Some(Choice {
            chosen: self.candidates[chosen].name.clone(),
            control: self.candidates[control].name.clone(),
            outcomes: self.candidates.iter().enumerate().map(outcome).collect(),
        })
    }
}
