//! Workers killed at random moments, in the middle of searches by every strategy: the final table does not change.

use std::collections::HashMap;
use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use catamount_lean::{Lean, Options};
use catamount_search::{Answer, Ask, Environment, Finish, NodeId, Reached, STRATEGIES, SearchSettings, StateId, Stream, Verdict};
use catamount_traces::Theorem;

use crate::setup::{in_library, options, theorem};

/// What the stand-in for a policy draws from.
const TACTICS: [&str; 12] = [
    "intro h",
    "rfl",
    "constructor",
    "cases h",
    "exact h.1",
    "exact h.2",
    "simp",
    "omega",
    "induction xs",
    "left",
    "right",
    "assumption",
];

/// Some that are found, some that are not; by statement, and one in a file.
fn theorems() -> Vec<Theorem> {
    let statements = [
        ("and_swap", "theorem t (p q : Prop) (h : p ∧ q) : q ∧ p"),
        ("or_idem", "theorem t (p : Prop) : p ∨ p → p"),
        ("append_nil", "theorem t (xs : List Nat) : xs ++ [] = xs"),
        ("false", "theorem t (p q : Prop) (h : p ∨ q) : p ∧ q"),
    ];
    let mut theorems = vec![in_library("Function.lean", "Library.Function.pair_ext")];
    theorems.extend(statements.map(|(name, statement)| Theorem { name: name.into(), ..theorem(statement) }));
    theorems
}

/// One search, and everything the prover said in it.
fn search(lean: &Lean, theorem: &Theorem, strategy: &str) -> (Finish, Vec<String>) {
    let stream = Stream::new(7).named(&theorem.name).named(strategy);
    let mut search = SearchSettings::default().search(strategy, 24).unwrap();
    let mut session = lean.open(theorem).unwrap();
    let mut states = HashMap::from([(NodeId::ROOT, StateId(0))]);
    let mut said = Vec::new();
    let (mut draws, mut choices) = (0, 0);
    loop {
        let mut choose = |weights: &[f64]| {
            choices += 1;
            let mut at = stream.named("choice").uniform(choices) * weights.iter().sum::<f64>();
            weights
                .iter()
                .position(|w| {
                    at -= w;
                    at < 0.0
                })
                .unwrap_or(weights.len() - 1)
        };
        let wanted = match search.ask(&mut choose) {
            Ask::Finished(finish) => return (finish, said),
            Ask::Expand(wanted) => wanted,
        };
        for expand in wanted {
            for _ in 0..expand.samples {
                draws += 1;
                let tactic = TACTICS[(stream.uniform(draws) * TACTICS.len() as f64) as usize];
                let (answer, next) = match search.tried(expand.node, tactic) {
                    Some(Reached::Proved) => (Answer::Proved, None),
                    Some(_) => (Answer::Rejected, None),
                    None => match session.apply(states[&expand.node], tactic).unwrap() {
                        Verdict::Proved => (Answer::Proved, None),
                        Verdict::Rejected { reason } => {
                            said.push(reason);
                            (Answer::Rejected, None)
                        }
                        Verdict::Open { state, text } => {
                            said.push(text);
                            (Answer::Open, Some(state))
                        }
                    },
                };
                let reached = search.tell(expand.node, tactic, -1.0, answer);
                if let (Reached::Open(node), Some(state)) = (reached, next) {
                    states.insert(node, state);
                }
            }
        }
    }
}

/// All theorems by all strategies, two at a time.
fn table(lean: &Lean) -> Vec<(Finish, Vec<String>)> {
    let jobs: Vec<(Theorem, &str)> = theorems().into_iter().flat_map(|t| STRATEGIES.map(|s| (t.clone(), s))).collect();
    let results = Mutex::new(vec![None; jobs.len()]);
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                loop {
                    let at = next.fetch_add(1, Ordering::Relaxed);
                    let Some((theorem, strategy)) = jobs.get(at) else { return };
                    let result = search(lean, theorem, strategy);
                    results.lock().unwrap()[at] = Some(result);
                }
            });
        }
    });
    results.into_inner().unwrap().into_iter().map(Option::unwrap).collect()
}

/// Server processes that have this process as their parent and `marker` in their command line.
fn children(marker: &str) -> Vec<i32> {
    let me = std::process::id();
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter_map(|e| e.file_name().to_string_lossy().parse::<i32>().ok())
        .filter(|pid| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            let parent = stat.rsplit(')').next().and_then(|s| s.split_whitespace().nth(1)).and_then(|p| p.parse::<u32>().ok());
            let command = fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            parent == Some(me) && String::from_utf8_lossy(&command).contains(marker)
        })
        .collect()
}

#[test]
fn killing_workers_at_random_moments_changes_no_result() {
    // An import that no other test uses marks the processes that may be killed.
    let marked = |imports: &[&str]| Options { imports: imports.iter().map(|s| s.to_string()).collect(), ..options() };
    let calm = table(&Lean::new(marked(&["Init"])).unwrap());
    let proved = calm.iter().filter(|(finish, _)| matches!(finish, Finish::Proved(_))).count();
    assert!(proved >= 6 && proved < calm.len(), "a table with something in it: {proved} of {}", calm.len());

    let lean = Lean::new(marked(&["Init", "Init.Data.Bool"])).unwrap();
    let killed = AtomicUsize::new(0);
    let disturbed = thread::scope(|scope| {
        scope.spawn(|| kill_some(&killed));
        let mut tables = Vec::new();
        while killed.load(Ordering::Relaxed) < KILLS {
            tables.push(table(&lean));
        }
        tables
    });
    for table in disturbed {
        assert_eq!(table, calm);
    }
}

/// How many workers are killed.
const KILLS: usize = 3;

/// Kills workers, whatever they are doing, one at a time and after waits of random length.
fn kill_some(killed: &AtomicUsize) {
    let stream = Stream::new(std::process::id().into());
    for n in 0.. {
        if killed.load(Ordering::Relaxed) == KILLS {
            return;
        }
        thread::sleep(Duration::from_secs_f64(0.5 + 5.0 * stream.uniform(2 * n)));
        let victims = children("Init.Data.Bool");
        if let Some(pid) = victims.get((stream.uniform(2 * n + 1) * victims.len() as f64) as usize) {
            // SAFETY: the process was a child of this one a moment ago; if it has just been replaced, nothing is hit.
            unsafe { libc::kill(*pid, libc::SIGKILL) };
            killed.fetch_add(1, Ordering::Relaxed);
        }
    }
}
