//! One optimizer step: score, weigh, differentiate, accumulate, clip, update.

use catamount_model::{Activations, Backend, Batch, Keep, Model};
use catamount_objective::Weighed;
use catamount_search::Stream;
use rayon::prelude::*;

use crate::optimizer::Moments;
use crate::pack::{Piece, pack};
use crate::score::{check_rows, score_examples};
use crate::weights::Table;
use crate::{Dataset, Error, Normalise, Recipe, Refresh, Result, Weigh};

/// What a step saw. Sums are over its tactics.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Tally {
    /// Weight times cross-entropy.
    pub weighted: f64,
    /// Cross-entropy.
    pub ce: f64,
    /// -log J, over traces.
    pub minus_log_j: f64,
    /// log p of every tactic.
    pub log_p: Vec<f64>,
    /// The weight of every tactic.
    pub weights: Vec<f64>,
    /// Target tokens.
    pub targets: usize,
    /// Token rows run.
    pub rows: usize,
    /// Traces.
    pub traces: usize,
    /// Traces that no search within the budget could find; trained with the CE weights.
    pub infeasible: usize,
    /// Micro-batches, traces and updates that were not finite and therefore left out.
    pub skipped: usize,
    /// The loss that was differentiated, normalised.
    pub loss: f64,
    /// The gradient's norm before clipping.
    pub grad_norm: f64,
    /// The learning rate.
    pub lr: f64,
}

/// What a trace contributes to the loss.
struct Contribution {
    weighed: Weighed,
    /// The trace's first example is in this piece: counts of traces are made here.
    first: bool,
}

/// A model with everything that a step needs.
pub(crate) struct Stepper<'a, B: Backend> {
    pub model: &'a mut Model<B>,
    pub data: &'a Dataset,
    pub objective: &'a dyn Weigh,
    pub recipe: &'a Recipe,
    pub moments: Moments<B>,
    pub acts: Activations<B>,
    pub batch: Batch,
}

impl<'a, B: Backend> Stepper<'a, B> {
    pub fn new(
        model: &'a mut Model<B>,
        data: &'a Dataset,
        objective: &'a dyn Weigh,
        recipe: &'a Recipe,
    ) -> Result<Self> {
        if model.trained().next().is_none() {
            let advice =
                "load the base as trained, or give the recipe a [lora] table and call prepare";
            return Err(Error::Data(format!("the model has no trained parameter; {advice}")));
        }
        check_rows(model, data, recipe.batch.tokens)?;
        let keep = if recipe.batch.recompute { Keep::Inputs } else { Keep::All };
        let acts = Activations::new(model, recipe.batch.tokens, keep)?;
        let moments = Moments::new(model)?;
        model.clear_gradients()?;
        Ok(Stepper { model, data, objective, recipe, moments, acts, batch: Batch::new() })
    }

    /// Scores traces at the current parameters, without dropout, into the table. Stops early where
    /// `go_on` says so.
    pub fn score(
        &mut self,
        traces: &[u32],
        table: &mut Table,
        go_on: &mut dyn FnMut(usize) -> bool,
    ) -> Result<bool> {
        let mut traces = traces.to_vec();
        traces.sort_unstable();
        traces.dedup();
        let examples = traces.iter().flat_map(|&t| self.data.trace(t as usize));
        let Stepper { model, data, recipe, acts, batch, .. } = self;
        let items = examples.map(|e| (e, data.example(e)));
        let each = |e: usize, log_p| table.0[e] = log_p;
        score_examples(model, recipe.temperature, acts, batch, items, each, go_on)
    }

    /// Whether weights are computed from the scores of the very pass that trains on them.
    pub fn weighs_online(&self) -> bool {
        self.objective.depends_on_p()
            && self.data.given().is_none()
            && self.recipe.weights.refresh == Refresh::Online
    }

    /// One optimizer step on these traces. `table` holds the log-probabilities that weights are
    /// computed from where they are not the current ones.
    pub fn step(
        &mut self,
        step: usize,
        steps: usize,
        traces: &[u32],
        table: &mut Table,
    ) -> Result<Tally> {
        let mut tally = Tally::default();
        let micro_batches = pack(self.data, traces, self.recipe.batch.tokens);
        if self.weighs_online() {
            // A trace too large for one micro-batch is scored before it is trained on, as all its
            // tactics must be weighed together.
            let pieces = micro_batches.iter().flatten().filter(|p| !p.whole);
            let torn: Vec<u32> = pieces.map(|p| p.trace as u32).collect();
            self.score(&torn, table, &mut |_| true)?;
        }
        let dropout = Stream::new(self.recipe.seed).named("dropout").child(step as u64);
        for (i, pieces) in micro_batches.iter().enumerate() {
            self.accumulate(pieces, table, dropout.child(i as u64).0, &mut tally)?;
        }
        tally.lr = self.recipe.optimizer.lr * self.recipe.schedule.factor(step, steps);
        self.update(&mut tally)?;
        Ok(tally)
    }

