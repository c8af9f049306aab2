//! Distributions of p: of training tactics, of held-out ones, and of those weights rest on.

use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::reading::{Distribution, Reading};
use crate::run::Run;

/// Smallest p with a place in the picture; smaller ones stand at this value.
const SMALLEST: f64 = 1e-6;

pub(super) fn figure(run: &Run) -> Option<Drawn> {
    if run.readings.is_empty() {
        return None;
    }
    let title = "Probability of demonstrated tactics, seen in training and held out";
    let grid = run.readings.iter().fold(Grid::new(title, 3).panel_size(300.0, 220.0), |grid, r| {
        let panel = Figure::new(r.label())
            .x(Axis::log("p of the demonstrated tactic").to(1.0))
            .y(Axis::linear("tactics at or below").suffix("%").from(0.0).to(100.0))
            .add(Series::line("training", cumulative(r, &r.training)).dashed().colour(5))
            .add(Series::line("held out", cumulative(r, &r.held_out)).colour(1))
            .add(Series::line("used for weights", cumulative(r, &r.used)).colour(0));
        grid.panel(panel)
    });
    Some(Drawn {
        name: "probabilities".into(),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: "Weights fit a search on new theorems where the probabilities they were computed \
         from are distributed as the held-out ones; values below one in a million stand at it."
            .into(),
    })
}

fn cumulative(reading: &Reading, of: &Distribution) -> Vec<(f64, f64)> {
    let places = of.log_p_quantiles.iter().map(|log_p| log_p.exp().max(SMALLEST));
    places.zip(&reading.levels).map(|(p, level)| (p, 100.0 * level)).collect()
}
