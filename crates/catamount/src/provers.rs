//! `--ray-provers`: prover workers of their own on a cluster, and how each is started.

use std::path::{Path, PathBuf, absolute};

use anyhow::Result;
use catamount_data::{Library, database_path};
use catamount_experiment::{Experiment, Needs};
use catamount_lean::Recipe;

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
                ("metamath", vec![("--database", whole(&database_path(&database)?)?)])
            }
            Library::LeanProject { project } => ("lean", vec![("--project", whole(&project)?)]),
            Library::LeanBundled { folder } => ("lean", vec![("--root", whole(&folder)?)]),
            Library::LeanCorpora { recipes, checkouts } => {
                // The name of a recipe that comes with the program is no path, whatever is here.
                let told = |recipe: String| match Recipe::is_bundled(&recipe) {
                    true => Ok(recipe),
                    false => whole(Path::new(&recipe)),
                };
                let recipes = recipes.into_iter().map(told).collect::<Result<Vec<_>>>()?;
                let checkouts = whole(&checkouts)?;
                ("lean", vec![("--corpus", recipes.join(",")), ("--checkouts", checkouts)])
            }
        };
        let mut arguments =
            ["serve", "--env", prover, "--workers", "1"].map(str::to_owned).to_vec();
        let mut say = |flag: &str, value| arguments.extend([flag.to_owned(), value]);
        library.into_iter().for_each(|(flag, value)| say(flag, value));
        let limits = &experiment.data.limits;
        say("--heartbeats", limits.heartbeats.to_string());
        say("--tactic-limit", limits.tactic.as_secs_f64().to_string());
        say("--check-limit", limits.check.as_secs_f64().to_string());
        // Many processes share it, each with many searches.
        arguments.extend(["--queue", "1024", "--sessions", "4096"].map(str::to_owned));
        Ok(Provers { count, needs: Needs::of_prover(experiment), arguments, record })
    }
}

/// A path as a service started elsewhere understands it.
fn whole(path: &Path) -> Result<String> {
    Ok(absolute(path)?.display().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(data: &str) -> Vec<String> {
        let text = format!(
            "name = \"n\"\nmodel = {{ base = \"b\" }}\nobjectives = [{{ objective = \"ce\" }}]\n\
             [data]\nenvironment = \"lean\"\ntraces = \"t.jsonl\"\n{data}"
        );
        let experiment = Experiment::parse(&text, "n.toml").unwrap();
        Provers::new(1, &experiment, Path::new("study"), PathBuf::new()).unwrap().arguments
    }

    fn after(flag: &str, arguments: &[String]) -> String {
        let at = arguments.iter().position(|argument| argument == flag).unwrap();
        arguments[at + 1].clone()
    }

    #[test]
    fn a_service_is_told_of_a_corpus_as_it_understands_it() {
        let known = told("corpus = \"cedar\"\ncheckouts = \".\"\n");
        assert_eq!(after("--corpus", &known), "cedar");
        assert!(Path::new(&after("--checkouts", &known)).is_absolute());
        let own = told("corpus = \"mine.toml\"\ncheckouts = \".\"\n");
        let recipe = after("--corpus", &own);
        assert!(Path::new(&recipe).is_absolute() && recipe.ends_with("mine.toml"), "{recipe}");
    }

    #[test]
    fn a_service_has_the_studys_limits() {
        let limits = told("lean = { heartbeats = 7, tactic_limit = 0.5, check_limit = 9 }\n");
        let flags = ["--heartbeats", "--tactic-limit", "--check-limit", "--workers"];
        assert_eq!(flags.map(|flag| after(flag, &limits)), ["7", "0.5", "9", "1"]);
    }
}
