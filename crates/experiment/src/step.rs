//! The steps of a study: what each is called, what it makes, and where that is kept. Nothing else
//! knows a path in a study's folder.

use std::ops::Range;
use std::path::{Path, PathBuf};

use catamount_evaluate::sibling;
use catamount_objective::Objective;
pub(crate) use catamount_report::WARM_UP;
use catamount_search::Deployment;
use catamount_train::Probabilities;

use crate::experiment::ObjectiveChoice;
use crate::slug::slug;

/// Where the training of the warm-up and of the branches is written.
const TRAINING: &str = "training";

/// Where cells and trials are searched, each with a manifest beside its log.
pub(crate) const SEARCHED: [&str; 2] = [CELLS, CALIBRATION];
const CELLS: &str = "cells";
const CALIBRATION: &str = "calibration";

/// What a study consists of.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Traces, split.
    Data,
    /// The common ancestor.
    WarmUp,
    /// Searches of validation theorems with the warm-up model.
    Trial(Trial),
    /// An objective's surrogate, fitted to trials.
    Calibration(Fit),
    /// The warm-up's recipe on all folds of the training traces but one.
    Fold(Fold),
    /// The probabilities of all training tactics that weights are computed from.
    Scores(Scoring),
    /// One objective's branch.
    Branch(Branch),
    /// Candidates against each other on validation theorems.
    Tournament(Tournament),
    /// One objective under one deployment.
    Cell(Cell),
    /// What a tournament chose, on the held-out theorems.
    Chosen(Chosen),
    /// Tables, figures, page.
    Report,
}

/// Searches of validation theorems with the warm-up model.
#[derive(Clone, Debug, PartialEq)]
pub struct Trial {
    /// The search.
    pub deployment: Deployment,
}

/// An objective's surrogate, fitted to trials.
#[derive(Clone, Debug, PartialEq)]
pub struct Fit {
    /// The objective.
    pub objective: Objective,
    /// The deployed budget.
    pub budget: u64,
    /// What it is fitted to.
    pub trials: Vec<Trial>,
}

/// Candidates for one strategy and budget.
#[derive(Clone, Debug, PartialEq)]
pub struct Tournament {
    /// What the candidates vary.
    pub deployment: Deployment,
    /// The candidates.
    pub contenders: Vec<Contender>,
}

/// A candidate: a model, and how it is sampled.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Its name.
    pub name: String,
    /// Its model.
    pub trained: Trained,
    /// How it is deployed.
    pub deployment: Deployment,
    /// Whether it is one of those that the others must beat.
    pub control: bool,
}

/// The cell of a tournament's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Chosen {
    /// Its name in tables.
    pub objective: String,
    /// The tournament.
    pub tournament: Tournament,
    /// Whether it is the best control rather than the winner.
    pub control: bool,
}

/// A fold of the training traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fold {
    /// Which, from 0.
    pub index: usize,
    /// Of how many.
    pub of: usize,
}

impl Fold {
    /// All folds.
    pub(crate) fn all(of: usize) -> impl Iterator<Item = Fold> {
        (0..of).map(move |index| Fold { index, of })
    }
}

/// How probabilities are made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scoring {
    /// The way.
    pub probabilities: Probabilities,
    /// At which temperature.
    pub temperature: f64,
    /// With how many folds, where there are any.
    pub folds: usize,
}

/// A branch.
#[derive(Clone, Debug, PartialEq)]
pub struct Branch {
    /// The objective.
    pub objective: ObjectiveChoice,
    /// Expansions it is trained for.
    pub budget: u64,
    /// Its model.
    pub trained: Trained,
    /// The probabilities that its weights are computed from, unless they are its own.
    pub scoring: Option<Scoring>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub struct Cell {
    /// The model that is searched with.
    pub trained: Trained,
    /// The objective's name in tables.
    pub objective: String,
    /// The search.
    pub deployment: Deployment,
}

/// A model of the study, and its files.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trained {
    name: String,
    slug: String,
    /// Where its training is written: models that are nobody's branch have a place of their own.
    training: &'static str,
}

/// The files of a step, by their paths in the study's folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Outputs {
    /// Everything it makes.
    pub made: Vec<PathBuf>,
    /// What later steps, or people, rely on: what a stamp has hashes of.
    pub relied_on: Vec<PathBuf>,
    /// Of these, what can be made again from the rest.
    pub derived: Vec<PathBuf>,
}

impl Outputs {
    /// Files that are all relied on.
    fn of(files: Vec<PathBuf>) -> Self {
        Outputs { made: files.clone(), relied_on: files, derived: Vec::new() }
    }
}