    /// Adds a micro-batch's gradient.
    fn accumulate(
        &mut self,
        pieces: &[Piece],
        table: &Table,
        dropout: u64,
        tally: &mut Tally,
    ) -> Result<()> {
        self.batch.clear();
        let examples = pieces.iter().flat_map(|p| p.examples.clone());
        let ranges: Vec<_> = examples.map(|e| self.data.push(e, &mut self.batch)).collect();
        self.model.forward(&self.batch, &mut self.acts, Some(dropout))?;
        let tokens = self.model.score_at(&mut self.acts, self.recipe.temperature as f32)?;
        let log_p: Vec<f64> = ranges.iter().map(|r| tactic_log_p(&tokens[r.clone()])).collect();
        tally.rows += self.batch.len();
        if !log_p.iter().all(|l| l.is_finite()) {
            tally.skipped += 1;
            return Ok(());
        }

        let mut firsts = Vec::with_capacity(pieces.len());
        let mut next = 0;
        for piece in pieces {
            firsts.push(next);
            next += piece.examples.len();
        }
        let contributions: Vec<Result<Option<Contribution>>> = pieces
            .par_iter()
            .zip(&firsts)
            .map(|(piece, &first)| {
                self.contribution(piece, &log_p[first..first + piece.examples.len()], table)
            })
            .collect();

        let mut coefficients = vec![0.0f32; tokens.len()];
        for ((piece, &first), contribution) in pieces.iter().zip(&firsts).zip(contributions) {
            let Some(Contribution { weighed, first: counts }) = contribution? else {
                tally.skipped += 1;
                continue;
            };
            if counts {
                tally.traces += 1;
                tally.infeasible += usize::from(!weighed.feasible);
                tally.minus_log_j -= weighed.log_success;
            }
            for (i, weight) in (first..first + piece.examples.len()).zip(weighed.weights) {
                coefficients[ranges[i].clone()].fill(-weight as f32);
                tally.weighted -= weight * log_p[i];
                tally.ce -= log_p[i];
                tally.targets += ranges[i].len();
                tally.log_p.push(log_p[i]);
                tally.weights.push(weight);
            }
        }
        if coefficients.iter().any(|c| *c != 0.0) {
            self.model.backward(&mut self.acts, &coefficients)?;
        }
        Ok(())
    }

    /// The weights of a piece's tactics, within the recipe's bounds; none where the scores they
    /// rest on are not finite.
    fn contribution(
        &self,
        piece: &Piece,
        current: &[f64],
        table: &Table,
    ) -> Result<Option<Contribution>> {
        let trace = self.data.trace(piece.trace);
        let tabled = self.objective.depends_on_p() && !(self.weighs_online() && piece.whole);
        let basis = if tabled { &table.0[trace.clone()] } else { current };
        if !basis.iter().all(|l| l.is_finite()) {
            return Ok(None);
        }
        let mut weighed = self.objective.weigh(basis)?;
        if tabled {
            let first = piece.examples.start - trace.start;
            weighed.weights = weighed.weights[first..first + piece.examples.len()].to_vec();
        }
        weighed.weights.iter_mut().for_each(|w| *w = self.recipe.weights.bound(*w));
        Ok(Some(Contribution { weighed, first: piece.examples.start == trace.start }))
    }

    /// Clips and applies the gradient, if it is fit to be applied, and clears it.
    fn update(&mut self, tally: &mut Tally) -> Result<()> {
        let normaliser = match self.recipe.weights.normalise {
            Normalise::Sum => 1.0,
            Normalise::Tactics => tally.weights.len() as f64,
            Normalise::Tokens => tally.targets as f64,
            Normalise::Weights => tally.weights.iter().sum(),
        };
        // A step whose weights all vanish has no gradient to divide.
        if tally.weights.is_empty() || normaliser < f64::from(f32::MIN_POSITIVE) {
            tally.skipped += usize::from(tally.skipped == 0);
            return Ok(self.model.clear_gradients()?);
        }
        tally.loss = tally.weighted / normaliser;
        tally.grad_norm = self.model.gradient_norm()? / normaliser;
        let optimizer = &self.recipe.optimizer;
        if tally.loss.is_finite() && tally.grad_norm.is_finite() {
            let clip = if optimizer.clip > 0.0 {
                (optimizer.clip / tally.grad_norm).min(1.0)
            } else {
                1.0
            };
            self.moments.update(self.model, optimizer, tally.lr, clip / normaliser)?;
        } else {
            tally.skipped += 1;
        }
        Ok(self.model.clear_gradients()?)
    }
}

/// log p of a tactic from its tokens'. A probability that rounding pushed above 1 is 1.
pub(crate) fn tactic_log_p(tokens: &[f32]) -> f64 {
    let sum: f64 = tokens.iter().map(|l| f64::from(*l)).sum();
    if sum > 0.0 { 0.0 } else { sum }
}

#[cfg(test)]
mod tests;
