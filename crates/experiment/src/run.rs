//! Does what is not up to date.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Instant;

use catamount_base::{Lock, Progress};
use catamount_evaluate::CellRun;
use catamount_evaluate::log::Outcome;
use catamount_model::Backend;
use catamount_report::{PLAN, PlannedCell, Report, Seeds, StudyPlan, report};

use crate::cells::{self, Sampler};
use crate::error::{Error, Result, Work};
use crate::plan::Plan;
use crate::planned::Planned;
use crate::stamp::{Stamps, State};
use crate::step::{Step, Trained, data};
use crate::study::{Study, say, sweep};
use crate::{calibrating, pools, scores, time, training, tuning};

/// Runs a study to its report; none if the plan has no such step. Where searches of cells ended in
/// errors, the rest is done, the report too, and the study is [`Error::Unfinished`]. With `verify`,
/// whatever is called done is compared with the hashes of its outputs first, and made again where
/// it was damaged.
pub fn run<B: Backend>(study: &Study<'_, B>, plan: &Plan, verify: bool) -> Result<Option<Report>> {
    let stamps = Stamps::new(study.folder);
    let outstanding = outstanding(&stamps, plan, verify)?;
    write_plan(study, plan)?;
    // Whoever only wants the report again does not need the data again.
    let wanted = |step: &Step| !matches!(step, Step::Data | Step::Report);
    let made = outstanding.iter().all(|planned| planned.step != Step::Data);
    if made && outstanding.iter().any(|planned| wanted(&planned.step)) {
        pools::check(study, plan).map_err(|failure| failure.in_step("data"))?;
    }
    Runner::new(study, plan).run(&outstanding)
}

/// Makes a study's folder ready for processes that do its steps: damaged outputs and those of other
/// settings are moved out of the way, so that afterwards every process writes its own files only.
/// Nothing is computed.
pub fn prepare(folder: &Path, plan: &Plan, verify: bool) -> Result<()> {
    let _lock = Lock::take(folder)?;
    sweep(folder)?;
    let stamps = Stamps::new(folder);
    for planned in outstanding(&stamps, plan, verify)? {
        if planned.step != Step::Report && stamps.begin(planned)? {
            say(format!("{}: taken back from stale/", planned.name));
        }
    }
    Ok(())
}

/// Does exactly these steps of a plan, in its order; what they need must be there. What is done
/// already is not done again. With `verify`, both are compared with the hashes in their stamps.
pub fn run_steps<B: Backend>(
    study: &Study<'_, B>,
    plan: &Plan,
    steps: &[&Planned],
    verify: bool,
) -> Result<Option<Report>> {
    let stamps = Stamps::new(study.folder);
    let mut outstanding = Vec::new();
    for planned in steps {
        if planned.step == Step::Report {
            // It shows what there is, and says what is missing.
            write_plan(study, plan)?;
            calibrating::collect(study, plan).map_err(|failure| failure.in_step("report"))?;
            outstanding.push(*planned);
            continue;
        }
        for needed in plan.needs(planned).filter(|needed| !steps.contains(needed)) {
            let why = match stamps.state(needed, verify) {
                State::Done => continue,
                State::Outstanding => "not done".to_string(),
                State::Damaged(damage) => format!("damaged ({})", damage[0]),
            };
            let (step, needed) = (planned.name.clone(), needed.name.clone());
            return Err(Error::Unready { step, needed, why });
        }
        if is_outstanding(&stamps, planned, verify)? {
            outstanding.push(*planned);
        }
    }
    Runner::new(study, plan).run(&outstanding)
}

/// What is not done, or not any more.
fn outstanding<'a>(stamps: &Stamps<'_>, plan: &'a Plan, verify: bool) -> Result<Vec<&'a Planned>> {
    let mut outstanding = Vec::new();
    for planned in &plan.steps {
        // A report takes seconds and is always made anew.
        if planned.step == Step::Report || is_outstanding(stamps, planned, verify)? {
            outstanding.push(planned);
        }
    }
    let done = plan.steps.len() - outstanding.len();
    if done > 0 {
        say(format!("{done} of {} steps are up to date", plan.steps.len()));
    }
    Ok(outstanding)
}

