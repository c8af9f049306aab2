//! How well surrogates predict which theorems are proved, as they stand and fitted.

use std::fmt::Write;

use catamount_calibration::Model;

use super::minus;
use crate::calibration::Calibrated;
use crate::names::{Objective, strategy_label};
use crate::table::{Entry, Table, field};

/// `kappa 3.1 [2.4, 4.0], q 0.02 [0, 0.05]`.
fn parameters(model: &Model) -> String {
    let number = |value: f64| {
        if value.abs() >= 100.0 { format!("{value:.0}") } else { format!("{value:.3}") }
    };
    let one = |p: &catamount_calibration::Parameter| {
        format!("{} {} [{}, {}]", p.name, number(p.value), number(p.low), number(p.high))
    };
    model.parameters.iter().map(one).collect::<Vec<_>>().join(", ")
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
         chosen,fitted,log_loss,brier,gain,gain_low,gain_high\n",
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
                "{},{},{},{},{},{},{},{},{},{},{},{chosen},{},{},{},{},{},{}",
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
             Fitted: the most likely value, with an interval over resampled theorems. Bold: \
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
