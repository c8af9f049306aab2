//! Weights that rest on other probabilities than the model's own, and what is measured on held-out
//! traces.

use std::path::Path;
use std::sync::atomic::AtomicBool;

use crate::common::{data, metrics, model, recipe, tokenizer, traces};
use catamount_model::{Cpu, Model};
use catamount_objective::{Objective, Surrogate};
use catamount_search::Stream;
use catamount_traces::{Trace, folds};
use catamount_train::{
    Dataset, Probabilities, Reading, Recipe, Refresh, Run, Scores, Snapshot, Weighting, mapped,
    score_data, train,
};

static GO: AtomicBool = AtomicBool::new(false);

fn scores(model: &Model<Cpu>, traces: &[Trace], data: &Dataset, temperature: f64) -> Scores {
    let run = Run::new(Path::new("."), "scores", &GO);
    let log_p = score_data(model, data, temperature, 96, &run).unwrap().unwrap();
    Scores::new(traces, data, &log_p)
}

#[test]
fn given_scores_decide_the_weights() {
    let traces = traces(24);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    // Whatever the model thinks, the first step of a trace is hard and the others are easy.
    let hard = |e: usize| if data.origin(e).1 == 0 { -4.0 } else { -0.01 };
    let log_p: Vec<f64> = (0..data.examples()).map(hard).collect();
    let scores = Scores::new(&traces, &data, &log_p);
    let objective = Surrogate::new(Objective::Bfs, 32);
    let weights: Vec<f64> = traces
        .iter()
        .flat_map(|t| {
            let log_p: Vec<f64> =
                scores.get(&t.theorem.name).unwrap().iter().map(|l| l.unwrap()).collect();
            objective.weigh(&log_p).unwrap().weights
        })
        .collect();
    let given = data.clone().weighed_by(&scores, &traces).unwrap();
    let recipe = Recipe { log_every: 1000, ..recipe() };
    let run = Run::new(folder.path(), "run", &GO);
    let outcome = train(&mut model(&tokenizer), &given, &objective, &recipe, &run).unwrap();
    let line = outcome.summary().last.clone().unwrap();
    let checkpointed: usize = metrics(&run.metrics()).iter().map(|line| line.tactics).sum();
    assert_eq!(checkpointed, weights.len());
    let lines = metrics(&run.metrics());
    let mean = |of: &dyn Fn(&catamount_train::Measurement) -> f64| {
        lines.iter().map(|l| of(l) * l.tactics as f64).sum::<f64>() / weights.len() as f64
    };
    let expected = weights.iter().sum::<f64>() / weights.len() as f64;
    assert!((mean(&|l| l.w_mean) - expected).abs() < 1e-12);
    assert!(line.effective_sample_size < line.tactics as f64, "the weights differ");
}

#[test]
fn the_warm_ups_own_scores_given_are_frozen_weights() {
    let traces = traces(30);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let objective = Surrogate::new(Objective::Ua, 64);
    let frozen = Weighting { refresh: Refresh::Frozen, ..Weighting::default() };
    let recipe = Recipe { epochs: 2, temperature: 0.8, weights: frozen, ..recipe() };
    let mut own = model(&tokenizer);
    let given = scores(&own, &traces, &data, 0.8);
    train(&mut own, &data, &objective, &recipe, &Run::new(folder.path(), "own", &GO)).unwrap();
    let online = Recipe { weights: Weighting::default(), ..recipe };
    let data = data.weighed_by(&given, &traces).unwrap();
    let mut other = model(&tokenizer);
    let run = Run::new(folder.path(), "given", &GO);
    train(&mut other, &data, &objective, &online, &run).unwrap();
    assert_eq!(Snapshot::take(&own).unwrap(), Snapshot::take(&other).unwrap());
}

