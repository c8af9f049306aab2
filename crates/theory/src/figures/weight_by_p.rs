//! The weight of a step against the probability of its tactic, for every objective.

use catamount_figure::{Axis, Figure, Series};
use catamount_objective::{Objective, Prior};

use super::surrogate;
use crate::check::{Check, Finding, largest, rise};
use crate::theory::TheoryError;

const BUDGET: u64 = 64;

/// Weight of the middle step of three against its p, at one budget.
pub fn weight_by_p() -> Result<Finding, TheoryError> {
    // Even in log p below one half and in log(1 - p) above it.
    let grid = (0..=40).map(|i| 10f64.powf(-4.0 + 3.7 * f64::from(i) / 40.0));
    let p: Vec<f64> =
        grid.chain((1..=20).map(|i| 1.0 - 0.5 * 10f64.powf(-2.0 * f64::from(i) / 20.0))).collect();
    let mut figure = Figure::new("Unlikely tactics keep their weight, likely ones lose it")
        .subtitle(format!(
            "Weight of the middle step of a trace with p = (0.5, p, 0.2), N = {BUDGET} expansions \
             ({} rollouts)",
            BUDGET / 4
        ))
        .x(Axis::log("probability p of the demonstrated tactic").from(1e-4).to(1.0))
        .y(Axis::linear("weight").from(0.0))
        .sized(720.0, 460.0);
    let mut checks = Vec::new();
    let (mut lowest_at_rare, mut most_rise, mut outside, mut steepest) =
        (f64::INFINITY, 0f64, 0f64, Vec::new());
    for objective in Objective::ALL.into_iter().filter(|&o| o != Objective::Dfs) {
        let weights = p
            .iter()
            .map(|&p| Ok(surrogate(objective, BUDGET, Prior::NONE, &[0.5, p, 0.2])?[1]))
            .collect::<Result<Vec<f64>, TheoryError>>()?;
        if objective == Objective::Ce {
            checks.push(Check::at_most(
                "`ce` differs from 1 by",
                largest(weights.iter().map(|w| (w - 1.0).abs())),
                0.0,
            ));
        } else {
            lowest_at_rare = lowest_at_rare.min(weights[0]);
            steepest.push(weights[0] - weights[weights.len() - 1]);
        }
        if objective != Objective::Vdfs {
            most_rise = most_rise.max(rise(&weights));
            outside = outside.max(largest(weights.iter().map(|w| (-w).max(w - 1.0))));
        }
        let name = if objective == Objective::Bfs { "bfs, dfs" } else { objective.name() };
        figure = figure.add(Series::line(name, p.iter().copied().zip(weights)).plain());
    }
    checks.push(Check::at_least(
        "smallest weight at p = 0.0001, over the search-aware objectives",
        lowest_at_rare,
        0.97,
    ));
    checks.push(Check::at_least(
        "smallest drop of a search-aware weight from p = 0.0001 to p = 0.995",
        steepest.into_iter().fold(f64::INFINITY, f64::min),
        0.1,
    ));
    checks.push(Check::at_most("largest rise of a weight with p (`vdfs` aside)", most_rise, 1e-12));
    checks.push(Check::at_most(
        "farthest a weight lies outside [0, 1] (`vdfs` aside)",
        outside,
        1e-12,
    ));
    Ok(Finding {
        name: "weight-by-p",
        claim: "Every search-aware weight is near 1 for a tactic the search will hardly find and \
         falls as the tactic becomes likely, \
                while cross-entropy weighs all alike."
            .into(),
        checks,
        chart: Box::new(figure),
        table: String::new(),
    })
}
