//! Reference answers, computed with 120 digits by an independent program (see
//! `golden/README.md`).

use catamount_objective::{Objective, Prior, Surrogate};
use serde::Deserialize;

#[derive(Deserialize)]
struct Case {
    objective: String,
    logp: Vec<f64>,
    budget: u64,
    kappa: f64,
    absorption: f64,
    log_success: f64,
    weights: Vec<f64>,
}

#[test]
fn reference_answers() {
    let text =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/golden/weights.jsonl"))
            .unwrap();
    let cases: Vec<Case> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert!(cases.len() > 100);
    let close = |got: f64, expected: f64| (got - expected).abs() <= 1e-9 * expected.abs() + 1e-13;
    let mut wrong = Vec::new();
    for (index, case) in cases.iter().enumerate() {
        let objective: Objective = case.objective.parse().unwrap();
        let prior = Prior::new(case.kappa, case.absorption).unwrap();
        let weighed = Surrogate::new(objective, case.budget)
            .with_prior(prior)
            .unwrap()
            .weigh(&case.logp)
            .unwrap();
        let weights =
            weighed.weights.iter().zip(&case.weights).all(|(&got, &expected)| close(got, expected));
        if !(weighed.feasible && weights && close(weighed.log_success, case.log_success)) {
            wrong.push(format!(
                "line {}: {} {:?}\n   got {} {:?}\n  want {} {:?}",
                index + 1,
                case.objective,
                case.logp,
                weighed.log_success,
                weighed.weights,
                case.log_success,
                case.weights
            ));
        }
    }
    assert!(wrong.is_empty(), "{} of {} wrong:\n{}", wrong.len(), cases.len(), wrong.join("\n"));
}
