//! What a step needs of a machine: how many processors, which part of a card, how much memory.

use std::path::Path;

use catamount_model::Config;
use serde::{Deserialize, Serialize};

use crate::experiment::{Environment, Experiment, ModelChoice};
use crate::step::Step;

/// What a step needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Needs {
    /// Processors.
    pub cpus: f64,
    /// Cards, where the models compute on cards; a part of one for a small model.
    pub gpus: f64,
    /// Bytes of a card's memory.
    #[serde(default)]
    pub card: u64,
    /// Bytes of the machine's memory: the program, the weights on their way to a card, provers.
    pub memory: u64,
    /// Prover workers among all this, which it does without where provers are elsewhere.
    #[serde(default)]
    pub provers: u64,
}

/// Memory of the card that parts are parts of, where nobody knows which cards there are.
pub const CARD: u64 = 80_000_000_000;
/// A Lean worker's memory.
const LEAN_WORKER: u64 = 650 << 20;
/// What everything takes beside the models: a database, traces, the program.
const PROGRAM: u64 = 512 << 20;
/// Weights of a pretrained model that is not here to be looked at: 7 billion, in 16 bits.
const UNKNOWN: u64 = 14 << 30;

impl Needs {
    /// Of a step.
    pub fn of(experiment: &Experiment, step: &Step) -> Self {
        let weights = weights(experiment);
        let adapted = experiment.branch.lora.is_some();
        let (trains, searches) = match step {
            Step::WarmUp | Step::Fold(_) | Step::Branch(_) => (true, false),
            Step::Trial(_) | Step::Tournament(_) | Step::Cell(_) | Step::Chosen(_) => (false, true),
            Step::Scores(_) | Step::Calibration(_) => (false, false),
            Step::Data | Step::Report => {
                return Needs { cpus: 1.0, memory: PROGRAM, ..Needs::default() };
            }
        };
        // Trained whole, a model has a gradient and two moments beside itself; activations, or
        // keys and values, come on top.
        let model = match (trains, adapted) {
            (true, false) => 5 * weights,
            (true, true) => 2 * weights,
            (false, _) => weights + weights / 2,
        };
        let metamath = matches!(experiment.data.environment, Environment::Metamath { .. });
        let lean = searches && !metamath;
        let provers = if lean { experiment.lean_workers() as u64 } else { 0 };
        Needs {
            cpus: 1.0 + provers as f64,
            gpus: part(model, CARD),
            card: model,
            memory: PROGRAM + weights + provers * LEAN_WORKER,
            provers,
        }
    }

    /// Of a prover worker that stands alone.
    pub fn of_prover(experiment: &Experiment) -> Self {
        let memory = match experiment.data.environment {
            Environment::Lean { .. } | Environment::LeanCorpora { .. } => LEAN_WORKER,
            Environment::Metamath { .. } => PROGRAM,
        };
        Needs { cpus: 1.0, memory, provers: 1, ..Needs::default() }
    }

    /// What a step needs where nothing computes on cards.
    pub fn without_cards(self) -> Self {
        Needs { gpus: 0.0, card: 0, memory: self.memory + self.card, ..self }
    }

    /// What a step needs where cards have so many bytes. It has its part of the smallest that holds
    /// it, and all of one where none does.
    pub fn on_cards(self, cards: &[u64]) -> Self {
        if self.card == 0 {
            return self;
        }
        let holds = cards.iter().copied().filter(|&card| card >= self.card).min();
        Needs { gpus: holds.map_or(1.0, |card| part(self.card, card)), ..self }
    }

    /// What a step needs where provers are elsewhere.
    pub fn without_provers(self) -> Self {
        Needs {
            cpus: self.cpus - self.provers as f64,
            memory: self.memory - self.provers * LEAN_WORKER,
            provers: 0,
            ..self
        }
    }
}

/// The smallest of 1/8, 1/4, 1/2 and 1 of a card that holds so much, with a quarter to spare.
fn part(bytes: u64, card: u64) -> f64 {
    let share = 1.25 * bytes as f64 / card as f64;
    [0.125, 0.25, 0.5].into_iter().find(|part| share <= *part).unwrap_or(1.0)
}

/// Bytes of a model's weights.
fn weights(experiment: &Experiment) -> u64 {
    match &experiment.model {
        ModelChoice::Scratch { hidden, layers, vocab, positions, .. } => {
            4 * Config::small(*vocab, *hidden, *layers, *positions).parameters()
        }
        ModelChoice::Pretrained { base } => size(Path::new(base)).unwrap_or(UNKNOWN),
    }
}

/// Bytes of a file of weights, or of those in a folder; none if there are none.
fn size(path: &Path) -> Option<u64> {
    if path.is_file() {
        return path.metadata().ok().map(|metadata| metadata.len());
    }
    let entries = std::fs::read_dir(path).ok()?.flatten();
    let weights = entries.filter(|e| e.path().extension().is_some_and(|x| x == "safetensors"));
    let bytes: u64 = weights.filter_map(|entry| Some(entry.metadata().ok()?.len())).sum();
    (bytes > 0).then_some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_models_share_a_card_and_large_ones_do_not() {
        let parts = |card| [1, 10, 25, 100].map(|gb| part(gb << 30, card));
        assert_eq!(parts(CARD), [0.125, 0.25, 0.5, 1.0]);
        assert_eq!(parts(24 << 30), [0.125, 1.0, 1.0, 1.0]);
    }

    #[test]
    fn a_part_is_of_the_smallest_card_that_holds_the_step() {
        let needs = Needs { card: 30 << 30, gpus: 0.5, memory: 1, ..Needs::default() };
        assert_eq!(needs.on_cards(&[80 << 30, 24 << 30]).gpus, 0.5);
        assert_eq!(needs.on_cards(&[48 << 30, 80 << 30]).gpus, 1.0);
        assert_eq!(needs.on_cards(&[141 << 30]).gpus, 0.5);
        assert_eq!(needs.on_cards(&[24 << 30]).gpus, 1.0);
        // On a processor the model lies in the machine's memory.
        assert_eq!(needs.without_cards().memory, 1 + (30 << 30));
    }

    #[test]
    fn a_step_whose_provers_are_elsewhere_needs_no_room_for_them() {
        let experiment = crate::preset("lean-demo").unwrap();
        let plan = crate::Plan::new(&experiment, &crate::Inputs::named("source")).unwrap();
        let cell = plan.steps.iter().find(|p| matches!(p.step, Step::Cell(_))).unwrap();
        let here = Needs::of(&experiment, &cell.step);
        let elsewhere = here.without_provers();
        assert_eq!((here.cpus, elsewhere.cpus, elsewhere.provers), (3.0, 1.0, 0));
        assert_eq!(here.memory - elsewhere.memory, 2 * LEAN_WORKER);
        assert_eq!(Needs::of_prover(&experiment).memory, LEAN_WORKER);
        let mut sixteen = experiment.clone();
        sixteen.data.workers = Some(16);
        assert_eq!(Needs::of(&sixteen, &cell.step).cpus, 17.0);
    }
}
