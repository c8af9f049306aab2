//! The exact calculation against calculations that share nothing with it: by hand, by brute force,
//! by simulation, by the driver's interfaces.

use catamount_search::{
    Answer, Ask, Checked, Environment, Finish, Policy, Reached, Request, Search, StrategyKind,
    Stream, Verdict,
};
use catamount_theory::{
    Branch, Leads, ProofTree, TabularPolicy, by_differences, deployed, estimate, exact_success,
    simulation,
};
use proptest::prelude::*;

fn mixed() -> ProofTree {
    ProofTree::chain(&[0.4, 0.3])
        .unwrap()
        .deviate(1, 0.3, &Branch::Trap { depth: 2, valid: 0.6 })
        .unwrap()
        .deviate(1, 0.1, &Branch::Proof(vec![0.5]))
        .unwrap()
        .deviate(2, 0.2, &Branch::Proof(vec![]))
        .unwrap()
        .deviate(2, 0.1, &Branch::Absorbing)
        .unwrap()
}

/// eq:exact_search_recurrence by plain recursion: clone, branch, no merging of anything.
fn brute(tree: &ProofTree, search: &Search, states: &[usize], pending: &[u32]) -> f64 {
    let Some((&node, rest)) = pending.split_first() else {
        let mut total = 0.0;
        let mut ways = 1;
        let mut way = 0;
        while way < ways {
            let mut search = search.clone();
            let mut chance = 1.0;
            let asked = search.ask(&mut |weights| {
                ways = weights.len();
                chance = weights[way] / weights.iter().sum::<f64>();
                way
            });
            if let Ask::Expand(wanted) = asked {
                let pending: Vec<u32> =
                    wanted.iter().flat_map(|e| vec![e.node.0; e.samples]).collect();
                total += chance * brute(tree, &search, states, &pending);
            }
            way += 1;
        }
        return total;
    };
    let mut total = 0.0;
    for (name, p, leads) in tree.tactics(states[node as usize]) {
        let mut search = search.clone();
        let mut states = states.to_vec();
        let answer = match leads {
            Leads::Proved => {
                total += p;
                continue;
            }
            Leads::Open(_) => Answer::Open,
            Leads::Rejected => Answer::Rejected,
        };
        let reached = search.tell(catamount_search::NodeId(node), name, p.ln(), answer);
        if let (Reached::Open(child), Leads::Open(state)) = (reached, leads)
            && child.0 as usize == states.len()
        {
            states.push(state);
        }
        total += p * brute(tree, &search, &states, rest);
    }
    total
}

#[test]
fn merging_configurations_changes_nothing() {
    let tree = mixed();
    for strategy in StrategyKind::ALL {
        let merged = exact_success(&tree, &simulation(strategy, 7).unwrap()).unwrap();
        for budget in 1..=7 {
            let search = simulation(strategy, budget).unwrap().search();
            let plain = brute(&tree, &search, &[0], &[]);
            let found = merged[budget as usize - 1];
            assert!((plain - found).abs() < 1e-13, "{strategy} at {budget}: {plain}, {found}");
        }
    }
}

#[test]
fn one_step_by_hand() {
    // Two tries at p = 0.3, with a fifth of the misses an alternative proof.
    let tree = ProofTree::chain(&[0.3]).unwrap().deviate(1, 0.2, &Branch::Proof(vec![])).unwrap();
    let any: f64 = 0.3 + 0.7 * 0.2;
    for strategy in StrategyKind::ALL {
        let found = deployed(&tree, &simulation(strategy, 2).unwrap()).unwrap();
        assert!((found.success[1] - (1.0 - (1.0 - any).powi(2))).abs() < 1e-14, "{strategy}");
        // d any / d p = 1 - 0.2.
        let weight = 0.3 * 2.0 * (1.0 - any) * 0.8 / found.success[1];
        assert!(
            (found.weights[0][1] - weight).abs() < 1e-10,
            "{strategy}: {} {weight}",
            found.weights[0][1]
        );
    }
}

#[test]
fn carried_derivatives_are_differences() {
    let tree = mixed();
    for strategy in [StrategyKind::Pass, StrategyKind::Bfs, StrategyKind::Dfs, StrategyKind::Rdfs] {
        let carried = deployed(&tree, &simulation(strategy, 10).unwrap()).unwrap();
        let differences = by_differences(&tree, &simulation(strategy, 10).unwrap()).unwrap();
        assert!(differences.doubt < 1e-8, "{strategy}: {}", differences.doubt);
        for (a, b) in carried.weights.iter().flatten().zip(differences.weights.iter().flatten()) {
            assert!((a - b).abs() < 1e-9 || (a.is_nan() && b.is_nan()), "{strategy}: {a} {b}");
        }
    }
}

#[test]
fn estimates_agree_with_exact_values() {
    let tree = mixed();
    let budget = 12;
    for (seed, strategy) in StrategyKind::ALL.into_iter().enumerate() {
        let deployment = simulation(strategy, budget).unwrap();
        let exact = deployed(&tree, &deployment).unwrap();
        let seen = estimate(&tree, &deployment, 40_000, seed as u64);
        let last = budget as usize - 1;
        let off = |measured: catamount_theory::Measured, truth: f64| {
            (measured.value - truth).abs() / measured.error
        };
        assert!(seen.success.error < 3e-3);
        assert!(
            off(seen.success, exact.success[last]) < 4.5,
            "{strategy}: {:?} {}",
            seen.success,
            exact.success[last]
        );
        let Some((derivatives, weights)) = seen.derivatives.zip(seen.weights) else {
            assert!(strategy.choices_move());
            continue;
        };
        for t in 0..tree.length() {
            let truth = exact.weights[t][last];
            assert!(
                off(weights[t], truth) < 4.5,
                "{strategy} w_{}: {:?} {truth}",
                t + 1,
                weights[t]
            );
            assert!(
                off(derivatives[t], truth * exact.success[last]) < 4.5,
                "{strategy} dJ_{}",
                t + 1
            );
            assert!(weights[t].error < 0.02, "{strategy}: {:?}", weights[t]);
        }
    }
}

