//! Sampling tactics: many questions in flight share every decoding step, and leave it as they
//! finish.
//!
//! A question's state is computed once for its samples. Sample `i` draws its `t`-th token with the
//! `t`-th number of its own stream, and a row's logits do not depend on the other rows, so the
//! answer is a function of the question alone. Where a backend promises that for one batch shape
//! only, every step has the same shape.
//!
//! Samples without replacement are drawn one after the other, each knowing those before it (see
//! [`catamount_search::Trie`]); other questions fill the batch meanwhile.
//!
//! The device is kept busy: while it computes a step, answers that the step before finished are
//! handed out, new questions are taken in and their prompts queued behind the step; texts are read
//! and written on other threads. A step is under way even between two polls.

mod decoding;
mod prompts;
mod recent;
mod texts;
mod work;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use catamount_search::{Fault, Identity, Policy, Request, RequestId, Sample, Urn};

use self::decoding::{Decoding, Finished, Last, Row, Walk};
use self::prompts::Prompts;
use self::texts::{Answer, Drawn, Prompt, Ready, Texts};
pub use self::work::Work;
use crate::prefix::{Prefix, Prefixes};
use crate::{Adapter, Backend, Cache, Error, Model, Result, Sampling, Tokenizer};

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
    /// Every sample decodes the last token itself.
    prompt: Prompt,
    place: Option<Prefix>,
    /// Samples that have been started, and those that are done.
    started: usize,
    samples: Vec<Option<Drawn>>,
    open: usize,
}

impl Job {
    fn urn(&self) -> Option<&Urn> {
        self.prompt.taking.as_ref().map(|taking| &taking.urn)
    }
}

/// Times that answers are handed out while the device computes one step: those that were remembered
/// as texts, and those that were not. More often, and whoever takes them one by one would keep the
/// device waiting.
const HAND_OUTS: u32 = 2;

/// Generators made so far in this process.
static GENERATORS: AtomicU64 = AtomicU64::new(1);

/// The cache's rows: as many samples as are decoded together, if the longest prompt still fits
/// beside them.
fn prefixes(config: &GeneratorConfig) -> Prefixes {
    let GeneratorConfig { max_tokens, max_prompt, batch, cache, .. } = *config;
    let samples = batch.min((cache - max_prompt - 2 * max_tokens) / max_tokens);
    Prefixes::new(cache, samples, max_tokens)
}

/// A policy that samples from a model.
pub struct Generator<B: Backend> {
    model: Model<B>,
    texts: Texts,
    config: GeneratorConfig,
    name: String,
    identity: Identity,
    cache: Cache<B>,
    prefixes: Prefixes,
    prompts: Prompts<B>,
    decoding: Decoding<B>,
    /// Slots of finished jobs are reused.
    jobs: Vec<Option<Job>>,
    vacant: Vec<usize>,
    waiting: VecDeque<usize>,
    rows: Vec<Row>,
    /// Samples that the last step finished.
    finished: Vec<Finished>,
    answers: Vec<Answer>,
    /// Times that answers were handed out since the last step was queued.
    handed_out: u32,
    /// Rows that prompts are computed in, if shapes are fixed.
    fixed: Option<usize>,
    /// Tells this generator's recordings from those of others on the same device.
    recording: u64,
    work: Work,
    /// Since when there have been open questions.
    since: Option<Instant>,
}

impl<B: Backend> Generator<B> {
    /// Plans the buffers for sampling from `model`; `name` goes into manifests.
    pub fn new(
        model: Model<B>,
        tokenizer: Tokenizer,
        config: GeneratorConfig,
        name: &str,
    ) -> Result<Self> {
        // A backend that pads computes another number of rows by another algorithm, with other
        // rounding.
        let pads = model.backend.decode_rows(1) > 1;
        let fixed = pads.then(|| prompts::fixed_rows(model.config.parameters()));
        Self::with_shapes(model, tokenizer, config, name, fixed)
    }

