//! `catamount data found`: proofs that searches found, as traces.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_base::{Progress, counted};
use catamount_data::{Reopened, Trust, load, reopen, traced};
use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, is_sidecar};
use catamount_search::Setup;
use catamount_traces::{Theorem, Trace, jsonl};
use rayon::iter::Either;
use rayon::prelude::*;
use serde_json::json;

use crate::environment::ElsewhereArguments;

#[derive(clap::Args)]
pub struct Arguments {
    /// The file of traces that was searched: for statements and places, and to tell the
    /// demonstrated proofs from others.
    #[arg(long)]
    theorems: PathBuf,
    /// The file of traces to write. A proof is called NAME/found-1 after its theorem, for no search
    /// to take it for one.
    #[arg(long)]
    out: PathBuf,
    /// Write the traces of --theorems, too, so that OUT is a file to train on.
    #[arg(long)]
    with_demonstrated: bool,
    #[command(flatten)]
    elsewhere: ElsewhereArguments,
    /// Print what was done as JSON, for programs.
    #[arg(long)]
    json: bool,
    /// Cell logs. Of a theorem proved in several ways each is kept.
    #[arg(required = true)]
    logs: Vec<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let demonstrated = load(&arguments.theorems)?.traces;
    let mut provers = Provers { arguments, opened: Vec::new() };
    let proofs = Proofs::gather(arguments, &demonstrated, &mut provers)?;
    if proofs.all.is_empty() {
        bail!("no log holds a proof; nothing is written");
    }
    let (kept, lost) = proofs.replay(&provers);
    lost.iter().for_each(|why| eprintln!("left out: {why}"));
    let before: &[Trace] = if arguments.with_demonstrated { &demonstrated } else { &[] };
    jsonl::write(&arguments.out, before.iter().chain(&kept))?;
    let theorems = proofs.all.iter().map(|(name, _)| name).collect::<HashSet<_>>().len();
    let same = proofs.all.len() - proofs.others.len();
    let traces = before.len() + kept.len();
    match arguments.json {
        true => println!(
            "{}",
            json!({ "file": arguments.out, "proofs": proofs.all.len(), "theorems": theorems,
                "demonstrated": same, "found": kept.len(), "lost": lost.len(), "traces": traces })
        ),
        false => println!(
            "{} of {}: {same} as demonstrated, {} other; {} written to {}",
            counted(proofs.all.len(), "proof"),
            counted(theorems, "theorem"),
            proofs.others.len(),
            counted(traces, "trace"),
            arguments.out.display()
        ),
    }
    Ok(())
}

/// A proof that is not the demonstrated one.
struct Found<'a> {
    theorem: &'a Theorem,
    tactics: Vec<String>,
    /// Its number among those of its theorem.
    number: usize,
    /// Which of the provers found it.
    prover: usize,
}

/// The proofs of all logs, each once.
#[derive(Default)]
struct Proofs<'a> {
    all: HashSet<(String, Vec<String>)>,
    others: Vec<Found<'a>>,
}

impl<'a> Proofs<'a> {
    fn gather(
        arguments: &Arguments,
        demonstrated: &'a [Trace],
        provers: &mut Provers<'_>,
    ) -> Result<Proofs<'a>> {
        let by_name: HashMap<&str, &Trace> =
            demonstrated.iter().map(|trace| (trace.theorem.name.as_str(), trace)).collect();
        let mut proofs = Proofs::default();
        let mut numbers: HashMap<&str, usize> = HashMap::new();
        // `cells/*.jsonl` is what one types, and it also matches the files that stand beside a log.
        for path in arguments.logs.iter().filter(|path| !is_sidecar(path)) {
            let log = Log::read(path)?;
            for problem in &log.problems {
                eprintln!("left out: {problem}");
            }
            for record in log.in_order() {
                if record.outcome != Outcome::Proved {
                    continue;
                }
                let trace = by_name.get(record.theorem.as_str()).with_context(|| {
                    let (log, file) = (path.display(), arguments.theorems.display());
                    format!(
                        "{log} was not searched in {file}: it has no theorem {}",
                        record.theorem
                    )
                })?;
                let tactics = record.tactics.clone();
                let new = proofs.all.insert((record.theorem.clone(), tactics.clone()));
                if new && !trace.steps.iter().map(|step| &step.tactic).eq(&tactics) {
                    let number = numbers.entry(&trace.theorem.name).or_default();
                    *number += 1;
                    let (number, prover) = (*number, provers.of(&log)?);
                    proofs.others.push(Found { theorem: &trace.theorem, tactics, number, prover });
                }
            }
        }
        Ok(proofs)
    }

    /// Their traces, and why some have none.
    fn replay(&self, provers: &Provers<'_>) -> (Vec<Trace>, Vec<String>) {
        let bar = Progress::new(self.others.len() as u64, "proofs").named("replaying");
        let replay = |found: &Found<'_>| {
            let environment = &provers.opened[found.prover].1.environment;
            let trace = traced(environment.as_ref(), found.theorem, &found.tactics);
            bar.advance(1);
            match trace {
                Ok(mut trace) => {
                    trace.theorem.name += &format!("/found-{}", found.number);
                    Either::Left(trace)
                }
                Err(fault) => Either::Right(format!("{}: {fault}", found.theorem.name)),
            }
        };
        let replayed = self.others.par_iter().partition_map(replay);
        bar.finish();
        replayed
    }
}

/// The provers of logs, each opened once.
struct Provers<'a> {
    arguments: &'a Arguments,
    opened: Vec<(Setup, Reopened)>,
}

impl Provers<'_> {
    /// Which of them found the proofs of a log.
    fn of(&mut self, log: &Log) -> Result<usize> {
        let setup = log.manifest.as_ref().and_then(|manifest| manifest.setup.as_ref());
        let setup = setup.with_context(|| {
            format!(
                "the manifest beside {} does not say how its prover was set up",
                log.path.display()
            )
        })?;
        if let Some(at) = self.opened.iter().position(|(known, _)| known == setup) {
            return Ok(at);
        }
        let near = log.path.parent().unwrap_or(Path::new("."));
        let elsewhere = self.arguments.elsewhere.elsewhere();
        let prover = reopen(setup, &elsewhere, &Trust::default(), near)?;
        self.opened.push((setup.clone(), prover));
        Ok(self.opened.len() - 1)
    }
}
