//! Traces out of databases, and proofs back into them.

mod common;

use catamount_metamath::{Database, Error, Extraction, Metamath, export};
use catamount_search::{Checked, StateId, Verdict};
use catamount_traces::Trace;
use common::{debian, metamath, open, tactics, toy};

fn traces(database: &Database) -> Vec<Trace> {
    let mut traces = Vec::new();
    let report = database.extract(&Extraction::default(), |trace, _| traces.push(trace));
    assert_eq!(report.remainder, []);
    assert_eq!(report.refused, []);
    assert_eq!(report.traces, traces.len());
    assert_eq!(report.steps, traces.iter().map(|trace| trace.steps.len()).sum::<usize>());
    assert_eq!(report.theorems, report.traces + report.trivial);
    traces
}

fn proofs(traces: &[Trace]) -> Vec<(String, Vec<String>)> {
    let tactics = |trace: &Trace| trace.steps.iter().map(|step| step.tactic.clone()).collect();
    traces.iter().map(|trace| (trace.theorem.name.clone(), tactics(trace))).collect()
}

#[test]
fn every_proof_of_the_toy_becomes_a_trace() {
    let traces = traces(&toy());
    assert_eq!(traces.len(), 31, "all but idi, which is its own hypothesis");
    let con3i = traces.iter().find(|trace| trace.theorem.name == "con3i").unwrap();
    assert_eq!(con3i.theorem.statement, "$e ( ph -> ps ) $p ( -. ps -> -. ph )");
    let tactics: Vec<&str> = con3i.steps.iter().map(|step| &*step.tactic).collect();
    assert_eq!(tactics, ["con4i", "syl $ ps ph", "notnotr", "syl $ ps ps", "notnot"]);
    assert_eq!(con3i.steps[2].state, "$e ( ph -> ps ) $p ( -. -. ph -> ph ) $p ( ph -> -. -. ps )");
}

#[test]
fn every_trace_of_the_toy_is_a_proof() {
    let environment = Metamath::new(toy());
    let proofs = proofs(&traces(environment.database()));
    for ((label, _), checked) in proofs.iter().zip(environment.check_all(&proofs)) {
        assert!(matches!(checked, Checked::Proved { .. }), "{label}: {checked:?}");
    }
}

#[test]
fn traces_replay_in_sessions() {
    let environment = Metamath::new(toy());
    for trace in traces(environment.database()) {
        let mut session = open(&environment, &trace.theorem.name);
        let (mut state, mut text) = (StateId(0), session.root().to_owned());
        let last = trace.steps.len() - 1;
        for (index, step) in trace.steps.iter().enumerate() {
            assert_eq!(step.state, text);
            match session.apply(state, &step.tactic).unwrap() {
                Verdict::Open { state: next, text: after } => (state, text) = (next, after),
                Verdict::Proved => assert_eq!(index, last),
                Verdict::Rejected { reason } => panic!("{}: {reason}", step.tactic),
            }
        }
    }
}

#[test]
fn long_proofs_and_incomplete_ones_are_counted() {
    let text = String::from_utf8(std::fs::read(common::TOY).unwrap()).unwrap();
    let incomplete = text.replace("( syl ) ABCEDF $.", "? $.");
    assert_ne!(text, incomplete);
    let database = Database::from_text("toy.mm", incomplete.into_bytes()).unwrap();
    let report = database
        .extract(&Extraction { longest: 5, ..Extraction::default() }, |trace, _| {
            assert!(trace.steps.len() <= 5)
        });
    let labels: Vec<&str> = report.remainder.iter().map(|(label, _)| &**label).collect();
    assert_eq!(labels, ["pm2.18", "dummies", "syl2"]);
    assert!(
        report.remainder[0].1.contains("more than 5 steps")
            && report.remainder[2].1.contains("incomplete")
    );
}

