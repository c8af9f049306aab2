//! What the branches are trained with, and what `auto` chooses among.

use std::collections::HashSet;

use catamount_calibration::LEAST_THEOREMS;
use catamount_objective::{Objective, Prior, Surrogate};
use catamount_report::{MATCHED, SamplingLabel};
use catamount_search::{Overrides, StrategyKind, Value};
use catamount_traces::Share;
use catamount_train::{Probabilities, Recipe};

use super::checks::{Checked, Refusal, between, once, refuse};
use super::evaluation::setting;
use crate::experiment::{Data, Evaluation, ObjectiveChoice, PriorChoice, TraceChoice, Tune, label};
use crate::file::{
    AUTO, DataFile, DeployedTemperature, ExperimentFile, ObjectiveFile, ObjectiveName, PriorFile,
    SamplingFile, TemperatureFile, TuneFile,
};
use crate::limits::{BUDGET, SHARE};
use crate::step::Fit;

pub(super) fn objectives(
    experiment: &ExperimentFile,
    data: &Data,
    evaluation: &Evaluation,
) -> Checked<Vec<ObjectiveChoice>> {
    let files = &experiment.objectives;
    if files.is_empty() {
        return refuse("objectives", "is empty; at least one objective is needed");
    }
    let mut names = HashSet::new();
    let mut choices = Vec::new();
    for (index, file) in files.iter().enumerate() {
        let key = |name: &str| format!("objectives[{index}].{name}");
        let own = |strategy: &StrategyKind| (strategy.objective(), Some(*strategy));
        let trained: Vec<(Objective, Option<StrategyKind>)> = match file.objective {
            ObjectiveName::Auto => {
                auto(index, file)?;
                continue;
            }
            ObjectiveName::Of(objective) => vec![(objective, None)],
            ObjectiveName::Matched => evaluation.strategies.iter().map(own).collect(),
        };
        if let Some(budget) = file.budget {
            between(&key("budget"), budget, 1, BUDGET)?;
        }
        let (deployed, sampling) = deployed(&key, file, evaluation)?;
        let (temperature, floor) = own_recipe(&key, file, experiment)?;
        for (objective, under) in trained {
            let prior =
                prior(objective, file).map_err(|reason| Refusal { key: key("prior"), reason })?;
            let base = if under.is_some() { MATCHED } else { objective.name() };
            let row = file.name.clone().unwrap_or_else(|| label(base, prior, sampling));
            if row.trim().is_empty() {
                return refuse(key("name"), "is empty; leave it out to have one made");
            }
            let name = under.map_or(row.clone(), |strategy| format!("{row} {strategy}"));
            if !names.insert(name.clone()) {
                return refuse(
                    key("name"),
                    format!("two objectives are called `{name}`; give one of them another name"),
                );
            }
            let choice = ObjectiveChoice {
                name,
                row,
                under,
                objective,
                budget: file.budget,
                prior,
                probabilities: file
                    .probabilities
                    .or(experiment.probabilities)
                    .unwrap_or_else(|| usual(prior)),
                temperature,
                floor,
                deployed: deployed.clone(),
            };
            if let Some(way) = choice.made_beforehand() {
                probabilities(&key("probabilities"), way, experiment, data)?;
            }
            if prior == PriorChoice::Fitted {
                for budget in choice.budgets(&evaluation.budgets) {
                    let fit = Fit::of(&choice, evaluation, budget);
                    let fit = fit.map_err(|error| setting(&key("prior"), error))?;
                    whole(&key("prior"), &fit)?;
                }
            }
            choices.push(choice);
        }
    }
    if choices.is_empty() {
        return refuse("objectives", "has only `auto`; at least { objective = \"ce\" } is needed");
    }
    Ok(choices)
}

/// A surrogate is fitted to log p of the whole distribution, and scores know no other.
fn whole(key: &str, fit: &Fit) -> Checked<()> {
    match fit.trials.iter().map(|trial| trial.deployment.top_p()).find(|top_p| *top_p < 1.0) {
        Some(top_p) => refuse(
            key,
            format!(
                "is \"fitted\", and evaluation.search.top_p is {top_p}: the probabilities that a \
                 surrogate is fitted to are those of all tactics; leave one of them out"
            ),
        ),
        None => Ok(()),
    }
}

/// `auto` makes its own candidates, and there is one of it.
fn auto(index: usize, file: &ObjectiveFile) -> Checked<()> {
    let given = [
        ("name", file.name.is_some()),
        ("budget", file.budget.is_some()),
        ("prior", file.prior.is_some()),
        ("probabilities", file.probabilities.is_some()),
        ("temperature", file.temperature.is_some()),
        ("floor", file.floor.is_some()),
        ("deployed", file.deployed.is_some()),
    ];
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => refuse(
            format!("objectives[{index}].{name}"),
            "is not for `auto`; its candidates are described in [tune]",
        ),
        None => Ok(()),
    }
}

