//! Looks inside a strategy while it runs, so that configurations that can only behave alike are
//! followed once.

use std::fmt::{Debug, Write};
use std::sync::{Arc, Mutex, PoisonError};

use catamount_search::{
    Backtrack, BestFirst, BestFirstSettings, Choose, DepthFirst, Expand, MonteCarlo, NodeId, Pass,
    Reached, STRATEGIES, Search, SearchSettings, Strategy, Tree, UnknownStrategy,
};

/// Where a witnessed strategy leaves its configuration, as text, after every update. Clones of the
/// search share it, so it must be read right after the update in question.
#[derive(Clone, Debug, Default)]
pub(crate) struct Record(Arc<Mutex<String>>);

impl Record {
    /// What the last update left.
    pub(crate) fn read(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A strategy that writes its configuration down. Otherwise it is the strategy itself.
#[derive(Clone)]
struct Witnessed<S> {
    strategy: S,
    record: Record,
}

impl<S: Strategy + Clone + Debug + 'static> Strategy for Witnessed<S> {
    fn select(&mut self, tree: &Tree, choose: &mut Choose<'_>) -> Vec<Expand> {
        self.strategy.select(tree, choose)
    }

    fn update(&mut self, tree: &Tree, node: NodeId, reached: Reached) {
        self.strategy.update(tree, node, reached);
        let mut text = self.record.0.lock().unwrap_or_else(PoisonError::into_inner);
        text.clear();
        let _ = write!(text, "{:?}", self.strategy);
        *text = canonical(&text);
    }

    fn score(&self, tree: &Tree, node: NodeId) -> Option<f64> {
        self.strategy.score(tree, node)
    }

    fn boxed_clone(&self) -> Box<dyn Strategy> {
        Box::new(self.clone())
    }
}

/// Sorts what stands between innermost braces: the members of a set, whose order means nothing, and
/// the fields of a structure, which carry their names. Lists stand in brackets and keep their
/// order.
fn canonical(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = rest.find('{') {
        let (before, inside) = rest.split_at(open + 1);
        out.push_str(before);
        rest = inside;
        let Some(end) = rest.find(['{', '}']) else { break };
        if rest.as_bytes()[end] == b'}' {
            let mut members: Vec<&str> = rest[..end].split(',').map(str::trim).collect();
            members.sort_unstable();
            out.push_str(&members.join(","));
            rest = &rest[end..];
        }
    }
    out.push_str(rest);
    out
}

/// The search a name stands for, exactly as [`SearchSettings::search`] builds it, with a record of
/// its configuration.
pub(crate) fn witnessed(
    settings: &SearchSettings,
    name: &str,
    budget: u64,
) -> Result<(Search, Record), UnknownStrategy> {
    let record = Record::default();
    let backtrack = |how| boxed(DepthFirst::new(how), &record);
    let strategy = match name {
        "pass" => boxed(Pass::new(settings.pass_batch), &record),
        "bfs" => {
            let settings = BestFirstSettings {
                beam: settings.bfs_beam,
                samples: settings.bfs_samples,
                alpha: settings.bfs_alpha,
                restart_after: settings.bfs_restart_after,
                restart_when_empty: settings.bfs_restart_when_empty,
            };
            boxed(BestFirst::new(settings), &record)
        }
        "dfs" => backtrack(Backtrack::Stay),
        "rdfs" => backtrack(Backtrack::Uniform),
        "vdfs" => backtrack(Backtrack::Levin),
        "mcts" => boxed(MonteCarlo::new(settings.mcts_exploration), &record),
        other => {
            debug_assert!(
                !STRATEGIES.contains(&other),
                "a strategy the exact calculation does not know"
            );
            return Err(UnknownStrategy { name: other.to_string() });
        }
    };
    Ok((Search::new(strategy, budget, settings.max_depth), record))
}

fn boxed<S: Strategy + Clone + Debug + 'static>(strategy: S, record: &Record) -> Box<dyn Strategy> {
    Box::new(Witnessed { strategy, record: record.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_are_sorted_and_lists_are_not() {
        let one = "A { list: [B { y: 2, x: 1 }, B { y: 0, x: 3 }], set: {N(2), N(1)}, n: 4 }";
        let two = "A { list: [B { y: 2, x: 1 }, B { y: 0, x: 3 }], set: {N(1), N(2)}, n: 4 }";
        let three = "A { list: [B { y: 0, x: 3 }, B { y: 2, x: 1 }], set: {N(1), N(2)}, n: 4 }";
        assert_eq!(canonical(one), canonical(two));
        assert_ne!(canonical(one), canonical(three));
        assert_eq!(canonical("[N(2), N(1)]"), "[N(2), N(1)]");
    }
}
