//! A finite proof space with a tabular policy: the demonstrated trace, what lies beside it, and how
//! likely each tactic is.
//!
//! States form a graph that a search unfolds into its tree, so a tactic may lead back to a state
//! seen before (a detour) or to itself for ever (an absorbing trap). States 0..L are x_0, ...,
//! x_{L-1}.

/// Where a tactic leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leads {
    /// QED.
    Proved,
    /// To the state of this index.
    Open(usize),
    /// Nowhere.
    Rejected,
}

/// A tactic the policy may sample at a state.
#[derive(Clone, Debug, PartialEq)]
pub struct Tactic {
    /// Its text, unique at its state.
    pub name: String,
    /// On the trace, rho_t(y): its share of the probability of missing y*_t. Elsewhere its
    /// probability.
    pub share: f64,
    /// T(x, y).
    pub leads: Leads,
}

/// A state and the tactics other than the demonstrated one.
#[derive(Clone, Debug, PartialEq)]
struct State {
    name: String,
    tactics: Vec<Tactic>,
}

/// What happens after a miss of the demonstrated tactic that the prover accepts.
#[derive(Clone, Debug, PartialEq)]
pub enum Branch {
    /// Bypass: an alternative proof. The deviating tactic is its first step, these are the
    /// probabilities of the others (none: the deviation itself closes the goal); misses on the way
    /// are rejected.
    Proof(Vec<f64>),
    /// Trap: this many useless states, each leading to the next with probability `valid` and
    /// rejecting everything else; the last rejects all.
    Trap {
        /// Useless states.
        depth: usize,
        /// Probability of a valid tactic at all but the last of them.
        valid: f64,
    },
    /// A useless state at which every tactic is accepted and leads nowhere, for ever.
    Absorbing,
    /// Useless but harmless: after `cost` expansions in all, each accepted, the search stands at
    /// the same demonstrated state again.
    Detour {
        /// kappa: expansions a miss costs, the deviating one included.
        cost: usize,
    },
}

/// A proof space with its demonstrated trace and policy.
#[derive(Clone, Debug, PartialEq)]
pub struct ProofTree {
    /// p_1, ..., p_L.
    p: Vec<f64>,
    states: Vec<State>,
}

/// A proof space that cannot be.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TreeError {
    /// The trace has no steps.
    #[error("a proof tree needs a trace of at least one step")]
    Empty,
    /// A number that must be a probability is none.
    #[error(
        "{what} must lie strictly between 0 and 1 (shares and probabilities beside the trace may \
         be 1), not {value}"
    )]
    Probability {
        /// Which one.
        what: String,
        /// As given.
        value: f64,
    },
    /// A deviation from a step the trace does not have.
    #[error("the trace has {length} steps; there is no step {step} to deviate at")]
    Step {
        /// The step, counted from 1.
        step: usize,
        /// Steps there are.
        length: usize,
    },
    /// The deviations at a step add up to more than all misses.
    #[error("the deviations at step {step} take up {total} of its misses; at most 1 is possible")]
    Shares {
        /// The step, counted from 1.
        step: usize,
        /// What they add up to.
        total: f64,
    },
    /// A different number of probabilities than steps.
    #[error("{given} probabilities for a trace of {length} steps")]
    Length {
        /// How many were given.
        given: usize,
        /// How many there are.
        length: usize,
    },
}

fn probability(what: impl Into<String>, value: f64, closed: bool) -> Result<f64, TreeError> {
    let good = value > 0.0 && (value < 1.0 || (closed && value == 1.0));
    if good { Ok(value) } else { Err(TreeError::Probability { what: what.into(), value }) }
}

impl ProofTree {
    /// A trace whose demonstrated tactics have these probabilities and from which every deviation
    /// is rejected.
    pub fn chain(p: &[f64]) -> Result<Self, TreeError> {
        if p.is_empty() {
            return Err(TreeError::Empty);
        }
        for (t, &p) in p.iter().enumerate() {
            probability(format!("p_{}", t + 1), p, false)?;
        }
        let rejected = || vec![Tactic { name: "wrong".into(), share: 1.0, leads: Leads::Rejected }];
        let states =
            (0..p.len()).map(|t| State { name: format!("x{t}"), tactics: rejected() }).collect();
        Ok(ProofTree { p: p.to_vec(), states })
    }