#[test]
fn held_out_traces_are_measured_after_each_epoch_and_at_the_end() {
    let traces = traces(60);
    let tokenizer = tokenizer(&traces);
    let (held_out, rest) = traces.split_at(12);
    let (held_out_data, data) = (data(&tokenizer, held_out), data(&tokenizer, rest));
    let folder = tempfile::tempdir().unwrap();
    let objective = Surrogate::new(Objective::Ce, 0);
    let recipe = Recipe { epochs: 3, log_every: 1000, temperature: 1.2, ..recipe() };
    let run = Run::new(folder.path(), "run", &GO).validating(Some(&held_out_data));
    let mut trained = model(&tokenizer);
    let untouched = Snapshot::take(&{
        let mut model = model(&tokenizer);
        let run = Run::new(folder.path(), "blind", &GO);
        train(&mut model, &data, &objective, &recipe, &run).unwrap();
        model
    });
    train(&mut trained, &data, &objective, &recipe, &run).unwrap();
    assert_eq!(Snapshot::take(&trained).unwrap(), untouched.unwrap(), "measuring changes nothing");
    let lines = metrics(&run.metrics());
    let measured: Vec<f64> = lines.iter().filter(|l| l.valid.is_some()).map(|l| l.epoch).collect();
    assert_eq!(measured, [1.0, 2.0, 3.0]);
    let valid = lines.last().unwrap().valid.clone().unwrap();
    let log_p = scores(&trained, held_out, &held_out_data, 1.2).log_p();
    assert_eq!(valid.tactics, log_p.len());
    assert!((valid.ce + log_p.iter().sum::<f64>() / log_p.len() as f64).abs() < 1e-9);
    let every = Recipe { validate_every: 5, ..recipe };
    let run = Run::new(folder.path(), "often", &GO).validating(Some(&held_out_data));
    train(&mut model(&tokenizer), &data, &objective, &every, &run).unwrap();
    let lines = metrics(&run.metrics());
    let measured: Vec<usize> = lines.iter().filter(|l| l.valid.is_some()).map(|l| l.step).collect();
    let steps = lines[0].steps;
    let mut wanted: Vec<usize> = (1..=steps).filter(|s| s % 5 == 0 || *s == steps).collect();
    wanted.dedup();
    assert_eq!(measured, wanted);
}

/// Tactics that nobody could foresee: what is known of them was learned by heart.
fn arbitrary(n: usize) -> Vec<Trace> {
    let symbols = ["ph", "ps", "ch", "th", "ta", "et", "ze", "si"];
    let mut all = traces(n);
    for (i, trace) in all.iter_mut().enumerate() {
        let stream = Stream::new(3).child(i as u64);
        let symbol = |s: u64| symbols[(stream.uniform(s) * 8.0) as usize];
        trace.steps.truncate(1);
        trace.steps[0].state = (1..6).map(symbol).collect::<Vec<_>>().join(" ");
        trace.steps[0].tactic = format!("take {}", symbol(0));
    }
    all
}

#[test]
fn mapped_and_cross_fitted_probabilities_are_like_held_out_ones() {
    let all = arbitrary(240);
    let tokenizer = tokenizer(&all);
    let (held_out, traces) = all.split_at(120);
    let folder = tempfile::tempdir().unwrap();
    let mut warm = Recipe { epochs: 150, log_every: 1000, ..recipe() };
    (warm.optimizer.lr, warm.batch.examples, warm.checkpoints.every) = (5e-3, 16, 0);
    let ce = Surrogate::new(Objective::Ce, 0);
    let learn = |name: &str, traces: &[Trace]| {
        let mut model = model(&tokenizer);
        let run = Run::new(folder.path(), name, &GO);
        train(&mut model, &data(&tokenizer, traces), &ce, &warm, &run).unwrap();
        model
    };
    let judge = |model: &Model<Cpu>, traces: &[Trace]| {
        scores(model, traces, &data(&tokenizer, traces), 0.8)
    };
    let model = learn("warm-up", traces);
    let [training, held_out] = [traces, held_out].map(|traces| judge(&model, traces));
    let fold_of = folds(traces, 2, 42, |trace| trace.theorem.name.clone()).unwrap();
    let mut crossed = Scores::default();
    for fold in 0..2 {
        let part = |inside: bool| -> Vec<Trace> {
            let kept = traces.iter().zip(&fold_of).filter(|(_, f)| (**f == fold) == inside);
            kept.map(|(trace, _)| trace.clone()).collect()
        };
        let model = learn(&format!("fold-{fold}"), &part(false));
        crossed.extend(judge(&model, &part(true)));
    }
    assert_eq!(crossed.len(), traces.len(), "every trace has its judge");
    let mapped = mapped(&training, &held_out).unwrap();
    for (way, used) in [(Probabilities::Mapped, mapped), (Probabilities::CrossFitted, crossed)] {
        let reading = Reading::new(way, 0.8, [&training, &held_out, &used]);
        assert!(
            reading.training_distance > 0.1
                && reading.used_distance < 0.5 * reading.training_distance,
            "{reading:#?}"
        );
    }
}
