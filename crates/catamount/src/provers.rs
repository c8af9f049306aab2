//! `--ray-provers`: prover workers of their own on a cluster, and how each is started.

use std::path::{Path, PathBuf, absolute};

use anyhow::Result;
use catamount_data::{Library, database_path};
use catamount_experiment::{Experiment, Needs};

/// Prover workers that searches on other nodes ask.
pub struct Provers {
    /// How many.
    pub count: usize,
    /// What each needs of a machine.
    pub needs: Needs,
    /// The command line of its service, without the program and without where it listens.
    pub arguments: Vec<String>,
    /// Where it is written down how busy they were.
    pub record: PathBuf,
}

impl Provers {
    /// Of a library. Services are told of it as people tell them, and refused by content should
    /// they have another.
    pub fn new(
        count: usize,
        experiment: &Experiment,
        folder: &Path,
        record: PathBuf,
    ) -> Result<Self> {
        let (prover, library) = match experiment.library(folder) {
            Library::Metamath { database } => {
                ("metamath", vec![("--database", database_path(&database)?)])
            }
            Library::LeanProject { project } => ("lean", vec![("--project", project)]),
            Library::LeanBundled { folder } => ("lean", vec![("--root", folder)]),
            Library::LeanCorpus { recipe, checkouts } => {
                ("lean", vec![("--corpus", recipe.into()), ("--checkouts", checkouts)])
            }
        };
        let mut arguments =
            ["serve", "--env", prover, "--workers", "1"].map(str::to_owned).to_vec();
        for (flag, value) in library {
            // The name of a recipe that comes with the program is no path.
            let value =
                if flag == "--corpus" && !value.exists() { value } else { absolute(value)? };
            arguments.extend([flag.to_owned(), value.display().to_string()]);
        }
        // Many processes share it, each with many searches.
        arguments.extend(["--queue", "1024", "--sessions", "4096"].map(str::to_owned));
        Ok(Provers { count, needs: Needs::of_prover(experiment), arguments, record })
    }
}
