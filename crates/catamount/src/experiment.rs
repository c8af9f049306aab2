//! `catamount run` and `catamount train`: a study from one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::Result;
use catamount_data::{Library, Making, Source};
use catamount_experiment::{Experiment, Host, PRESETS, Plan, StepKind, preset};
use catamount_model::Backend;
use catamount_search::Environment;
use catamount_traces::Steps;

use crate::device::{Device, OnDevice};
use crate::{command, model, progress, stop};

#[derive(clap::Args)]
pub struct Arguments {
    /// An experiment's file, or a preset: demo, metamath, lean-demo, paper-matrix, paper-sweep,
    /// paper-matching, paper-priors.
    experiment: String,
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
}

pub fn run(arguments: &Arguments, training_only: bool) -> Result<()> {
    let path = Path::new(&arguments.experiment);
    if arguments.print
        && let Some((.., text)) = PRESETS.iter().find(|(name, ..)| *name == arguments.experiment)
    {
        print!("{text}");
        return Ok(());
    }
    let experiment =
        if path.exists() { Experiment::read(path)? } else { preset(&arguments.experiment)? };
    let stem =
        path.file_stem().map_or_else(|| "study".into(), |stem| stem.to_string_lossy().into_owned());
    let folder = arguments.out.clone().unwrap_or_else(|| PathBuf::from("runs").join(stem));
    let library = folder.join("library");
    let mut plan = Plan::new(&experiment, &source(&experiment.data, &library).hash()?);
    if training_only {
        plan.steps.retain(|step| !matches!(step.kind, StepKind::Cell { .. } | StepKind::Report));
    }
    if arguments.dry_run {
        print!("{}", plan.describe(&experiment, &folder));
        return Ok(());
    }
    let report = arguments.device.run(Study {
        experiment: &experiment,
        plan: &plan,
        folder: &folder,
        library: &library,
    })?;
    if let Some(report) = report {
        show(&report);
    }
    Ok(())
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

/// Where an experiment's traces come from.
fn source(data: &catamount_experiment::Data, library: &Path) -> Source {
    match (&data.database, &data.traces) {
        (_, Some(traces)) => Source::Traces(traces.clone()),
        (Some(database), None) => Source::Metamath { database: database.into(), first: data.first },
        (None, None) => Source::LeanBundled { folder: library.to_path_buf() },
    }
}

struct Study<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    folder: &'a Path,
    library: &'a Path,
}

impl OnDevice for Study<'_> {
    type Output = Option<catamount_report::Report>;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Self::Output> {
        let environment = self.environment()?;
        let data = |out: &Path| self.data(out).map_err(|error| format!("{error:#}"));
        let load = |name: &str, trained: bool| {
            model::by_name(name, &backend, trained).map_err(|error| format!("{error:#}"))
        };
        let host = Host {
            backend: Arc::clone(&backend),
            environment,
            data: &data,
            load: &load,
            folder: self.folder,
            stop: stop::on_interrupt(),
            // Lean's processes do the work: a thread for each search in flight keeps all of them
            // busy.
            threads: if self.experiment.data.environment == "metamath" {
                rayon::current_num_threads()
            } else {
                self.experiment.evaluation.concurrency
            },
            command: command::line(),
            commit: command::commit(),
            say: &|text| eprintln!("{text}"),
        };
        match catamount_experiment::run(self.experiment, self.plan, &host) {
            Err(catamount_experiment::Error::Interrupted) => {
                eprintln!("interrupted; run the same command again to go on");
                std::process::exit(130);
            }
            result => Ok(result?),
        }
    }
}

impl Study<'_> {
    fn environment(&self) -> Result<Arc<dyn Environment>> {
        let data = &self.experiment.data;
        let library = match (&data.database, &data.project) {
            (Some(database), _) => Library::Metamath { database: database.into() },
            (None, Some(project)) => Library::LeanProject { project: project.clone() },
            (None, None) => Library::LeanBundled { folder: self.library.to_path_buf() },
        };
        Ok(library.open()?)
    }

    fn data(&self, out: &Path) -> Result<()> {
        let making = Making {
            source: source(&self.experiment.data, self.library),
            origin: None,
            steps: self.lengths(),
            split: self.experiment.data.split,
            seed: self.experiment.seed,
        };
        let bar = progress::bar(0, "theorems");
        let summary = making.write(out, &mut |done, total| {
            bar.set_length(total as u64);
            bar.set_position(done as u64);
        })?;
        bar.finish_and_clear();
        eprintln!("{summary}");
        Ok(())
    }

    /// Lengths that either training or evaluation asks for.
    fn lengths(&self) -> Steps {
        let (train, search) = (self.experiment.data.steps, self.experiment.evaluation.steps);
        let max = train.max.zip(search.max).map(|(a, b)| a.max(b));
        Steps { min: train.min.min(search.min), max }
    }
}
