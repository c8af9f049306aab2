//! How long training will be: counted as training itself counts where its traces are there, and
//! between bounds, with what they assume, where they are not.

use std::path::Path;

use catamount_model::{Tokenizer, tokenizer_of};
use catamount_traces::{Trace, folds, read_any, text_key};
use catamount_train::{Dataset, Plan as Order, Recipe};
use serde::{Deserialize, Serialize};

use crate::error::Work;
use crate::experiment::{Experiment, ModelChoice};
use crate::plan::Plan;
use crate::stamp::Stamps;
use crate::step::{Step, part};
use crate::training;
use crate::{Error, Result};

/// Optimizer steps of a training run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Updates {
    /// At least so many.
    pub least: usize,
    /// At most so many; without it nobody knows before the traces are there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub most: Option<usize>,
    /// What that assumes; it is exact if nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub assuming: Option<String>,
}

/// What the training steps of a study have to do.
pub struct Workload<'a> {
    experiment: &'a Experiment,
    known: Known,
    assuming: Option<String>,
}

/// What is known of the training traces.
enum Known {
    /// All of them, with the tokens of each of their examples.
    Traces(Vec<Trace>, Vec<Vec<usize>>),
    /// How many there are at most, if that.
    Limit(Option<usize>),
}

impl<'a> Workload<'a> {
    /// Reads the traces that a study in a folder would be trained on, wherever they are by now:
    /// with the study, or in the files that it takes them from.
    pub fn of(experiment: &'a Experiment, plan: &Plan, folder: &Path) -> Result<Self> {
        Self::read(experiment, plan, folder).map_err(|failure| failure.in_step("data"))
    }

    /// The same before the traces are there.
    pub fn unread(experiment: &'a Experiment) -> Self {
        let (limit, steps) = (experiment.data.limit, experiment.data.steps);
        let assuming = limit.map_or_else(
            || "counted once traces exist".to_string(),
            |limit| format!("as for {limit} traces of {steps} steps, which are not here yet"),
        );
        Workload { experiment, known: Known::Limit(limit), assuming: Some(assuming) }
    }

    fn read(experiment: &'a Experiment, plan: &Plan, folder: &Path) -> Work<Self> {
        let stamps = Stamps::new(folder);
        let data = plan.steps.iter().find(|planned| planned.step == Step::Data);
        let traces = if data.is_some_and(|data| stamps.is_done(data)) {
            Some(read_any(&folder.join(part("train")))?.traces)
        } else {
            experiment.making(folder).training()?
        };
        let Some(traces) = traces else { return Ok(Self::unread(experiment)) };
        let traces = training::chosen(experiment, traces);
        if traces.is_empty() {
            let path = folder.join(part("train"));
            let steps = experiment.data.steps;
            return Err(Error::Empty { what: "training trace", steps, path }.into());
        }
        let (tokens, assuming) = match tokenizer(experiment, &traces)? {
            Some(tokenizer) => (tokens(&tokenizer, &traces)?, None),
            None => {
                let one = |trace: &Trace| vec![1; trace.steps.len()];
                let assuming =
                    "as if no example were longer than max_tokens; the base model is not here";
                (traces.iter().map(one).collect(), Some(assuming.into()))
            }
        };
        Ok(Workload { experiment, known: Known::Traces(traces, tokens), assuming })
    }

