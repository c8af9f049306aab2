//! `catamount step`: exactly these steps of a study, for whoever schedules them.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use catamount_base::{Content, causes, host};
use catamount_cuda::Cuda;
use catamount_experiment::{
    Error, Experiment, Inputs, OpenProver, Plan, Planned, Study, run_steps,
};
use catamount_model::Backend;
use catamount_service::Addresses;
use serde::{Deserialize, Serialize};

use crate::device::{Device, OnDevice};
use crate::fleet::UNFINISHED;
use crate::{command, experiment, output, stop};

/// How long another process may take to let go of a step that it was doing when it was told, or
/// made, to stop.
const PATIENCE: Duration = Duration::from_secs(120);

#[derive(clap::Args)]
pub struct Arguments {
    /// An experiment's file, or a preset.
    experiment: String,
    /// Folder of the study.
    #[arg(long)]
    out: PathBuf,
    /// The steps, by their ids: `catamount run EXPERIMENT --dry-run --json` lists them.
    #[arg(long = "only", value_name = "ID", required_unless_present = "probe")]
    only: Vec<String>,
    /// Which of the experiment's seeds.
    #[arg(long)]
    seed: Option<u64>,
    /// auto, cpu or cuda:0.
    #[arg(long, default_value = "auto")]
    device: Device,
    /// Provers elsewhere, for steps that search: addresses of `catamount serve`, or a file of them.
    #[arg(long, value_name = "HOST:PORT,...")]
    provers: Option<Addresses>,
    /// Trust files as they are: neither the steps' own outputs, nor those that they need, are
    /// compared with their stamps.
    #[arg(long)]
    no_verify: bool,
    /// Exit when standard input closes (the parent has ended).
    #[arg(long)]
    tied: bool,
    /// Do nothing, and say what this machine has: version, prover, and what it sees of the folder.
    #[arg(long)]
    probe: bool,
}

/// What a machine has that takes part in a study. All of it must be the same on all machines.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Probe {
    /// The machine.
    pub host: String,
    /// The version of this program.
    pub version: String,
    /// The commit it was built from, where that is known.
    pub commit: Option<String>,
    /// The hash of the file that holds this program, where that can be read.
    pub executable: Option<String>,
    /// The prover and its library, by content, or why there is none.
    pub prover: std::result::Result<catamount_search::Identity, String>,
    /// The hash of what the data are made from, or why there is none.
    pub source: std::result::Result<String, String>,
    /// The model that training begins with, by content, or why there is none.
    pub base: std::result::Result<Option<String>, String>,
    /// Bytes of memory of each of its cards that this program can see. These may differ.
    pub cards: Vec<u64>,
    /// What [`TOKEN`] in the folder says.
    pub token: Option<String>,
}

/// A file that the scheduler puts into a study's folder, to see who sees it.
pub const TOKEN: &str = ".token";

impl Probe {
    /// Of this machine.
    pub fn here(experiment: &Experiment, folder: &std::path::Path) -> Self {
        let opened = experiment.prover(folder, false);
        Probe {
            host: host(),
            version: env!("CARGO_PKG_VERSION").to_string(),
            commit: command::commit(),
            executable: command::executable().map(|content| content.short().to_string()),
            prover: opened
                .map(|environment| environment.identity())
                .map_err(|error| causes(&error)),
            source: experiment.making(folder).source.hash().map_err(|error| causes(&error)),
            base: Inputs::base(experiment).map_err(|error| causes(&error)),
            cards: Cuda::memories().unwrap_or_default(),
            token: std::fs::read_to_string(folder.join(TOKEN)).ok(),
        }
    }

    /// What keeps another machine from working with this one.
    pub fn against(&self, other: &Probe) -> Vec<String> {
        let mut found = Vec::new();
        let commit = |probe: &Probe| probe.commit.clone().unwrap_or_else(|| "unknown".into());
        if (&self.version, commit(self)) != (&other.version, commit(other)) {
            found.push(format!(
                "has catamount {} (commit {}), not {} (commit {}); install the same",
                other.version,
                commit(other),
                self.version,
                commit(self)
            ));
        } else if self.commit.is_none() && self.executable != other.executable {
            found.push(format!(
                "has another build of catamount {}, of an unknown commit; install the same file",
                other.version
            ));
        }
        match (&self.prover, &other.prover) {
            (Ok(ours), Ok(theirs)) => {
                for (part, ours, theirs) in ours.differences(theirs) {
                    found.push(format!("has another prover: its {part} is {theirs}, not {ours}"));
                }
            }
            (_, Err(reason)) => found.push(format!("has no prover: {reason}")),
            (Err(reason), _) => {
                found.push(format!("has a prover, but there is none here: {reason}"))
            }
        }
        match (&self.source, &other.source) {
            (Ok(ours), Ok(theirs)) if ours == theirs => {}
            (Ok(_), Ok(_)) => found.push("has other data to start from under the same name".into()),
            (_, Err(reason)) | (Err(reason), _) => found.push(reason.clone()),
        }
        match (&self.base, &other.base) {
            (Ok(ours), Ok(theirs)) if ours == theirs => {}
            (Ok(_), Ok(_)) => found.push(
                "has another model to begin from under the same name; copy the same there".into(),
            ),
            (_, Err(reason)) | (Err(reason), _) => found.push(reason.clone()),
        }
        found
    }

