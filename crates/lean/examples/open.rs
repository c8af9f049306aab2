//! How long the theorems of a file of traces take to open on compiled modules: the first in a fresh
//! worker, each of the others in the worker that is there.
//!
//! `cargo run --release -p catamount-lean --example open -- TRACES ROOT [LIBRARY ...]`

use std::path::PathBuf;
use std::time::Instant;

use catamount_lean::{Lean, Options};
use catamount_search::{Environment, StateId};
use catamount_traces::Trace;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1).map(PathBuf::from);
    let (Some(traces), Some(root)) = (args.next(), args.next()) else {
        return Err("usage: open TRACES ROOT [LIBRARY ...]".into());
    };
    let options =
        Options { root: Some(root), libraries: args.collect(), workers: 1, ..Options::default() };
    let begin = Instant::now();
    let lean = Lean::new(options)?;
    println!("{:7.2} s  ready to start workers", begin.elapsed().as_secs_f64());
    for line in std::fs::read_to_string(traces)?.lines() {
        let trace: Trace = serde_json::from_str(line)?;
        let begin = Instant::now();
        let mut session = lean.open(&trace.theorem)?;
        let opened = begin.elapsed();
        session.apply(StateId(0), &trace.steps[0].tactic)?;
        println!(
            "{:7.2} s to open, {:5.2} s for its first tactic: {} in {}",
            opened.as_secs_f64(),
            (begin.elapsed() - opened).as_secs_f64(),
            trace.theorem.name,
            trace.theorem.file.unwrap_or_default()
        );
    }
    Ok(())
}
