//! The weight of a step against the budget, for every objective.

use catamount_figure::{Axis, Figure, Series};
use catamount_objective::{Objective, Surrogate};

use crate::check::{Check, Finding, budgets, largest, rise};
use crate::theory::TheoryError;

/// Weight of the hardest step of three against N.
pub fn weight_by_budget() -> Result<Finding, TheoryError> {
    let p = [0.5, 0.1, 0.3];
    let log_p: Vec<f64> = p.iter().map(|p: &f64| p.ln()).collect();
    let mut figure = Figure::new("A larger budget makes a tactic less critical")
        .subtitle(
            "Weight of the middle step of a trace with p = (0.5, 0.1, 0.3), from the \
         smallest budget that can succeed",
        )
        .x(Axis::log(
            "budget N (expansions; rollouts for \
         pass)",
        )
        .ticks([1.0, 4.0, 16.0, 64.0, 256.0, 1024.0]))
        .y(Axis::linear("weight").from(0.0).to(1.05))
        .sized(720.0, 460.0);
    let (mut from_one, mut most_rise, mut last, mut widening, mut value_guided) =
        (0f64, 0f64, 0f64, f64::NAN, f64::NAN);
    for objective in Objective::ALL.into_iter().filter(|&o| o != Objective::Dfs) {
        let grid = budgets(objective.minimum_budget(p.len()).max(1), 1024, 8);
        let weighed =
            |n: u64| Ok::<f64, TheoryError>(Surrogate::new(objective, n).weigh(&log_p)?.weights[1]);
        let weights = grid.iter().map(|&n| weighed(n)).collect::<Result<Vec<f64>, _>>()?;
        match objective {
            Objective::Mcts => widening = weights[0],
            _ => from_one = from_one.max((weights[0] - 1.0).abs()),
        }
        match objective {
            Objective::Vdfs => value_guided = largest(weights.iter().copied()),
            _ => most_rise = most_rise.max(rise(&weights)),
        }
        if objective != Objective::Ce {
            last = largest([last, weights[weights.len() - 1]]);
        }
        let name = if objective == Objective::Bfs { "bfs, dfs" } else { objective.name() };
        figure =
            figure.add(Series::line(name, grid.iter().map(|&n| n as f64).zip(weights)).plain());
    }
    Ok(Finding {
        name: "weight-by-budget",
        claim: "At the smallest budget that can succeed a weight is 1, the CE limit (for `mcts` \
         it is below 1, because a widening sample may take the place \
                of a miss); from there it falls (for `vdfs` it first rises a little above 1), and \
                with enough budget it vanishes."
            .into(),
        checks: vec![
            Check::at_most(
                "largest distance from 1 at the smallest budget (`mcts` \
             aside)",
                from_one,
                1e-12,
            ),
            Check::at_most("weight of `mcts` at its smallest budget", widening, 0.99),
            Check::at_most("largest rise of a weight with N (`vdfs` aside)", most_rise, 1e-12),
            Check::at_least("largest weight of `vdfs`", value_guided, 1.001),
            Check::at_most("largest search-aware weight at N = 1024", last, 0.02),
        ],
        chart: Box::new(figure),
        table: String::new(),
    })
}
