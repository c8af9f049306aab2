//! Decoding steps: one more token for every sample in flight.

use std::time::Instant;

use catamount_search::{Place, Step, Stream, Urn};

use super::texts::Drawn;
use super::work::Work;
use crate::forward::Attend;
use crate::prefix::Prefix;
use crate::{Activations, Backend, Cache, Draws, Keep, Kind, Model, Result, Sampling};

/// A sample being decoded.
pub(super) struct Row {
    pub job: usize,
    pub sample: usize,
    pub stream: Stream,
    pub prefix: Prefix,
    pub own: u32,
    /// Fed next; its own row is the last of `fed`.
    pub token: u32,
    pub fed: usize,
    pub tokens: Vec<u32>,
    pub log_p: f64,
    /// Its probability under the distribution that is sampled from.
    pub share: f64,
    /// Its row in the step on the device.
    pub lane: Option<usize>,
    /// Whether its last token has been drawn.
    pub done: bool,
    /// Drawn without replacement.
    pub walk: Option<Walk>,
}

/// The way of a sample through an urn.
pub(super) struct Walk {
    urn: Urn,
    /// Where it is among the sequences drawn before; none once it is like none of them.
    place: Option<Place>,
    steps: Vec<Step>,
}

impl Walk {
    pub fn new(urn: Urn) -> Self {
        Walk { urn, place: Some(Place::ROOT), steps: Vec::with_capacity(16) }
    }

    fn advance(&mut self, token: u32, step: Step) {
        self.steps.push(step);
        self.place = self.place.and_then(|place| self.urn.step(place, token));
    }

    /// Takes the whole sequence out of the urn.
    fn finish(self, tokens: &[u32]) {
        self.urn.take_tokens(tokens.iter().copied().zip(self.steps));
    }
}

/// A sample whose last token has been drawn.
pub(super) struct Finished {
    pub job: usize,
    pub sample: usize,
    pub own: u32,
    pub drawn: Drawn,
}

/// What makes a token the last of its sample.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// This token.
    pub token: u32,
    /// Or this many of them.
    pub length: usize,
}

/// What a step reads from the host, and what comes back; kept to be filled again.
#[derive(Default)]
struct Lists {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    slots: Vec<u32>,
    spans: Vec<u32>,
    draws: Draws,
}

/// Computes decoding steps.
pub(super) struct Decoding<B: Backend> {
    acts: Activations<B>,
    logits: B::Tensor,
    slots: B::Index,
    spans: B::Index,
    lists: Lists,
    /// Rows of every step, where they are fixed.
    fixed: Option<usize>,
    /// When the step on the device was queued.
    queued: Option<Instant>,
    /// Key of the first recording; the low 32 bits are free.
    recording: u64,
}

impl<B: Backend> Decoding<B> {
    /// Plans the buffers for steps of up to `batch` samples; `fixed` makes all of them that long.
    pub fn new(model: &Model<B>, batch: usize, fixed: bool, recording: u64) -> Result<Self> {
        let b = &*model.backend;
        let rows = b.decode_rows(batch);
        Ok(Decoding {
            acts: Activations::new(model, rows, Keep::Nothing)?,
            logits: b.zeros(rows * model.config.vocab, Kind::Exact)?,
            slots: b.indices(rows)?,
            spans: b.indices(4 * rows)?,
            lists: Lists::default(),
            fixed: fixed.then_some(rows),
            queued: None,
            recording,
        })
    }

    /// Rows of every step, where they are fixed: another number may have other rounding.
    pub fn fixed_rows(&self) -> Option<usize> {
        self.fixed
    }

    /// Whether a step is on the device.
    pub fn is_queued(&self) -> bool {
        self.queued.is_some()
    }

    /// Forgets the step on the device.
    pub fn forget(&mut self) {
        self.queued = None;
    }

