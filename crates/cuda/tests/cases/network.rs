//! Whole passes: training an adapter, and recorded operations.

use std::sync::Arc;

use catamount_model::{
    Activations, AdamW, Adapter, Affine, Backend, Batch, Config, Heads, Keep, Kind, Lora,
    LoraConfig, Model, Norm, Normed, Shape,
};
use catamount_search::Stream;

use super::{Bench, Results, random};

/// Three optimizer steps on an adapter of a small Qwen2-like model: losses, gradients and the
/// adapter afterwards.
pub fn adapter_training<B: Backend>(b: Arc<B>, keep: Keep) -> Results {
    training(b, keep, false)
}

/// The same, with the base's products in fp8 or as the backend computes everything.
pub fn training<B: Backend>(b: Arc<B>, keep: Keep, fp8: bool) -> Results {
    let mut config = Config::small(211, 256, 3, 256);
    config.heads = Heads { heads: 4, kv_heads: 2, dim: 64 };
    config.qkv_bias = true;
    let mut model = Model::zeros(b.clone(), config, false).unwrap();
    for (i, p) in model.base_mut().enumerate() {
        let norm = p.name.contains("norm");
        let values: Vec<f32> = random(p.len(), i as u64)
            .iter()
            .map(|x| if norm { 1.0 + 0.1 * x } else { 0.08 * x })
            .collect();
        b.upload(&values, &mut p.value, 0).unwrap();
    }
    if fp8 {
        model.use_fp8().unwrap();
    }
    let lora = LoraConfig { rank: 16, alpha: 32.0, dropout: 0.1, ..LoraConfig::default() };
    let mut adapter = Adapter::new(&*b, &model.config, lora, true, Stream::new(5)).unwrap();
    for (i, p) in adapter.parameters_mut().enumerate() {
        if p.name.ends_with("lora_B") {
            let values: Vec<f32> =
                random(p.len(), 100 + i as u64).iter().map(|x| 0.05 * x).collect();
            b.upload(&values, &mut p.value, 0).unwrap();
        }
    }
    model.swap_adapter(Some(adapter));
    let mut batch = Batch::new();
    for (i, len) in [20usize, 130, 1, 64].into_iter().enumerate() {
        let tokens: Vec<u32> = super::random_indices(len + 9, 211, i as u64);
        batch.push(&tokens[..len], &tokens[len..]);
    }
    let mut acts = Activations::new(&model, 300, keep).unwrap();
    let mut moments: Vec<[B::Tensor; 2]> =
        model.trained().map(|p| [0, 1].map(|_| b.zeros(p.len(), Kind::Exact).unwrap())).collect();
    let mut bench = Bench::new(&*b);
    for step in 1..4 {
        model.clear_gradients().unwrap();
        model.forward(&batch, &mut acts, Some(step)).unwrap();
        let log_p = model.score(&mut acts).unwrap();
        let coefficients: Vec<f32> = random(log_p.len(), step).iter().map(|c| -(1.1 + c)).collect();
        model.backward(&mut acts, &coefficients).unwrap();
        bench.results.push((format!("step {step} log_p"), log_p));
        let norm = model.gradient_norm().unwrap();
        bench.results.push((format!("step {step} gradient norm"), vec![norm as f32]));
        if step == 1 {
            for p in model.trained() {
                bench.keep(format!("gradient of {}", p.name), p.grad.as_ref().unwrap());
            }
        }
        let adamw = AdamW {
            lr: 1e-3,
            beta1: 0.9,
            beta2: 0.999,
            eps: 1e-6,
            weight_decay: 0.0,
            step,
            grad_scale: 1.0 / norm as f32,
        };
        let parameters = model.trained_mut().zip(&mut moments);
        let mut updates: Vec<_> = parameters.filter_map(|(p, moments)| p.update(moments)).collect();
        b.adamw(&adamw, &mut updates).unwrap();
    }
    for p in model.trained() {
        bench.keep(format!("{} after three steps", p.name), &p.value);
    }
    bench.results
}

/// The same operations run directly and through a recording, with inputs that change in between;
/// then with other buffers under the same key. The base's product may be in fp8.
pub fn recording<B: Backend>(b: &B, fp8: bool) {
    let bench = Bench::new(b);
    let (n, d, key) = (16, 128, 41);
    let whole = 0..d;
    for life in 0..2u64 {
        let mut weight = bench.frozen(d * d, 1 + life);
        let scale = bench.frozen(d, 2);
        let norm = Norm { d, eps: 1e-5, weight: &scale };
        let shape = Shape { outputs: d, inputs: d };
        if fp8 {
            b.round_to_fp8(shape, &mut weight).unwrap();
        }
        let map = Affine { shape, weight: &weight, bias: None, fp8 };
        let (a, narrow) = (
            bench.tensor(&random(16 * d, 4), Kind::Trained),
            bench.tensor(&random(16 * d, 5), Kind::Trained),
        );
        let mut t = bench.output(n * 16, Kind::Activation);
        let mut x = bench.activation(n * d, 3);
        let mut delta = bench.output(n * d, Kind::Activation);
        let mut sum = bench.output(n * d, Kind::Activation);
        let mut buffers =
            [(); 2].map(|()| (bench.output(n * d, Kind::Activation), bench.output(n, Kind::Exact)));
        let mut out = bench.output(n * d, Kind::Activation);
        for round in 0..5u64 {
            b.upload(&random(n * d, 10 + round), &mut x, 0).unwrap();
            let lora = Lora {
                a: &a,
                b: &narrow,
                rank: 16,
                scale: 0.5,
                inputs: d,
                outputs: d,
                parts: std::slice::from_ref(&whole),
                dropout: None,
            };
            // An adapter works beside its linear map: what it adds must not be lost, nor come too
            // late.
            let mut run = |(h, rstd): &mut (B::Tensor, B::Tensor), out: &mut B::Tensor| {
                b.rms_norm(n, norm, &x, Normed { rstd, out: h })?;
                b.linear(n, map, h, &mut delta)?;
                b.lora(n, &lora, h, &mut t, &mut delta)?;
                b.add_rms_norm(n, norm, &x, &delta, &mut sum, Normed { rstd, out: h })?;
                b.linear(n, map, h, out)
            };
            let [direct, recorded] = &mut buffers;
            run(direct, &mut out).unwrap();
            let expected = bench.host(&out);
            b.clear(n * d, &mut out).unwrap();
            b.replay(key, &mut || run(recorded, &mut out)).unwrap();
            assert_eq!(bench.host(&out), expected, "life {life}, round {round}");
        }
    }
}
