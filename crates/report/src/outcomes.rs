//! How every search of every theorem ended: what the page's table of theorems is fed with.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::names::strategy_label;
use crate::run::Run;

/// Theorems by name, cells in the report's order, and for each pair what came of it.
#[derive(Debug, PartialEq, Serialize)]
pub(crate) struct Outcomes {
    theorems: Vec<String>,
    /// Steps of the demonstrated proof, where the pool's file has one.
    steps: Vec<Option<usize>>,
    cells: Vec<CellOutcomes>,
}

#[derive(Debug, PartialEq, Serialize)]
struct CellOutcomes {
    /// `bfs/mcts/256`, with the seed where there are several: names the cell in links.
    key: String,
    label: String,
    /// For each theorem the expansion that found its proof; 0 unproved, -1 errored or never run.
    found: Vec<i64>,
}

/// The outcomes of every cell of a run.
pub(crate) fn outcomes(run: &Run) -> Outcomes {
    let mut steps: BTreeMap<&str, Option<usize>> = BTreeMap::new();
    for (_, _, cell) in run.cells() {
        for (name, record) in &cell.records {
            let known = steps.entry(name).or_default();
            *known = known.or(record.demonstrated);
        }
    }
    let mut seeds: Vec<u64> = run.cells().map(|(_, seed, _)| seed).collect();
    seeds.sort_unstable();
    seeds.dedup();
    let cells = run.cells().map(|(group, seed, cell)| {
        let found = steps.keys().map(|name| match cell.solved(name) {
            None => -1,
            Some(false) => 0,
            Some(true) => cell.records.get(*name).map_or(-1, |r| r.expansions.max(1) as i64),
        });
        let several = seeds.len() > 1;
        CellOutcomes {
            key: key(&group.objective.full, &group.strategy, group.budget, several.then_some(seed)),
            label: format!(
                "{} \u{b7} {}, N = {}{}",
                strategy_label(&group.strategy),
                group.objective.label(),
                group.budget,
                if several { format!(", seed {seed}") } else { String::new() }
            ),
            found: found.collect(),
        }
    });
    Outcomes {
        cells: cells.collect(),
        theorems: steps.keys().map(|name| (*name).to_owned()).collect(),
        steps: steps.values().copied().collect(),
    }
}

/// The name of a cell in links.
pub(crate) fn key(objective: &str, strategy: &str, budget: u64, seed: Option<u64>) -> String {
    let seed = seed.map(|seed| format!("/{seed}")).unwrap_or_default();
    format!("{objective}/{strategy}/{budget}{seed}")
}
