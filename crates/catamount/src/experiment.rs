//! `catamount run` and `catamount train`: a study from one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use catamount_experiment::{
    Error, Experiment, PRESETS, Plan, Study, preset, run as run_study, schema,
};
use catamount_model::Backend;

use crate::device::{Device, OnDevice};
use crate::{command, stop};

#[derive(clap::Args)]
pub struct Arguments {
    /// An experiment's file, or a preset: demo, metamath, lean-demo, paper-matrix, paper-sweep,
    /// paper-matching, paper-priors.
    #[arg(required_unless_present = "schema")]
    experiment: Option<String>,
    /// Folder of the study; named after the experiment if not given.
    #[arg(long)]
    out: Option<PathBuf>,
    /// auto, cpu or cuda:0.
    #[arg(long, default_value = "auto")]
    device: Device,
    /// Print the plan, with what is up to date and what the rest costs, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print the experiment's file (to start one of your own from a preset) and do nothing.
    #[arg(long)]
    print: bool,
    /// Print the JSON Schema of an experiment's file, for editors, and do nothing.
    #[arg(long)]
    schema: bool,
    /// Take the word of the stamps for what is done, without comparing it with the files.
    #[arg(long)]
    no_verify: bool,
}

pub fn run(arguments: &Arguments, training_only: bool) -> Result<()> {
    if arguments.schema {
        print!("{}", schema());
        return Ok(());
    }
    let name = arguments.experiment.as_deref().unwrap_or_default();
    let path = Path::new(name);
    if arguments.print {
        print!("{}", text(name, path)?);
        return Ok(());
    }
    let experiment = if path.exists() { Experiment::read(path)? } else { preset(name)? };
    let stem =
        path.file_stem().map_or_else(|| "study".into(), |stem| stem.to_string_lossy().into_owned());
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(stem));
    let source = experiment.making(&folder).source.hash();
    if arguments.dry_run {
        // A plan can be looked at before its data are there.
        let source = source.unwrap_or_else(|error| {
            println!("missing: {:#}", anyhow::Error::new(error));
            String::new()
        });
        let plan = plan(&experiment, &source, training_only)?;
        print!("{}", plan.describe(&experiment, &folder));
        return Ok(());
    }
    let plan = plan(&experiment, &source?, training_only)?;
    let verify = !arguments.no_verify;
    let report = arguments.device.run(Job { experiment, plan, folder, verify })?;
    if let Some(report) = report {
        show(&report);
    }
    Ok(())
}

fn plan(experiment: &Experiment, source: &str, training_only: bool) -> Result<Plan> {
    let plan = Plan::new(experiment, source)?;
    Ok(if training_only { plan.training_only() } else { plan })
}

/// An experiment's file as it stands.
fn text(name: &str, path: &Path) -> Result<String> {
    if path.exists() {
        Experiment::read(path)?;
        return Ok(std::fs::read_to_string(path)?);
    }
    let known = PRESETS.iter().find(|(known, ..)| *known == name);
    match known {
        Some((.., text)) => Ok((*text).to_string()),
        None => preset(name).map(|_| String::new()).map_err(Into::into),
    }
}

/// The first table, what is missing, and where the rest is.
pub fn show(report: &catamount_report::Report) {
    if let Some(table) = report.tables.first() {
        println!("\n{}", table.to_text());
    }
    for missing in &report.missing {
        println!("missing: {missing}");
    }
    for note in &report.notes {
        println!("note: {note}");
    }
    println!("report: {}", report.page.display());
}

struct Job {
    experiment: Experiment,
    plan: Plan,
    folder: PathBuf,
    verify: bool,
}

impl OnDevice for Job {
    type Output = Option<catamount_report::Report>;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Self::Output> {
        let provenance = command::provenance();
        let stop = stop::on_interrupt();
        let study = Study::open(&self.experiment, &self.folder, backend, stop, provenance)?;
        match run_study(&study, &self.plan, self.verify) {
            Err(Error::Interrupted) => {
                eprintln!("interrupted; run the same command again to go on");
                std::process::exit(130);
            }
            result => Ok(result?),
        }
    }
}
