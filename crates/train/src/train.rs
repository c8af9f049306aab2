//! The run: from wherever it stands to its last step.

use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_base::{AtomicFolder, Progress, complain};
use catamount_model::{Backend, Model};

use crate::checkpoint::{Checkpoint, Identity, Position};
use crate::metrics::{Measurement, Metrics, Window};
use crate::score::check_rows;
use crate::step::Stepper;
use crate::weights::Table;
use crate::{Dataset, Error, Plan, Recipe, Refresh, Result, Validation, Weigh};

/// Where a run writes and how it behaves.
#[derive(Clone, Debug)]
pub struct Run<'a> {
    /// `FOLDER/NAME.metrics.jsonl` gets the metrics, `FOLDER/NAME/` TensorBoard's events and the
    /// checkpoints.
    pub folder: &'a Path,
    /// `warm-up`, or the branch's objective.
    pub name: &'a str,
    /// Continues from the newest sound checkpoint where there is one; without, a run that already
    /// has checkpoints is refused.
    pub resume: bool,
    /// Shows a bar on the terminal.
    pub progress: bool,
    /// Set from elsewhere (Ctrl-C): the step in progress is finished, the state saved.
    pub stop: &'a AtomicBool,
    /// Held-out traces, on which the model is measured now and then.
    pub validation: Option<&'a Dataset>,
    /// What the model was before the first step, by content, where that is known: a run goes on
    /// from its checkpoints with this one only.
    pub begun_from: Option<String>,
}

impl<'a> Run<'a> {
    /// A quiet run that does not resume.
    pub fn new(folder: &'a Path, name: &'a str, stop: &'a AtomicBool) -> Self {
        let (resume, progress, validation, begun_from) = (false, false, None, None);
        Run { folder, name, resume, progress, stop, validation, begun_from }
    }

    /// The same run, continued from its newest checkpoint if it has one.
    pub fn resuming(self, resume: bool) -> Self {
        Run { resume, ..self }
    }

    /// The same run, with a bar on the terminal.
    pub fn showing(self, progress: bool) -> Self {
        Run { progress, ..self }
    }

    /// The same run, measured on held-out traces too: as often as the recipe says, and at its end.
    pub fn validating(self, validation: Option<&'a Dataset>) -> Self {
        Run { validation, ..self }
    }

    /// The same run, of a model that is this one before the first step.
    pub fn begun_from(self, model: Option<String>) -> Self {
        Run { begun_from: model, ..self }
    }

    /// Where the checkpoints are.
    pub fn checkpoints(&self) -> PathBuf {
        self.folder.join(self.name).join("checkpoints")
    }

    /// Work of this run on display, unless nobody wants to see it.
    pub(crate) fn bar(&self, name: &str, unit: &str, items: usize) -> Progress {
        match self.progress {
            true => Progress::new(items as u64, unit).named(name),
            false => Progress::hidden(),
        }
    }

    /// What was last measured on held-out traces, by this process or by one before it.
    pub fn measured(&self) -> Option<Validation> {
        let lines = fs::read_to_string(self.metrics()).ok()?;
        let measured = |line| serde_json::from_str::<Measurement>(line).ok()?.valid;
        lines.lines().rev().find_map(measured)
    }

    /// Where the metrics are.
    pub fn metrics(&self) -> PathBuf {
        self.folder.join(format!("{}.metrics.jsonl", self.name))
    }
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// All steps are done.
    Finished(Summary),
    /// It was asked to stop, and can be resumed.
    Interrupted(Summary),
}

impl Outcome {
    /// What it did.
    pub fn summary(&self) -> &Summary {
        match self {
            Outcome::Finished(summary) | Outcome::Interrupted(summary) => summary,
        }
    }
}

/// What a run did, over all its processes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Summary {
    /// Optimizer steps done.
    pub step: usize,
    /// Optimizer steps of the whole run.
    pub steps: usize,
    /// Traces in the data.
    pub traces: usize,
    /// Examples in the data.
    pub examples: usize,
    /// Examples that were too long.
    pub dropped: usize,
    /// Traces that lost examples to that.
    pub shortened: usize,
    /// Traces trained on, over all epochs, that no search within the budget could find.
    pub infeasible: usize,
    /// Micro-batches, traces and updates that were left out since they were not finite.
    pub skipped: usize,
    /// The last line of metrics that this process wrote.
    pub last: Option<Measurement>,
}

/// Trains a model that [`crate::prepare`] made ready. Warm-up and branch are the same thing: a
/// warm-up's objective is cross-entropy, a branch starts from the warm-up's parameters. The same
/// data and recipe give the same order of data whatever the objective.
pub fn train<B: Backend>(
    model: &mut Model<B>,
    data: &Dataset,
    objective: &dyn Weigh,
    recipe: &Recipe,
    run: &Run<'_>,
) -> Result<Outcome> {
    recipe.check()?;
    let plan = Plan::new(data, recipe);
    let folder = run.checkpoints();
    fs::create_dir_all(&folder).map_err(Error::file(&folder))?;
    let identity = Identity::new(data, objective, recipe, run.begun_from.clone());
    let latest = Checkpoint::latest(&folder, &mut |damage| {
        complain(format_args!("warning: {damage}; going on from the one before\n"));
    })?;
    if let Some(checkpoint) = &latest {
        if !run.resume {
            let reason = "a run was begun here; resume it, or choose another folder";
            return Err(Error::checkpoint(checkpoint.folder(), reason));
        }
        checkpoint.check(&identity)?;
        checkpoint.restore_parameters(model)?;
    }
    AtomicFolder::sweep(&folder).map_err(Error::file(&folder))?;

    let mut stepper = Stepper::new(model, data, objective, recipe)?;
    if let Some(validation) = run.validation {
        check_rows(stepper.model, validation, recipe.batch.tokens)?;
    }
    let mut table = Table::new(data);
    let mut position = Position { identity, ..Position::default() };
    if let Some(checkpoint) = latest {
        checkpoint.restore_moments(stepper.model, &mut stepper.moments)?;
        table = checkpoint.scores(data.examples())?.unwrap_or(table);
        position = checkpoint.position;
    }
    let metrics = Metrics::open(&run.metrics(), &run.folder.join(run.name), position.step)?;
    Session { stepper, plan, table, position, metrics, run, last: None }.run()
}

