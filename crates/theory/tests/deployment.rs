//! Deployed searches against surrogates where theory says they agree, and against triples that say
//! where they do not.

mod triples;

use catamount_objective::{Objective, Prior, Surrogate, solve};
use catamount_search::StrategyKind;
use catamount_theory::{Branch, Deployed, ProofTree, deployed, simulation};
use triples::{ChargedRollouts, EvaluatedWidening};

/// Every budget's success and weights agree.
fn agree(deployed: &Deployed, surrogate: impl Fn(u64) -> catamount_objective::Weighed) {
    assert!(deployed.doubt < 1e-8, "derivatives are in doubt by {}", deployed.doubt);
    for (n, &success) in deployed.success.iter().enumerate() {
        let expected = surrogate(n as u64 + 1);
        if !expected.feasible {
            assert_eq!(success, 0.0, "budget {}", n + 1);
            continue;
        }
        assert!(
            (success / expected.log_success.exp() - 1.0).abs() < 1e-11,
            "J at {}: {success} {expected:?}",
            n + 1
        );
        for (t, weight) in expected.weights.iter().enumerate() {
            let found = deployed.weights[t][n];
            assert!((found - weight).abs() < 1e-8, "w_{} at {}: {found}, {weight}", t + 1, n + 1);
        }
    }
}

fn weigh(
    objective: Objective,
    tree: &ProofTree,
    budget: u64,
    prior: Prior,
) -> catamount_objective::Weighed {
    Surrogate::new(objective, budget).with_prior(prior).unwrap().weigh(&tree.log_p()).unwrap()
}

#[test]
fn depth_first_strategies_on_a_chain_are_their_surrogates() {
    let tree = ProofTree::chain(&[0.35, 0.8, 0.15]).unwrap();
    for (strategy, objective) in [
        (StrategyKind::Dfs, Objective::Dfs),
        (StrategyKind::Rdfs, Objective::Rdfs),
        (StrategyKind::Vdfs, Objective::Vdfs),
    ] {
        let found = deployed(&tree, &simulation(strategy, 40).unwrap()).unwrap();
        agree(&found, |n| weigh(objective, &tree, n, Prior::NONE));
    }
}

#[test]
fn monte_carlo_on_a_chain_is_its_surrogate_plus_the_evaluation_visit() {
    let tree = ProofTree::chain(&[0.35, 0.6, 0.25]).unwrap();
    let found = deployed(&tree, &simulation(StrategyKind::Mcts, 20).unwrap()).unwrap();
    agree(&found, |n| solve(&EvaluatedWidening, &tree.log_p(), n, 0.0).unwrap());
    // A found node starts at one visit, so it may widen to two samples at once: the search is
    // slower to leave a node it has just reached.
    let surrogate = weigh(Objective::Mcts, &tree, 20, Prior::NONE);
    assert!((found.success[19] - surrogate.log_success.exp()).abs() > 1e-3);
    // With a single step there is nothing to evaluate.
    let tree = ProofTree::chain(&[0.2]).unwrap();
    let found = deployed(&tree, &simulation(StrategyKind::Mcts, 20).unwrap()).unwrap();
    agree(&found, |n| weigh(Objective::Mcts, &tree, n, Prior::NONE));
}

#[test]
fn pass_on_a_chain_is_rollouts_charged_by_the_expansion() {
    let tree = ProofTree::chain(&[0.35, 0.6, 0.25]).unwrap();
    let found = deployed(&tree, &simulation(StrategyKind::Pass, 36).unwrap()).unwrap();
    agree(&found, |n| solve(&ChargedRollouts, &tree.log_p(), n, 0.0).unwrap());
    // A rollout costs between one expansion and L of them.
    for n in 3..=36u64 {
        let success = found.success[n as usize - 1];
        let at = |rollouts| weigh(Objective::Pass, &tree, rollouts, Prior::NONE).log_success.exp();
        assert!(at(n / 3) <= success + 1e-12 && success <= at(n) + 1e-12, "{n}: {success}");
    }
}

#[test]
fn pass_whose_rollouts_all_cost_the_same_is_its_surrogate() {
    // A miss at the first of two steps still costs a second expansion.
    let tree = ProofTree::chain(&[0.3, 0.2])
        .unwrap()
        .deviate(1, 1.0, &Branch::Trap { depth: 1, valid: 1.0 })
        .unwrap();
    let found = deployed(&tree, &simulation(StrategyKind::Pass, 40).unwrap()).unwrap();
    for rollouts in 1..=20u64 {
        let expected = weigh(Objective::Pass, &tree, rollouts, Prior::NONE);
        let n = 2 * rollouts as usize - 1;
        assert!((found.success[n] - expected.log_success.exp()).abs() < 1e-12);
        for t in 0..2 {
            assert!((found.weights[t][n] - expected.weights[t]).abs() < 1e-9);
        }
    }
}

#[test]
fn detours_are_kappa_and_absorption_is_q_for_depth_first_search() {
    let chain = ProofTree::chain(&[0.35, 0.5]).unwrap();
    let detours = (1..=2)
        .fold(chain.clone(), |tree, t| tree.deviate(t, 1.0, &Branch::Detour { cost: 4 }).unwrap());
    let found = deployed(&detours, &simulation(StrategyKind::Dfs, 40).unwrap()).unwrap();
    agree(&found, |n| weigh(Objective::Dfs, &detours, n, Prior::new(4.0, 0.0).unwrap()));
    // Any useless state the prover accepts holds depth-first search for ever, whether or not
    // tactics are accepted there.
    for branch in [Branch::Absorbing, Branch::Trap { depth: 2, valid: 0.5 }] {
        let traps = (1..=2).fold(chain.clone(), |tree, t| tree.deviate(t, 0.3, &branch).unwrap());
        let found = deployed(&traps, &simulation(StrategyKind::Dfs, 30).unwrap()).unwrap();
        agree(&found, |n| weigh(Objective::Dfs, &traps, n, Prior::new(1.0, 0.3).unwrap()));
    }
}

#[test]
fn best_first_search_is_not_its_surrogate_even_on_a_chain() {
    // Four samples a pop and a restart when the frontier is empty, against retries until the tactic
    // comes.
    let tree = ProofTree::chain(&[0.35, 0.6]).unwrap();
    let found = deployed(&tree, &simulation(StrategyKind::Bfs, 24).unwrap()).unwrap();
    assert!(found.doubt < 1e-8);
    let surrogate = weigh(Objective::Bfs, &tree, 24, Prior::NONE);
    assert!(
        found.success[23] < surrogate.log_success.exp() - 1e-4,
        "{} {surrogate:?}",
        found.success[23]
    );
    assert!(found.weights[0][23] > surrogate.weights[0] + 1e-3);
    // With one step there is one node to sample at, and the two agree.
    let tree = ProofTree::chain(&[0.2]).unwrap();
    agree(&deployed(&tree, &simulation(StrategyKind::Bfs, 30).unwrap()).unwrap(), |n| {
        weigh(Objective::Bfs, &tree, n, Prior::NONE)
    });
}
