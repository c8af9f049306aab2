//! A log belongs to one experiment. Whatever changes an outcome is another experiment and is
//! refused; whatever does not is none of its business.

mod common;

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use catamount_evaluate::log::Outcome;
use catamount_evaluate::{CellError, CellRun, CellTask, Evaluation, Log, Theorems, Workload};
use catamount_search::{
    Checked, Deployment, Environment, Fault, Identity, Policy, Request, RequestId, Sample, Session,
    StrategyKind, Value,
};
use catamount_traces::{Theorem, Trace};
use common::{Countdown, Uniform, provenance};

/// Everything a run of a cell depends on, and what it does not.
#[derive(Clone)]
struct Setting {
    /// What the policy was made from.
    weights: &'static str,
    adapter: &'static str,
    policy_description: &'static str,
    database: &'static str,
    environment_description: &'static str,
    statement: &'static str,
    file: &'static str,
    objective: &'static str,
    seed: u64,
    time_limit: Option<Duration>,
    theorem_time_limit: Option<Duration>,
    threads: usize,
    concurrency: usize,
    batch: usize,
    command: &'static str,
    settings: Vec<(&'static str, Value)>,
}

fn setting() -> Setting {
    Setting {
        weights: "w1",
        adapter: "none",
        policy_description: "a model on cpu, 2 threads, avx2",
        database: "d1",
        environment_description: "countdown at /one/place",
        statement: "7",
        file: "pool.jsonl",
        objective: "ce",
        seed: 1,
        time_limit: None,
        theorem_time_limit: None,
        threads: 1,
        concurrency: 4,
        batch: 8,
        command: "one",
        settings: Vec::new(),
    }
}

struct Named<T>(T, Identity, &'static str);

impl Policy for Named<Uniform> {
    fn submit(&mut self, request: Request) {
        self.0.submit(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        self.0.poll()
    }

    fn describe(&self) -> String {
        self.2.into()
    }

    fn identity(&self) -> Identity {
        self.1.clone()
    }
}

impl Environment for Named<Countdown> {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        self.0.open(theorem)
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        self.0.check(theorem, tactics)
    }

    fn describe(&self) -> String {
        self.2.into()
    }

    fn identity(&self) -> Identity {
        self.1.clone()
    }
}

fn run(log: &Path, with: &Setting) -> Result<CellRun, CellError> {
    let theorem = |i: usize| Theorem {
        name: format!("t{i}"),
        statement: if i == 0 { with.statement.into() } else { (3 + i % 5).to_string() },
        ..Theorem::default()
    };
    let traces = (0..12).map(|i| Trace { theorem: theorem(i), steps: Vec::new() }).collect();
    let mut deployment = Deployment::new(StrategyKind::Bfs, 20).unwrap();
    for (key, value) in &with.settings {
        deployment.set(key, value).unwrap();
    }
    let task = CellTask {
        log: log.to_path_buf(),
        objective: with.objective.into(),
        deployment,
        theorems: Theorems::select(traces, with.file, None, None).unwrap(),
    };
    let identity = Identity::new("model").with("weights", with.weights);
    let environment: Arc<dyn Environment> = Arc::new(Named(
        Countdown { broken: None },
        Identity::new("countdown").with("database", with.database),
        with.environment_description,
    ));
    let mut policy = Named(
        Uniform { batch: with.batch, queue: Default::default() },
        identity.with("adapter", with.adapter),
        with.policy_description,
    );
    let mut evaluation = Evaluation {
        environment: &environment,
        policy: &mut policy,
        seed: with.seed,
        time_limit: with.time_limit,
        theorem_time_limit: with.theorem_time_limit,
        workload: Workload { concurrency: with.concurrency, threads: with.threads },
        provenance: catamount_evaluate::log::Provenance {
            command: with.command.into(),
            ..provenance()
        },
        stop: &AtomicBool::new(false),
    };
    evaluation.run(&[task], &mut ()).map(|mut runs| runs.remove(0))
}

#[test]
fn what_changes_an_outcome_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("cell.jsonl");
    run(&log, &setting()).unwrap();
    let before = std::fs::read(&log).unwrap();
    let set = |key, value: Value| Setting { settings: vec![(key, value)], ..setting() };
    let second = Some(Duration::from_secs(1));
    for (changed, named) in [
        (Setting { weights: "w2", ..setting() }, "the policy's weights was w1 and is now w2"),
        (Setting { adapter: "a", ..setting() }, "the policy's adapter was none and is now a"),
        (Setting { database: "d2", ..setting() }, "the environment's database was d1"),
        (Setting { statement: "8", ..setting() }, "the pool's content"),
        (Setting { seed: 2, ..setting() }, "the seed was 1 and is now 2"),
        (Setting { time_limit: second, ..setting() }, "the time limit was none and is now 1 s"),
        (Setting { theorem_time_limit: second, ..setting() }, "the time limit per theorem"),
        (set("max_tokens", Value::Whole(64)), "max_tokens was 128 and is now 64"),
        (set("temperature", Value::Real(1.0)), "temperature was 0.8 and is now 1"),
        (set("top_p", Value::Real(0.9)), "top_p was 1"),
        (set("distinct", Value::Flag(true)), "distinct was false and is now true"),
        (set("budget", Value::Whole(21)), "budget was 20 and is now 21"),
        (set("max_depth", Value::Whole(9)), "max_depth was 5 and is now 9"),
        (set("bfs_beam", Value::Whole(3)), "bfs_beam was 2 and is now 3"),
        (set("bfs_restart_after", Value::Whole(9)), "bfs_restart_after was nothing and is now 9"),
    ] {
        let error = run(&log, &changed).unwrap_err().to_string();
        assert!(error.contains(named) && error.contains("another place"), "{named}: {error}");
    }
    assert_eq!(std::fs::read(&log).unwrap(), before, "a refused run touches nothing");
}

#[test]
fn what_changes_no_outcome_is_nobodys_business() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("cell.jsonl");
    run(&log, &setting()).unwrap();
    let before = std::fs::read(&log).unwrap();
    for changed in [
        Setting { threads: 3, concurrency: 9, batch: 2, ..setting() },
        Setting { policy_description: "the same on cuda:0, avx512", ..setting() },
        Setting { environment_description: "countdown at /another/place", ..setting() },
        Setting { file: "elsewhere/pool.jsonl", ..setting() },
        Setting { objective: "another label", ..setting() },
        Setting { command: "another", ..setting() },
    ] {
        let again = run(&log, &changed).unwrap();
        assert!(again.complete && again.records.len() == 12);
        assert_eq!(std::fs::read(&log).unwrap(), before);
    }
    let manifest = Log::read(&log).unwrap().manifest.unwrap();
    assert_eq!(manifest.provenance.command, "another", "the latest run describes the cell");
}

