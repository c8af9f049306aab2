//! `rdfs` and `vdfs`: a miss at x_t sends the search back to some ancestor x_k, k <= t, with
//! probability proportional to a score.
//!
//! Scores are all 1 for `rdfs` and the Levin scores s_k for `vdfs`. With V(b, t) the success
//! probability from x_t with budget b,
//!
//! V(b, t) = p V(b-1, t+1) + (1-p)(1-q) A(b-1, t),   A(b, t) = sum_{k <= t} s_k V(b, k) / sum_{k <=
//! t} s_k,
//!
//! the weights are the adjoint: the mass m(n, t) that is at x_t after n expansions gains, by a hit,
//! V(N-n-1, t+1) - (1-q) A(N-n-1, t). Near certain success that is a difference of numbers close to
//! one, and is better taken between failures 1 - V, which have the same recurrence ([`Count`]).
//! O(L N) time; the gains are kept whole for ordinary sizes and recomputed from checkpoints, in O(L
//! sqrt N) memory, for large ones.

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

/// What the recurrence adds up: the weights are the same, their rounding is not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Count {
    /// V, for traces that are rarely found.
    Successes,
    /// 1 - V, for those that are rarely missed.
    Failures,
}

/// The answer, and whether rounding may have moved a weight further than is promised.
pub(crate) struct Estimate {
    pub weighed: Weighed,
    pub doubtful: bool,
}

/// Values beyond this many are not kept but recomputed.
const KEPT: usize = 1 << 22;

pub(crate) fn solve<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    count: Count,
    budget: usize,
    absorption: f64,
) -> Estimate {
    solve_keeping(steps, scores, count, budget, absorption, KEPT)
}

fn solve_keeping<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    count: Count,
    budget: usize,
    absorption: f64,
    kept: usize,
) -> Estimate {
    let kernel = Kernel::new(steps.to_vec(), scores, count, absorption);
    kernel.adjoint(scores, budget, kept).estimate(budget, |s| s)
}

