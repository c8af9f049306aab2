//! `catamount weights`: log-probabilities in, log J and weights out, as JSON lines or as Parquet.

use std::io::{Read, Write};
use std::iter;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use catamount_objective::{Objective, Prior, Surrogate, Weighed};
use catamount_traces::LogP;
use catamount_traces::parquet::{Weights, read_scores, write_weights};
use rayon::prelude::*;

use crate::output;

/// Bytes of lines read at a time: enough for all cores, few enough to stream.
const CHUNK: usize = 32 * TASK;
/// Bytes of lines that one task weighs, some hundred traces: enough that those of one length can be
/// weighed together.
const TASK: usize = 1 << 15;
/// Rows of a Parquet file that one task weighs.
const ROWS: usize = 512;

#[derive(clap::Args)]
pub struct Arguments {
    #[arg(long, help = Objective::names())]
    objective: Objective,
    /// Expansions per theorem at deployment (rollouts for `pass`; not needed for `ce`).
    #[arg(long, allow_negative_numbers = true, value_parser = parse_budget)]
    budget: Option<u64>,
    /// Expansions that a miss consumes, at least 1.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true)]
    kappa: f64,
    /// Probability that a miss is never recovered from, in [0, 1).
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    absorption: f64,
    /// Weights below this are raised to it, as `weights.min` in a training recipe does.
    #[arg(long, default_value_t = 0.0, allow_negative_numbers = true)]
    min_weight: f64,
    /// The Parquet file to write, for a Parquet file.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// JSON lines `{"name": ..., "logp": [...]}`, or a Parquet file (.parquet) with these columns;
    /// standard input if not given.
    file: Option<PathBuf>,
}

pub fn parse_budget(text: &str) -> Result<u64, String> {
    let explain = || "a budget is a whole number of expansions, at least 0".to_string();
    text.parse::<u64>().map_err(|_| explain())
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let prior = Prior::new(arguments.kappa, arguments.absorption)?;
    let budget = match arguments.budget {
        Some(budget) => budget,
        None if arguments.objective == Objective::Ce => 0,
        None => bail!("--objective {} needs a --budget", arguments.objective),
    };
    let surrogate = Surrogate::new(arguments.objective, budget).with_prior(prior)?;
    if !(0.0..=1.0).contains(&arguments.min_weight) {
        bail!("--min-weight must be between 0 and 1, not {}", arguments.min_weight);
    }
    let weigher = Weigher { surrogate, least: arguments.min_weight };
    let (traces, infeasible) = match (&arguments.file, &arguments.out) {
        (Some(file), Some(out)) if is_parquet(file) && is_parquet(out) => {
            weigher.table(file, out)?
        }
        (Some(file), None) if is_parquet(file) => {
            bail!(
                "the weights of a Parquet file are a Parquet file; name it: --out weights.parquet"
            )
        }
        (_, Some(out)) => bail!(
            "--out {} is for Parquet files, in and out; JSON lines are printed",
            out.display()
        ),
        (Some(file), None) => {
            let opened = std::fs::File::open(file)
                .with_context(|| format!("cannot read {}", file.display()))?;
            weigher.lines(Box::new(opened), &file.display().to_string())?
        }
        (None, None) => weigher.lines(Box::new(std::io::stdin().lock()), "standard input")?,
    };
    if infeasible > 0 {
        eprintln!(
            "{infeasible} of {traces} traces cannot be found within the budget; they carry the \
             weights of cross-entropy and \"infeasible\": true"
        );
    }
    Ok(())
}

fn is_parquet(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "parquet")
}

/// Weighs traces, and counts how many there are and how many are infeasible.
struct Weigher {
    surrogate: Surrogate,
    least: f64,
}

/// What became of some lines. Kept from one chunk to the next for the sake of its memory.
#[derive(Default)]
struct Written {
    /// The log-probabilities of all traces, one after the other.
    numbers: Vec<f64>,
    /// The output.
    text: Vec<u8>,
    lines: usize,
    traces: usize,
    infeasible: usize,
    /// What was wrong with the last of the lines.
    wrong: Option<anyhow::Error>,
}

impl Weigher {
    fn weigh(&self, traces: &[&[f64]]) -> impl Iterator<Item = Result<Weighed>> {
        let raise = |mut weighed: Weighed| {
            for weight in &mut weighed.weights {
                *weight = weight.max(self.least);
            }
            weighed
        };
        let weighed = self.surrogate.weigh_all(traces).into_iter();
        weighed.map(move |weighed| weighed.map(raise).map_err(anyhow::Error::from))
    }

    /// JSON lines, streamed. What came before a broken line is written before the error is
    /// reported.
    fn lines(&self, input: Box<dyn Read>, source: &str) -> Result<(usize, usize)> {
        let (mut out, mut input) = (output::lock(), Chunks::new(input));
        let (mut traces, mut infeasible, mut before) = (0, 0, 0);
        let mut written = Vec::new();
        loop {
            let chunk = input.next().with_context(|| format!("cannot read {source}"))?;
            if chunk.is_empty() {
                out.flush()?;
                return Ok((traces, infeasible));
            }
            let tasks = tasks(chunk);
            written.resize_with(written.len().max(tasks.len()), Written::default);
            let pairs = tasks.par_iter().zip(&mut written);
            pairs.for_each(|(lines, written)| self.write(lines, written));
            for part in &mut written[..tasks.len()] {
                traces += part.traces;
                infeasible += part.infeasible;
                before += part.lines;
                out.write_all(&part.text)?;
                if let Some(error) = part.wrong.take() {
                    out.flush()?;
                    return Err(error.context(format!("{source}:{before}")));
                }
            }
        }
    }

