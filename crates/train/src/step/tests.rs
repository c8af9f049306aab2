//! The gradient that a step accumulates, against differentiating -log J itself through the whole
//! model.

use std::sync::Arc;

use catamount_model::{Adapter, Config, Cpu, Family, Heads, LoraConfig, Memory};
use catamount_objective::{Objective, Prior, Surrogate};

use super::*;
use crate::{Batching, Example, Snapshot, Weighting};

fn model() -> Model<Cpu> {
    let config = Config {
        family: Family::Qwen2,
        vocab: 23,
        hidden: 16,
        intermediate: 24,
        layers: 2,
        heads: Heads { heads: 2, kv_heads: 1, dim: 8 },
        norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        positions: 32,
        tied: false,
        qkv_bias: true,
        o_bias: false,
    };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(1)).unwrap();
    for p in model.base_mut() {
        let (stream, centre) =
            (Stream::new(2).named(&p.name), if p.name.contains("norm") { 1.0 } else { 0.0 });
        let values: Vec<f32> =
            (0..p.len() as u64).map(|i| centre + 0.6 * (stream.uniform(i) as f32 - 0.5)).collect();
        Cpu.upload(&values, &mut p.value, 0).unwrap();
    }
    model
}

/// Traces of 3, 1 and 5 short tactics: probabilities far from 0 and from 1.
fn data() -> Dataset {
    let tokens = |n: usize, stream: Stream| {
        (0..n as u64).map(|i| (stream.uniform(i) * 23.0) as u32).collect::<Vec<u32>>()
    };
    let traces = [3, 1, 5].into_iter().enumerate().map(|(t, length)| {
        let example = |s: usize| {
            let stream = Stream::new(7).child((10 * t + s) as u64);
            Example {
                prompt: tokens(3 + s, stream),
                tactic: tokens(1 + s % 2, stream.named("tactic")),
            }
        };
        (0..length).map(example).collect()
    });
    Dataset::new(traces, 20).unwrap()
}

fn recipe(tokens: usize) -> Recipe {
    Recipe {
        max_tokens: 20,
        batch: Batching { examples: 64, tokens, recompute: false },
        ..Recipe::default()
    }
}

const DROPOUT: u64 = 77;

/// The accumulated gradient of every trained parameter, before any update.
fn gradients(
    model: &mut Model<Cpu>,
    data: &Dataset,
    objective: &dyn Weigh,
    recipe: &Recipe,
) -> (Tally, Vec<Vec<f32>>) {
    let mut tally = Tally::default();
    let mut stepper = Stepper::new(model, data, objective, recipe).unwrap();
    let mut table = Table::new(data);
    let traces: Vec<u32> = (0..data.len() as u32).collect();
    let batches = pack(data, &traces, recipe.batch.tokens);
    if batches.iter().flatten().any(|p| !p.whole) {
        stepper.score(&traces, &mut table, &mut |_| true).unwrap();
    }
    for pieces in batches {
        stepper.accumulate(&pieces, &table, DROPOUT, &mut tally).unwrap();
    }
    let host = |p: &catamount_model::Parameter<Cpu>| {
        let mut out = vec![0.0; p.len()];
        Cpu.download(p.grad.as_ref().unwrap(), 0, &mut out).unwrap();
        out
    };
    let gradients = model.trained().map(host).collect();
    (tally, gradients)
}

/// The sum over traces of -log J, computed with nothing of this crate but its data.
fn minus_log_j(model: &Model<Cpu>, data: &Dataset, objective: &Surrogate, temperature: f64) -> f64 {
    let mut acts = Activations::new(model, 200, Keep::Nothing).unwrap();
    let mut total = 0.0;
    for trace in 0..data.len() {
        let mut batch = Batch::new();
        let ranges: Vec<_> = data.trace(trace).map(|e| data.push(e, &mut batch)).collect();
        model.forward(&batch, &mut acts, Some(DROPOUT)).unwrap();
        let tokens = model.score_at(&mut acts, temperature as f32).unwrap();
        let log_p: Vec<f64> =
            ranges.into_iter().map(|r| tokens[r].iter().map(|l| f64::from(*l)).sum()).collect();
        total -= objective.weigh(&log_p).unwrap().log_success;
    }
    total
}

