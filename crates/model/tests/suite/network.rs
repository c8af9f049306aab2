//! The whole network: gradients, packing, recomputation, learning, counting.

use std::sync::Arc;

use catamount_model::{
    Activations, Adapter, Batch, Config, Cpu, Family, Heads, Keep, LoraConfig, Memory, Model,
    RopeScaling,
};
use catamount_search::Stream;

use crate::tactics::fit;

fn config(tied: bool) -> Config {
    Config {
        family: Family::Qwen2,
        vocab: 29,
        hidden: 24,
        intermediate: 40,
        layers: 2,
        heads: Heads { heads: 4, kv_heads: 2, dim: 6 },
        norm_eps: 1e-6,
        rope_theta: 10_000.0,
        rope_scaling: None,
        positions: 64,
        tied,
        qkv_bias: true,
        o_bias: false,
    }
}

/// Weights large enough that every path of the network matters.
fn model(tied: bool, seed: u64) -> Model<Cpu> {
    let mut model = Model::init(Arc::new(Cpu), config(tied), Stream::new(seed)).unwrap();
    for p in model.base_mut() {
        let (stream, centre) =
            (Stream::new(seed).named(&p.name), if p.name.contains("norm") { 1.0 } else { 0.0 });
        let values: Vec<f32> =
            (0..p.len() as u64).map(|i| centre + 0.5 * (stream.uniform(i) as f32 - 0.5)).collect();
        Cpu.upload(&values, &mut p.value, 0).unwrap();
    }
    model
}

fn lora(model: &mut Model<Cpu>, dropout: f32) {
    let config = LoraConfig { rank: 3, alpha: 6.0, dropout, ..LoraConfig::default() };
    let mut adapter = Adapter::new(&Cpu, &model.config, config, true, Stream::new(5)).unwrap();
    for p in adapter.parameters_mut().filter(|p| p.name.ends_with("lora_B")) {
        let values: Vec<f32> =
            (0..p.len() as u64).map(|i| 0.3 * (Stream::new(9).uniform(i) as f32 - 0.5)).collect();
        Cpu.upload(&values, &mut p.value, 0).unwrap();
    }
    model.swap_adapter(Some(adapter));
}

fn tokens(n: usize, seed: u64) -> Vec<u32> {
    (0..n as u64).map(|i| (Stream::new(seed).uniform(i) * 29.0) as u32).collect()
}

fn batch() -> Batch {
    let mut batch = Batch::new();
    batch.push(&tokens(9, 1), &tokens(4, 2));
    batch.push(&tokens(1, 3), &tokens(6, 4));
    batch.push(&tokens(17, 5), &tokens(2, 6));
    batch
}

fn scores(model: &Model<Cpu>, batch: &Batch, keep: Keep, dropout: Option<u64>) -> Vec<f32> {
    let mut acts = Activations::new(model, batch.len(), keep).unwrap();
    model.forward(batch, &mut acts, dropout).unwrap();
    model.score(&mut acts).unwrap()
}

fn gradients(
    model: &mut Model<Cpu>,
    batch: &Batch,
    keep: Keep,
    dropout: Option<u64>,
) -> Vec<(String, Vec<f32>)> {
    let mut acts = Activations::new(model, batch.len() + 5, keep).unwrap();
    model.clear_gradients().unwrap();
    model.forward(batch, &mut acts, dropout).unwrap();
    let n = model.score(&mut acts).unwrap().len();
    model.backward(&mut acts, &coefficients(n)).unwrap();
    let host = |g| {
        let mut out = vec![0.0; Cpu.len(g)];
        Cpu.download(g, 0, &mut out).unwrap();
        out
    };
    model.trained().map(|p| (p.name.clone(), host(p.grad.as_ref().unwrap()))).collect()
}

fn coefficients(n: usize) -> Vec<f32> {
    (0..n as u64).map(|i| 2.0 * Stream::new(8).uniform(i) as f32 - 1.0).collect()
}

/// Every trained parameter's gradient, along a random direction, against differences of the scores.
fn check_gradients(mut model: Model<Cpu>, dropout: Option<u64>) {
    let batch = batch();
    let grads = gradients(&mut model, &batch, Keep::All, dropout);
    let c = coefficients(batch.rows.len());
    for (name, grad) in grads {
        let direction: Vec<f32> = (0..grad.len() as u64)
            .map(|i| 2.0 * Stream::new(3).named(&name).uniform(i) as f32 - 1.0)
            .collect();
        let exact: f64 = grad.iter().zip(&direction).map(|(g, u)| f64::from(g * u)).sum();
        let step = 1e-3f32;
        let mut loss = |s: f32| -> f64 {
            let p = model.trained_mut().find(|p| p.name == name).unwrap();
            let old = p.to_host(&Cpu).unwrap();
            let moved: Vec<f32> = old.iter().zip(&direction).map(|(x, u)| x + s * u).collect();
            Cpu.upload(&moved, &mut p.value, 0).unwrap();
            let scores = scores(&model, &batch, Keep::Nothing, dropout);
            Cpu.upload(&old, &mut model.trained_mut().find(|p| p.name == name).unwrap().value, 0)
                .unwrap();
            scores.iter().zip(&c).map(|(s, c)| f64::from(*s) * f64::from(*c)).sum()
        };
        let numeric = (loss(step) - loss(-step)) / (2.0 * f64::from(step));
        let size = grad.iter().map(|g| f64::from(g * g)).sum::<f64>().sqrt();
        assert!(size > 1e-5, "{name} has no gradient");
        assert!(
            (numeric - exact).abs() < 0.02 * (exact.abs() + 0.3 * size) + 2e-3,
            "{name}: {exact} by hand, {numeric} by differences"
        );
    }
}

