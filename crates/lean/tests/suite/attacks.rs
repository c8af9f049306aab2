//! Every attempt to cheat is refused, for the reason it should be; every honest proof is accepted.

use catamount_lean::{Claim, Ruling, RulingVerdict};
use catamount_search::{Checked, Environment, StateId, Verdict};
use catamount_traces::Theorem;
use serde::Deserialize;

use crate::setup::{lean, options};

const HEADER: &str = include_str!("../../attacks/header.jsonl");
const STATEMENT: &str = include_str!("../../attacks/statement.jsonl");
const TACTICS: &str = include_str!("../../attacks/tactics.jsonl");
const FORGING: &str = include_str!("../../attacks/forging.jsonl");
const TERMS: &str = include_str!("../../attacks/terms.jsonl");
const HONEST: &str = include_str!("../../attacks/honest.jsonl");

#[derive(Deserialize)]
struct Attack {
    #[serde(flatten)]
    claim: Claim,
    /// Words that the refusal must hold.
    #[serde(default)]
    reason: String,
}

/// Terms for the judge, from a prover that is wholly in somebody's hands.
#[derive(Deserialize)]
struct Forged {
    name: String,
    statement: String,
    terms: String,
    reason: String,
}

fn read<T: for<'a> Deserialize<'a>>(lines: &str) -> Vec<T> {
    lines.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

fn rule_all(lines: &str) -> Vec<Ruling> {
    let mut rulings = Vec::new();
    lean().rule_lines(lines.as_bytes(), |r| rulings.push(r.clone())).unwrap();
    rulings
}

/// How refusals begin; anything else is a fault that happens to prevent an acceptance.
const KINDS: [&str; 12] = [
    "axioms: ",
    "challenge: ",
    "elaboration: ",
    "header: ",
    "kernel: ",
    "limit: ",
    "parse: ",
    "policy: ",
    "request: ",
    "statement: ",
    "terms: ",
    "unsound: ",
];

/// How a ruling begins that is none, and no refusal.
const NO_VERDICT: &str = "no verdict: ";

/// The reasons of refusal, by claim; none for one that is accepted.
type Reasons = Vec<(String, Option<String>)>;

fn by_check(lines: &str) -> Reasons {
    let reason = |r: Ruling| match r.verdict {
        RulingVerdict::Proved => (r.name, None),
        RulingVerdict::Refused => (r.name, Some(r.reason)),
        RulingVerdict::Error => (r.name, Some(format!("{NO_VERDICT}{}", r.reason))),
    };
    rule_all(lines).into_iter().map(reason).collect()
}

/// As a search meets them: tactic after tactic in a session, and a check of what looks finished.
fn by_search(attacks: &[Attack]) -> Reasons {
    let refusal = |claim: &Claim| {
        let theorem = Theorem {
            name: claim.name.clone(),
            statement: claim.statement.clone(),
            ..Theorem::default()
        };
        let mut session = lean().open(&theorem).expect("header and statement are the user's own");
        let mut state = StateId(0);
        for tactic in &claim.tactics {
            match session.apply(state, tactic).unwrap() {
                Verdict::Open { state: next, .. } => state = next,
                Verdict::Rejected { reason } => return Some(reason),
                Verdict::Proved => {
                    return match lean().check(&theorem, &claim.tactics).unwrap() {
                        Checked::Proved { .. } => None,
                        Checked::Refused { reason } => Some(reason),
                    };
                }
            }
        }
        Some("unsound: goals are left".to_owned())
    };
    attacks.iter().map(|a| (a.claim.name.clone(), refusal(&a.claim))).collect()
}

fn by_judge(attacks: &[Forged]) -> Reasons {
    let refusal = |attack: &Forged| {
        let theorem = Theorem {
            name: attack.name.clone(),
            statement: attack.statement.clone(),
            ..Theorem::default()
        };
        match lean().judge(&theorem, &attack.terms).unwrap() {
            Checked::Proved { .. } => None,
            Checked::Refused { reason } => Some(reason),
        }
    };
    attacks.iter().map(|a| (a.name.clone(), refusal(a))).collect()
}

/// One line of the table (list, route, cases, refused, accepted); gives back what is not as it
/// should be.
fn row(list: &str, route: &str, found: &Reasons, expected: &[Option<String>]) -> Vec<String> {
    assert_eq!(found.len(), expected.len(), "{list} through {route}");
    let refused = found.iter().filter(|(_, why)| why.is_some()).count();
    println!(
        "| {list:<10} | {route:<7} | {:>5} | {refused:>7} | {:>8} |",
        found.len(),
        found.len() - refused
    );
    let right = |why: &Option<String>, expected: &Option<String>| match (why, expected) {
        (Some(why), Some(words)) => {
            KINDS.iter().any(|kind| why.starts_with(kind)) && why.contains(words.as_str())
        }
        (why, expected) => why.is_none() && expected.is_none(),
    };
    found
        .iter()
        .zip(expected)
        .filter(|((_, why), expected)| !right(why, expected))
        .map(|((name, why), expected)| {
            format!("{list} through {route}: {name}: {why:?}, expected {expected:?}")
        })
        .inspect(|wrong| println!("{wrong}"))
        .collect()
}

/// A list of claims through `check`, and where that is asked for those without a header through a
/// search: there header and statement are the user's own.
fn refused(list: &str, lines: &str, searched: bool) {
    let attacks: Vec<Attack> = read(lines);
    let words: Vec<_> = attacks.iter().map(|a| Some(a.reason.clone())).collect();
    let mut wrong = row(list, "check", &by_check(lines), &words);
    if searched {
        let of_tactics: Vec<Attack> = attacks
            .into_iter()
            .filter(|a| a.claim.header.is_empty() && !a.claim.statement.contains(":="))
            .collect();
        let words: Vec<_> = of_tactics.iter().map(|a| Some(a.reason.clone())).collect();
        wrong.extend(row(list, "search", &by_search(&of_tactics), &words));
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn terms_that_cheat_are_refused() {
    let forged: Vec<Forged> = read(TERMS);
    let reasons: Vec<_> = forged.iter().map(|a| Some(a.reason.clone())).collect();
    let wrong = row("terms", "judge", &by_judge(&forged), &reasons);
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn tactics_that_cheat_are_refused() {
    refused("tactics", TACTICS, true);
}

#[test]
fn tactics_that_forge_answers_are_refused() {
    refused("forging", FORGING, true);
}

/// The configurations that Lean 4.28 evaluates as code, each by a tactic that takes it: found among
/// the package's symbols as `elab...Config`, the callers of `Meta.evalExpr'`.
const CONFIGURED: [(&str, &str); 19] = [
    ("elabSimpConfigCore", "simp"),
    ("elabSimpConfigCtxCore", "simp_all"),
    ("elabDSimpConfigCore", "dsimp"),
    ("elabRewriteConfig", "rw"),
    ("elabDecideConfig", "decide"),
    ("elabOmegaConfig", "omega"),
    ("elabGrindConfig", "grind"),
    ("elabGrindConfigInteractive", "grind =>"),
    ("elabCutsatConfig", "cutsat"),
    ("elabGrobnerConfig", "grobner"),
    ("elabTryConfig", "try?"),
    ("elabLibrarySearchConfig", "exact?"),
    ("SolveByElim.elabConfig", "solve_by_elim"),
    ("elabApplyRulesConfig", "apply_rules"),
    ("elabNormCastConfig", "norm_cast"),
    ("elabExtractLetsConfig", "extract_lets"),
    ("elabLiftLetsConfig", "lift_lets"),
    ("elabBVDecideConfig", "bv_normalize"),
    ("Do.elabConfig", "mvcgen"),
];

/// Not by a parser that knows no such configuration, which would show nothing.
#[test]
fn every_configuration_that_lean_evaluates_has_its_attack() {
    let attacks: Vec<Attack> = read(FORGING);
    for (elaborator, tactic) in CONFIGURED {
        let tries = |a: &Attack| {
            let rest = a.claim.tactics[0].strip_prefix(tactic);
            rest.is_some_and(|rest| rest.starts_with(' ')) && a.reason == "configuration is code"
        };
        assert!(attacks.iter().any(tries), "{elaborator}: no attack by `{tactic}`");
    }
}

#[test]
fn statements_that_cheat_are_refused() {
    refused("statement", STATEMENT, false);
}

#[test]
fn headers_that_cheat_are_refused() {
    refused("header", HEADER, false);
}

#[test]
fn honest_claims_are_accepted() {
    let honest: Vec<Attack> = read(HONEST);
    let mut wrong = row("honest", "check", &by_check(HONEST), &vec![None; honest.len()]);
    let plain: Vec<Attack> = honest.into_iter().filter(|a| a.claim.header.is_empty()).collect();
    wrong.extend(row("honest", "search", &by_search(&plain), &vec![None; plain.len()]));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// What a claim assumes by a class of its own is said with the ruling.
#[test]
fn a_closed_class_is_reported_as_a_hypothesis() {
    let name = "a closed class of one's own, not used";
    let honest: Vec<Attack> = read(HONEST);
    let claim = honest.into_iter().find(|a| a.claim.name == name).unwrap().claim;
    let ruling = lean().rule(&claim).unwrap();
    assert_eq!(ruling.verdict, RulingVerdict::Proved, "{ruling:?}");
    assert_eq!(ruling.hypotheses, ["C"], "{ruling:?}");
    let without = Claim { header: String::new(), ..claim };
    assert!(lean().rule(&without).unwrap().hypotheses.is_empty());
}

/// What the README says of these lists is what they hold.
#[test]
fn the_readme_counts_the_lists() {
    let readme: String = include_str!("../../README.md").split_whitespace().collect();
    let count = |lines: &str| lines.lines().count();
    let lists = [
        ("header", HEADER),
        ("statement", STATEMENT),
        ("tactics", TACTICS),
        ("forging", FORGING),
        ("terms", TERMS),
    ];
    let attacks: usize = lists.iter().map(|(_, lines)| count(lines)).sum();
    let (terms, honest) = (count(TERMS), count(HONEST));
    let said = format!(
        "`attacks/`: {attacks} attempts to cheat, {terms} of them terms for the judge, \
         and {honest} honest claims."
    );
    assert!(readme.contains(&said.replace(' ', "")), "{said}");
    for (list, lines) in lists {
        let route = if list == "terms" { "judge" } else { "check" };
        let row = format!("|{list}|{route}|{0}|{0}|0|", count(lines));
        assert!(readme.contains(&row), "{row}");
    }
    assert!(readme.contains(&format!("|honest|check|{honest}|0|{honest}|")));
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
    let honest = HONEST.lines().next().unwrap();
    let attack = HEADER.lines().next().unwrap();
    let mut verdicts = Vec::new();
    fresh
        .rule_lines(format!("{honest}\n{attack}").as_bytes(), |r| verdicts.push(r.verdict))
        .unwrap();
    assert_eq!(verdicts, [RulingVerdict::Proved, RulingVerdict::Refused]);
}