impl Step {
    /// Its name for people.
    pub fn name(&self) -> String {
        match self {
            Step::Data => "data".to_string(),
            Step::WarmUp => WARM_UP.to_string(),
            Step::Trial(trial) => {
                let (of, how) = (of(&trial.deployment, " "), sampled(&trial.deployment, " "));
                format!("trial {of} {how}")
            }
            Step::Calibration(fit) => {
                format!("calibration {} n{} {}", fit.objective, fit.budget, fit.sampled(" "))
            }
            Step::Tournament(tournament) => format!("tune {}", of(&tournament.deployment, " ")),
            Step::Chosen(chosen) => {
                format!("cell {} {}", chosen.objective, of(&chosen.tournament.deployment, " "))
            }
            Step::Fold(fold) => Trained::fold(*fold).name,
            Step::Scores(scoring) => format!("scores {}", scoring.slug().replace('@', " ")),
            Step::Branch(branch) => format!("branch {}", branch.trained.name),
            Step::Cell(cell) => format!("cell {} {}", cell.objective, of(&cell.deployment, " ")),
            Step::Report => "report".to_string(),
        }
    }

    /// Its name in names of files, unique in the study.
    pub(crate) fn id(&self) -> String {
        match self {
            Step::Branch(branch) => format!("branch-{}", branch.trained.slug),
            Step::Cell(cell) => cell_id(&cell.log()),
            Step::Chosen(chosen) => cell_id(&chosen.log()),
            other => other.name().replace(' ', "-"),
        }
    }

    pub(crate) fn outputs(&self) -> Outputs {
        match self {
            Step::Data => {
                Outputs { made: vec![data()], relied_on: vec![data()], ..Outputs::default() }
            }
            Step::WarmUp => Trained::warm_up().outputs(),
            Step::Fold(fold) => Trained::fold(*fold).outputs(),
            Step::Scores(scoring) => {
                let made = vec![scoring.scores(), scoring.reading()];
                Outputs { relied_on: made.clone(), made, ..Outputs::default() }
            }
            Step::Branch(branch) => branch.trained.outputs(),
            Step::Cell(cell) => log_outputs(&cell.log()),
            Step::Chosen(chosen) => log_outputs(&chosen.log()),
            Step::Trial(trial) => log_outputs(&trial.log()),
            Step::Calibration(fit) => Outputs::of(vec![fit.found()]),
            Step::Tournament(tournament) => {
                Outputs::of(vec![tournament.choice(), tournament.folder()])
            }
            Step::Report => Outputs::default(),
        }
    }
}

/// The id of the step that makes a cell's log.
pub(crate) fn cell_id(log: &Path) -> String {
    // Not the stem: temperatures have dots.
    let name = log.file_name().unwrap_or_default().to_string_lossy();
    format!("cell-{}", name.strip_suffix(".jsonl").unwrap_or(&name))
}

/// Where the traces are.
pub(crate) fn data() -> PathBuf {
    "data".into()
}

/// The traces of one part.
pub(crate) fn part(name: &str) -> PathBuf {
    data().join(format!("{name}.jsonl"))
}

/// `bfs n256`: what tells the deployments of a study apart.
fn of(deployment: &Deployment, joint: &str) -> String {
    format!("{}{joint}n{}", deployment.strategy(), deployment.budget())
}

/// `t0.8 distinct`: what else tells searches that surrogates are fitted to apart.
fn sampled(deployment: &Deployment, joint: &str) -> String {
    let distinct = if deployment.distinct() { format!("{joint}distinct") } else { String::new() };
    format!("t{}{distinct}", deployment.temperature())
}

/// The files of a cell, or of the cell that a measurement is made on.
fn log_outputs(log: &Path) -> Outputs {
    let siblings = |suffixes: &[&str]| {
        let siblings = suffixes.iter().map(|suffix| sibling(log, suffix));
        siblings.chain([log.to_path_buf()]).collect()
    };
    Outputs {
        made: siblings(&["manifest.json", "trees.jsonl", "times.jsonl", "timing.json"]),
        // Clocks differ from run to run, and nobody relies on them.
        relied_on: siblings(&["manifest.json", "trees.jsonl"]),
        derived: Vec::new(),
    }
}

impl Trial {
    /// The log of the searches.
    pub(crate) fn log(&self) -> PathBuf {
        let (of, how) = (of(&self.deployment, "-"), sampled(&self.deployment, "-"));
        Path::new(CALIBRATION).join(format!("{of}-{how}.jsonl"))
    }
}

