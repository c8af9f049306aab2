//! How well the n-gram policy predicts held-out steps, and how fast it is:
//! `cargo run --release -p catamount-policies --example ngram_score -- train.jsonl test.jsonl
//! [STEPS]`

use std::path::Path;
use std::time::Instant;

use catamount_policies::Ngram;
use catamount_search::{Policy, Request, Stream};
use catamount_traces::{Step, Steps, read_any};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [train, test, steps @ ..] = arguments.as_slice() else {
        return Err("usage: ngram_score TRAIN TEST [STEPS]".into());
    };
    let pool: Steps = steps.first().map_or(Ok(Steps::ALL), |steps| steps.parse())?;
    let train = read_any(Path::new(train))?.traces;
    let started = Instant::now();
    let mut policy = Ngram::fit(&train, 1.0)?;
    println!("{}", policy.describe());
    let fitted = train.iter().map(|trace| trace.steps.len()).sum::<usize>();
    println!("fitted to {fitted} steps in {:.2} s", started.elapsed().as_secs_f64());

    let test = read_any(Path::new(test))?.traces;
    let steps: Vec<&Step> = test
        .iter()
        .filter(|trace| pool.contains(trace.steps.len()))
        .flat_map(|trace| &trace.steps)
        .collect();
    let mut known: Vec<f64> = Vec::new();
    let mut hits = [0usize; 4];
    for step in &steps {
        let log_p = policy.log_p(&step.state, &step.tactic);
        if log_p.is_finite() {
            known.push(log_p);
        }
        let rank =
            policy.top(&step.state, 64).iter().position(|(tactic, _)| *tactic == step.tactic);
        for (hit, within) in hits.iter_mut().zip([1, 4, 16, 64]) {
            *hit += usize::from(rank.is_some_and(|rank| rank < within));
        }
    }
    let percent = |count: usize| 100.0 * count as f64 / steps.len().max(1) as f64;
    println!(
        "{} held-out steps: {:.1} % possible, mean log p of those {:.2}",
        steps.len(),
        percent(known.len()),
        known.iter().sum::<f64>() / known.len() as f64
    );
    println!(
        "among the first 1, 4, 16, 64: {:.1} {:.1} {:.1} {:.1} %",
        percent(hits[0]),
        percent(hits[1]),
        percent(hits[2]),
        percent(hits[3])
    );

    // New states only, so that nothing kept helps; four samples each, as a search would ask.
    let mut states: Vec<&str> = steps.iter().map(|step| step.state.as_str()).collect();
    states.sort_unstable();
    states.dedup();
    for (name, rounds) in [("new", 1), ("known", 5)] {
        let started = Instant::now();
        let mut samples = 0;
        for round in 0..rounds {
            for (id, state) in (0..).zip(states.iter().take(4000)) {
                policy.submit(Request {
                    id,
                    state: (*state).into(),
                    samples: 4,
                    stream: Stream::new(id).child(round),
                    urn: None,
                });
            }
            samples += policy
                .poll()
                .into_iter()
                .map(|(_, answer)| answer.map_or(0, |samples| samples.len()))
                .sum::<usize>();
        }
        let rate = samples as f64 / started.elapsed().as_secs_f64();
        println!(
            "{rate:.0} samples/s at {name} states, 4 a state, {} threads",
            rayon::current_num_threads()
        );
    }
    Ok(())
}