#[test]
fn full_gradients_untied() {
    check_gradients(model(false, 1), None);
}

#[test]
fn full_gradients_tied() {
    check_gradients(model(true, 2), None);
}

#[test]
fn lora_gradients_with_dropout() {
    let mut base = model(false, 1);
    base.base_mut().for_each(|p| p.grad = None);
    lora(&mut base, 0.2);
    assert_eq!(base.trained().count(), 2 * 4 * 2);
    check_gradients(base, Some(123));
}

#[test]
fn recomputing_changes_nothing() {
    let mut m = model(true, 4);
    lora(&mut m, 0.1);
    let batch = batch();
    assert_eq!(
        gradients(&mut m, &batch, Keep::All, Some(1)),
        gradients(&mut m, &batch, Keep::Inputs, Some(1))
    );
    assert_ne!(
        scores(&m, &batch, Keep::All, Some(1)),
        scores(&m, &batch, Keep::All, Some(2)),
        "dropout has no effect"
    );
}

#[test]
fn packed_equals_unpacked_bit_for_bit() {
    let (m, all) = (model(false, 7), batch());
    let together = scores(&m, &all, Keep::All, None);
    let mut apart = Vec::new();
    for (prompt, completion) in
        [(tokens(9, 1), tokens(4, 2)), (tokens(1, 3), tokens(6, 4)), (tokens(17, 5), tokens(2, 6))]
    {
        let mut one = Batch::new();
        one.push(&prompt, &completion);
        apart.extend(scores(&m, &one, Keep::Nothing, None));
    }
    assert_eq!(together, apart);
}

#[test]
fn a_batch_can_be_learned_by_heart() {
    let mut m = Model::init(Arc::new(Cpu), config(true), Stream::new(11)).unwrap();
    let losses = fit(&mut m, &batch(), 150, 0.01);
    assert!(losses[0] > 3.0 && losses[149] < 0.01, "from {} to {}", losses[0], losses[149]);
}

#[test]
fn the_seven_billion_shape_counts_as_in_the_paper() {
    let json = serde_json::json!({
        "model_type": "qwen2", "vocab_size": 152064, "hidden_size": 3584,
        "intermediate_size": 18944,
        "num_hidden_layers": 28, "num_attention_heads": 28, "num_key_value_heads": 4,
        "tie_word_embeddings": false,
    });
    let config = Config::from_json(&json).unwrap();
    let trainable = LoraConfig::default().parameters(&config);
    assert_eq!(trainable, 40_370_176);
    assert_eq!(config.parameters() + trainable, 7_655_986_688);
}

#[test]
fn counting_agrees_with_what_is_allocated() {
    let mut m = model(false, 1);
    assert_eq!(m.base().map(|p| p.len() as u64).sum::<u64>(), m.config.parameters());
    lora(&mut m, 0.0);
    let adapter = m.adapter.as_ref().unwrap();
    assert_eq!(
        adapter.parameters().map(|p| p.len() as u64).sum::<u64>(),
        adapter.config.parameters(&m.config)
    );
}

#[test]
fn configurations_survive_json() {
    let mut c = config(true);
    assert_eq!(Config::from_json(&c.to_json()).unwrap(), c);
    c.family = Family::Llama;
    c.qkv_bias = false;
    c.rope_scaling = Some(RopeScaling {
        factor: 8.0,
        low_freq_factor: 1.0,
        high_freq_factor: 4.0,
        original_positions: 8192.0,
    });
    assert_eq!(Config::from_json(&c.to_json()).unwrap(), c);
}

#[test]
fn what_cannot_be_run_is_refused_in_words() {
    let good = config(true).to_json();
    for (key, value, word) in [
        ("model_type", serde_json::json!("gpt2"), "gpt2"),
        ("num_key_value_heads", serde_json::json!(3), "do not divide"),
        ("hidden_size", serde_json::json!("x"), "hidden_size"),
        ("hidden_act", serde_json::json!("gelu"), "gelu"),
    ] {
        let mut bad = good.clone();
        bad[key] = value;
        let error = Config::from_json(&bad).unwrap_err().to_string();
        assert!(error.contains(word), "{error}");
    }
    let mut m = model(true, 1);
    let mut acts = Activations::new(&m, 8, Keep::Nothing).unwrap();
    let refused = |batch: &Batch, acts: &mut Activations<Cpu>| {
        m.forward(batch, acts, None).unwrap_err().to_string()
    };
    let mut wide = Batch::new();
    wide.push(&[1, 99], &[2]);
    assert!(refused(&wide, &mut acts).contains("token 99"));
    assert!(refused(&batch(), &mut acts).contains("1 to 8"));
    let mut fine = Batch::new();
    fine.push(&[1], &[2]);
    m.forward(&fine, &mut acts, None).unwrap();
    assert!(
        m.backward(&mut acts, &[1.0]).unwrap_err().to_string().contains("without a backward pass")
    );
}