    /// The same; `fixed` gives every batch the same shape, those of prompts so many rows.
    fn with_shapes(
        model: Model<B>,
        tokenizer: Tokenizer,
        config: GeneratorConfig,
        name: &str,
        fixed: Option<usize>,
    ) -> Result<Self> {
        let positions = model.config.positions;
        let mut config = config;
        config.max_prompt = config.max_prompt.min(positions.saturating_sub(config.max_tokens));
        let Sampling { temperature, top_p } = config.sampling;
        if config.max_tokens == 0 || config.batch == 0 || config.max_prompt == 0 {
            let GeneratorConfig { max_tokens, batch, .. } = config;
            return Err(Error::Input(format!(
                "tactics of up to {max_tokens} tokens, {batch} at a time, leave no room for a \
                 state: the model has {positions} positions; take max_tokens (--max-tokens) from \
                 1 to {}, and a batch of at least 1",
                positions.saturating_sub(1)
            )));
        }
        if !(temperature >= 0.0 && temperature.is_finite() && top_p > 0.0 && top_p <= 1.0) {
            return Err(Error::Input(format!(
                "temperature {temperature} or top-p {top_p} is out of range"
            )));
        }
        // With one prompt in the middle of the pool, the larger side must still hold a sample.
        let least = config.max_prompt + 2 * config.max_tokens;
        if config.cache < least {
            let cache = config.cache;
            return Err(Error::Input(format!(
                "a cache of {cache} rows; these prompts and tactics need at least {least}"
            )));
        }
        tokenizer.check(model.config.vocab)?;
        let recording = GENERATORS.fetch_add(1, Ordering::Relaxed) << 32;
        Ok(Generator {
            cache: Cache::new(&model, config.cache)?,
            prefixes: prefixes(&config),
            prompts: Prompts::new(&model, config.max_prompt, fixed, recording)?,
            decoding: Decoding::new(&model, config.batch, fixed.is_some(), recording)?,
            jobs: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            rows: Vec::new(),
            finished: Vec::new(),
            answers: Vec::new(),
            handed_out: 0,
            fixed,
            recording,
            work: Work::default(),
            since: None,
            name: name.to_string(),
            identity: Identity::new("model").with("name", name),
            texts: Texts::new(tokenizer, config.max_prompt),
            model,
            config,
        })
    }

    /// The model, to read or to score with.
    pub fn model(&self) -> &Model<B> {
        &self.model
    }

    /// The tokenizer.
    pub fn tokenizer(&self) -> &Tokenizer {
        self.texts.tokenizer()
    }

    /// What it has done so far.
    pub fn work(&self) -> Work {
        let open = self.since.map_or(Duration::ZERO, |since| since.elapsed());
        Work { total: self.work.total + open, ..self.work }
    }

    /// Says what is sampled from, by content (see [`crate::identity`]); until then it is its name.
    pub fn set_identity(&mut self, identity: Identity) {
        self.identity = identity;
    }

    /// Gives the model and tokenizer back.
    pub fn into_parts(self) -> (Model<B>, Tokenizer) {
        (self.model, self.texts.into_tokenizer())
    }

    /// Switches the adapter without touching the base, and returns the old one. Refused while
    /// questions are being answered: their samples would be drawn from two models.
    pub fn swap_adapter(
        &mut self,
        adapter: Option<Adapter<B>>,
        name: &str,
    ) -> Result<Option<Adapter<B>>> {
        if !self.is_idle() {
            return Err(Error::Input(
                "questions are still being answered; poll until none is waiting".into(),
            ));
        }
        let old = self.model.swap_adapter(adapter);
        self.name = name.to_string();
        self.identity = Identity::new("model").with("name", name);
        self.prefixes = prefixes(&self.config);
        let (fixed, recording) = (self.fixed, self.recording);
        self.prompts = Prompts::new(&self.model, self.config.max_prompt, fixed, recording)?;
        self.decoding = Decoding::new(&self.model, self.config.batch, fixed.is_some(), recording)?;
        Ok(old)
    }

    /// Whether no question is open.
    fn is_idle(&self) -> bool {
        self.texts.is_idle() && self.jobs.len() == self.vacant.len()
    }

