//! What a verdict rests on: nothing unproved, nothing but the axioms it names, and the statement
//! that the database makes.

mod common;

use std::time::{Duration, Instant};

use catamount_metamath::{Database, Error, Extraction, Metamath};
use catamount_search::{Checked, Environment};
use common::{metamath, tactics, theorem, toy};

/// The toy with a lemma that says everything and has no proof, and a theorem that uses it.
const UNPROVED: &str = "
bad $p |- ph $= ? $.
${
  half.1 $e |- ( ph -> ps ) $.
  half $p |- ps $= ( ax-mp ) AB?CD $.
$}
wrong $p |- ( ph -> ps ) $= ( wi bad ) ABCD $.
fine $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) ABC $.
goal $p |- ( ph -> ps ) $= ? $.
";

fn with(more: &str) -> Database {
    let mut text = std::fs::read(common::TOY).unwrap();
    text.extend_from_slice(more.as_bytes());
    Database::from_text("more.mm", text).unwrap()
}

fn refusal(environment: &Metamath, name: &str, proof: &[&str]) -> String {
    match environment.check(&theorem(name), &tactics(proof)).unwrap() {
        Checked::Refused { reason } => reason,
        proved => panic!("{name} by {proof:?}: {proved:?}"),
    }
}

#[test]
fn an_unproved_lemma_proves_nothing() {
    let environment = Metamath::new(with(UNPROVED));
    for (name, proof, culprit) in [
        ("goal", &["bad"][..], "bad"),
        ("wrong", &["bad"], "bad"),
        // One that is proved, but from the lemma; and one whose proof has a hole.
        ("goal", &["wrong"], "bad"),
        ("goal", &["half $ ph ( ph -> ph )", "wrong"], "bad"),
    ] {
        let reason = refusal(&environment, name, proof);
        assert!(reason.contains(&format!("rests on `{culprit}`")), "{reason}");
    }
    let sound = environment.check(&theorem("fine"), &tactics(&["ax-1"])).unwrap();
    assert_eq!(sound, Checked::proved(tactics(&["ax-1"])));
    // A theorem without a proof may still be proved.
    let own = Metamath::new(with("todo $p |- ( ph -> ( ps -> ph ) ) $= ? $."));
    let found = own.check(&theorem("todo"), &tactics(&["ax-1"])).unwrap();
    assert_eq!(found, Checked::proved(tactics(&["ax-1"])));
}

#[test]
fn whoever_allows_unproved_lemmas_sees_them_in_the_verdict() {
    let environment = Metamath::new(with(UNPROVED).allowing_unproved(true));
    assert!(environment.describe().contains("unproved ones allowed"));
    let checked = environment.check(&theorem("goal"), &tactics(&["wrong"])).unwrap();
    assert_eq!(checked, Checked::proved(tactics(&["bad (without a proof)"])));
}

#[test]
fn an_unproved_piece_of_syntax_counts_too() {
    let database = "any $p wff ph ps $= ? $.
        odd $p |- ( ph -> ( ps -> ph ) ) $= ( any ax-1 ) ABD $.
        use $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) ABC $.";
    // The proof of `odd` names the syntax it does not need; its letters are those of `use`.
    let environment = Metamath::new(with(database));
    assert!(refusal(&environment, "use", &["odd"]).contains("rests on `any`"));
}

#[test]
fn traces_and_exports_leave_out_what_rests_on_it() {
    let database = with(UNPROVED);
    let mut names = Vec::new();
    let report =
        database.extract(&Extraction::default(), |trace, _| names.push(trace.theorem.name));
    assert!(names.contains(&"fine".to_owned()) && !names.contains(&"wrong".to_owned()));
    let lost = report.remainder.iter().find(|(label, _)| label == "wrong").unwrap();
    assert!(lost.1.contains("rests on `bad`"), "{}", lost.1);
    let mut out = Vec::new();
    let error = database.export(&[("goal", tactics(&["bad"]))], &mut out).unwrap_err();
    assert!(matches!(error, Error::NotAProof { .. }) && out.is_empty(), "{error}");
}

#[test]
fn an_export_names_the_axioms_of_every_proof() {
    let mut out = Vec::new();
    toy().export(&[("a1d", tactics(&["syl $ ps ps", "ax-1"]))], &mut out).unwrap();
    let text = String::from_utf8(out.clone()).unwrap();
    assert!(text.contains("   a1d: ax-mp ax-1 ax-2\n"), "{}", &text[text.len() - 200..]);
    assert_eq!(metamath(&out, "axioms"), Ok(()));
}

#[test]
fn a_statement_must_be_the_databases() {
    let environment = Metamath::new(toy());
    let mut claim = theorem("a1d");
    let proof = tactics(&["syl $ ps ps", "ax-1"]);
    claim.statement = "$e ( ph -> ps )\n  $p ( ph -> ( ch -> ps ) )".to_owned();
    assert!(matches!(environment.check(&claim, &proof).unwrap(), Checked::Proved { .. }));
    assert!(environment.open(&claim).is_ok());
    for other in ["$p ph", "$p ( ph -> ( ch -> ps ) )", "$e ( ph -> ps ) $p ( ph -> ( ps -> ps ) )"]
    {
        claim.statement = other.to_owned();
        let Checked::Refused { reason } = environment.check(&claim, &proof).unwrap() else {
            panic!("{other} is not a1d")
        };
        assert!(reason.contains("the database states `a1d` as"), "{reason}");
        let fault = environment.open(&claim).err().unwrap();
        assert!(fault.0.contains("the database states `a1d` as"), "{fault}");
    }
}