#[test]
fn the_first_theorems_are_all_that_is_extracted() {
    let database = toy();
    let first = Extraction { first: Some(5), ..Extraction::default() };
    let (mut names, all) = (Vec::new(), traces(&database));
    let report = database.extract(&first, |trace, _| names.push(trace.theorem.name));
    assert_eq!((report.theorems, report.traces + report.trivial), (5, 5));
    let expected: Vec<String> =
        all.iter().take(names.len()).map(|trace| trace.theorem.name.clone()).collect();
    assert_eq!(names, expected);
}

#[test]
fn a_database_beyond_the_grammar_leaves_a_remainder() {
    let database = Database::open(debian("miu.mm")).unwrap();
    let report = database.extract(&Extraction::default(), |_, _| {});
    assert_eq!((report.theorems, report.traces), (1, 0));
    assert!(report.remainder[0].1.contains("does not parse"), "{:?}", report.remainder);
}

#[test]
fn demo0_has_its_one_trace() {
    let environment = Metamath::new(Database::open(debian("demo0.mm")).unwrap());
    let proofs = proofs(&traces(environment.database()));
    assert_eq!(proofs.len(), 1);
    assert!(matches!(environment.check_all(&proofs)[..], [Checked::Proved { .. }]));
}

#[test]
fn quantum_logic_goes_out_and_comes_back() {
    let environment = Metamath::new(Database::open(debian("ql.mm")).unwrap());
    let proofs = proofs(&traces(environment.database()));
    assert_eq!(proofs.len(), 1138);
    let some: Vec<_> = proofs.into_iter().step_by(10).collect();
    for ((label, _), checked) in some.iter().zip(environment.check_all(&some)) {
        assert!(matches!(checked, Checked::Proved { .. }), "{label}: {checked:?}");
    }
    let mut out = Vec::new();
    environment.database().export(&some, &mut out).unwrap();
    assert_eq!(metamath(&out, "ql"), Ok(()));
}

#[test]
fn an_export_is_accepted_by_the_metamath_program() {
    // A proof with two dummies that the theorem's own scope holds no condition on, one shorter than
    // the original, and one with a comment inside the original proof.
    let dummies = tactics(&[
        "ax-mp $ ph -. A. x -. x = z",
        "ax-6",
        "syl $ ps ( ps -> ps )",
        "a1i",
        "id",
        "ax-1",
    ]);
    let found = [
        ("dummies", dummies),
        ("shared", tactics(&["a1i", "id"])),
        ("id", tactics(&["mpd $ ps ( ph -> ph )", "ax-1", "ax-1"])),
    ];
    let mut out = Vec::new();
    export(common::TOY, &found, &mut out).unwrap();
    assert_eq!(metamath(&out, "toy"), Ok(()));
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(
        text.contains("$d z x $.") || text.contains("$d x z $."),
        "the dummies' condition is written"
    );
    // The statements are untouched, and the database can be opened again.
    let (before, after) = (toy(), Database::from_text("export.mm", out).unwrap());
    for (a, b) in before.theorems().zip(after.theorems()) {
        assert_eq!(before.statement(a), after.statement(b));
        assert_eq!(before.key(a), after.key(b));
    }
    // The program must be able to say no, or its yes means nothing.
    let broken = text.replace("$d z x $.", "").replace("$d x z $.", "");
    assert!(metamath(broken.as_bytes(), "broken").unwrap_err().contains("disjoint variable"));
}

#[test]
fn an_export_without_proofs_is_the_database_itself() {
    let mut out = Vec::new();
    export::<&str, Vec<String>>(common::TOY, &[], &mut out).unwrap();
    assert_eq!(out, std::fs::read(common::TOY).unwrap());
}

#[test]
fn what_is_no_proof_is_not_exported() {
    let mut out = Vec::new();
    let error = export(common::TOY, &[("syl", tactics(&["a1i"]))], &mut out).unwrap_err();
    assert!(matches!(error, Error::NotAProof { .. }), "{error}");
    assert!(out.is_empty());
    let error = export(common::TOY, &[("none", tactics(&[]))], &mut out).unwrap_err();
    assert!(matches!(error, Error::UnknownTheorem { .. }), "{error}");
}
