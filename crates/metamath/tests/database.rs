//! Opening databases: what they hold, and what is wrong with bad ones.

mod common;

use catamount_metamath::{Database, Error};
use common::{debian, toy};

#[test]
fn the_toy_is_understood_whole() {
    let database = toy();
    assert_eq!(database.unsupported(), []);
    assert_eq!(database.theorems().count(), 32);
    let syl = database.theorem("syl").unwrap();
    assert_eq!(database.statement(syl), "$e ( ph -> ps ) $e ( ps -> ch ) $p ( ph -> ch )");
    assert_eq!(database.assertion(syl).hypotheses(), 2);
}

#[test]
fn theorems_come_in_database_order_and_axioms_are_none() {
    let database = toy();
    assert!(database.find("a1i") < database.find("syl"));
    assert!(database.theorem("ax-1").unwrap_err().to_string().contains("axiom"));
    assert!(database.theorem("sly").unwrap_err().to_string().contains("no theorem named `sly`"));
}

#[test]
fn a_missing_file_is_named() {
    let error = Database::open("no/such/file.mm").unwrap_err();
    assert!(matches!(error, Error::Unreadable { .. }));
    assert!(error.to_string().contains("no/such/file.mm"), "{error}");
}

#[test]
fn a_database_cut_anywhere_is_an_error_or_a_smaller_database() {
    let text = std::fs::read(common::TOY).unwrap();
    let whole = toy().assertions().len();
    let mut refused = 0;
    for cut in (0..text.len()).step_by(97) {
        match Database::from_text("cut.mm", text[..cut].to_vec()) {
            Ok(part) => assert!(part.assertions().len() <= whole),
            Err(error) => {
                refused += 1;
                assert!(error.to_string().contains("cut.mm"), "{error}");
            }
        }
    }
    assert!(
        refused > 40,
        "most cuts fall inside a statement or a scope, yet only {refused} were refused"
    );
}

#[test]
fn a_wrong_proof_is_refused_with_its_place() {
    let text = String::from_utf8(std::fs::read(common::TOY).unwrap()).unwrap();
    let wrong = text.replace("( syl ) ABCEDF $.", "( syl ) ABCDEF $.");
    assert_ne!(text, wrong);
    let line = wrong.lines().position(|line| line.contains("syl2 $p")).unwrap() + 1;
    let error = Database::from_text("wrong.mm", wrong.into_bytes()).unwrap_err().to_string();
    assert!(error.contains(&format!("wrong.mm:{line}")), "{error}");
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let mut text = std::fs::read(common::TOY).unwrap();
    for at in [0, 500, 2000] {
        text[at] = 0xff;
        let error = Database::from_text("bytes.mm", text.clone()).unwrap_err().to_string();
        assert!(error.contains("bytes.mm"), "{error}");
    }
}

#[test]
fn an_include_that_is_missing_is_named() {
    let error = Database::from_text("outer.mm", b"$[ no-such-inner.mm $]".to_vec())
        .unwrap_err()
        .to_string();
    assert!(error.contains("no-such-inner.mm"), "{error}");
}

#[test]
fn an_empty_database_has_nothing_to_prove() {
    let database = Database::from_text("empty.mm", Vec::new()).unwrap();
    assert_eq!(database.assertions().len(), 0);
}

#[test]
fn quantum_logic_is_understood_whole() {
    let database = Database::open(debian("ql.mm")).unwrap();
    assert_eq!(database.unsupported(), []);
    assert_eq!(database.theorems().count(), 1138);
}

#[test]
fn statements_that_differ_in_names_only_share_a_key() {
    let database = toy();
    let key = |label| database.key(database.find(label).unwrap());
    assert_eq!(key("syl"), key("syl2"), "other names, and the hypotheses the other way round");
    let mut keys: Vec<u64> = database.theorems().map(|id| database.key(id)).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(key("dummies"), key("shared"));
    assert_eq!(keys.len(), database.theorems().count() - 2, "there is no other pair");
}

#[test]
fn a_declaration_that_comes_again_and_again_is_refused_within_seconds() {
    let began = std::time::Instant::now();
    let text = format!("$c {}$.", "a ".repeat(500_000));
    let error = Database::from_text("again.mm", text.into_bytes()).unwrap_err().to_string();
    assert!(error.contains("again.mm") && error.contains("`a` thousands of times"), "{error}");
    assert!(began.elapsed().as_secs() < 10, "{:?}", began.elapsed());
}
