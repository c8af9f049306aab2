//! The fitted distribution over tactics at a state.
//!
//! Three parts are mixed: counts in contexts of growing detail, each smoothed by the one before it
//! (Witten and Bell's estimate); the tactics of the most similar demonstrated states; and every
//! demonstrated tactic by its frequency, so that none ever has probability zero. How much each part
//! counts is learned on a held-out sixteenth of the traces, apart for states whose most detailed
//! known context lies at each level.

use std::collections::HashMap;

use catamount_traces::Trace;
use rayon::prelude::*;

use super::features::{LEVELS, contexts, features};
use super::index::{Index, Scores};
use super::template::Template;
use crate::text::{Hash, View};

/// Tactics followed in one context; the rarer ones are left to the frequencies.
const WIDTH: usize = 192;
/// Similar states looked at.
const NEIGHBOURS: usize = 48;
/// How sharply similarity counts.
const SHARPNESS: i32 = 6;
/// What the mixing weights are before any evidence, and how many held-out steps that is worth.
const PRIOR: [f64; 3] = [0.6, 0.3, 0.1];
const PRIOR_STEPS: f64 = 8.0;
/// The least weight of the frequencies.
const FLOOR: f64 = 0.01;

/// The counts, and how to mix them.
pub(crate) struct Model {
    /// Every demonstrated tactic, most frequent first.
    pub(crate) texts: Vec<String>,
    ids: HashMap<String, u32>,
    /// The probability of each by frequency alone.
    pub(crate) frequency: Vec<f64>,
    templates: Vec<(Template, Option<u32>)>,
    levels: Vec<Level>,
    index: Index,
    /// By demonstrated step.
    step_templates: Vec<u32>,
    /// By the most detailed known level (none is 0): weights of contexts, neighbours and
    /// frequencies.
    weights: [[f64; 3]; LEVELS + 1],
}

/// The counts in the contexts of one level.
#[derive(Default)]
struct Level {
    contexts: HashMap<u64, Context>,
    /// (template, count), most frequent first within a context.
    counts: Vec<(u32, u32)>,
}

#[derive(Clone, Copy)]
struct Context {
    start: u32,
    kept: u32,
    /// How many different tactics there were: the evidence that there are more.
    kinds: u32,
}

/// Some tactics, by number; numbers from `Model::texts.len()` on are in `fresh`.
#[derive(Debug, Default)]
pub(crate) struct Candidates {
    /// (tactic, probability), by tactic.
    pub(crate) known: Vec<(u32, f64)>,
    /// Tactics that no demonstration had in these words.
    pub(crate) fresh: Vec<String>,
    /// The weight of the frequencies, which is included in `known`.
    pub(crate) background: f64,
}

impl Model {
    /// Fits to traces; the mixing weights from a fit to all but a sixteenth of them.
    pub(crate) fn fit(traces: &[&Trace]) -> Model {
        let held_out = |trace: &Trace| {
            Hash::new(99).text(&trace.theorem.name).0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32 & 15
                == 0
        };
        let (held, rest): (Vec<&Trace>, Vec<&Trace>) =
            traces.iter().copied().partition(|trace| held_out(trace));
        let mut model = Model::count(traces);
        if !held.is_empty() && !rest.is_empty() {
            model.weights = Model::count(&rest).learn_weights(&held);
        }
        model
    }

