//! What the kernel accepts and what it refuses.

mod common;

use catamount_metamath::{LONGEST_TACTIC, Metamath};
use catamount_search::{Checked, Environment, StateId, Verdict};
use common::{open, tactics, theorem, toy};

const ROOT: StateId = StateId(0);

fn apply(name: &str, tactic: &str) -> Verdict {
    open(&Metamath::new(toy()), name).apply(ROOT, tactic).unwrap()
}

fn reason(name: &str, tactic: &str) -> String {
    match apply(name, tactic) {
        Verdict::Rejected { reason } => reason,
        other => panic!("{tactic:?} should be rejected, not {other:?}"),
    }
}

fn text(name: &str, tactic: &str) -> String {
    match apply(name, tactic) {
        Verdict::Open { text, .. } => text,
        other => panic!("{tactic:?} should leave goals, not {other:?}"),
    }
}

#[test]
fn a_proof_is_found_step_by_step() {
    let mut session = open(&Metamath::new(toy()), "con3i");
    assert_eq!(session.root(), "$e ( ph -> ps ) $p ( -. ps -> -. ph )");
    let mut state = ROOT;
    let steps = [
        ("con4i", "$e ( ph -> ps ) $p ( -. -. ph -> -. -. ps )"),
        ("syl $ ps ph", "$e ( ph -> ps ) $p ( -. -. ph -> ph ) $p ( ph -> -. -. ps )"),
        ("notnotr", "$e ( ph -> ps ) $p ( ph -> -. -. ps )"),
        ("syl $ ps ps", "$e ( ph -> ps ) $p ( ps -> -. -. ps )"),
    ];
    for (tactic, expected) in steps {
        let Verdict::Open { state: next, text } = session.apply(state, tactic).unwrap() else {
            panic!("{tactic} failed")
        };
        assert_eq!(text, expected);
        state = next;
    }
    assert_eq!(session.apply(state, "notnot").unwrap(), Verdict::Proved);
    // Any state may be branched from again.
    assert_eq!(session.apply(state, "notnot").unwrap(), Verdict::Proved);
    assert!(matches!(session.apply(ROOT, "con4i").unwrap(), Verdict::Open { .. }));
}

#[test]
fn a_goal_that_is_open_already_is_not_opened_twice() {
    assert_eq!(
        text("shared", "mp2 $ ph ( ch -> ch ) $ ps ( ch -> ch )"),
        "$p ( ch -> ch ) $p ( ( ch -> ch ) -> ( ( ch -> ch ) -> ( ph -> ( ch -> ch ) ) ) )"
    );
}

#[test]
fn a_theorem_that_is_its_own_hypothesis_needs_no_tactic() {
    let environment = Metamath::new(toy());
    assert_eq!(open(&environment, "idi").root(), "$e ph");
    assert!(reason("idi", "ax-1").contains("nothing is left"));
    assert_eq!(environment.check(&theorem("idi"), &[]).unwrap(), Checked::proved(vec![]));
}

#[test]
fn only_earlier_assertions_may_be_used() {
    assert!(reason("syl", "syl $ ps ps").contains("before"));
    assert!(reason("syl", "syl2 $ ch ps").contains("before"));
    assert!(reason("syl", "nothing").contains("no assertion `nothing`"));
}

#[test]
fn terms_must_be_terms_of_the_right_kind() {
    for (tactic, expected) in [
        ("", "empty"),
        ("syl ps", "comes `$`"),
        ("syl", "needs a term for `ps`"),
        ("syl $", "without a variable"),
        ("syl $ ps", "do not end where a wff ends"),
        ("syl $ ps ( ph", "do not end where a wff ends"),
        ("syl $ ps ph ph", "goes on with `ph`"),
        ("syl $ ps x", "wff"),
        ("syl $ ps |-", "wff"),
        ("syl $ ps <->", "unknown symbol `<->`"),
        ("syl $ ph ps", "follows from the goal"),
        ("syl $ th ps", "no variable `th`"),
        ("syl $ ps ps $ ps ps", "twice"),
        ("syl $ ps ps $", "without a variable"),
        ("ax-1", "not an instance of the conclusion"),
        ("wi $ ph ph", "no assertion `wi`"),
        ("\u{fffd}\u{fffd}", "no assertion"),
    ] {
        let reason = reason("3syl", tactic);
        assert!(reason.contains(expected), "{tactic:?}: {reason}");
    }
}

#[test]
fn white_space_does_not_matter() {
    assert_eq!(text("3syl", "syl $ ps ch"), text("3syl", "  syl\t$  ps\nch "));
}