/// What an objective's deployments have besides strategy and budget, and what of it is its own.
fn deployed(
    key: &dyn Fn(&str) -> String,
    file: &ObjectiveFile,
    evaluation: &Evaluation,
) -> Checked<(Overrides, SamplingLabel)> {
    let mut overrides = evaluation.overrides.clone();
    let SamplingFile { temperature, distinct } = file.deployed.unwrap_or_default();
    let given =
        [("temperature", temperature.map(Value::Real)), ("distinct", distinct.map(Value::Flag))];
    for (name, value) in given {
        if let Some(value) = value {
            let path = key(&format!("deployed.{name}"));
            overrides.set(name, value).map_err(|error| setting(&path, error))?;
        }
    }
    Ok((overrides, SamplingLabel { temperature, distinct: distinct == Some(true) }))
}

/// Which probabilities weights are computed from where nobody says so. A surrogate is fitted to
/// theorems that the model has not seen, and knows nothing of the probabilities of those it has.
fn usual(prior: PriorChoice) -> Probabilities {
    match prior {
        PriorChoice::Fitted => Probabilities::Mapped,
        _ => Probabilities::Training,
    }
}

/// Refuses probabilities for which there cannot be enough traces, as far as the file tells.
pub(super) fn probabilities(
    key: &str,
    way: Probabilities,
    file: &ExperimentFile,
    data: &Data,
) -> Checked<()> {
    let nothing = matches!(data.split.valid, Share::Count(0) | Share::Fraction(0.0));
    match way {
        Probabilities::Training => Ok(()),
        _ if nothing && !matches!(data.traces, TraceChoice::Parts { .. }) => refuse(
            key,
            format!("is {way}, which needs validation traces; data.split leaves none for them"),
        ),
        Probabilities::CrossFitted if data.limit.is_some_and(|n| n < file.folds) => refuse(
            "folds",
            format!("is {}, more than data.limit leaves traces to train on", file.folds),
        ),
        _ => Ok(()),
    }
}

/// The temperature and the floor of an objective's branches.
fn own_recipe(
    key: &dyn Fn(&str) -> String,
    file: &ObjectiveFile,
    experiment: &ExperimentFile,
) -> Checked<(f64, f64)> {
    let mut recipe = experiment.branch.clone();
    let own = file.deployed.and_then(|deployed| deployed.temperature);
    let deployed = own.unwrap_or(experiment.evaluation.temperature);
    let fitted = matches!(file.prior, Some(PriorFile::Fitted));
    let mut given = key("temperature");
    match file.temperature {
        Some(TemperatureFile::Given(temperature)) => recipe.temperature = temperature,
        Some(TemperatureFile::Named(DeployedTemperature::Deployed)) => {
            recipe.temperature = deployed;
        }
        // The paper's temperature is nobody's choice here.
        None if fitted && recipe.temperature == Recipe::default().temperature => {
            recipe.temperature = deployed;
        }
        None => given = "branch.temperature".into(),
    }
    if let Some(floor) = file.floor {
        between(&key("floor"), floor, 0.0, 1.0)?;
        recipe.weights.min = floor;
    }
    match recipe.check() {
        Err(catamount_train::Error::Setting { value, wanted, key: what }) => {
            let own = if what == "temperature" { "temperature" } else { "floor" };
            refuse(key(own), format!("makes {what} {value}; it must be {wanted}"))
        }
        Err(other) => refuse(key("objective"), other.to_string()),
        Ok(()) if fitted && recipe.temperature != deployed => refuse(
            given,
            format!(
                "is {}, and `prior = \"fitted\"` fits the surrogate to searches at {deployed}: a \
                 prior says nothing of another temperature's probabilities; leave it out",
                recipe.temperature
            ),
        ),
        Ok(()) => Ok((recipe.temperature, recipe.weights.min)),
    }
}

fn prior(objective: Objective, file: &ObjectiveFile) -> std::result::Result<PriorChoice, String> {
    match file.prior {
        None => Ok(PriorChoice::None),
        Some(PriorFile::Given(given)) => {
            let prior = Prior::new(given.kappa, given.absorption).map_err(|e| e.to_string())?;
            let surrogate = Surrogate::new(objective, 1);
            surrogate.with_prior(prior).map_err(|error| error.to_string())?;
            Ok(PriorChoice::Given(prior))
        }
        Some(PriorFile::Fitted) if objective == Objective::Ce => {
            Err("`ce` has no budget, so there is nothing to fit; leave the prior out".into())
        }
        Some(PriorFile::Fitted) => Ok(PriorChoice::Fitted),
    }
}

