//! Hump or floor: how the surrogate's error scales with the budget (prop:hump_floor).

use catamount_figure::{Axis, Figure, Series};
use catamount_objective::{Objective, Prior};
use catamount_search::StrategyKind;

use super::{apart_dots, surrogate};
use crate::check::{Check, Finding, budgets, largest};
use crate::elasticity::deployed;
use crate::explore::simulation;
use crate::theory::TheoryError;
use crate::tree::{Branch, ProofTree};

const P: [f64; 2] = [0.2, 0.5];
const LAST: u64 = 4096;
/// Budget up to which the deployed search is followed.
const FOLLOWED: u64 = 128;

/// The error w* - w of the retry surrogate at step 1 against N, with recoverable misses and with
/// absorbing ones.
pub fn absorption() -> Result<Finding, TheoryError> {
    // Every budget where the rounding of N_eff shows.
    let grid: Vec<u64> = (2..400).chain(budgets(400, LAST, 8)).collect();
    let mut figure = Figure::new("Recoverable misses leave a hump, absorbing ones a floor")
        .subtitle(
            "Error of the retry weight of step 1, p = (0.2, 0.5); markers: search on such \
         trees; dotted: q/(p+(1-p)q)",
        )
        .note("The teeth are N_eff = L + (N-L)/\u{3ba} being rounded down to whole expansions.")
        .x(Axis::log("budget N (expansions)").ticks([2.0, 8.0, 32.0, 128.0, 512.0, 2048.0]))
        .y(Axis::linear("deployed weight minus surrogate weight").from(0.0));
    let (mut start, mut late, mut peak, mut off_floor, mut apart) =
        (0f64, 0f64, f64::INFINITY, 0f64, 0f64);
    let mut dots = Vec::new();
    let cases = [(4, 0.0), (16, 0.0), (1, 0.02), (1, 0.1), (1, 0.5)];
    for (colour, (kappa, q)) in cases.into_iter().enumerate() {
        let prior = Prior::new(kappa as f64, q)?;
        let error = |n: u64| -> Result<f64, TheoryError> {
            Ok(surrogate(Objective::Bfs, n, prior, &P)?[0]
                - surrogate(Objective::Bfs, n, Prior::NONE, &P)?[0])
        };
        let line = grid
            .iter()
            .map(|&n| Ok((n as f64, error(n)?)))
            .collect::<Result<Vec<_>, TheoryError>>()?;
        let branch = if q > 0.0 { Branch::Absorbing } else { Branch::Detour { cost: kappa } };
        let share = if q > 0.0 { q } else { 1.0 };
        let chain = ProofTree::chain(&P)?;
        let tree = (1..=2).try_fold(chain, |tree, t| tree.deviate(t, share, &branch))?;
        let star = deployed(&tree, &simulation(StrategyKind::Dfs, FOLLOWED)?)?.weights;
        for n in budgets(2, FOLLOWED, 1) {
            let plain = surrogate(Objective::Bfs, n, Prior::NONE, &P)?[0];
            let found = star[0][n as usize - 1] - plain;
            apart = apart.max((found - error(n)?).abs());
            dots.extend(apart_dots((n as f64, found)));
        }
        start = start.max(line[0].1.abs());
        let (end, highest) = (line[line.len() - 1].1, largest(line.iter().map(|point| point.1)));
        let name = if q > 0.0 { format!("q = {q}") } else { format!("\u{3ba} = {kappa}") };
        figure = figure.add(Series::line(&name, line).plain().colour(colour));
        if q > 0.0 {
            let floor = q / (P[0] + (1.0 - P[0]) * q);
            off_floor = off_floor.max((end - floor).abs());
            figure = figure.reference(floor);
        } else {
            late = late.max(end.abs());
            peak = peak.min(highest);
        }
    }
    figure = figure.add(Series::line("depth-first search", dots).colour(5));
    Ok(Finding {
        name: "hump-and-floor",
        claim: "If the search recovers from every miss the surrogate's error is zero at the \
         smallest budget, humped, and vanishes; if a share q of \
                misses is never recovered from it tends to q/(p+(1-p)q) instead."
            .into(),
        checks: vec![
            Check::at_most("largest error at N = L", start, 1e-12),
            Check::at_most(
                format!(
                    "largest error of recoverable misses at N = \
             {LAST}"
                ),
                late,
                1e-6,
            ),
            Check::at_least("lowest peak of the humps", peak, 0.1),
            Check::at_most(
                format!(
                    "farthest from the floor q/(p+(1-p)q) at N = \
             {LAST}"
                ),
                off_floor,
                1e-9,
            ),
            Check::at_most(
                "largest distance between the model and depth-first search on such \
             trees",
                apart,
                1e-9,
            ),
        ],
        chart: Box::new(figure),
        table: String::new(),
    })
}
