//! Which probabilities of training tactics are like those of held-out ones, and what they cost: a
//! warm-up from scratch and the same recipe on folds, judged on a file that none of them saw.
//!
//! ```sh
//! cargo run --release -p catamount-train --example probabilities -- \
//!     train.jsonl valid.jsonl test.jsonl FOLDER [RECIPE] [FOLDS ...]
//! ```

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use catamount_model::{Config, Cpu, Model, Tokenizer};
use catamount_objective::{Objective, Surrogate};
use catamount_search::Stream;
use catamount_traces::{Trace, folds, read_any, text_key};
use catamount_train::{
    Dataset, Distribution, Recipe, Run, Scores, distance, mapped, score_data, train,
};

/// The temperature, and the budget of the weights shown.
const TEMPERATURE: f64 = 0.8;
const BUDGET: u64 = 128;

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// What every model here has in common.
struct Study<'a> {
    folder: &'a Path,
    recipe: Recipe,
    tokenizer: Tokenizer,
    stop: AtomicBool,
}

impl Study<'_> {
    fn data(&self, traces: &[Trace]) -> Outcome<Dataset> {
        Ok(Dataset::tokenize(&self.tokenizer, traces, self.recipe.max_tokens)?)
    }

    fn learn(&self, name: &str, traces: &[Trace]) -> Outcome<Model<Cpu>> {
        let config = Config::small(self.tokenizer.vocab(), 128, 3, self.recipe.max_tokens);
        let mut model = Model::init(Arc::new(Cpu), config, Stream::new(self.recipe.seed))?;
        let run = Run::new(self.folder, name, &self.stop).resuming(true).showing(true);
        let ce = Surrogate::new(Objective::Ce, 0);
        train(&mut model, &self.data(traces)?, &ce, &self.recipe, &run)?;
        Ok(model)
    }

    fn judge(&self, model: &Model<Cpu>, traces: &[Trace]) -> Outcome<Scores> {
        let data = self.data(traces)?;
        let run = Run::new(self.folder, "judge", &self.stop).showing(true);
        let log_p = score_data(model, &data, TEMPERATURE, self.recipe.batch.tokens, &run)?;
        Ok(Scores::new(traces, &data, &log_p.ok_or("stopped")?))
    }
}

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [train_file, valid_file, test_file, folder, rest @ ..] = &arguments[..] else {
        return Err("usage: probabilities TRAIN VALID TEST FOLDER [RECIPE] [FOLDS ...]".into());
    };
    let recipe = match rest.first() {
        Some(path) => Recipe::from_toml(&std::fs::read_to_string(path)?)?,
        None => Recipe::default(),
    };
    let counts: Vec<usize> = rest.iter().skip(1).map(|n| n.parse()).collect::<Result<_, _>>()?;
    let [traces, valid, test] = [train_file, valid_file, test_file]
        .map(|file| read_any(Path::new(file)).map(|loaded| loaded.traces));
    let (traces, valid, test) = (traces?, valid?, test?);
    let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
    let tokenizer = Tokenizer::train_symbols(texts, 3072)?;
    let stop = AtomicBool::new(false);
    let study = Study { folder: Path::new(folder), recipe, tokenizer, stop };

    let started = Instant::now();
    let model = study.learn("warm-up", &traces)?;
    let warm_up = started.elapsed().as_secs_f64();
    let training = study.judge(&model, &traces)?;
    let started = Instant::now();
    let [valid, test] = [valid, test].map(|traces| study.judge(&model, &traces));
    let (valid, test) = (valid?, test?);
    let scoring = started.elapsed().as_secs_f64();
    let crossed = counts
        .iter()
        .map(|count| cross_fitted(&study, &traces, *count))
        .collect::<Outcome<Vec<_>>>()?;

    println!(
        "| probabilities | median p | mean p | distance from the test set's | seconds more | \
         rank correlation with {} folds | effective sample |",
        counts.last().unwrap_or(&0)
    );
    println!("|---|---|---|---|---|---|---|");
    let held_out = test.log_p();
    let reference = crossed.last().map(|(scores, _)| scores);
    let row = |name: &str, scores: &Scores, seconds: f64, judged: bool| {
        let log_p = scores.log_p();
        let found = Distribution::of(&log_p);
        let rank = reference
            .filter(|_| judged)
            .map_or("".into(), |other| format!("{:.2}", spearman(&log_p, &other.log_p())));
        let size = if judged { effective(scores, &traces) } else { String::new() };
        println!(
            "| {name} | {:.3} | {:.3} | {:.3} | {seconds:.0} | {rank} | {size} |",
            found.p_median,
            found.p_mean,
            distance(&log_p, &held_out),
        );
    };
    row("training", &training, 0.0, true);
    row("mapped", &mapped(&training, &valid)?, scoring, true);
    for (count, (scores, seconds)) in counts.iter().zip(&crossed) {
        row(&format!("cross-fitted, {count} folds"), scores, *seconds, true);
    }
    row("validation set", &valid, 0.0, false);
    row("test set", &test, 0.0, false);
    println!("\nthe warm-up took {warm_up:.0} s");
    Ok(())
}

/// The scores of models that never saw what they judge, and how long that took.
fn cross_fitted(study: &Study<'_>, traces: &[Trace], count: usize) -> Outcome<(Scores, f64)> {
    let (started, fold_of) = (Instant::now(), folds(traces, count, study.recipe.seed, text_key)?);
    let mut scores = Scores::default();
    for fold in 0..count {
        let part = |inside: bool| -> Vec<Trace> {
            let kept = traces.iter().zip(&fold_of).filter(|(_, f)| (**f == fold) == inside);
            kept.map(|(trace, _)| trace.clone()).collect()
        };
        let model = study.learn(&format!("fold-{}-of-{count}", fold + 1), &part(false))?;
        scores.extend(study.judge(&model, &part(true))?);
    }
    Ok((scores, started.elapsed().as_secs_f64()))
}

/// How many equally weighted tactics the weights amount to, of all.
fn effective(scores: &Scores, traces: &[Trace]) -> String {
    let objective = Surrogate::new(Objective::Bfs, BUDGET);
    let mut weights = Vec::new();
    for trace in traces {
        let steps = scores.get(&trace.theorem.name).unwrap_or_default();
        let log_p: Vec<f64> = steps.iter().flatten().copied().collect();
        weights.extend(objective.weigh(&log_p).map(|w| w.weights).unwrap_or_default());
    }
    let (sum, squares): (f64, f64) = (weights.iter().sum(), weights.iter().map(|w| w * w).sum());
    format!("{:.0} of {}", sum * sum / squares, weights.len())
}

/// Spearman's rank correlation of two lists in the same order.
fn spearman(one: &[f64], other: &[f64]) -> f64 {
    let ranks = |values: &[f64]| {
        let mut order: Vec<usize> = (0..values.len()).collect();
        order.sort_by(|a, b| values[*a].total_cmp(&values[*b]));
        let mut ranks = vec![0.0; values.len()];
        order.iter().enumerate().for_each(|(rank, i)| ranks[*i] = rank as f64);
        ranks
    };
    let (one, other) = (ranks(one), ranks(other));
    let mean = (one.len() as f64 - 1.0) / 2.0;
    let products: f64 = one.iter().zip(&other).map(|(a, b)| (a - mean) * (b - mean)).sum();
    products / one.iter().map(|a| (a - mean) * (a - mean)).sum::<f64>()
}
