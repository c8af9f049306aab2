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
//! O(L N) time; the values are kept whole for ordinary sizes and recomputed from checkpoints, in
//! O(L sqrt N) memory, for large ones.

use std::array::from_fn;
use std::ops::Div;

use catamount_simd::simd;

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

impl Scores<'_> {
    /// The score of every state; the root's is 1 whatever the log-probabilities.
    fn each<S: Number>(&self, length: usize) -> impl Iterator<Item = S> {
        let mut sum = 0.0;
        (0..length).map(move |k| match self {
            Scores::Levin(log_p) if k > 0 => {
                sum += log_p[k - 1];
                S::exp(sum / k as f64)
            }
            _ => S::ONE,
        })
    }
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

/// Values beyond this many, of all traces side by side, are not kept but recomputed.
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
    let kernel = Kernel::new(steps, scores.each(steps.len()), count, absorption);
    kernel.adjoint(scores, budget, kept, &mut Vec::new()).estimate(budget, |s| s)
}

/// Memory to be used again.
pub(crate) type Visits = Vec<Visit<Lanes>>;

simd! {
    /// The same for traces of one length, side by side: to the last bit what [`solve`] says of
    /// each.
    pub(crate) fn solve_lanes(
        steps: &[StepOdds<Lanes>],
        scores: &[Scores<'_>; LANES],
        count: Count,
        budget: usize,
        absorption: f64,
        visits: &mut Visits,
    ) -> [Estimate; LANES] {
        let mut each = scores.each_ref().map(|scores| scores.each::<f64>(steps.len()));
        let mut score = |lane: usize| each[lane].next().unwrap_or(0.0);
        let all = steps.iter().map(|_| Lanes(from_fn(&mut score)));
        let kernel = Kernel::new(steps, all, count, absorption);
        let adjoint = kernel.adjoint(&scores[0], budget, KEPT / LANES, visits);
        from_fn(|lane| adjoint.estimate(budget, |s: Lanes| s.0[lane]))
    }
}

/// J at every budget from 0 on: V(b, 0).
pub(crate) fn successes<S: Number>(
    steps: &[StepOdds<S>],
    scores: &Scores<'_>,
    budget: usize,
    absorption: f64,
) -> Vec<S> {
    let kernel = Kernel::new(steps, scores.each(steps.len()), Count::Successes, absorption);
    let mut row = kernel.first_row();
    let mut successes = vec![row[0]];
    for _ in 0..budget {
        kernel.step::<true>(&mut row, &mut []);
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
    /// Whether anything is ever absorbed.
    absorbs: bool,
    absorb: S,
}

impl<S: Arithmetic + Div<Output = S> + From<f64>> Kernel<S> {
    #[inline(always)]
    fn new(
        steps: &[StepOdds<S>],
        scores: impl Iterator<Item = S>,
        count: Count,
        absorption: f64,
    ) -> Self {
        let absorb = S::from(absorption);
        let mut total = S::ZERO;
        let node = |(&odds, score): (&StepOdds<S>, S)| {
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
        Kernel {
            nodes: steps.iter().zip(scores).map(node).collect(),
            count,
            absorbs: absorption > 0.0,
            absorb,
        }
    }
}

/// The value of a state with some budget, and the sum of its own and its ancestors' by score.
#[derive(Clone, Copy)]
pub(crate) struct Visit<S> {
    value: S,
    sum: S,
}

impl<S: Arithmetic> Kernel<S> {
    /// The row of budget b from that of b-1, in place: what is done with x_t needs its successor's
    /// old value, and its ancestors' old ones, which are in the sum. A row has one entry more than
    /// there are steps: the solved state. What was there is kept in `visits`, as far as it goes.
    #[inline(always)]
    fn step<const LEVIN: bool>(&self, row: &mut [S], visits: &mut [Visit<S>]) {
        let mut visits = visits.iter_mut();
        let mut sum = S::ZERO;
        let mut value = row[0];
        for (t, node) in self.nodes.iter().enumerate() {
            let next = row[t + 1];
            sum = sum + if LEVIN { node.score * value } else { value };
            if let Some(visit) = visits.next() {
                *visit = Visit { value, sum };
            }
            let worth = node.odds.hit * next + node.retry_share * sum;
            row[t] = if self.absorbs { worth + node.inflow } else { worth };
            value = next;
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

    /// What there is to gain by a hit at x_t, and the size of what that is a difference of.
    #[inline(always)]
    fn gain(&self, node: &Node<S>, next: S, sum: S) -> (S, S) {
        let missed = node.survive_share * sum;
        match self.count {
            Count::Successes => (next - missed, next),
            Count::Failures => {
                let size = self.absorb + missed;
                (size - next, size)
            }
        }
    }

    #[inline(always)]
    fn adjoint(
        &self,
        scores: &Scores<'_>,
        budget: usize,
        kept: usize,
        visits: &mut Vec<Visit<S>>,
    ) -> Adjoint<S> {
        // The root's score is 1 whatever p is.
        if matches!(scores, Scores::Uniform) || self.nodes.len() == 1 {
            Adjoint::run::<false>(self, budget, kept, visits)
        } else {
            Adjoint::run::<true>(self, budget, kept, visits)
        }
    }
}

/// The forward pass of the mass, which collects every derivative on its way.
struct Adjoint<S> {
    places: Vec<Place<S>>,
    success: S,
    lost: S,
}

/// What is known of a state and its step.
#[derive(Clone, Copy)]
struct Place<S> {
    /// How likely the search is to be here.
    mass: S,
    /// J dlog J / dlog p_t through the transition alone, and the size of what it was subtracted
    /// from.
    direct: S,
    size: S,
    /// J dlog J / dlog s_k, and the size of what that was subtracted from.
    score: S,
    score_size: S,
}

impl<S: Arithmetic> Adjoint<S> {
    /// `LEVIN`: the gradient flows through the scores, too. `visits` is memory to be used.
    #[inline(always)]
    fn run<const LEVIN: bool>(
        kernel: &Kernel<S>,
        budget: usize,
        kept: usize,
        visits: &mut Vec<Visit<S>>,
    ) -> Self {
        let length = kernel.nodes.len();
        let block =
            if budget * length <= kept { budget } else { (budget as f64).sqrt().ceil() as usize };
        // The rows of budgets 0, block, 2 block, ..., from which those between are made again.
        let mut checkpoints = vec![kernel.first_row()];
        while checkpoints.len() * block < budget {
            let mut row = checkpoints[checkpoints.len() - 1].clone();
            for _ in 0..block {
                kernel.step::<LEVIN>(&mut row, &mut []);
            }
            checkpoints.push(row);
        }
        let solved = checkpoints[0][length];
        let mut adjoint = Adjoint::new(length);
        if visits.len() < block * length {
            visits.resize(block * length, Visit { value: S::ZERO, sum: S::ZERO });
        }
        for (index, mut row) in checkpoints.into_iter().enumerate().rev() {
            let rows = block.min(budget - index * block) * length;
            for visits in visits[..rows].chunks_exact_mut(length) {
                kernel.step::<LEVIN>(&mut row, visits);
            }
            for visits in visits[..rows].chunks_exact(length).rev() {
                adjoint.expand::<LEVIN>(kernel, visits, solved);
            }
        }
        adjoint
    }

    fn new(length: usize) -> Self {
        let nothing = Place {
            mass: S::ZERO,
            direct: S::ZERO,
            size: S::ZERO,
            score: S::ZERO,
            score_size: S::ZERO,
        };
        let mut places = vec![nothing; length];
        places[0].mass = S::ONE;
        Adjoint { places, success: S::ZERO, lost: S::ZERO }
    }

    /// One expansion, with what every state is worth and the solved one.
    #[inline(always)]
    fn expand<const LEVIN: bool>(&mut self, kernel: &Kernel<S>, visits: &[Visit<S>], solved: S) {
        let Adjoint { places, success, lost } = self;
        // Backwards: what returns to x_k is the mass missed at every t >= k, shared out by score.
        let (mut returning, mut expected) = (S::ZERO, S::ZERO);
        // Where a hit leads, and what that is worth.
        let (mut ahead, mut next) = (success, solved);
        let states = places.iter_mut().zip(&kernel.nodes).zip(visits).enumerate().rev();
        for (k, ((place, node), &Visit { value, sum })) in states {
            let (gain, size) = kernel.gain(node, next, sum);
            let advanced = place.mass * node.odds.hit;
            place.direct = place.direct + advanced * gain;
            place.size = place.size + advanced * size;
            let missed = place.mass * node.retry_share;
            returning = returning + missed;
            if LEVIN && k > 0 {
                expected = expected + missed * (sum * node.inverse_total);
                let here = returning * value;
                let difference = match kernel.count {
                    Count::Successes => here - expected,
                    Count::Failures => expected - here,
                };
                place.score = place.score + node.score * difference;
                place.score_size = place.score_size + node.score * (here + expected);
            }
            if kernel.absorbs {
                *lost = *lost + place.mass * node.odds.lost;
            }
            *ahead = *ahead + advanced;
            place.mass = if LEVIN { node.score * returning } else { returning };
            (ahead, next) = (&mut place.mass, value);
        }
    }

    /// log J and the weights; `number` picks one trace's number out of a sum.
    fn estimate<T: Number>(&self, budget: usize, number: impl Fn(S) -> T) -> Estimate {
        let length = self.places.len();
        let success = number(self.success);
        let failed = self.places.iter().fold(number(self.lost), |sum, p| sum + number(p.mass));
        let failure = failed.to_f64();
        let log_success = if failure < 0.5 { (-failure).ln_1p() } else { success.ln() };
        // d log s_k / d log p_j = 1/k for every j < k: the Levin scores' own derivative, summed
        // from the deepest state up. (Scores that are all alike have none.)
        let (mut through_scores, mut score_size) = (0.0, 0.0);
        let mut doubtful = false;
        let mut weights = vec![0.0; length];
        for (t, place) in self.places.iter().enumerate().rev() {
            let weight = (number(place.direct) / success).to_f64() + through_scores;
            let size = (number(place.size) / success).to_f64() + score_size;
            doubtful |= rounding::<T>(size, budget) > 1e-10 * weight.abs() + 1e-14;
            weights[t] = weight;
            if t > 0 {
                through_scores += (number(place.score) / success).to_f64() / t as f64;
                score_size += (number(place.score_size) / success).to_f64() / t as f64;
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