/// A run in progress.
struct Session<'a, B: Backend> {
    stepper: Stepper<'a, B>,
    plan: Plan,
    table: Table,
    position: Position,
    metrics: Metrics,
    run: &'a Run<'a>,
    last: Option<Measurement>,
}

impl<B: Backend> Session<'_, B> {
    fn run(mut self) -> Result<Outcome> {
        let steps = self.plan.steps();
        let (data, objective, recipe) =
            (self.stepper.data, self.stepper.objective, self.stepper.recipe);
        let bar = self.run.bar(self.run.name, "steps", steps);
        bar.resumed_at(self.position.step as u64);
        let mut window = Window::new();
        while self.position.step < steps {
            let step = self.position.step;
            if let Some(span) = self.due(step)
                && !self.refresh(span)?
            {
                // The scores that were not finished are made again by whoever resumes.
                if step > 0 {
                    self.save()?;
                }
                return Ok(Outcome::Interrupted(self.summary()));
            }
            let tally = self.stepper.step(step, steps, self.plan.step(step), &mut self.table)?;
            self.position.step += 1;
            self.position.skipped += tally.skipped;
            self.position.infeasible += tally.infeasible;
            window.add(&tally);
            let (step, stopped) = (self.position.step, self.run.stop.load(Ordering::Relaxed));
            let every = recipe.checkpoints.every;
            let saving = stopped || step == steps || (every > 0 && step.is_multiple_of(every));
            let validating = self.run.validation.filter(|_| self.validates(step));
            // A line ends at every checkpoint, so that a resumed run's lines are those of the
            // uninterrupted one.
            if saving || validating.is_some() || step.is_multiple_of(recipe.log_every) {
                let epoch = self.plan.epochs_before(step);
                let mut line = window.measure(objective, data, step, steps, epoch);
                line.valid =
                    validating.map(|held_out| self.stepper.validate(held_out)).transpose()?;
                self.metrics.write(&line)?;
                let pace = catamount_base::rate(line.tokens_per_s);
                bar.set_message(format!("loss {:.4} · tokens at {pace}", line.loss));
                self.last = Some(line);
            }
            bar.set_position(step as u64);
            if saving {
                self.save()?;
            }
            if stopped && step < steps {
                bar.finish();
                return Ok(Outcome::Interrupted(self.summary()));
            }
        }
        bar.finish();
        Ok(Outcome::Finished(self.summary()))
    }

    /// Whether the model is measured on held-out traces after so many steps: every so many, or
    /// after each epoch, and at the end.
    fn validates(&self, step: usize) -> bool {
        let ends_epoch = || {
            let [before, after] = [step - 1, step].map(|s| self.plan.epochs_before(s).floor());
            before < after
        };
        step == self.plan.steps()
            || match self.stepper.recipe.validate_every {
                0 => ends_epoch(),
                every => step.is_multiple_of(every),
            }
    }

    /// The steps whose traces must be scored before this step, if any.
    fn due(&self, step: usize) -> Option<Range<usize>> {
        if !self.stepper.objective.depends_on_p() || self.stepper.data.given().is_some() {
            return None;
        }
        match self.stepper.recipe.weights.refresh {
            Refresh::Online => None,
            Refresh::Frozen => (step == 0).then_some(0..self.plan.steps()),
            Refresh::Every(k) => step.is_multiple_of(k).then_some(step..step + k),
        }
    }

    /// Scores the traces of these steps at the current parameters; false where it was asked to
    /// stop.
    fn refresh(&mut self, span: Range<usize>) -> Result<bool> {
        let traces = self.plan.span(span);
        let mut distinct = traces.to_vec();
        distinct.sort_unstable();
        distinct.dedup();
        let examples = distinct.iter().map(|t| self.stepper.data.trace(*t as usize).len()).sum();
        let bar = self.run.bar(&format!("{} · scoring", self.run.name), "tactics", examples);
        let stop = self.run.stop;
        let finished = self.stepper.score(traces, &mut self.table, &mut |n| {
            bar.advance(n as u64);
            !stop.load(Ordering::Relaxed)
        })?;
        bar.finish();
        Ok(finished)
    }

    fn save(&mut self) -> Result<()> {
        let Stepper { model, moments, data, objective, recipe, .. } = &self.stepper;
        self.position.updates = moments.updates;
        let kept = objective.depends_on_p()
            && data.given().is_none()
            && recipe.weights.refresh != Refresh::Online;
        let scores = kept.then_some(&self.table);
        let folder = self.run.checkpoints();
        Checkpoint::write(
            &folder,
            model,
            moments,
            scores,
            self.position.clone(),
            recipe.checkpoints.keep,
        )?;
        Ok(())
    }

    fn summary(&self) -> Summary {
        let data = self.stepper.data;
        Summary {
            step: self.position.step,
            steps: self.plan.steps(),
            traces: data.len(),
            examples: data.examples(),
            dropped: data.dropped(),
            shortened: data.shortened(),
            infeasible: self.position.infeasible,
            skipped: self.position.skipped,
            last: self.last.clone(),
        }
    }
}