    /// Takes in a question whose tokens are ready.
    fn enqueue(&mut self, prompt: Prompt) {
        if prompt.is_drawn_out() {
            return self.take_in(prompt.into_answer());
        }
        let open = prompt.missing();
        let samples = (0..open).map(|_| None).collect();
        let job = Job { prompt, place: None, started: 0, samples, open };
        let slot = self.vacant.pop().unwrap_or(self.jobs.len());
        if slot == self.jobs.len() {
            self.jobs.push(None);
        }
        self.jobs[slot] = Some(job);
        self.waiting.push_back(slot);
    }

    fn take_in(&mut self, ready: Ready) {
        match ready {
            Ready::Prompt(prompt) => self.enqueue(prompt),
            Ready::Answer(answer) => self.answers.push(answer),
        }
    }

    /// Whether prompts are computed now. A batch of fixed shape takes its time, full or not: while
    /// most places are taken, new prompts wait until there are enough of them for one.
    fn computes_prompts(&self) -> bool {
        let Some(rows) = self.fixed else { return true };
        let room = self.config.batch - self.rows.len();
        let known = self.work.known_tokens as f64 / self.work.prompt_tokens.max(1) as f64;
        let next = self.waiting.iter().take(room).filter_map(|&slot| self.jobs[slot].as_ref());
        let new = next.filter(|job| job.place.is_none()).map(|job| job.prompt.tokens.len());
        8 * room >= self.config.batch || new.sum::<usize>() as f64 * (1.0 - known) >= rows as f64
    }

    /// Starts samples while there is room, in the order the questions came, and queues new prompts.
    /// They join the next step.
    fn admit(&mut self) -> Result<()> {
        self.rows.retain(|row| !row.done);
        let computes_prompts = self.computes_prompts();
        while self.rows.len() < self.config.batch
            && let Some(&slot) = self.waiting.front()
        {
            let Some(job) = &mut self.jobs[slot] else { break };
            if job.place.is_none() {
                job.place = self.prefixes.find(&job.prompt.tokens);
            }
            let place = match job.place {
                Some(place) => place,
                None if !computes_prompts => break,
                None => {
                    let tokens = &job.prompt.tokens;
                    let prefix = &tokens[..tokens.len() - 1];
                    let Some(place) = self.prefixes.insert(tokens, prefix.len()) else { break };
                    job.place = Some(place);
                    // After room was made for it: what is known now is not dropped for it.
                    let known = self.prefixes.known(prefix);
                    let (model, cache) = (&self.model, &mut self.cache);
                    let copied = self.prompts.push(model, cache, prefix, place, known)?;
                    self.work.prompts += 1;
                    self.work.prompt_tokens += prefix.len() as u64;
                    self.work.known_tokens += copied as u64;
                    place
                }
            };
            let Some(own) = self.prefixes.take_own() else { break };
            let sample = job.started;
            job.started += 1;
            let urn = job.urn().cloned();
            // One sample of an urn at a time.
            if urn.is_some() || job.started == job.samples.len() {
                self.waiting.pop_front();
            }
            let number = urn.as_ref().map_or(sample as u64, Urn::next_draw);
            let Prompt { stream, tokens: prompt, .. } = &job.prompt;
            let (stream, token) = (stream.child(number), prompt[prompt.len() - 1]);
            let tokens = Vec::with_capacity(16);
            self.rows.push(Row {
                job: slot,
                sample,
                stream,
                prefix: place,
                own,
                token,
                fed: 0,
                tokens,
                log_p: 0.0,
                share: 1.0,
                lane: None,
                done: false,
                walk: urn.map(Walk::new),
            });
        }
        self.prompts.finish(&self.model, &mut self.cache)?;
        self.prefixes.settle();
        Ok(())
    }

    fn prepare(&mut self) -> Result<()> {
        self.rows.retain(|row| !row.done);
        self.decoding.prepare(&self.model, &self.rows, self.config.max_tokens)
    }

    fn draw(&mut self) -> Result<()> {
        let last = Last { token: self.texts.tokenizer().end(), length: self.config.max_tokens };
        self.decoding.draw(
            &self.model,
            self.config.sampling,
            last,
            &mut self.rows,
            &mut self.finished,
            &mut self.work,
        )
    }

