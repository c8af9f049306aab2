//! Success against what a search costs: every smaller budget from one run.

use catamount_evaluate::log::{Outcome, Record};
use catamount_figure::{Axis, Chart, Figure, Grid, Series};

use super::Drawn;
use crate::cost::Cost;
use crate::group::Group;
use crate::names::{colours, strategy_label};
use crate::run::Run;

impl Cost {
    fn file(self, budget: u64) -> String {
        match self {
            Cost::Expansions => format!("success-{budget}"),
            Cost::Distinct => format!("success-distinct-{budget}"),
            Cost::Tokens => format!("success-tokens-{budget}"),
        }
    }

    fn caption(self) -> String {
        let counts = match self {
            Cost::Expansions => {
                "a theorem counts from the expansion that found its proof. A strategy that plans \
                 by its budget would do somewhat better at a smaller one than its curve shows"
            }
            Cost::Distinct => {
                "a theorem counts from the tactics that had been tried when its proof was found, \
                 repetitions at one state left out, since a prover need not check them again"
            }
            Cost::Tokens => {
                "a theorem counts from the tokens that had been generated when its proof was \
                 found, which is what a model's time goes into"
            }
        };
        format!("Every smaller budget from one run at this one: {counts}.")
    }
}

/// None where nothing was counted, as with a policy that generates no tokens.
pub(super) fn figure(run: &Run, budget: u64, cost: Cost) -> Option<Drawn> {
    let objectives = run.objectives();
    let palette = colours(&objectives);
    let (least, most) = range(run, budget, cost)?;
    let mut panels = Vec::new();
    let mut top = 0.0f64;
    for strategy in run.strategies() {
        let mut series = Vec::new();
        for (objective, colour) in objectives.iter().zip(&palette) {
            if let Some(group) = run.group(&objective.full, &strategy, budget) {
                let points = curve(group, cost, least, most);
                top = points.iter().map(|p| p.1).fold(top, f64::max);
                let line = Series::step(objective.label(), points).colour(*colour);
                series.push(if objective.has_prior() { line.dashed() } else { line });
            }
        }
        if !series.is_empty() {
            panels.push((strategy, series));
        }
    }
    let (from, to) = (least as f64, most as f64);
    let ticks = std::iter::successors(Some(1.0), |t| Some(t * 4.0));
    let ticks: Vec<f64> = ticks.skip_while(|t| *t < from).take_while(|t| *t <= to).collect();
    let title = format!("Success against {}, N = {budget}", cost.unit());
    let mut grid = Grid::new(title, 3).panel_size(300.0, 240.0);
    for (strategy, series) in panels {
        grid = grid.panel(
            Figure::new(strategy_label(&strategy))
                .x(Axis::log(cost.unit()).ticks(ticks.clone()).from(from).to(to))
                .y(Axis::linear("proved").suffix("%").from(0.0).to((top * 1.08).max(1.0)))
                .extend(series),
        );
    }
    Some(Drawn {
        name: cost.file(budget),
        chart: Box::new(grid) as Box<dyn Chart>,
        caption: cost.caption(),
    })
}

fn completed(group: &Group) -> impl Iterator<Item = &Record> {
    let records = group.cells.values().flat_map(|cell| cell.records.values());
    records.filter(|record| record.outcome != Outcome::Error)
}

/// Where the axis begins and ends. Expansions run from one to the budget.
fn range(run: &Run, budget: u64, cost: Cost) -> Option<(u64, u64)> {
    if cost == Cost::Expansions {
        return Some((1, budget));
    }
    let at = run.groups.iter().filter(|group| group.budget == budget);
    let costs: Vec<u64> =
        at.flat_map(completed).map(|record| cost.of(record)).filter(|c| *c > 0).collect();
    let (least, most) = (*costs.iter().min()?, *costs.iter().max()?);
    (least < most).then_some((least, most))
}

/// Share of completed theorems proved at each cost, in percent.
fn curve(group: &Group, cost: Cost, least: u64, most: u64) -> Vec<(f64, f64)> {
    let all = completed(group).count();
    let proved = completed(group).filter(|record| record.outcome == Outcome::Proved);
    let mut found: Vec<u64> = proved.map(|record| cost.of(record).max(least)).collect();
    found.sort_unstable();
    let percent = |k: usize| 100.0 * k as f64 / all.max(1) as f64;
    let at_first = found.iter().take_while(|e| **e <= least).count();
    let mut points = vec![(least as f64, percent(at_first))];
    for (i, spent) in found.iter().enumerate().skip(at_first) {
        if found.get(i + 1) != Some(spent) {
            points.push((*spent as f64, percent(i + 1)));
        }
    }
    points.push((most as f64, percent(found.len())));
    points
}
