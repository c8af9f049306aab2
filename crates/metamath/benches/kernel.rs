//! Kernel applications per second on one core, on the real steps of a database; and what the text
//! around them costs.
//!
//! `cargo bench -p catamount-metamath [-- FILE.mm]`; without a file, set.mm of Debian's
//! `metamath-databases`.

use std::path::PathBuf;
use std::time::Instant;

use catamount_metamath::{AssertionId, Database, Extraction, Prover, Tactic};

/// Every so many theorems one is taken, so that the steps come from all parts of the database.
const EVERY: usize = 8;
/// Longer proofs are left out: their steps repeat.
const LONGEST: usize = 200;
/// The whole set is replayed this often; the best run counts, as the machine may be busy.
const RUNS: usize = 7;

fn main() {
    let given = std::env::args().skip(1).find(|argument| argument.ends_with(".mm"));
    let path =
        given.map_or_else(|| PathBuf::from("/usr/share/metamath/databases/set.mm"), PathBuf::from);
    if !path.exists() {
        println!(
            "{} is not there: install Debian's metamath-databases, or name a .mm file",
            path.display()
        );
        return;
    }
    let start = Instant::now();
    let database = Database::open(&path).expect("a consistent database");
    println!("open and verify {}: {:.2} s", path.display(), start.elapsed().as_secs_f64());

    let start = Instant::now();
    let (mut traces, mut seen) = (Vec::new(), 0);
    let report =
        database.extract(&Extraction { recheck: false, ..Extraction::default() }, |trace, _| {
            seen += 1;
            if seen % EVERY == 0 && trace.steps.len() <= LONGEST {
                traces.push(trace);
            }
        });
    let seconds = start.elapsed().as_secs_f64();
    let (made, steps, rest) = (report.traces, report.steps, report.remainder.len());
    println!("extract and replay {made} traces of {steps} steps, {rest} left out: {seconds:.2} s");

    let read: Vec<(AssertionId, Vec<Tactic>)> = traces
        .iter()
        .map(|trace| {
            let theorem = database.theorem(&trace.theorem.name).expect("a theorem of the database");
            let mut prover = Prover::new(&database, theorem);
            let read = |step: &catamount_traces::Step| {
                prover.read(&database, &step.tactic).expect("a tactic that was extracted")
            };
            (theorem, trace.steps.iter().map(read).collect())
        })
        .collect();
    let steps: usize = read.iter().map(|(_, tactics)| tactics.len()).sum();
    let best = |name: &str, run: &dyn Fn() -> usize| {
        let time = (0..RUNS).map(|_| {
            let start = Instant::now();
            assert_eq!(run(), read.len(), "every proof must end");
            start.elapsed().as_secs_f64()
        });
        let best = time.fold(f64::INFINITY, f64::min);
        println!(
            "{name}: {:.2} M/s ({steps} steps of {} theorems, one core)",
            steps as f64 / best / 1e6,
            read.len()
        );
    };
    best("kernel applications", &|| {
        let ends = read.iter().map(|(theorem, tactics)| {
            let mut prover = Prover::new(&database, *theorem);
            let root = prover.root();
            tactics.iter().fold(root, |goals, tactic| {
                prover.apply(&database, goals, tactic).expect("a real step")
            })
        });
        ends.filter(|goals| goals.is_proved()).count()
    });
    best("reading, applying and printing", &|| {
        let ends = read.iter().zip(&traces).map(|((theorem, _), trace)| {
            let mut prover = Prover::new(&database, *theorem);
            trace.steps.iter().fold(prover.root(), |goals, step| {
                let tactic = prover.read(&database, &step.tactic).expect("a real tactic");
                let next = prover.apply(&database, goals, &tactic).expect("a real step");
                std::hint::black_box(prover.text(&database, next));
                next
            })
        });
        ends.filter(|goals| goals.is_proved()).count()
    });
}
