//! The fast versions against the recurrence they come from, and the paper's identities, on random
//! traces.

use catamount_objective::{Objective, Prior, Surrogate, Weighed, by_recurrence};
use proptest::prelude::*;

fn weigh(objective: Objective, budget: u64, kappa: f64, q: f64, log_p: &[f64]) -> Weighed {
    Surrogate::new(objective, budget)
        .with_prior(Prior::new(kappa, q).unwrap())
        .unwrap()
        .weigh(log_p)
        .unwrap()
}

fn close(got: f64, expected: f64) -> bool {
    (got - expected).abs() <= 1e-9 * expected.abs() + 1e-13
}

/// Log-probabilities of every size that occurs: ordinary, hopeless, and within 1e-13 of certain.
fn log_p() -> impl Strategy<Value = f64> {
    prop_oneof![4 => -8.0..-0.001f64, 1 => -1000.0..-8.0f64,
        1 => (-13.0..-2.0f64).prop_map(|e| -10f64.powf(e)), 1 => Just(0.0)]
}

fn trace(longest: usize) -> impl Strategy<Value = Vec<f64>> {
    prop::collection::vec(log_p(), 1..=longest)
}

fn prior() -> impl Strategy<Value = (f64, f64)> {
    (
        prop_oneof![Just(1.0), Just(3.0), 1.0..6.0f64],
        prop_oneof![Just(0.0), Just(0.02), 0.0..0.9f64],
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn fast_versions_equal_the_recurrence(
        log_p in trace(5), extra in 0u64..30, (kappa, q) in prior(),
        which in 0..Objective::ALL.len(),
    ) {
        let objective = Objective::ALL[which];
        // Brute force over MCTS configurations explodes; and the others need no more than this to
        // differ.
        let most = if objective == Objective::Mcts { 3 } else { usize::MAX };
        let log_p = &log_p[..log_p.len().min(most)];
        let steps = log_p.len() as u64;
        let budget =
            if objective == Objective::Ua { (1 + extra / 3) * steps } else { steps + extra };
        let kappa = if matches!(objective, Objective::Pass | Objective::Ua) { 1.0 } else { kappa };
        let prior = Prior::new(kappa, q).unwrap();
        let surrogate = Surrogate::new(objective, budget).with_prior(prior).unwrap();
        let fast = surrogate.weigh(log_p).unwrap();
        let slow = by_recurrence(&surrogate, log_p).unwrap().expect("whole quota");
        prop_assert_eq!(fast.feasible, slow.feasible, "{} {:?} {}", objective, log_p, budget);
        prop_assert!(close(fast.log_success, slow.log_success), "{objective} N={budget} \
         {log_p:?}: {fast:?} {slow:?}");
        for (got, expected) in fast.weights.iter().zip(&slow.weights) {
            prop_assert!(close(*got, *expected), "{objective} N={budget} {log_p:?}: {fast:?} \
             {slow:?}");
        }
    }

    #[test]
    fn many_traces_at_once_equal_one_by_one(
        traces in prop::collection::vec(trace(3), 1..60), budget in 0u64..80, (kappa, q) in prior(),
        which in 0..Objective::ALL.len(),
    ) {
        let objective = Objective::ALL[which];
        let kappa = if objective == Objective::Pass { 1.0 } else { kappa };
        let prior = Prior::new(kappa, q).unwrap();
        let surrogate = Surrogate::new(objective, budget).with_prior(prior).unwrap();
        let mut traces: Vec<&[f64]> = traces.iter().map(Vec::as_slice).collect();
        // Errors stay with their trace.
        traces.insert(traces.len() / 2, &[0.5]);
        let together = surrogate.weigh_all(&traces);
        let alone: Vec<_> = traces.iter().map(|trace| surrogate.weigh(trace)).collect();
        // The printed numbers are equal exactly when their bits are.
        prop_assert_eq!(format!("{together:?}"), format!("{alone:?}"));
    }

    #[test]
    fn the_curve_is_j_at_every_budget(
        log_p in trace(5), budget in 0u64..120, (kappa, q) in prior(),
        which in 0..Objective::ALL.len(),
    ) {
        let objective = Objective::ALL[which];
        let kappa = if objective == Objective::Pass { 1.0 } else { kappa };
        let prior = Prior::new(kappa, q).unwrap();
        let surrogate = Surrogate::new(objective, budget).with_prior(prior).unwrap();
        let curve = surrogate.curve(&log_p).unwrap();
        prop_assert_eq!(curve.len() as u64, budget + 1);
        prop_assert!(curve.windows(2).all(|pair| pair[1] >= pair[0] - 1e-14),
            "{objective} {curve:?}");
        for (n, &success) in curve.iter().enumerate() {
            let weighed = weigh(objective, n as u64, kappa, q, &log_p);
            // `ce` says the same at every budget; its one attempt takes as many expansions as
            // steps.
            let possible = weighed.feasible && (objective != Objective::Ce || n >= log_p.len());
            let expected = if possible { weighed.log_success.exp() } else { 0.0 };
            prop_assert!((success - expected).abs() <= 1e-12 + 1e-9 * expected,
                "{objective} N={n} {success} {expected}");
        }
    }

    #[test]
    fn never_nan_and_within_bounds(
        log_p in trace(40), budget in 0u64..600, (kappa, q) in prior(),
        which in 0..Objective::ALL.len(),
    ) {
        let objective = Objective::ALL[which];
        let kappa = if objective == Objective::Pass { 1.0 } else { kappa };
        let weighed = weigh(objective, budget, kappa, q, &log_p);
        prop_assert!(weighed.log_success.is_finite() && weighed.log_success <= 0.0, "{objective} \
         {weighed:?}");
        for &weight in &weighed.weights {
            prop_assert!(weight.is_finite(), "{objective} {weighed:?}");
            // Raising p_t also moves the backtracking distribution of vdfs, and under absorption it
            // makes every widening sample of mcts safer; every other weight is a probability.
            let bounds = match objective {
                Objective::Vdfs => -0.5..=2.0,
                Objective::Mcts if q > 0.0 => -1e-13..=30.0,
                _ => -1e-13..=1.0 + 1e-9,
            };
            prop_assert!(bounds.contains(&weight), "{objective} N={budget} q={q} {log_p:?} \
             {weighed:?}");
        }
    }

    /// lem:criticality_revised: w_t = 1 - P(S_L + T_t' <= N) / P(S_L <= N), with P(S_L + T_t') the
    /// trace with step t twice.
    #[test]
    fn the_retry_weight_is_a_criticality(
        log_p in prop::collection::vec(-5.0..-0.05f64, 1..6), extra in 1u64..60,
    ) {
        let budget = log_p.len() as u64 + extra;
        let weighed = weigh(Objective::Bfs, budget, 1.0, 0.0, &log_p);
        for t in 0..log_p.len() {
            let mut doubled = log_p.clone();
            doubled.push(log_p[t]);
            let twice = weigh(Objective::Bfs, budget, 1.0, 0.0, &doubled).log_success;
            let ratio = (twice - weighed.log_success).exp();
            prop_assert!((weighed.weights[t] - (1.0 - ratio)).abs() < 1e-10);
        }
    }

    /// eq:mf_budget_average: the retry weight averages the local criticality h(p_t, B_t) over the
    /// residual budget.
    #[test]
    fn the_retry_weight_is_a_budget_average(
        log_p in prop::collection::vec(-4.0..-0.05f64, 2..5), extra in 0u64..40,
    ) {
        let budget = log_p.len() as u64 + extra;
        let whole = weigh(Objective::Bfs, budget, 1.0, 0.0, &log_p);
        let others = &log_p[1..];
        let cumulative = |n: u64| {
            if n < others.len() as u64 {
                return 0.0;
            }
            weigh(Objective::Bfs, n, 1.0, 0.0, others).log_success.exp()
        };
        let mut average = 0.0;
        for rest in others.len() as u64..budget {
            let left = budget - rest;
            // One tactic, `left` attempts: F(p, k) and h(p, k).
            let local = weigh(Objective::Pass, left, 1.0, 0.0, &log_p[..1]);
            let chance = cumulative(rest) - cumulative(rest - 1);
            average += chance * local.log_success.exp() * local.weights[0];
        }
        prop_assert!((whole.weights[0] - average / whole.log_success.exp()).abs() < 1e-9);
    }

    /// prop:shared_budget_bracketing_revised: dearer misses push the weight up, towards CE.
    #[test]
    fn kappa_brackets_the_weight(
        log_p in prop::collection::vec(-4.0..-0.05f64, 1..5), extra in 0u64..200,
        kappa in 1.0..20.0f64,
    ) {
        let budget = log_p.len() as u64 + extra;
        let free = weigh(Objective::Bfs, budget, 1.0, 0.0, &log_p);
        let dear = weigh(Objective::Bfs, budget, kappa, 0.0, &log_p);
        let dearest = weigh(Objective::Bfs, budget, 20.0, 0.0, &log_p);
        for t in 0..log_p.len() {
            prop_assert!(free.weights[t] <= dear.weights[t] + 1e-12);
            prop_assert!(dear.weights[t] <= dearest.weights[t] + 1e-12);
            prop_assert!(dearest.weights[t] <= 1.0 + 1e-12);
        }
    }

    /// At the minimal budget a strategy must execute the trace without a miss, and every weight is
    /// 1. (Not so for `mcts`: see below.)
    #[test]
    fn minimal_budget_is_cross_entropy(log_p in trace(7), which in 0..Objective::ALL.len() - 1) {
        let objective = Objective::ALL[which];
        let weighed = weigh(objective, objective.minimum_budget(log_p.len()), 1.0, 0.0, &log_p);
        prop_assert!(weighed.feasible);
        prop_assert!(close(weighed.log_success, log_p.iter().sum()), "{objective} {weighed:?}");
        prop_assert!(weighed.weights.iter().all(|&w| close(w, 1.0)), "{objective} {weighed:?}");
    }
}

/// prop:hump_floor (b): with absorption the weight tends to q / (p + (1 - p) q), without to 0.
#[test]
fn absorption_leaves_a_floor() {
    let log_p = [-0.5, -1.5, -3.0];
    let free = weigh(Objective::Bfs, 100_000, 1.0, 0.0, &log_p);
    assert!(free.weights.iter().all(|&w| w < 1e-13));
    let q = 0.1;
    let absorbed = weigh(Objective::Bfs, 100_000, 1.0, q, &log_p);
    for (weight, log_p) in absorbed.weights.iter().zip(log_p) {
        let p = log_p.exp();
        assert!((weight - q / (p + (1.0 - p) * q)).abs() < 1e-10);
    }
}

/// The paper calls the minimal-budget endpoint universal, but `mcts` has slack there: a node found
/// at once must still widen at its next tick, so a first miss costs nothing. For L = 2 and N = 3, J
/// = p_1 p_2 + (1 - p_1) p_1 p_2.
#[test]
fn mcts_has_slack_at_its_minimal_budget() {
    let (p1, p2) = (0.3f64, 0.4f64);
    let weighed = weigh(Objective::Mcts, 3, 1.0, 0.0, &[p1.ln(), p2.ln()]);
    assert!(close(weighed.log_success, (p1 * p2 * (2.0 - p1)).ln()));
    assert!(close(weighed.weights[0], 1.0 - p1 / (2.0 - p1)) && close(weighed.weights[1], 1.0));
}

#[test]
fn infeasible_budgets_take_the_ce_limit_and_say_so() {
    for (objective, budget) in [
        (Objective::Bfs, 2),
        (Objective::Ua, 2),
        (Objective::Vdfs, 0),
        (Objective::Mcts, 5),
        (Objective::Pass, 0),
    ] {
        let weighed = weigh(objective, budget, 1.0, 0.0, &[-1.0, -2.0, -3.0]);
        assert_eq!(
            weighed,
            Weighed { log_success: -6.0, weights: vec![1.0; 3], feasible: false },
            "{objective}"
        );
    }
    // The prior may push an otherwise sufficient budget below the minimum of `mcts`.
    assert!(!weigh(Objective::Mcts, 9, 5.0, 0.0, &[-1.0, -2.0, -3.0]).feasible);
}

#[test]
fn questions_without_an_answer_are_refused_with_a_reason() {
    let bfs = Surrogate::new(Objective::Bfs, 16);
    assert!(bfs.weigh(&[]).unwrap_err().to_string().contains("no steps"));
    assert!(bfs.weigh(&[-1.0, 0.5]).unwrap_err().to_string().contains("step 2 is positive"));
    assert!(bfs.weigh(&[f64::NAN]).unwrap_err().to_string().contains("not a number"));
    assert!(bfs.weigh(&[f64::NEG_INFINITY]).unwrap_err().to_string().contains("never sampled"));
    assert!(
        "foo"
            .parse::<Objective>()
            .unwrap_err()
            .to_string()
            .contains("ce, ua, pass, bfs, dfs, rdfs, vdfs, mcts")
    );
    let kappa = Surrogate::new(Objective::Pass, 16).with_prior(Prior::new(2.0, 0.0).unwrap());
    assert!(kappa.unwrap_err().to_string().contains("rollouts"));
    assert!(
        Prior::new(0.5, 0.0).is_err()
            && Prior::new(1.0, 1.0).is_err()
            && Prior::new(f64::NAN, 0.0).is_err()
    );
}

/// L = 200 at N = 100,000, where memory, range and rounding are all at their worst.
#[test]
fn the_largest_traces_fit() {
    let log_p: Vec<f64> = (0..200).map(|i| -0.05 * f64::from(i)).collect();
    for objective in [Objective::Bfs, Objective::Ua, Objective::Pass] {
        let weighed = weigh(objective, 100_000, 1.0, 0.0, &log_p);
        assert!(
            weighed.log_success < 0.0 && weighed.weights[199] >= weighed.weights[10],
            "{objective}"
        );
    }
    let short: Vec<f64> = log_p.iter().map(|l| l / 100.0 - 0.01).collect();
    for objective in [Objective::Rdfs, Objective::Vdfs] {
        let weighed = weigh(objective, 30_000, 1.0, 0.0, &short);
        assert!(
            weighed.log_success.is_finite() && weighed.weights.iter().all(|w| w.is_finite()),
            "{objective}"
        );
    }
}

/// Some of the traces are so easy that counting successes leaves a doubt: whatever number of others
/// there is, none is counted in another way because of them.
#[test]
fn a_trace_that_is_left_over_is_weighed_as_it_would_be_alone() {
    for objective in [Objective::Rdfs, Objective::Vdfs] {
        let surrogate = Surrogate::new(objective, 256);
        for others in 1..40 {
            let mut traces: Vec<&[f64]> = vec![&[-0.02, -2.5]; 3];
            traces.extend([[-1.0, -5.5]; 40][..others].iter().map(<[f64; 2]>::as_slice));
            let alone: Vec<_> = traces.iter().map(|trace| surrogate.weigh(trace)).collect();
            let together = surrogate.weigh_all(&traces);
            assert_eq!(format!("{together:?}"), format!("{alone:?}"), "{others}");
        }
    }
}
