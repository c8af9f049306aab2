//! What a study begins from that its file only names.

use std::fs;
use std::path::{Path, PathBuf};

use catamount_base::Content;
use catamount_evaluate::log::Manifest;
use catamount_model::{identity, locate};

use crate::error::Result;
use crate::experiment::{Experiment, ModelChoice};
use crate::step::SEARCHED;

/// What a study begins from, by content: other data, another model, or another prover, under the
/// same name are another study.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Inputs {
    /// The hash of a database, or of files of traces.
    pub source: String,
    /// The model that training begins with, where it does not begin from nothing.
    pub base: Option<String>,
    /// The prover with its library; none where nobody knows it.
    pub prover: Option<Content>,
}

impl Inputs {
    /// What is there now; `folder` is the study's.
    pub fn of(experiment: &Experiment, folder: &Path) -> Result<Self> {
        let source = experiment.making(folder).source.hash()?;
        let (base, prover) = (Self::base(experiment)?, prover(experiment, folder));
        Ok(Inputs { source, base, prover })
    }

    /// The model that training begins with, by content (see [`identity`]).
    pub fn base(experiment: &Experiment) -> Result<Option<String>> {
        let ModelChoice::Pretrained { base } = &experiment.model else { return Ok(None) };
        let identity = identity(&locate(base)?, None)?;
        Ok(identity.get("weights").map(str::to_owned))
    }

    /// What can be told without fetching anything, for a plan that is only looked at: data that are
    /// not there, or a model that is not on this machine, are not known by content yet.
    pub fn at_hand(experiment: &Experiment, folder: &Path) -> Result<Self> {
        let source = match experiment.making(folder).source.hash() {
            Err(_) if !experiment.missing_data(folder).is_empty() => String::new(),
            hash => hash?,
        };
        let base = match &experiment.model {
            ModelChoice::Pretrained { base } if !Path::new(base).exists() => None,
            _ => Self::base(experiment)?,
        };
        Ok(Inputs { source, base, prover: prover(experiment, folder) })
    }

    /// Of data known by a name, no model, and no prover.
    pub fn named(source: &str) -> Self {
        Inputs { source: source.to_string(), ..Inputs::default() }
    }
}

/// The prover by content. Where it is not there, as where a study was copied to, it is the one that
/// the study's searches were made with.
fn prover(experiment: &Experiment, folder: &Path) -> Option<Content> {
    let here = experiment.library(folder).identity().ok();
    here.map(|identity| Content::of_value(&identity))
        .or_else(|| recorded(&experiment.folders(folder)))
}

