//! Sampling tactics: many questions in flight share every decoding step, and leave it as they finish.
//!
//! A question's state is computed once for its samples. Sample `i` draws its `t`-th token with the `t`-th number of its own
//! stream, and a row's logits do not depend on the other rows, so the answer is a function of the question alone.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};

use catamount_search::{Fault, Policy, Request, RequestId, Sample, Stream};

use crate::forward::Attend;
use crate::prefix::{Prefix, Prefixes};
use crate::{Activations, Adapter, Backend, Batch, Cache, Error, Keep, Kind, Model, Result, Sampling, Tokenizer};

/// How to sample, and how much memory to spend on it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct GeneratorConfig {
    /// How tokens are drawn.
    pub sampling: Sampling,
    /// Longest tactic, in tokens; the end token counts.
    pub max_tokens: usize,
    /// Longest prompt, in tokens; longer states are cut off at their end.
    pub max_prompt: usize,
    /// Samples decoded together.
    pub batch: usize,
    /// Token rows of the key/value cache.
    pub cache: usize,
}

impl Default for GeneratorConfig {
    fn default() -> Self {
        let sampling = Sampling { temperature: 1.0, top_p: 1.0 };
        GeneratorConfig { sampling, max_tokens: 128, max_prompt: 1024, batch: 64, cache: 32_768 }
    }
}

/// A question being answered.
struct Job {
    id: RequestId,
    stream: Stream,
    /// The prompt but for its last token, which every sample decodes itself.
    prefix: Vec<u32>,
    last: u32,
    place: Option<Prefix>,
    /// Samples that have been started, and those that are done.
    started: usize,
    samples: Vec<Option<Sample>>,
    open: usize,
}

/// A sample being decoded.
struct Row {
    job: usize,
    sample: usize,
    stream: Stream,
    prefix: Prefix,
    own: u32,
    /// Fed next; its own row is the last of `fed`.
    token: u32,
    fed: usize,
    tokens: Vec<u32>,
    log_p: f64,
}

/// Generators made so far in this process.
static GENERATORS: AtomicU64 = AtomicU64::new(1);

/// A policy that samples from a model.
pub struct Generator<B: Backend> {
    model: Model<B>,
    tokenizer: Tokenizer,
    config: GeneratorConfig,
    name: String,
    cache: Cache<B>,
    prefixes: Prefixes,
    prefill: Activations<B>,
    decode: Activations<B>,
    logits: B::Tensor,
    prefill_slots: B::Index,
    decode_slots: B::Index,
    spans: B::Index,
    /// Slots of finished jobs are reused.
    jobs: Vec<Option<Job>>,
    waiting: VecDeque<usize>,
    rows: Vec<Row>,
    answers: Vec<(RequestId, std::result::Result<Vec<Sample>, Fault>)>,
    /// Tells this generator's recordings from those of others on the same device.
    recording: u64,
}

impl<B: Backend> Generator<B> {
    /// Plans the buffers for sampling from `model`; `name` goes into manifests.
    pub fn new(model: Model<B>, tokenizer: Tokenizer, config: GeneratorConfig, name: &str) -> Result<Self> {
        let positions = model.config.positions;
        let mut config = config;
        config.max_prompt = config.max_prompt.min(positions.saturating_sub(config.max_tokens));
        let Sampling { temperature, top_p } = config.sampling;
        if config.max_tokens == 0 || config.batch == 0 || config.max_prompt == 0 {
            let reason = format!("no room to sample: {config:?} with {positions} positions");
            return Err(Error::Input(reason));
        }
        if !(temperature >= 0.0 && temperature.is_finite() && top_p > 0.0 && top_p <= 1.0) {
            return Err(Error::Input(format!("temperature {temperature} or top-p {top_p} is out of range")));
        }
        // With one prompt in the middle of the pool, the larger side must still hold a sample.
        let least = config.max_prompt + 2 * config.max_tokens;
        if config.cache < least {
            let cache = config.cache;
            return Err(Error::Input(format!("a cache of {cache} rows; these prompts and tactics need at least {least}")));
        }
        tokenizer.check(model.config.vocab)?;
        let b = model.backend.clone();
        Ok(Generator {
            cache: Cache::new(&model, config.cache)?,
            prefixes: Prefixes::new(config.cache),
            prefill: Activations::new(&model, config.max_prompt, Keep::Nothing)?,
            decode: Activations::new(&model, b.decode_rows(config.batch), Keep::Nothing)?,
            logits: b.zeros(b.decode_rows(config.batch) * model.config.vocab, Kind::Exact)?,
            prefill_slots: b.indices(config.max_prompt)?,
            decode_slots: b.indices(b.decode_rows(config.batch))?,
            spans: b.indices(4 * b.decode_rows(config.batch))?,
            jobs: Vec::new(),
            waiting: VecDeque::new(),
            rows: Vec::new(),
            answers: Vec::new(),
            recording: GENERATORS.fetch_add(1, Ordering::Relaxed) << 32,
            name: name.to_string(),
            model,
            tokenizer,
            config,
        })
    }

