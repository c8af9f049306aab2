//! A policy that needs no model: counts of what was demonstrated at states like this one.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use catamount_base::Content;
use catamount_search::{
    DRAWN_OUT, Fault, Identity, Policy, Request, RequestId, Sample, Stream, Urn,
};
use catamount_traces::{Trace, read_any};
use rayon::prelude::*;

use index::Scores;
use model::Model;

mod features;
mod index;
mod model;
mod template;

/// Draws that may repeat a tactic before what is left is written out: the one takes longer the less
/// is left, the other always the same.
const TRIES: u64 = 64;

/// States whose distribution is kept: searches come back to the same states.
const KEPT: usize = 4096;

/// Why no n-gram policy could be made.
#[derive(Debug, thiserror::Error)]
pub enum NgramError {
    /// The traces could not be read.
    #[error(transparent)]
    Traces(#[from] catamount_traces::Error),
    /// There is nothing to count.
    #[error("there are no steps to fit an n-gram policy to")]
    Empty,
    /// The temperature makes no distribution.
    #[error("the temperature must be a positive number, not {0}")]
    Temperature(f64),
}

/// Tactics by frequency at similar states. Every demonstrated tactic has a positive probability at
/// every state; arguments that a demonstration took from its state are taken from the new state.
/// The probabilities add up to 1, the reported ones are at temperature 1 whatever temperature is
/// sampled at, and the same traces give the same policy.
pub struct Ngram {
    model: Model,
    /// Of the demonstrations.
    content: Content,
    temperature: f64,
    /// Running sums of frequency^(1/temperature), for the tactics that no context speaks for.
    tempered: Vec<f64>,
    pending: Vec<Request>,
    kept: HashMap<String, Arc<Distribution>>,
}

/// The tactics of one state, ready to be drawn from.
struct Distribution {
    /// (tactic, probability at temperature 1), by tactic.
    known: Vec<(u32, f64)>,
    fresh: Vec<String>,
    /// Running sums of probability^(1/temperature) over `known`.
    sums: Vec<f64>,
    /// The weight of all other demonstrated tactics together, on the same scale.
    tail: f64,
    /// The share of plain frequency in every probability.
    background: f64,
}

impl Ngram {
    /// Fits to traces.
    pub fn fit<'a>(
        traces: impl IntoIterator<Item = &'a Trace>,
        temperature: f64,
    ) -> Result<Self, NgramError> {
        if !(temperature.is_finite() && temperature > 0.0) {
            return Err(NgramError::Temperature(temperature));
        }
        let traces: Vec<&Trace> =
            traces.into_iter().filter(|trace| !trace.steps.is_empty()).collect();
        if traces.is_empty() {
            return Err(NgramError::Empty);
        }
        let steps = traces.iter().flat_map(|trace| &trace.steps);
        let content = Content::of_texts(steps.flat_map(|step| [&step.state, &step.tactic]));
        let model = Model::fit(&traces);
        let tempered = running_sums(model.frequency.iter().map(|p| p.powf(1.0 / temperature)));
        Ok(Ngram {
            model,
            content,
            temperature,
            tempered,
            pending: Vec::new(),
            kept: HashMap::new(),
        })
    }

    /// Fits to a file of traces in any format.
    pub fn open(path: &Path, temperature: f64) -> Result<Self, NgramError> {
        Ngram::fit(&read_any(path)?.traces, temperature)
    }

    /// log p of a tactic at a state; minus infinity for one that was never demonstrated and that no
    /// template gives.
    pub fn log_p(&self, state: &str, tactic: &str) -> f64 {
        self.distribution(state, &mut Scores::default()).log_p(&self.model, tactic)
    }

    /// The tactics that the state itself speaks for, most probable first, with their probabilities.
    pub fn top(&self, state: &str, count: usize) -> Vec<(String, f64)> {
        let distribution = self.distribution(state, &mut Scores::default());
        let mut known = distribution.known.clone();
        known.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        known
            .into_iter()
            .take(count)
            .map(|(id, p)| (distribution.text(&self.model, id).to_owned(), p))
            .collect()
    }

