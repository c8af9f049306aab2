//! `--ray-provers`: prover workers of their own on a cluster, and how each is started.

use std::path::{Path, PathBuf};

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
        let (prover, flag, path) = match experiment.library(folder) {
            Library::Metamath { database } => ("metamath", "--database", database_path(&database)?),
            Library::LeanProject { project } => ("lean", "--project", project),
            Library::LeanBundled { folder } => ("lean", "--root", folder),
        };
        let path = std::path::absolute(path)?.display().to_string();
        let worker = ["serve", "--env", prover, flag, &path, "--workers", "1"];
        // Many processes share it, each with many searches.
        let room = ["--queue", "1024", "--sessions", "4096"];
        Ok(Provers {
            count,
            needs: Needs::of_prover(experiment),
            arguments: worker.into_iter().chain(room).map(str::to_owned).collect(),
            record,
        })
    }
}
