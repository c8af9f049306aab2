//! Bypass deflation and the error decomposition for Pass@N (thm:passn_squeeze,
//! eq:passn_error_decomp).

use catamount_figure::{Axis, Figure, Grid, Series};
use catamount_objective::{Objective, Surrogate};
use catamount_search::StrategyKind;

use super::apart_dots;
use crate::check::{Check, Finding, budgets, largest, rise};
use crate::elasticity::deployed;
use crate::explore::simulation;
use crate::rollout::rollout;
use crate::theory::TheoryError;
use crate::tree::{Branch, ProofTree};

/// Rollouts for which the deployed search is followed exactly.
const FOLLOWED: u64 = 32;

/// A trace of two steps with an alternative proof beside each. Every rollout costs two expansions,
/// whatever happens, so that N rollouts are 2N expansions of the deployed search.
pub(crate) fn even_tree() -> Result<ProofTree, TheoryError> {
    Ok(ProofTree::chain(&[0.3, 0.2])?
        .deviate(1, 0.2, &Branch::Proof(vec![0.4]))?
        .deviate(1, 0.8, &Branch::Trap { depth: 1, valid: 1.0 })?
        .deviate(2, 0.15, &Branch::Proof(vec![]))?)
}

/// H_F(x) as the lemma writes it: N over the sum of (1-x)^-j.
fn outer_elasticity(x: f64, rollouts: u64) -> f64 {
    rollouts as f64 / (0..rollouts).map(|j| (1.0 - x).powf(-(j as f64))).sum::<f64>()
}

/// w*, its surrogate and the two terms of their difference, against N.
pub fn bypass() -> Result<Finding, TheoryError> {
    let tree = even_tree()?;
    let machine = deployed(&tree, &simulation(StrategyKind::Pass, 2 * FOLLOWED)?)?;
    let grid = budgets(1, 256, 8);
    let mut panels = Grid::new("Alternative proofs deflate the deployed weight of Pass@N", 2)
        .subtitle(
            "Two steps, p = (0.3, 0.2), an alternative proof beside each; markers: the deployed \
             search, every branch followed",
        )
        .panel_size(350.0, 270.0);
    let (mut above, mut unit, mut apart, mut from_machine, mut hump, mut realloc_rise) =
        (f64::NEG_INFINITY, 0f64, 0f64, 0f64, f64::INFINITY, f64::NEG_INFINITY);
    for step in 1..=2 {
        let masses = rollout(&tree, step);
        let eta = masses.elasticity(tree.p()[step - 1]);
        let (mut hat, mut star, mut ignored, mut structure) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for &n in &grid {
            let any = outer_elasticity(masses.any(), n);
            hat.push(Surrogate::new(Objective::Pass, n).weigh(&tree.log_p())?.weights[step - 1]);
            star.push(eta * any);
            ignored.push(outer_elasticity(masses.demonstrated, n) - any);
            structure.push((1.0 - eta) * any);
        }
        let pairs = || hat.iter().zip(&star);
        above = above.max(largest(pairs().map(|(hat, star)| star - hat)));
        unit = unit.max(largest(hat[1..].iter().copied()));
        let rest = ignored.iter().zip(&structure);
        apart = apart.max(largest(
            pairs().zip(rest).map(|((hat, star), (i, s))| (hat - star - i - s).abs()),
        ));
        let followed = |n: u64| machine.weights[step - 1][2 * n as usize - 1];
        from_machine = from_machine.max(largest(
            (1..=FOLLOWED).map(|n| (followed(n) - eta * outer_elasticity(masses.any(), n)).abs()),
        ));
        // A hump: far above both ends.
        hump =
            hump.min(largest(ignored.iter().copied()) - ignored[0].max(ignored[ignored.len() - 1]));
        realloc_rise = realloc_rise.max(rise(&structure));
        let x = || grid.iter().map(|&n| n as f64);
        let dots =
            budgets(1, FOLLOWED, 2).into_iter().flat_map(|n| apart_dots((n as f64, followed(n))));
        panels = panels.panel(
            Figure::new(format!("step {step}"))
                .x(Axis::log("rollouts N").ticks([1.0, 4.0, 16.0, 64.0, 256.0]))
                .y(Axis::linear("weight").from(0.0).to(1.05))
                .add(Series::line("CE", x().map(|n| (n, 1.0))).plain().dashed())
                .add(Series::line("surrogate", x().zip(hat)).plain())
                .add(Series::line("w* by theorem", x().zip(star)).plain())
                .add(Series::line("w* of the search", dots))
                .add(Series::line("ignored bypass mass", x().zip(ignored)).plain())
                .add(Series::line("reallocation", x().zip(structure)).plain()),
        );
    }
    Ok(Finding {
        name: "bypass",
        claim: "For Pass@N the deployed weight never exceeds the surrogate's, which is below 1; \
         the gap is the ignored bypass mass, a hump, \
                plus a reallocation term that only decays."
            .into(),
        checks: vec![
            Check::at_most("largest excess of w* over the surrogate", above, 0.0),
            Check::at_most("largest surrogate weight for N > 1", unit, 1.0 - 1e-6),
            Check::at_most(
                "largest distance between the gap and the sum of its two \
             terms",
                apart,
                1e-12,
            ),
            Check::at_most(
                "largest distance between w* of the theorem and of the deployed \
             search",
                from_machine,
                1e-10,
            ),
            Check::at_least("height of the bypass term's hump over both its ends", hump, 0.05),
            Check::at_most("largest rise of the reallocation term", realloc_rise, 0.0),
        ],
        chart: Box::new(panels),
        table: String::new(),
    })
}
