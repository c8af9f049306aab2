//! Training and sampling speed on the processor: 6 layers, width 256, vocabulary 4096. Run beside `benches/torch_reference.py`.

use std::sync::Arc;
use std::time::Instant;

use catamount_model::{
    Activations, AdamW, Backend, Batch, Config, Cpu, Generator, GeneratorConfig, Keep, Kind, Model, Sampling, Tokenizer,
};
use catamount_search::{Policy, Request, Stream};

/// Seconds of processor time this process has used, where the system says so: on a busy machine, wall time measures the neighbours.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
    let ticks = |i: usize| fields.get(i).and_then(|f| f.parse::<f64>().ok()).unwrap_or(f64::NAN);
    (ticks(11) + ticks(12)) / 100.0
}

/// Calls `work` once to warm up, then `repeats` times; it returns how many tokens it handled.
fn measure(what: &str, repeats: usize, mut work: impl FnMut() -> usize) {
    work();
    let (start, processor) = (Instant::now(), processor_seconds());
    let mut tokens = 0;
    let mut rates: Vec<f64> = (0..repeats)
        .map(|_| {
            let start = Instant::now();
            let count = work();
            tokens += count;
            count as f64 / start.elapsed().as_secs_f64()
        })
        .collect();
    rates.sort_by(f64::total_cmp);
    let used = processor_seconds() - processor;
    let (rate, per_second, busy) = (rates[repeats / 2], tokens as f64 / used, used / start.elapsed().as_secs_f64());
    println!("{what} {rate:.0} tokens/s, {per_second:.0} per processor second, {busy:.2} cores busy");
}

fn main() {
    let config = Config { intermediate: 704, ..Config::small(4096, 256, 6, 512) };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(1)).expect("a model");
    println!("{}, {} parameters", Cpu.describe(), model.config.parameters());

    let token = |i: u64| (Stream::new(2).uniform(i) * 4096.0) as u32;
    let mut batch = Batch::new();
    for s in 0..8 {
        let tokens: Vec<u32> = (0..257).map(|i| token(s * 257 + i)).collect();
        batch.push(&tokens[..1], &tokens[1..]);
    }
    let mut acts = Activations::new(&model, batch.len(), Keep::All).expect("activations");
    let mut state: Vec<_> = model.trained().map(|p| [0, 1].map(|_| Cpu.zeros(p.len(), Kind::Exact).expect("memory"))).collect();
    let mut step = 0;
    measure("train", 5, || {
        step += 1;
        model.clear_gradients().expect("cpu");
        model.forward(&batch, &mut acts, None).expect("cpu");
        let log_p = model.score(&mut acts).expect("cpu");
        model.backward(&mut acts, &vec![-1.0 / log_p.len() as f32; log_p.len()]).expect("cpu");
        let adamw = AdamW { lr: 1e-4, beta1: 0.9, beta2: 0.999, eps: 1e-8, weight_decay: 0.01, step, grad_scale: 1.0 };
        for (p, [m, v]) in model.trained_mut().zip(&mut state) {
            let len = p.len();
            Cpu.adamw(len, &adamw, p.grad.as_ref().expect("trained"), m, v, &mut p.value).expect("cpu");
        }
        8 * 256
    });

    // 32 different states of about 64 tokens, one sample each, 64 tokens long: the end token has no chance to come early.
    let tokenizer = Tokenizer::train_bpe(["a b c d"].iter(), 258).expect("a tokenizer");
    let config = GeneratorConfig {
        sampling: Sampling { temperature: 1.0, top_p: 1.0 },
        max_tokens: 64,
        max_prompt: 512,
        batch: 32,
        cache: 8192,
    };
    let mut generator = Generator::new(model, tokenizer, config, "bench").expect("a generator");
    let mut round = 0u64;
    measure("sample", 3, || {
        for id in 0..32u64 {
            round += 1;
            let state: String = (0..63).map(|i| char::from(b'a' + (Stream::new(round).uniform(i) * 26.0) as u8)).collect();
            generator.submit(Request { id, state, samples: 1, stream: Stream::new(9).child(round) });
        }
        let (mut left, mut drawn) = (32, 0);
        while left > 0 {
            for (_, answer) in generator.poll() {
                drawn += answer.expect("an answer").iter().map(|s| s.tokens).sum::<usize>();
                left -= 1;
            }
        }
        drawn
    });
}
