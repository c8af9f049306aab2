//! Distinct samples on this GPU: what they cost beside plain ones, and that they are distinct and
//! the same in one question or in two.
//!
//! `cargo run --release -p catamount-cuda --example gpu_distinct`. Weights are random; times are
//! the best of three. `gpu_check` compares the drawing of single tokens with the processor's.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::time::Instant;

use catamount_cuda::Cuda;
use catamount_model::{
    Config, Generator, GeneratorConfig, Heads, Memory, Model, Sampling, Tokenizer,
};
use catamount_search::{Policy, Request, Sample, Stream, Urn};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let cuda = match Cuda::new(0) {
        Ok(cuda) => Arc::new(cuda),
        Err(reason) => {
            println!("nothing to measure: {reason}");
            return Ok(());
        }
    };
    println!("{}", cuda.describe());
    let mut small = Config::small(4096, 256, 6, 2048);
    small.intermediate = 704;
    let mut smol = Config::small(49_152, 576, 30, 2048);
    smol.heads = Heads { heads: 9, kv_heads: 3, dim: 64 };
    smol.intermediate = 1536;
    for (config, name) in [(small, "6 layers, d=256"), (smol, "135M shape")] {
        distinct(Model::init(cuda.clone(), config, Stream::new(1))?, name, 512)?;
    }
    Ok(())
}

/// Distinct samples beside plain ones: 4 of a state, as in a search's first visits, and 64, at a
/// temperature so low that tactics share their beginnings. Says what a sample costs, and checks
/// that the distinct ones are, and are the same when asked for in two parts.
fn distinct(model: Model<Cuda>, name: &str, batch: usize) -> Result<(), Failure> {
    let config = GeneratorConfig {
        sampling: Sampling { temperature: 0.2, top_p: 1.0 },
        max_tokens: 12,
        max_prompt: 1024,
        batch,
        cache: batch * 300 + 16_384,
    };
    let tokenizer = Tokenizer::train_bpe(["a"].iter(), 300)?;
    let mut generator = Generator::new(model, tokenizer, config, name)?;
    let ask = |generator: &mut Generator<Cuda>, urns: &[Option<Urn>], samples: usize| {
        for (id, urn) in (0..).zip(urns) {
            let (state, stream) = (format!("{id:0>63}"), Stream::new(id));
            generator.submit(Request { id, state, samples, stream, urn: urn.clone() });
        }
        let mut answers = BTreeMap::new();
        while answers.len() < urns.len() {
            for (id, samples) in generator.poll() {
                answers.insert(id, samples.map_err(|fault| fault.0)?);
            }
        }
        Ok::<_, Failure>(answers)
    };
    let states = 2 * batch;
    for samples in [4, 64] {
        let (mut seconds, mut tokens) = ([f64::INFINITY; 2], [0; 2]);
        for round in 0..6 {
            let kind = round % 2;
            let urns: Vec<_> = (0..states).map(|_| (kind == 1).then(Urn::default)).collect();
            let start = Instant::now();
            let answers = ask(&mut generator, &urns, samples)?;
            seconds[kind] = seconds[kind].min(start.elapsed().as_secs_f64());
            tokens[kind] = answers.values().flatten().map(|s| s.tokens).sum::<usize>();
            if kind == 1 {
                check_distinct(&answers)?;
                let urns: Vec<_> = (0..states).map(|_| Some(Urn::default())).collect();
                let mut parts = ask(&mut generator, &urns, samples / 2)?;
                for (id, more) in ask(&mut generator, &urns, samples - samples / 2)? {
                    parts.entry(id).or_default().extend(more);
                }
                if parts != answers {
                    return Err("two halves of the distinct samples are not the whole".into());
                }
            }
        }
        let each = |kind: usize| 1e6 * seconds[kind] / (states * samples) as f64;
        let token = |kind: usize| 1e6 * seconds[kind] / tokens[kind] as f64;
        println!(
            "distinct | {name} | batch {batch}, {samples} samples of {states} states | {:.2} us a \
             sample, plain {:.2}, ratio {:.3} | {:.3} us a token, plain {:.3}, ratio {:.3}",
            each(1),
            each(0),
            each(1) / each(0),
            token(1),
            token(0),
            token(1) / token(0),
        );
    }
    Ok(())
}

fn check_distinct(answers: &BTreeMap<u64, Vec<Sample>>) -> Result<(), Failure> {
    for (id, samples) in answers {
        let tactics: HashSet<&str> = samples.iter().map(|s| s.tactic.trim()).collect();
        if tactics.len() < samples.len() {
            return Err(format!("state {id}: a tactic came twice").into());
        }
    }
    Ok(())
}
