//! What the paper could only bound, measured on search trees: what a miss costs (kappa), how often
//! it is never recovered from (q), and how often another proof is found instead (bypass).

use std::collections::{BTreeMap, HashMap};

use catamount_base::{Lines, LinesError};
use catamount_evaluate::log::TreeRecord;
use catamount_evaluate::{CellTask, sibling};
use catamount_model::Backend;
use catamount_report::OffTrace;
use catamount_traces::Trace;

use crate::cells::{Sampler, theorems};
use crate::error::{Error, Work};
use crate::plan::{MEASURED, Plan};
use crate::step::{Measurement, Step, Trained, WARM_UP};
use crate::study::{Study, say};

/// Measures what the warm-up model's misses cost on validation theorems.
pub(crate) fn off_trace<B: Backend>(
    study: &Study<'_, B>,
    plan: &Plan,
    measurement: &Measurement,
) -> Work<()> {
    let mut theorems = theorems(study, "valid", Some(MEASURED))?;
    theorems.jobs.iter_mut().for_each(|job| job.tree = true);
    let log = study.path(measurement.log());
    let searches = CellTask {
        objective: WARM_UP.to_string(),
        deployment: measurement.deployment.clone(),
        log: log.clone(),
        theorems,
    };
    Sampler::default().search(study, &Trained::warm_up(), &[searches], &mut |_, _| Ok(()))?;
    let mut found = OffTrace {
        strategy: measurement.deployment.strategy().to_string(),
        budget: measurement.deployment.budget(),
        ..OffTrace::default()
    };
    // By theorem: a search that a killed process had to repeat left its tree twice.
    let mut trees = BTreeMap::new();
    for line in Lines::<TreeRecord>::open(&sibling(&log, "trees.jsonl"))? {
        match line {
            Ok((_, tree)) => _ = trees.insert(tree.theorem.clone(), tree),
            Err(damage @ LinesError::Damaged { .. }) => {
                say(format!("  warning: {damage}; this tree is not measured"));
                found.broken += 1;
            }
            Err(error) => return Err(error.into()),
        }
    }
    measure(&mut found, trees.values(), &study.traces("valid")?);
    say(format!(
        "  measured on {} theorems: kappa {:.2}, q {:.3}; {} proved along the trace, {} otherwise",
        found.theorems, found.kappa, found.absorption, found.along_trace, found.bypass
    ));
    write(&study.path(measurement.found()), &found)?;
    collect(study, plan)
}

/// What a measurement found.
pub(crate) fn read<B: Backend>(study: &Study<'_, B>, of: &Measurement) -> Work<OffTrace> {
    let path = study.path(of.found());
    let text = std::fs::read(&path).map_err(Error::io(&path))?;
    let found = serde_json::from_slice(&text);
    Ok(found.map_err(|error| Error::File { path, reason: error.to_string() })?)
}

fn write(path: &std::path::Path, value: &impl serde::Serialize) -> Work<()> {
    let text = serde_json::to_vec_pretty(value).unwrap_or_default();
    Ok(catamount_base::write(path, text).map_err(Error::io(path))?)
}

/// Puts the plan's measurements so far into the table that the report shows.
fn collect<B: Backend>(study: &Study<'_, B>, plan: &Plan) -> Work<()> {
    let mut all = Vec::new();
    for planned in &plan.steps {
        if let Step::OffTrace(measurement) = &planned.step
            && study.path(measurement.found()).exists()
        {
            all.push(read(study, measurement)?);
        }
    }
    write(&study.path(catamount_report::OFF_TRACE), &all)
}

