//! Sampling tactics: many questions in flight share every decoding step, and leave it as they finish.
//!
//! A question's state is computed once for its samples. Sample `i` draws its `t`-th token with the `t`-th number of its own
//! stream, and a row's logits do not depend on the other rows, so the answer is a function of the question alone. Where a backend
//! promises that for one batch shape only, every step has the same shape.
//!
//! The device is kept busy: while it computes a step, this thread hands out what the step before finished, takes in new questions and
//! queues their prompts behind the step; texts are read and written on other threads.

mod prompts;
mod texts;
mod work;

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use catamount_search::{Fault, Policy, Request, RequestId, Sample, Stream};

use self::prompts::Prompts;
use self::texts::{Answer, Drawn, Prompt, Ready, Texts};
pub use self::work::Work;
use crate::forward::Attend;
use crate::prefix::{Prefix, Prefixes};
use crate::{Activations, Adapter, Backend, Cache, Error, Keep, Kind, Model, Result, Sampling, Tokenizer};

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
    samples: Vec<Option<Drawn>>,
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

/// What a decoding step reads from the host; kept to be filled again.
#[derive(Default)]
struct Inputs {
    tokens: Vec<u32>,
    positions: Vec<u32>,
    slots: Vec<u32>,
    spans: Vec<u32>,
    uniforms: Vec<f32>,
    log_p: Vec<f32>,
}

/// Generators made so far in this process.
static GENERATORS: AtomicU64 = AtomicU64::new(1);

