//! The proof tree behind the interfaces every prover and every policy has, so that the ordinary
//! driver can run on it.

use catamount_search::{
    Checked, Environment, Fault, Policy, Request, RequestId, Sample, Session, StateId, Verdict,
};
use catamount_traces::{Step, Theorem, Trace};

use crate::tree::{Leads, ProofTree};

impl ProofTree {
    /// The demonstrated trace as a file would hold it.
    pub fn trace(&self, theorem: &str) -> Trace {
        let step = |t: usize| Step {
            state: self.name(t).to_string(),
            tactic: "demonstrated".into(),
            next: Some(if t + 1 == self.length() {
                String::new()
            } else {
                self.name(t + 1).to_string()
            }),
            ..Step::default()
        };
        Trace {
            theorem: Theorem { name: theorem.into(), ..Theorem::default() },
            steps: (0..self.length()).map(step).collect(),
        }
    }

    fn lead(&self, state: usize, tactic: &str) -> Option<Leads> {
        self.tactics(state).iter().find(|y| y.0 == tactic).map(|y| y.2)
    }
}

struct TreeSession {
    tree: ProofTree,
    /// The state of each handle given out.
    handles: Vec<usize>,
}

impl Session for TreeSession {
    fn root(&self) -> &str {
        self.tree.name(0)
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        let at = *self
            .handles
            .get(state.0 as usize)
            .ok_or_else(|| Fault(format!("no state {} was handed out", state.0)))?;
        Ok(match self.tree.lead(at, tactic) {
            Some(Leads::Proved) => Verdict::Proved,
            Some(Leads::Open(next)) => {
                let handle = u32::try_from(self.handles.len())
                    .map_err(|_| Fault("too many states".into()))?;
                self.handles.push(next);
                Verdict::Open { state: StateId(handle), text: self.tree.name(next).to_string() }
            }
            Some(Leads::Rejected) => Verdict::Rejected { reason: "the tree says so".into() },
            None => Verdict::Rejected {
                reason: format!("there is no tactic `{tactic}` at {}", self.tree.name(at)),
            },
        })
    }
}

impl Environment for ProofTree {
    fn open(&self, _theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        Ok(Box::new(TreeSession { tree: self.clone(), handles: vec![0] }))
    }

    fn check(&self, _theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        let mut at = Leads::Open(0);
        for (i, tactic) in tactics.iter().enumerate() {
            at = match at {
                Leads::Open(state) => self.lead(state, tactic).unwrap_or(Leads::Rejected),
                Leads::Proved | Leads::Rejected => {
                    return Ok(Checked::Refused {
                        reason: format!("tactic {} comes after the end", i + 1),
                    });
                }
            };
        }
        Ok(match at {
            Leads::Proved => Checked::proved(Vec::new()),
            _ => Checked::Refused { reason: "the tactics do not end in a proof".into() },
        })
    }

    fn describe(&self) -> String {
        format!(
            "a proof tree of {} states around a trace of {} steps",
            self.states(),
            self.length()
        )
    }
}

/// The tree's own policy: samples each state's tactics with their probabilities.
pub struct TabularPolicy {
    tree: ProofTree,
    waiting: Vec<Request>,
}

impl TabularPolicy {
    /// The policy of a tree.
    pub fn new(tree: ProofTree) -> Self {
        TabularPolicy { tree, waiting: Vec::new() }
    }

    fn answer(&self, request: &Request) -> Result<Vec<Sample>, Fault> {
        let state = self
            .tree
            .state(&request.state)
            .ok_or_else(|| Fault(format!("the tree has no state `{}`", request.state)))?;
        let tactics = self.tree.tactics(state);
        let weights: Vec<f64> = tactics.iter().map(|y| y.1).collect();
        let sample = |i: usize| {
            let (name, p, _) = tactics[draw(&weights, request.stream.uniform(i as u64))];
            Sample { tactic: name.to_string(), log_p: p.ln(), tokens: 1 }
        };
        Ok((0..request.samples).map(sample).collect())
    }
}

impl Policy for TabularPolicy {
    fn submit(&mut self, request: Request) {
        self.waiting.push(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let waiting = std::mem::take(&mut self.waiting);
        waiting.iter().map(|request| (request.id, self.answer(request))).collect()
    }

    fn describe(&self) -> String {
        format!("the tabular policy of {}", Environment::describe(&self.tree))
    }
}

/// The index that a uniform number in [0, 1) falls on, by unnormalised weights.
pub(crate) fn draw(weights: &[f64], uniform: f64) -> usize {
    let mut left = uniform * weights.iter().sum::<f64>();
    for (i, weight) in weights.iter().enumerate() {
        left -= weight;
        if left < 0.0 {
            return i;
        }
    }
    // Rounding only: the last index that can be drawn at all.
    weights.iter().rposition(|&weight| weight > 0.0).unwrap_or(0)
}