/// The same for traces of one length, side by side: to the last bit what [`solve`] says of each.
pub(crate) fn solve_lanes(
    traces: [(&[StepOdds<f64>], &Scores<'_>); LANES],
    count: Count,
    budget: usize,
    absorption: f64,
) -> [Estimate; LANES] {
    let alone =
        traces.map(|(steps, scores)| Kernel::new(steps.to_vec(), scores, count, absorption));
    let adjoint = Kernel::side_by_side(&alone).adjoint(traces[0].1, budget, KEPT);
    std::array::from_fn(|lane| adjoint.estimate(budget, |s: Lanes| s.0[lane]))
}

/// J at every budget from 0 on: V(b, 0).
pub(crate) fn successes<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    budget: usize,
    absorption: f64,
) -> Vec<S> {
    let kernel = Kernel::new(steps.to_vec(), scores, Count::Successes, absorption);
    let mut row = kernel.first_row();
    let mut successes = vec![row[0]];
    for _ in 0..budget {
        kernel.step(&mut row, |_, _, _| ());
        successes.push(row[0]);
    }
    successes
}

/// One step as the recurrence uses it.
#[derive(Clone, Copy)]
struct Node<S> {
    odds: StepOdds<S>,
    score: S,
    /// 1 / (s_0 + ... + s_t).
    inverse_total: S,
    /// What a miss, and a miss given that the search goes on, multiply the ancestors' sum by.
    retry_share: S,
    survive_share: S,
    /// Of what is counted, that which a miss brings at once: the absorbed, where failures are.
    inflow: S,
}

struct Kernel<S> {
    nodes: Vec<Node<S>>,
    count: Count,
    absorb: S,
}

impl<S: Number> Kernel<S> {
    fn new(steps: Vec<StepOdds<S>>, scores: &Scores<'_>, count: Count, absorption: f64) -> Self {
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
        let absorb = S::from(absorption);
        let mut total = S::ZERO;
        let node = |(odds, score): (StepOdds<S>, S)| {
            total = total + score;
            let inverse_total = S::ONE / total;
            Node {
                odds,
                score,
                inverse_total,
                retry_share: odds.retry * inverse_total,
                survive_share: (S::ONE - absorb) * inverse_total,
                inflow: if count == Count::Failures { odds.lost } else { S::ZERO },
            }
        };
        Kernel { nodes: steps.into_iter().zip(scores).map(node).collect(), count, absorb }
    }
}

impl Kernel<Lanes> {
    fn side_by_side(alone: &[Kernel<f64>; LANES]) -> Self {
        let node = |t: usize| {
            let pack = |part: fn(&Node<f64>) -> f64| {
                Lanes(std::array::from_fn(|lane| part(&alone[lane].nodes[t])))
            };
            Node {
                odds: Lanes::odds(std::array::from_fn(|lane| alone[lane].nodes[t].odds)),
                score: pack(|node| node.score),
                inverse_total: pack(|node| node.inverse_total),
                retry_share: pack(|node| node.retry_share),
                survive_share: pack(|node| node.survive_share),
                inflow: pack(|node| node.inflow),
            }
        };
        Kernel {
            nodes: (0..alone[0].nodes.len()).map(node).collect(),
            count: alone[0].count,
            absorb: Lanes([alone[0].absorb; LANES]),
        }
    }
}

/// What a hit at x_t is worth with some budget, and the size of what that is a difference of.
#[derive(Clone, Copy)]
struct Gain<S> {
    gain: S,
    size: S,
}

/// Of what is counted, how much there is at x_t and on average over its ancestors.
#[derive(Clone, Copy)]
struct Return<S> {
    value: S,
    average: S,
}

impl<S: Arithmetic> Kernel<S> {
    /// The row of budget b from that of b-1, in place: what is done with x_t needs its successor's
    /// old value, and its ancestors' old ones, which are in the sum. A row has one entry more than
    /// there are steps: the solved state. `read` is shown what the row that was there is worth.
    #[inline(always)]
    fn step(&self, row: &mut [S], mut read: impl FnMut(usize, Gain<S>, Return<S>)) {
        let mut sum = S::ZERO;
        for (t, node) in self.nodes.iter().enumerate() {
            let (value, next) = (row[t], row[t + 1]);
            sum = sum + node.score * value;
            let missed = node.survive_share * sum;
            let gain = match self.count {
                Count::Successes => Gain { gain: next - missed, size: next },
                Count::Failures => {
                    let size = self.absorb + missed;
                    Gain { gain: size - next, size }
                }
            };
            read(t, gain, Return { value, average: sum * node.inverse_total });
            row[t] = node.odds.hit * next + node.retry_share * sum + node.inflow;
        }
    }

    /// With no budget left, nothing succeeds but what is solved.
    fn first_row(&self) -> Vec<S> {
        let (unsolved, solved) = match self.count {
            Count::Successes => (S::ZERO, S::ONE),
            Count::Failures => (S::ONE, S::ZERO),
        };
        let mut row = vec![unsolved; self.nodes.len() + 1];
        row[self.nodes.len()] = solved;
        row
    }

    fn adjoint(&self, scores: &Scores<'_>, budget: usize, kept: usize) -> Adjoint<S> {
        // The root's score is 1 whatever p is.
        if matches!(scores, Scores::Uniform) || self.nodes.len() == 1 {
            Adjoint::run::<false>(self, budget, kept)
        } else {
            Adjoint::run::<true>(self, budget, kept)
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
    /// Per state: J dlog J / dlog s_k, and the size of what that was subtracted from.
    score: Vec<S>,
    score_size: Vec<S>,
}

impl<S: Arithmetic> Adjoint<S> {
    /// `LEVIN`: the gradient flows through the scores, too.
    fn run<const LEVIN: bool>(kernel: &Kernel<S>, budget: usize, kept: usize) -> Self {
        let length = kernel.nodes.len();
        let block =
            if budget * length <= kept { budget } else { (budget as f64).sqrt().ceil() as usize };
        // The rows of budgets 0, block, 2 block, ..., from which those between are made again.
        let mut checkpoints = vec![kernel.first_row()];
        while checkpoints.len() * block < budget {
            let mut row = checkpoints[checkpoints.len() - 1].clone();
            for _ in 0..block {
                kernel.step(&mut row, |_, _, _| ());
            }
            checkpoints.push(row);
        }
        let mut adjoint = Adjoint::new(length);
        let mut gains = vec![Gain { gain: S::ZERO, size: S::ZERO }; block * length];
        let nothing = Return { value: S::ZERO, average: S::ZERO };
        let mut returns = vec![nothing; if LEVIN { gains.len() } else { 0 }];
        for (index, mut row) in checkpoints.into_iter().enumerate().rev() {
            let rows = 0..block.min(budget - index * block);
            for b in rows.clone() {
                let gains = &mut gains[b * length..][..length];
                let returns = if LEVIN { &mut returns[b * length..][..length] } else { &mut [] };
                kernel.step(&mut row, |t, gain, back| {
                    gains[t] = gain;
                    if LEVIN {
                        returns[t] = back;
                    }
                });
            }
            for b in rows.rev() {
                let row = b * length..(b + 1) * length;
                let returns = if LEVIN { &returns[row.clone()] } else { &[] };
                adjoint.expand::<LEVIN>(kernel, &gains[row], returns);
            }
        }
        adjoint
    }

    fn new(length: usize) -> Self {
        let zeros = || vec![S::ZERO; length];
        let mut mass = zeros();
        mass[0] = S::ONE;
        Adjoint {
            mass,
            success: S::ZERO,
            lost: S::ZERO,
            direct: zeros(),
            size: zeros(),
            score: zeros(),
            score_size: zeros(),
        }
    }

    /// One expansion, with what there is to gain by it at every state.
    #[inline(always)]
    fn expand<const LEVIN: bool>(
        &mut self,
        kernel: &Kernel<S>,
        gains: &[Gain<S>],
        returns: &[Return<S>],
    ) {
        let length = kernel.nodes.len();
        // Backwards: what returns to x_k is the mass missed at every t >= k, shared out by score.
        let (mut returning, mut expected) = (S::ZERO, S::ZERO);
        for k in (0..length).rev() {
            let (node, gain, mass) = (&kernel.nodes[k], &gains[k], self.mass[k]);
            let advanced = mass * node.odds.hit;
            self.direct[k] = self.direct[k] + advanced * gain.gain;
            self.size[k] = self.size[k] + advanced * gain.size;
            let missed = mass * node.retry_share;
            returning = returning + missed;
            if LEVIN && k > 0 {
                expected = expected + missed * returns[k].average;
                let here = returning * returns[k].value;
                let difference = match kernel.count {
                    Count::Successes => here - expected,
                    Count::Failures => expected - here,
                };
                self.score[k] = self.score[k] + node.score * difference;
                self.score_size[k] = self.score_size[k] + node.score * (here + expected);
            }
            self.lost = self.lost + mass * node.odds.lost;
            if k + 1 == length {
                self.success = self.success + advanced;
            } else {
                self.mass[k + 1] = self.mass[k + 1] + advanced;
            }
            self.mass[k] = node.score * returning;
        }
    }

    /// log J and the weights; `number` picks one trace's number out of a sum.
    fn estimate<T: Number>(&self, budget: usize, number: impl Fn(S) -> T) -> Estimate {
        let length = self.mass.len();
        let success = number(self.success);
        let failure = self.mass.iter().fold(number(self.lost), |sum, &m| sum + number(m)).to_f64();
        let log_success = if failure < 0.5 { (-failure).ln_1p() } else { success.ln() };
        // d log s_k / d log p_j = 1/k for every j < k: the Levin scores' own derivative, summed
        // from the deepest state up. (Scores that are all alike have none.)
        let (mut through_scores, mut score_size) = (0.0, 0.0);
        let mut doubtful = false;
        let mut weights = vec![0.0; length];
        for t in (0..length).rev() {
            let weight = (number(self.direct[t]) / success).to_f64() + through_scores;
            let size = (number(self.size[t]) / success).to_f64() + score_size;
            doubtful |= rounding::<T>(size, budget) > 1e-10 * weight.abs() + 1e-14;
            weights[t] = weight;
            if t > 0 {
                through_scores += (number(self.score[t]) / success).to_f64() / t as f64;
                score_size += (number(self.score_size[t]) / success).to_f64() / t as f64;
            }
        }
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
            for count in [Count::Successes, Count::Failures] {
                for budget in [4, 5, 99, 100, 101, 1000] {
                    let solve =
                        |kept| solve_keeping(&steps, &scores, count, budget, 0.05, kept).weighed;
                    assert_eq!(solve(usize::MAX), solve(0), "{count:?}, budget {budget}");
                }
            }
        }
    }

    /// Where neither is in doubt, both ways to count say the same; and where success is near
    /// certain, counting failures is as good as wider numbers.
    #[test]
    fn failures_are_counted_as_well_as_successes() {
        let mut counted = 0;
        for log_p in [[-0.2, -3.0, -0.5], [-0.02, -0.3, -0.01], [-6.0, -4.0, -1.0]] {
            for (budget, q) in [(8, 0.0), (60, 0.05), (400, 0.0)] {
                let steps = log_p.map(|l| StepOdds::<f64>::new(l, q));
                let wide = log_p.map(|l| StepOdds::<crate::wide::Wide>::new(l, q));
                for scores in [Scores::Uniform, Scores::Levin(&log_p)] {
                    let exact = solve(&wide, &scores, Count::Successes, budget, q).weighed;
                    for count in [Count::Successes, Count::Failures] {
                        let estimate = solve(&steps, &scores, count, budget, q);
                        if estimate.doubtful {
                            continue;
                        }
                        counted += 1;
                        for (ours, exact) in estimate.weighed.weights.iter().zip(&exact.weights) {
                            let apart = (ours - exact).abs();
                            assert!(apart <= 1e-10 * exact.abs() + 1e-14, "{ours} {exact}");
                        }
                    }
                    let either = [Count::Successes, Count::Failures]
                        .map(|count| solve(&steps, &scores, count, budget, q).doubtful);
                    assert!(!(either[0] && either[1]), "{log_p:?} {budget} {q}");
                }
            }
        }
        assert!(counted > 18, "{counted}");
    }
}
