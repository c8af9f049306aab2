//! What training did: the loss, and the distributions of p and of the weights before and after.

use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::names::{Objective, colours};
use crate::run::Run;
use crate::study::WARM_UP;
use crate::training::{Measurement, Training, levels};

/// Smallest p with a place in the picture; smaller ones stand at this value.
const SMALLEST: f64 = 1e-6;

pub(super) fn figures(run: &Run) -> Vec<Drawn> {
    let mut drawn = Vec::new();
    drawn.extend(loss(run));
    drawn.extend(distribution(run, "p", |m| &m.p));
    drawn.extend(distribution(run, "weights", |m| &m.w));
    drawn
}

/// A branch's name in legends: its objective, and its file where two branches share one.
fn label(run: &Run, training: &Training) -> String {
    let objective = Objective::parse(&training.objective).label();
    let shared = run.training.iter().filter(|t| t.objective == training.objective).count() > 1;
    if shared { format!("{objective}: {}", training.name) } else { objective }
}

fn loss(run: &Run) -> Option<Drawn> {
    let objectives: Vec<Objective> =
        run.training.iter().map(|t| Objective::parse(&t.objective)).collect();
    let palette = colours(&objectives);
    // The warm-up starts from nothing: on one axis with the branches it would flatten them.
    let panel = |title: &str, warm_up: bool, of: fn(&Measurement) -> Option<f64>| {
        let shown =
            run.training.iter().zip(&palette).filter(|(t, _)| (t.name == WARM_UP) == warm_up);
        let series = shown.filter_map(|(training, colour)| {
            let points: Vec<_> =
                training.measurements.iter().filter_map(|m| Some((m.step, of(m)?))).collect();
            (!points.is_empty())
                .then(|| Series::line(label(run, training), points).plain().colour(*colour))
        });
        let series: Vec<Series> = series.collect();
        (!series.is_empty()).then(|| {
            Figure::new(title)
                .x(Axis::linear("optimizer step"))
                .y(Axis::linear("mean"))
                .extend(series)
        })
    };
    let panels: Vec<Figure> = [
        panel("Weighted loss of the branches", false, |m| m.loss),
        panel("Cross-entropy of a tactic, unweighted", false, |m| m.ce),
        panel("Cross-entropy of a held-out tactic", false, |m| m.valid_ce),
        panel("Warm-up: cross-entropy of a tactic", true, |m| m.ce),
    ]
    .into_iter()
    .flatten()
    .collect();
    if panels.is_empty() {
        return None;
    }
    let grid =
        panels.into_iter().fold(Grid::new("Training", 2).panel_size(450.0, 280.0), Grid::panel);
    Some(Drawn {
        name: "loss".into(),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: "As logged by each branch. Weighted losses of different objectives are different \
         quantities; only their course can be compared."
            .into(),
    })
}

/// Cumulative distributions of the first and the last measurement, a panel per objective.
fn distribution(run: &Run, what: &'static str, of: fn(&Measurement) -> &Vec<f64>) -> Option<Drawn> {
    let of_p = what == "p";
    let title = if of_p {
        "Probability of demonstrated tactics before and after training"
    } else {
        "Weights before and after training"
    };
    let mut grid = Grid::new(title, 3).panel_size(300.0, 220.0);
    let mut any = false;
    for training in &run.training {
        let Some((first, last)) = training.ends(of) else { continue };
        any = true;
        let cumulative = |m: &Measurement| -> Vec<(f64, f64)> {
            let values = of(m);
            let place = |v: &f64| if of_p { v.max(SMALLEST) } else { *v };
            values
                .iter()
                .zip(levels(values.len()))
                .map(|(v, level)| (place(v), 100.0 * level))
                .collect()
        };
        let x = if of_p {
            Axis::log("p of the demonstrated tactic").to(1.0)
        } else {
            Axis::linear("weight").from(0.0)
        };
        let mut panel = Figure::new(label(run, training))
            .x(x)
            .y(Axis::linear("steps at or below").suffix("%").from(0.0).to(100.0))
            .add(Series::line("before", cumulative(first)).dashed().colour(5));
        if last.step > first.step {
            panel = panel.add(Series::line("after", cumulative(last)).colour(0));
        }
        grid = grid.panel(panel);
    }
    any.then(|| Drawn {
        name: format!("distribution-{what}"),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: format!(
            "Cumulative share of demonstrated steps at the quantiles that were logged, from the \
             first and the last measurement of each branch{}.",
            if of_p { "; values below one in a million stand at it" } else { "" }
        ),
    })
}
