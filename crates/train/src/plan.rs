//! Which traces meet in which optimizer step: a function of the data's shape and the recipe alone,
//! so that branches see the same order.

use std::ops::Range;

use catamount_search::Stream;

use crate::{Dataset, Recipe};

/// The steps of a whole run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Traces in the order they are trained on, epoch after epoch.
    order: Vec<u32>,
    /// Where in `order` each step begins, then its length.
    starts: Vec<usize>,
    /// Traces in an epoch.
    traces: usize,
}

impl Plan {
    /// Shuffles the traces anew for every epoch and cuts the order into steps of at least
    /// `batch.examples` examples.
    pub fn new(data: &Dataset, recipe: &Recipe) -> Self {
        let lengths: Vec<usize> = (0..data.len()).map(|trace| data.trace(trace).len()).collect();
        Plan::over(&lengths, recipe)
    }

    /// The same for traces of which nothing is known but how many examples each has.
    pub fn over(lengths: &[usize], recipe: &Recipe) -> Self {
        let seed = Stream::new(recipe.seed).named("order");
        let mut plan = Plan { order: Vec::new(), starts: vec![0], traces: lengths.len() };
        let most = recipe.max_steps.unwrap_or(usize::MAX);
        for epoch in 0..recipe.epochs {
            let mut examples = 0;
            for trace in shuffled(lengths.len(), seed.child(epoch as u64)) {
                if plan.steps() == most {
                    break;
                }
                plan.order.push(trace);
                examples += lengths[trace as usize];
                if examples >= recipe.batch.examples {
                    plan.starts.push(plan.order.len());
                    examples = 0;
                }
            }
            if examples > 0 {
                plan.starts.push(plan.order.len());
            }
        }
        plan
    }

    /// Optimizer steps of the run.
    pub fn steps(&self) -> usize {
        self.starts.len() - 1
    }

    /// The traces of a step, counted from 0.
    pub fn step(&self, step: usize) -> &[u32] {
        &self.order[self.starts[step]..self.starts[step + 1]]
    }

    /// The traces of several steps.
    pub fn span(&self, steps: Range<usize>) -> &[u32] {
        let end = steps.end.min(self.steps());
        &self.order[self.starts[steps.start]..self.starts[end]]
    }

    /// How much of the run, in epochs, lies before a step.
    pub fn epochs_before(&self, step: usize) -> f64 {
        self.starts[step] as f64 / self.traces as f64
    }
}

/// A permutation of `0..n` (Fisher and Yates).
fn shuffled(n: usize, stream: Stream) -> Vec<u32> {
    let mut order: Vec<u32> = (0..n as u32).collect();
    for i in (1..n).rev() {
        order.swap(i, (stream.uniform(i as u64) * (i + 1) as f64) as usize);
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batching, Example};

    fn data(lengths: &[usize]) -> Dataset {
        let example = |t| Example { prompt: vec![t as u32, 1], tactic: vec![2] };
        Dataset::new(lengths.iter().enumerate().map(|(t, &n)| vec![example(t); n]), 10).unwrap()
    }

    #[test]
    fn every_epoch_visits_every_trace_once_in_an_order_of_its_own() {
        let lengths: Vec<usize> = (0..50).map(|i| 1 + i % 5).collect();
        let data = data(&lengths);
        let recipe = Recipe {
            epochs: 3,
            batch: Batching { examples: 8, ..Batching::default() },
            ..Recipe::default()
        };
        let plan = Plan::new(&data, &recipe);
        let all = plan.span(0..plan.steps());
        let epochs: Vec<&[u32]> = all.chunks(50).collect();
        assert_eq!(epochs.len(), 3);
        for epoch in &epochs {
            let mut sorted = epoch.to_vec();
            sorted.sort_unstable();
            assert_eq!(sorted, (0..50).collect::<Vec<u32>>());
        }
        assert!(epochs[0] != epochs[1] && epochs[1] != epochs[2]);
        for step in 0..plan.steps() {
            let sizes: Vec<usize> = plan.step(step).iter().map(|&t| lengths[t as usize]).collect();
            let total: usize = sizes.iter().sum();
            assert!(total - sizes[sizes.len() - 1] < 8, "no step has a trace more than it needs");
        }
    }

    #[test]
    fn the_order_depends_on_the_seed_alone() {
        let data = data(&[1; 40]);
        let plan = |seed| Plan::new(&data, &Recipe { seed, ..Recipe::default() });
        assert_eq!(plan(42), plan(42));
        assert_ne!(plan(42), plan(43));
        let other = Recipe {
            optimizer: crate::Optimizer { lr: 0.5, ..Default::default() },
            ..Recipe::default()
        };
        assert_eq!(plan(42), Plan::new(&data, &other));
    }

    #[test]
    fn a_cap_on_steps_ends_the_plan() {
        let recipe = Recipe {
            max_steps: Some(3),
            epochs: 9,
            batch: Batching { examples: 2, ..Batching::default() },
            ..Recipe::default()
        };
        let plan = Plan::new(&data(&[1; 10]), &recipe);
        assert_eq!((plan.steps(), plan.step(2).len()), (3, 2));
        assert_eq!(plan.epochs_before(2), 0.4);
    }
}
