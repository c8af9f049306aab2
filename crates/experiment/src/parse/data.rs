//! `[data]`: which prover, and which traces.

use catamount_data::LeanLimits;

use super::checks::{Checked, between, once, positive, refuse, seconds};
use crate::experiment::{Data, Environment, TraceChoice};
use crate::file::{Corpora, DataFile, LeanFile, ProverName};
use crate::limits::{HEARTBEATS, WORKERS};

pub(super) fn data(file: &DataFile) -> Checked<Data> {
    let only = |key: &str, given: bool, prover: &str| {
        if given {
            refuse(format!("data.{key}"), format!("is for {prover}, not for this environment"))
        } else {
            Ok(())
        }
    };
    let environment = match file.environment {
        ProverName::Metamath => {
            only("project", file.project.is_some(), "Lean")?;
            only("corpus", file.corpus.is_some(), "Lean")?;
            only("checkouts", file.checkouts.is_some(), "Lean")?;
            only("lean", file.lean.is_some(), "Lean")?;
            let Some(database) = file.database.clone() else {
                return refuse(
                    "data.database",
                    "is missing: the Metamath database, such as \"set.mm\"",
                );
            };
            Environment::Metamath { database, first: file.first }
        }
        ProverName::Lean => {
            only("database", file.database.is_some(), "Metamath")?;
            only("first", file.first.is_some(), "Metamath")?;
            lean(file)?
        }
    };
    let traces = match (&file.traces, &file.train, &file.valid, &file.test) {
        (None, None, None, None) => TraceChoice::Own,
        (Some(traces), None, None, None) => TraceChoice::File(traces.clone()),
        (None, Some(train), Some(valid), Some(test)) => {
            TraceChoice::Parts { train: train.clone(), valid: valid.clone(), test: test.clone() }
        }
        (Some(_), ..) => {
            return refuse(
                "data.traces",
                "is given with a part; give one file to split, or train, valid and test",
            );
        }
        _ => {
            let missing = [("train", &file.train), ("valid", &file.valid), ("test", &file.test)];
            let missing = missing.iter().find(|(_, path)| path.is_none());
            let key = missing.map_or("train", |(key, _)| key);
            return refuse(
                format!("data.{key}"),
                "is missing: a benchmark's parts are train, valid and test",
            );
        }
    };
    if traces == TraceChoice::Own
        && let Some(command) = tracing(&environment)
    {
        return refuse(
            "data.traces",
            format!("is missing: make them first, with `{command} --out traces.jsonl`"),
        );
    }
    if traces != TraceChoice::Own && file.first.is_some() {
        return refuse("data.first", "is for the database's own proofs, not for a file of traces");
    }
    let own = !matches!(traces, TraceChoice::Parts { .. });
    for part in file.split.empty() {
        // Whoever needs validation theorems says so.
        if own && part != "valid" {
            let purpose = if part == "test" { "searched" } else { "trained on" };
            return refuse(
                "data.split",
                format!("is {}, which leaves nothing to be {purpose}", file.split),
            );
        }
    }
    positive("data.first", file.first)?;
    positive("data.limit", file.limit)?;
    let lean = file.lean.clone().unwrap_or_default();
    Ok(Data {
        environment,
        limits: limits(&lean)?,
        workers: lean.workers,
        traces,
        origin: file.source.clone(),
        steps: file.steps,
        split: file.split,
        limit: file.limit,
    })
}

/// What Lean may spend.
fn limits(file: &LeanFile) -> Checked<LeanLimits> {
    if let Some(workers) = file.workers {
        between("data.lean.workers", workers, 1, WORKERS)?;
    }
    let usual = LeanLimits::default();
    let heartbeats = file.heartbeats.unwrap_or(usual.heartbeats);
    between("data.lean.heartbeats", heartbeats, 1, HEARTBEATS)?;
    Ok(LeanLimits {
        heartbeats,
        tactic: seconds("data.lean.tactic_limit", file.tactic_limit)?.unwrap_or(usual.tactic),
        check: seconds("data.lean.check_limit", file.check_limit)?.unwrap_or(usual.check),
    })
}

/// The library that Lean searches.
fn lean(file: &DataFile) -> Checked<Environment> {
    let checkouts = file.checkouts.clone();
    match (file.corpus.clone(), checkouts, file.project.clone()) {
        (Some(_), _, Some(_)) => {
            refuse("data.corpus", "is given with data.project; the theorems live in one of them")
        }
        (Some(corpora), Some(checkouts), None) => {
            Ok(Environment::LeanCorpora { recipes: recipes(corpora)?, checkouts })
        }
        (Some(_), None, None) => refuse(
            "data.checkouts",
            "is missing: the folder with checkouts of the corpus and of what it depends on",
        ),
        (None, Some(_), _) => refuse("data.checkouts", "is for a corpus; name it in data.corpus"),
        (None, None, project) => Ok(Environment::Lean { project }),
    }
}

/// Recipes, each once, and known where they are no paths.
fn recipes(corpora: Corpora) -> Checked<Vec<String>> {
    let recipes = match corpora {
        Corpora::One(recipe) => vec![recipe],
        Corpora::Several(recipes) => recipes,
    };
    if recipes.is_empty() {
        return refuse("data.corpus", "names no corpus; leave it out for the bundled library");
    }
    once("data.corpus", &recipes)?;
    Ok(recipes)
}

/// The command that makes the traces of a library whose proofs are not read by the study itself.
fn tracing(environment: &Environment) -> Option<String> {
    match environment {
        Environment::Lean { project: Some(project) } => {
            Some(format!("catamount data trace-lean PATH --project {}", project.display()))
        }
        Environment::LeanCorpora { recipes, checkouts } => {
            let [recipe, ..] = &recipes[..] else { return None };
            Some(format!("catamount lean trace {recipe} --checkouts {}", checkouts.display()))
        }
        Environment::Lean { project: None } | Environment::Metamath { .. } => None,
    }
}
