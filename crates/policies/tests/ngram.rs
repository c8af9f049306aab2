//! The fitted policy: a proper distribution, sampled as it says, the same for the same stream, and
//! better than frequencies.

use std::collections::{HashMap, HashSet};

use catamount_policies::{Ngram, Replay};
use catamount_search::{Policy, Request, Sample, Stream, Urn};
use catamount_traces::{Step, Theorem, Trace};

fn trace(name: &str, steps: &[(&str, &str)]) -> Trace {
    let step = |(state, tactic): &(&str, &str)| Step {
        state: (*state).into(),
        tactic: (*tactic).into(),
        ..Step::default()
    };
    Trace {
        theorem: Theorem { name: name.into(), ..Theorem::default() },
        steps: steps.iter().map(step).collect(),
    }
}

/// Implications, equations and orders over several names, each kind with its own tactics.
fn traces() -> Vec<Trace> {
    let names = ["A", "B", "C", "D", "F", "G", "S", "T"];
    let mut traces = Vec::new();
    for (n, (a, b)) in names
        .iter()
        .flat_map(|a| names.iter().map(move |b| (a, b)))
        .filter(|(a, b)| a != b)
        .enumerate()
    {
        let imp = format!("$e ( {a} -> {b} ) $p ( {a} -> ( {b} \\/ {a} ) )");
        let eq = format!("$p ( {a} + {b} ) = ( {b} + {a} )");
        let lt = format!("$p {a} < ( {b} + 1 )");
        let syl = format!("syl $ ps ( {b} \\/ {a} )");
        let trans = format!("lttr $ B {b}");
        let eq_tactic = if n % 3 == 0 { "addcom" } else { "eqcom" };
        traces.push(trace(&format!("t{n}"), &[(&imp, &syl), (&eq, eq_tactic), (&lt, &trans)]));
    }
    traces
}

fn ask(policy: &mut dyn Policy, state: &str, samples: usize, seed: u64) -> Vec<Sample> {
    policy.submit(Request {
        id: 1,
        state: state.into(),
        samples,
        stream: Stream::new(seed),
        urn: None,
    });
    policy.poll().remove(0).1.unwrap()
}

/// Draws often and compares frequencies with the reported probabilities, tempered.
fn assert_frequencies(temperature: f64, state: &str) {
    const DRAWS: usize = 40_000;
    let mut policy = Ngram::fit(&traces(), temperature).unwrap();
    let mut counts: HashMap<String, (usize, f64)> = HashMap::new();
    for sample in ask(&mut policy, state, DRAWS, 11) {
        assert!((policy_log_p(&policy, state, &sample.tactic) - sample.log_p).abs() < 1e-12);
        let entry = counts.entry(sample.tactic).or_insert((0, sample.log_p));
        entry.0 += 1;
        assert_eq!(entry.1, sample.log_p);
    }
    let weight: f64 = counts.values().map(|(_, log_p)| (log_p / temperature).exp()).sum();
    for (tactic, (count, log_p)) in &counts {
        let expected = (log_p / temperature).exp() / weight;
        let seen = *count as f64 / DRAWS as f64;
        // Six standard deviations.
        assert!(
            (seen - expected).abs() < 6.0 * (expected / DRAWS as f64).sqrt() + 2e-3,
            "{tactic}: {seen} {expected}"
        );
    }
    if temperature == 1.0 {
        // At this many draws all but the rarest tactics have come.
        assert!((weight - 1.0).abs() < 0.01, "{weight}");
    }
}

fn policy_log_p(policy: &Ngram, state: &str, tactic: &str) -> f64 {
    policy.log_p(state, tactic)
}

#[test]
fn samples_come_as_often_as_their_probability_says() {
    let state = "$e ( X -> Y ) $p ( X -> ( Y \\/ X ) )";
    for temperature in [0.5, 1.0, 1.7] {
        assert_frequencies(temperature, state);
    }
    assert_frequencies(1.0, "nothing like anything");
}

#[test]
fn probabilities_add_up_to_one() {
    let traces = traces();
    let policy = Ngram::fit(&traces, 1.0).unwrap();
    for state in ["$p X < ( Y + 1 )", "$p ( A + B ) = ( B + A )", "⊢ unseen", ""] {
        // All demonstrated tactics, and those that templates give here.
        let mut tactics: Vec<String> =
            traces.iter().flat_map(|t| t.steps.iter().map(|s| s.tactic.clone())).collect();
        tactics.extend(policy.top(state, usize::MAX).into_iter().map(|(tactic, _)| tactic));
        tactics.sort_unstable();
        tactics.dedup();
        let total: f64 = tactics.iter().map(|tactic| policy.log_p(state, tactic).exp()).sum();
        assert!((total - 1.0).abs() < 1e-9, "{state}: {total}");
    }
    assert_eq!(policy.log_p("$p X", "never seen"), f64::NEG_INFINITY);
}

