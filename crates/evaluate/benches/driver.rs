//! What the engine itself costs per expansion: a prover and a policy that take no time, every
//! strategy.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use catamount_evaluate::driver::{Job, Plan, search_all};
use catamount_search::{Deployment, Environment, StrategyKind};
use catamount_traces::Theorem;
use common::{Countdown, Uniform};

fn main() {
    println!("{:<6} {:>14} {:>16}", "", "expansions", "us/expansion");
    for strategy in StrategyKind::ALL {
        let environment: Arc<dyn Environment> = Arc::new(Countdown { broken: None });
        let mut policy = Uniform { batch: usize::MAX, queue: Default::default() };
        // Too far to count down within the depth limit: every search spends its whole budget.
        let theorem =
            |i| Theorem { name: format!("t{i}"), statement: "1000".into(), ..Theorem::default() };
        let jobs: Vec<Job> = (0..2000)
            .map(|i| Job { theorem: theorem(i), demonstrated: None, time_left: None, tree: false })
            .collect();
        let plan = Plan {
            deployment: Deployment::new(strategy, 256).expect("a budget in range"),
            seed: 1,
            time_limit: None,
            concurrency: 256,
            threads: 2,
        };
        let mut expansions = 0;
        let started = Instant::now();
        let mut done = |finished: catamount_evaluate::driver::Finished| {
            expansions += finished.record.expansions
        };
        search_all(&environment, &mut policy, jobs, &plan, &AtomicBool::new(false), &mut done);
        let seconds = started.elapsed().as_secs_f64();
        println!("{strategy:<6} {expansions:>14} {:>16.2}", seconds * 1e6 / expansions as f64);
    }
}