/// Edits a log and reads it again, as a report would and as a resumed run would.
fn edited(edit: impl Fn(&str) -> String) -> (Log, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cell.jsonl");
    run(&path, &setting()).unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::write(&path, edit(&text)).unwrap();
    let after = std::fs::read(&path).unwrap();
    let log = Log::read(&path).unwrap();
    let error = run(&path, &setting()).unwrap_err().to_string();
    assert_eq!(std::fs::read(&path).unwrap(), after, "nothing is deleted");
    (log, error)
}

#[test]
fn a_proof_without_tactics_counts_nowhere() {
    let (log, error) = edited(|text| {
        let unproved = text.lines().find(|line| line.contains("\"budget\"")).unwrap();
        text.replace(unproved, &unproved.replace("\"budget\"", "\"proved\""))
    });
    assert_eq!((log.records.len(), log.problems.len()), (11, 1));
    assert!(error.contains("said to be proved, without a proof"), "{error}");
    assert!(error.contains("cell.jsonl:"), "{error}");
    assert!(log.notes.iter().any(|note| note.contains("without a proof")), "{:?}", log.notes);
}

#[test]
fn lines_of_another_experiment_count_nowhere() {
    let other = tempfile::tempdir().unwrap();
    let path = other.path().join("cell.jsonl");
    run(&path, &Setting { seed: 2, ..setting() }).unwrap();
    let foreign = std::fs::read_to_string(&path).unwrap();
    let (log, error) = edited(|text| format!("{text}{foreign}"));
    assert_eq!((log.records.len(), log.problems.len()), (12, 12));
    assert!(error.contains("a record of") && error.contains("in the log of"), "{error}");
    let own = log.records.values().filter(|record| record.outcome == Outcome::Proved).count();
    assert_eq!(log.tally().proved, own);
}

#[test]
fn theorems_that_are_not_in_the_pool_count_nowhere_and_stay() {
    let (log, error) = edited(|text| {
        let first = text.lines().next().unwrap();
        let name = first.split("\"theorem\":\"").nth(1).unwrap().split('"').next().unwrap();
        let stranger = first.replace(&format!("\"{name}\""), "\"stranger\"");
        format!("{text}{stranger}\n")
    });
    assert_eq!((log.records.len(), log.problems.len()), (12, 1));
    assert!(error.contains("stranger: not a theorem of this cell's pool"), "{error}");
}

#[test]
fn a_log_has_one_writer() {
    let folder = tempfile::tempdir().unwrap();
    let log = folder.path().join("cell.jsonl");
    run(&log, &setting()).unwrap();
    let held =
        catamount_base::Lock::at(&folder.path().join(".cell.lock"), &log).expect("nobody has it");
    let error = run(&log, &setting()).unwrap_err();
    assert!(matches!(error, CellError::Locked(_)), "{error}");
    let process = std::process::id().to_string();
    assert!(error.to_string().contains(&process), "{error}");
    drop(held);
    run(&log, &setting()).unwrap();
}
