//! Proofs before a kernel that neither we nor Lean's authors wrote.

use catamount_lean::{Certificate, Claim, Kernel, Lean, Options, RulingVerdict};

use crate::setup::{in_library, lean, options, theorem};

/// Whether nanoda is here, for tests that have more to check than its word.
pub fn nanoda_is_here() -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&paths).any(|folder| folder.join("nanoda_bin").is_file())
}

fn certificate(statement: &str, tactics: &[&str]) -> Certificate {
    let tactics: Vec<String> = tactics.iter().map(|t| (*t).to_owned()).collect();
    lean().certificate(&theorem(statement), &tactics).unwrap().unwrap()
}

#[test]
#[ignore = "needs nanoda_bin on the PATH"]
fn nanoda_accepts_proofs_relative_to_named_library_statements() {
    let lean = Lean::new(Options { kernel: Kernel::Nanoda, ..options() }).unwrap();
    let claims: [(&str, &str, &[&str]); 4] = [
        ("", "theorem t (a b : Nat) : a + b = b + a", &["omega"]),
        ("", "theorem t (p q : Prop) : p ∨ q → q ∨ p", &["intro h", "exact h.symm"]),
        (
            "inductive Tree where\n| leaf : Tree\n| node : Tree → Tree → Tree\n\
             def Tree.size : Tree → Nat\n| .leaf => 1\n| .node a b => a.size + b.size",
            "theorem t (x : Tree) : 0 < x.size",
            &["induction x <;> simp [Tree.size]", "omega"],
        ),
        ("", "theorem t (s : String) : s = s ∧ \"ab\" ≠ \"b\"", &["simp"]),
    ];
    for (header, statement, tactics) in claims {
        let claim = Claim {
            name: "t".into(),
            header: header.into(),
            statement: statement.into(),
            tactics: tactics.iter().map(|t| (*t).to_owned()).collect(),
        };
        let ruling = lean.rule(&claim).unwrap();
        assert_eq!(ruling.verdict, RulingVerdict::Proved, "{statement}: {ruling:?}");
        let n = ruling.relative_to.len();
        assert!(
            ruling.note.contains(&format!("relative to these {n} library statements"))
                || (n == 0 && ruling.note.contains("down to the ground")),
            "{ruling:?}"
        );
    }
}

#[test]
#[ignore = "needs nanoda_bin on the PATH"]
fn nanoda_refuses_a_certificate_that_was_tampered_with() {
    let good = certificate("theorem t (a b : Nat) : a + b = b + a", &["exact Nat.add_comm a b"]);
    let verdict = |c: &Certificate| c.put_to_nanoda(&options()).unwrap();
    assert!(verdict(&good).is_ok());
    assert!(good.library_statements.contains(&"Nat.add_comm".to_owned()), "{good:?}");
    // The same without leave to take a library statement on trust.
    let stricter = Certificate { library_statements: Vec::new(), ..good.clone() };
    assert!(verdict(&stricter).unwrap_err().contains("axiom"));
    // The theorem with another of its terms for a proof.
    let at = good.text.rfind("{\"thm\":").expect("the proof is there");
    let mut last: serde_json::Value = serde_json::from_str(good.text[at..].trim()).unwrap();
    last["thm"]["value"] = last["thm"]["type"].clone();
    let tampered = Certificate { text: format!("{}{last}\n", &good.text[..at]), ..good };
    assert!(verdict(&tampered).is_err());
}

#[test]
fn a_theorem_of_a_file_is_certified_with_what_stands_before_it() {
    let place = in_library("List.lean", "Library.List.total_append");
    let tactics = [
        "induction ms",
        "simp [total]",
        "rw [List.cons_append, total_cons, total_cons, Nat.add_assoc]",
        "omega",
    ]
    .map(String::from);
    let certificate = lean().certificate(&place, &tactics).unwrap().unwrap();
    assert!(certificate.text.starts_with("{\"meta\":"));
    // The file's own definition comes with its value, its own lemma with its proof.
    let own = |name: &str| certificate.library_statements.iter().any(|s| s == name);
    assert!(!own("Library.List.total") && !own("Library.List.total_cons"));
    if nanoda_is_here() {
        certificate.put_to_nanoda(&options()).unwrap().unwrap();
    }
}
