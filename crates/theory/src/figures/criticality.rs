//! The retry weight is a criticality (lem:criticality_revised).

use catamount_figure::{Axis, Figure, Series};
use catamount_objective::{Objective, Prior};

use super::{apart_dots, surrogate};
use crate::check::{Check, Finding, budgets, largest, rise};
use crate::theory::TheoryError;
use crate::waiting::done_by;

/// The retry weights against the probability that one more wait would have been too much.
pub fn criticality() -> Result<Finding, TheoryError> {
    let p = [0.6, 0.05, 0.25];
    let last = 400;
    let within = done_by(&p, last);
    let mut figure = Figure::new("The retry weight is a criticality")
        .subtitle(
            "The chance that a run which succeeded could not have afforded to find the \
         tactic a second time",
        )
        .x(Axis::log("budget N (expansions)").ticks([3.0, 10.0, 30.0, 100.0, 300.0]))
        .y(Axis::linear("weight").from(0.0).to(1.05))
        .note(
            "P(S \u{2264} N < S + T' | S \u{2264} N), with S the sum of the waiting times and \
         T' a fresh copy of one of them.",
        );
    let (mut apart, mut most_rise, mut dots) = (0f64, 0f64, Vec::new());
    for (t, &own) in p.iter().enumerate() {
        let again = done_by(&[p[0], p[1], p[2], own], last);
        let budgets = budgets(3, last as u64, 10);
        let mut weights = Vec::new();
        let mut critical = Vec::new();
        for &n in &budgets {
            weights.push(surrogate(Objective::Bfs, n, Prior::NONE, &p)?[t]);
            critical.push(1.0 - again[n as usize] / within[n as usize]);
        }
        apart = apart.max(largest(weights.iter().zip(&critical).map(|(a, b)| (a - b).abs())));
        most_rise = most_rise.max(rise(&weights));
        let x = || budgets.iter().map(|&n| n as f64);
        figure = figure
            .add(Series::line(format!("weight at p = {own}"), x().zip(weights)).plain().colour(t));
        dots.extend(x().zip(critical).step_by(3).flat_map(apart_dots));
    }
    figure = figure.add(Series::line("criticality", dots).colour(5));
    Ok(Finding {
        name: "criticality",
        claim: "The retry weight of a step is the probability that a run which succeeded would \
         have failed had it needed one more wait for that tactic."
            .into(),
        checks: vec![
            Check::at_most("largest distance between weight and criticality", apart, 1e-12),
            Check::at_most("largest rise of the weight with N", most_rise, 1e-12),
        ],
        chart: Box::new(figure),
        table: String::new(),
    })
}