#[test]
fn nested_comments_are_refused_as_metamath_refuses_them() {
    for comment in ["$( outer $( inner $) outer $)", "$( a $( b $)", "$( a $)b $)"] {
        let text = format!("{comment}\n{}", std::fs::read_to_string(common::TOY).unwrap());
        let theirs = metamath(text.as_bytes(), "nested");
        let ours = Database::from_text("nested.mm", text.into_bytes());
        assert_eq!(ours.is_ok(), theirs.is_ok(), "{comment}: {theirs:?}");
    }
}

#[test]
fn a_file_of_one_long_line_is_refused_at_once() {
    let words: String = (0..400_000).map(|i| format!("{{\"x\":{i}}} ")).collect();
    let began = Instant::now();
    let error = Database::from_text("wrong.json", words.into_bytes()).unwrap_err().to_string();
    assert!(began.elapsed() < Duration::from_secs(10), "{:?}", began.elapsed());
    assert!(error.contains("wrong.json:1:1") && error.len() < 5000, "{error}");
}

/// A variable declared with the typecode of assertions, or with any other constant, is odd, but
/// `metamath` accepts it where no proof uses it; every theorem must stay a theorem.
#[test]
fn a_variable_of_another_typecode_costs_no_theorem() {
    let text = std::fs::read_to_string(common::TOY).unwrap();
    let all = toy().extract(&Extraction::default(), |_, _| {});
    for typecode in ["|-", "wff", "setvar", "(", "->"] {
        let odd = format!("wph $f wff ph $.\n$v odd $. vodd $f {typecode} odd $.");
        let changed = text.replacen("wph $f wff ph $.", &odd, 1);
        assert_ne!(changed, text);
        assert_eq!(metamath(changed.as_bytes(), "typecode"), Ok(()));
        let database = Database::from_text("typecode.mm", changed.into_bytes()).unwrap();
        let report = database.extract(&Extraction::default(), |_, _| {});
        assert_eq!(report.remainder, [], "{typecode}");
        assert_eq!((report.traces, report.steps), (all.traces, all.steps), "{typecode}");
    }
}

/// `metamath` knows no grammar and accepts proofs of statements that have no parse. The kernel
/// cannot replay them; that is no reason to call them refused.
#[test]
fn a_theorem_beyond_the_grammar_gets_no_verdict() {
    let text = "$c ( ) -> wff |- $. $v ph ps $.
        wph $f |- ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
        ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
        a1 $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.\n";
    assert_eq!(metamath(text.as_bytes(), "beyond"), Ok(()));
    let prover = Metamath::new(Database::from_text("beyond.mm", text.into()).unwrap());
    let fault = prover.check(&theorem("a1"), &["ax-1".to_owned()]).unwrap_err().to_string();
    assert!(fault.contains("no verdict on `a1`") && fault.contains("does not parse"), "{fault}");
}

/// Where metamath-rs reads past a mistake in a proof, the database is refused all the same, as
/// `metamath` refuses it.
#[test]
fn proofs_are_held_to_the_letter_as_metamath_holds_them() {
    let head = "$c ( ) -> wff |- $. $v ph ps $.
        wph $f wff ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
        ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
        ${ mp.1 $e |- ph $. mp.2 $e |- ( ph -> ps ) $. ax-mp $a |- ps $. $}\n";
    let cases = [
        // Unfinished, and fine as far as it goes.
        ("a $p |- ph $= ? $.", true),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= wph ? ax-1 $.", true),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) A?C $.", true),
        ("a $p |- ph $= ps wps ? ax-1 $.", false),
        // Too much or too little on the stack.
        ("a $p |- ph $= wph ? $.", false),
        ("a $p |- ph $= ? ax-mp $.", false),
        ("a $p |- ph $= ( ax-mp ) AA? $.", false),
        // What is known does not fit.
        ("a $p |- ( ps -> ph ) $= wph wps wph wi ? wph wps ax-1 ax-mp $.", true),
        ("a $p |- ps $= wph wps ? wph wph ax-1 ax-mp $.", false),
        // Labels that do not hold, letters that are none, and what a compressed proof may not list
        // or save.
        ("a $p |- ph $= ? a $.", false),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) AaBC $.", false),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= ( wph ax-1 ) CBD $.", false),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) AZBC $.", false),
        ("a $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) ABCZ $.", true),
        ("${ $d ph $. a $p |- ( ph -> ( ps -> ph ) ) $= ( ax-1 ) ABC $. $}", false),
    ];
    for (number, (theorem, sound)) in cases.into_iter().enumerate() {
        let text = format!("{head}{theorem}\n");
        // A proof that is not finished is a warning, which does not count.
        let said = metamath(text.as_bytes(), &format!("letter{number}")).err().unwrap_or_default();
        let ours = Database::from_text("letter.mm", text.into_bytes());
        assert_eq!(!said.contains("?Error"), sound, "{theorem}: {said}");
        assert_eq!(ours.is_ok(), sound, "{theorem}: {:?}", ours.err());
    }
}
