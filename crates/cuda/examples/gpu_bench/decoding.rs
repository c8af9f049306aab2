//! Sampling, as `catamount` does it: questions put to a generator.

use std::time::Instant;

use catamount_cuda::Cuda;
use catamount_model::{Config, Error, Generator, GeneratorConfig, Model, Sampling, Tokenizer};
use catamount_search::{Policy, Request, Stream};

use crate::Failure;
use crate::profiles::print_profile;

/// A state of 127 letters. It differs from others within its first five, so that there is next to
/// nothing of its prompt that another's could save.
fn state(question: u64, round: u64) -> String {
    format!("{question:0>4}{round}{:0>122}", "")
}

/// `batch` samples of `new` tokens after prompts of about 128, twice: with their prompts to be
/// computed, and with them cached.
pub fn decode(
    model: Model<Cuda>,
    name: &str,
    batch: usize,
    new: usize,
    profiled: bool,
) -> Result<Model<Cuda>, Failure> {
    let (c, fp8) = (model.config.clone(), model.is_fp8());
    let tokenizer = Tokenizer::train_bpe(["a"].iter(), 300)?;
    let config = GeneratorConfig {
        sampling: Sampling { temperature: 1.0, top_p: 1.0 },
        max_tokens: new,
        max_prompt: 8192,
        batch,
        cache: batch * 300 + 16_384,
    };
    let config = GeneratorConfig { max_prompt: config.max_prompt.min(c.positions - new), ..config };
    let mut generator = Generator::new(model, tokenizer, config, name)?;
    let mut speeds = Vec::new();
    // The first round also warms up: it is left out.
    for round in 0..4u64 {
        let start = Instant::now();
        for i in 0..batch as u64 {
            generator.submit(Request {
                id: i,
                // Asked again in the last round.
                state: state(i, round.min(2)),
                samples: 1,
                stream: Stream::new(round * 1000 + i),
                urn: None,
            });
        }
        let tokens = answers(&mut generator, batch)?;
        speeds.push((tokens as f64 / start.elapsed().as_secs_f64(), start.elapsed().as_secs_f64()));
    }
    let bytes = step_bytes(&c, fp8, batch, 128 + new / 2);
    let (speed, seconds) = speeds[3];
    let bandwidth = bytes * new as f64 / seconds;
    println!(
        "decode | {name} | batch {batch}, prompts of 128, {new} new | {:.0} new tokens/s with \
         prompts | {speed:.0} decoding alone, {:.2} ms/step | \
         {:.2} TB/s of {:.1} GB of weights and cache a step",
        speeds[2].0,
        seconds / new as f64 * 1e3,
        bandwidth / 1e12,
        bytes / 1e9,
    );
    if profiled {
        for i in 0..batch as u64 {
            generator.submit(Request {
                id: i,
                state: state(i, 2),
                samples: 1,
                stream: Stream::new(i),
                urn: None,
            });
        }
        let cuda = generator.model().backend.clone();
        let timings = cuda.profile(|| answers(&mut generator, batch).map(|_| ()))?;
        let what = format!("{new} decoding steps at batch {batch}, {name}, prompts cached");
        print_profile(&what, &timings, seconds);
    }
    Ok(generator.into_parts().0)
}

/// Waits for `count` answers and counts their tokens.
fn answers(generator: &mut Generator<Cuda>, count: usize) -> catamount_model::Result<usize> {
    let (mut tokens, mut answered) = (0, 0);
    while answered < count {
        for (_, samples) in generator.poll() {
            answered += 1;
            let samples = samples.map_err(|fault| Error::Device(fault.0))?;
            tokens += samples.iter().map(|s| s.tokens).sum::<usize>();
        }
    }
    Ok(tokens)
}

/// The least bytes a decoding step moves: weights, the cache, logits written and read.
fn step_bytes(c: &Config, fp8: bool, batch: usize, past: usize) -> f64 {
    let weights = weight_bytes(c, fp8);
    let cache = (batch * past * c.layers * 2 * c.heads.kv() * 2) as f64;
    weights + cache + (batch * c.vocab * 4 * 2) as f64
}

/// Bytes of the weights that a pass multiplies by.
pub fn weight_bytes(c: &Config, fp8: bool) -> f64 {
    let embedding = if c.tied { 0 } else { c.vocab * c.hidden };
    let all = 2.0 * (c.parameters() as f64 - embedding as f64);
    let head = (2 * c.vocab * c.hidden) as f64;
    if fp8 { head + (all - head) / 2.0 } else { all }
}
