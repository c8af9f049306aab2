//! The cells of one (objective, strategy, budget): one for every seed.

use std::collections::{BTreeMap, BTreeSet};

use catamount_statistics::{self as statistics, Rate, Spread, wilson};

use crate::compare::paired_statistics;
use crate::names::Objective;
use catamount_evaluate::Log;

/// The seeds of one (objective, strategy, budget).
#[derive(Clone, Debug)]
pub(crate) struct Group {
    pub(crate) objective: Objective,
    pub(crate) strategy: String,
    pub(crate) budget: u64,
    /// By seed.
    pub(crate) cells: BTreeMap<u64, Log>,
}

impl Group {
    /// The rate over all completed searches, every one counting the same, as it does in gains; its
    /// interval is that of as many observations as there are theorems.
    pub(crate) fn rate(&self) -> Rate {
        let mut theorems: BTreeSet<&str> = BTreeSet::new();
        let (mut proved, mut searches) = (0.0, 0.0);
        for cell in self.cells.values() {
            for name in cell.records.keys() {
                if let Some(solved) = cell.solved(name) {
                    theorems.insert(name);
                    searches += 1.0;
                    proved += f64::from(u8::from(solved));
                }
            }
        }
        let n = theorems.len();
        wilson(if n == 0 { 0.0 } else { proved / searches * n as f64 }, n as u64)
    }

    /// Searches that were completed, and those that the pools of its cells ask for.
    pub(crate) fn searches(&self) -> (usize, usize) {
        let of = |cell: &Log| {
            let completed = cell.tally().completed;
            (completed, completed + cell.missing().unwrap_or(0))
        };
        self.cells.values().map(of).fold((0, 0), |(c, p), (x, y)| (c + x, p + y))
    }

    /// The rate at each seed, in percent; none with a single one.
    pub(crate) fn rate_spread(&self) -> Option<Spread> {
        let rate = |cell: &Log| {
            let tally = cell.tally();
            100.0 * tally.proved as f64 / tally.completed.max(1) as f64
        };
        let rates: Vec<f64> = self.cells.values().map(rate).collect();
        Spread::of(&rates).filter(|spread| spread.seeds > 1)
    }

    /// The gain over another group at each seed that both have, in points; none with a single one.
    pub(crate) fn gain_spread(&self, base: &Group) -> Option<Spread> {
        let gain = |(seed, cell): (&u64, &Log)| {
            Some(paired_statistics(&[base.cells.get(seed)?], &[cell])?.gain_pp)
        };
        let gains: Vec<f64> = self.cells.iter().filter_map(gain).collect();
        Spread::of(&gains).filter(|spread| spread.seeds > 1)
    }

    /// Theorems of the pool.
    pub(crate) fn pool(&self) -> usize {
        self.cells
            .values()
            .filter_map(|c| c.manifest.as_ref())
            .map(|m| m.pool.theorems)
            .max()
            .unwrap_or(0)
    }

    /// This group against another, on the seeds both have; the gain is this group's.
    pub(crate) fn against(&self, base: &Group) -> Option<statistics::Comparison> {
        let seeds: Vec<u64> =
            self.cells.keys().filter(|s| base.cells.contains_key(s)).copied().collect();
        let a: Vec<&Log> = seeds.iter().map(|s| &base.cells[s]).collect();
        let b: Vec<&Log> = seeds.iter().map(|s| &self.cells[s]).collect();
        paired_statistics(&a, &b)
    }

    pub(crate) fn label(&self) -> String {
        format!("{} under {} at N = {}", self.objective.full, self.strategy, self.budget)
    }
}