#[test]
fn arguments_come_from_the_new_state() {
    let policy = Ngram::fit(&traces(), 1.0).unwrap();
    // Neither name occurs in the traces.
    let top = policy.top("$e ( X -> Y ) $p ( X -> ( Y \\/ X ) )", 1).remove(0);
    assert_eq!(top.0, "syl $ ps ( Y \\/ X )");
    assert!(top.1 > 0.5, "{top:?}");
    assert_eq!(policy.top("$p X < ( Y + 1 )", 1)[0].0, "lttr $ B Y");
    let other = policy.top("$p ( X + Y ) = ( Y + X )", 2);
    assert_eq!(
        (other[0].0.as_str(), other[1].0.as_str()),
        ("eqcom", "addcom"),
        "two to one in the traces"
    );
}

#[test]
fn held_out_steps_are_likelier_than_by_frequency() {
    let all = traces();
    let (held, rest) = all.split_at(12);
    let policy = Ngram::fit(rest, 1.0).unwrap();
    let steps: Vec<&Step> = rest.iter().flat_map(|t| &t.steps).collect();
    for step in held.iter().flat_map(|t| &t.steps) {
        let same = steps.iter().filter(|other| other.tactic == step.tactic).count();
        let frequency = (same as f64 + 0.5) / steps.len() as f64;
        let log_p = policy.log_p(&step.state, &step.tactic);
        assert!(log_p > frequency.ln(), "{step:?}: {log_p} {}", frequency.ln());
    }
}

#[test]
fn the_stream_alone_decides() {
    let states: Vec<String> =
        traces().iter().flat_map(|t| t.steps.iter().map(|s| s.state.clone())).take(50).collect();
    let mut together = Ngram::fit(&traces(), 1.0).unwrap();
    for (id, state) in states.iter().enumerate() {
        together.submit(Request {
            id: id as u64,
            state: state.clone(),
            samples: 8,
            stream: Stream::new(id as u64),
            urn: None,
        });
    }
    let mut answers = together.poll();
    assert!(together.poll().is_empty());
    answers.sort_by_key(|(id, _)| *id);
    // Another fit to the same traces, one question at a time, fewer samples, in another order.
    let mut apart = Ngram::fit(&traces(), 1.0).unwrap();
    for (id, state) in states.iter().enumerate().rev() {
        let samples = ask(&mut apart, state, 5, id as u64);
        assert_eq!(samples, answers[id].1.as_ref().unwrap()[..5]);
    }
}

#[test]
fn odd_states_and_traces_do_no_harm() {
    let odd = [
        "",
        "⊢",
        "((((",
        ")]}⟩",
        "$p $p $e",
        "|- |-",
        "\u{0}\u{fffd}",
        &"( ".repeat(20_000),
        &"x".repeat(100_000),
    ];
    let steps: Vec<(&str, &str)> = odd.iter().map(|state| (*state, ") ⟨ $ x")).collect();
    let mut policy = Ngram::fit(&[trace("a", &steps), trace("b", &[("s", " ")])], 1.0).unwrap();
    for state in odd {
        assert_eq!(ask(&mut policy, state, 3, 1).len(), 3);
    }
    assert!(Ngram::fit(&[], 1.0).is_err() && Ngram::fit(&[trace("a", &[])], 1.0).is_err());
    for temperature in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(Ngram::fit(&traces(), temperature).is_err());
    }
    let missing =
        Ngram::open(std::path::Path::new("no/such.jsonl"), 1.0).err().unwrap().to_string();
    assert!(missing.contains("no/such.jsonl"), "{missing}");
}

