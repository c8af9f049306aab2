//! What a run says about itself: one JSON line per measurement, and the same numbers for
//! TensorBoard.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::time::Instant;

use catamount_base::AtomicFile;
use serde::{Deserialize, Serialize};

use crate::distribution::{quantile, sorted};
use crate::step::Tally;
use crate::tensorboard::EventFile;
use crate::{Dataset, Error, Result, Validation, Weigh};

/// The quantiles that are written of p and of the weights.
pub const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// One line of metrics: what happened since the line before.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Measurement {
    /// The objective.
    pub objective: String,
    /// Its budget, where it has one.
    pub budget: Option<u64>,
    /// Optimizer steps done.
    pub step: usize,
    /// Optimizer steps of the whole run.
    pub steps: usize,
    /// Epochs done.
    pub epoch: f64,
    /// The weighted loss, normalised as the recipe says; the mean over the steps.
    pub loss: f64,
    /// The mean over tactics of -log p, unweighted; like every p here, at the recipe's temperature.
    pub ce: f64,
    /// The mean over target tokens of -log p, unweighted.
    pub ce_token: f64,
    /// The mean over traces of -log J, at the probabilities that the weights are computed from.
    pub minus_log_j: f64,
    /// The last step's learning rate.
    pub lr: f64,
    /// The last step's gradient norm, before clipping.
    pub grad_norm: f64,
    /// The mean over tactics of p.
    pub p_mean: f64,
    /// [`QUANTILES`] of p over tactics.
    pub p_quantiles: [f64; 5],
    /// The mean weight.
    pub w_mean: f64,
    /// [`QUANTILES`] of the weights.
    pub w_quantiles: [f64; 5],
    /// (sum of weights)² / (sum of squared weights): how many equally weighted tactics these amount
    /// to.
    pub effective_sample_size: f64,
    /// Tactics trained on.
    pub tactics: usize,
    /// Traces trained on.
    pub traces: usize,
    /// Token rows trained on per second of the clock.
    pub tokens_per_s: f64,
    /// Traces that no search within the budget could find.
    pub infeasible: usize,
    /// Examples of the data that were too long; the same in every line.
    pub dropped: usize,
    /// Micro-batches, traces and updates that were left out since they were not finite.
    pub skipped: usize,
    /// The model on held-out traces, where it was measured after this step.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub valid: Option<Validation>,
}

/// Collects steps until a line is due.
pub(crate) struct Window {
    total: Tally,
    steps: usize,
    since: Instant,
}

impl Window {
    pub fn new() -> Self {
        Window { total: Tally::default(), steps: 0, since: Instant::now() }
    }

    pub fn add(&mut self, tally: &Tally) {
        let t = &mut self.total;
        // A step that was skipped has no loss.
        self.steps += usize::from(!tally.weights.is_empty());
        t.ce += tally.ce;
        t.minus_log_j += tally.minus_log_j;
        t.log_p.extend(&tally.log_p);
        t.weights.extend(&tally.weights);
        t.targets += tally.targets;
        t.rows += tally.rows;
        t.traces += tally.traces;
        t.infeasible += tally.infeasible;
        t.skipped += tally.skipped;
        t.loss += tally.loss;
        (t.grad_norm, t.lr) = (tally.grad_norm, tally.lr);
    }

    /// The line, and an empty window.
    pub fn measure(
        &mut self,
        objective: &dyn Weigh,
        data: &Dataset,
        step: usize,
        steps: usize,
        epoch: f64,
    ) -> Measurement {
        let Window { total: t, steps: taken, since } = std::mem::replace(self, Window::new());
        let p: Vec<f64> = t.log_p.iter().map(|l| l.exp()).collect();
        let (sum, squares) =
            (t.weights.iter().sum::<f64>(), t.weights.iter().map(|w| w * w).sum::<f64>());
        let tactics = p.len();
        let mean = |sum: f64, n: usize| if n == 0 { 0.0 } else { sum / n as f64 };
        Measurement {
            objective: objective.name(),
            budget: objective.budget(),
            step,
            steps,
            epoch,
            loss: mean(t.loss, taken),
            ce: mean(t.ce, tactics),
            ce_token: mean(t.ce, t.targets),
            minus_log_j: mean(t.minus_log_j, t.traces),
            lr: t.lr,
            grad_norm: t.grad_norm,
            p_mean: mean(p.iter().sum(), tactics),
            p_quantiles: quantiles(&p),
            w_mean: mean(sum, tactics),
            w_quantiles: quantiles(&t.weights),
            effective_sample_size: if squares > 0.0 { sum * sum / squares } else { 0.0 },
            tactics,
            traces: t.traces,
            tokens_per_s: t.rows as f64 / since.elapsed().as_secs_f64().max(1e-9),
            infeasible: t.infeasible,
            dropped: data.dropped(),
            skipped: t.skipped,
            valid: None,
        }
    }
}