/// Along a random direction of each parameter.
fn check(mut model: Model<Cpu>, objective: Surrogate, temperature: f64) {
    let (data, recipe) = (data(), Recipe { temperature, ..recipe(512) });
    let (tally, gradients) = gradients(&mut model, &data, &objective, &recipe);
    let total = minus_log_j(&model, &data, &objective, temperature);
    assert!(
        (tally.minus_log_j - total).abs() < 1e-4 * total.abs(),
        "{} and {total}",
        tally.minus_log_j
    );
    let names: Vec<String> = model.trained().map(|p| p.name.clone()).collect();
    for (i, gradient) in gradients.iter().enumerate() {
        let stream = Stream::new(3).named(&names[i]);
        let direction: Vec<f32> =
            (0..gradient.len() as u64).map(|j| 2.0 * stream.uniform(j) as f32 - 1.0).collect();
        let exact: f64 = gradient.iter().zip(&direction).map(|(g, u)| f64::from(g * u)).sum();
        let mut moved = |s: f32| {
            let p = model.trained_mut().nth(i).unwrap();
            let old = p.to_host(&Cpu).unwrap();
            let new: Vec<f32> = old.iter().zip(&direction).map(|(x, u)| x + s * u).collect();
            Cpu.upload(&new, &mut p.value, 0).unwrap();
            let value = minus_log_j(&model, &data, &objective, temperature);
            Cpu.upload(&old, &mut model.trained_mut().nth(i).unwrap().value, 0).unwrap();
            value
        };
        let h = 2e-3f32;
        let numeric = (moved(h) - moved(-h)) / (2.0 * f64::from(h));
        let size = gradient.iter().map(|g| f64::from(g * g)).sum::<f64>().sqrt();
        assert!(size > 1e-6, "{} has no gradient", names[i]);
        assert!(
            (numeric - exact).abs() < 0.02 * (exact.abs() + 0.3 * size) + 1e-3,
            "{} of {}: {exact} accumulated, {numeric} by differences",
            names[i],
            objective.describe()
        );
    }
}

#[test]
fn accumulated_gradients_are_those_of_minus_log_j() {
    for objective in Objective::ALL {
        // Dropout off: there is no adapter. The traces' probabilities are about 1/23 a token.
        check(model(), Surrogate::new(objective, 40), 1.0);
    }
    let prior = Prior::new(3.0, 0.05).unwrap();
    check(model(), Surrogate::new(Objective::Bfs, 60).with_prior(prior).unwrap(), 1.0);
}

#[test]
fn and_at_the_temperature_of_the_deployment() {
    for temperature in [0.7, 1.3] {
        for objective in [Objective::Ce, Objective::Bfs, Objective::Vdfs] {
            check(model(), Surrogate::new(objective, 40), temperature);
        }
    }
}

#[test]
fn adapters_with_dropout_too() {
    for objective in [Objective::Ce, Objective::Ua, Objective::Vdfs] {
        let mut model = model();
        model.base_mut().for_each(|p| p.grad = None);
        let config = LoraConfig { rank: 2, alpha: 4.0, dropout: 0.2, ..LoraConfig::default() };
        let mut adapter = Adapter::new(&Cpu, &model.config, config, true, Stream::new(5)).unwrap();
        for p in adapter.parameters_mut().filter(|p| p.name.ends_with("lora_B")) {
            let values: Vec<f32> = (0..p.len() as u64)
                .map(|i| 0.4 * (Stream::new(9).uniform(i) as f32 - 0.5))
                .collect();
            Cpu.upload(&values, &mut p.value, 0).unwrap();
        }
        model.swap_adapter(Some(adapter));
        check_one_trace_at_a_time(model, Surrogate::new(objective, 40));
    }
}

/// Dropout masks depend on a row's place in its batch, so each trace is its own data here.
fn check_one_trace_at_a_time(mut model: Model<Cpu>, objective: Surrogate) {
    let all = data();
    let examples = all.trace(2).map(|e| {
        let (prompt, tactic) = all.example(e);
        Example { prompt: prompt.to_vec(), tactic: tactic.to_vec() }
    });
    let data = Dataset::new([examples.collect()], 20).unwrap();
    let (_, gradients) = gradients(&mut model, &data, &objective, &recipe(512));
    let before = Snapshot::take(&model).unwrap();
    let size: f64 = gradients.iter().flatten().map(|g| f64::from(g * g)).sum::<f64>().sqrt();
    let mut moved = |s: f64| {
        for (p, gradient) in model.trained_mut().zip(&gradients) {
            let old = p.to_host(&Cpu).unwrap();
            let new: Vec<f32> = old
                .iter()
                .zip(gradient)
                .map(|(x, g)| x + (s * f64::from(*g) / size) as f32)
                .collect();
            Cpu.upload(&new, &mut p.value, 0).unwrap();
        }
        let value = minus_log_j(&model, &data, &objective, 1.0);
        before.restore(&mut model).unwrap();
        value
    };
    let numeric = (moved(2e-3) - moved(-2e-3)) / 4e-3;
    // Along the gradient itself the slope is the gradient's length.
    assert!(
        (numeric - size).abs() < 0.01 * size,
        "{}: {size} accumulated, {numeric} by differences",
        objective.describe()
    );
}