#[test]
fn replay_plays_the_demonstration_as_often_as_told() {
    let traces = [trace("a", &[("s0", "good"), ("s1", "better")]), trace("b", &[("s2", "best")])];
    let mut policy = Replay::new(&traces, 0.7);
    let samples = ask(&mut policy, "s1", 20_000, 3);
    let right: Vec<&Sample> = samples.iter().filter(|sample| sample.tactic == "better").collect();
    assert!((right.len() as f64 / 20_000.0 - 0.7).abs() < 0.02, "{}", right.len());
    assert!(right.iter().all(|sample| sample.log_p == 0.7f64.ln()));
    let wrong: Vec<&Sample> = samples.iter().filter(|sample| sample.tactic != "better").collect();
    assert!(
        wrong.iter().all(|sample| (sample.log_p - 0.1f64.ln()).abs() < 1e-12),
        "three others share 0.3"
    );
    assert!(
        ["good", "best", "noise"]
            .iter()
            .all(|tactic| wrong.iter().any(|sample| sample.tactic == *tactic))
    );
    assert!(ask(&mut policy, "elsewhere", 9, 1).iter().all(|sample| sample.log_p == 0.25f64.ln()));
    assert!(
        ask(&mut Replay::new(&traces, 1.0), "s2", 50, 1)
            .iter()
            .all(|s| s.tactic == "best" && s.log_p == 0.0)
    );
}

#[test]
fn ordered_pairs_are_drawn_as_without_replacement() {
    const TRIALS: u64 = 20_000;
    let (state, temperature) = ("$p ( A + B ) = ( B + A )", 1.3);
    let mut policy = Ngram::fit(&traces(), temperature).unwrap();
    let share = |p: &Ngram, tactic: &str| (policy_log_p(p, state, tactic) / temperature).exp();
    // All that can be drawn, with its weight at the temperature.
    let all = take(&mut policy, state, 100_000, &Urn::default());
    let whole: f64 = all.iter().map(|s| share(&policy, &s.tactic)).sum();
    let mut counts: HashMap<[String; 2], f64> = HashMap::new();
    for trial in 0..TRIALS {
        let urn = Some(Urn::default());
        let stream = Stream::new(2).child(trial);
        policy.submit(Request { id: trial, state: state.into(), samples: 2, stream, urn });
    }
    for (_, samples) in policy.poll() {
        let samples = samples.unwrap();
        *counts.entry([0, 1].map(|i: usize| samples[i].tactic.clone())).or_default() += 1.0;
    }
    let (mut chi, mut classes) = (0.0, 0.0f64);
    let mut rest = (TRIALS as f64, TRIALS as f64);
    for a in &all {
        let p = share(&policy, &a.tactic) / whole;
        for b in all.iter().filter(|b| b.tactic != a.tactic) {
            let q = share(&policy, &b.tactic) / whole;
            let expected = TRIALS as f64 * p * q / (1.0 - p);
            if expected >= 10.0 {
                let pair = [a.tactic.clone(), b.tactic.clone()];
                let observed = counts.get(&pair).copied().unwrap_or(0.0);
                chi += (observed - expected).powi(2) / expected;
                classes += 1.0;
                rest = (rest.0 - expected, rest.1 - observed);
            }
        }
    }
    assert!(classes >= 4.0, "{classes} pairs");
    if rest.0 >= 10.0 {
        chi += (rest.1 - rest.0).powi(2) / rest.0;
    }
    assert!(counts.keys().all(|[a, b]| a != b));
    // Within 3.1 standard deviations; the seed is fixed.
    assert!(chi < classes + 3.1 * (2.0 * classes).sqrt(), "chi-square {chi}, {classes} pairs");
}

fn take(policy: &mut Ngram, state: &str, samples: usize, urn: &Urn) -> Vec<Sample> {
    let (state, stream) = (state.to_string(), Stream::new(9));
    policy.submit(Request { id: 1, state, samples, stream, urn: Some(urn.clone()) });
    policy.poll().remove(0).1.unwrap()
}

#[test]
fn distinct_tactics_go_on_where_they_were_until_there_are_no_more() {
    let (state, urn) = ("$p ( A + B ) = ( B + A )", Urn::default());
    let mut policy = Ngram::fit(&traces(), 0.7).unwrap();
    let whole = take(&mut policy, state, 1000, &Urn::default());
    let texts: HashSet<&str> = whole.iter().map(|sample| sample.tactic.as_str()).collect();
    assert!(whole.len() > 20 && whole.len() < 1000 && texts.len() == whole.len());
    for some in whole.chunks(7) {
        assert_eq!(take(&mut policy, state, some.len(), &urn), some);
    }
    assert!(urn.left() < 1e-6, "{} left", urn.left());
    assert_eq!(take(&mut policy, state, 3, &urn), []);
    assert_eq!(urn.left(), 0.0);
}
