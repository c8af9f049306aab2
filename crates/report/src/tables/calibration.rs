//! How well surrogates predict which theorems are proved, as they stand and fitted.

use std::fmt::Write;

use catamount_calibration::Model;

use super::minus;
use crate::calibration::Calibrated;
use crate::names::{Objective, strategy_label};
use crate::table::{Entry, Table, field};

/// Stands after a value at which the search for it ended.
const BOUND: &str = "\u{2021}";

/// `kappa 3.1 [2.4, 4.0], q 0.02 [0, 0.05]`.
fn parameters(model: &Model) -> String {
    let number = |value: f64| {
        if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
    };
    let one = |p: &catamount_calibration::Parameter| {
        let mark = if p.at_bound == Some(true) { BOUND } else { "" };
        format!("{} {}{mark} [{}, {}]", p.name, number(p.value), number(p.low), number(p.high))
    };
    model.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// Log-loss in three columns, a row for every surrogate, seeds pooled: what the surrogate says as
/// it stands, what other proofs alone explain (which training never sees), and what fitting adds.
pub(crate) fn summary(all: &[Calibrated]) -> Option<Table> {
    let mut groups: Vec<Vec<&Calibrated>> = Vec::new();
    let key = |one: &Calibrated| {
        let c = &one.calibration;
        (c.objective.clone(), one.strategies.clone(), c.budget, one.temperature, one.distinct)
    };
    for one in all {
        match groups.iter_mut().find(|group| key(group[0]) == key(one)) {
            Some(group) => group.push(one),
            None => groups.push(vec![one]),
        }
    }
    if groups.is_empty() {
        return None;
    }
    let mut csv = String::from(
        "objective,strategies,budget,temperature,distinct,seeds,at_bound,as_it_stands,bypass_only,\
         fitted\n",
    );
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for group in &groups {
        let (one, seeds) = (group[0], group.len());
        let mean = |of: fn(&Calibrated) -> f64| {
            group.iter().map(|one| of(one)).sum::<f64>() / seeds as f64
        };
        let losses = [
            mean(|one| one.calibration.uncalibrated().scores.log_loss),
            mean(|one| one.calibration.bypass_only().scores.log_loss),
            mean(|one| one.calibration.chosen().scores.log_loss),
        ];
        let chosen = || group.iter().map(|one| one.calibration.chosen());
        let known = chosen().all(|model| model.parameters.iter().all(|p| p.at_bound.is_some()));
        let bounds = chosen().filter(|model| !model.at_bound().is_empty()).count();
        let bounds = if known { format!("{bounds} of {seeds}") } else { "not noted".into() };
        let strategies: Vec<String> = one.strategies.iter().map(|s| strategy_label(s)).collect();
        let distinct = if one.distinct { ", distinct" } else { "" };
        let mut row: Vec<Entry> = vec![
            Objective::parse(&one.calibration.objective).label().into(),
            strategies.join(", ").into(),
            one.calibration.budget.to_string().into(),
            format!("T = {}{distinct}", one.temperature).into(),
            seeds.to_string().into(),
        ];
        row.extend(losses.map(|loss| Entry::from(format!("{loss:.3}"))));
        row.push(minus(format!("{:+.3}", losses[2] - losses[1])).into());
        row.push(bounds.as_str().into());
        rows.push(row);
        let _ = writeln!(
            csv,
            "{},{},{},{},{},{seeds},{bounds},{},{},{}",
            field(&one.calibration.objective),
            field(&one.strategies.join(" ")),
            one.calibration.budget,
            one.temperature,
            one.distinct,
            losses[0],
            losses[1],
            losses[2]
        );
    }
    let header = [
        "objective",
        "searched under",
        "N",
        "sampled",
        "seeds",
        "as it stands",
        "other proofs only",
        "fitted",
        "fitting adds",
        "at a bound",
    ];
    Some(Table {
        name: "log-loss".into(),
        title: "What fitting a surrogate adds to its log-loss".into(),
        caption:
            "Mean log-loss over seeds (nats, theorems held out of the fit). As it stands: the \
                  surrogate alone, which knows of no proof but the demonstrated one. Other proofs \
                  only: the same beside the fitted risk of other proofs, which enters no weight \
                  and no gradient. Fitted: the surrogate that `prior = \"fitted\"` trains with, \
                  beside the same risk. Fitting adds: the last two\u{2019}s difference, below \
                  zero is better. At a bound: seeds whose chosen fit ended where the search for \
                  it did."
                .into(),
        header: header.map(String::from).to_vec(),
        text_columns: 2,
        rows,
        csv,
    })
}

/// The models of every calibration; none without any.
pub(crate) fn table(all: &[Calibrated]) -> Option<Table> {
    if all.is_empty() {
        return None;
    }
    let header =
        ["objective", "searched under", "N", "sampled", "surrogate", "fitted", "log-loss", "Brier"]
            .map(String::from)
            .into_iter()
            .chain(["against as it stands".to_string()])
            .collect();
    let mut csv = String::from(
        "objective,strategies,budget,temperature,distinct,seed,theorems,searches,along,bypassed,model,\
         chosen,fitted,at_bound,log_loss,brier,gain,gain_low,gain_high\n",
    );
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for one in all {
        let c = &one.calibration;
        let strategies: Vec<String> = one.strategies.iter().map(|s| strategy_label(s)).collect();
        let distinct = if one.distinct { ", distinct" } else { "" };
        let sampled = format!("T = {}{distinct}", one.temperature);
        for (index, model) in c.models.iter().enumerate() {
            let (scores, chosen) = (&model.scores, index == c.chosen);
            let loss = Entry {
                text: format!("{:.3}", scores.log_loss),
                bold: chosen,
                mark: String::new(),
            };
            let gain = match index {
                0 => "\u{2013}".to_string(),
                _ => minus(format!(
                    "{:+.3} [{:.3}, {:.3}]",
                    scores.gain, scores.gain_low, scores.gain_high
                )),
            };
            rows.push(vec![
                Objective::parse(&c.objective).label().into(),
                strategies.join(", ").into(),
                c.budget.to_string().into(),
                sampled.as_str().into(),
                model.name.clone().into(),
                parameters(model).into(),
                loss,
                format!("{:.3}", scores.brier).into(),
                gain.into(),
            ]);
            let _ = writeln!(
                csv,
                "{},{},{},{},{},{},{},{},{},{},{},{chosen},{},{},{},{},{},{},{}",
                field(&c.objective),
                field(&one.strategies.join(" ")),
                c.budget,
                one.temperature,
                one.distinct,
                one.seed,
                c.theorems,
                c.searches,
                c.along,
                c.bypassed,
                field(&model.name),
                field(&parameters(model)),
                model.at_bound().len(),
                scores.log_loss,
                scores.brier,
                scores.gain,
                scores.gain_low,
                scores.gain_high
            );
        }
    }
    let count = |of: fn(&Calibrated) -> usize| {
        let counts: Vec<usize> = all.iter().map(of).collect();
        let (min, max) = (counts.iter().min().copied(), counts.iter().max().copied());
        match (min.unwrap_or(0), max.unwrap_or(0)) {
            (min, max) if min == max => max.to_string(),
            (min, max) => format!("{min} to {max}"),
        }
    };
    Some(Table {
        name: "calibration".into(),
        title: "Surrogates against searches of validation theorems".into(),
        caption: format!(
            "How well each surrogate predicts whether the warm-up model proves a theorem within n \
             expansions, for n = 4, 8, ..., N: log-loss (nats) and Brier score on theorems that \
             were held out of the fit (five folds), and the difference of the log-loss to the \
             surrogate as it stands with its 95 % interval (below zero is better). {} theorems, \
             {} proved along the demonstration, {} otherwise; other proofs are a competing risk. \
             Fitted: the most likely value, with an interval over resampled theorems; \
             {BOUND}: the search for it ended there, so that it is a bound and no fit. Bold: \
             predicts best, and is what `prior = \"fitted\"` trains with.",
            count(|one| one.calibration.theorems),
            count(|one| one.calibration.along),
            count(|one| one.calibration.bypassed),
        ),
        header,
        text_columns: 2,
        rows,
        csv,
    })
}
