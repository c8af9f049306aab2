//! Random tactics against the parser and the kernel.

mod common;

use std::cell::Cell;
use std::sync::LazyLock;

use catamount_metamath::Metamath;
use catamount_search::{Checked, Environment, StateId, Verdict};
use common::{open, theorem, toy};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};

static TOY: LazyLock<Metamath> = LazyLock::new(|| Metamath::new(toy()));

const THEOREMS: [&str; 8] = ["idi", "a1i", "syl", "id", "pm2.18", "ax5i", "dummies", "shared"];

/// Words that tactics are made of, and some that they are not.
fn word() -> impl Strategy<Value = String> {
    const KNOWN: [&str; 38] = [
        "ax-mp", "ax-1", "ax-2", "ax-3", "ax-gen", "ax-5", "ax-6", "a1i", "a2i", "mpd", "syl",
        "id", "idi", "com12", "wi", "wnn", "$", "$", "$", "ph", "ps", "ch", "th", "x", "y", "z",
        "(", "(", ")", ")", "->", "->", "-.", "A.", "=", "|-", "wff", "setvar",
    ];
    prop_oneof![20 => prop::sample::select(&KNOWN[..]).prop_map(str::to_owned), 1 => "\\PC{0,6}"]
}

/// A well-formed formula as text.
fn formula() -> impl Strategy<Value = String> {
    let variable = || prop::sample::select(&["x", "y", "z"][..]);
    let atom = prop_oneof![
        prop::sample::select(&["ph", "ps", "ch", "th"][..]).prop_map(str::to_owned),
        (variable(), variable()).prop_map(|(a, b)| format!("{a} = {b}")),
    ];
    atom.prop_recursive(24, 200, 2, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|a| format!("-. {a}")),
            (variable(), inner.clone()).prop_map(|(x, a)| format!("A. {x} {a}")),
            (inner.clone(), inner).prop_map(|(a, b)| format!("( {a} -> {b} )")),
        ]
    })
}

/// A tactic that often applies.
fn tactic() -> impl Strategy<Value = String> {
    let plain = prop::sample::select(
        &["ax-1", "ax-2", "ax-3", "ax-gen", "ax-5", "ax-6", "a1i", "a2i", "id", "com12", "pm2.21"]
            [..],
    );
    let given = prop::sample::select(&["ax-mp $ ph", "mpd $ ps", "syl $ ps"][..]);
    let short = prop::sample::select(
        &["ph", "ps", "ch", "( ph -> ph )", "-. A. x -. x = y", "A. y ph", "( ps -> ps )"][..],
    );
    prop_oneof![3 => plain.prop_map(str::to_owned),
        2 => (given, short).prop_map(|(tactic, term)| format!("{tactic} {term}"))]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None,
        ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_are_judged(
        name in prop::sample::select(&THEOREMS[..]),
        bytes in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let text = String::from_utf8_lossy(&bytes);
        prop_assert!(open(&TOY, name).apply(StateId(0), &text).is_ok());
    }

    #[test]
    fn any_words_are_judged(
        name in prop::sample::select(&THEOREMS[..]), words in prop::collection::vec(word(), 0..24),
    ) {
        prop_assert!(open(&TOY, name).apply(StateId(0), &words.join(" ")).is_ok());
    }

    #[test]
    fn a_formula_reads_as_it_prints(formula in formula()) {
        let mut session = open(&TOY, "syl");
        let verdict = session.apply(StateId(0), &format!("ax-mp $ ph {formula}")).unwrap();
        let hypotheses = "$e ( ph -> ps ) $e ( ps -> ch )";
        let second = format!("( {formula} -> ( ph -> ch ) )");
        // The formula may by chance be a hypothesis, which is not opened.
        let given = hypotheses.split("$e ").any(|h| h.trim() == formula);
        let first = if given { String::new() } else { format!(" $p {formula}") };
        let expected = format!("{hypotheses}{first} $p {second}");
        prop_assert_eq!(verdict, Verdict::Open { state: StateId(1), text: expected });
    }

    #[test]
    fn a_formula_with_a_symbol_too_few_or_too_many_is_none(
        formula in formula(), at in any::<prop::sample::Index>(), extra in any::<bool>(),
    ) {
        let mut symbols: Vec<&str> = formula.split(' ').collect();
        let at = at.index(symbols.len());
        // A negation can be dropped or doubled and leave a formula; nothing else can.
        prop_assume!(symbols[at] != "-.");
        if extra { symbols.insert(at, symbols[at]) } else { _ = symbols.remove(at) }
        let damaged = symbols.join(" ");
        let verdict = open(&TOY, "syl").apply(StateId(0), &format!("ax-mp $ ph \
         {damaged}")).unwrap();
        prop_assert!(matches!(verdict, Verdict::Rejected { .. }), "{} became \
         {:?}", damaged, verdict);
    }
}

/// Whatever the kernel calls proved, metamath-rs calls proved. The walks are the same on every run,
/// so that it is known that they end in proofs often enough to mean something.
#[test]
fn the_kernel_never_claims_too_much() {
    let config =
        ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() };
    let mut runner =
        TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha));
    let names =
        ["a1i", "syl", "id", "imim2i", "pm2.21", "ax5i", "a1eq", "dummies", "pm2.43i", "shared"];
    let walks = (prop::sample::select(names.to_vec()), prop::collection::vec(tactic(), 1..600));
    let proofs = Cell::new(0);
    let property = |(name, tries): (&str, Vec<String>)| {
        let mut session = open(&TOY, name);
        let (mut state, mut proof) = (StateId(0), Vec::new());
        for (count, tactic) in tries.into_iter().enumerate() {
            // A walk may have gone where nothing leads on.
            if count % 20 == 0 {
                (state, proof) = (StateId(0), Vec::new());
            }
            match session.apply(state, &tactic).unwrap() {
                Verdict::Rejected { .. } => {}
                Verdict::Open { state: next, .. } => {
                    state = next;
                    proof.push(tactic);
                }
                Verdict::Proved => {
                    proof.push(tactic);
                    proofs.set(proofs.get() + 1);
                    let checked = TOY.check(&theorem(name), &proof).unwrap();
                    prop_assert!(
                        matches!(checked, Checked::Proved { .. }),
                        "{:?} for {:?}",
                        checked,
                        proof
                    );
                    (state, proof) = (StateId(0), Vec::new());
                }
            }
        }
        Ok(())
    };
    runner.run(&walks, property).unwrap();
    assert!(proofs.get() > 100, "only {} walks ended in a proof", proofs.get());
}
