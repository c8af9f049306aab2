//! Sampling: the right distribution, and the same answers whatever else is in flight.

use std::collections::HashMap;
use std::sync::Arc;

use catamount_model::{
    Activations, Adapter, Backend, Batch, Config, Cpu, Generator, GeneratorConfig, Keep, LoraConfig, Model, Sampling, Tokenizer,
};
use catamount_search::{Policy, Request, Sample, Stream};

fn tokenizer() -> Tokenizer {
    Tokenizer::train_symbols(["|- ( ph -> ps )", "|- ph", "mp2 ax-1 syl"].iter(), 280).unwrap()
}

/// A model with opinions: weights large enough that probabilities are far from uniform.
fn model(tokenizer: &Tokenizer, seed: u64) -> Model<Cpu> {
    let mut config = Config::small(tokenizer.vocab(), 32, 2, 96);
    config.heads = catamount_model::Heads { heads: 4, kv_heads: 2, dim: 8 };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(seed)).unwrap();
    for p in model.base_mut().filter(|p| p.shape[0] > 1) {
        let larger: Vec<f32> = p.to_host(&Cpu).unwrap().iter().map(|x| x * 12.0).collect();
        Cpu.upload(&larger, &mut p.value, 0).unwrap();
    }
    model
}

fn generator(batch: usize, cache: usize, sampling: Sampling) -> Generator<Cpu> {
    let tokenizer = tokenizer();
    let config = GeneratorConfig { sampling, max_tokens: 8, max_prompt: 40, batch, cache };
    Generator::new(model(&tokenizer, 3), tokenizer, config, "test").unwrap()
}

const PLAIN: Sampling = Sampling { temperature: 1.0, top_p: 1.0 };

fn requests(n: u64) -> Vec<Request> {
    let states = ["|- ph", "|- ( ph -> ps )", "|- ( ps -> ( ph -> ps ) )", ""];
    let request = |id: u64| Request {
        id,
        state: states[id as usize % 4].repeat(1 + id as usize % 3),
        samples: 1 + (id as usize * 7) % 5,
        stream: Stream::new(5).child(id),
    };
    (0..n).map(request).collect()
}

fn answers(generator: &mut Generator<Cpu>) -> HashMap<u64, Vec<Sample>> {
    let mut all = HashMap::new();
    loop {
        let some = generator.poll();
        if some.is_empty() {
            return all;
        }
        all.extend(some.into_iter().map(|(id, answer)| (id, answer.unwrap())));
    }
}

#[test]
fn a_sample_does_not_depend_on_its_company() {
    let sampling = Sampling { temperature: 0.9, top_p: 0.95 };
    // All at once in a wide batch; one at a time; with a cache so small that prompts are dropped and computed again.
    let mut wide = generator(64, 4000, sampling);
    requests(24).into_iter().for_each(|r| wide.submit(r));
    let together = answers(&mut wide);
    assert_eq!(together.len(), 24);
    let mut narrow = generator(1, 4000, sampling);
    let mut tight = generator(5, 56, sampling);
    for request in requests(24) {
        let id = request.id;
        assert_eq!(together[&id].len(), request.samples);
        narrow.submit(request.clone());
        assert_eq!(answers(&mut narrow)[&id], together[&id]);
        tight.submit(request);
    }
    assert_eq!(answers(&mut tight), together);
    let distinct: std::collections::HashSet<&str> = together.values().flatten().map(|s| s.tactic.as_str()).collect();
    assert!(distinct.len() > 10, "the samples hardly differ");
}

#[test]
fn fewer_samples_are_a_prefix() {
    let mut generator = generator(16, 4000, PLAIN);
    let ask = |g: &mut Generator<Cpu>, samples| {
        g.submit(Request { id: 1, state: "|- ph".into(), samples, stream: Stream::new(4) });
        answers(g).remove(&1).unwrap()
    };
    let many = ask(&mut generator, 9);
    assert_eq!(ask(&mut generator, 4)[..], many[..4]);
}

#[test]
fn log_p_is_what_scoring_says() {
    let mut generator = generator(16, 4000, Sampling { temperature: 0.7, top_p: 0.9 });
    generator.submit(Request { id: 1, state: "|- ( ph -> ps )".into(), samples: 12, stream: Stream::new(8) });
    let samples = answers(&mut generator).remove(&1).unwrap();
    let (model, tokenizer) = generator.into_parts();
    let prompt = tokenizer.prompt("|- ( ph -> ps )").unwrap();
    let mut compared = 0;
    for sample in samples {
        let tokens = tokenizer.tactic(&sample.tactic).unwrap();
        // A tactic cut at the limit has no end token, and bytes that do not form text cannot be encoded again.
        if tokens.len() != sample.tokens {
            continue;
        }
        let mut batch = Batch::new();
        batch.push(&prompt, &tokens);
        let mut acts = Activations::new(&model, batch.len(), Keep::Nothing).unwrap();
        model.forward(&batch, &mut acts, None).unwrap();
        let log_p: f64 = model.score(&mut acts).unwrap().iter().map(|x| f64::from(*x)).sum();
        assert!((log_p - sample.log_p).abs() < 1e-3, "{} sampled, {log_p} scored", sample.log_p);
        compared += 1;
    }
    assert!(compared > 0, "no sample could be compared");
}

