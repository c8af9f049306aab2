//! Time to ready, memory per worker, tactics per second of one and of two workers, verdicts per
//! second, and the share of an evaluation that judging takes.
//!
//! Beside the judge stands what was there before it: a new process for each proof, which
//! elaborates the statement and replays the tactics.
//!
//! `cargo bench -p catamount-lean` (not timed by any test; run it on a machine at rest).

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use catamount_evaluate::driver::{CellEvent, Job, Plan, Searches, Workload, search};
use catamount_evaluate::log::Outcome;
use catamount_lean::{Claim, Lean, Options, RulingVerdict, trace, write_bundled_library};
use catamount_policies::Ngram;
use catamount_search::{
    Answer, Ask, Checked, Deployment, Environment, Fault, Identity, NodeId, Reached, Session,
    StateId, StrategyKind, Stream, Verdict,
};
use catamount_traces::{Theorem, Trace};

/// A mix such as a search sees: most of it fails, and failing is quick.
const TACTICS: [&str; 12] = [
    "exact (",
    "exact foo",
    "rfl",
    "simp",
    "omega",
    "exact Nat.add_comm a b",
    "rw [Nat.add_comm]",
    "induction a",
    "cases a",
    "constructor",
    "intro h",
    "exact Nat.le_refl _",
];

const LENGTH: Duration = Duration::from_secs(15);

