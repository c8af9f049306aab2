//! The largest sizes that are not taken for a slip of the pen. Memory is asked for by all of them.

use catamount_evaluate::Workload;
use catamount_policies::HttpSettings;
use catamount_search::Deployment;

pub(crate) const WIDEST: usize = 1 << 14;
pub(crate) const DEEPEST: usize = 256;
pub(crate) const VOCABULARY: usize = 1 << 20;
pub(crate) const POSITIONS: usize = 1 << 18;
pub(crate) const BUDGET: u64 = Deployment::MOST_EXPANSIONS;
pub(crate) const TACTIC: usize = Deployment::LONGEST_TACTIC as usize;
pub(crate) const BATCH: usize = Workload::LARGEST_BATCH;
pub(crate) const CONCURRENCY: usize = Workload::MOST_SEARCHES;
pub(crate) const WORKERS: usize = Workload::MOST_THREADS;
pub(crate) const HEARTBEATS: u64 = 1_000_000_000;
pub(crate) const LONGEST: f64 = Workload::LONGEST;
pub(crate) const FOLDS: usize = 20;
pub(crate) const REQUESTS: usize = HttpSettings::MOST_REQUESTS;
pub(crate) const TRIALS: usize = 1_000_000;
pub(crate) const SHARE: f64 = 4.0;