/// Measures trees against the demonstrations. A state counts as demonstrated if its text is that of
/// a state of the trace, so a different tactic that leads to the same state is a hit, as it is for
/// the search.
fn measure<'t>(
    found: &mut OffTrace,
    trees: impl IntoIterator<Item = &'t TreeRecord>,
    traces: &[Trace],
) {
    let traces: HashMap<&str, &Trace> =
        traces.iter().map(|trace| (trace.theorem.name.as_str(), trace)).collect();
    let (mut cost, mut lost, mut decided) = (0u64, 0u64, 0u64);
    for tree in trees {
        let Some(trace) = traces.get(tree.theorem.as_str()) else { continue };
        found.theorems += 1;
        let position: HashMap<&str, usize> =
            trace.steps.iter().enumerate().map(|(t, step)| (step.state.as_str(), t)).collect();
        // Position on the trace of the node that each expansion made; expansion 0 is the root.
        let mut on_trace: Vec<Option<usize>> = vec![position.get(tree.root.as_str()).copied()];
        let mut open_miss: Option<usize> = None;
        for (index, expansion) in tree.expansions.iter().enumerate() {
            let number = index + 1;
            let here = on_trace[expansion.parent as usize];
            let reached = (expansion.verdict == "open")
                .then(|| position.get(expansion.text.as_str()).copied())
                .flatten();
            if let Some(t) = here {
                if let Some(missed_at) = open_miss.take() {
                    found.returned += 1;
                    decided += 1;
                    cost += (number - missed_at) as u64;
                }
                let last = t + 1 == trace.steps.len();
                let hit = if last { expansion.verdict == "proved" } else { reached == Some(t + 1) };
                if !hit && expansion.verdict != "proved" {
                    found.misses += 1;
                    open_miss = Some(number);
                }
            }
            if expansion.verdict == "proved" {
                let along = here.is_some_and(|t| t + 1 == trace.steps.len());
                found.along_trace += usize::from(along);
                found.bypass += usize::from(!along);
            }
            on_trace.push(reached);
        }
        // A miss that is still open at the end was not recovered from; unless another proof made
        // that needless, or it was the last expansion and says nothing.
        let proved = tree.expansions.last().is_some_and(|last| last.verdict == "proved");
        if let Some(missed_at) = open_miss
            && missed_at < tree.expansions.len()
            && !proved
        {
            decided += 1;
            lost += 1;
        }
    }
    found.kappa =
        if found.returned > 0 { (cost as f64 / found.returned as f64).max(1.0) } else { 1.0 };
    // Below one: a search that never came back in this sample might still do so.
    found.absorption = if decided > 0 { lost as f64 / (decided + 1) as f64 } else { 0.0 };
}

#[cfg(test)]
mod tests {
    use catamount_evaluate::log::TreeExpansion;
    use catamount_traces::{Step, Theorem};

    use super::*;

    fn expansion(parent: u64, verdict: &str, text: &str) -> TreeExpansion {
        TreeExpansion {
            parent,
            tactic: String::new(),
            log_p: -1.0,
            verdict: verdict.into(),
            text: text.into(),
            score: None,
        }
    }

    #[test]
    fn costs_losses_and_bypasses_are_told_apart() {
        let step = |state: &str| Step { state: state.into(), tactic: "t".into(), next: None };
        let theorem = |name: &str| Theorem { name: name.into(), ..Theorem::default() };
        let trace =
            |name: &str| Trace { theorem: theorem(name), steps: vec![step("x0"), step("x1")] };
        let tree = |name: &str, expansions| TreeRecord {
            theorem: name.into(),
            root: "x0".into(),
            expansions,
        };
        let returned = vec![
            expansion(0, "open", "off"),  // a miss at x0 ...
            expansion(1, "rejected", ""), // ... one expansion off the trace ...
            expansion(0, "open", "x1"),   // ... and back: it cost two
            expansion(3, "rejected", ""), // a miss at x1 that costs one
            expansion(3, "proved", ""),
        ];
        let lost = vec![
            expansion(0, "open", "off"),
            expansion(1, "rejected", ""),
            expansion(1, "rejected", ""),
        ];
        let bypass = vec![expansion(0, "open", "off"), expansion(1, "proved", "")];
        let trees = [tree("a", returned), tree("b", lost), tree("c", bypass)];
        let mut found = OffTrace::default();
        measure(&mut found, &trees, &[trace("a"), trace("b"), trace("c")]);
        assert_eq!((found.misses, found.returned, found.along_trace, found.bypass), (4, 2, 1, 1));
        assert_eq!(found.kappa, 1.5);
        // Two returned and one was lost; the one before the bypass is neither.
        assert_eq!(found.absorption, 1.0 / 4.0);
    }
}
