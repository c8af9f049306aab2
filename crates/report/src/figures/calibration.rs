//! Reliability diagrams: theorems that are given a probability, and how many of them were proved.

use catamount_calibration::Model;
use catamount_figure::{Axis, Figure, Grid, Series};

use crate::calibration::Calibrated;
use crate::names::{Objective, strategy_label};

/// A panel for every calibration; none without any.
pub(crate) fn grid(all: &[Calibrated]) -> Option<Grid> {
    if all.is_empty() {
        return None;
    }
    let grid = Grid::new("Predicted and observed: proved within the budget", 3)
        .panel_size(300.0, 250.0)
        .note(
            "Bars: Wilson's 95 % interval. On the diagonal, theorems are proved as often as said.",
        );
    Some(all.iter().fold(grid, |grid, one| grid.panel(panel(one))))
}

fn panel(one: &Calibrated) -> Figure {
    let c = &one.calibration;
    let strategies: Vec<String> = one.strategies.iter().map(|s| strategy_label(s)).collect();
    let title = format!(
        "{} under {}, N = {}",
        Objective::parse(&c.objective).label(),
        strategies.join(", "),
        c.budget
    );
    let axis = |label: &str| Axis::linear(label).suffix("%").from(0.0).to(100.0);
    Figure::new(title)
        .x(axis("predicted"))
        .y(axis("proved"))
        .add(Series::line("as said", [(0.0, 0.0), (100.0, 100.0)]).plain().dashed().colour(7))
        .add(series("as it stands", c.uncalibrated()).colour(5))
        .add(series("calibrated", c.chosen()).colour(0))
}

fn series(name: &str, model: &Model) -> Series {
    let bins = &model.reliability;
    let points = bins.iter().map(|bin| (100.0 * bin.predicted, 100.0 * bin.observed.rate));
    let bars = bins.iter().map(|bin| (100.0 * bin.observed.low, 100.0 * bin.observed.high));
    Series::line(name, points).bars(bars)
}
