//! What `auto` chooses among under one strategy at one budget.

use catamount_objective::Objective;
use catamount_search::{Deployment, SettingError, StrategyKind};

use crate::experiment::{Experiment, ObjectiveChoice, PriorChoice};
use crate::file::AUTO;
use crate::step::{Contender, Trained};

/// The objectives that are trained for it, each with a branch of its own: every objective with its
/// surrogate fitted and for every share of the budget, at every floor, and for every temperature:
/// one that is sampled at another than it was trained for answers no question.
pub(crate) fn choices(
    experiment: &Experiment,
    strategy: StrategyKind,
    budget: u64,
) -> Result<Vec<(ObjectiveChoice, u64)>, SettingError> {
    let tune = &experiment.tune;
    let mut objectives = tune.objectives.clone();
    if objectives.is_empty() {
        objectives.extend([Objective::Ua, strategy.objective()]);
    }
    let mut choices: Vec<(ObjectiveChoice, u64)> = Vec::new();
    for objective in objectives {
        let fitted = tune.fitted.then_some((PriorChoice::Fitted, budget));
        let shares = tune
            .shares
            .iter()
            .map(|share| (PriorChoice::None, ((share * budget as f64).round() as u64).max(1)));
        for (prior, trained_for) in fitted.into_iter().chain(shares) {
            for (&floor, &temperature) in pairs(&tune.floors, &tune.temperatures) {
                let how = if prior == PriorChoice::Fitted { "fitted-n" } else { "for-n" };
                let above = if floor > 0.0 { format!("-floor{floor}") } else { String::new() };
                let name = format!("{AUTO}-{objective}-{how}{trained_for}{above}-t{temperature}");
                // Two shares of a small budget may be the same number.
                if choices.iter().any(|(other, _)| other.name == name) {
                    continue;
                }
                let mut choice =
                    experiment.choice(name, objective, trained_for, prior, temperature)?;
                if floor > 0.0 {
                    choice.floor = floor;
                }
                choices.push((choice, trained_for));
            }
        }
    }
    Ok(choices)
}

fn pairs<'a>(
    floors: &'a [f64],
    temperatures: &'a [f64],
) -> impl Iterator<Item = (&'a f64, &'a f64)> {
    floors.iter().flat_map(move |floor| temperatures.iter().map(move |t| (floor, t)))
}

/// A control at every temperature, every other model at its own.
pub(crate) fn contenders(
    experiment: &Experiment,
    deployment: &Deployment,
    models: &[(Trained, Option<f64>)],
) -> Result<Vec<Contender>, SettingError> {
    let mut contenders = Vec::new();
    for (trained, own) in models {
        for &temperature in &experiment.tune.temperatures {
            if own.is_some_and(|own| own != temperature) {
                continue;
            }
            contenders.push(Contender {
                name: match own {
                    Some(_) => trained.name().to_string(),
                    None => format!("{} T={temperature}", trained.name()),
                },
                trained: trained.clone(),
                deployment: deployment.clone().with("temperature", temperature)?,
                control: own.is_none(),
            });
        }
    }
    Ok(contenders)
}