#[test]
fn cross_entropy_is_plain_cross_entropy() {
    let (mut model, data) = (model(), data());
    let (tally, weighted) =
        gradients(&mut model, &data, &Surrogate::new(Objective::Ce, 0), &recipe(512));
    assert_eq!((tally.weighted, tally.minus_log_j), (tally.ce, tally.ce));
    let mut batch = Batch::new();
    for e in 0..data.examples() {
        data.push(e, &mut batch);
    }
    let mut acts = Activations::new(&model, 512, Keep::All).unwrap();
    model.clear_gradients().unwrap();
    model.forward(&batch, &mut acts, None).unwrap();
    let tokens = model.score(&mut acts).unwrap();
    model.backward(&mut acts, &vec![-1.0; tokens.len()]).unwrap();
    for (p, weighted) in model.trained().zip(weighted) {
        let mut plain = vec![0.0; p.len()];
        Cpu.download(p.grad.as_ref().unwrap(), 0, &mut plain).unwrap();
        assert_eq!(plain, weighted, "{}", p.name);
    }
}

#[test]
fn a_trace_in_pieces_has_the_gradient_of_the_whole() {
    let (mut model, data) = (model(), data());
    for objective in [Objective::Bfs, Objective::Vdfs, Objective::Pass] {
        let objective = Surrogate::new(objective, 40);
        let (whole, gradient) = gradients(&mut model, &data, &objective, &recipe(512));
        // The trace of five tactics has more than twenty rows.
        let (torn, pieces) = gradients(&mut model, &data, &objective, &recipe(20));
        assert_eq!(
            (whole.weights, whole.traces, whole.log_p),
            (torn.weights, torn.traces, torn.log_p)
        );
        for (a, b) in gradient.iter().flatten().zip(pieces.iter().flatten()) {
            assert!((a - b).abs() < 1e-5 + 1e-4 * a.abs(), "{a} whole, {b} in pieces");
        }
    }
}

#[test]
fn bounds_and_normalisation_do_what_they_say() {
    let data = data();
    let objective = Surrogate::new(Objective::Bfs, 400);
    let step = |weighting: Weighting| {
        let (mut model, mut table) = (model(), Table::new(&data));
        let recipe = Recipe { weights: weighting, ..recipe(512) };
        let mut stepper = Stepper::new(&mut model, &data, &objective, &recipe).unwrap();
        stepper.step(0, 1, &[0, 1, 2], &mut table).unwrap()
    };
    let plain = step(Weighting { normalise: Normalise::Sum, ..Weighting::default() });
    assert_eq!(plain.loss, plain.weighted);
    let (low, high) = (
        plain.weights.iter().fold(f64::MAX, |a, b| a.min(*b)),
        plain.weights.iter().fold(0.0f64, |a, b| a.max(*b)),
    );
    assert!(low < high);
    let (min, max) = (low + 0.2 * (high - low), high - 0.2 * (high - low));
    let bounded = step(Weighting {
        min,
        max: Some(max),
        normalise: Normalise::Weights,
        ..Weighting::default()
    });
    for (a, b) in plain.weights.iter().zip(&bounded.weights) {
        assert_eq!(a.clamp(min, max), *b);
    }
    assert!((bounded.loss - bounded.weighted / bounded.weights.iter().sum::<f64>()).abs() < 1e-12);
    for (normalise, divisor) in [(Normalise::Tactics, 9), (Normalise::Tokens, plain.targets)] {
        let tally = step(Weighting { normalise, ..Weighting::default() });
        assert!((tally.loss - plain.loss / divisor as f64).abs() < 1e-12);
        assert!(
            (tally.grad_norm - plain.grad_norm / divisor as f64).abs() < 1e-6 * plain.grad_norm
        );
    }
}