pub(super) fn tune(file: &TuneFile, experiment: &ExperimentFile) -> Checked<Tune> {
    let branch = &experiment.branch;
    if file.temperatures.is_empty() {
        return refuse("tune.temperatures", "is empty; at least one temperature is needed");
    }
    for (index, &temperature) in file.temperatures.iter().enumerate() {
        let path = format!("tune.temperatures[{index}]");
        let value = Value::Real(temperature);
        let set = Overrides::default().set("temperature", value);
        set.map_err(|error| setting(&path, error))?;
        // Candidates are trained at it, too.
        let recipe = Recipe { temperature, ..branch.clone() };
        if let Err(catamount_train::Error::Setting { value, wanted, .. }) = recipe.check() {
            return refuse(path, format!("is {value}; it must be {wanted}"));
        }
    }
    once("tune.temperatures", &file.temperatures)?;
    if let Some(index) = file.objectives.iter().position(|&o| o == Objective::Ce) {
        return refuse(
            format!("tune.objectives[{index}]"),
            "ce is always a candidate; leave it out",
        );
    }
    once("tune.objectives", &file.objectives)?;
    for (index, &share) in file.shares.iter().enumerate() {
        if !(share > 0.0 && share <= SHARE) {
            let reason = format!("is {share}; it must be above 0 and at most {SHARE}");
            return refuse(format!("tune.shares[{index}]"), reason);
        }
    }
    once("tune.shares", &file.shares)?;
    if file.floors.is_empty() {
        return refuse("tune.floors", "is empty; write [0] for no floor");
    }
    for (index, &floor) in file.floors.iter().enumerate() {
        let key = format!("tune.floors[{index}]");
        between(&key, floor, 0.0, 1.0)?;
        if let Some(max) = branch.weights.max.filter(|max| *max < floor) {
            return refuse(key, format!("is {floor}, above branch.weights.max, which is {max}"));
        }
    }
    once("tune.floors", &file.floors)?;
    if !file.fitted && file.shares.is_empty() {
        return refuse("tune.shares", "is empty, and fitted = false: there is nothing to choose");
    }
    if file.theorems == 0 {
        return refuse("tune.theorems", "is 0; it must be at least 1");
    }
    Ok(Tune {
        temperatures: file.temperatures.clone(),
        objectives: file.objectives.clone(),
        fitted: file.fitted,
        shares: file.shares.clone(),
        floors: file.floors.clone(),
        theorems: file.theorems,
        probabilities: candidates_probabilities(file, experiment),
    })
}

/// Which probabilities the candidates' weights are computed from: mapped ones, unless the file says
/// otherwise. What is chosen on validation theorems should know how likely their tactics are.
fn candidates_probabilities(file: &TuneFile, experiment: &ExperimentFile) -> Probabilities {
    let own = experiment.probabilities.filter(|own| *own != Probabilities::Training);
    file.probabilities.or(own).unwrap_or(Probabilities::Mapped)
}

/// What stands beside `auto`: the control, and no name that its own branches and cells have.
pub(super) fn candidates(auto: usize, objectives: &[ObjectiveChoice]) -> Checked<()> {
    let key = format!("objectives[{auto}].objective");
    if !objectives.iter().any(|choice| choice.objective == Objective::Ce) {
        return refuse(key, "needs { objective = \"ce\" } beside it: the control it must beat");
    }
    let taken = |choice: &&ObjectiveChoice| {
        choice.name.starts_with(AUTO) || choice.name == catamount_report::TUNED
    };
    match objectives.iter().find(taken) {
        Some(choice) => refuse(key, format!("another objective is called `{}`", choice.name)),
        None => Ok(()),
    }
}

/// Validation theorems, where something is chosen or fitted on them.
pub(super) fn validation(file: &DataFile, fitted: bool) -> Checked<()> {
    let least = if fitted { LEAST_THEOREMS } else { 1 };
    let own = file.valid.is_none();
    match file.split.valid {
        Share::Count(count) if own && count < least => refuse(
            "data.split",
            format!("leaves {count} validation theorems; at least {least} are needed"),
        ),
        // The rest is known once there are data.
        Share::Fraction(_) if own && file.first.is_some_and(|first| first < least) => refuse(
            "data.first",
            format!("leaves fewer than the {least} validation theorems that are needed"),
        ),
        Share::Fraction(0.0) if own => refuse(
            "data.split",
            format!("leaves no validation theorems; at least {least} are needed"),
        ),
        _ => Ok(()),
    }
}
