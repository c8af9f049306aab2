//! Does what is not up to date.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use catamount_evaluate::log::Outcome;
use catamount_evaluate::run::CellRun;
use catamount_model::{Backend, Model, Tokenizer};
use catamount_report::Report;
use catamount_search::Environment;
use serde_json::json;

use crate::cells::Sampler;
use crate::config::Experiment;
use crate::error::{Error, Result};
use crate::plan::{Plan, Step, StepKind};
use crate::{cells, stamp, steps, time};

/// Loads a model by name.
pub type Load<'a, B> =
    dyn Fn(&str, bool) -> std::result::Result<(Model<B>, Tokenizer), String> + 'a;

/// What an experiment needs from outside.
pub struct Host<'a, B: Backend> {
    /// The device.
    pub backend: Arc<B>,
    /// The prover.
    pub environment: Arc<dyn Environment>,
    /// Writes `train.jsonl`, `valid.jsonl` and `test.jsonl` into a folder.
    pub data: &'a dyn Fn(&Path) -> std::result::Result<(), String>,
    /// Loads a pretrained model by name; trainable as a whole if the flag says so.
    pub load: &'a Load<'a, B>,
    /// Where the study is kept.
    pub folder: &'a Path,
    /// Set by Ctrl-C.
    pub stop: &'a AtomicBool,
    /// Threads that talk to the prover.
    pub threads: usize,
    /// The command that runs this study, for manifests.
    pub command: String,
    /// The commit this binary was built from.
    pub commit: Option<String>,
    /// Speaks to the user between progress bars.
    pub say: &'a dyn Fn(&str),
}

/// Runs an experiment to its report; none if the plan has no such step.
pub fn run<B: Backend>(
    experiment: &Experiment,
    plan: &Plan,
    host: &Host<'_, B>,
) -> Result<Option<Report>> {
    std::fs::create_dir_all(host.folder).map_err(Error::io(host.folder))?;
    let outstanding: Vec<Step> = plan.outstanding(host.folder).into_iter().cloned().collect();
    let done = plan.steps.len() - outstanding.len();
    if done > 0 {
        (host.say)(&format!("{done} of {} steps are up to date", plan.steps.len()));
    }
    write_plan(experiment, plan, host)?;
    let (mut report, mut sampler) = (None, Sampler::default());
    let mut rest = outstanding.as_slice();
    while let Some(step) = rest.first() {
        if host.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        let number = plan.steps.len() - rest.len() + 1;
        let cells = cells::together(experiment, rest);
        if cells > 0 {
            let (group, after) = rest.split_at(cells);
            search(experiment, plan, host, &mut sampler, group, number)?;
            rest = after;
            continue;
        }
        // What comes now may want the device's memory for itself.
        sampler = Sampler::default();
        (host.say)(&format!("[{number}/{}] {}", plan.steps.len(), step.name));
        stamp::begin(host.folder, step, &steps::files(step))?;
        let started = Instant::now();
        let fail = Error::step(&step.name);
        match &step.kind {
            StepKind::Data => (host.data)(&host.folder.join("data")).map_err(fail)?,
            StepKind::WarmUp => steps::warm_up(experiment, host, &step.name)?,
            StepKind::Branch { choice, budget } => {
                steps::branch(experiment, host, &step.name, choice, *budget)?
            }
            StepKind::OffTrace { strategy, budget } => {
                steps::off_trace(experiment, host, &step.name, *strategy, *budget)?
            }
            StepKind::Report => {
                time::write(plan, host.folder)?;
                report = Some(
                    catamount_report::report(host.folder)
                        .map_err(|error| fail(error.to_string()))?,
                );
            }
            StepKind::Cell { .. } => {}
        }
        // A step that was cut short has said so itself; one that came to its end is done, whatever
        // was pressed meanwhile.
        stamp::finish(host.folder, step, started.elapsed().as_secs_f64())?;
        rest = &rest[1..];
    }
    Ok(report)
}

/// Searches cells that share a model, the first of which is step `number` of the plan.
fn search<B: Backend>(
    experiment: &Experiment,
    plan: &Plan,
    host: &Host<'_, B>,
    sampler: &mut Sampler<B>,
    group: &[Step],
    number: usize,
) -> Result<()> {
    for step in group {
        stamp::begin(host.folder, step, &steps::files(step))?;
    }
    let mut ended = |step: &Step, run: &CellRun| {
        let number = number + group.iter().position(|other| other.name == step.name).unwrap_or(0);
        (host.say)(&format!("[{number}/{}] {}", plan.steps.len(), step.name));
        let (theorems, proved, errors) =
            (run.records.len(), run.count(Outcome::Proved), run.count(Outcome::Error));
        let share = 100.0 * proved as f64 / theorems.max(1) as f64;
        (host.say)(&format!(
            "  {proved} of {theorems} proved ({share:.1} %), {errors} errors; {}",
            run.spent
        ));
        if errors > 0 {
            // Not done: the same command tries them again.
            (host.say)("  run the same command again to retry the errors");
            return Ok(());
        }
        stamp::finish(host.folder, step, run.spent.total)
    };
    cells::cells(experiment, host, sampler, group, &mut ended)
}

/// What the report says about how the study was made.
fn write_plan<B: Backend>(experiment: &Experiment, plan: &Plan, host: &Host<'_, B>) -> Result<()> {
    let cells: Vec<_> = plan
        .steps
        .iter()
        .filter_map(|step| match &step.kind {
            StepKind::Cell { objective, strategy, budget, .. } => {
                Some(json!({ "objective": objective, "strategy": strategy, "budget": budget }))
            }
            _ => None,
        })
        .collect();
    let data = plan.step("data").map(|step| step.key.clone());
    let text = json!({
        "title": experiment.name,
        "command": host.command,
        "commit": host.commit,
        "seeds": { "experiment": experiment.seed, "warm_up": experiment.warm_up.seed, "branch": experiment.branch.seed },
        "data_hash": data,
        "versions": { "catamount": env!("CARGO_PKG_VERSION"), "environment": host.environment.describe(), "device": host.backend.describe() },
        "cells": cells,
        "experiment": experiment,
    });
    let path = host.folder.join("plan.json");
    std::fs::write(&path, serde_json::to_string_pretty(&text).expect("plain data"))
        .map_err(Error::io(&path))
}
