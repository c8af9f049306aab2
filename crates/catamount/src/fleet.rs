//! Studies by several processes at once. Which steps can begin is the schedule's to say; where they
//! run is a crew's.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use catamount_base::{Lock, LockError};
use catamount_experiment::{
    Error, Experiment, Kind, Outline, OutlinedStep, Plan, Schedule, Task, prepare,
};

use crate::stop;

/// How long processes of an earlier scheduler may take to notice that it is gone.
const PATIENCE: Duration = Duration::from_secs(60);

/// The exit status of a process whose task is done but for searches that ended in errors: nothing
/// else has to wait for these.
pub const UNFINISHED: i32 = 3;

/// Those who do tasks.
pub trait Crew {
    /// How many tasks they do at once.
    fn slots(&self) -> usize;
    /// Hands them a task of a study, by its place among the studies, to be begun as soon as there
    /// is room.
    fn begin(&mut self, number: usize, study: usize, task: &Task) -> Result<()>;
    /// Waits until a task has ended; none if it is time to look at the world again.
    fn wait(&mut self) -> Result<Option<Ended>>;
    /// Asks them to stop: tasks in hand are saved.
    fn stop(&mut self);
}

/// A task that has ended.
pub struct Ended {
    /// Its number.
    pub number: usize,
    /// Where it ran.
    pub place: String,
    /// Seconds that it took there.
    pub seconds: f64,
    /// What it printed, or why it failed.
    pub result: std::result::Result<String, String>,
    /// Whether some of its searches ended in errors.
    pub unfinished: bool,
}

/// A study to be done by a crew.
pub struct Work<'a> {
    /// The experiment.
    pub experiment: &'a Experiment,
    /// Its plan.
    pub plan: &'a Plan,
    /// The study's folder.
    pub folder: &'a Path,
    /// How its steps are done.
    pub invocation: Invocation,
}

/// The arguments of `catamount step` that are the same for all tasks of a study.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The experiment's file, with its whole path, or a preset.
    pub experiment: String,
    /// The study's folder, with its whole path.
    pub folder: PathBuf,
    /// Which of the experiment's seeds, where it has several.
    pub seed: Option<u64>,
}

impl Invocation {
    /// The whole command line, without the program.
    pub fn arguments(&self, device: &str, task: &Task) -> Vec<String> {
        let mut arguments = self.common();
        arguments.extend(["--device".to_string(), device.to_string(), "--tied".to_string()]);
        // Whoever claimed the study has looked at all of it.
        arguments.push("--no-verify".to_string());
        for id in &task.steps {
            arguments.extend(["--only".to_string(), id.clone()]);
        }
        arguments
    }

    /// The command line that asks a machine what it has.
    pub fn probe(&self) -> Vec<String> {
        let mut arguments = self.common();
        arguments.push("--probe".to_string());
        arguments
    }

    fn common(&self) -> Vec<String> {
        let folder = self.folder.display().to_string();
        let mut arguments = vec!["step".to_string(), self.experiment.clone()];
        arguments.extend(["--out".to_string(), folder]);
        if let Some(seed) = self.seed {
            arguments.extend(["--seed".to_string(), seed.to_string()]);
        }
        arguments
    }
}

impl Work<'_> {
    /// Takes the study for one scheduler, and makes its folder ready. The lock is held until the
    /// study is done. With `verify`, what is called done is compared with its hashes first.
    pub fn claim(&self, verify: bool) -> Result<Lock> {
        std::fs::create_dir_all(self.folder)?;
        let begun = Instant::now();
        let lock = Lock::at(&self.folder.join(".schedule.lock"), self.folder)?;
        loop {
            match prepare(self.folder, self.plan, verify) {
                Err(Error::Locked(LockError::Held { holder: None, .. }))
                    if begun.elapsed() < PATIENCE && !stop::requested() =>
                {
                    std::thread::sleep(Duration::from_millis(500));
                }
                result => {
                    result?;
                    return Ok(lock);
                }
            }
        }
    }

    /// The plan as data, as far as it is.
    pub fn outline(&self) -> Outline {
        self.plan.outline(self.experiment, self.folder)
    }

    /// A task of this study among those of other seeds.
    fn named(&self, mut task: Task) -> Task {
        if let Some(seed) = self.invocation.seed {
            task.name = format!("seed {seed}, {}", task.name);
        }
        task
    }
}

/// Has the crew do what is left of some studies, all at once.
pub fn run(works: &[Work<'_>], crew: &mut dyn Crew) -> Result<()> {
    let mut parts = Vec::new();
    for work in works {
        // Nobody takes the whole folder between two tasks.
        parts.push(Lock::share(work.folder)?);
    }
    let outlines: Vec<Outline> = works.iter().map(Work::outline).collect();
    let mut schedules: Vec<Schedule<'_>> = outlines.iter().map(Schedule::new).collect();
    let mut running: BTreeMap<usize, (usize, Task)> = BTreeMap::new();
    let (mut number, mut done) = (0, 0);
    let (mut failures, mut unfinished) = (Vec::new(), Vec::new());
    let again = |step: &&OutlinedStep| !step.done || step.kind == Kind::Report;
    let left = outlines.iter().flat_map(|outline| &outline.steps).filter(again).count();
    let mut stopping = false;
    loop {
        if !stopping {
            // Each has its share of the places.
            let slots = crew.slots().div_ceil(works.len().max(1));
            for (study, schedule) in schedules.iter_mut().enumerate() {
                for task in schedule.tasks(slots) {
                    let task = works[study].named(task);
                    number += 1;
                    crew.begin(number, study, &task)?;
                    running.insert(number, (study, task));
                }
            }
        }
        if running.is_empty() {
            break;
        }
        if stop::requested() && !stopping {
            stopping = true;
            crew.stop();
        }
        let Some(ended) = crew.wait()? else { continue };
        let Some((study, task)) = running.remove(&ended.number) else { continue };
        let Ended { place, seconds, result, unfinished: errors, .. } = ended;
        match result {
            Ok(printed) => {
                done += task.steps.len();
                note!("[{done}/{left}] {} on {place}, {seconds:.1} s", task.name);
                print!("{printed}");
                unfinished.extend(errors.then(|| task.name.clone()));
                schedules[study].ended(&task);
            }
            Err(_) if stopping || stop::requested() => {}
            Err(reason) => {
                eprintln!("{} failed on {place}; the others are saved", task.name);
                failures.push(format!("{} on {place}: {reason}", task.name));
                stopping = true;
                crew.stop();
            }
        }
    }
    drop(parts);
    if !failures.is_empty() {
        bail!("{}", failures.join("\n"));
    }
    if stopping {
        note!("interrupted; run the same command again to go on");
        std::process::exit(130);
    }
    if !unfinished.is_empty() {
        let tasks = unfinished.join(", ");
        bail!("searches of {tasks} ended in errors; run the same command again to retry them");
    }
    Ok(())
}
