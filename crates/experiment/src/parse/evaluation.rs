//! `[evaluation]`: how models are deployed, and on what.

use catamount_calibration::LEAST_THEOREMS;
use catamount_evaluate::Workload;
use catamount_search::{Overrides, SettingError, Value};

use super::checks::{Checked, Refusal, between, once, positive, refuse, seconds};
use crate::experiment::Evaluation;
use crate::file::{ELSEWHERE, EvaluationFile};
use crate::limits::{BATCH, BUDGET, CONCURRENCY, TACTIC, TRIALS};

const DECODED: usize = Workload::MOST_DECODED;

pub(super) fn evaluation(file: &EvaluationFile) -> Checked<Evaluation> {
    let mut overrides = Overrides::default();
    for (key, value) in &file.search {
        let path = format!("evaluation.search.{key}");
        if ELSEWHERE.contains(&key.as_str()) {
            return refuse(path, "is not a parameter of a strategy; it belongs in [evaluation]");
        }
        overrides.set(key, value.clone()).map_err(|error| setting(&path, error))?;
    }
    between("evaluation.max_tokens", file.max_tokens, 1, TACTIC)?;
    for (key, value) in [
        ("temperature", Value::Real(file.temperature)),
        ("distinct", Value::Flag(file.distinct)),
        ("max_tokens", Value::Whole(file.max_tokens as u64)),
    ] {
        let path = format!("evaluation.{key}");
        overrides.set(key, value).map_err(|error| setting(&path, error))?;
    }
    if file.strategies.is_empty() {
        return refuse("evaluation.strategies", "is empty; at least one strategy is needed");
    }
    once("evaluation.strategies", &file.strategies)?;
    if file.budgets.is_empty() {
        return refuse("evaluation.budgets", "is empty; at least one budget is needed");
    }
    for (index, &budget) in file.budgets.iter().enumerate() {
        between(&format!("evaluation.budgets[{index}]"), budget, 1, BUDGET)?;
    }
    once("evaluation.budgets", &file.budgets)?;
    between("evaluation.concurrency", file.concurrency, 1, CONCURRENCY)?;
    between("evaluation.batch", file.batch, 1, BATCH)?;
    if file.batch * file.max_tokens > DECODED {
        return refuse(
            "evaluation.batch",
            format!(
                "is {}, which with max_tokens = {} decodes {} tokens at once; at most {DECODED} \
                 are allowed",
                file.batch,
                file.max_tokens,
                file.batch * file.max_tokens
            ),
        );
    }
    positive("evaluation.limit", file.limit)?;
    between("evaluation.trials", file.trials, LEAST_THEOREMS, TRIALS)?;
    Ok(Evaluation {
        strategies: file.strategies.clone(),
        budgets: file.budgets.clone(),
        overrides,
        cells: file.cells,
        steps: file.steps,
        limit: file.limit,
        concurrency: file.concurrency,
        batch: file.batch,
        trees: file.trees,
        trials: file.trials,
        time_limit: seconds("evaluation.time_limit", file.time_limit)?,
        theorem_time_limit: seconds("evaluation.theorem_time_limit", file.theorem_time_limit)?,
    })
}

/// What a deployment has against a setting, by the name it has in the file.
pub(super) fn setting(path: &str, error: SettingError) -> Refusal {
    let reason = match &error {
        SettingError::Refused { value, allowed, .. } => {
            format!("is {value}; it must be {allowed}")
        }
        other => other.to_string(),
    };
    Refusal { key: path.to_string(), reason }
}