    fn count(traces: &[&Trace]) -> Model {
        let steps: Vec<(&str, &str)> = traces
            .iter()
            .flat_map(|trace| {
                trace.steps.iter().map(|step| (step.state.as_str(), step.tactic.as_str()))
            })
            .collect();
        let mut tally: HashMap<&str, u32> = HashMap::new();
        steps.iter().for_each(|(_, tactic)| *tally.entry(tactic).or_default() += 1);
        let mut tally: Vec<(&str, u32)> = tally.into_iter().collect();
        tally.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(b.0)));
        let frequency =
            tally.iter().map(|(_, count)| f64::from(*count) / steps.len() as f64).collect();
        let texts: Vec<String> = tally.into_iter().map(|(text, _)| text.to_owned()).collect();
        let ids: HashMap<String, u32> = texts.iter().cloned().zip(0..).collect();

        let seen: Vec<(Template, [u64; LEVELS], Vec<u64>)> = steps
            .par_iter()
            .map(|(state, tactic)| {
                let view = View::new(state);
                (Template::new(tactic, &view), contexts(state, &view), features(&view))
            })
            .collect();
        let mut numbers: HashMap<Template, u32> = HashMap::new();
        let mut templates: Vec<(Template, Option<u32>)> = Vec::new();
        let (mut step_templates, mut step_contexts, mut step_features) =
            (Vec::new(), Vec::new(), Vec::new());
        for (template, contexts, features) in seen {
            let number = *numbers.entry(template).or_insert_with_key(|template| {
                templates.push((template.clone(), template.literal().map(|text| ids[text])));
                templates.len() as u32 - 1
            });
            step_templates.push(number);
            step_contexts.push(contexts);
            step_features.push(features);
        }
        let levels = (0..LEVELS)
            .into_par_iter()
            .map(|level| {
                Level::new(
                    step_contexts
                        .iter()
                        .map(|contexts| contexts[level])
                        .zip(step_templates.iter().copied()),
                )
            })
            .collect();
        let index = Index::new(&step_features);
        Model {
            texts,
            ids,
            frequency,
            templates,
            levels,
            index,
            step_templates,
            weights: [PRIOR; LEVELS + 1],
        }
    }

    /// The number of a demonstrated tactic.
    pub(crate) fn id(&self, tactic: &str) -> Option<u32> {
        self.ids.get(tactic).copied()
    }

    /// The tactics that anything but plain frequency speaks for at a state.
    pub(crate) fn candidates(&self, state: &str, scores: &mut Scores) -> Candidates {
        let parts = self.parts(state, scores);
        let mut weights = self.weights[parts.level];
        if parts.chain.is_empty() {
            weights[0] = 0.0;
        }
        if parts.neighbours.is_empty() {
            weights[1] = 0.0;
        }
        let total: f64 = weights.iter().sum();
        let weights = weights.map(|weight| weight / total);
        let mut known = merge(
            parts
                .chain
                .iter()
                .map(|(id, p)| (*id, p * weights[0]))
                .chain(parts.neighbours.iter().map(|(id, p)| (*id, p * weights[1]))),
        );
        for (id, p) in &mut known {
            *p += self.frequency.get(*id as usize).map_or(0.0, |frequency| weights[2] * frequency);
        }
        Candidates { known, fresh: parts.fresh, background: weights[2] }
    }

    fn parts(&self, state: &str, scores: &mut Scores) -> Parts {
        let view = View::new(state);
        let mut rendered =
            Rendered { model: self, view: &view, done: HashMap::new(), fresh: Vec::new() };
        let mut chain: Vec<(u32, f64)> = Vec::new();
        let mut level = 0;
        for (at, context) in contexts(state, &view).into_iter().enumerate() {
            let Some(Context { start, kept, kinds }) =
                self.levels[at].contexts.get(&context).copied()
            else {
                continue;
            };
            let counts = &self.levels[at].counts[start as usize..(start + kept) as usize];
            let counts: Vec<(u32, f64)> = counts
                .iter()
                .filter_map(|(template, count)| Some((rendered.id(*template)?, f64::from(*count))))
                .collect();
            let total: f64 = counts.iter().map(|(_, count)| count).sum();
            if total == 0.0 {
                continue;
            }
            level = at + 1;
            // The first known context has nothing below it but the frequencies, which are mixed in
            // at the end.
            let below =
                if chain.is_empty() { 0.0 } else { f64::from(kinds) / (total + f64::from(kinds)) };
            chain = merge(
                chain
                    .into_iter()
                    .map(|(id, p)| (id, p * below))
                    .chain(counts.into_iter().map(|(id, n)| (id, (1.0 - below) * n / total))),
            );
        }
        let nearest = self.index.nearest(&features(&view), NEIGHBOURS, scores);
        let best = nearest.first().map_or(1.0, |(_, score)| *score);
        let votes: Vec<(u32, f64)> = nearest
            .into_iter()
            .filter_map(|(step, score)| {
                let id = rendered.id(self.step_templates[step as usize])?;
                Some((id, f64::from(score / best).powi(SHARPNESS)))
            })
            .collect();
        let total: f64 = votes.iter().map(|(_, vote)| vote).sum();
        let neighbours = merge(votes.into_iter().map(|(id, vote)| (id, vote / total)));
        Parts { level, chain, neighbours, fresh: rendered.fresh }
    }

    /// Expectation maximisation of the held-out steps' likelihood in the mixing weights.
    fn learn_weights(&self, held: &[&Trace]) -> [[f64; 3]; LEVELS + 1] {
        let steps: Vec<(&str, &str)> = held
            .iter()
            .flat_map(|trace| {
                trace.steps.iter().map(|step| (step.state.as_str(), step.tactic.as_str()))
            })
            .collect();
        let seen: Vec<(usize, [f64; 3])> = steps
            .par_iter()
            .map_init(Scores::default, |scores, (state, tactic)| {
                let parts = self.parts(state, scores);
                let id = self.id(tactic).or_else(|| {
                    let at = parts.fresh.iter().position(|fresh| fresh == tactic)?;
                    Some((self.texts.len() + at) as u32)
                });
                let find = |part: &[(u32, f64)]| {
                    id.and_then(|id| {
                        Some(part[part.binary_search_by_key(&id, |pair| pair.0).ok()?].1)
                    })
                };
                let frequency = id.and_then(|id| self.frequency.get(id as usize).copied());
                let p = [find(&parts.chain), find(&parts.neighbours), frequency]
                    .map(|p| p.unwrap_or(0.0));
                (parts.level, p)
            })
            .collect();
        let mut weights = [PRIOR; LEVELS + 1];
        for _ in 0..30 {
            let mut shares = [PRIOR.map(|weight| weight * PRIOR_STEPS); LEVELS + 1];
            for (level, p) in &seen {
                let joint: Vec<f64> =
                    p.iter().zip(&weights[*level]).map(|(p, weight)| p * weight).collect();
                let total: f64 = joint.iter().sum();
                if total > 0.0 {
                    shares[*level]
                        .iter_mut()
                        .zip(joint)
                        .for_each(|(share, joint)| *share += joint / total);
                }
            }
            weights = shares.map(|share| {
                let total: f64 = share.iter().sum();
                let last = (share[2] / total).max(FLOOR);
                let others = (share[0] + share[1]) / (1.0 - last);
                [share[0] / others, share[1] / others, last]
            });
        }
        weights
    }
}

