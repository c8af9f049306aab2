//! One rollout from the root: the probability of proving the theorem, split by what it has to do
//! with a step (lem:unit_elasticity).

use crate::tree::{Leads, ProofTree};

/// Success probabilities of one rollout.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Rollout {
    /// a: by the demonstrated trace.
    pub demonstrated: f64,
    /// b^sh: by another proof that takes the demonstrated tactic of this step.
    pub shared: f64,
    /// b^sib: by a proof that deviates at this step.
    pub sibling: f64,
    /// b^empty: by a proof that never comes to this step.
    pub elsewhere: f64,
}

impl Rollout {
    /// P_any.
    pub fn any(&self) -> f64 {
        self.demonstrated + self.shared + self.sibling + self.elsewhere
    }

    /// eta_t = d log P_any / d log p_t (eq:unit_elasticity).
    pub fn elasticity(&self, p: f64) -> f64 {
        (self.demonstrated + self.shared - p / (1.0 - p) * self.sibling) / self.any()
    }
}

/// The masses for a step (counted from 1). The tree must have no loops: each proof must come to
/// each state at most once.
pub fn rollout(tree: &ProofTree, step: usize) -> Rollout {
    let mut out = Rollout::default();
    follow(
        tree,
        step - 1,
        Path { state: 0, probability: 1.0, on_trace: true, at_step: None },
        tree.states(),
        &mut out,
    );
    out
}

#[derive(Clone, Copy)]
struct Path {
    state: usize,
    probability: f64,
    on_trace: bool,
    /// What was done at the step's state: Some(true) if the demonstrated tactic.
    at_step: Option<bool>,
}

fn follow(tree: &ProofTree, step: usize, path: Path, left: usize, out: &mut Rollout) {
    for (index, (_, p, leads)) in tree.tactics(path.state).into_iter().enumerate() {
        let demonstrated = path.state < tree.length() && index == 0;
        let mut next = Path {
            probability: path.probability * p,
            on_trace: path.on_trace && demonstrated,
            ..path
        };
        if path.state == step {
            next.at_step = Some(demonstrated);
        }
        match leads {
            Leads::Open(state) if left > 0 => {
                follow(tree, step, Path { state, ..next }, left - 1, out)
            }
            Leads::Open(_) | Leads::Rejected => {}
            Leads::Proved => {
                let mass = match (next.on_trace, next.at_step) {
                    (true, _) => &mut out.demonstrated,
                    (false, Some(true)) => &mut out.shared,
                    (false, Some(false)) => &mut out.sibling,
                    (false, None) => &mut out.elsewhere,
                };
                *mass += next.probability;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Branch;

    #[test]
    fn masses_by_hand() {
        let tree = ProofTree::chain(&[0.3, 0.2])
            .unwrap()
            .deviate(1, 0.5, &Branch::Proof(vec![0.4]))
            .unwrap()
            .deviate(2, 0.25, &Branch::Proof(vec![]))
            .unwrap();
        let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-15, "{a} {b}");
        let (first, second) = (rollout(&tree, 1), rollout(&tree, 2));
        for found in [first, second] {
            close(found.demonstrated, 0.06);
            close(found.any(), 0.06 + 0.3 * 0.8 * 0.25 + 0.7 * 0.5 * 0.4);
        }
        close(first.shared, 0.06);
        close(first.sibling, 0.14);
        close(first.elsewhere, 0.0);
        close(second.shared, 0.0);
        close(second.sibling, 0.06);
        close(second.elsewhere, 0.14);
        // eta_2 by a difference.
        let any = |p2: f64| rollout(&tree.with_p(&[0.3, p2]).unwrap(), 1).any();
        let eta = (any(0.2 + 1e-6) - any(0.2 - 1e-6)) / 2e-6 * 0.2 / any(0.2);
        assert!((eta - second.elasticity(0.2)).abs() < 1e-9);
    }
}
