//! Every figure of a report.

pub(crate) mod calibration;
mod depths;
mod gain;
mod probabilities;
mod rates;
mod success;
mod training;

use catamount_figure::Chart;

use crate::cost::Cost;
use crate::run::Run;

/// A figure with the name of its files and a sentence for the page.
pub(crate) struct Drawn {
    pub(crate) name: String,
    pub(crate) chart: Box<dyn Chart>,
    pub(crate) caption: String,
}

/// Every figure that the run has data for.
pub(crate) fn all(run: &Run) -> Vec<Drawn> {
    let mut figures: Vec<Drawn> =
        run.budgets().into_iter().rev().map(|budget| rates::figure(run, budget)).collect();
    figures.extend(gain::figure(run));
    let budgets = run.budgets();
    figures.extend(
        budgets.iter().rev().filter_map(|budget| success::figure(run, *budget, Cost::Expansions)),
    );
    for cost in [Cost::Distinct, Cost::Tokens] {
        figures.extend(budgets.last().and_then(|budget| success::figure(run, *budget, cost)));
    }
    figures.extend(depths::figure(run));
    figures.extend(training::figures(run));
    figures.extend(probabilities::figure(run));
    figures.extend(calibration::grid(&run.calibrations).map(|grid| {
        Drawn {
            name: "reliability".into(),
            chart: Box::new(grid),
            caption:
                "Validation theorems by the probability that the surrogate gives them of being \
                  proved by the warm-up model, against how many were; predictions are made \
                  without the theorem."
                    .into(),
        }
    }));
    figures
}
