//! `rdfs` and `vdfs`: a miss at x_t sends the search back to some ancestor x_k, k <= t, with
//! probability proportional to a score.
//!
//! Scores are all 1 for `rdfs` and the Levin scores s_k for `vdfs`. With V(b, t) the success
//! probability from x_t with budget b,
//!
//! V(b, t) = p V(b-1, t+1) + (1-p)(1-q) A(b-1, t),   A(b, t) = sum_{k <= t} s_k V(b, k) / sum_{k <=
//! t} s_k,
//!
//! the weights are the adjoint: the mass m(n, t) that is at x_t after n expansions meets V(N-n-1,
//! .). O(L N) time; the values are kept whole for ordinary sizes and recomputed from checkpoints,
//! in O(L sqrt N) memory, for large ones.

use crate::Weighed;
use crate::lanes::{LANES, Lanes};
use crate::number::{Arithmetic, Number, StepOdds};

/// How the ancestors are scored.
pub(crate) enum Scores<'a> {
    /// All alike.
    Uniform,
    /// By the Levin score of the log-probabilities, which the gradient flows through.
    Levin(&'a [f64]),
}

/// The answer, and how far rounding may have moved its worst weight (absolutely, and in units of
/// the tolerance).
pub(crate) struct Estimate {
    pub weighed: Weighed,
    pub doubtful: bool,
}

/// Values beyond this many are not kept but recomputed.
const KEPT: usize = 1 << 22;

pub(crate) fn solve<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    budget: usize,
    absorption: f64,
) -> Estimate {
    solve_keeping(steps, scores, budget, absorption, KEPT)
}

fn solve_keeping<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    budget: usize,
    absorption: f64,
    kept: usize,
) -> Estimate {
    let kernel = Kernel::new(steps.to_vec(), scores, absorption);
    Adjoint::run(&kernel, budget, kept).estimate(scores, budget, |s| s)
}