    /// A new token.
    pub fn token() -> String {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let moment = format!("{} {} {now:?}", host(), std::process::id());
        Content::of(moment).short().to_string()
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    let mut experiment = experiment::read(&arguments.experiment)?;
    match arguments.seed {
        Some(seed) => experiment = experiment.at_seed(seed),
        None if !experiment.seeds.is_empty() => bail!("of which seed? Say so with --seed"),
        None => {}
    }
    let folder = &arguments.out;
    if arguments.probe {
        println!("{}", serde_json::to_string(&Probe::here(&experiment, folder))?);
        return Ok(());
    }
    let plan = Plan::new(&experiment, &Inputs::of(&experiment, folder)?)?;
    if arguments.tied {
        stop::when_input_ends();
    }
    arguments.device.run(Job { experiment: &experiment, plan: &plan, arguments })
}

struct Job<'a> {
    experiment: &'a Experiment,
    plan: &'a Plan,
    arguments: &'a Arguments,
}

impl OnDevice for Job<'_> {
    type Output = ();

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<()> {
        let mut steps: Vec<&Planned> = Vec::new();
        for id in &self.arguments.only {
            steps.push(self.plan.step(id)?);
        }
        let Arguments { out, provers, .. } = self.arguments;
        let prover = self.experiment.open_prover(out, provers.as_ref())?;
        let study = join(self.experiment, out, backend, &steps, prover)?;
        match run_steps(&study, self.plan, &steps, !self.arguments.no_verify) {
            Err(Error::Interrupted) => {
                note!("interrupted; run the same command again to go on");
                std::process::exit(130);
            }
            Err(error @ Error::Unfinished { .. }) => {
                note!("{error}");
                output::flush();
                std::process::exit(UNFINISHED);
            }
            Err(error) => Err(error.into()),
            Ok(report) => {
                if let Some(report) = report {
                    experiment::show(&report, false)?;
                }
                Ok(())
            }
        }
    }
}

/// Opens a study for these steps, after waiting for whoever is just letting go of them.
pub fn join<'a, B: Backend>(
    experiment: &'a Experiment,
    folder: &'a Path,
    backend: Arc<B>,
    steps: &[&Planned],
    prover: OpenProver,
) -> Result<Study<'a, B>> {
    let begun = Instant::now();
    loop {
        let (stop, provenance) = (stop::on_interrupt(), command::provenance());
        let (backend, prover) = (Arc::clone(&backend), prover.clone());
        match Study::join(experiment, folder, backend, stop, provenance, steps, prover) {
            Err(Error::Locked(_)) if begun.elapsed() < PATIENCE && !stop::requested() => {
                std::thread::sleep(Duration::from_millis(500));
            }
            study => return Ok(study?),
        }
    }
}

#[cfg(test)]
mod tests {
    use catamount_search::Identity;

    use super::*;

    fn probe(base: &str) -> Probe {
        Probe {
            host: "here".into(),
            version: "1".into(),
            commit: None,
            executable: Some("file".into()),
            cards: Vec::new(),
            prover: Ok(Identity::new("metamath")),
            source: Ok("source".into()),
            base: Ok(Some(base.into())),
            token: None,
        }
    }

    #[test]
    fn builds_of_unknown_commits_are_told_apart_by_their_files() {
        let other = Probe { executable: Some("another".into()), ..probe("one") };
        assert!(probe("one").against(&other)[0].contains("another build"), "unknown is unknown");
        let commit = |probe| Probe { commit: Some("c".into()), ..probe };
        assert!(commit(probe("one")).against(&commit(other)).is_empty(), "a commit is enough");
    }

    #[test]
    fn a_node_with_another_base_is_refused() {
        assert!(probe("one").against(&probe("one")).is_empty());
        let found = probe("one").against(&probe("two"));
        assert!(found[0].contains("another model to begin from"), "{found:?}");
        let none = Probe { base: Err("there is no folder b".into()), ..probe("one") };
        assert_eq!(probe("one").against(&none), ["there is no folder b"]);
    }
}
