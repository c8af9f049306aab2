//! The kappa bracket (prop:shared_budget_bracketing_revised) and what no trace can tell
//! (prop:irreducible_ambiguity).

use catamount_figure::{Axis, Figure, Series};
use catamount_objective::{Objective, Prior};
use catamount_search::StrategyKind;

use super::{apart_dots, surrogate};
use crate::check::{Check, Finding, largest};
use crate::elasticity::deployed;
use crate::explore::simulation;
use crate::theory::TheoryError;
use crate::tree::{Branch, ProofTree};

const P: [f64; 2] = [0.35, 0.5];
const LAST: u64 = 80;
const COSTS: [usize; 4] = [1, 2, 4, 8];

/// Deployed weights of depth-first search on trees where every miss is a detour of fixed cost,
/// against the bracket.
pub fn excursion() -> Result<Finding, TheoryError> {
    let grid: Vec<u64> = (2..=LAST).collect();
    let hat = |n: u64, kappa: usize| -> Result<f64, TheoryError> {
        Ok(surrogate(Objective::Bfs, n, Prior::new(kappa as f64, 0.0)?, &P)?[0])
    };
    let ceiling = COSTS[COSTS.len() - 1];
    let mut figure = Figure::new("A miss that costs \u{3ba} expansions is a smaller budget")
        .subtitle(
            "Weight of step 1, p = (0.35, 0.5); lines: the surrogate at L + (N-L)/\u{3ba}; \
         markers: search on detours of that cost",
        )
        .x(Axis::linear("budget N (expansions)"))
        .y(Axis::linear("weight").from(0.0).to(1.05));
    let (mut apart, mut below, mut above, mut dots) =
        (0f64, f64::NEG_INFINITY, f64::NEG_INFINITY, Vec::new());
    for (colour, kappa) in COSTS.into_iter().enumerate() {
        let chain = ProofTree::chain(&P)?;
        let tree = (1..=2)
            .try_fold(chain, |tree, t| tree.deviate(t, 1.0, &Branch::Detour { cost: kappa }))?;
        let star = deployed(&tree, &simulation(StrategyKind::Dfs, LAST)?)?.weights;
        let star = |n: u64| star[0][n as usize - 1];
        let mut lines = Vec::new();
        for &n in &grid {
            let line = hat(n, kappa)?;
            apart = apart.max((star(n) - line).abs());
            below = largest([below, hat(n, 1)? - star(n)]);
            above = largest([above, star(n) - hat(n, ceiling)?]);
            lines.push((n as f64, line));
        }
        dots.extend((2..=LAST).step_by(6).flat_map(|n| apart_dots((n as f64, star(n)))));
        figure = figure
            .add(Series::step(format!("surrogate at \u{3ba} = {kappa}"), lines).colour(colour));
    }
    figure = figure.add(Series::line("depth-first search", dots).colour(5));
    let middle = 20;
    let width = hat(middle, ceiling)? - hat(middle, 1)?;
    Ok(Finding {
        name: "kappa-bracket",
        claim: "When every miss costs kappa expansions the deployed weight is the surrogate's at \
         the smaller budget L + (N-L)/kappa, so it lies \
                between the surrogate at N and at the largest kappa; no rule that sees only the \
                trace can be closer than half that bracket."
            .into(),
        checks: vec![
            Check::at_most(
                "largest distance between the deployed weight and the surrogate at \
             N_eff",
                apart,
                1e-9,
            ),
            Check::at_most("farthest below the bracket", below, 1e-9),
            Check::at_most("farthest above the bracket", above, 1e-9),
            Check::at_least(
                format!(
                    "half the bracket's width at N = {middle}, kappa up to \
             {ceiling}"
                ),
                width / 2.0,
                0.1,
            ),
        ],
        chart: Box::new(figure),
        table: String::new(),
    })
}
