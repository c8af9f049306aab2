//! `catamount weights`: log-probabilities in, log J and weights out.

use std::io::{BufRead, Write};
use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_traces::LogP;
use rayon::prelude::*;
use serde::Serialize;

use crate::output;

/// Lines read at a time: enough for all cores, few enough to stream.
const CHUNK: usize = 16 * TASK;
/// Lines that one task weighs: enough that traces of one length can be weighed together.
const TASK: usize = 256;

#[derive(clap::Args)]
pub struct Arguments {
    /// ce, ua, pass, bfs, dfs, rdfs, vdfs or mcts.
    #[arg(long)]
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
    /// JSON lines `{"name": ..., "logp": [...]}`; standard input if not given.
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

/// A line of output, and whether its trace is feasible.
type Line = (Vec<u8>, bool);

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
    let (source, input): (String, Box<dyn BufRead>) = match &arguments.file {
        Some(path) => {
            let file = std::fs::File::open(path)
                .with_context(|| format!("cannot read {}", path.display()))?;
            (path.display().to_string(), Box::new(std::io::BufReader::with_capacity(1 << 20, file)))
        }
        None => ("standard input".to_string(), Box::new(std::io::stdin().lock())),
    };
    let mut out = std::io::BufWriter::with_capacity(1 << 20, output::lock());
    let (mut traces, mut infeasible) = (0u64, 0u64);
    for_chunks(input, &source, |first_line, lines| {
        let weighed: Vec<Vec<Result<Option<Line>>>> = lines
            .par_chunks(TASK)
            .map(|lines| weigh(lines, &surrogate, arguments.min_weight))
            .collect();
        for (index, line) in weighed.into_iter().flatten().enumerate() {
            // What came before a broken line is written before the error is reported.
            match line {
                Ok(None) => {}
                Ok(Some((text, feasible))) => {
                    traces += 1;
                    infeasible += u64::from(!feasible);
                    out.write_all(&text)?;
                }
                Err(error) => {
                    out.flush()?;
                    return Err(error.context(format!("{source}:{}", first_line + index)));
                }
            }
        }
        Ok(())
    })?;
    out.flush()?;
    if infeasible > 0 {
        eprintln!(
            "{infeasible} of {traces} traces cannot be found within the budget; they carry the \
             weights of cross-entropy and \"infeasible\": true"
        );
    }
    Ok(())
}

/// Reads lines in chunks and hands each chunk over with the number of its first line.
fn for_chunks(
    mut input: Box<dyn BufRead>,
    source: &str,
    mut work: impl FnMut(usize, &[Vec<u8>]) -> Result<()>,
) -> Result<()> {
    let mut line_number = 1;
    loop {
        let mut lines = Vec::new();
        while lines.len() < CHUNK {
            let mut line = Vec::new();
            if input
                .read_until(b'\n', &mut line)
                .with_context(|| format!("cannot read {source}"))?
                == 0
            {
                break;
            }
            lines.push(line);
        }
        if lines.is_empty() {
            return Ok(());
        }
        work(line_number, &lines)?;
        line_number += lines.len();
    }
}

/// The lines of output for lines of input; nothing for a blank one.
fn weigh(lines: &[Vec<u8>], surrogate: &Surrogate, min_weight: f64) -> Vec<Result<Option<Line>>> {
    let inputs: Vec<Result<Option<LogP>>> =
        lines.iter().map(|line| LogP::parse(line).map_err(anyhow::Error::msg)).collect();
    let traces: Vec<&[f64]> =
        inputs.iter().flatten().flatten().map(|input| input.logp.as_slice()).collect();
    let mut weighed = surrogate.weigh_all(&traces).into_iter();
    let mut line = |input: LogP| {
        let mut weighed = weighed.next().expect("an answer for every trace")?;
        for weight in &mut weighed.weights {
            *weight = weight.max(min_weight);
        }
        let feasible = weighed.feasible;
        let output = Output {
            name: input.name,
            log_success: weighed.log_success,
            weights: weighed.weights,
            infeasible: !feasible,
        };
        let mut text = serde_json::to_vec(&output)?;
        text.push(b'\n');
        Ok((text, feasible))
    };
    inputs.into_iter().map(|input| input?.map(&mut line).transpose()).collect()
}
