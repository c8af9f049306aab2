//! Sampling: the right distribution, and the same answers whatever else is in flight.

use std::collections::HashMap;

use crate::tactics::{PLAIN, STATES, TACTICS, answers, generator, model, score, tokenizer};
use catamount_model::{Adapter, Cpu, Generator, GeneratorConfig, LoraConfig, Memory, Sampling};
use catamount_search::{Policy, Request, Stream};

fn requests(n: u64) -> Vec<Request> {
    let request = |id: u64| Request {
        id,
        state: STATES[id as usize % 4].repeat(1 + id as usize % 3),
        samples: 1 + (id as usize * 7) % 5,
        stream: Stream::new(5).child(id),
        urn: None,
    };
    (0..n).map(request).collect()
}

#[test]
fn a_sample_does_not_depend_on_its_company() {
    let sampling = Sampling { temperature: 0.9, top_p: 0.95 };
    // All at once in a wide batch; one at a time; with a cache so small that prompts are dropped
    // and computed again.
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
    let distinct: std::collections::HashSet<&str> =
        together.values().flatten().map(|s| s.tactic.as_str()).collect();
    assert!(distinct.len() > 10, "the samples hardly differ");
}

#[test]
fn fewer_samples_are_a_prefix() {
    let mut generator = generator(16, 4000, PLAIN);
    let ask = |g: &mut Generator<Cpu>, samples| {
        g.submit(Request {
            id: 1,
            state: "|- ph".into(),
            samples,
            stream: Stream::new(4),
            urn: None,
        });
        answers(g).remove(&1).unwrap()
    };
    let many = ask(&mut generator, 9);
    assert_eq!(ask(&mut generator, 4)[..], many[..4]);
}

#[test]
fn log_p_is_what_scoring_says() {
    let mut generator = generator(16, 4000, Sampling { temperature: 0.7, top_p: 0.9 });
    generator.submit(Request {
        id: 1,
        state: "|- ( ph -> ps )".into(),
        samples: 12,
        stream: Stream::new(8),
        urn: None,
    });
    let samples = answers(&mut generator).remove(&1).unwrap();
    let (model, tokenizer) = generator.into_parts();
    let mut compared = 0;
    for sample in samples {
        // A tactic cut at the limit has no end token, and bytes that do not form text cannot be
        // encoded again.
        if tokenizer.tactic(&sample.tactic).unwrap().len() == sample.tokens {
            let log_p = score(&model, &tokenizer, "|- ( ph -> ps )", &sample.tactic);
            assert!(
                (log_p - sample.log_p).abs() < 1e-3,
                "{} sampled, {log_p} scored",
                sample.log_p
            );
            compared += 1;
        }
    }
    assert!(compared >= 6, "only {compared} of 12 samples could be compared");
}

#[test]
fn frequencies_follow_the_model() {
    let mut generator = generator(256, 16_000, PLAIN);
    let draws = 6000;
    generator.submit(Request {
        id: 1,
        state: "|- ph".into(),
        samples: draws,
        stream: Stream::new(77),
        urn: None,
    });
    let samples = answers(&mut generator).remove(&1).unwrap();
    let (model, tokenizer) = generator.into_parts();
    // Chi-square over whole tactics, their exact probabilities from scoring; everything else is one
    // more class.
    let (mut chi, mut rest_p, mut rest_n) = (0.0, 1.0, draws as f64);
    for tactic in TACTICS {
        let p = score(&model, &tokenizer, "|- ph", tactic).exp();
        let (expected, observed) =
            (p * draws as f64, samples.iter().filter(|s| s.tactic == tactic).count() as f64);
        assert!(expected > 20.0, "{tactic} is too rare for a test: {p}");
        chi += (observed - expected).powi(2) / expected;
        rest_p -= p;
        rest_n -= observed;
    }
    let expected = rest_p * draws as f64;
    assert!(expected > 20.0, "nothing else is ever drawn: {rest_p}");
    chi += (rest_n - expected).powi(2) / expected;
    // 22.46 is exceeded once in a thousand times with six degrees of freedom, and the seed is
    // fixed.
    assert!(chi < 22.46, "chi-square {chi}");
}

#[test]
fn adapters_switch_without_reloading() {
    let mut g = generator(16, 4000, PLAIN);
    let ask = |g: &mut Generator<Cpu>| {
        requests(6).into_iter().for_each(|r| g.submit(r));
        answers(g)
    };
    let base = ask(&mut g);
    let mut adapter = Adapter::new(
        &Cpu,
        &g.model().config,
        LoraConfig { rank: 2, ..LoraConfig::default() },
        false,
        Stream::new(1),
    )
    .unwrap();
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
fn every_question_gets_an_answer() {
    let mut g = generator(4, 4000, PLAIN);
    let stream = Stream::new(1);
    g.submit(Request { id: 1, state: "x".repeat(500), samples: 2, stream, urn: None });
    g.submit(Request { id: 2, state: "|- ph".into(), samples: 2, stream, urn: None });
    g.submit(Request { id: 3, state: "|- ph".into(), samples: 0, stream, urn: None });
    g.submit(Request { id: 4, state: "x".repeat(600), samples: 2, stream, urn: None });
    let mut all: HashMap<_, _> = HashMap::new();
    loop {
        let some = g.poll();
        if some.is_empty() {
            break;
        }
        all.extend(some);
    }
    // States that are too long lose their end, so these two are one question.
    assert_eq!(all[&1].as_ref().unwrap().len(), 2);
    assert_eq!(all[&1], all[&4]);
    assert_eq!((all[&2].as_ref().unwrap().len(), all[&3].as_ref().unwrap().len()), (2, 0));
    let tokenizer = tokenizer();
    for config in [
        GeneratorConfig { cache: 100, ..GeneratorConfig::default() },
        GeneratorConfig {
            sampling: Sampling { temperature: f32::NAN, top_p: 1.0 },
            ..GeneratorConfig::default()
        },
        GeneratorConfig { max_tokens: 96, ..GeneratorConfig::default() },
    ] {
        assert!(Generator::new(model(&tokenizer, 1), tokenizer.clone(), config, "").is_err());
    }
}

/// A model whose weights are damaged answers with faults: what it samples is nobody's tactic.
#[test]
fn weights_that_are_no_numbers_are_a_fault() {
    let tokenizer = tokenizer();
    let mut model = model(&tokenizer, 3);
    let weights = model.base_mut().last().unwrap();
    let damaged = vec![f32::NAN; weights.len()];
    Cpu.upload(&damaged, &mut weights.value, 0).unwrap();
    let config = GeneratorConfig { max_tokens: 8, max_prompt: 40, ..GeneratorConfig::default() };
    let mut generator = Generator::new(model, tokenizer, config, "damaged").unwrap();
    requests(4).into_iter().for_each(|request| generator.submit(request));
    let mut answered = 0;
    loop {
        let answers = generator.poll();
        if answers.is_empty() {
            break;
        }
        for (_, answer) in answers {
            answered += 1;
            assert!(answer.unwrap_err().0.contains("are its weights damaged?"));
        }
    }
    assert_eq!(answered, 4);
}
