//! What training did: the loss, and the distributions of p and of the weights before and after.

use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::names::{Objective, colours};
use crate::run::Run;
use crate::training::Measurement;

/// Smallest p with a place in the picture; smaller ones stand at this value.
const SMALLEST: f64 = 1e-6;

pub(super) fn figures(run: &Run) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    drawn.extend(loss(run));
    drawn.extend(distribution(run, "p", |m| &m.p));
    drawn.extend(distribution(run, "weights", |m| &m.w));
    drawn
}

fn loss(run: &Run) -> Option<Drawn> {
    let objectives: Vec<Objective> = run.training.iter().map(|t| Objective::parse(&t.objective)).collect();
    let mut figure = Figure::new("Training loss").x(Axis::linear("optimizer step")).y(Axis::linear("loss")).sized(760.0, 400.0);
    let mut any = false;
    for ((training, objective), colour) in run.training.iter().zip(&objectives).zip(colours(&objectives)) {
        let points: Vec<_> = training.measurements.iter().filter_map(|m| Some((m.step, m.loss?))).collect();
        any |= !points.is_empty();
        figure = figure.add(Series::line(objective.label(), points).plain().colour(colour));
    }
    any.then(|| Drawn {
        name: "loss".into(),
        chart: Box::new(figure) as Box<dyn Chart>,
        caption: "As logged by each branch. Losses of different objectives are different quantities; only their course can be compared.".into(),
    })
}

/// Cumulative distributions of the first and the last measurement, a panel per objective.
fn distribution(run: &Run, what: &'static str, of: fn(&Measurement) -> &Vec<f64>) -> Option<Drawn> {
    let of_p = what == "p";
    let title =
        if of_p { "Probability of demonstrated tactics before and after training" } else { "Weights before and after training" };
    let mut grid = Grid::new(title, 3).panel_size(300.0, 220.0);
    let mut any = false;
    for training in &run.training {
        let Some((first, last)) = training.ends(of) else { continue };
        any = true;
        let cumulative = |m: &Measurement| -> Vec<(f64, f64)> {
            let values = of(m);
            let levels = (values.len() - 1) as f64;
            values.iter().enumerate().map(|(i, v)| (if of_p { v.max(SMALLEST) } else { *v }, 100.0 * i as f64 / levels)).collect()
        };
        let x = if of_p { Axis::log("p of the demonstrated tactic").to(1.0) } else { Axis::linear("weight").from(0.0) };
        let mut panel = Figure::new(Objective::parse(&training.objective).label())
            .x(x)
            .y(Axis::linear("steps at or below").suffix("%").from(0.0).to(100.0))
            .add(Series::line("before", cumulative(first)).plain().dashed().colour(5));
        if last.step > first.step {
            panel = panel.add(Series::line("after", cumulative(last)).plain().colour(0));
        }
        grid = grid.panel(panel);
    }
    any.then(|| Drawn {
        name: format!("distribution-{what}"),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: format!(
            "Cumulative share of demonstrated steps, from the first and the last measurement of each branch{}.",
            if of_p { "; values below one in a million stand at it" } else { "" }
        ),
    })
}