impl Fit {
    /// The temperature of its trials, which all have the same.
    pub(crate) fn temperature(&self) -> f64 {
        self.trials.first().map_or(1.0, |trial| trial.deployment.temperature())
    }

    /// Whether its trials sampled no tactic twice at a node.
    pub(crate) fn distinct(&self) -> bool {
        self.trials.first().is_some_and(|trial| trial.deployment.distinct())
    }

    fn sampled(&self, joint: &str) -> String {
        self.trials.first().map_or(String::new(), |trial| sampled(&trial.deployment, joint))
    }

    /// What was found.
    pub(crate) fn found(&self) -> PathBuf {
        let name = format!("fit-{}-n{}-{}.json", self.objective, self.budget, self.sampled("-"));
        Path::new(CALIBRATION).join(name)
    }
}

impl Tournament {
    /// Where its searches are.
    fn folder(&self) -> PathBuf {
        Path::new("tune").join(of(&self.deployment, "-"))
    }

    /// The choice.
    pub(crate) fn choice(&self) -> PathBuf {
        self.folder().with_extension("json")
    }

    /// The log of a candidate on a stretch of the pool.
    pub(crate) fn log(&self, contender: &Contender, stretch: &Range<usize>) -> PathBuf {
        let name = slug(&contender.name);
        self.folder().join(format!("{name}@{}-{}.jsonl", stretch.start, stretch.end))
    }
}

impl Chosen {
    fn slug(&self) -> String {
        format!("{}-{}", slug(&self.objective), of(&self.tournament.deployment, "-"))
    }

    /// The log.
    pub(crate) fn log(&self) -> PathBuf {
        Path::new(CELLS).join(format!("{}.jsonl", self.slug()))
    }
}

impl Scoring {
    fn slug(&self) -> String {
        let Scoring { probabilities, temperature, folds } = self;
        match probabilities {
            Probabilities::CrossFitted => format!("{probabilities}-{folds}@t{temperature}"),
            _ => format!("{probabilities}@t{temperature}"),
        }
    }

    /// log p by theorem and step.
    pub(crate) fn scores(&self) -> PathBuf {
        Path::new(catamount_report::SCORES).join(format!("{}.jsonl", self.slug()))
    }

    /// How like held-out probabilities they are.
    pub(crate) fn reading(&self) -> PathBuf {
        Path::new(catamount_report::SCORES).join(format!("{}.reading.json", self.slug()))
    }
}

impl Cell {
    /// A fixed ending after the objective's slug, so that no two cells share files.
    fn slug(&self) -> String {
        format!("{}-{}", slug(&self.objective), of(&self.deployment, "-"))
    }

    /// The log.
    pub(crate) fn log(&self) -> PathBuf {
        Path::new(CELLS).join(format!("{}.jsonl", self.slug()))
    }
}

impl Trained {
    /// The common ancestor.
    pub(crate) fn warm_up() -> Self {
        Trained { name: WARM_UP.to_string(), slug: WARM_UP.to_string(), training: TRAINING }
    }

    /// The warm-up without one fold.
    pub(crate) fn fold(Fold { index, of }: Fold) -> Self {
        let number = index + 1;
        Trained {
            name: format!("fold {number} of {of}"),
            slug: format!("fold@{number}-of-{of}"),
            training: "folds",
        }
    }

    /// A branch; `budget` tells those of one objective apart.
    pub(crate) fn branch(objective: &str, budget: Option<u64>) -> Self {
        let with = |name: &str| match budget {
            Some(budget) => format!("{name}@{budget}"),
            None => name.to_string(),
        };
        Trained { name: with(objective), slug: with(&slug(objective)), training: TRAINING }
    }

    /// Its name for people.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its name in names of files.
    pub(crate) fn slug(&self) -> &str {
        &self.slug
    }

    /// The model itself.
    pub(crate) fn model(&self) -> PathBuf {
        Path::new("models").join(&self.slug)
    }

    /// Where metrics, events and checkpoints of its training are, under its slug.
    pub(crate) fn training(&self) -> PathBuf {
        self.training.into()
    }

    /// What its generator did over all cells.
    pub(crate) fn sampling(&self) -> PathBuf {
        Path::new("sampling").join(format!("{}.json", self.slug))
    }

    fn outputs(&self) -> Outputs {
        let training = self.training().join(&self.slug);
        let metrics = self.training().join(format!("{}.metrics.jsonl", self.slug));
        Outputs {
            made: vec![self.model(), training, metrics.clone()],
            relied_on: vec![self.model(), metrics],
            // From the last checkpoint, which has checksums of its own.
            derived: vec![self.model()],
        }
    }
}
