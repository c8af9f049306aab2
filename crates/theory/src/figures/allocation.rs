//! Uniform allocation against the shared budget (eq:mf_budget_average, eq:mf_meanfield_weight).

use catamount_figure::{Axis, Figure, Grid, Series};
use catamount_objective::{Objective, Prior};

use super::{apart_dots, surrogate};
use crate::check::{Check, Finding, budgets, largest};
use crate::theory::TheoryError;
use crate::waiting::{done_by, local_criticality, sum_of_waits};

const P: [f64; 3] = [0.6, 0.05, 0.3];

/// E[h(p_t, B_t) | S_L <= N]: the local criticality averaged over the budget the other steps leave.
fn budget_average(t: usize, budget: usize) -> f64 {
    let others: Vec<f64> = (0..P.len()).filter(|&s| s != t).map(|s| P[s]).collect();
    let (used, all) = (sum_of_waits(&others, budget), done_by(&P, budget)[budget]);
    let term = |left: usize| {
        let found = 1.0 - (1.0 - P[t]).powi(left as i32);
        used[budget - left] * found / all * local_criticality(P[t], left as f64)
    };
    (1..=budget).map(term).sum()
}

/// UA and retry weights of an easy, a hard and a middling step against N.
pub fn allocation() -> Result<Finding, TheoryError> {
    let grid = budgets(3, 512, 6);
    let mut panels = Grid::new("Uniform allocation fixes the budget that retries share", 3)
        .subtitle(
            "One trace of three steps; markers: the local criticality averaged over the \
         budget the other steps leave",
        )
        .panel_size(270.0, 250.0);
    let (mut apart, mut own, mut easy, mut hard, mut start) =
        (0f64, 0f64, f64::NAN, (f64::NAN, f64::NAN), 0f64);
    for (t, &p) in P.iter().enumerate() {
        let (mut ua, mut retry, mut average) = (Vec::new(), Vec::new(), Vec::new());
        for &n in &grid {
            ua.push(surrogate(Objective::Ua, n, Prior::NONE, &P)?[t]);
            retry.push(surrogate(Objective::Bfs, n, Prior::NONE, &P)?[t]);
            average.push(budget_average(t, n as usize));
            own = own.max((local_criticality(p, n as f64 / 3.0) - ua[ua.len() - 1]).abs());
        }
        apart = apart.max(largest(retry.iter().zip(&average).map(|(a, b)| (a - b).abs())));
        start = largest([start, (ua[0] - 1.0).abs(), (retry[0] - 1.0).abs()]);
        let excess: Vec<f64> = ua.iter().zip(&retry).map(|(ua, retry)| ua - retry).collect();
        match t {
            0 => easy = largest(excess.iter().map(|excess| -excess)),
            1 => {
                hard =
                    (largest(excess.iter().copied()), largest(excess.iter().map(|excess| -excess)))
            }
            _ => {}
        }
        let x = || grid.iter().map(|&n| n as f64);
        let dots = x().zip(average).step_by(4).flat_map(apart_dots);
        panels = panels.panel(
            Figure::new(format!("p = {p}"))
                .x(Axis::log("budget N (expansions)").ticks([3.0, 10.0, 30.0, 100.0, 300.0]))
                .y(Axis::linear("weight").from(0.0).to(1.05))
                .add(Series::line("ua", x().zip(ua)).plain())
                .add(Series::line("retry (bfs, dfs)", x().zip(retry)).plain())
                .add(Series::line("budget average", dots)),
        );
    }
    Ok(Finding {
        name: "ua-and-retry",
        claim: "The shared-budget weight is the local criticality averaged over the budget that \
         successful runs leave for the step; UA takes it at N/L \
                instead, which weighs the hard step more at every budget and, once the budget is \
                ample, the easy step less."
            .into(),
        checks: vec![
            Check::at_most(
                "largest distance between the retry weight and its budget \
             average",
                apart,
                1e-12,
            ),
            Check::at_most(
                "largest distance between the UA weight and the local criticality at \
             N/L",
                own,
                1e-12,
            ),
            Check::at_most("largest distance from 1 at N = L", start, 1e-12),
            Check::at_most("largest excess of retry over UA at the hard step", hard.1, 1e-12),
            Check::at_least("largest excess of UA over retry at the hard step", hard.0, 0.1),
            Check::at_least("largest excess of retry over UA at the easy step", easy, 0.05),
        ],
        chart: Box::new(panels),
        table: String::new(),
    })
}
