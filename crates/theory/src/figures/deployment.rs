//! Surrogate error measured: deployed weights of all six strategies on four trees, exactly, against
//! the surrogates' and CE's.

use std::fmt::Write;

use catamount_figure::{Axis, Figure, Grid, Series};
use catamount_objective::{Objective, Prior};
use catamount_search::{Family, StrategyKind};

use super::surrogate;
use crate::check::{Check, Finding, largest};
use crate::elasticity::{Deployed, deployed};
use crate::explore::simulation;
use crate::theory::TheoryError;
use crate::tree::{Branch, ProofTree};

const P: [f64; 3] = [0.5, 0.25, 0.4];
const BUDGET: u64 = 16;

/// The trees, by name.
fn trees() -> Result<[(&'static str, ProofTree); 4], TheoryError> {
    let chain = || ProofTree::chain(&P);
    let both = |share: f64, branch: Branch| {
        (1..=P.len()).try_fold(chain()?, |tree, t| tree.deviate(t, share, &branch))
    };
    Ok([
        ("chain", chain()?),
        (
            "bypass",
            chain()?.deviate(1, 0.2, &Branch::Proof(vec![0.5]))?.deviate(
                2,
                0.2,
                &Branch::Proof(vec![]),
            )?,
        ),
        ("trap", both(0.3, Branch::Trap { depth: 2, valid: 0.5 })?),
        ("absorbing", both(0.3, Branch::Absorbing)?),
    ])
}

fn is_depth_first(strategy: StrategyKind) -> bool {
    strategy.family() == Family::DepthFirst
}

/// Whether a strategy spends samples whatever comes of them.
fn spends(strategy: StrategyKind) -> bool {
    strategy.family() == Family::Batches
}

/// The names of some strategies, as claims have them.
fn names(which: impl Fn(StrategyKind) -> bool) -> String {
    let chosen = StrategyKind::ALL.into_iter().filter(|kind| which(*kind));
    chosen.map(|kind| format!("`{kind}`")).collect::<Vec<_>>().join(", ")
}

/// One strategy on one tree.
#[derive(Clone, Debug)]
pub struct Row {
    /// The tree.
    pub tree: &'static str,
    /// The deployed strategy.
    pub strategy: StrategyKind,
    /// What it does, for every budget up to the table's.
    pub deployed: Deployed,
    /// Its surrogate's weights at the table's budget.
    pub surrogate: Vec<f64>,
    /// UA's weights at the table's budget.
    pub uniform: Vec<f64>,
}

impl Row {
    /// w*_t at the table's budget.
    pub fn truth(&self, t: usize) -> f64 {
        self.deployed.weights[t][BUDGET as usize - 1]
    }

    /// The mean over steps of the distance between a weighting and the truth.
    fn error(&self, weight: impl Fn(usize) -> f64) -> f64 {
        (0..P.len()).map(|t| (weight(t) - self.truth(t)).abs()).sum::<f64>() / P.len() as f64
    }

    /// The mean error of the strategy's own surrogate.
    pub fn own_error(&self) -> f64 {
        self.error(|t| self.surrogate[t])
    }

    /// The mean error of UA.
    pub fn uniform_error(&self) -> f64 {
        self.error(|t| self.uniform[t])
    }

    /// The mean error of cross-entropy.
    pub fn ce_error(&self) -> f64 {
        self.error(|_| 1.0)
    }
}

/// The whole table: every strategy on every tree.
pub fn rows() -> Result<Vec<Row>, TheoryError> {
    let mut rows = Vec::new();
    for (name, tree) in trees()? {
        for strategy in StrategyKind::ALL {
            let objective = strategy.objective();
            rows.push(Row {
                tree: name,
                strategy,
                deployed: deployed(&tree, &simulation(strategy, BUDGET)?)?,
                surrogate: surrogate(objective, BUDGET, Prior::NONE, &P)?,
                uniform: surrogate(Objective::Ua, BUDGET, Prior::NONE, &P)?,
            });
        }
    }
    Ok(rows)
}

fn table(rows: &[Row]) -> String {
    let columns = |name: &str| (1..=P.len()).map(|t| format!("{name}_{t} | ")).collect::<String>();
    let mut out = format!(
        "N = {BUDGET} expansions, p = {P:?}; `pass` is trained for N/4 rollouts. w* is the \
         deployed weight, w the weight of the deployed \
         strategy's own surrogate; errors are means over the steps.\n\n| tree | deployed | J | \
         {}{}own error | UA error | CE error |\n|{}\n",
        columns("w*"),
        columns("w"),
        "---|".repeat(6 + 2 * P.len())
    );
    for row in rows {
        let _ = write!(
            out,
            "| {} | {} | {:.4} |",
            row.tree,
            row.strategy,
            row.deployed.success[BUDGET as usize - 1]
        );
        let truth = (0..P.len()).map(|t| row.truth(t));
        let errors = [row.own_error(), row.uniform_error(), row.ce_error()];
        for value in truth.chain(row.surrogate.iter().copied()).chain(errors) {
            let _ = write!(out, " {value:.4} |");
        }
        out.push('\n');
    }
    out
}

/// Mean errors of surrogate, UA and CE, strategy by strategy, tree by tree.
pub fn deployment(rows: &[Row]) -> Result<Finding, TheoryError> {
    let mut panels = Grid::new("Surrogate error, measured", 2)
        .subtitle(format!(
            "Mean distance from the deployed weight over three steps, p = {P:?}, N \
         = {BUDGET}; every branch of each search is followed"
        ))
        .panel_size(400.0, 230.0);
    for (name, _) in trees()? {
        let of = |error: fn(&Row) -> f64| {
            rows.iter().filter(|row| row.tree == name).map(error).collect::<Vec<f64>>()
        };
        panels = panels.panel(
            Figure::new(name)
                .x(Axis::categories("", StrategyKind::ALL.map(StrategyKind::name)))
                .y(Axis::linear("error").from(0.0).to(1.0))
                .add(Series::bars_of("own surrogate", of(Row::own_error)))
                .add(Series::bars_of("ua", of(Row::uniform_error)))
                .add(Series::bars_of("ce", of(Row::ce_error))),
        );
    }
    let exact = rows.iter().filter(|row| row.tree == "chain" && is_depth_first(row.strategy));
    let truth = |tree: &str, strategy: StrategyKind, t: usize| {
        rows.iter()
            .find(|row| row.tree == tree && row.strategy == strategy)
            .map_or(f64::NAN, |row| row.truth(t))
    };
    let every = || {
        StrategyKind::ALL.into_iter().flat_map(|strategy| (0..P.len()).map(move |t| (strategy, t)))
    };
    let inflated = largest(every().map(|(s, t)| truth("bypass", s, t) - truth("chain", s, t)));
    let relieved = largest(
        every()
            .filter(|(s, _)| *s == StrategyKind::Dfs)
            .map(|(s, t)| truth("chain", s, t) - truth("absorbing", s, t)),
    );
    let crossings = rows
        .iter()
        .flat_map(|row| (0..P.len()).map(move |t| (row.truth(t), row.surrogate[t])))
        .filter(|(_, hat)| *hat < 1.0)
        .filter(|(star, hat)| {
            ((star - hat).abs() <= (star - 1.0).abs()) != (*star <= (1.0 + hat) / 2.0)
        })
        .count();
    let doubt = largest(rows.iter().map(|row| row.deployed.doubt));
    Ok(Finding {
        name: "surrogate-error",
        claim: "Depth-first surrogates are exact where every deviation is rejected; alternative \
         proofs lower every deployed weight; what depth-first \
                search cannot leave raises it; and a surrogate is closer than CE exactly when w* \
                is at most (1+w)/2."
            .into(),
        checks: vec![
            Check::at_most(
                format!("largest error of {} on the chain", names(is_depth_first)),
                largest(exact.map(Row::own_error)),
                1e-9,
            ),
            Check::at_most(
                "largest rise of a deployed weight when alternative proofs are \
             added",
                inflated,
                0.0,
            ),
            Check::at_most(
                "largest fall of a `dfs` weight when absorbing traps are \
             added",
                relieved,
                0.0,
            ),
            Check::at_most(
                "steps on which the CAT-or-CE crossover is not at \
             (1+w)/2",
                crossings as f64,
                0.0,
            ),
            Check::at_most("doubt in the deployed weights", doubt, 1e-8),
        ],
        chart: Box::new(panels),
        table: table(rows),
    })
}

/// Deployed and surrogate weight of the second step against the budget, on the tree with traps.
pub fn deployment_by_budget(rows: &[Row]) -> Result<Finding, TheoryError> {
    let mut panels = Grid::new("Deployed and surrogate weights on a tree with traps", 3)
        .subtitle(
            "Weight of step 2; 0.3 of the misses lead into two useless states. Every curve \
         starts at the smallest budget that can succeed",
        )
        .panel_size(270.0, 220.0);
    let (mut started, mut spent_anyway, mut raised) = (0f64, f64::NEG_INFINITY, f64::NEG_INFINITY);
    for row in rows.iter().filter(|row| row.tree == "trap") {
        let objective = row.strategy.objective();
        let star = |n: u64| row.deployed.weights[1][n as usize - 1];
        let first = (1..=BUDGET).find(|&n| star(n).is_finite()).unwrap_or(BUDGET);
        let least =
            if objective == Objective::Pass { first } else { objective.minimum_budget(P.len()) };
        let hat = (least..=BUDGET)
            .map(|n| Ok((n as f64, surrogate(objective, n, Prior::NONE, &P)?[1])))
            .collect::<Result<Vec<_>, TheoryError>>()?;
        if spends(row.strategy) {
            spent_anyway = largest([spent_anyway, star(first)]);
        } else {
            started = largest([started, (star(first) - 1.0).abs()]);
        }
        if is_depth_first(row.strategy) {
            raised = largest([raised, largest(hat.iter().map(|&(n, hat)| hat - star(n as u64)))]);
        }
        panels = panels.panel(
            Figure::new(row.strategy.name())
                .x(Axis::linear("budget N (expansions)")
                    .from(2.0)
                    .to(BUDGET as f64)
                    .ticks([4.0, 8.0, 12.0, 16.0]))
                .y(Axis::linear("weight").from(0.0).to(1.05))
                .add(
                    Series::line("CE", [(2.0, 1.0), (BUDGET as f64, 1.0)])
                        .plain()
                        .dashed()
                        .colour(2),
                )
                .add(
                    Series::line("deployed w*", (first..=BUDGET).map(|n| (n as f64, star(n))))
                        .plain()
                        .colour(0),
                )
                .add(Series::line("surrogate", hat).plain().colour(1)),
        );
    }
    Ok(Finding {
        name: "deployed-by-budget",
        claim: format!(
            "At the smallest budget that can succeed the deployed weights of rollouts and \
             depth-first searches are 1, and those of searches that spend samples whatever comes \
             of them ({}) are already below; traps then keep the depth-first weights above their \
             surrogates'.",
            names(spends)
        ),
        checks: vec![
            Check::at_most(
                format!(
                    "largest distance from 1 at the smallest budget ({})",
                    names(|strategy| !spends(strategy))
                ),
                started,
                1e-9,
            ),
            Check::at_most(
                format!("largest deployed weight of {} at theirs", names(spends)),
                spent_anyway,
                0.99,
            ),
            Check::at_most(
                "farthest a depth-first deployed weight lies below its \
             surrogate",
                raised,
                1e-9,
            ),
        ],
        chart: Box::new(panels),
        table: String::new(),
    })
}