/// A policy that samples from a model.
pub struct Generator<B: Backend> {
    model: Model<B>,
    texts: Texts,
    config: GeneratorConfig,
    name: String,
    cache: Cache<B>,
    prefixes: Prefixes,
    prompts: Prompts<B>,
    decode: Activations<B>,
    logits: B::Tensor,
    slots: B::Index,
    spans: B::Index,
    inputs: Inputs,
    /// Rows of every decoding step, where the backend asks for padding.
    fixed: Option<usize>,
    /// Slots of finished jobs are reused.
    jobs: Vec<Option<Job>>,
    vacant: Vec<usize>,
    waiting: VecDeque<usize>,
    rows: Vec<Row>,
    /// Samples that the last step finished.
    finished: Vec<Row>,
    answers: Vec<Answer>,
    /// Tells this generator's recordings from those of others on the same device.
    recording: u64,
    work: Work,
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
        let rows = b.decode_rows(config.batch);
        // A backend that pads computes another number of rows by another algorithm, with other rounding.
        let fixed = (b.decode_rows(1) > 1).then_some(rows);
        let recording = GENERATORS.fetch_add(1, Ordering::Relaxed) << 32;
        Ok(Generator {
            cache: Cache::new(&model, config.cache)?,
            prefixes: Prefixes::new(config.cache),
            prompts: Prompts::new(&model, config.max_prompt, fixed.is_some(), recording)?,
            decode: Activations::new(&model, rows, Keep::Nothing)?,
            logits: b.zeros(rows * model.config.vocab, Kind::Exact)?,
            slots: b.indices(rows)?,
            spans: b.indices(4 * rows)?,
            inputs: Inputs::default(),
            fixed,
            jobs: Vec::new(),
            vacant: Vec::new(),
            waiting: VecDeque::new(),
            rows: Vec::new(),
            finished: Vec::new(),
            answers: Vec::new(),
            recording,
            work: Work::default(),
            name: name.to_string(),
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
        self.work
    }

    /// Gives the model and tokenizer back.
    pub fn into_parts(self) -> (Model<B>, Tokenizer) {
        (self.model, self.texts.into_tokenizer())
    }

    /// Switches the adapter without touching the base, and returns the old one. Refused while questions are being answered: their
    /// samples would be drawn from two models.
    pub fn swap_adapter(&mut self, adapter: Option<Adapter<B>>, name: &str) -> Result<Option<Adapter<B>>> {
        if !self.texts.is_idle() || self.jobs.iter().any(Option::is_some) {
            return Err(Error::Input("questions are still being answered; poll until none is waiting".into()));
        }
        let old = self.model.swap_adapter(adapter);
        self.name = name.to_string();
        self.prefixes = Prefixes::new(self.config.cache);
        let rows = self.decode.capacity();
        self.prompts = Prompts::new(&self.model, self.config.max_prompt, self.fixed.is_some(), self.recording)?;
        self.decode = Activations::new(&self.model, rows, Keep::Nothing)?;
        Ok(old)
    }

    /// Takes in a question whose tokens are ready.
    fn enqueue(&mut self, prompt: Prompt) {
        let Prompt { id, stream, samples, tokens: mut prefix } = prompt;
        let Some(last) = prefix.pop() else { return };
        let job = Job {
            id,
            stream,
            prefix,
            last,
            place: None,
            started: 0,
            samples: (0..samples).map(|_| None).collect(),
            open: samples,
        };
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

    /// Starts samples while there is room, in the order the questions came, and queues new prompts. They join the next step.
    fn admit(&mut self) -> Result<()> {
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
                    let Some(place) = self.prefixes.insert(&job.prefix) else { break };
                    job.place = Some(place);
                    self.prompts.push(&self.model, &mut self.cache, &job.prefix, place)?;
                    self.work.prompts += 1;
                    self.work.prompt_tokens += job.prefix.len() as u64;
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
        self.prompts.finish(&self.model, &mut self.cache)
    }

    /// Queues a step over every sample in flight; returns how many there are and when it was queued.
    fn launch(&mut self) -> Result<Option<(usize, Instant)>> {
        let n = self.rows.len();
        if n == 0 {
            return Ok(None);
        }
        let (b, c) = (self.model.backend.clone(), &self.model.config);
        let padded = self.fixed.unwrap_or(n);
        let Inputs { tokens, positions, slots, spans, uniforms, log_p } = &mut self.inputs;
        for list in [&mut *tokens, positions, slots, spans] {
            list.clear();
        }
        uniforms.clear();
        for row in &mut self.rows {
            tokens.push(row.token);
            positions.push(row.prefix.len + row.fed as u32);
            slots.push(row.own + row.fed as u32);
            row.fed += 1;
            spans.extend([row.prefix.first, row.prefix.len, row.own, row.fed as u32]);
            uniforms.push((row.stream.uniform(row.tokens.len() as u64) as f32).min(1.0 - f32::EPSILON / 2.0));
        }
        log_p.resize(n, 0.0);
        for (list, len, nothing) in [(&mut *tokens, 1, 0), (positions, 1, 0), (slots, 1, u32::MAX), (spans, 4, 0)] {
            list.resize(len * padded, nothing);
        }
        let acts = &mut self.decode;
        b.upload_indices(tokens, &mut acts.packed.tokens)?;
        b.upload_indices(positions, &mut acts.packed.positions)?;
        b.upload_indices(slots, &mut self.slots)?;
        b.upload_indices(spans, &mut self.spans)?;
        acts.packed.n = padded;
        let (model, cache, logits) = (&self.model, &mut self.cache, &mut self.logits);
        let (slots, spans, d, v) = (&self.slots, &self.spans, c.hidden, c.vocab);
        let queued = Instant::now();
        b.replay(self.recording | padded as u64, &mut || {
            model.run(acts, &mut Attend::Decode { cache, slots, spans })?;
            b.linear(padded, v, d, &acts.h, model.head_weight(), None, logits)
        })?;
        self.work.steps += 1;
        self.work.tokens += n as u64;
        Ok(Some((n, queued)))
    }

    /// Waits for the tokens of the step that was queued over the first `n` samples.
    fn draw(&mut self, n: usize) -> Result<()> {
        let Inputs { tokens, uniforms, log_p, .. } = &mut self.inputs;
        let (b, v) = (&*self.model.backend, self.model.config.vocab);
        b.sample(n, v, &self.logits, self.config.sampling, uniforms, &mut tokens[..n], log_p)?;
        let end = self.texts.tokenizer().end();
        for i in (0..n).rev() {
            let (row, token) = (&mut self.rows[i], self.inputs.tokens[i]);
            row.log_p += f64::from(self.inputs.log_p[i]);
            row.token = token;
            row.tokens.push(token);
            if token == end || row.tokens.len() == self.config.max_tokens {
                self.finished.push(self.rows.swap_remove(i));
            }
        }
        Ok(())
    }

    /// Files the samples that the last step finished, and answers the questions whose last they were.
    fn file(&mut self) {
        for row in self.finished.drain(..) {
            self.prefixes.give(row.own, self.config.max_tokens);
            let Some(job) = &mut self.jobs[row.job] else { continue };
            job.samples[row.sample] = Some(Drawn { tokens: row.tokens, log_p: row.log_p });
            job.open -= 1;
            if job.open == 0
                && let Some(job) = self.jobs[row.job].take()
            {
                self.vacant.push(row.job);
                self.prefixes.release(&job.prefix);
                self.texts.answer(job.id, job.samples.into_iter().flatten().collect());
            }
        }
        self.texts.start();
    }

    /// One step. What is done between `launch` and `draw` takes no time, as long as the device needs longer.
    fn step(&mut self) -> Result<()> {
        let launched = self.launch()?;
        self.file();
        while let Some(ready) = self.texts.receive() {
            self.take_in(ready);
        }
        self.admit()?;
        if let Some((n, queued)) = launched {
            self.draw(n)?;
            self.work.device += queued.elapsed();
        } else if self.rows.is_empty() && !self.waiting.is_empty() {
            return Err(Error::Input("no room in the cache for any sample".into()));
        }
        Ok(())
    }

    /// The device failed: every question in flight gets that answer.
    fn abandon(&mut self, error: &Error) {
        self.rows.clear();
        self.finished.clear();
        self.waiting.clear();
        self.vacant.clear();
        self.prompts.clear();
        self.prefixes = Prefixes::new(self.config.cache);
        for job in self.jobs.drain(..).flatten() {
            self.answers.push((job.id, Err(Fault(error.to_string()))));
        }
    }
}

impl<B: Backend> Policy for Generator<B> {
    fn submit(&mut self, request: Request) {
        if request.samples == 0 {
            self.answers.push((request.id, Ok(Vec::new())));
        } else {
            self.texts.ask(request);
        }
    }

    fn poll(&mut self) -> Vec<(RequestId, std::result::Result<Vec<Sample>, Fault>)> {
        let entered = Instant::now();
        self.texts.start();
        loop {
            if !(self.rows.is_empty() && self.waiting.is_empty() && self.finished.is_empty()) {
                // A step even if answers are ready: the device must not wait for whoever takes them.
                if let Err(error) = self.step() {
                    self.abandon(&error);
                }
            } else if self.answers.is_empty() {
                match self.texts.wait() {
                    Some(ready) => self.take_in(ready),
                    None => break,
                }
            }
            while let Some(ready) = self.texts.receive() {
                self.take_in(ready);
            }
            if !self.answers.is_empty() {
                break;
            }
        }
        self.work.total += entered.elapsed();
        std::mem::take(&mut self.answers)
    }

    fn describe(&self) -> String {
        let Sampling { temperature, top_p } = self.config.sampling;
        let (parameters, device) = (self.model.config.parameters(), self.model.backend.describe());
        format!("{} ({parameters} parameters, temperature {temperature}, top-p {top_p}) on {device}", self.name)
    }
}
