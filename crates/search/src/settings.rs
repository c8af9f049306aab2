//! Strategies by name, with their parameters: what a run file, a command line and a manifest say.

use serde::{Deserialize, Serialize};

use crate::best_first::{BestFirst, BestFirstSettings};
use crate::depth_first::{Backtrack, DepthFirst};
use crate::monte_carlo::MonteCarlo;
use crate::pass::Pass;
use crate::search::Search;
use crate::strategy::Strategy;

/// The deployed strategies, by the names used on the command line and in logs.
pub const STRATEGIES: [&str; 6] = ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"];

/// Every parameter of every strategy; each reads its own. The defaults are the paper's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SearchSettings {
    /// Longest proof that may be built.
    pub max_depth: u32,
    /// `pass`: rollouts in flight.
    pub pass_batch: usize,
    /// `bfs`: nodes popped at a time.
    pub bfs_beam: usize,
    /// `bfs`: samples at each popped node.
    pub bfs_samples: usize,
    /// `bfs`: exponent of the depth in the score.
    pub bfs_alpha: f64,
    /// `bfs`: start over after so many expansions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bfs_restart_after: Option<u64>,
    /// `bfs`: start over when the frontier is empty.
    pub bfs_restart_when_empty: bool,
    /// `mcts`: UCT's exploration constant.
    pub mcts_exploration: f64,
}

impl Default for SearchSettings {
    fn default() -> Self {
        let bfs = BestFirstSettings::default();
        SearchSettings {
            max_depth: 5,
            pass_batch: 16,
            bfs_beam: bfs.beam,
            bfs_samples: bfs.samples,
            bfs_alpha: bfs.alpha,
            bfs_restart_after: bfs.restart_after,
            bfs_restart_when_empty: bfs.restart_when_empty,
            mcts_exploration: 0.5,
        }
    }
}

/// A strategy's name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown strategy `{name}`; the known ones are {}", STRATEGIES.join(", "))]
pub struct UnknownStrategy {
    /// The name as given.
    pub name: String,
}

impl SearchSettings {
    /// A search by a strategy's name.
    pub fn search(&self, strategy: &str, budget: u64) -> Result<Search, UnknownStrategy> {
        let strategy: Box<dyn Strategy> = match strategy {
            "pass" => Box::new(Pass::new(self.pass_batch)),
            "bfs" => Box::new(BestFirst::new(BestFirstSettings {
                beam: self.bfs_beam,
                samples: self.bfs_samples,
                alpha: self.bfs_alpha,
                restart_after: self.bfs_restart_after,
                restart_when_empty: self.bfs_restart_when_empty,
            })),
            "dfs" => Box::new(DepthFirst::new(Backtrack::Stay)),
            "rdfs" => Box::new(DepthFirst::new(Backtrack::Uniform)),
            "vdfs" => Box::new(DepthFirst::new(Backtrack::Levin)),
            "mcts" => Box::new(MonteCarlo::new(self.mcts_exploration)),
            other => return Err(UnknownStrategy { name: other.to_string() }),
        };
        Ok(Search::new(strategy, budget, self.max_depth))
    }
}
