//! log p of every tactic of many traces, without training.

use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_model::{Activations, Backend, Batch, Keep, Model, Tokenizer};
use catamount_traces::Trace;
use rayon::prelude::*;

use crate::step::tactic_log_p;
use crate::{Dataset, Error, Example, Result, Run};

/// A trace with its scores.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// The trace.
    pub trace: Trace,
    /// log p of each tactic, end token included; or why the trace cannot be scored.
    pub log_p: std::result::Result<Vec<f64>, String>,
    /// Tokens of its states and tactics.
    pub tokens: usize,
}

/// Scores traces as they come, at the temperature the model is to be sampled at, `tokens` rows at a
/// time, and hands them on in the same order. Answers whether it came to the end; `stop` ends it
/// early, between two handfuls.
pub fn score<B: Backend>(
    model: &Model<B>,
    tokenizer: &Tokenizer,
    temperature: f64,
    traces: impl IntoIterator<Item = std::result::Result<Trace, catamount_traces::Error>>,
    tokens: usize,
    stop: &AtomicBool,
    mut each: impl FnMut(Scored) -> Result<()>,
) -> Result<bool> {
    tokenizer.check(model.config.vocab)?;
    let most = model.config.positions.min(tokens);
    let limit = if tokens < model.config.positions {
        format!("only {tokens} rows are scored together: allow more")
    } else {
        format!("the model has only {most} positions")
    };
    let mut acts = Activations::new(model, tokens, Keep::Nothing)?;
    let mut batch = Batch::new();
    let mut traces = traces.into_iter();
    loop {
        // A handful, so that tokenising is spread over the cores and micro-batches are full.
        let handful: Vec<Trace> =
            traces.by_ref().take(64).collect::<std::result::Result<_, _>>()?;
        if handful.is_empty() {
            return Ok(true);
        }
        if stop.load(Ordering::Relaxed) {
            return Ok(false);
        }
        let examples: Vec<Vec<Example>> = handful
            .par_iter()
            .map(|trace| {
                trace.steps.iter().map(|s| Example::new(tokenizer, &s.state, &s.tactic)).collect()
            })
            .collect::<Result<_>>()?;
        let mut scored: Vec<Scored> = Vec::with_capacity(handful.len());
        for (trace, examples) in handful.into_iter().zip(&examples) {
            // A sequence's last token needs no position of its own.
            let long = examples.iter().position(|e| e.tokens() - 1 > most);
            let log_p = match long {
                None => Ok(vec![f64::NAN; examples.len()]),
                Some(step) => {
                    let tokens = examples[step].tokens();
                    Err(format!("step {} has {tokens} tokens, and {limit}", step + 1))
                }
            };
            scored.push(Scored {
                trace,
                log_p,
                tokens: examples.iter().map(Example::tokens).sum(),
            });
        }
        let fits: Vec<bool> = scored.iter().map(|s| s.log_p.is_ok()).collect();
        let items =
            examples.iter().enumerate().filter(|(t, _)| fits[*t]).flat_map(|(t, examples)| {
                examples
                    .iter()
                    .enumerate()
                    .map(move |(s, e)| ((t, s), (&e.prompt[..], &e.tactic[..])))
            });
        let keep = |(t, s): (usize, usize), value: f64| {
            if let Ok(log_p) = &mut scored[t].log_p {
                log_p[s] = value;
            }
        };
        let (acts, batch) = (&mut acts, &mut batch);
        score_examples(model, temperature, acts, batch, items, keep, &mut |_| true)?;
        scored.iter().try_for_each(check_numbers)?;
        scored.into_iter().try_for_each(&mut each)?;
    }
}

/// log p of every example of the data at a temperature, `tokens` rows at a time; none where the run
/// was asked to stop.
pub fn score_data<B: Backend>(
    model: &Model<B>,
    data: &Dataset,
    temperature: f64,
    tokens: usize,
    run: &Run<'_>,
) -> Result<Option<Vec<f64>>> {
    check_rows(model, data, tokens)?;
    let mut acts = Activations::new(model, tokens, Keep::Nothing)?;
    let mut log_p = vec![f64::NAN; data.examples()];
    let name = format!("{} · scoring", run.name);
    let bar = run.bar(&name, "tactics", data.examples());
    let items = (0..data.examples()).map(|e| (e, data.example(e)));
    let each = |e: usize, value| log_p[e] = value;
    let mut go_on = |n: usize| {
        bar.advance(n as u64);
        !run.stop.load(Ordering::Relaxed)
    };
    let batch = &mut Batch::new();
    let finished = score_examples(model, temperature, &mut acts, batch, items, each, &mut go_on)?;
    bar.finish();
    Ok(finished.then_some(log_p))
}

/// Refuses data that micro-batches of so many rows, or the model, cannot take.
pub(crate) fn check_rows<B: Backend>(
    model: &Model<B>,
    data: &Dataset,
    tokens: usize,
) -> Result<()> {
    let (longest, most) = (data.longest(), tokens.min(model.config.positions));
    if longest > most {
        return Err(Error::Data(format!(
            "an example takes {longest} token rows where a micro-batch and the model take {most}; \
             lower max_tokens"
        )));
    }
    Ok(())
}

/// A model whose weights are damaged scores, too: with what is no number.
fn check_numbers(scored: &Scored) -> Result<()> {
    let Ok(log_p) = &scored.log_p else { return Ok(()) };
    match log_p.iter().position(|value| !value.is_finite()) {
        None => Ok(()),
        Some(step) => Err(Error::Data(format!(
            "the model gives step {} of {} log p = {}: are its weights damaged?",
            step + 1,
            scored.trace.theorem.name,
            log_p[step]
        ))),
    }
}

/// Runs examples through the model in micro-batches as large as the buffers, and hands each one's
/// log p to `each`. `go_on` is told how many examples a micro-batch had and may end the pass; then
/// the answer is false.
pub(crate) fn score_examples<'e, B: Backend, K>(
    model: &Model<B>,
    temperature: f64,
    acts: &mut Activations<B>,
    batch: &mut Batch,
    examples: impl Iterator<Item = (K, (&'e [u32], &'e [u32]))>,
    mut each: impl FnMut(K, f64),
    go_on: &mut dyn FnMut(usize) -> bool,
) -> Result<bool> {
    let capacity = acts.capacity();
    let mut waiting: Vec<(K, Range<usize>)> = Vec::new();
    let mut run = |batch: &mut Batch, waiting: &mut Vec<(K, Range<usize>)>| -> Result<bool> {
        if waiting.is_empty() {
            return Ok(true);
        }
        model.forward(batch, acts, None)?;
        let tokens = model.score_at(acts, temperature as f32)?;
        let count = waiting.len();
        waiting.drain(..).for_each(|(key, range)| each(key, tactic_log_p(&tokens[range])));
        batch.clear();
        Ok(go_on(count))
    };
    batch.clear();
    for (key, (prompt, tactic)) in examples {
        if batch.len() + prompt.len() + tactic.len() - 1 > capacity && !run(batch, &mut waiting)? {
            return Ok(false);
        }
        waiting.push((key, batch.push(prompt, tactic)));
    }
    run(batch, &mut waiting)
}
