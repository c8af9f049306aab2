//! What the judge makes of terms, whoever hands them over.

use catamount_lean::{Lean, Options};
use catamount_search::{Checked, Environment};
use catamount_traces::Theorem;

use crate::setup::{in_library, lean, options, theorem};

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
        let file = lean().certificate_of(&theorem(wrong), &proof).unwrap();
        assert_eq!(file.err(), Some(why), "a file that claims to be a proof of {wrong}");
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

/// Kernels compute some functions by arithmetic, going by their names. Where the imports have no
/// such function, a proof could define one that is something else.
#[test]
fn a_name_that_kernels_know_carries_no_meaning() {
    let imports = vec!["Init.Prelude".to_owned()];
    let small = Lean::new(Options { imports, root: None, workers: 1, ..options() }).unwrap();
    let lines = [
        r#"{"str":{"pre":0,"str":"Nat"},"in":1}"#,
        r#"{"str":{"pre":1,"str":"gcd"},"in":2}"#,
        r#"{"str":{"pre":0,"str":"t"},"in":3}"#,
        r#"{"str":{"pre":0,"str":"Eq"},"in":4}"#,
        r#"{"str":{"pre":4,"str":"refl"},"in":5}"#,
        r#"{"succ":0,"il":1}"#,
        r#"{"const":{"name":1,"us":[]},"ie":0}"#,
        r#"{"forallE":{"name":0,"type":0,"body":0,"binderInfo":"default"},"ie":1}"#,
        r#"{"forallE":{"name":0,"type":0,"body":1,"binderInfo":"default"},"ie":2}"#,
        r#"{"natVal":"0","ie":3}"#,
        r#"{"lam":{"name":0,"type":0,"body":3,"binderInfo":"default"},"ie":4}"#,
        r#"{"lam":{"name":0,"type":0,"body":4,"binderInfo":"default"},"ie":5}"#,
        concat!(
            r#"{"def":{"name":2,"levelParams":[],"type":2,"value":5,"#,
            r#""hints":"abbrev","safety":"safe","all":[2]}}"#
        ),
        // The value that arithmetic gives `Nat.gcd 2 3`, for a proof that 0 is 1.
        r#"{"const":{"name":2,"us":[]},"ie":6}"#,
        r#"{"natVal":"2","ie":7}"#,
        r#"{"natVal":"3","ie":8}"#,
        r#"{"app":{"fn":6,"arg":7},"ie":9}"#,
        r#"{"app":{"fn":9,"arg":8},"ie":10}"#,
        r#"{"natVal":"1","ie":11}"#,
        r#"{"const":{"name":4,"us":[1]},"ie":12}"#,
        r#"{"app":{"fn":12,"arg":0},"ie":13}"#,
        r#"{"app":{"fn":13,"arg":10},"ie":14}"#,
        r#"{"app":{"fn":14,"arg":11},"ie":15}"#,
        r#"{"const":{"name":5,"us":[1]},"ie":16}"#,
        r#"{"app":{"fn":16,"arg":0},"ie":17}"#,
        r#"{"app":{"fn":17,"arg":11},"ie":18}"#,
        r#"{"str":{"pre":3,"str":"aux"},"in":6}"#,
        r#"{"thm":{"name":6,"levelParams":[],"type":15,"value":18,"all":[6]}}"#,
        r#"{"const":{"name":6,"us":[]},"ie":19}"#,
        r#"{"str":{"pre":0,"str":"True"},"in":7}"#,
        r#"{"str":{"pre":7,"str":"intro"},"in":8}"#,
        r#"{"const":{"name":7,"us":[]},"ie":20}"#,
        r#"{"const":{"name":8,"us":[]},"ie":21}"#,
        r#"{"thm":{"name":3,"levelParams":[],"type":20,"value":21,"all":[3]}}"#,
    ];
    match small.judge(&theorem("theorem t : True"), &lines.join("\n")).unwrap() {
        Checked::Refused { reason } => assert!(reason.starts_with("kernel"), "{reason}"),
        Checked::Proved { .. } => panic!("a function that is 0 is 1 somewhere"),
    }
}

/// As deep as terms may be at most, and a little more.
#[test]
fn deep_terms_are_refused_and_do_not_end_the_judge() {
    let head = [
        r#"{"str":{"pre":0,"str":"t"},"in":1}"#,
        r#"{"str":{"pre":0,"str":"False"},"in":2}"#,
        r#"{"str":{"pre":0,"str":"True"},"in":3}"#,
        r#"{"str":{"pre":3,"str":"intro"},"in":4}"#,
        r#"{"str":{"pre":0,"str":"id"},"in":5}"#,
        r#"{"const":{"name":2,"us":[]},"ie":0}"#,
        r#"{"const":{"name":5,"us":[0]},"ie":1}"#,
        r#"{"const":{"name":3,"us":[]},"ie":2}"#,
        r#"{"app":{"fn":1,"arg":2},"ie":3}"#,
        r#"{"const":{"name":4,"us":[]},"ie":4}"#,
    ];
    for (depth, words) in [(2_000, "kernel"), (25_000, "terms")] {
        let mut text = head.join("\n");
        for at in 5..5 + depth {
            text.push_str(&format!("\n{{\"app\":{{\"fn\":3,\"arg\":{}}},\"ie\":{at}}}", at - 1));
        }
        let value = 4 + depth;
        text.push_str(&format!(
            "\n{{\"thm\":{{\"name\":1,\"levelParams\":[],\"type\":0,\
             \"value\":{value},\"all\":[1]}}}}"
        ));
        let why = refusal(&theorem("theorem t : False"), &text);
        assert!(why.starts_with(words), "{depth}: {why}");
    }
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

/// What can be seen by reading is pointed out whatever the header, and said once.
#[test]
fn look_alikes_and_our_own_modules_are_warned_of_without_a_header() {
    let greek = theorem("theorem t (Νat : Nat) : Νat = Νat");
    let ours = Theorem {
        header: Some("import Server\n".into()),
        ..theorem("theorem t (warned : Nat) : warned = warned")
    };
    for theorem in [&greek, &greek, &ours] {
        lean().check(theorem, &["rfl".into()]).unwrap();
    }
    let warnings = lean().warnings();
    let about = |part: &str, words: &str| {
        warnings.iter().filter(|w| w.contains(part) && w.contains(words)).count()
    };
    assert_eq!(about("Νat", "letters that look alike"), 1, "{warnings:?}");
    assert_eq!(about("warned", "this program's own"), 1, "{warnings:?}");
}