    /// Optimizer steps of a step of the study, if it trains.
    pub fn updates(&self, step: &Step) -> Result<Option<Updates>> {
        let recipe = match step {
            Step::WarmUp | Step::Fold(_) => &self.experiment.warm_up,
            Step::Branch(_) => &self.experiment.branch,
            _ => return Ok(None),
        };
        let assuming = self.assuming.clone();
        let (traces, tokens) = match &self.known {
            Known::Traces(traces, tokens) => (traces, tokens),
            Known::Limit(limit) => return Ok(Some(self.bounds(*limit, step, recipe))),
        };
        let kept = |tokens: &Vec<usize>| tokens.iter().filter(|&&n| n <= recipe.max_tokens).count();
        let lengths: Vec<usize> = match step {
            Step::Fold(fold) => {
                let of = folds(traces, fold.of, self.experiment.seed, text_key);
                let of = of.map_err(|error| crate::error::Failure::from(error).in_step("data"))?;
                let others = tokens.iter().zip(of).filter(|(_, of)| *of != fold.index);
                others.map(|(tokens, _)| kept(tokens)).collect()
            }
            _ => tokens.iter().map(kept).collect(),
        };
        let lengths: Vec<usize> = lengths.into_iter().filter(|&examples| examples > 0).collect();
        let steps = Order::over(&lengths, recipe).steps();
        Ok(Some(Updates { least: steps, most: Some(steps), assuming }))
    }

    /// Between all traces being as short and as long as they may be.
    fn bounds(&self, limit: Option<usize>, step: &Step, recipe: &Recipe) -> Updates {
        let assuming = self.assuming.clone();
        let Some(limit) = limit else {
            return Updates { least: 1, most: recipe.max_steps, assuming };
        };
        let traces = match step {
            Step::Fold(fold) => limit - limit / fold.of,
            _ => limit,
        };
        let of = |length: usize| even(traces, length, recipe);
        let data = self.experiment.data.steps;
        let most = data.max.map(of).or(recipe.max_steps);
        Updates { least: of(data.min), most, assuming }
    }
}

/// Optimizer steps over traces that all have the same number of examples. There may be far more
/// than could be listed.
fn even(traces: usize, length: usize, recipe: &Recipe) -> usize {
    let together = recipe.batch.examples.div_ceil(length.max(1)).max(1);
    let steps = traces.div_ceil(together).saturating_mul(recipe.epochs);
    steps.min(recipe.max_steps.unwrap_or(usize::MAX))
}

/// The tokenizer that the study's models have; none if it comes with a base that is not here.
fn tokenizer(experiment: &Experiment, traces: &[Trace]) -> Work<Option<Tokenizer>> {
    Ok(match &experiment.model {
        ModelChoice::Pretrained { base } if Path::new(base).exists() => {
            Some(tokenizer_of(Path::new(base))?)
        }
        ModelChoice::Pretrained { .. } => None,
        ModelChoice::Scratch { vocab, tokenizer, .. } => {
            Some(training::tokenizer(*tokenizer, *vocab, traces)?)
        }
    })
}

/// The tokens of every example of every trace.
fn tokens(tokenizer: &Tokenizer, traces: &[Trace]) -> Work<Vec<Vec<usize>>> {
    let data = Dataset::tokenize(tokenizer, traces, usize::MAX)?;
    let example = |example| {
        let (prompt, tactic) = data.example(example);
        prompt.len() + tactic.len()
    };
    Ok((0..data.len()).map(|trace| data.trace(trace).map(example).collect()).collect())
}

impl std::fmt::Display for Updates {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.least, self.most) {
            (least, Some(most)) if least == most => write!(f, "{most} steps"),
            (1, Some(most)) => write!(f, "at most {most} steps"),
            (least, Some(most)) => write!(f, "{} to {} steps", least.min(most), most.max(least)),
            (1, None) => write!(f, "steps not known yet"),
            (least, None) => write!(f, "at least {least} steps"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use catamount_train::Batching;

    #[test]
    fn even_traces_are_counted_as_training_counts_them() {
        for (examples, traces, length, epochs, max_steps) in [
            (64, 100, 1, 2, None),
            (64, 100, 5, 3, None),
            (7, 13, 4, 1, None),
            (1, 9, 3, 4, Some(5)),
        ] {
            let batch = Batching { examples, ..Batching::default() };
            let recipe = Recipe { batch, epochs, max_steps, ..Recipe::default() };
            let counted = Order::over(&vec![length; traces], &recipe).steps();
            assert_eq!(even(traces, length, &recipe), counted, "{examples} {traces} {length}");
        }
        assert!(even(usize::MAX, 1, &Recipe::default()) > 1 << 50);
    }
}
