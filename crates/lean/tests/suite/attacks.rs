//! Every attempt to cheat is refused, for the reason it should be; every honest proof is accepted.

use catamount_lean::{Claim, Ruling, RulingVerdict};
use serde::Deserialize;

use crate::setup::{lean, options};

#[derive(Deserialize)]
struct Attack {
    #[serde(flatten)]
    claim: Claim,
    /// Words that the refusal must hold.
    reason: String,
}

fn rule_all(lines: &str) -> Vec<Ruling> {
    let mut rulings = Vec::new();
    lean().rule_lines(lines.as_bytes(), |r| rulings.push(r.clone())).unwrap();
    rulings
}

fn all_refused(lines: &str) {
    let attacks: Vec<Attack> = lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect();
    let rulings = rule_all(lines);
    assert_eq!(rulings.len(), attacks.len());
    let mut wrong = Vec::new();
    for (attack, ruling) in attacks.iter().zip(&rulings) {
        assert_eq!(attack.claim.name, ruling.name, "rulings come in the order of the claims");
        if ruling.verdict != RulingVerdict::Refused
            || ruling.reason.is_empty()
            || !ruling.reason.contains(&attack.reason)
        {
            wrong.push(ruling);
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn attacks_through_the_header_are_refused() {
    all_refused(include_str!("../../attacks/header.jsonl"));
}

#[test]
fn attacks_through_the_statement_are_refused() {
    all_refused(include_str!("../../attacks/statement.jsonl"));
}

#[test]
fn attacks_through_the_tactics_are_refused() {
    all_refused(include_str!("../../attacks/tactics.jsonl"));
}

#[test]
fn honest_proofs_are_accepted() {
    let rulings = rule_all(include_str!("../../attacks/honest.jsonl"));
    assert_eq!(rulings.len(), include_str!("../../attacks/honest.jsonl").lines().count());
    let wrong: Vec<_> = rulings.iter().filter(|r| r.verdict != RulingVerdict::Proved).collect();
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn a_line_that_is_not_a_claim_is_refused_and_the_rest_goes_on() {
    let good = r#"{"name":"good","header":"","statement":"theorem t : 1 = 1","tactics":["rfl"]}"#;
    let mut lines = b"not json\n\n{\"name\": 1}\n\xff\xfe\n".to_vec();
    lines.extend_from_slice(good.as_bytes());
    let mut rulings = Vec::new();
    lean().rule_lines(&lines, |r| rulings.push(r.clone())).unwrap();
    let verdicts: Vec<_> = rulings.iter().map(|r| r.verdict).collect();
    use RulingVerdict::{Proved, Refused};
    assert_eq!(verdicts, [Refused, Refused, Refused, Proved]);
    assert!(rulings[1].reason.contains("line 2"), "{}", rulings[1].reason);
}

/// The other tests let one process rule on many claims. By default each claim gets its own.
#[test]
fn a_claim_in_a_process_of_its_own_is_ruled_on_alike() {
    let options = catamount_lean::Options { checks_per_header: 1, ..options() };
    let fresh = catamount_lean::Lean::new(options).unwrap();
    let honest = include_str!("../../attacks/honest.jsonl").lines().next().unwrap();
    let attack = include_str!("../../attacks/header.jsonl").lines().next().unwrap();
    let mut verdicts = Vec::new();
    fresh
        .rule_lines(format!("{honest}\n{attack}").as_bytes(), |r| verdicts.push(r.verdict))
        .unwrap();
    assert_eq!(verdicts, [RulingVerdict::Proved, RulingVerdict::Refused]);
}