    /// The same with a share of the misses at a step (counted from 1) no longer rejected but
    /// leading into a branch.
    pub fn deviate(mut self, step: usize, share: f64, branch: &Branch) -> Result<Self, TreeError> {
        let length = self.p.len();
        if step == 0 || step > length {
            return Err(TreeError::Step { step, length });
        }
        probability(format!("the share of a deviation at step {step}"), share, true)?;
        let left = self.states[step - 1].tactics[0].share - share;
        if left < -1e-12 {
            return Err(TreeError::Shares { step, total: 1.0 - left });
        }
        self.states[step - 1].tactics[0].share = left.max(0.0);
        let leads = match branch {
            Branch::Proof(rest) => {
                for &p in rest {
                    probability("a step of an alternative proof", p, true)?;
                }
                self.hang(rest, "alternative", Leads::Proved)
            }
            Branch::Trap { depth, valid } => {
                probability("the probability of a valid tactic in a trap", *valid, true)?;
                let dead = self.hang(&[0.0], "trap", Leads::Rejected);
                self.hang(&vec![*valid; depth.saturating_sub(1)], "trap", dead)
            }
            Branch::Absorbing => {
                let here = Leads::Open(self.states.len());
                self.hang(&[1.0], "absorbing", here)
            }
            Branch::Detour { cost } => {
                self.hang(&vec![1.0; cost.saturating_sub(1)], "detour", Leads::Open(step - 1))
            }
        };
        let tactics = &mut self.states[step - 1].tactics;
        tactics.push(Tactic { name: format!("deviation {}", tactics.len()), share, leads });
        Ok(self)
    }

    /// Adds a chain of states that each lead on with the given probability, the last of them to
    /// `end`; returns where it starts.
    fn hang(&mut self, p: &[f64], kind: &str, end: Leads) -> Leads {
        let mut leads = end;
        for &p in p.iter().rev() {
            let mut tactics = Vec::new();
            if p > 0.0 {
                tactics.push(Tactic { name: "on".into(), share: p, leads });
            }
            if p < 1.0 {
                tactics.push(Tactic {
                    name: "wrong".into(),
                    share: 1.0 - p,
                    leads: Leads::Rejected,
                });
            }
            leads = Leads::Open(self.states.len());
            self.states.push(State { name: format!("{kind} {}", self.states.len()), tactics });
        }
        leads
    }

    /// L.
    pub fn length(&self) -> usize {
        self.p.len()
    }

    /// p_1, ..., p_L.
    pub fn p(&self) -> &[f64] {
        &self.p
    }

    /// log p_1, ..., log p_L: what the surrogates see of all this.
    pub fn log_p(&self) -> Vec<f64> {
        self.p.iter().map(|p| p.ln()).collect()
    }

    /// The same space under a policy with other probabilities of the demonstrated tactics,
    /// everything else being reallocated in proportion (eq:reparam).
    pub fn with_p(&self, p: &[f64]) -> Result<Self, TreeError> {
        if p.len() != self.p.len() {
            return Err(TreeError::Length { given: p.len(), length: self.p.len() });
        }
        for (t, &p) in p.iter().enumerate() {
            probability(format!("p_{}", t + 1), p, false)?;
        }
        Ok(ProofTree { p: p.to_vec(), states: self.states.clone() })
    }

    /// How many states there are; the trace's come first.
    pub fn states(&self) -> usize {
        self.states.len()
    }

    /// A state as the policy reads it.
    pub fn name(&self, state: usize) -> &str {
        &self.states[state].name
    }

    /// The state of a name.
    pub fn state(&self, name: &str) -> Option<usize> {
        self.states.iter().position(|state| state.name == name)
    }

