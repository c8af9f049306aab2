//! Sampling without replacement: exactly the model's distribution over what has not been drawn, and
//! the same answers whatever else is in flight.

use std::collections::{HashMap, HashSet};

use crate::tactics::{PLAIN, STATES, TACTICS, answers, generator, score};
use catamount_model::{Cpu, Generator, Sampling};
use catamount_search::{Policy, Request, Sample, Stream, Urn};

fn ask(g: &mut Generator<Cpu>, urn: &Urn, samples: usize) -> Vec<Sample> {
    let (state, stream) = ("|- ph".to_string(), Stream::new(4));
    g.submit(Request { id: 1, state, samples, stream, urn: Some(urn.clone()) });
    answers(g).remove(&1).unwrap()
}

#[test]
fn ordered_pairs_follow_the_model() {
    let mut generator = generator(256, 16_000, PLAIN);
    let trials = 5000;
    for id in 0..trials {
        let (state, stream) = ("|- ph".to_string(), Stream::new(6).child(id));
        generator.submit(Request { id, state, samples: 2, stream, urn: Some(Urn::default()) });
    }
    let mut counts: HashMap<[String; 2], f64> = HashMap::new();
    for (_, samples) in answers(&mut generator) {
        let [a, b] = [0, 1].map(|i: usize| samples[i].tactic.clone());
        assert_ne!(a, b);
        *counts.entry([a, b]).or_default() += 1.0;
    }
    let (model, tokenizer) = generator.into_parts();
    let all = TACTICS.map(|tactic| score(&model, &tokenizer, "|- ph", tactic).exp());
    // Chi-square over the ordered pairs; all others are one more class.
    let (mut chi, mut classes) = (0.0, 0.0f64);
    let mut rest = (trials as f64, trials as f64);
    for (a, p) in TACTICS.iter().zip(all) {
        for (b, q) in TACTICS.iter().zip(all) {
            let expected = trials as f64 * p * q / (1.0 - p);
            if a == b || expected < 10.0 {
                continue;
            }
            let observed = counts.get(&[a.to_string(), b.to_string()]).copied().unwrap_or(0.0);
            chi += (observed - expected).powi(2) / expected;
            classes += 1.0;
            rest = (rest.0 - expected, rest.1 - observed);
        }
    }
    assert!(classes >= 15.0 && rest.0 > 10.0, "{classes} pairs, {} others", rest.0);
    chi += (rest.1 - rest.0).powi(2) / rest.0;
    // Within 3.1 standard deviations; the seed is fixed.
    assert!(chi < classes + 3.1 * (2.0 * classes).sqrt(), "chi-square {chi}, {classes} pairs");
}

#[test]
fn a_node_goes_on_where_it_was() {
    let mut generator = generator(16, 4000, Sampling { temperature: 0.7, top_p: 1.0 });
    let whole = ask(&mut generator, &Urn::default(), 200);
    let texts: HashSet<&str> = whole.iter().map(|s| s.tactic.trim()).collect();
    assert_eq!((whole.len(), texts.len()), (200, 200));
    let urn = Urn::default();
    let mut left = 1.0;
    for start in (0..200).step_by(40) {
        assert_eq!(ask(&mut generator, &urn, 40)[..], whole[start..start + 40]);
        assert!(urn.left() < left && urn.left() > 0.0, "{} left of {left}", urn.left());
        left = urn.left();
        // What is left is what was not taken.
        assert!((1.0 - urn.taken() - left).abs() < 1e-4, "{} taken, {left} left", urn.taken());
    }
    assert_eq!(urn.share(&whole[3].tactic), urn.share(&format!(" {}\n", whole[3].tactic.trim())));
}

#[test]
fn distinct_samples_do_not_depend_on_their_company() {
    let sampling = Sampling { temperature: 0.9, top_p: 0.95 };
    let requests = || {
        (0..24u64).map(|id| Request {
            id,
            state: STATES[id as usize % 4].repeat(1 + id as usize % 3),
            samples: 1 + (id as usize * 7) % 9,
            stream: Stream::new(5).child(id),
            // Some with an urn and some without, in the same batch.
            urn: (id % 3 > 0).then(Urn::default),
        })
    };
    let mut wide = generator(64, 4000, sampling);
    requests().for_each(|r| wide.submit(r));
    let together = answers(&mut wide);
    assert_eq!(together.len(), 24);
    let (mut narrow, mut tight) = (generator(1, 4000, sampling), generator(5, 56, sampling));
    for request in requests() {
        let id = request.id;
        let again =
            Request { urn: request.urn.as_ref().map(|_| Urn::default()), ..request.clone() };
        narrow.submit(request);
        assert_eq!(answers(&mut narrow)[&id], together[&id]);
        tight.submit(again);
    }
    assert_eq!(answers(&mut tight), together);
}

#[test]
fn log_p_is_still_the_models_own() {
    let mut generator = generator(16, 4000, Sampling { temperature: 1.3, top_p: 0.9 });
    let samples = ask(&mut generator, &Urn::default(), 40);
    let (model, tokenizer) = generator.into_parts();
    let mut compared = 0;
    for sample in samples {
        if tokenizer.tactic(&sample.tactic).unwrap().len() == sample.tokens {
            let log_p = score(&model, &tokenizer, "|- ph", &sample.tactic);
            assert!((log_p - sample.log_p).abs() < 1e-3, "{} and {log_p}", sample.log_p);
            compared += 1;
        }
    }
    assert!(compared >= 6, "only {compared} of 40 samples could be compared");
}

#[test]
fn an_urn_that_is_drawn_out_says_so() {
    // A narrow distribution has few tactics; at temperature 0 it has one.
    for (temperature, top_p, most) in [(0.5, 0.3, 400), (0.0, 1.0, 1)] {
        let mut generator = generator(16, 4000, Sampling { temperature, top_p });
        let urn = Urn::default();
        let all = ask(&mut generator, &urn, 1000);
        assert!(!all.is_empty() && all.len() <= most, "{} tactics", all.len());
        assert_eq!(urn.left(), 0.0);
        assert_eq!(ask(&mut generator, &urn, 4), []);
        let texts: HashSet<&str> = all.iter().map(|s| s.tactic.trim()).collect();
        assert_eq!(texts.len(), all.len());
        // Every tactic that plain sampling gives is among them.
        generator.submit(Request {
            id: 2,
            state: "|- ph".into(),
            samples: 300,
            stream: Stream::new(12),
            urn: None,
        });
        for sample in &answers(&mut generator)[&2] {
            assert!(texts.contains(sample.tactic.trim()), "{:?} is missing", sample.tactic);
        }
    }
}
