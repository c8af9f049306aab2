//! The theorems of an evaluation: read, filtered by demonstrated length, in an order that depends on nothing but their names.

use std::path::PathBuf;

use anyhow::{Result, bail};
use catamount_evaluate::cell::pool_hash;
use catamount_evaluate::driver::Job;
use catamount_evaluate::log::Pool;
use catamount_search::Stream;
use catamount_traces::{Steps, read_any};

#[derive(clap::Args)]
pub struct Arguments {
    /// Traces or theorems to search: the project's JSON lines, LeanDojo JSON or Parquet.
    #[arg(long)]
    pub theorems: PathBuf,
    /// Only theorems whose demonstrated proof has so many steps, such as 2-5.
    #[arg(long)]
    pub steps: Option<Steps>,
    /// At most so many theorems: always the same ones, chosen by a hash of their names.
    #[arg(long)]
    pub limit: Option<usize>,
}

impl Arguments {
    pub fn open(&self) -> Result<(Vec<Job>, Pool)> {
        let steps = self.steps.unwrap_or(Steps::ALL);
        let mut traces = read_any(&self.theorems)?.traces;
        traces.retain(|trace| steps.contains(trace.steps.len()));
        if traces.is_empty() {
            bail!("{} has no theorem of {} steps; `catamount data stats` shows what it has", self.theorems.display(), steps);
        }
        // A hash of the name, so that a smaller limit takes a subset of a larger one and no seed changes the pool.
        let order = Stream::new(0).named("pool");
        traces.sort_by_key(|trace| order.named(&trace.theorem.name).0);
        traces.truncate(self.limit.unwrap_or(usize::MAX));
        let pool = Pool {
            file: self.theorems.display().to_string(),
            hash: pool_hash(traces.iter().map(|trace| trace.theorem.name.as_str())),
            theorems: traces.len(),
            steps: self.steps.map(|steps| steps.to_string()),
        };
        let job = |trace: catamount_traces::Trace| Job {
            demonstrated: Some(trace.steps.len()),
            theorem: trace.theorem,
            time_left: None,
        };
        Ok((traces.into_iter().map(job).collect(), pool))
    }
}