#[test]
fn frequencies_follow_the_model() {
    let mut generator = generator(256, 16_000, PLAIN);
    let draws = 6000;
    generator.submit(Request { id: 1, state: "|- ph".into(), samples: draws, stream: Stream::new(77) });
    let samples = answers(&mut generator).remove(&1).unwrap();
    let (model, tokenizer) = generator.into_parts();
    // The whole tactics that are likely enough to count, with their exact probabilities; all others together.
    let mut counts: HashMap<String, (f64, f64)> = HashMap::new();
    for s in &samples {
        counts.entry(s.tactic.clone()).or_insert((s.log_p.exp(), 0.0)).1 += 1.0;
    }
    let prompt = tokenizer.prompt("|- ph").unwrap();
    let mut batch = Batch::new();
    batch.push(&prompt, &[tokenizer.end()]);
    let mut acts = Activations::new(&model, batch.len(), Keep::Nothing).unwrap();
    model.forward(&batch, &mut acts, None).unwrap();
    let logits = model.logits(&acts).unwrap();
    // Chi-square over first tokens: exact probabilities from the logits, observed counts from the samples.
    let top = logits.iter().copied().fold(f32::MIN, f32::max);
    let z: f64 = logits.iter().map(|l| f64::from(l - top).exp()).sum();
    let p: Vec<f64> = logits.iter().map(|l| f64::from(l - top).exp() / z).collect();
    let mut observed = vec![0.0; p.len()];
    for s in &samples {
        let tokens = tokenizer.tactic(&s.tactic).unwrap();
        // Undecodable bytes are replaced in the text; they are pooled with the rare tokens below.
        if !s.tactic.contains('\u{fffd}') {
            observed[tokens[0] as usize] += 1.0;
        }
    }
    let likely: Vec<usize> = (0..p.len()).filter(|&t| p[t] * draws as f64 > 20.0 && t < 130).collect();
    assert!(likely.len() >= 4, "too few likely first tokens for a test: {}", likely.len());
    let (mut chi, mut rest_p, mut rest_n) = (0.0, 1.0, draws as f64);
    for &t in &likely {
        let expected = p[t] * draws as f64;
        chi += (observed[t] - expected).powi(2) / expected;
        rest_p -= p[t];
        rest_n -= observed[t];
    }
    chi += (rest_n - rest_p * draws as f64).powi(2) / (rest_p * draws as f64).max(1e-9);
    // Mean k and variance 2k: five deviations above is far beyond chance, and the seed is fixed.
    let k = likely.len() as f64;
    assert!(chi < k + 5.0 * (2.0 * k).sqrt(), "chi-square {chi} with {k} degrees of freedom");
    // And whole tactics: the likely ones occur as often as their log p says.
    for (tactic, (p, n)) in counts.into_iter().filter(|(_, (p, _))| *p > 0.01) {
        let (mean, deviation) = (p * draws as f64, (p * (1.0 - p) * draws as f64).sqrt());
        assert!((n - mean).abs() < 5.0 * deviation, "{tactic:?}: {n} times, expected {mean}");
    }
}

#[test]
fn adapters_switch_without_reloading() {
    let mut g = generator(16, 4000, PLAIN);
    let ask = |g: &mut Generator<Cpu>| {
        requests(6).into_iter().for_each(|r| g.submit(r));
        answers(g)
    };
    let base = ask(&mut g);
    let mut adapter =
        Adapter::new(&Cpu, &g.model().config, LoraConfig { rank: 2, ..LoraConfig::default() }, false, Stream::new(1)).unwrap();
    for p in adapter.parameters_mut().filter(|p| p.name.ends_with("lora_B")) {
        Cpu.upload(&vec![0.3; p.len()], &mut p.value, 0).unwrap();
    }
    assert!(g.swap_adapter(Some(adapter), "adapted").unwrap().is_none());
    let adapted = ask(&mut g);
    assert_ne!(base, adapted);
    assert!(g.describe().contains("adapted"));
    let adapter = g.swap_adapter(None, "base").unwrap();
    assert_eq!(ask(&mut g), base);
    g.submit(requests(1).remove(0));
    assert!(g.swap_adapter(adapter, "too early").is_err());
}

#[test]
fn bad_questions_get_faults_and_good_ones_answers() {
    let mut g = generator(4, 4000, PLAIN);
    let stream = Stream::new(1);
    g.submit(Request { id: 1, state: "x".repeat(500), samples: 2, stream });
    g.submit(Request { id: 2, state: "|- ph".into(), samples: 2, stream });
    g.submit(Request { id: 3, state: "|- ph".into(), samples: 0, stream });
    let mut all: HashMap<_, _> = HashMap::new();
    loop {
        let some = g.poll();
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    assert!(all[&1].as_ref().unwrap_err().0.contains("501 tokens"));
    assert_eq!((all[&2].as_ref().unwrap().len(), all[&3].as_ref().unwrap().len()), (2, 0));
    let tokenizer = tokenizer();
    for config in [
        GeneratorConfig { cache: 100, ..GeneratorConfig::default() },
        GeneratorConfig { sampling: Sampling { temperature: f32::NAN, top_p: 1.0 }, ..GeneratorConfig::default() },
        GeneratorConfig { max_tokens: 96, ..GeneratorConfig::default() },
    ] {
        assert!(Generator::new(model(&tokenizer, 1), tokenizer.clone(), config, "").is_err());
    }
}