    /// Files the samples that the last step finished, and answers the questions whose last they
    /// were.
    fn file(&mut self) {
        for Finished { job: slot, sample, own, drawn } in self.finished.drain(..) {
            self.prefixes.give_own(own);
            let Some(job) = &mut self.jobs[slot] else { continue };
            job.samples[sample] = Some(drawn);
            job.open -= 1;
            if job.open > 0 && !job.prompt.is_drawn_out() {
                if job.urn().is_some() {
                    // It has a place in the cache: before those that have none yet.
                    self.waiting.push_front(slot);
                }
            } else if let Some(Job { prompt, samples, .. }) = self.jobs[slot].take() {
                self.vacant.push(slot);
                self.prefixes.release(&prompt.tokens);
                self.texts.answer(prompt, samples.into_iter().flatten().collect());
            }
        }
        self.texts.start();
    }

    /// Finishes the step on the device and queues the next, which the samples admitted meanwhile
    /// join.
    fn step(&mut self) -> Result<()> {
        // Where rows are padded anyway, the next step is laid out before it is known which samples
        // this one finishes: the device then waits only for the tokens, and a finished sample is
        // padding for one step.
        if self.fixed.is_some() {
            self.prepare()?;
            self.draw()?;
        } else {
            self.draw()?;
            self.prepare()?;
        }
        self.decoding.launch(&self.model, &mut self.cache, &mut self.rows, &mut self.work)?;
        if !self.decoding.is_queued() && self.finished.is_empty() && !self.waiting.is_empty() {
            return Err(Error::Input("no room in the cache for any sample".into()));
        }
        self.file();
        Ok(())
    }

    /// Takes in all that is ready.
    fn receive(&mut self) {
        while let Some(ready) = self.texts.receive() {
            self.take_in(ready);
        }
    }

    /// The device failed: every question in flight gets that answer.
    fn abandon(&mut self, error: &Error) {
        self.rows.clear();
        self.decoding.forget();
        self.finished.clear();
        self.waiting.clear();
        self.vacant.clear();
        self.prompts.clear();
        self.prefixes = prefixes(&self.config);
        for job in self.jobs.drain(..).flatten() {
            self.answers.push((job.prompt.id, Err(Fault(error.to_string()))));
        }
    }
}

impl<B: Backend> Policy for Generator<B> {
    fn submit(&mut self, request: Request) {
        self.since.get_or_insert_with(Instant::now);
        if request.samples == 0 {
            self.answers.push((request.id, Ok(Vec::new())));
        } else {
            self.texts.ask(request);
        }
    }

    fn poll(&mut self) -> Vec<(RequestId, std::result::Result<Vec<Sample>, Fault>)> {
        self.texts.start();
        loop {
            self.receive();
            let idle =
                !self.decoding.is_queued() && self.rows.is_empty() && self.waiting.is_empty();
            if !self.answers.is_empty() && (idle || self.handed_out < HAND_OUTS) {
                self.handed_out += 1;
                break;
            }
            if idle {
                match self.texts.wait() {
                    Some(ready) => self.take_in(ready),
                    None => break,
                }
                continue;
            }
            self.handed_out = 0;
            if let Err(error) = self.admit().and_then(|()| self.step()) {
                self.abandon(&error);
            }
        }
        if self.is_idle() {
            self.work.total += self.since.take().map_or(Duration::ZERO, |since| since.elapsed());
        }
        std::mem::take(&mut self.answers)
    }

    fn draws_without_replacement(&self) -> bool {
        true
    }

    fn describe(&self) -> String {
        let Sampling { temperature, top_p } = self.config.sampling;
        let (parameters, device) = (self.model.config.parameters(), self.model.backend.describe());
        format!(
            "{} ({parameters} parameters, temperature {temperature}, top-p {top_p}) on {device}",
            self.name
        )
    }

    fn identity(&self) -> Identity {
        let identity = self.identity.clone().with("arithmetic", self.model.arithmetic());
        match self.decoding.fixed_rows() {
            Some(rows) => identity.with("rows of a step", rows),
            None => identity,
        }
    }
}

#[cfg(test)]
mod tests;