/// Whether a step is not done, or not any more: what is damaged is moved away, to be made again.
fn is_outstanding(stamps: &Stamps<'_>, planned: &Planned, verify: bool) -> Result<bool> {
    match stamps.state(planned, verify) {
        State::Done => Ok(false),
        State::Outstanding => Ok(true),
        State::Damaged(damage) => {
            for damage in &damage {
                say(format!("{damage}; {} is made again", planned.name));
            }
            stamps.replace(planned, &damage)?;
            Ok(true)
        }
    }
}

/// A run in progress.
struct Runner<'a, B: Backend> {
    study: &'a Study<'a, B>,
    plan: &'a Plan,
    stamps: Stamps<'a>,
    sampler: Sampler<B>,
    report: Option<Report>,
    /// Searches of cells that ended in errors: the study goes on without them, and is not done.
    unfinished: usize,
}

impl<'a, B: Backend> Runner<'a, B> {
    fn new(study: &'a Study<'a, B>, plan: &'a Plan) -> Self {
        let (stamps, sampler) = (Stamps::new(study.folder), Sampler::default());
        Runner { study, plan, stamps, sampler, report: None, unfinished: 0 }
    }

    fn run(mut self, outstanding: &[&Planned]) -> Result<Option<Report>> {
        let limited = self.study.experiment.evaluation.theorem_time_limit.is_some();
        let mut rest = outstanding.to_vec();
        while let Some(&planned) = rest.first() {
            if self.study.stop.load(Ordering::Relaxed) {
                return Err(Error::Interrupted);
            }
            if let Some(trained) = cells::sampled(&planned.step) {
                let places = cells::together(limited, &rest);
                let group: Vec<&Planned> = places.iter().map(|&place| rest[place]).collect();
                self.search(&trained, &group)?;
                rest.retain(|planned| !group.contains(planned));
            } else {
                // What comes now may want the device's memory for itself.
                self.sampler = Sampler::default();
                self.step(planned)?;
                rest.remove(0);
            }
        }
        match self.unfinished {
            0 => Ok(self.report),
            count => Err(Error::Unfinished { count }),
        }
    }

    fn announce(&self, planned: &Planned) {
        let number = self.plan.steps.iter().position(|other| other == planned).unwrap_or(0) + 1;
        say(format!("[{number}/{}] {}", self.plan.steps.len(), planned.name));
    }

    /// Begins a step; false if there is nothing left to do for it.
    fn begin(&self, planned: &Planned) -> Result<bool> {
        let done = self.stamps.begin(planned)?;
        if done {
            self.announce(planned);
            say("  taken back from stale/");
        }
        Ok(!done)
    }

    fn step(&mut self, planned: &Planned) -> Result<()> {
        if !self.begin(planned)? {
            return Ok(());
        }
        self.announce(planned);
        let started = Instant::now();
        self.work(&planned.step).map_err(|failure| failure.in_step(&planned.name))?;
        // A step that was cut short has said so itself; one that came to its end is done, whatever
        // was pressed meanwhile.
        self.stamps.finish(planned, started.elapsed().as_secs_f64())
    }

    fn work(&mut self, step: &Step) -> Work<()> {
        let study = self.study;
        match step {
            Step::Data => {
                let bar = Progress::new(0, "theorems");
                let making = study.experiment.making(study.folder);
                let summary = making.write(&study.path(data()), &mut |done, total| {
                    bar.set_length(total as u64);
                    bar.set_position(done as u64);
                })?;
                bar.finish();
                say(summary.to_string());
                pools::check(study, self.plan)
            }
            Step::WarmUp => training::warm_up(study),
            Step::Fold(fold) => scores::fold(study, *fold),
            Step::Scores(scoring) => scores::scores(study, scoring),
            Step::Branch(branch) => training::branch(study, branch),
            Step::Calibration(fit) => calibrating::fit(study, self.plan, fit),
            Step::Tournament(tournament) => tuning::tournament(study, tournament),
            Step::Chosen(chosen) => tuning::chosen(study, self.plan, chosen),
            Step::Report => {
                time::write(self.plan, study.folder)?;
                self.report = Some(report(study.folder)?);
                Ok(())
            }
            // Searched in groups.
            Step::Cell(_) | Step::Trial(_) => Ok(()),
        }
    }

