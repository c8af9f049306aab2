//! Where each strategy spends its budget: the share of expansions at every depth.

use catamount_evaluate::log::Outcome;
use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::group::Group;
use crate::names::{Objective, colours, strategy_label};
use crate::run::Run;

/// Depths beyond this are shown together at the end.
const DEEPEST: usize = 12;

pub(super) fn figure(run: &Run) -> Option<Drawn> {
    let budget = *run.budgets().last()?;
    let strategies = run.strategies();
    // A strategy has the colour of the objective that models it.
    let palette = colours(&strategies.iter().map(|s| Objective::parse(s)).collect::<Vec<_>>());
    let mut panels = Vec::new();
    let mut top = 0.0f64;
    let mut deepest = 0;
    for objective in run.objectives() {
        let mut series = Vec::new();
        for (colour, strategy) in palette.iter().zip(&strategies) {
            let Some(shares) = run.group(&objective.full, strategy, budget).and_then(shares) else {
                continue;
            };
            top = shares.iter().copied().fold(top, f64::max);
            deepest = deepest.max(shares.len());
            series.push(
                Series::line(
                    strategy_label(strategy),
                    shares.iter().enumerate().map(|(d, s)| (d as f64, *s)),
                )
                .colour(*colour),
            );
        }
        if !series.is_empty() {
            panels.push((objective.label(), series));
        }
    }
    if panels.is_empty() {
        return None;
    }
    let mut grid = Grid::new(format!("Where each strategy spends its budget, N = {budget}"), 3)
        .panel_size(300.0, 230.0);
    for (label, series) in panels {
        grid = grid.panel(
            Figure::new(label)
                .x(Axis::linear("depth of the expanded state")
                    .ticks((0..deepest).map(|d| d as f64)))
                .y(Axis::linear("share of expansions").suffix("%").from(0.0).to(top * 1.08))
                .extend(series),
        );
    }
    Some(Drawn {
        name: "depths".into(),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: format!(
            "Expansions of all completed theorems by the depth of the state they were sampled at, \
             the root being 0; depths of {DEEPEST} and more are one point."
        ),
    })
}

/// Percent of expansions at each depth; `None` when nothing was expanded.
fn shares(group: &Group) -> Option<Vec<f64>> {
    let mut counts = vec![0u64; DEEPEST + 1];
    for record in group
        .cells
        .values()
        .flat_map(|c| c.records.values())
        .filter(|r| r.outcome != Outcome::Error)
    {
        for (depth, count) in record.depths.iter().enumerate() {
            counts[depth.min(DEEPEST)] += count;
        }
    }
    let whole: u64 = counts.iter().sum();
    while counts.last() == Some(&0) {
        counts.pop();
    }
    (whole > 0).then(|| counts.iter().map(|c| 100.0 * *c as f64 / whole as f64).collect())
}
