//! Tracing: the bundled library in full, and what happens to files that are less well behaved.

use std::fs;

use catamount_lean::{Options, trace};
use catamount_search::{Checked, Environment, StateId, Verdict};
use catamount_traces::{Annotated, Premise};

use crate::setup::{lean, options, traced};

#[test]
fn the_bundled_library_traces_and_replays() {
    let report = traced();
    assert_eq!(report.problems, []);
    assert_eq!(report.lost, []);
    assert_eq!(report.by_tactics, report.traces.len());
    assert!(report.traces.len() >= 300, "{}", report.traces.len());
    let middle = report.traces.iter().filter(|t| (2..=5).contains(&t.steps.len())).count();
    assert!(middle * 2 > report.traces.len(), "{middle} of {}", report.traces.len());
    assert_eq!(report.files, 7);
    // A sample of them again, by the way that searches and checks go.
    for trace in report.traces.iter().step_by(17) {
        let mut session = lean().open(&trace.theorem).unwrap();
        assert_eq!(session.root(), trace.steps[0].state);
        let mut state = StateId(0);
        for step in &trace.steps {
            match session.apply(state, &step.tactic).unwrap() {
                Verdict::Open { state: next, text } => {
                    assert_eq!(Some(&text), step.next.as_ref(), "{}", trace.theorem.name);
                    state = next;
                }
                Verdict::Proved => assert_eq!(step.next.as_deref(), Some("")),
                Verdict::Rejected { reason } => {
                    panic!("{}: {}: {reason}", trace.theorem.name, step.tactic)
                }
            }
        }
    }
    // Premises of core Lean: the package has their names and modules, and no positions.
    let annotated =
        report.traces.iter().flat_map(|t| &t.steps).filter_map(|s| s.annotated.as_ref());
    let premises: Vec<&Premise> = annotated.flat_map(|Annotated(_, premises)| premises).collect();
    assert!(premises.iter().any(|p| p.def_path == "Init/Core.lean" && p.def_pos.is_none()));
    assert!(premises.iter().all(|p| !p.full_name.is_empty() && p.def_path.ends_with(".lean")));
    let last = report.traces.last().unwrap();
    let tactics: Vec<String> = last.steps.iter().map(|s| s.tactic.clone()).collect();
    assert!(matches!(lean().check(&last.theorem, &tactics).unwrap(), Checked::Proved { .. }));
}

#[test]
fn losses_are_counted_and_named() {
    let folder = tempfile::tempdir().unwrap();
    let text = "\
theorem good (n : Nat) : n = n := by
  rfl

theorem wrong : 1 = 2 := by
  decide

theorem open_end : 1 = 1 := by
  sorry

theorem leaning : 1 = 2 := by
  have h := wrong
  exact h

theorem by_term : 1 = 1 := rfl

theorem recursive (n : Nat) : n = n := by
  cases n with
  | zero => rfl
  | succ n =>
    have h := recursive n
    rw [h]

def broken : Nat := \"text\"

theorem after (p : Prop) (h : p) : p := by
  exact h
";
    fs::write(folder.path().join("Mixed.lean"), text).unwrap();
    let report = trace(&Options { root: None, ..options() }, folder.path(), |_| ()).unwrap();
    let kept: Vec<&str> = report.traces.iter().map(|t| t.theorem.name.as_str()).collect();
    assert_eq!(kept, ["good", "after"]);
    assert_eq!((report.theorems, report.by_tactics), (7, 6));
    let lost: Vec<(&str, &str)> =
        report.lost.iter().map(|l| (l.name.as_str(), l.why.as_str())).collect();
    assert_eq!(
        lost,
        [
            ("wrong", "it does not elaborate"),
            ("open_end", "refused by policy"),
            ("leaning", "it rests on a lemma that is not proved"),
            ("recursive", "a tactic fails on replay"),
        ]
    );
    assert_eq!(report.losses().values().sum::<usize>(), 4);
    let problems: Vec<u32> = report.problems.iter().map(|p| p.line).collect();
    assert_eq!(problems, [4, 23]);
}

#[test]
fn files_that_import_each_other_are_elaborated_in_order() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("Sub")).unwrap();
    fs::write(
        folder.path().join("A.lean"),
        "import Sub.B\n\ntheorem a : B.two = 2 := by\n  rw [B.two_eq]\n",
    )
    .unwrap();
    let b = "namespace B\ndef two : Nat := 1 + 1\ntheorem two_eq : two = 2 := by\n  unfold two\n  \
     rfl\nend B\n";
    fs::write(folder.path().join("Sub/B.lean"), b).unwrap();
    let options = Options { root: Some(folder.path().into()), workers: 1, ..options() };
    let mut seen = Vec::new();
    let report = trace(&options, folder.path(), |p| seen.push(p.file.to_owned())).unwrap();
    assert_eq!(seen, ["Sub/B.lean", "A.lean"]);
    assert_eq!(report.problems, []);
    let names: Vec<&str> = report.traces.iter().map(|t| t.theorem.name.as_str()).collect();
    assert_eq!(names, ["B.two_eq", "a"]);
    let Annotated(text, premises) = report.traces[1].steps[0].annotated.clone().unwrap();
    assert_eq!(text, "rw [<a>B.two_eq</a>]");
    let two_eq = Premise {
        full_name: "B.two_eq".into(),
        def_path: "Sub/B.lean".into(),
        def_pos: Some([3, 9]),
        def_end_pos: Some([3, 15]),
    };
    assert_eq!(premises, [two_eq]);
    let lean = catamount_lean::Lean::new(options).unwrap();
    let mut session = lean.open(&report.traces[1].theorem).unwrap();
    assert_eq!(session.root(), "⊢ B.two = 2");
    assert_eq!(session.apply(StateId(0), "exact B.two_eq").unwrap(), Verdict::Proved);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let options = Options { root: None, ..options() };
    let missing = trace(&options, &folder.path().join("nothing"), |_| ()).unwrap_err().to_string();
    assert!(missing.contains("nothing"), "{missing}");
    fs::write(folder.path().join("Bad.lean"), b"theorem t : 1 = 1 := by\n  rfl -- \xff\n").unwrap();
    let invalid = trace(&options, folder.path(), |_| ()).unwrap_err().to_string();
    assert!(invalid.contains("Bad.lean") && invalid.contains("UTF-8 after byte 33"), "{invalid}");
}
