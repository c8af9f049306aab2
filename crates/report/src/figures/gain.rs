//! Paired gain over the control against the budget, a panel per strategy.

use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::names::{CONTROL, colours, strategy_label};
use crate::run::Run;

pub(super) fn figure(run: &Run) -> Option<Drawn> {
    let objectives = run.objectives();
    let palette = colours(&objectives);
    let budgets = run.budgets();
    let mut grid = Grid::new("Paired gain over CE against the budget", 3).panel_size(300.0, 240.0);
    let mut any = false;
    let (mut low, mut high) = (0.0f64, 0.0f64);
    let mut panels = Vec::new();
    for strategy in run.strategies() {
        let mut series = Vec::new();
        for (place, (objective, colour)) in
            objectives.iter().zip(&palette).filter(|(o, _)| o.full != CONTROL).enumerate()
        {
            let gains: Vec<_> = budgets
                .iter()
                .filter_map(|&b| {
                    let group = run.group(&objective.full, &strategy, b)?;
                    Some((b, group.against(run.control(group)?)?))
                })
                .collect();
            if gains.is_empty() {
                continue;
            }
            for (_, c) in &gains {
                (low, high) = (low.min(c.ci_low), high.max(c.ci_high));
            }
            // Error bars at one budget stand beside each other.
            let dodge = (30.0 / objectives.len() as f64).min(6.0)
                * (place as f64 - (objectives.len() as f64 - 2.0) / 2.0);
            series.push(
                Series::line(objective.label(), gains.iter().map(|(b, c)| (*b as f64, c.gain_pp)))
                    .bars(gains.iter().map(|(_, c)| (c.ci_low, c.ci_high)))
                    .hollow(gains.iter().map(|(_, c)| c.p >= 0.05))
                    .dodge(dodge)
                    .colour(*colour),
            );
        }
        if !series.is_empty() {
            any = true;
            panels.push((strategy, series));
        }
    }
    for (strategy, series) in panels {
        grid = grid.panel(
            Figure::new(strategy_label(&strategy))
                .x(Axis::log("budget N (expansions)").ticks(budgets.iter().map(|b| *b as f64)))
                .y(Axis::linear("gain (pp)").from(low * 1.05).to(high * 1.05))
                .reference(0.0)
                .extend(series),
        );
    }
    any.then(|| Drawn {
        name: "gain".into(),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: "Error bars are 95 % intervals of the paired gain; hollow markers have p \
         \u{2265} 0.05. Where cells completed different theorems the lines are descriptive, not \
         one cohort. Series are shifted sideways a little to be told apart."
            .into(),
    })
}
