//! Rates with Wilson intervals, objectives side by side under every strategy.

use catamount_figure::{Axis, Figure, Series};

use super::Drawn;
use crate::names::{Objective, colours, strategy_label};
use crate::run::Run;

pub(super) fn figure(run: &Run, budget: u64) -> Drawn {
    let strategies = run.strategies();
    let objectives = run.objectives();
    let palette = colours(&objectives);
    let series = objectives.iter().zip(palette).filter(|(o, _)| present(run, o, budget)).map(
        |(objective, colour)| {
            let rates: Vec<_> = strategies
                .iter()
                .map(|s| run.group(&objective.full, s, budget).map(crate::group::Group::rate))
                .collect();
            // A hole keeps its place: no bar, and no value in the data.
            let value = |f: fn(&catamount_statistics::Rate) -> f64| -> Vec<f64> {
                rates.iter().map(|r| r.as_ref().map_or(f64::NAN, |r| 100.0 * f(r))).collect()
            };
            Series::bars_of(objective.label(), value(|r| r.rate))
                .bars(value(|r| r.low).into_iter().zip(value(|r| r.high)))
                .colour(colour)
        },
    );
    let figure = Figure::new(format!("Proofs found at N = {budget}"))
        .x(Axis::categories("deployed strategy", strategies.iter().map(|s| strategy_label(s))))
        .y(Axis::linear("theorems proved").suffix("%"))
        .extend(series)
        .sized(760.0, 430.0);
    Drawn {
        name: format!("rates-{budget}"),
        chart: Box::new(figure),
        caption: "Bars are Wilson 95 % intervals of single rates. They are wider than the paired \
         ones: overlapping bars do not mean that a difference is not significant."
            .into(),
    }
}

fn present(run: &Run, objective: &Objective, budget: u64) -> bool {
    run.groups.iter().any(|g| g.budget == budget && g.objective == *objective)
}
