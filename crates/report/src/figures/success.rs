//! Success against expansions: every smaller budget from one run.

use catamount_evaluate::log::Outcome;
use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::group::Group;
use crate::names::{colours, strategy_label};
use crate::run::Run;

pub(super) fn figure(run: &Run, budget: u64) -> Drawn {
    let objectives = run.objectives();
    let palette = colours(&objectives);
    let mut panels = Vec::new();
    let mut top = 0.0f64;
    for strategy in run.strategies() {
        let mut series = Vec::new();
        for (objective, colour) in objectives.iter().zip(&palette) {
            if let Some(group) = run.group(&objective.full, &strategy, budget) {
                let points = curve(group);
                top = points.iter().map(|p| p.1).fold(top, f64::max);
                let line = Series::step(objective.label(), points).colour(*colour);
                series.push(if objective.has_prior() { line.dashed() } else { line });
            }
        }
        if !series.is_empty() {
            panels.push((strategy, series));
        }
    }
    let largest = budget as f64;
    let ticks: Vec<f64> =
        std::iter::successors(Some(1.0), |t| Some(t * 4.0)).take_while(|t| *t <= largest).collect();
    let mut grid =
        Grid::new(format!("Success against expansions, N = {budget}"), 3).panel_size(300.0, 240.0);
    for (strategy, series) in panels {
        grid = grid.panel(
            Figure::new(strategy_label(&strategy))
                .x(Axis::log("expansions").ticks(ticks.clone()).from(1.0).to(largest))
                .y(Axis::linear("proved").suffix("%").from(0.0).to((top * 1.08).max(1.0)))
                .extend(series),
        );
    }
    Drawn {
        name: format!("success-{budget}"),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: "Every smaller budget from one run at this one: a theorem counts from the \
         expansion that found its proof. A strategy that plans by its budget would do somewhat \
         better at a smaller one than its curve shows."
            .into(),
    }
}

/// Share of completed theorems proved within each number of expansions, in percent.
fn curve(group: &Group) -> Vec<(f64, f64)> {
    let mut found: Vec<u64> = Vec::new();
    let mut completed = 0usize;
    for record in group
        .cells
        .values()
        .flat_map(|c| c.records.values())
        .filter(|r| r.outcome != Outcome::Error)
    {
        completed += 1;
        if record.outcome == Outcome::Proved {
            found.push(record.expansions.max(1));
        }
    }
    found.sort_unstable();
    let percent = |k: usize| 100.0 * k as f64 / completed.max(1) as f64;
    let at_first = found.iter().take_while(|e| **e <= 1).count();
    let mut points = vec![(1.0, percent(at_first))];
    for (i, expansions) in found.iter().enumerate().skip(at_first) {
        if found.get(i + 1) != Some(expansions) {
            points.push((*expansions as f64, percent(i + 1)));
        }
    }
    points.push((group.budget as f64, percent(found.len())));
    points
}