/// What a driver does, one search at a time, through the interfaces alone.
fn drive(tree: &ProofTree, strategy: StrategyKind, budget: u64, stream: Stream) -> Finish {
    let theorem = tree.trace("example").theorem;
    let mut session = tree.open(&theorem).unwrap();
    let mut policy = TabularPolicy::new(tree.clone());
    let mut search = simulation(strategy, budget).unwrap().search();
    let mut known = vec![(catamount_search::StateId(0), session.root().to_string())];
    let mut asked = 0;
    loop {
        asked += 1;
        let choices = stream.named("choices");
        let wanted = match search.ask(&mut |weights| {
            let mut left = choices.uniform(asked) * weights.iter().sum::<f64>();
            weights.iter().position(|w| (left -= w, left < 0.0).1).unwrap_or(weights.len() - 1)
        }) {
            Ask::Expand(wanted) => wanted,
            Ask::Finished(Finish::Proved(proof)) => {
                assert_eq!(tree.check(&theorem, &proof).unwrap(), Checked::proved(Vec::new()));
                assert!(matches!(
                    tree.check(&theorem, &proof[1..]).unwrap(),
                    Checked::Refused { .. }
                ));
                return Finish::Proved(proof);
            }
            Ask::Finished(finish) => return finish,
        };
        'batch: for (i, expand) in wanted.iter().enumerate() {
            let (state, text) = known[expand.node.0 as usize].clone();
            policy.submit(Request {
                id: i as u64,
                state: text,
                samples: expand.samples,
                stream: stream.child(asked).child(i as u64),
                urn: None,
            });
            let (_, samples) = policy.poll().pop().unwrap();
            for sample in samples.unwrap() {
                let verdict = session.apply(state, &sample.tactic).unwrap();
                let answer = match &verdict {
                    Verdict::Proved => Answer::Proved,
                    Verdict::Open { .. } => Answer::Open,
                    Verdict::Rejected { .. } => Answer::Rejected,
                };
                match (search.tell(expand.node, &sample.tactic, sample.log_p, answer), verdict) {
                    (Reached::Open(node), Verdict::Open { state, text })
                        if node.0 as usize == known.len() =>
                    {
                        known.push((state, text))
                    }
                    (Reached::Proved, _) => break 'batch,
                    _ => {}
                }
            }
        }
    }
}

#[test]
fn a_driver_finds_what_the_exact_calculation_says() {
    let tree = mixed();
    let budget = 10;
    for strategy in StrategyKind::ALL {
        let exact = exact_success(&tree, &simulation(strategy, budget).unwrap()).unwrap()
            [budget as usize - 1];
        let runs = 6000;
        let proved = (0..runs)
            .filter(|&run| {
                matches!(
                    drive(&tree, strategy, budget, Stream::new(5).child(run)),
                    Finish::Proved(_)
                )
            })
            .count();
        let error = (exact * (1.0 - exact) / runs as f64).sqrt();
        let off = (proved as f64 / runs as f64 - exact) / error;
        assert!(off.abs() < 4.5, "{strategy}: {proved} of {runs}, exactly {exact}");
    }
}

#[test]
fn what_a_driver_may_get_wrong_is_answered() {
    let tree = mixed();
    let mut session = tree.open(&tree.trace("t").theorem).unwrap();
    assert!(session.apply(catamount_search::StateId(9), "demonstrated").is_err());
    let verdict = session.apply(catamount_search::StateId(0), "no such tactic").unwrap();
    assert!(matches!(verdict, Verdict::Rejected { reason } if reason.contains("no such tactic")));
    let mut policy = TabularPolicy::new(tree);
    policy.submit(Request {
        id: 3,
        state: "nowhere".into(),
        samples: 1,
        stream: Stream::new(1),
        urn: None,
    });
    assert!(matches!(policy.poll().as_slice(), [(3, Err(_))]));
    assert!(policy.poll().is_empty());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]
    /// More budget never hurts, alternative proofs never hurt, and nothing is more than certain.
    #[test]
    fn success_is_a_probability_that_grows(
        p in prop::collection::vec(0.05f64..0.95, 1..3), share in 0.05f64..0.9, which in 0usize..6,
    ) {
        let strategy = StrategyKind::ALL[which];
        let chain = ProofTree::chain(&p).unwrap();
        let bypass = chain.clone().deviate(1, share, &Branch::Proof(vec![])).unwrap();
        let plain = exact_success(&chain, &simulation(strategy, 9).unwrap()).unwrap();
        let more = exact_success(&bypass, &simulation(strategy, 9).unwrap()).unwrap();
        for n in 0..9 {
            prop_assert!((0.0..=1.0 + 1e-12).contains(&plain[n]));
            prop_assert!(n == 0 || plain[n] >= plain[n - 1]);
            prop_assert!(more[n] >= plain[n]);
        }
    }
}