fn rate(lean: &Lean, workers: usize) -> f64 {
    let done = AtomicUsize::new(0);
    let theorem = Theorem {
        name: "t".into(),
        statement: "theorem t (a b : Nat) : a + b = b + a".into(),
        ..Theorem::default()
    };
    let begin = Instant::now();
    thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                let mut session = lean.open(&theorem).expect("the theorem opens");
                while begin.elapsed() < LENGTH {
                    for tactic in TACTICS {
                        if let Verdict::Open { state, .. } =
                            session.apply(StateId(0), tactic).expect("the worker lives")
                        {
                            session.release(state);
                        }
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    done.into_inner() as f64 / begin.elapsed().as_secs_f64()
}

/// A proof elaborated afresh by a process that does nothing else: the old way to a verdict.
fn afresh(options: &Options, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
    let lean = Lean::new(Options { workers: 1, ..options.clone() })
        .map_err(|error| Fault(error.to_string()))?;
    Ok(match lean.terms(theorem, tactics)? {
        Ok(_) => Checked::proved(Vec::new()),
        Err(reason) => Checked::Refused { reason },
    })
}

/// Verdicts in a second: on terms, as after a search; with a replay of the tactics first; on claims
/// of strangers, each with a challenger of its own; and afresh.
fn verdicts(lean: &Lean) -> [f64; 4] {
    let theorem = Theorem {
        name: "t".into(),
        statement: "theorem t (a b : Nat) : a + b = b + a".into(),
        ..Theorem::default()
    };
    let tactics = ["omega".to_owned()];
    let terms = lean.terms(&theorem, &tactics).expect("the prover lives").expect("a proof");
    let rate = |judge: &dyn Fn() -> Checked| {
        let (begin, mut done) = (Instant::now(), 0);
        while begin.elapsed() < LENGTH {
            assert!(matches!(judge(), Checked::Proved { .. }));
            done += 1;
        }
        f64::from(done) / begin.elapsed().as_secs_f64()
    };
    let judged = || lean.judge(&theorem, &terms).expect("the judge lives");
    judged(); // challenger and judge are ready
    let claim = Claim {
        name: theorem.name.clone(),
        statement: theorem.statement.clone(),
        tactics: tactics.to_vec(),
        ..Claim::default()
    };
    let ruled = || {
        let ruling = lean.rule(&claim).expect("the judge lives");
        match ruling.verdict {
            RulingVerdict::Proved => Checked::proved(ruling.axioms),
            _ => Checked::Refused { reason: ruling.reason },
        }
    };
    [
        rate(&judged),
        rate(&|| lean.check(&theorem, &tactics).expect("the judge lives")),
        rate(&ruled),
        rate(&|| afresh(&Options::default(), &theorem, &tactics).expect("a process starts")),
    ]
}

/// An environment with a clock on its verdicts.
struct Timed {
    lean: Lean,
    options: Options,
    /// Verdicts as they used to be.
    afresh: bool,
    checking: Mutex<Duration>,
}

impl Environment for Timed {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        self.lean.open(theorem)
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        let begin = Instant::now();
        let checked = match self.afresh {
            true => afresh(&self.options, theorem, tactics),
            false => self.lean.check(theorem, tactics),
        };
        *self.checking.lock().unwrap_or_else(PoisonError::into_inner) += begin.elapsed();
        checked
    }

    fn describe(&self) -> String {
        self.lean.describe()
    }

    fn identity(&self) -> Identity {
        self.lean.identity()
    }
}

/// Searches for every sixth theorem of two files of the bundled library, one after another: proofs,
/// seconds, and seconds of these in which proofs were judged.
fn evaluation(folder: &Path, traces: &[Trace], afresh: bool) -> (usize, f64, f64) {
    let files = ["Function.lean", "Logic.lean"];
    let of_files = |t: &Trace| t.theorem.file.as_deref().is_some_and(|f| files.contains(&f));
    let (searched, learned): (Vec<_>, Vec<_>) =
        traces.iter().enumerate().partition(|(at, t)| of_files(t) && at % 6 == 0);
    let mut policy = Ngram::fit(learned.into_iter().map(|(_, t)| t), 1.0).expect("traces");
    let options = Options { root: Some(folder.into()), workers: 1, ..Options::default() };
    let lean = Lean::new(options.clone()).expect("Lean is prepared");
    let timed = Arc::new(Timed { lean, options, afresh, checking: Mutex::default() });
    let jobs = searched.iter().map(|(_, trace)| Job {
        theorem: trace.theorem.clone(),
        demonstrated: Some(trace.steps.len()),
        time_left: None,
        tree: false,
    });
    let deployment = Deployment::new(StrategyKind::Bfs, 64).expect("a budget in range");
    let cells = vec![Searches {
        plan: Plan { deployment, seed: 7, time_limit: None },
        jobs: jobs.collect(),
    }];
    let environment: Arc<dyn Environment> = Arc::clone(&timed) as Arc<dyn Environment>;
    let mut proved = 0;
    let mut watch = |event| {
        if let CellEvent::Finished(_, done) = event {
            proved += usize::from(done.record.outcome == Outcome::Proved);
        }
    };
    let begin = Instant::now();
    let workload = Workload { concurrency: 1, threads: 1 };
    search(&environment, &mut policy, cells, workload, &AtomicBool::new(false), &mut watch);
    let seconds = begin.elapsed().as_secs_f64();
    let checking = *timed.checking.lock().unwrap_or_else(PoisonError::into_inner);
    (proved, seconds, checking.as_secs_f64())
}

/// Processor time that the workers have used so far: on a busy machine, work per processor second
/// says more than work per second.
fn processor_seconds(lean: &Lean) -> f64 {
    let ticks = |pid: u32| {
        let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
        let fields: Vec<u64> = stat
            .rsplit(')')
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(11)
            .take(2)
            .filter_map(|f| f.parse().ok())
            .collect();
        fields.iter().sum::<u64>()
    };
    // Linux reports hundredths of a second to programs whatever the kernel's own tick is.
    lean.process_ids().into_iter().map(ticks).sum::<u64>() as f64 / 100.0
}

/// How much of a search's time the prover has, when the policy costs nothing.
fn share(lean: &Lean) -> f64 {
    let theorem = Theorem {
        name: "t".into(),
        statement: "theorem t (a b : Nat) : a + b < b + a".into(),
        ..Theorem::default()
    };
    let (begin, mut proving) = (Instant::now(), Duration::ZERO);
    let stream = Stream::new(1);
    let mut draws = 0;
    while begin.elapsed() < LENGTH {
        let bfs = Deployment::new(StrategyKind::Bfs, 256).expect("a budget in range");
        let mut search = bfs.search();
        let opening = Instant::now();
        let mut session = lean.open(&theorem).expect("the theorem opens");
        proving += opening.elapsed();
        let mut states = HashMap::from([(NodeId::ROOT, StateId(0))]);
        while let Ask::Expand(wanted) = search.ask(&mut |weights| weights.len() - 1) {
            for (node, _) in wanted.iter().flat_map(|e| (0..e.samples).map(|n| (e.node, n))) {
                draws += 1;
                let tactic = TACTICS[(stream.uniform(draws) * TACTICS.len() as f64) as usize];
                if search.tried(node, tactic).is_some() {
                    search.tell(node, tactic, -1.0, Answer::Rejected);
                    continue;
                }
                let asked = Instant::now();
                let verdict = session.apply(states[&node], tactic).expect("the worker lives");
                proving += asked.elapsed();
                match verdict {
                    Verdict::Open { state, .. } => {
                        if let Reached::Open(next) = search.tell(node, tactic, -1.0, Answer::Open) {
                            states.insert(next, state);
                        }
                    }
                    Verdict::Proved => {
                        search.tell(node, tactic, -1.0, Answer::Proved);
                    }
                    Verdict::Rejected { .. } => {
                        search.tell(node, tactic, -1.0, Answer::Rejected);
                    }
                }
            }
        }
    }
    proving.as_secs_f64() / begin.elapsed().as_secs_f64()
}

fn main() {
    let started = |workers: usize| {
        let lean = Lean::new(Options { workers, ..Options::default() }).expect("Lean is prepared");
        let begin = Instant::now();
        lean.warm_up().expect("workers start");
        (lean, begin.elapsed())
    };
    let (one, ready_one) = started(1);
    println!(
        "ready, one worker:          {:.1} s ({:.1} s of processor time), {} MiB",
        ready_one.as_secs_f64(),
        processor_seconds(&one),
        one.memory_mb()[0]
    );
    rate(&one, 1); // warm: the first use of each tactic compiles it
    let before = processor_seconds(&one);
    let first = rate(&one, 1);
    let per_processor_second = first * LENGTH.as_secs_f64() / (processor_seconds(&one) - before);
    println!(
        "one worker:                 {first:.0} tactics/s, {per_processor_second:.0} per second \
         of processor time, then {} MiB",
        one.memory_mb()[0]
    );
    println!(
        "search with a free policy:  {:.1} % of the time is the prover's",
        100.0 * share(&one)
    );
    let [judged, replayed, ruled, fresh] = verdicts(&one);
    println!(
        "verdicts:                   {judged:.1}/s on terms, {replayed:.1}/s with a replay, \
         {ruled:.2}/s on strangers' claims, {fresh:.2}/s afresh"
    );
    drop(one);
    let folder = std::env::temp_dir().join(format!("catamount-bench-{}", std::process::id()));
    write_bundled_library(&folder).expect("the library is written");
    let traced = trace(&Options::default(), &folder, |_| ()).expect("it can be traced");
    for (way, afresh) in [("judged", false), ("afresh", true)] {
        let (proved, seconds, checking) = evaluation(&folder, &traced.traces, afresh);
        println!(
            "evaluation, proofs {way}:  {proved} proofs in {seconds:.1} s, {checking:.1} s \
             ({:.0} %) on verdicts",
            100.0 * checking / seconds
        );
    }
    std::fs::remove_dir_all(&folder).expect("the library is removed");
    let (two, ready_two) = started(2);
    println!("ready, two side by side:    {:.1} s", ready_two.as_secs_f64());
    rate(&two, 2);
    let both = rate(&two, 2);
    println!("two workers:                {both:.0} tactics/s, {:.2} times one", both / first);
}
