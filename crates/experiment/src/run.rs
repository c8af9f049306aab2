//! Does what is not up to date.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use catamount_model::{Backend, Model, Tokenizer};
use catamount_report::Report;
use catamount_search::Environment;
use serde_json::json;

use crate::config::Experiment;
use crate::error::{Error, Result};
use crate::plan::{Plan, Step, StepKind};
use crate::{stamp, steps};

/// Loads a model by name.
pub type Load<'a, B> = dyn Fn(&str, bool) -> std::result::Result<(Model<B>, Tokenizer), String> + 'a;

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
pub fn run<B: Backend>(experiment: &Experiment, plan: &Plan, host: &Host<'_, B>) -> Result<Option<Report>> {
    std::fs::create_dir_all(host.folder).map_err(Error::io(host.folder))?;
    let outstanding: Vec<Step> = plan.outstanding(host.folder).into_iter().cloned().collect();
    let done = plan.steps.len() - outstanding.len();
    if done > 0 {
        (host.say)(&format!("{done} of {} steps are up to date", plan.steps.len()));
    }
    write_plan(experiment, plan, host)?;
    let mut report = None;
    for (index, step) in outstanding.iter().enumerate() {
        if host.stop.load(Ordering::Relaxed) {
            return Err(Error::Interrupted);
        }
        (host.say)(&format!("[{}/{}] {}", done + index + 1, plan.steps.len(), step.name));
        stamp::begin(host.folder, step, &steps::files(step))?;
        let started = Instant::now();
        let fail = Error::step(&step.name);
        match &step.kind {
            StepKind::Data => (host.data)(&host.folder.join("data")).map_err(fail)?,
            StepKind::WarmUp => steps::warm_up(experiment, host, &step.name)?,
            StepKind::Branch { choice, budget } => steps::branch(experiment, host, &step.name, choice, *budget)?,
            StepKind::OffTrace { strategy, budget } => steps::off_trace(experiment, host, &step.name, strategy, *budget)?,
            StepKind::Cell { branch, objective, strategy, budget } => {
                steps::cell(experiment, host, &step.name, &steps::CellStep { branch, objective, strategy, budget: *budget })?;
            }
            StepKind::Report => {
                report = Some(catamount_report::report(host.folder).map_err(|error| fail(error.to_string()))?);
            }
        }
        // A step that was cut short has said so itself; one that came to its end is done, whatever was pressed meanwhile.
        stamp::finish(host.folder, step, started.elapsed().as_secs_f64())?;
    }
    Ok(report)
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
    std::fs::write(&path, serde_json::to_string_pretty(&text).expect("plain data")).map_err(Error::io(&path))
}