    /// The model, to read or to score with.
    pub fn model(&self) -> &Model<B> {
        &self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        &self.tokenizer
    }

    /// Gives the model and tokenizer back.
    pub fn into_parts(self) -> (Model<B>, Tokenizer) {
        (self.model, self.tokenizer)
    }

    /// Switches the adapter without touching the base, and returns the old one. Refused while questions are being answered: their
    /// samples would be drawn from two models.
    pub fn swap_adapter(&mut self, adapter: Option<Adapter<B>>, name: &str) -> Result<Option<Adapter<B>>> {
        if self.jobs.iter().any(Option::is_some) {
            return Err(Error::Input("questions are still being answered; poll until none is waiting".into()));
        }
        let old = self.model.swap_adapter(adapter);
        self.name = name.to_string();
        self.prefixes = Prefixes::new(self.config.cache);
        let rows = self.decode.capacity();
        self.prefill = Activations::new(&self.model, self.config.max_prompt, Keep::Nothing)?;
        self.decode = Activations::new(&self.model, rows, Keep::Nothing)?;
        Ok(old)
    }

    fn enqueue(&mut self, request: &Request) -> Result<()> {
        let mut prefix = self.tokenizer.prompt(&request.state)?;
        // A state that does not fit loses its end, where the later goals are; the separator stays. A search must be able to go on
        // from any state, and the prover judges whatever comes of it.
        let most = self.config.max_prompt;
        if prefix.len() > most {
            let separator = prefix.split_off(prefix.len() - self.tokenizer.separator().len());
            prefix.truncate(most.saturating_sub(separator.len()));
            prefix.extend(separator);
        }
        let last = prefix.pop().ok_or_else(|| Error::Tokenizer("an empty prompt".into()))?;
        let job = Job {
            id: request.id,
            stream: request.stream,
            prefix,
            last,
            place: None,
            started: 0,
            samples: vec![None; request.samples],
            open: request.samples,
        };
        let slot = self.jobs.iter().position(Option::is_none).unwrap_or(self.jobs.len());
        if slot == self.jobs.len() {
            self.jobs.push(None);
        }
        self.jobs[slot] = Some(job);
        self.waiting.push_back(slot);
        Ok(())
    }

    /// Starts samples while there is room, in the order the questions came. New prompts are computed together.
    fn admit(&mut self) -> Result<()> {
        let mut batch = Batch::new();
        let mut slots: Vec<u32> = Vec::new();
        while self.rows.len() < self.config.batch
            && let Some(&slot) = self.waiting.front()
        {
            let Some(job) = &mut self.jobs[slot] else { break };
            if job.place.is_none() {
                job.place = self.prefixes.find(&job.prefix);
            }
            let place = match job.place {
                Some(place) => place,
                None => {
                    if batch.len() + job.prefix.len() > self.config.max_prompt {
                        break;
                    }
                    let Some(place) = self.prefixes.insert(&job.prefix) else { break };
                    if place.len > 0 {
                        batch.push(&job.prefix, &[]);
                        slots.extend(place.first..place.first + place.len);
                    }
                    job.place = Some(place);
                    place
                }
            };
            let Some(own) = self.prefixes.take(self.config.max_tokens) else { break };
            let sample = job.started;
            job.started += 1;
            let (stream, token) = (job.stream.child(sample as u64), job.last);
            if job.started == job.samples.len() {
                self.waiting.pop_front();
            }
            let tokens = Vec::with_capacity(16);
            self.rows.push(Row { job: slot, sample, stream, prefix: place, own, token, fed: 0, tokens, log_p: 0.0 });
        }
        if !batch.is_empty() {
            self.prefill.set_batch(&self.model, &batch)?;
            self.model.backend.upload_indices(&slots, &mut self.prefill_slots)?;
            let mut attend = Attend::Prefill { cache: &mut self.cache, slots: &self.prefill_slots };
            self.model.run(&mut self.prefill, &mut attend)?;
        }
        Ok(())
    }