    fn distribution(&self, state: &str, scores: &mut Scores) -> Distribution {
        let candidates = self.model.candidates(state, scores);
        let power = 1.0 / self.temperature;
        let sums = running_sums(candidates.known.iter().map(|(_, p)| p.powf(power)));
        let demonstrated =
            || candidates.known.iter().filter_map(|(id, _)| self.model.frequency.get(*id as usize));
        let spoken_for: f64 = demonstrated().map(|p| p.powf(power)).sum();
        // Rounding must not leave a tail where every tactic is spoken for: nothing could be drawn
        // from it.
        let all_known = demonstrated().count() == self.model.frequency.len();
        let rest = self.tempered.last().copied().unwrap_or(0.0) - spoken_for;
        let tail = if all_known { 0.0 } else { rest.max(0.0) * candidates.background.powf(power) };
        Distribution {
            known: candidates.known,
            fresh: candidates.fresh,
            sums,
            tail,
            background: candidates.background,
        }
    }

    fn draw(&self, distribution: &Distribution, stream: Stream) -> Sample {
        let (id, p) = self.pick(distribution, stream);
        distribution.sample(&self.model, id, p)
    }

    fn pick(&self, distribution: &Distribution, stream: Stream) -> (u32, f64) {
        let head = distribution.sums.last().copied().unwrap_or(0.0);
        let point = stream.uniform(0) * (head + distribution.tail);
        let drawn = if point < head { Some(pick(&distribution.sums, point)) } else { None };
        match drawn {
            Some(at) => distribution.known[at],
            None => self.draw_tail(distribution, stream),
        }
    }

    /// Without replacement: what is drawn before is passed over, which leaves the others in their
    /// proportions. Fewer than wanted if there are no more.
    fn draw_distinct(
        &self,
        distribution: &Distribution,
        stream: Stream,
        wanted: usize,
        urn: &Urn,
    ) -> Vec<Sample> {
        let whole = distribution.sums.last().copied().unwrap_or(0.0) + distribution.tail;
        let is_new = |id: u32| !urn.has_taken(distribution.text(&self.model, id));
        let mut samples = Vec::with_capacity(wanted);
        while samples.len() < wanted {
            let stream = stream.child(urn.next_draw());
            let mut tries = (0..TRIES).map(|n| self.pick(distribution, stream.child(n)));
            let drawn = tries.find(|(id, _)| is_new(*id));
            let Some((id, p)) = drawn.or_else(|| self.pick_left(distribution, stream, &is_new))
            else {
                urn.set_left(0.0);
                return samples;
            };
            let sample = distribution.sample(&self.model, id, p);
            urn.take(&sample.tactic, p.powf(1.0 / self.temperature) / whole);
            samples.push(sample);
        }
        urn.set_left((1.0 - urn.taken()).max(f64::from(DRAWN_OUT)));
        samples
    }

    /// A tactic among those that are left, each by its probability at the temperature.
    fn pick_left(
        &self,
        distribution: &Distribution,
        stream: Stream,
        is_new: &dyn Fn(u32) -> bool,
    ) -> Option<(u32, f64)> {
        let is_tail =
            |id: &u32| distribution.known.binary_search_by_key(id, |pair| pair.0).is_err();
        let frequency = |id: u32| self.model.frequency[id as usize];
        let tail = (0..self.model.texts.len() as u32).filter(is_tail);
        let tail = tail.map(|id| (id, distribution.background * frequency(id)));
        let all = distribution.known.iter().copied().chain(tail);
        let left: Vec<(u32, f64)> = all.filter(|(id, p)| *p > 0.0 && is_new(*id)).collect();
        let sums = running_sums(left.iter().map(|(_, p)| p.powf(1.0 / self.temperature)));
        let point = stream.child(TRIES).uniform(0) * sums.last()?;
        Some(left[pick(&sums, point)])
    }