    /// Every tactic that may be sampled at a state, the demonstrated one first where there is one:
    /// text, pi(y | x), outcome.
    pub fn tactics(&self, state: usize) -> Vec<(&str, f64, Leads)> {
        let others = &self.states[state].tactics;
        let Some(&p) = self.p.get(state) else {
            return others.iter().map(|y| (y.name.as_str(), y.share, y.leads)).collect();
        };
        let demonstrated =
            if state + 1 == self.p.len() { Leads::Proved } else { Leads::Open(state + 1) };
        std::iter::once(("demonstrated", p, demonstrated))
            .chain(
                others
                    .iter()
                    .filter(|y| y.share > 0.0)
                    .map(|y| (y.name.as_str(), (1.0 - p) * y.share, y.leads)),
            )
            .collect()
    }

    /// d log pi(y | x) / d log p_t for the tactic of index `tactic` of [`ProofTree::tactics`] at
    /// demonstrated state x_{t-1}.
    pub(crate) fn score(&self, state: usize, tactic: usize) -> Option<(usize, f64)> {
        self.p.get(state).map(|&p| (state, if tactic == 0 { 1.0 } else { -p / (1.0 - p) }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn probabilities_add_up_and_reallocate_in_proportion() {
        let tree = ProofTree::chain(&[0.3, 0.6])
            .unwrap()
            .deviate(1, 0.25, &Branch::Proof(vec![0.5, 0.1]))
            .unwrap()
            .deviate(1, 0.5, &Branch::Trap { depth: 3, valid: 0.9 })
            .unwrap()
            .deviate(2, 1.0, &Branch::Absorbing)
            .unwrap()
            .deviate(1, 0.25, &Branch::Detour { cost: 3 })
            .unwrap();
        let moved = tree.with_p(&[0.65, 0.6]).unwrap();
        for tree in [&tree, &moved] {
            for state in 0..tree.states() {
                let total: f64 = tree.tactics(state).iter().map(|y| y.1).sum();
                assert!((total - 1.0).abs() < 1e-15, "{}: {total}", tree.name(state));
            }
        }
        for (before, after) in tree.tactics(0).iter().zip(moved.tactics(0)).skip(1) {
            assert!((after.1 / before.1 - 0.5).abs() < 1e-15);
        }
        assert_eq!(tree.tactics(1).len(), 2, "nothing is left to be rejected");
        let mut state = tree.tactics(0)[3].2;
        let mut cost = 1;
        while let Leads::Open(at) = state
            && at != 0
        {
            state = tree.tactics(at)[0].2;
            cost += 1;
        }
        assert_eq!((state, cost), (Leads::Open(0), 3));
        let Leads::Open(absorbing) = tree.tactics(1)[1].2 else { panic!("accepted") };
        assert_eq!(tree.tactics(absorbing)[0].2, Leads::Open(absorbing));
    }

    #[test]
    fn what_cannot_be_is_refused() {
        assert_eq!(ProofTree::chain(&[]), Err(TreeError::Empty));
        assert!(matches!(ProofTree::chain(&[0.5, 1.0]), Err(TreeError::Probability { .. })));
        let tree = ProofTree::chain(&[0.5]).unwrap();
        assert!(matches!(
            tree.clone().deviate(2, 0.5, &Branch::Absorbing),
            Err(TreeError::Step { .. })
        ));
        assert!(matches!(
            tree.clone().deviate(0, 0.5, &Branch::Absorbing),
            Err(TreeError::Step { .. })
        ));
        assert!(matches!(
            tree.clone().deviate(1, 0.0, &Branch::Absorbing),
            Err(TreeError::Probability { .. })
        ));
        let half = tree.clone().deviate(1, 0.6, &Branch::Absorbing).unwrap();
        assert!(matches!(half.deviate(1, 0.6, &Branch::Absorbing), Err(TreeError::Shares { .. })));
        assert!(matches!(tree.with_p(&[0.1, 0.2]), Err(TreeError::Length { .. })));
    }
}
