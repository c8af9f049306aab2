//! What a study needs from outside its folder and does not find, before anything is done.

use std::path::Path;

use catamount_data::{Source, database_path, find_corpora};
use catamount_model::obtainable;
use catamount_traces::shards;

use crate::experiment::{Environment, Experiment, ModelChoice};

impl Experiment {
    /// The database or the files of traces that are not there.
    pub fn missing_data(&self, folder: &Path) -> Vec<String> {
        let mut missing = Vec::new();
        if let Environment::Metamath { database, .. } = &self.data.environment {
            missing.extend(database_path(database).err().map(|error| error.to_string()));
        }
        let source = self.making(folder).source;
        if !matches!(source, Source::Metamath { .. }) {
            for file in source.files() {
                match shards(file) {
                    Ok(files) => missing.extend(files.iter().filter_map(|file| absent(file))),
                    Err(error) => missing.push(error.to_string()),
                }
            }
        }
        missing
    }

    /// What is missing of that which the data step does without: the base model, the Lake project.
    pub fn missing_tools(&self) -> Vec<String> {
        let mut missing = Vec::new();
        if let ModelChoice::Pretrained { base } = &self.model {
            missing.extend(obtainable(base).err().map(|error| format!("model.base: {error}")));
        }
        if let Environment::LeanCorpora { recipes, checkouts } = &self.data.environment {
            let found = find_corpora(recipes, checkouts);
            missing.extend(found.err().map(|error| format!("data.corpus: {error}")));
        }
        if let Environment::Lean { project: Some(project) } = &self.data.environment {
            let lakefile = |name: &&str| project.join(name).exists();
            if !project.is_dir() {
                let shown = project.display();
                missing.push(format!("data.project: there is no folder {shown}"));
            } else if !["lakefile.lean", "lakefile.toml"].iter().any(lakefile) {
                let shown = project.display();
                missing.push(format!(
                    "data.project: {shown} is not a Lake project (it has no lakefile)"
                ));
            }
        }
        missing
    }
}

/// Says that a file is not there, if it is not.
fn absent(file: &Path) -> Option<String> {
    let why = file.metadata().err()?;
    Some(format!("{}: {why}", file.display()))
}
