//! Many searches in one file whose tactics are slow: how long they take, and how much of the time
//! all workers are at work, which they are if the searches do not queue at the one that was first
//! to have the file.
//!
//! `cargo bench -p catamount-lean --bench crowd [WORKERS]` (not timed by any test; run it on a
//! machine at rest).

use std::thread;
use std::time::Instant;

use catamount_lean::{Lean, Options};
use catamount_search::{Environment, StateId};
use catamount_traces::Theorem;

const SESSIONS: usize = 12;
const TACTICS: usize = 8;

/// Goes on until Lean's own limit on a tactic.
const SLOW: &str = "repeat (have k : ∀ x y : Nat, x < y → y < x + 3 → y = x + 1 ∨ y = x + 2 := \
                    (by intro x y _ _; omega); clear k)";

fn main() {
    let workers = std::env::args().find_map(|arg| arg.parse().ok()).unwrap_or(2);
    let folder = std::env::temp_dir().join(format!("catamount-crowd-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder");
    // Large enough that it takes a worker seconds to open.
    let lemma =
        |n: usize| format!("theorem before_{n} (x : Nat) : x + {n} = {n} + x := by omega\n");
    let lemmas: String = (0..800).map(lemma).collect();
    let text = lemmas + "theorem slow (p : Prop) : p → p := by\n  intro h\n  exact h\n";
    std::fs::write(folder.join("Slow.lean"), text).expect("a file");
    let options =
        Options { root: Some(folder.clone()), workers, heartbeats: 20_000, ..Options::default() };
    let lean = Lean::new(options).expect("Lean is prepared");
    lean.warm_up().expect("workers start");
    let theorem =
        Theorem { name: "slow".into(), file: Some("Slow.lean".into()), ..Theorem::default() };
    let tactics = || {
        let mut session = lean.open(&theorem).expect("the theorem opens");
        for _ in 0..TACTICS {
            session.apply(StateId(0), SLOW).expect("the worker lives");
        }
    };
    drop(lean.open(&theorem).expect("the theorem opens")); // its module is compiled
    let before = lean.spent().expect("it counts");
    let begin = Instant::now();
    thread::scope(|scope| (0..SESSIONS).for_each(|_| drop(scope.spawn(tactics))));
    let seconds = begin.elapsed().as_secs_f64();
    let spent = lean.spent().expect("it counts");
    let worked = spent.tactics - before.tactics;
    println!(
        "{SESSIONS} searches of {TACTICS} tactics, {workers} workers: {seconds:.1} s; a tactic \
         {:.2} s; workers at tactics {:.0} % of the time",
        worked / (SESSIONS * TACTICS) as f64,
        100.0 * worked / (seconds * workers as f64)
    );
    std::fs::remove_dir_all(&folder).expect("the folder is removed");
}