    /// The output for one task's lines; blank ones have none.
    fn write(&self, mut lines: &[u8], written: &mut Written) {
        let Written { numbers, text, lines: read, traces, infeasible, wrong } = written;
        numbers.clear();
        text.clear();
        (*read, *traces, *infeasible) = (0, 0, 0);
        // The name of every trace, the line it stands in and where its numbers end.
        let mut named = Vec::new();
        while !lines.is_empty() && wrong.is_none() {
            *read += 1;
            match LogP::take(&mut lines, numbers) {
                Ok(Some(name)) => named.push((name, *read, numbers.len())),
                Ok(None) => {}
                Err(reason) => *wrong = Some(anyhow!(reason)),
            }
        }
        let starts = iter::once(0).chain(named.iter().map(|&(_, _, end)| end));
        let logp: Vec<&[f64]> =
            starts.zip(&named).map(|(start, &(_, _, end))| &numbers[start..end]).collect();
        for ((name, line, _), weighed) in named.iter().zip(self.weigh(&logp)) {
            match weighed {
                Ok(weighed) => {
                    print(text, name, &weighed);
                    *traces += 1;
                    *infeasible += usize::from(!weighed.feasible);
                }
                Err(error) => {
                    (*read, *wrong) = (*line, Some(error));
                    break;
                }
            }
        }
    }

    /// A Parquet file into another.
    fn table(&self, file: &Path, out: &Path) -> Result<(usize, usize)> {
        let table = read_scores(file)?;
        let traces = table.traces();
        let weighed: Vec<Vec<Result<Weighed>>> =
            traces.par_chunks(ROWS).map(|traces| self.weigh(traces).collect()).collect();
        let weighed = weighed.into_iter().flatten().enumerate().map(|(row, weighed)| {
            weighed.with_context(|| format!("{}, row {}", file.display(), row + 1))
        });
        let weighed = weighed.collect::<Result<Vec<Weighed>>>()?;
        let rows: Vec<Weights<'_>> = table
            .names
            .iter()
            .zip(&weighed)
            .map(|(name, weighed)| Weights {
                name,
                log_success: weighed.log_success,
                weights: &weighed.weights,
                infeasible: !weighed.feasible,
            })
            .collect();
        write_weights(out, &rows)?;
        Ok((rows.len(), rows.iter().filter(|row| row.infeasible).count()))
    }
}

/// A line of output. The brackets are put in by hand: much quicker, where there is little to say.
fn print(text: &mut Vec<u8>, name: &[u8], weighed: &Weighed) {
    let number = |text: &mut Vec<u8>, number: f64| {
        serde_json::to_writer(text, &number).expect("memory takes what is written to it");
    };
    text.extend_from_slice(b"{\"name\":");
    text.extend_from_slice(name);
    text.extend_from_slice(b",\"log_success\":");
    number(text, weighed.log_success);
    let mut before: &[u8] = b",\"weights\":[";
    for &weight in &weighed.weights {
        text.extend_from_slice(before);
        number(text, weight);
        before = b",";
    }
    text.extend_from_slice(if weighed.feasible { b"]}\n" } else { b"],\"infeasible\":true}\n" });
}

/// A text cut at the ends of lines.
fn tasks(mut text: &[u8]) -> Vec<&[u8]> {
    let mut tasks = Vec::with_capacity(text.len() / TASK + 1);
    while text.len() > TASK {
        let rest = text[TASK..].iter().position(|&byte| byte == b'\n').map(|at| TASK + at + 1);
        let (task, rest) = text.split_at(rest.unwrap_or(text.len()));
        tasks.push(task);
        text = rest;
    }
    tasks.extend((!text.is_empty()).then_some(text));
    tasks
}

/// Whole lines, much at a time.
struct Chunks {
    input: Box<dyn Read>,
    text: Vec<u8>,
    /// How much of the text has been handed out.
    done: usize,
}

impl Chunks {
    fn new(input: Box<dyn Read>) -> Self {
        Chunks { input, text: Vec::with_capacity(2 * CHUNK), done: 0 }
    }

    /// The next lines, nothing at the end.
    fn next(&mut self) -> std::io::Result<&[u8]> {
        self.text.drain(..self.done);
        loop {
            let known = self.text.len();
            let end = if self.input.by_ref().take(CHUNK as u64).read_to_end(&mut self.text)? == 0 {
                Some(known)
            } else {
                self.text[known..].iter().rposition(|&byte| byte == b'\n').map(|at| known + at + 1)
            };
            if let Some(end) = end {
                self.done = end;
                return Ok(&self.text[..end]);
            }
        }
    }
}
