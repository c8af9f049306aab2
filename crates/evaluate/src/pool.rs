//! The theorems of an evaluation, in an order that depends on nothing but their names.

use std::ops::Range;

use catamount_base::{Content, Stream};
use catamount_traces::{Steps, Theorem, Trace};

use crate::driver::Job;
use crate::log::Pool;

/// Theorems to search, and what they are.
#[derive(Clone, Debug)]
pub struct Theorems {
    /// One job each, in the pool's order.
    pub jobs: Vec<Job>,
    /// For the manifest.
    pub pool: Pool,
    /// What they are: names, statements and all, in order.
    pub content: Content,
}

impl Theorems {
    /// The theorems whose demonstrated proof has so many steps, at most `limit` of them. They are
    /// ordered by a hash of their names, so that a smaller limit takes a subset of a larger one and
    /// no seed changes the pool. `None` if there are none.
    pub fn select(
        mut traces: Vec<Trace>,
        file: &str,
        steps: Option<Steps>,
        limit: Option<usize>,
    ) -> Option<Self> {
        let wanted = steps.unwrap_or(Steps::ALL);
        // A theorem that was never demonstrated has no length to filter by.
        traces.retain(|trace| {
            (steps.is_none() && trace.steps.is_empty()) || wanted.contains(trace.steps.len())
        });
        let order = Stream::new(0).named("pool");
        traces.sort_by_key(|trace| order.named(&trace.theorem.name).0);
        traces.truncate(limit.unwrap_or(usize::MAX));
        if traces.is_empty() {
            return None;
        }
        let job = |trace: Trace| Job {
            demonstrated: Some(trace.steps.len()).filter(|&steps| steps > 0),
            theorem: trace.theorem,
            time_left: None,
            tree: false,
        };
        let jobs: Vec<Job> = traces.into_iter().map(job).collect();
        let pool = Pool {
            file: file.to_string(),
            theorems: jobs.len(),
            steps: steps.map(|steps| steps.to_string()),
            names: jobs.iter().map(|job| job.theorem.name.clone()).collect(),
        };
        Some(Theorems { content: content(&jobs), jobs, pool })
    }

    /// Those in these places, as a pool of their own.
    pub fn stretch(&self, places: Range<usize>) -> Self {
        let jobs = self.jobs[places].to_vec();
        let pool = Pool {
            theorems: jobs.len(),
            names: jobs.iter().map(|job| job.theorem.name.clone()).collect(),
            ..self.pool.clone()
        };
        Theorems { content: content(&jobs), jobs, pool }
    }
}

/// What makes two pools the same.
fn content(jobs: &[Job]) -> Content {
    let one = |job: &Job| {
        // Where in its line a theorem begins and ends does not make it another.
        let theorem =
            Theorem { column: None, end_line: None, end_column: None, ..job.theorem.clone() };
        Content::of_value(&(&theorem, job.demonstrated)).to_string()
    };
    Content::of_texts(jobs.iter().map(one))
}
