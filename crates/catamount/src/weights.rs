//! `catamount weights`: log-probabilities in, log J and weights out, as JSON lines or as Parquet.

use std::io::{BufRead, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use catamount_objective::{Objective, Prior, Surrogate, Weighed};
use catamount_traces::LogP;
use catamount_traces::parquet::{Weights, read_scores, write_weights};
use rayon::prelude::*;
use serde::Serialize;

use crate::output;

/// Lines read at a time: enough for all cores, few enough to stream.
const CHUNK: usize = 16 * TASK;
/// Lines that one task weighs: enough that traces of one length can be weighed together.
const TASK: usize = 256;

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

#[derive(Serialize)]
struct Output {
    name: serde_json::Value,
    log_success: f64,
    weights: Vec<f64>,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    infeasible: bool,
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
            let input = std::io::BufReader::with_capacity(1 << 20, opened);
            weigher.lines(Box::new(input), &file.display().to_string())?
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

/// Some lines' worth of output, how many traces and how many infeasible ones it has, and what was
/// wrong with the line after it.
#[derive(Default)]
struct Written {
    text: Vec<u8>,
    traces: usize,
    infeasible: usize,
    wrong: Option<(usize, anyhow::Error)>,
}

impl Weigher {
    fn weigh(&self, traces: &[&[f64]]) -> Vec<Result<Weighed>> {
        let raise = |mut weighed: Weighed| {
            for weight in &mut weighed.weights {
                *weight = weight.max(self.least);
            }
            weighed
        };
        let weighed = self.surrogate.weigh_all(traces).into_iter();
        weighed.map(|weighed| weighed.map(raise).map_err(anyhow::Error::from)).collect()
    }

    /// JSON lines, streamed. What came before a broken line is written before the error is
    /// reported.
    fn lines(&self, mut input: Box<dyn BufRead>, source: &str) -> Result<(usize, usize)> {
        let mut out = std::io::BufWriter::with_capacity(1 << 20, output::lock());
        let (mut traces, mut infeasible, mut first) = (0, 0, 1);
        loop {
            let lines = Lines::read(&mut input).with_context(|| format!("cannot read {source}"))?;
            if lines.ends.is_empty() {
                out.flush()?;
                return Ok((traces, infeasible));
            }
            let starts: Vec<usize> = (0..lines.ends.len()).step_by(TASK).collect();
            let written: Vec<Written> =
                starts.par_iter().map(|&start| self.write(&lines, start)).collect();
            for part in written {
                traces += part.traces;
                infeasible += part.infeasible;
                out.write_all(&part.text)?;
                if let Some((index, error)) = part.wrong {
                    out.flush()?;
                    return Err(error.context(format!("{source}:{}", first + index)));
                }
            }
            first += lines.ends.len();
        }
    }

    /// The output for one task's lines; blank ones have none.
    fn write(&self, lines: &Lines, start: usize) -> Written {
        let mut written = Written::default();
        let mut inputs: Vec<(usize, LogP)> = Vec::with_capacity(TASK);
        for index in start..lines.ends.len().min(start + TASK) {
            match LogP::parse(lines.line(index)) {
                Ok(Some(input)) => inputs.push((index, input)),
                Ok(None) => {}
                Err(reason) => {
                    written.wrong = Some((index, anyhow!(reason)));
                    break;
                }
            }
        }
        let traces: Vec<&[f64]> = inputs.iter().map(|(_, input)| input.logp.as_slice()).collect();
        let weighed = self.weigh(&traces);
        for ((index, input), weighed) in inputs.into_iter().zip(weighed) {
            let line = weighed.and_then(|weighed| {
                let infeasible = !weighed.feasible;
                let Weighed { log_success, weights, .. } = weighed;
                let output = Output { name: input.name, log_success, weights, infeasible };
                serde_json::to_writer(&mut written.text, &output)?;
                Ok(infeasible)
            });
            match line {
                Ok(infeasible) => {
                    written.text.push(b'\n');
                    written.traces += 1;
                    written.infeasible += usize::from(infeasible);
                }
                Err(error) => {
                    written.wrong = Some((index, error));
                    break;
                }
            }
        }
        written
    }

    /// A Parquet file into another.
    fn table(&self, file: &Path, out: &Path) -> Result<(usize, usize)> {
        let table = read_scores(file)?;
        let traces = table.traces();
        let weighed: Vec<Vec<Result<Weighed>>> =
            traces.par_chunks(TASK).map(|traces| self.weigh(traces)).collect();
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

/// Some lines of a file.
struct Lines {
    text: Vec<u8>,
    ends: Vec<usize>,
}

impl Lines {
    /// The next lines, none at the end.
    fn read(input: &mut Box<dyn BufRead>) -> std::io::Result<Self> {
        let mut lines = Lines { text: Vec::new(), ends: Vec::with_capacity(CHUNK) };
        while lines.ends.len() < CHUNK && input.read_until(b'\n', &mut lines.text)? > 0 {
            lines.ends.push(lines.text.len());
        }
        Ok(lines)
    }

    fn line(&self, index: usize) -> &[u8] {
        let start = if index == 0 { 0 } else { self.ends[index - 1] };
        &self.text[start..self.ends[index]]
    }
}
