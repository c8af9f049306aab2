//! Where the time of a study went: `time.md`, made from the steps' stamps and from the clocks
//! beside the cells' logs.

use std::path::Path;

use catamount_base::Lock;
use catamount_evaluate::read_timing;
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::plan::Plan;
use crate::stamp::Stamps;
use crate::step::{Step, Trained};

/// What a model's generator did over all cells of this model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Sampled {
    pub steps: u64,
    pub tokens: u64,
    pub prompts: u64,
    pub prompt_tokens: u64,
    /// Tokens of prompts that began another prompt in the cache.
    #[serde(default)]
    pub known_tokens: u64,
    /// Seconds in which the device had a step to compute.
    pub device: f64,
    /// Seconds of sampling.
    pub total: f64,
}

impl From<catamount_model::Work> for Sampled {
    fn from(work: catamount_model::Work) -> Self {
        Sampled {
            steps: work.steps,
            tokens: work.tokens,
            prompts: work.prompts,
            prompt_tokens: work.prompt_tokens,
            known_tokens: work.known_tokens,
            device: work.device.as_secs_f64(),
            total: work.total.as_secs_f64(),
        }
    }
}

impl Sampled {
    fn read(path: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(path).ok()?).ok()
    }

    /// Adds this run's share to what was done before.
    pub fn add(self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(Error::io(folder))?;
        }
        // Cells of one model may be searched by several processes.
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let _lock = Lock::wait(&path.with_file_name(format!(".{name}.lock")))?;
        let before = Sampled::read(path).unwrap_or_default();
        let sum = Sampled {
            steps: before.steps + self.steps,
            tokens: before.tokens + self.tokens,
            prompts: before.prompts + self.prompts,
            prompt_tokens: before.prompt_tokens + self.prompt_tokens,
            known_tokens: before.known_tokens + self.known_tokens,
            device: before.device + self.device,
            total: before.total + self.total,
        };
        let text = serde_json::to_vec_pretty(&sum).unwrap_or_default();
        catamount_base::write(path, text).map_err(Error::io(path))
    }
}

/// The tables as Markdown.
pub(crate) fn tables(plan: &Plan, folder: &Path) -> String {
    let mut text = String::from("# Where the time went\n\n| step | seconds |\n|---|---|\n");
    let (mut cells, mut models, mut searching) = (String::new(), String::new(), 0.0);
    let stamps = Stamps::new(folder);
    for planned in &plan.steps {
        let trained = match &planned.step {
            Step::Cell(cell) => {
                if let Some(timing) = read_timing(&folder.join(cell.log())) {
                    cells += &format!(
                        "| {} | {:.1} | {:.0} % | {:.0} % | {:.0} % | {:.1} | {:.1} | {:.0} % |\n",
                        planned.name.strip_prefix("cell ").unwrap_or(&planned.name),
                        timing.total,
                        timing.share(timing.policy),
                        timing.share(timing.both),
                        timing.share(timing.waiting),
                        timing.prover,
                        timing.workers,
                        timing.workers_busy(),
                    );
                }
                continue;
            }
            Step::Report => continue,
            Step::WarmUp => Some(Trained::warm_up()),
            Step::Branch(branch) => Some(branch.trained.clone()),
            // Nobody searches with a fold's model.
            Step::Data
            | Step::Trial(_)
            | Step::Calibration(_)
            | Step::Fold(_)
            | Step::Scores(_)
            | Step::Tournament(_)
            | Step::Chosen(_) => None,
        };
        if let Some(seconds) = stamps.last_seconds(planned) {
            text += &format!("| {} | {seconds:.1} |\n", planned.name);
        }
        let Some(trained) = trained else { continue };
        if let Some(s) = Sampled::read(&folder.join(trained.sampling())) {
            searching += s.total;
            models += &format!(
                "| {} | {:.1} | {:.0} % | {} | {:.0} | {:.0} k | {} | {:.0} | {:.0} % |\n",
                trained.name(),
                s.total,
                100.0 * s.device / s.total.max(1e-9),
                s.steps,
                s.tokens as f64 / s.steps.max(1) as f64,
                s.tokens as f64 / s.total.max(1e-9) / 1e3,
                s.prompts,
                s.prompt_tokens as f64 / s.prompts.max(1) as f64,
                100.0 * s.known_tokens as f64 / s.prompt_tokens.max(1) as f64,
            );
        }
    }
    text += &format!("| sampling for all cells | {searching:.1} |\n");
    text += "\nCells of one model are searched together, so their seconds overlap. Policy: some \
     search waited for the policy; both: the \
             prover's threads had work at the same time; prover alone: no search waited for the \
             policy. Prover and search are seconds \
             summed over threads.\n\n\
             | cell | seconds | policy | both | prover alone | prover s | prover and search s | \
             threads busy |\n\
             |---|---|---|---|---|---|---|---|\n";
    text += &cells;
    text += "\nKnown: tokens that another prompt in the cache began with; only the others are \
             computed.\n\n\
             | model | sampling s | device busy | decoding steps | rows a step | tokens/s | \
     prompts | tokens a prompt | of these known |\n\
             |---|---|---|---|---|---|---|---|---|\n";
    text + &models
}

/// Writes the tables into the study's folder.
pub(crate) fn write(plan: &Plan, folder: &Path) -> Result<()> {
    let path = folder.join("time.md");
    catamount_base::write(&path, tables(plan, folder)).map_err(Error::io(&path))
}
