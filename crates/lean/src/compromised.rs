//! A prover in somebody else's hands, with the real challenger and the real judge: whatever it
//! says, nothing comes of it but what its terms prove.

use std::iter;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamount_evaluate::driver::{CellEvent, Job, Plan, Searches, Workload, search};
use catamount_evaluate::log::{Outcome, Record};
use catamount_policies::Replay;
use catamount_search::{Deployment, Environment, StateId, StrategyKind, Verdict};
use catamount_traces::{Step, Theorem, Trace};

use crate::cache::Prepared;
use crate::claim::RulingVerdict::{Proved, Refused};
use crate::claim::{Claim, Ruling, RulingVerdict};
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
        self.lean.pool = Arc::new(Pool::new(iter::once(worker), u64::MAX / 100));
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

/// Terms that cheat, and first those of an honest proof.
fn forged() -> Vec<(String, String)> {
    let honest = concat!(
        r#"{"str":{"pre":0,"str":"True"},"in":1}"#,
        "\n",
        r#"{"str":{"pre":1,"str":"intro"},"in":2}"#,
        "\n",
        r#"{"str":{"pre":0,"str":"t"},"in":3}"#,
        "\n",
        r#"{"const":{"name":1,"us":[]},"ie":0}"#,
        "\n",
        r#"{"const":{"name":2,"us":[]},"ie":1}"#,
        "\n",
        r#"{"thm":{"name":3,"levelParams":[],"type":0,"value":1,"all":[3]}}"#,
        "\n",
    );
    let read = |line: &str| {
        let attack: serde_json::Value = serde_json::from_str(line).expect("an attack");
        let text = |field: &str| attack[field].as_str().expect("it has it").to_owned();
        (text("statement"), text("terms"))
    };
    let attacks = include_str!("../attacks/terms.jsonl").lines().map(read);
    iter::once(("theorem t : True".to_owned(), honest.to_owned())).chain(attacks).collect()
}

/// The records of a search for theorems named by their place in the list, whose prover says that
/// the first tactic is a proof.
fn searched(lean: Arc<dyn Environment>, theorems: Vec<Theorem>) -> Vec<Record> {
    let step = |Theorem { name, .. }: &Theorem| Step {
        state: format!("goal {name}"),
        tactic: format!("trivial {name}"),
        ..Step::default()
    };
    let trace = |theorem| Trace { steps: vec![step(theorem)], ..Trace::default() };
    let traces: Vec<Trace> = theorems.iter().map(trace).collect();
    let mut policy = Replay::new(&traces, 1.0);
    let job = |theorem| Job { theorem, demonstrated: None, time_left: None, tree: false };
    let deployment = Deployment::new(StrategyKind::Bfs, 2).expect("a budget");
    let plan = Plan { deployment, seed: 1, time_limit: None };
    let cells = vec![Searches { plan, jobs: theorems.into_iter().map(job).collect() }];
    let mut records = Vec::new();
    let mut watch = |event| {
        if let CellEvent::Finished(_, done) = event {
            records.push(done.record);
        }
    };
    let workload = Workload { concurrency: 2, threads: 2 };
    search(&lean, &mut policy, cells, workload, &AtomicBool::new(false), &mut watch);
    records
}

/// The judge's list of terms that cheat, by the ways that a prover's terms take: in a claim of a
/// stranger's, and in a search that believes to have found a proof.
#[test]
fn forged_terms_are_refused_on_every_route() {
    let mut compromised = Compromised::new(1000, PATIENT);
    let forged = forged();
    let terms: Vec<&String> = forged.iter().map(|(_, terms)| terms).collect();
    let list = serde_json::to_string(&terms).expect("a list");
    std::fs::write(compromised.folder.path().join("terms.json"), list).expect("a file");
    compromised.provers("terms of a list");
    let header = |at| format!("-- {at}");
    let rule = |(at, (statement, _)): (usize, &(String, String))| {
        let claim = Claim {
            name: "t".into(),
            header: header(at),
            statement: statement.clone(),
            tactics: vec![format!("trivial {at}")],
        };
        compromised.lean.rule(&claim).expect("a ruling")
    };
    let rulings: Vec<Ruling> = forged.iter().enumerate().map(rule).collect();
    let theorem = |(at, (statement, _)): (usize, &(String, String))| Theorem {
        name: at.to_string(),
        header: Some(header(at)),
        statement: statement.clone(),
        ..Theorem::default()
    };
    // What a search adds is the same for all: some are enough.
    let theorems: Vec<Theorem> = forged.iter().enumerate().step_by(4).map(theorem).collect();
    let some = theorems.len();
    let records = searched(Arc::new(compromised.lean), theorems);
    assert_eq!((rulings.len(), records.len()), (forged.len(), some));
    for (at, ruling) in rulings.iter().enumerate() {
        let verdict = if at == 0 { Proved } else { Refused };
        assert_eq!(ruling.verdict, verdict, "{at}: {ruling:?}");
    }
    for record in &records {
        let honest = record.theorem == "0";
        let outcome = if honest { Outcome::Proved } else { Outcome::Budget };
        assert_eq!(record.outcome, outcome, "{record:?}");
    }
}