#[test]
fn distinct_variables_of_the_theorem_are_respected() {
    // ax-5 wants x not to occur in the formula; gen2 and con3i say nothing about x, ax5i does.
    assert!(matches!(apply("ax5i", "syl $ ps ps"), Verdict::Open { .. }));
    let environment = Metamath::new(toy());
    let proof = tactics(&["syl $ ps ps", "ax-5"]);
    assert!(matches!(environment.check(&theorem("ax5i"), &proof).unwrap(), Checked::Proved { .. }));
    let mut session = open(&environment, "gen2");
    let Verdict::Open { state, .. } = session.apply(ROOT, "ax-mp $ ph A. y ph").unwrap() else {
        panic!("ax-mp applies")
    };
    // The first goal is A. y ph; prove it, then the step that would need x distinct from ph.
    let Verdict::Open { state, text } = session.apply(state, "ax-gen").unwrap() else {
        panic!("ax-gen applies")
    };
    assert_eq!(text, "$e ph $p ( A. y ph -> A. x A. y ph )");
    let Verdict::Rejected { reason } = session.apply(state, "ax-5").unwrap() else {
        panic!("x is not distinct from ph")
    };
    assert!(reason.contains("distinct"), "{reason}");
}

#[test]
fn dummies_are_distinct_from_everything_but_themselves() {
    let environment = Metamath::new(toy());
    let with =
        |first: &str| tactics(&[first, "ax-6", "syl $ ps ( ps -> ps )", "a1i", "id", "ax-1"]);
    // x and z are no variables of this theorem, nor does its own scope hold a condition on them.
    let free = with("ax-mp $ ph -. A. x -. x = z");
    assert!(matches!(
        environment.check(&theorem("dummies"), &free).unwrap(),
        Checked::Proved { .. }
    ));
    let same = with("ax-mp $ ph -. A. x -. x = x");
    let Checked::Refused { reason } = environment.check(&theorem("dummies"), &same).unwrap() else {
        panic!("x is not distinct from x")
    };
    assert!(reason.starts_with("tactic 2: ") && reason.contains("distinct"), "{reason}");
}

#[test]
fn a_proof_that_runs_in_a_circle_is_cut_short() {
    // The goal comes back under itself and is proved there; the written proof must not refer to
    // itself.
    let proof = tactics(&[
        "ax-mp $ ph ( ps -> ( ps -> ps ) )",
        "ax-1",
        "a1i",
        "ax-mp $ ph ( ps -> ( ps -> ps ) )",
        "ax-1",
        "a1i",
        "a1i",
        "id",
    ]);
    let checked = Metamath::new(toy()).check(&theorem("dummies"), &proof).unwrap();
    assert!(matches!(checked, Checked::Proved { .. }), "{checked:?}");
}

#[test]
fn unfinished_and_overlong_proofs_are_refused() {
    let environment = Metamath::new(toy());
    let refused = |name: &str, proof: &[&str]| match environment
        .check(&theorem(name), &tactics(proof))
        .unwrap()
    {
        Checked::Refused { reason } => reason,
        proved => panic!("{proved:?}"),
    };
    assert!(refused("syl", &[]).contains("left open"));
    assert!(refused("syl", &["mpd $ ps ps", "a1i", "a1i"]).contains("nothing is left"));
    assert!(refused("none", &[]).contains("no theorem named"));
    assert!(refused("ax-1", &["ax-1"]).contains("axiom"));
}

#[test]
fn the_axioms_below_a_proof_are_reported() {
    let checked =
        Metamath::new(toy()).check(&theorem("a1d"), &tactics(&["syl $ ps ps", "ax-1"])).unwrap();
    assert_eq!(checked, Checked::proved(tactics(&["ax-mp", "ax-1", "ax-2"])));
}

#[test]
fn hostile_tactics_are_rejected() {
    assert!(reason("syl", &"x".repeat(1 << 20)).contains("bytes"));
    assert!(reason("syl", &"mpd $ ps ".repeat(1 << 17)).contains("bytes"));
    // As deep as a tactic may be: the parser and everything after it must get along without the
    // call stack.
    let deep = |opening: &str, closing: &str| {
        let levels = (LONGEST_TACTIC - 100) / (opening.len() + closing.len());
        format!("mpd $ ps {}ph{}", opening.repeat(levels), closing.repeat(levels))
    };
    for tactic in
        [deep("-. ", ""), deep("( ph -> ", " )"), deep("( ", " -> ph )"), deep("A. x ", "")]
    {
        assert!(tactic.len() <= LONGEST_TACTIC);
        match apply("syl", &tactic) {
            Verdict::Rejected { reason } => {
                assert!(reason.contains("larger") || reason.contains("long"), "{reason}")
            }
            Verdict::Open { text, .. } => assert!(text.len() > tactic.len()),
            Verdict::Proved => panic!("that proves nothing"),
        }
    }
    for tactic in [deep("( ", ""), deep("-. ", " )"), "$ ".repeat(30_000), "mpd $ ps ( ".to_owned()]
    {
        reason("syl", &tactic);
    }
}

#[test]
fn an_unknown_state_is_a_fault_not_a_verdict() {
    assert!(open(&Metamath::new(toy()), "syl").apply(StateId(7), "a1i").is_err());
    assert!(Metamath::new(toy()).open(&theorem("none")).is_err());
}