/// The same for traces of one length, side by side: to the last bit what [`solve`] says of each.
pub(crate) fn solve_lanes(
    traces: [(&[StepOdds<f64>], &Scores<'_>); LANES],
    budget: usize,
    absorption: f64,
) -> [Estimate; LANES] {
    let alone = traces.map(|(steps, scores)| Kernel::new(steps.to_vec(), scores, absorption));
    let adjoint = Adjoint::run(&Kernel::side_by_side(&alone), budget, KEPT);
    std::array::from_fn(|lane| adjoint.estimate(traces[lane].1, budget, |s: Lanes| s.0[lane]))
}

/// J at every budget from 0 on: V(b, 0).
pub(crate) fn successes<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    budget: usize,
    absorption: f64,
) -> Vec<S> {
    let kernel = Kernel::new(steps.to_vec(), scores, absorption);
    let (mut row, mut next) = (kernel.first_row(), kernel.first_row());
    let mut successes = vec![row[0]];
    for _ in 0..budget {
        kernel.step_values(&row, &mut next);
        std::mem::swap(&mut row, &mut next);
        successes.push(row[0]);
    }
    successes
}

struct Kernel<S> {
    steps: Vec<StepOdds<S>>,
    scores: Vec<S>,
    /// 1 / (s_0 + ... + s_t).
    inverse_total: Vec<S>,
    survive: S,
    absorption: f64,
}

impl<S: Number> Kernel<S> {
    fn new(steps: Vec<StepOdds<S>>, scores: &Scores<'_>, absorption: f64) -> Self {
        let scores: Vec<S> = match scores {
            Scores::Uniform => vec![S::ONE; steps.len()],
            Scores::Levin(log_p) => {
                let mut sum = 0.0;
                let mut levin = vec![S::ONE];
                for (k, log_p) in log_p.iter().enumerate().take(steps.len() - 1) {
                    sum += log_p;
                    levin.push(S::exp(sum / (k + 1) as f64));
                }
                levin
            }
        };
        let mut total = S::ZERO;
        let inverse_total = scores
            .iter()
            .map(|&s| {
                total = total + s;
                S::ONE / total
            })
            .collect();
        Kernel { steps, scores, inverse_total, survive: S::ONE - S::from(absorption), absorption }
    }
}

impl Kernel<Lanes> {
    fn side_by_side(alone: &[Kernel<f64>; LANES]) -> Self {
        let pack = |part: &dyn Fn(&Kernel<f64>) -> f64| {
            Lanes(std::array::from_fn(|lane| part(&alone[lane])))
        };
        let each = |part: &dyn Fn(&Kernel<f64>, usize) -> f64| {
            (0..alone[0].steps.len()).map(|t| pack(&|kernel| part(kernel, t))).collect()
        };
        Kernel {
            steps: (0..alone[0].steps.len())
                .map(|t| Lanes::odds(std::array::from_fn(|lane| alone[lane].steps[t])))
                .collect(),
            scores: each(&|kernel, t| kernel.scores[t]),
            inverse_total: each(&|kernel, t| kernel.inverse_total[t]),
            survive: pack(&|kernel| kernel.survive),
            absorption: alone[0].absorption,
        }
    }
}

impl<S: Arithmetic> Kernel<S> {
    /// V(b, .) from V(b-1, .). A row has one entry more than there are steps: the solved state,
    /// always 1.
    fn step_values(&self, before: &[S], after: &mut [S]) {
        let mut prefix = S::ZERO;
        for (t, step) in self.steps.iter().enumerate() {
            prefix = prefix + self.scores[t] * before[t];
            after[t] = step.hit * before[t + 1] + step.retry * (prefix * self.inverse_total[t]);
        }
    }

    fn first_row(&self) -> Vec<S> {
        let mut row = vec![S::ZERO; self.steps.len() + 1];
        row[self.steps.len()] = S::ONE;
        row
    }
}

/// The rows V(0, .) to V(N-1, .), whole or at checkpoints.
struct Values<S> {
    budget: usize,
    /// Rows per block.
    block: usize,
    /// The first row of every block.
    checkpoints: Vec<Vec<S>>,
}

impl<S: Arithmetic> Values<S> {
    fn new(kernel: &Kernel<S>, budget: usize, kept: usize) -> Self {
        let width = kernel.steps.len() + 1;
        let block =
            if budget * width <= kept { budget } else { (budget as f64).sqrt().ceil() as usize };
        let mut checkpoints = vec![kernel.first_row()];
        while checkpoints.len() * block < budget {
            let (mut row, mut next) =
                (checkpoints[checkpoints.len() - 1].clone(), kernel.first_row());
            for _ in 0..block {
                kernel.step_values(&row, &mut next);
                std::mem::swap(&mut row, &mut next);
            }
            checkpoints.push(row);
        }
        Values { budget, block, checkpoints }
    }

    /// Visits the rows from V(N-1, .) down to V(0, .).
    fn descend(&self, kernel: &Kernel<S>, mut visit: impl FnMut(&[S])) {
        let width = kernel.steps.len() + 1;
        let mut rows = vec![S::ONE; self.block * width];
        for (index, checkpoint) in self.checkpoints.iter().enumerate().rev() {
            let count = self.block.min(self.budget - index * self.block);
            rows[..width].copy_from_slice(checkpoint);
            for b in 1..count {
                let (done, rest) = rows.split_at_mut(b * width);
                kernel.step_values(&done[(b - 1) * width..], &mut rest[..width]);
            }
            for row in rows[..count * width].chunks_exact(width).rev() {
                visit(row);
            }
        }
    }
}

/// The forward pass of the mass, which collects every derivative on its way.
struct Adjoint<S> {
    mass: Vec<S>,
    success: S,
    lost: S,
    /// Per step: J dlog J / dlog p_t through the transition alone, and the size of what it was
    /// subtracted from.
    direct: Vec<S>,
    size: Vec<S>,
    /// Per state: J dlog J / dlog s_k.
    score: Vec<S>,
    averages: Vec<S>,
}

impl<S: Arithmetic> Adjoint<S> {
    fn run(kernel: &Kernel<S>, budget: usize, kept: usize) -> Self {
        let mut adjoint = Adjoint::new(kernel);
        Values::new(kernel, budget, kept).descend(kernel, |row| adjoint.expand(kernel, row));
        adjoint
    }

    fn new(kernel: &Kernel<S>) -> Self {
        let length = kernel.steps.len();
        let mut mass = vec![S::ZERO; length];
        mass[0] = S::ONE;
        let zeros = || vec![S::ZERO; length];
        Adjoint {
            mass,
            success: S::ZERO,
            lost: S::ZERO,
            direct: zeros(),
            size: zeros(),
            score: zeros(),
            averages: zeros(),
        }
    }

    /// One expansion: `values` is V(b, .) with the budget that remains after it.
    fn expand(&mut self, kernel: &Kernel<S>, values: &[S]) {
        let length = kernel.steps.len();
        let mut prefix = S::ZERO;
        for t in 0..length {
            prefix = prefix + kernel.scores[t] * values[t];
            let average = prefix * kernel.inverse_total[t];
            self.averages[t] = average;
            let flow = self.mass[t] * kernel.steps[t].hit;
            let (up, down) = (flow * values[t + 1], flow * (kernel.survive * average));
            self.direct[t] = self.direct[t] + (up - down);
            self.size[t] = self.size[t] + up;
        }
        // Backwards: what returns to x_k is the mass missed at every t >= k, shared out by score.
        let (mut returning, mut expected) = (S::ZERO, S::ZERO);
        for k in (0..length).rev() {
            let step = &kernel.steps[k];
            let mass = self.mass[k];
            let missed = mass * step.retry * kernel.inverse_total[k];
            returning = returning + missed;
            expected = expected + missed * self.averages[k];
            self.score[k] = self.score[k] + kernel.scores[k] * (returning * values[k] - expected);
            if kernel.absorption > 0.0 {
                self.lost = self.lost + mass * step.lost;
            }
            let advanced = mass * step.hit;
            if k + 1 == length {
                self.success = self.success + advanced;
            } else {
                self.mass[k + 1] = self.mass[k + 1] + advanced;
            }
            self.mass[k] = kernel.scores[k] * returning;
        }
    }

    /// log J and the weights; `number` picks one trace's number out of a sum.
    fn estimate<T: Number>(
        &self,
        scores: &Scores<'_>,
        budget: usize,
        number: impl Fn(S) -> T,
    ) -> Estimate {
        let length = self.mass.len();
        let success = number(self.success);
        let failure = self.mass.iter().fold(number(self.lost), |sum, &m| sum + number(m)).to_f64();
        let log_success = if failure < 0.5 { (-failure).ln_1p() } else { success.ln() };
        // d log s_k / d log p_j = 1/k for every j < k: the Levin scores' own derivative, summed
        // from the deepest state up.
        let mut through_scores = vec![0.0; length];
        if let Scores::Levin(_) = scores {
            let mut sum = 0.0;
            for k in (1..length).rev() {
                sum += (number(self.score[k]) / success).to_f64() / k as f64;
                through_scores[k - 1] = sum;
            }
        }
        let mut doubtful = false;
        let weights = (0..length)
            .map(|t| {
                let weight = (number(self.direct[t]) / success).to_f64() + through_scores[t];
                let size = (number(self.size[t]) / success).to_f64();
                doubtful |= rounding::<T>(size, budget) > 1e-10 * weight.abs() + 1e-14;
                weight
            })
            .collect();
        Estimate { weighed: Weighed { log_success, weights, feasible: true }, doubtful }
    }
}

/// Rounding error of a weight that is a difference of sums of this size.
fn rounding<S: Number>(size: f64, budget: usize) -> f64 {
    size * S::EPSILON * (budget as f64).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recomputed_values_are_the_kept_ones() {
        let log_p = [-0.2, -3.0, -0.01, -1.0];
        let steps: Vec<_> = log_p.iter().map(|&l| StepOdds::<f64>::new(l, 0.05)).collect();
        for scores in [Scores::Uniform, Scores::Levin(&log_p)] {
            for budget in [4, 5, 99, 100, 101, 1000] {
                let kept = solve_keeping(&steps, &scores, budget, 0.05, usize::MAX).weighed;
                let recomputed = solve_keeping(&steps, &scores, budget, 0.05, 0).weighed;
                assert_eq!(kept, recomputed, "budget {budget}");
            }
        }
    }
}
