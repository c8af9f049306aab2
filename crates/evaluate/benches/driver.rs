//! What the engine itself costs per expansion: a prover and a policy that take no time, every
//! strategy.

#[path = "../tests/common/mod.rs"]
mod common;

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use catamount_evaluate::driver::{Job, Plan, Workload};
use catamount_search::{Deployment, Environment, StrategyKind};
use catamount_traces::Theorem;
use common::{Countdown, Uniform, search_one};

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
        };
        let (workload, stop) = (Workload { concurrency: 256, threads: 2 }, AtomicBool::new(false));
        let started = Instant::now();
        let all = search_one(&environment, &mut policy, jobs, &plan, workload, &stop);
        let expansions: u64 = all.iter().map(|finished| finished.record.expansions).sum();
        let seconds = started.elapsed().as_secs_f64();
        println!("{strategy:<6} {expansions:>14} {:>16.2}", seconds * 1e6 / expansions as f64);
    }
}