    /// Decodes one token of every sample in flight.
    fn step(&mut self) -> Result<()> {
        let (b, c) = (self.model.backend.clone(), &self.model.config);
        let n = self.rows.len();
        let padded = b.decode_rows(n);
        let (mut tokens, mut positions) = (vec![0; padded], vec![0; padded]);
        let (mut slots, mut spans) = (vec![u32::MAX; padded], vec![0; 4 * padded]);
        let mut uniforms = vec![0.0; n];
        for (i, row) in self.rows.iter_mut().enumerate() {
            tokens[i] = row.token;
            positions[i] = row.prefix.len + row.fed as u32;
            slots[i] = row.own + row.fed as u32;
            row.fed += 1;
            spans[4 * i..4 * i + 4].copy_from_slice(&[row.prefix.first, row.prefix.len, row.own, row.fed as u32]);
            uniforms[i] = (row.stream.uniform(row.tokens.len() as u64) as f32).min(1.0 - f32::EPSILON / 2.0);
        }
        let acts = &mut self.decode;
        b.upload_indices(&tokens, &mut acts.packed.tokens)?;
        b.upload_indices(&positions, &mut acts.packed.positions)?;
        b.upload_indices(&slots, &mut self.decode_slots)?;
        b.upload_indices(&spans, &mut self.spans)?;
        acts.packed.n = padded;
        let (model, cache, logits) = (&self.model, &mut self.cache, &mut self.logits);
        let (slots, spans, d, v) = (&self.decode_slots, &self.spans, c.hidden, c.vocab);
        b.replay(self.recording ^ padded as u64, &mut || {
            model.run(acts, &mut Attend::Decode { cache, slots, spans })?;
            b.linear(padded, v, d, &acts.h, model.head_weight(), None, logits)
        })?;
        let mut log_p = vec![0.0; n];
        b.sample(n, v, logits, self.config.sampling, &uniforms, &mut tokens[..n], &mut log_p)?;
        let end = self.tokenizer.end();
        for i in (0..n).rev() {
            let row = &mut self.rows[i];
            row.log_p += f64::from(log_p[i]);
            row.token = tokens[i];
            row.tokens.push(tokens[i]);
            if tokens[i] == end || row.tokens.len() == self.config.max_tokens {
                self.finish(i);
            }
        }
        Ok(())
    }

    /// Takes a finished sample out of the batch, and answers its question if it was the last.
    fn finish(&mut self, row: usize) {
        let row = self.rows.swap_remove(row);
        self.prefixes.give(row.own, self.config.max_tokens);
        let Some(job) = &mut self.jobs[row.job] else { return };
        let sample =
            self.tokenizer.decode(&row.tokens).map(|tactic| Sample { tactic, log_p: row.log_p, tokens: row.tokens.len() });
        // Decoding known tokens does not fail; should it, an empty tactic is refused by every prover.
        let unreadable = Sample { tactic: String::new(), log_p: row.log_p, tokens: row.tokens.len() };
        job.samples[row.sample] = Some(sample.unwrap_or(unreadable));
        job.open -= 1;
        if job.open == 0
            && let Some(job) = self.jobs[row.job].take()
        {
            self.prefixes.release(&job.prefix);
            self.answers.push((job.id, Ok(job.samples.into_iter().flatten().collect())));
        }
    }

    /// The device failed: every question in flight gets that answer.
    fn abandon(&mut self, error: &Error) {
        self.rows.clear();
        self.waiting.clear();
        self.prefixes = Prefixes::new(self.config.cache);
        for job in self.jobs.iter_mut().filter_map(Option::take) {
            self.answers.push((job.id, Err(Fault(error.to_string()))));
        }
    }
}

impl<B: Backend> Policy for Generator<B> {
    fn submit(&mut self, request: Request) {
        if request.samples == 0 {
            self.answers.push((request.id, Ok(Vec::new())));
        } else if let Err(error) = self.enqueue(&request) {
            self.answers.push((request.id, Err(Fault(error.to_string()))));
        }
    }

    fn poll(&mut self) -> Vec<(RequestId, std::result::Result<Vec<Sample>, Fault>)> {
        while self.answers.is_empty() && self.jobs.iter().any(Option::is_some) {
            let stuck = |g: &Self| g.rows.is_empty().then(|| Error::Input("no room in the cache for any sample".into()));
            let done = self.admit().and_then(|()| stuck(self).map_or(Ok(()), Err)).and_then(|()| self.step());
            if let Err(error) = done {
                self.abandon(&error);
            }
        }
        std::mem::take(&mut self.answers)
    }

    fn describe(&self) -> String {
        let Sampling { temperature, top_p } = self.config.sampling;
        let (parameters, device) = (self.model.config.parameters(), self.model.backend.describe());
        format!("{} ({parameters} parameters, temperature {temperature}, top-p {top_p}) on {device}", self.name)
    }
}
