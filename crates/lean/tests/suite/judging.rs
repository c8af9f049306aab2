//! What the judge makes of terms, whoever hands them over.

use catamount_search::{Checked, Environment};
use catamount_traces::Theorem;

use crate::setup::{in_library, lean, theorem};

fn terms(theorem: &Theorem, tactics: &[&str]) -> String {
    let tactics: Vec<String> = tactics.iter().map(|t| (*t).to_owned()).collect();
    lean().terms(theorem, &tactics).unwrap().unwrap()
}

fn refusal(theorem: &Theorem, terms: &str) -> String {
    match lean().judge(theorem, terms).unwrap() {
        Checked::Refused { reason } => reason,
        Checked::Proved { .. } => panic!("accepted as a proof of {}", theorem.statement),
    }
}

fn stands(theorem: &Theorem, terms: &str) -> bool {
    matches!(lean().judge(theorem, terms).unwrap(), Checked::Proved { .. })
}

#[test]
fn terms_prove_their_own_theorem_and_no_other() {
    let right = theorem("theorem t (a b : Nat) : a + b = b + a");
    let proof = terms(&right, &["omega"]);
    assert!(stands(&right, &proof));
    for wrong in [
        "theorem t (a b : Nat) : a + b = a",
        "theorem t : 1 = 2",
        "theorem t (a b : Int) : a + b = b + a",
        "theorem u (a b : Nat) : a + b = b + a",
        "theorem t (a b c : Nat) : a + b = b + a",
    ] {
        let why = refusal(&theorem(wrong), &proof);
        assert!(why.starts_with("unsound: a proof of"), "{wrong}: {why}");
    }
}

/// A prover that runs a tactic's code can be made to say that it is done and to hand over anything:
/// before there was a judge, its word was the verdict.
#[test]
fn what_a_forging_prover_says_is_no_verdict() {
    let goal = theorem("theorem t : 1 = 2");
    let proof_of_another = terms(&theorem("theorem t : 1 = 1"), &["rfl"]);
    for forged in ["", "{}", "null", "[]", "{\"ok\":true,\"done\":true,\"axioms\":[]}"] {
        let why = refusal(&goal, forged);
        assert!(why.starts_with("terms") || why.starts_with("unsound"), "{forged}: {why}");
    }
    assert!(refusal(&goal, &proof_of_another).contains("another statement"));
}

#[test]
fn a_theorem_of_a_file_is_judged_where_it_stands() {
    let place = in_library("List.lean", "Library.List.total_append");
    let proof = terms(
        &place,
        &[
            "induction ms",
            "simp [total]",
            "rw [List.cons_append, total_cons, total_cons, Nat.add_assoc]",
            "omega",
        ],
    );
    assert!(stands(&place, &proof));
    let later = in_library("List.lean", "Library.List.total_reverse");
    assert!(refusal(&later, &proof).starts_with("unsound"));
    // A proof that uses what the file proves before it stands; one that uses the theorem itself, or
    // what is not there, does not.
    let proof = terms(
        &later,
        &["induction ns with\n| nil => rfl\n| cons n ns ih => rw [List.reverse_cons, \
             total_append, ih, total_single, total_cons, Nat.add_comm]"],
    );
    assert!(stands(&later, &proof));
    for name in ["total_reverse", "total_nowhere"] {
        let why = refusal(&later, &proof.replace("total_append", name));
        assert!(why.starts_with("unsound") || why.starts_with("terms"), "{name}: {why}");
    }
}

/// The user's own header is trusted; what would be refused in a stranger's claim is pointed out.
#[test]
fn the_users_own_header_is_warned_of_and_not_refused() {
    let own = Theorem {
        header: Some("open Nat renaming le → lt".into()),
        ..theorem("theorem t : lt 3 3")
    };
    let checked = lean().check(&own, &["exact Nat.le_refl 3".into()]).unwrap();
    assert!(matches!(checked, Checked::Proved { .. }), "{checked:?}");
    let warnings = lean().warnings();
    assert!(warnings.iter().any(|w| w.contains("already means something else")), "{warnings:?}");
}