/// [`QUANTILES`]; zeros of nothing.
fn quantiles(values: &[f64]) -> [f64; 5] {
    let ascending = sorted(values);
    QUANTILES.map(|q| quantile(&ascending, q).unwrap_or(0.0))
}

/// The files that lines go to.
pub(crate) struct Metrics {
    path: PathBuf,
    lines: File,
    events: EventFile,
}

impl Metrics {
    /// Opens the lines for appending and a new event file in `events`. Lines after `step`, which a
    /// resumed run will write again, are removed.
    pub fn open(path: &Path, events: &Path, step: usize) -> Result<Self> {
        if let Ok(bytes) = std::fs::read(path) {
            #[derive(Deserialize)]
            struct Line {
                step: usize,
            }
            let kept =
                |line: &&[u8]| serde_json::from_slice::<Line>(line).is_ok_and(|l| l.step <= step);
            let mut file = AtomicFile::create(path).map_err(Error::file(path))?;
            for line in bytes.split(|b| *b == b'\n').filter(kept) {
                file.write_all(line)
                    .and_then(|()| file.write_all(b"\n"))
                    .map_err(Error::file(path))?;
            }
            file.commit().map_err(Error::file(path))?;
        }
        let lines =
            OpenOptions::new().create(true).append(true).open(path).map_err(Error::file(path))?;
        let mut events = EventFile::create(events)?;
        // Also at the first step: a process killed before its first checkpoint may have left events
        // there.
        events.restart(step as u64 + 1)?;
        Ok(Metrics { path: path.to_owned(), lines, events })
    }

    /// Writes a measurement to both.
    pub fn write(&mut self, m: &Measurement) -> Result<()> {
        let mut line = serde_json::to_string(m).expect("JSON of plain values");
        line.push('\n');
        self.lines.write_all(line.as_bytes()).map_err(Error::file(&self.path))?;
        let mut scalars = vec![
            ("loss".to_string(), m.loss),
            ("ce".to_string(), m.ce),
            ("ce_token".to_string(), m.ce_token),
            ("minus_log_j".to_string(), m.minus_log_j),
            ("lr".to_string(), m.lr),
            ("grad_norm".to_string(), m.grad_norm),
            ("p/mean".to_string(), m.p_mean),
            ("weight/mean".to_string(), m.w_mean),
            ("weight/effective_sample_size".to_string(), m.effective_sample_size),
            ("tokens_per_s".to_string(), m.tokens_per_s),
            ("count/infeasible".to_string(), m.infeasible as f64),
            ("count/skipped".to_string(), m.skipped as f64),
        ];
        for (kind, values) in [("p", m.p_quantiles), ("weight", m.w_quantiles)] {
            scalars.extend(
                QUANTILES
                    .iter()
                    .zip(values)
                    .map(|(q, v)| (format!("{kind}/q{:02.0}", q * 100.0), v)),
            );
        }
        if let Some(v) = &m.valid {
            let held_out = [
                ("valid/ce", v.ce),
                ("valid/ce_token", v.ce_token),
                ("valid/p_mean", v.p_mean),
                ("valid/p_median", v.p_median),
            ];
            scalars.extend(held_out.map(|(tag, value)| (tag.to_string(), value)));
        }
        self.events.scalars(m.step as u64, &scalars)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_after_the_checkpoint_and_torn_ones_are_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.metrics.jsonl");
        std::fs::write(&path, "{\"step\":1}\n{\"step\":2}\n{\"step\":3}\n{\"st").unwrap();
        drop(Metrics::open(&path, folder.path(), 2).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "{\"step\":1}\n{\"step\":2}\n");
    }
}
