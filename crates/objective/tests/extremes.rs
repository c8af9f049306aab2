//! Questions at the edge of what numbers can hold: an answer to the promised precision, or a
//! refusal.

use std::time::{Duration, Instant};

use catamount_objective::{Objective, ObjectiveError, Prior, Surrogate};

/// The objectives that are solved by a recurrence over the budget.
const RECURRENCES: [Objective; 5] =
    [Objective::Bfs, Objective::Dfs, Objective::Rdfs, Objective::Vdfs, Objective::Mcts];

/// With one hopeless tactic J is its probability times something that does not depend on it: log J
/// must follow log p down one for one, and the weights must stay.
#[test]
fn hopeless_tactics_are_weighed_exactly_however_hopeless() {
    for objective in Objective::ALL {
        for q in [0.0, 0.02] {
            let surrogate =
                Surrogate::new(objective, 24).with_prior(Prior::new(1.0, q).unwrap()).unwrap();
            let weigh = |hopeless: f64| surrogate.weigh(&[-0.5, hopeless, -0.1]).unwrap();
            let known = weigh(-1e4);
            for hopeless in [-1e6, -1e9, -1e12, -1e14] {
                let weighed = weigh(hopeless);
                let (offset, expected) = (weighed.log_success - hopeless, known.log_success + 1e4);
                // What is left after subtracting is as good as the digits that log J has.
                let digits = hopeless.abs() * 4.0 * f64::EPSILON;
                assert!(
                    (offset - expected).abs() <= 1e-9 * expected.abs() + digits,
                    "{objective} q={q} {hopeless:e}: {offset} {expected}"
                );
                for (got, expected) in weighed.weights.iter().zip(&known.weights) {
                    assert!((got - expected).abs() <= 1e-9, "{objective} {hopeless:e} {weighed:?}");
                }
            }
        }
    }
}

#[test]
fn masks_are_refused() {
    let mask = f64::from(f32::MIN);
    for objective in Objective::ALL {
        for trace in [&[-1.0, mask][..], &[f64::MIN, f64::MIN], &[-1e15, -1.0], &[-6e14, -6e14]] {
            let error = Surrogate::new(objective, 16).weigh(trace).unwrap_err();
            assert!(matches!(error, ObjectiveError::Vanishing { .. }), "{objective} {trace:?}");
            assert!(error.to_string().contains("mask"), "{error}");
        }
    }
}

#[test]
fn any_budget_is_answered_or_refused() {
    let trace = [-0.5, -3.0];
    for budget in [1 << 23, 1 << 32, (1 << 53) + 1, u64::MAX - 1, u64::MAX] {
        for objective in RECURRENCES {
            let error = Surrogate::new(objective, budget).weigh(&trace).unwrap_err();
            assert!(
                matches!(error, ObjectiveError::Budget { .. }),
                "{objective} {budget}: {error}"
            );
            // The same for many traces at once.
            let both = Surrogate::new(objective, budget).weigh_all(&[&trace, &trace]);
            assert!(both.iter().all(Result::is_err), "{objective} {budget}");
        }
        for objective in [Objective::Ce, Objective::Ua, Objective::Pass] {
            let weighed = Surrogate::new(objective, budget).weigh(&trace).unwrap();
            assert!(weighed.log_success <= 0.0 && weighed.weights.iter().all(|w| w.is_finite()));
        }
        // A prior that makes misses dear enough brings the budget back into reach.
        let dear = Prior::new(budget as f64 / 1000.0, 0.0).unwrap();
        let surrogate = Surrogate::new(Objective::Bfs, budget).with_prior(dear).unwrap();
        assert!(surrogate.weigh(&trace).is_ok());
    }
}

#[test]
fn a_million_steps_are_answered_or_refused_in_seconds() {
    let trace = vec![-1e-6; 1_000_000];
    for objective in Objective::ALL {
        for budget in [1, 4096, 1 << 22, u64::MAX] {
            let began = Instant::now();
            let weighed = Surrogate::new(objective, budget).weigh(&trace);
            assert!(began.elapsed() < Duration::from_secs(10), "{objective} {budget}");
            let closed = matches!(objective, Objective::Ce | Objective::Ua | Objective::Pass);
            match weighed {
                Ok(weighed) => assert_eq!(
                    weighed.feasible,
                    closed && budget >= 1_000_000
                        || matches!(objective, Objective::Ce | Objective::Pass)
                ),
                Err(error) => assert!(!closed, "{objective} {budget}: {error}"),
            }
        }
    }
    // The smallest budget that pays for all the widening.
    assert_eq!(Objective::Mcts.minimum_budget(7), 23);
    assert!(Objective::Mcts.minimum_budget(1_000_000) > 1 << 37);
}

#[test]
fn work_beyond_reason_is_refused() {
    let error = Surrogate::new(Objective::Mcts, 1 << 20).weigh(&[-1.0; 4]).unwrap_err();
    assert!(matches!(error, ObjectiveError::Work { .. }), "{error}");
    let error = Surrogate::new(Objective::Rdfs, 1 << 22).weigh(&vec![-0.1; 1 << 16]).unwrap_err();
    assert!(error.to_string().contains("operations"), "{error}");
}

/// The costliest question of each kind that is not refused would take some 15 s; that these are
/// takes none.
#[test]
fn the_largest_budget_of_a_long_trace_is_answered_or_refused_in_seconds() {
    for each in [-0.3, -4.6] {
        for objective in [Objective::Rdfs, Objective::Vdfs, Objective::Mcts] {
            let error = Surrogate::new(objective, 1 << 22).weigh(&vec![each; 1000]).unwrap_err();
            assert!(matches!(error, ObjectiveError::Work { .. }), "{objective}: {error}");
        }
    }
    // Where `f64` does not do, less is done in the time.
    let bfs = Surrogate::new(Objective::Bfs, 1 << 22);
    assert!(bfs.weigh(&vec![-4.6; 1000]).is_err());
    // What studies ask for is far from any of this.
    for objective in RECURRENCES {
        for each in [-0.3, -40.0] {
            assert!(Surrogate::new(objective, 4096).weigh(&[each; 30]).is_ok(), "{objective}");
        }
    }
}