    /// A tactic that the state does not speak for, by frequency: draws until one is found, which
    /// keeps probabilities exact.
    fn draw_tail(&self, distribution: &Distribution, stream: Stream) -> (u32, f64) {
        let all = self.tempered.last().copied().unwrap_or(0.0);
        let is_tail =
            |id: &u32| distribution.known.binary_search_by_key(id, |pair| pair.0).is_err();
        // The tail may be so thin that drawing would go on for long; after this many misses any
        // member of it will do.
        let drawn =
            (1..4096).map(|n| pick(&self.tempered, stream.uniform(n) * all) as u32).find(is_tail);
        let id =
            drawn.or_else(|| (0..self.model.texts.len() as u32).rev().find(is_tail)).unwrap_or(0);
        (id, distribution.background * self.model.frequency[id as usize])
    }
}

impl Distribution {
    fn sample(&self, model: &Model, id: u32, p: f64) -> Sample {
        let tactic = self.text(model, id).to_owned();
        let tokens = tactic.split_whitespace().count() + 1;
        Sample { tactic, log_p: p.ln(), tokens }
    }

    fn text<'a>(&'a self, model: &'a Model, id: u32) -> &'a str {
        match model.texts.get(id as usize) {
            Some(text) => text,
            None => &self.fresh[id as usize - model.texts.len()],
        }
    }

    fn log_p(&self, model: &Model, tactic: &str) -> f64 {
        let fresh = || {
            self.fresh
                .iter()
                .position(|fresh| fresh == tactic)
                .map(|at| (model.texts.len() + at) as u32)
        };
        let Some(id) = model.id(tactic).or_else(fresh) else { return f64::NEG_INFINITY };
        match self.known.binary_search_by_key(&id, |pair| pair.0) {
            Ok(at) => self.known[at].1.ln(),
            Err(_) => (self.background * model.frequency[id as usize]).ln(),
        }
    }
}

impl Policy for Ngram {
    fn submit(&mut self, request: Request) {
        self.pending.push(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let pending = std::mem::take(&mut self.pending);
        if self.kept.len() > KEPT {
            self.kept.clear();
        }
        let this = &*self;
        let answer = |scores: &mut Scores, request: &Request| {
            let kept = this.kept.get(&request.state).cloned();
            let distribution =
                kept.unwrap_or_else(|| Arc::new(this.distribution(&request.state, scores)));
            let (stream, wanted) = (request.stream, request.samples);
            let samples = match &request.urn {
                None => {
                    (0..wanted as u64).map(|n| this.draw(&distribution, stream.child(n))).collect()
                }
                Some(urn) => this.draw_distinct(&distribution, stream, wanted, urn),
            };
            (distribution, samples)
        };
        let answers: Vec<(Arc<Distribution>, Vec<Sample>)> = match pending.len() {
            // One question is not worth waking the other threads for.
            1 => vec![answer(&mut Scores::default(), &pending[0])],
            _ => pending.par_iter().map_init(Scores::default, answer).collect(),
        };
        let mut ready = Vec::with_capacity(pending.len());
        for (request, (distribution, samples)) in pending.into_iter().zip(answers) {
            self.kept.insert(request.state, distribution);
            ready.push((request.id, Ok(samples)));
        }
        ready
    }

    fn draws_without_replacement(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let (tactics, temperature) = (self.model.texts.len(), self.temperature);
        format!(
            "ngram (contexts, neighbours and frequencies; {tactics} tactics; temperature \
             {temperature})"
        )
    }

    fn identity(&self) -> Identity {
        Identity::new("ngram")
            .with("demonstrations", &self.content)
            .with("temperature", self.temperature)
    }
}

fn running_sums(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut sum = 0.0;
    values
        .map(|value| {
            sum += value;
            sum
        })
        .collect()
}

/// The first place whose running sum lies above the point.
fn pick(sums: &[f64], point: f64) -> usize {
    sums.partition_point(|sum| *sum <= point).min(sums.len() - 1)
}