/// The prover that all searches in a study's folders name.
fn recorded(folders: &[PathBuf]) -> Option<Content> {
    let parts = folders.iter().flat_map(|folder| SEARCHED.map(|part| folder.join(part)));
    let entries = parts.filter_map(|part| fs::read_dir(part).ok());
    let paths = entries.flatten().flatten().map(|entry| entry.path());
    let manifests = paths.filter(|path| path.to_string_lossy().ends_with(".manifest.json"));
    let mut found = manifests.filter_map(|path| {
        let manifest: Manifest = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        Some(Content::of_value(&manifest.identity.environment))
    });
    let first = found.next()?;
    found.all(|other| other == first).then_some(first)
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use catamount_evaluate::log::{Pool, Provenance};
    use catamount_evaluate::{CellIdentity, Limits};
    use catamount_search::{Deployment, Identity, StrategyKind};

    use super::*;
    use crate::experiment::PriorChoice;
    use crate::plan::Plan;
    use crate::step::Step;

    const TOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../metamath/tests/toy.mm");

    /// A study of traces from files, in a folder with the database that they are searched in.
    fn study(folder: &Path) -> Experiment {
        let path = |name: &str| folder.join(name).display().to_string();
        fs::copy(TOY, path("x.mm")).unwrap();
        for part in ["train", "valid", "test"] {
            fs::write(path(&format!("{part}.jsonl")), part).unwrap();
        }
        let text = format!(
            "name = \"n\"\nmodel = {{ hidden = 8, layers = 1, vocab = 300, positions = 64, \
             tokenizer = \"symbols\" }}\n\
             [data]\nenvironment = \"metamath\"\ndatabase = {:?}\ntrain = {:?}\nvalid = {:?}\n\
             test = {:?}\n[[objectives]]\nobjective = \"ce\"\n[[objectives]]\nobjective = \
             \"bfs\"\nprior = \"fitted\"\n[[objectives]]\nobjective = \"auto\"\n",
            path("x.mm"),
            path("train.jsonl"),
            path("valid.jsonl"),
            path("test.jsonl"),
        );
        Experiment::parse(&text, "x.toml").unwrap()
    }

    fn changed(one: &Plan, other: &Plan, what: fn(&Step) -> bool) -> Vec<bool> {
        let pairs = one.steps.iter().zip(&other.steps).filter(|(one, _)| what(&one.step));
        pairs.map(|(one, other)| one.key != other.key).collect()
    }

    #[test]
    fn another_database_is_another_prover_and_redoes_the_searches_alone() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let experiment = study(folder);
        let plan = |experiment: &Experiment| {
            Plan::new(experiment, &Inputs::of(experiment, folder).unwrap()).unwrap()
        };
        let before = plan(&experiment);
        let text = fs::read_to_string(folder.join("x.mm")).unwrap();
        fs::write(folder.join("x.mm"), format!("{text}\n$( another $)\n")).unwrap();
        let after = plan(&experiment);
        // What is fitted to searches is another fit.
        let trained = |step: &Step| match step {
            Step::Data | Step::WarmUp | Step::Scores(_) => true,
            Step::Branch(branch) => branch.objective.prior != PriorChoice::Fitted,
            _ => false,
        };
        let trained = changed(&before, &after, trained);
        assert!(trained.len() > 3 && !trained.contains(&true), "{trained:?}");
        let searches = |step: &Step| {
            matches!(step, Step::Trial(_) | Step::Tournament(_) | Step::Cell(_) | Step::Chosen(_))
        };
        let searched = changed(&before, &after, searches);
        assert!(searched.len() > 20 && !searched.contains(&false), "{searched:?}");
        // Where everything lies is no part of it.
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(folder.join("x.mm"), text).unwrap();
        assert_eq!(plan(&study(elsewhere.path())).steps, before.steps);
    }

    /// A recipe of the user's own is what it says, wherever it lies.
    #[test]
    fn what_a_recipe_says_is_the_prover() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let checkout = folder.join("checkouts/mine");
        fs::create_dir_all(&checkout).unwrap();
        fs::write(checkout.join("A.lean"), "theorem a : True := trivial\n").unwrap();
        let git = |arguments: &[&str]| {
            let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
            let run = Command::new("git").args(who).args(arguments).current_dir(&checkout).output();
            let run = run.unwrap();
            assert!(run.status.success(), "{}", String::from_utf8_lossy(&run.stderr));
            String::from_utf8(run.stdout).unwrap().trim().to_string()
        };
        git(&["init", "--quiet"]);
        git(&["add", "A.lean"]);
        git(&["commit", "--quiet", "--no-gpg-sign", "-m", "a"]);
        let commit = git(&["rev-parse", "HEAD"]);
        let prover = |path: &str, more: &str| {
            let recipe = format!(
                "name = \"mine\"\nrepository = \"r\"\ncommit = \"{commit}\"\nmodules = \
                 [\"A\"]\n{more}"
            );
            fs::write(folder.join(path), recipe).unwrap();
            let (path, checkouts) = (folder.join(path), folder.join("checkouts"));
            let text = format!(
                "name = \"n\"\nmodel = {{ base = \"b\" }}\nobjectives = [{{ objective = \"ce\" \
                 }}]\n[data]\nenvironment = \"lean\"\ncorpus = {path:?}\ncheckouts = \
                 {checkouts:?}\ntraces = \"x\"\n"
            );
            let experiment = Experiment::parse(&text, "x.toml").unwrap();
            super::prover(&experiment, folder).unwrap()
        };
        let before = prover("one.toml", "");
        assert_eq!(prover("two.toml", ""), before);
        assert_ne!(prover("two.toml", "leave_out = [\"B\"]\n"), before);
    }

    /// A study is shown where its prover is not, as what it is.
    #[test]
    fn a_prover_that_is_not_there_is_the_one_of_the_searches() {
        let temporary = tempfile::tempdir().unwrap();
        let folder = temporary.path();
        let experiment = study(folder);
        let known = Inputs::of(&experiment, folder).unwrap();
        let identity = experiment.library(folder).identity().unwrap();
        let opened = experiment.prover(folder, true).unwrap();
        assert_eq!(identity, opened.identity(), "the same as of the prover itself");
        let manifest = |environment| Manifest {
            identity: CellIdentity {
                format: 2,
                policy: Identity::default(),
                environment,
                pool: Content::default(),
                deployment: Deployment::new(StrategyKind::Bfs, 4).unwrap(),
                seed: 1,
                limits: Limits::default(),
            },
            objective: "ce".into(),
            policy: String::new(),
            environment: String::new(),
            setup: None,
            pool: Pool { file: String::new(), theorems: 0, steps: None, names: Vec::new() },
            provenance: Provenance { version: String::new(), commit: None, command: String::new() },
        };
        let write = |path: &str, manifest: Manifest| {
            let path = folder.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, serde_json::to_vec(&manifest).unwrap()).unwrap();
        };
        fs::remove_file(folder.join("x.mm")).unwrap();
        assert_eq!(Inputs::at_hand(&experiment, folder).unwrap().prover, None);
        write("cells/ce-bfs-n4.manifest.json", manifest(identity));
        assert_eq!(Inputs::at_hand(&experiment, folder).unwrap(), known);
        // Searches with two provers say nothing.
        write("calibration/bfs-n4.manifest.json", manifest(Identity::new("other")));
        assert_eq!(Inputs::at_hand(&experiment, folder).unwrap().prover, None);
    }
}