    /// Searches cells or trials that share a model.
    fn search(&mut self, trained: &Trained, group: &[&Planned]) -> Result<()> {
        let mut begun = Vec::new();
        for planned in group {
            if self.begin(planned)? {
                begun.push(*planned);
            }
        }
        let Some(first) = begun.first() else { return Ok(()) };
        let fail = |failure: crate::error::Failure| failure.in_step(&first.name);
        let mut searches = Vec::new();
        for planned in &begun {
            let task = cells::task(self.study, self.plan, &planned.step);
            searches.extend(task.map_err(fail)?);
        }
        let mut sampler = std::mem::take(&mut self.sampler);
        let mut unfinished = 0;
        // They are searched side by side: counted from the one before, their seconds add up to
        // those of the whole, which estimates and plans rest on.
        let mut before = Instant::now();
        let mut ended = |index: usize, run: &CellRun| {
            let planned = begun[index];
            self.announce(planned);
            let errors = run.count(Outcome::Error);
            let (theorems, proved) = (run.records.len(), run.count(Outcome::Proved));
            let share = 100.0 * proved as f64 / theorems.max(1) as f64;
            say(format!(
                "  {proved} of {theorems} proved ({share:.1} %), {errors} errors; {}",
                run.timing
            ));
            if errors > 0 && matches!(planned.step, Step::Trial(_)) {
                // What is fitted to them would rest on less than it says.
                return Err(Error::Unfinished { count: errors });
            }
            if errors > 0 {
                // Not done: the same command tries them again.
                unfinished += errors;
                say("  run the same command again to retry the errors");
                return Ok(());
            }
            let seconds = before.elapsed().as_secs_f64();
            before = Instant::now();
            self.stamps.finish(planned, seconds)
        };
        sampler.search(self.study, trained, &searches, &mut ended).map_err(fail)?;
        self.sampler = sampler;
        self.unfinished += unfinished;
        Ok(())
    }
}

/// What the report says about how the study was made.
fn write_plan<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Result<()> {
    let experiment = study.experiment;
    let cell = |cell: &crate::step::Cell| PlannedCell {
        objective: cell.objective.clone(),
        strategy: cell.deployment.strategy().to_string(),
        budget: cell.deployment.budget(),
        seed: Some(experiment.seed),
        log: Some(cell.log()),
    };
    let chosen = plan.steps.iter().filter_map(|planned| match &planned.step {
        Step::Chosen(chosen) => Some(PlannedCell {
            objective: chosen.objective.clone(),
            strategy: chosen.tournament.deployment.strategy().to_string(),
            budget: chosen.tournament.deployment.budget(),
            seed: Some(experiment.seed),
            log: Some(chosen.log()),
        }),
        _ => None,
    });
    let versions = [
        ("catamount", env!("CARGO_PKG_VERSION").to_string()),
        ("environment", study.environment.describe()),
        ("device", study.backend.describe()),
    ];
    let data = plan.steps.iter().find(|planned| planned.step == Step::Data);
    let mut file = experiment.file.clone();
    if let Some(policy) = &mut file.policy {
        policy.url = catamount_base::shown(&policy.url);
    }
    let written = StudyPlan {
        title: Some(experiment.name.clone()),
        command: Some(study.provenance.command.clone()),
        commit: study.provenance.commit.clone(),
        seeds: Some(Seeds {
            experiment: experiment.seed,
            warm_up: experiment.warm_up.seed,
            branch: experiment.branch.seed,
        }),
        data_hash: data.map(|planned| planned.key.clone()),
        versions: versions.into_iter().map(|(name, text)| (name.to_string(), text)).collect(),
        cells: plan.cells().map(cell).chain(chosen).collect(),
        experiment: serde_json::to_value(&file).unwrap_or_default(),
    };
    let path = study.path(PLAN);
    let text = serde_json::to_vec_pretty(&written).unwrap_or_default();
    catamount_base::write(&path, text).map_err(Error::io(&path))
}