    /// Lays out the next step: all that does not depend on the tokens of the step on the device.
    pub fn prepare(&mut self, model: &Model<B>, rows: &[Row], max_tokens: usize) -> Result<()> {
        if rows.is_empty() {
            return Ok(());
        }
        let Lists { positions, slots, spans, .. } = &mut self.lists;
        for list in [&mut *positions, slots, spans] {
            list.clear();
        }
        for row in rows {
            let fed = row.fed as u32;
            // The step on the device draws its last token for certain: there is no room for
            // another.
            let over = row.fed >= max_tokens;
            positions.push(row.prefix.len + fed);
            slots.push(if over { u32::MAX } else { row.own + fed });
            spans.extend(if over {
                [0; 4]
            } else {
                [row.prefix.first, row.prefix.len, row.own, fed + 1]
            });
        }
        let padded = self.fixed.unwrap_or(rows.len());
        for (list, len, nothing) in [(&mut *positions, 1, 0), (slots, 1, u32::MAX), (spans, 4, 0)] {
            list.resize(len * padded, nothing);
        }
        let b = &*model.backend;
        b.upload_indices(positions, &mut self.acts.packed.positions)?;
        b.upload_indices(slots, &mut self.slots)?;
        b.upload_indices(spans, &mut self.spans)
    }

    /// Queues the step that was laid out for these rows.
    pub fn launch(
        &mut self,
        model: &Model<B>,
        cache: &mut Cache<B>,
        rows: &mut [Row],
        work: &mut Work,
    ) -> Result<()> {
        let n = rows.len();
        if n == 0 {
            return Ok(());
        }
        let (b, padded) = (&*model.backend, self.fixed.unwrap_or(n));
        let Lists { tokens, draws, .. } = &mut self.lists;
        tokens.clear();
        draws.clear();
        for (lane, row) in rows.iter_mut().enumerate() {
            tokens.push(row.token);
            draws.begin(
                (row.stream.uniform(row.tokens.len() as u64) as f32).min(1.0 - f32::EPSILON / 2.0),
            );
            if let Some(Walk { urn, place: Some(place), .. }) = &row.walk {
                urn.show(|taken| draws.make_all_scarce(taken.after(*place)));
            }
            row.lane = Some(lane);
            row.fed += 1;
            work.tokens += u64::from(!row.done);
        }
        tokens.resize(padded, 0);
        b.upload_indices(tokens, &mut self.acts.packed.tokens)?;
        self.acts.packed.n = padded;
        let Decoding { acts, logits, slots, spans, .. } = self;
        let queued = Instant::now();
        b.replay(self.recording | padded as u64, &mut || {
            model.run(acts, &mut Attend::Decode { cache, slots, spans })?;
            b.linear(padded, model.head_map(), &acts.h, logits)
        })?;
        work.steps += 1;
        self.queued = Some(queued);
        Ok(())
    }

    /// Waits for the tokens of the step on the device, if there is one.
    pub fn draw(
        &mut self,
        model: &Model<B>,
        sampling: Sampling,
        last: Last,
        rows: &mut [Row],
        finished: &mut Vec<Finished>,
        work: &mut Work,
    ) -> Result<()> {
        let Some(queued) = self.queued.take() else { return Ok(()) };
        let draws = &mut self.lists.draws;
        model.backend.sample(model.config.vocab, &self.logits, sampling, draws)?;
        work.device += queued.elapsed();
        for row in rows {
            let Some(lane) = row.lane.take().filter(|_| !row.done) else { continue };
            row.log_p += f64::from(draws.log_p[lane]);
            row.share *= f64::from(draws.p[lane]);
            row.token = draws.tokens[lane];
            row.tokens.push(row.token);
            if let Some(walk) = &mut row.walk {
                walk.advance(row.token, Step { p: draws.p[lane], rest: draws.rest[lane] });
            }
            if row.token == last.token || row.tokens.len() == last.length {
                row.done = true;
                let tokens = std::mem::take(&mut row.tokens);
                if let Some(walk) = row.walk.take() {
                    walk.finish(&tokens);
                }
                let drawn = Drawn { tokens, log_p: row.log_p, share: row.share };
                finished.push(Finished { job: row.job, sample: row.sample, own: row.own, drawn });
            }
        }
        Ok(())
    }
}
