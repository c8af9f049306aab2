//! A prover in somebody else's hands, with the real challenger and the real judge: whatever it
//! says, nothing comes of it but what its terms prove.

use std::iter;
use std::sync::Arc;
use std::time::Duration;

use catamount_search::{Environment, StateId, Verdict};
use catamount_traces::Theorem;

use crate::cache::Prepared;
use crate::check::RulingVerdict::{Proved, Refused};
use crate::check::{Claim, Ruling, RulingVerdict};
use crate::environment::Lean;
use crate::launch::Launch;
use crate::options::Options;
use crate::pool::Pool;
use crate::worker::Worker;

/// A prover that says anything, in place of the one that runs tactics.
const PROVER: &str = include_str!("../tests/prover.cjs");

/// Longer than any answer takes, on a machine that does other work besides.
const PATIENT: Duration = Duration::from_secs(60);

/// Challenger and judge as they are, and a prover that is not.
struct Compromised {
    lean: Lean,
    folder: tempfile::TempDir,
}

impl Compromised {
    fn new(checks_per_header: usize, request_limit: Duration) -> Compromised {
        Compromised::with(Options { checks_per_header, request_limit, ..Options::default() })
    }

    fn with(options: Options) -> Compromised {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("prover.cjs"), PROVER).expect("a script");
        Compromised { lean: Lean::new(options).expect("Lean is prepared"), folder }
    }

    /// Has a prover in this mode.
    fn provers(&mut self, mode: &'static str) {
        let Launch::Wasm(prepared) = &self.lean.launch else { panic!("not WebAssembly") };
        let hostile = Launch::Wasm(Prepared {
            runtime: self.folder.path().into(),
            server: self.folder.path().into(),
            host_script: self.folder.path().join("prover.cjs"),
            boot: mode,
            ..prepared.clone()
        });
        let worker = Worker::new(hostile, Arc::clone(&self.lean.options));
        self.lean.pool = Pool::new(iter::once(worker));
    }

    /// What comes of a claim of each statement, proved by `trivial`, with a prover that is in this
    /// mode.
    fn rule(&mut self, mode: &'static str, statements: &[&str]) -> Vec<Ruling> {
        self.provers(mode);
        let claim = |statement: &&str| Claim {
            name: "t".into(),
            header: String::new(),
            statement: (*statement).to_owned(),
            tactics: vec!["trivial".into()],
        };
        statements.iter().map(|s| self.lean.rule(&claim(s)).expect("a ruling")).collect()
    }
}

fn verdicts(rulings: &[Ruling]) -> Vec<RulingVerdict> {
    rulings.iter().map(|ruling| ruling.verdict).collect()
}

#[test]
fn terms_count_and_nothing_else() {
    let mut compromised = Compromised::new(1000, PATIENT);
    let statements = ["theorem t : True", "theorem t : 1 = 2", "theorem u : True"];
    for mode in ["an honest answer", "answers twice", "answers in advance", "noise"] {
        let rulings = compromised.rule(mode, &statements);
        assert_eq!(verdicts(&rulings), [Proved, Refused, Refused], "{mode}: {rulings:?}");
        assert!(rulings[1].reason.contains("another statement"), "{mode}: {rulings:?}");
        assert!(rulings[2].reason.contains("something else"), "{mode}: {rulings:?}");
    }
    // Whatever is said with it.
    let no_proof = [
        ("nothing", "unsound"),
        ("a verdict", "terms: line 1"),
        ("an axiom", "does not end with a theorem"),
        // Its process or its answer is too large: whichever is noticed first.
        ("too much", ""),
    ];
    for (mode, words) in no_proof {
        let ruling = compromised.rule(mode, &["theorem t : True"]).remove(0);
        assert_eq!(ruling.verdict, Refused, "{mode}: {ruling:?}");
        assert!(ruling.reason.contains(words), "{mode}: {ruling:?}");
    }
}

#[test]
fn an_answer_to_another_request_is_none() {
    // Nobody need wait long for what does not come.
    let mut compromised = Compromised::new(1000, Duration::from_secs(1));
    for mode in ["answers to another request", "answers to another process"] {
        let ruling = compromised.rule(mode, &["theorem t : True"]).remove(0);
        assert_eq!(ruling.verdict, Refused, "{mode}: {ruling:?}");
        assert!(ruling.reason.contains("no answer within"), "{mode}: {ruling:?}");
    }
}

/// By default strangers' claims share a prover, and one of them may have taken it over.
#[test]
fn a_prover_that_another_claim_has_taken_over_spoils_no_proof() {
    let mut compromised = Compromised::new(1, PATIENT);
    let rulings = compromised.rule("refuses all but the first", &["theorem t : True"; 2]);
    assert_eq!(verdicts(&rulings), [Proved, Proved], "{rulings:?}");
}

/// What other theorems take of a process's memory is not held against a tactic.
#[test]
fn a_tactic_that_finds_a_process_full_is_tried_in_a_new_one() {
    let mut compromised =
        Compromised::with(Options { memory_mb: 600, request_limit: PATIENT, ..Options::default() });
    let theorem =
        Theorem { name: "t".into(), statement: "theorem t : True".into(), ..Theorem::default() };
    let mut verdict = |mode| {
        compromised.provers(mode);
        let _other = compromised.lean.open(&theorem).unwrap();
        let mut session = compromised.lean.open(&theorem).unwrap();
        session.apply(StateId(0), "trivial").unwrap()
    };
    assert_eq!(verdict("is full of two theorems"), Verdict::Proved);
    let Verdict::Rejected { reason } = verdict("is full of a tactic") else { panic!("too much") };
    assert!(reason.starts_with("limit: the prover needed more than"), "{reason}");
}