struct Parts {
    level: usize,
    chain: Vec<(u32, f64)>,
    neighbours: Vec<(u32, f64)>,
    fresh: Vec<String>,
}

/// Templates filled in at one state, each once.
struct Rendered<'a> {
    model: &'a Model,
    view: &'a View<'a>,
    done: HashMap<u32, Option<u32>>,
    fresh: Vec<String>,
}

impl Rendered<'_> {
    fn id(&mut self, number: u32) -> Option<u32> {
        let (template, literal) = &self.model.templates[number as usize];
        if literal.is_some() {
            return *literal;
        }
        if let Some(id) = self.done.get(&number) {
            return *id;
        }
        let id = template.render(self.view).map(|text| {
            self.model.id(&text).unwrap_or_else(|| {
                let at = self.fresh.iter().position(|fresh| *fresh == text).unwrap_or_else(|| {
                    self.fresh.push(text);
                    self.fresh.len() - 1
                });
                (self.model.texts.len() + at) as u32
            })
        });
        self.done.insert(number, id);
        id
    }
}

impl Level {
    fn new(pairs: impl Iterator<Item = (u64, u32)>) -> Self {
        let mut pairs: Vec<(u64, u32)> = pairs.collect();
        pairs.sort_unstable();
        let mut level = Level::default();
        for context in pairs.chunk_by(|a, b| a.0 == b.0) {
            let mut counts: Vec<(u32, u32)> = context
                .chunk_by(|a, b| a.1 == b.1)
                .map(|same| (same[0].1, same.len() as u32))
                .collect();
            counts.sort_unstable_by(|a, b| b.1.cmp(&a.1).then(a.0.cmp(&b.0)));
            let kinds = counts.len() as u32;
            counts.truncate(WIDTH);
            level.contexts.insert(
                context[0].0,
                Context { start: level.counts.len() as u32, kept: counts.len() as u32, kinds },
            );
            level.counts.append(&mut counts);
        }
        level
    }
}

/// Sums the probabilities of the same tactic. The result is in the order of the tactics, so that
/// sums come out the same always.
fn merge(pairs: impl Iterator<Item = (u32, f64)>) -> Vec<(u32, f64)> {
    let mut pairs: Vec<(u32, f64)> = pairs.collect();
    pairs.sort_by_key(|pair| pair.0);
    pairs.dedup_by(|from, into| {
        let same = from.0 == into.0;
        if same {
            into.1 += from.1;
        }
        same
    });
    pairs
}
