//! Tactics from any OpenAI-compatible completions server: vLLM, SGLang, llama.cpp and others.
//!
//! Each sample is one HTTP request with its own seed, derived from its random stream: where the
//! server honours seeds, the same stream gives the same samples, and fewer samples are a prefix of
//! more. With [`HttpSettings::grouped`] a question is one request with `n` set, which is fewer
//! requests but ties the samples of a question together.
//!
//! A tactic's log-probability is the sum over the tokens that the server reports. vLLM reports the
//! stop token among them; llama.cpp does not report the tokens of a stop string, so that there log
//! p lacks the end of the tactic. Both report probabilities at temperature 1 unless told otherwise
//! when started.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use catamount_search::{Fault, Identity, Policy, Request, RequestId, Sample};

use client::{Client, Job};

mod client;
mod reply;
mod secrets;

/// Where the server is and how to ask it.
#[derive(Clone, Debug, PartialEq)]
pub struct HttpSettings {
    /// The server's address, with or without `/v1`: `http://127.0.0.1:8000`.
    pub url: String,
    /// The model's name, or that of a LoRA adapter that the server has loaded; some servers need
    /// none.
    pub model: Option<String>,
    /// The prompt, in which `{state}` stands for the state. It must be the prompt that the model
    /// was trained with.
    pub prompt: String,
    /// The sampling temperature.
    pub temperature: f64,
    /// Only the most probable tokens that together have this probability are sampled.
    pub top_p: f64,
    /// The longest tactic, in tokens.
    pub max_tokens: u32,
    /// Texts that end a tactic.
    pub stop: Vec<String>,
    /// The environment variable that holds the API key; no key is sent where it is not set.
    pub key_variable: String,
    /// How many requests are under way at once.
    pub concurrency: usize,
    /// The longest that one request may take, from connecting to the last byte.
    pub timeout: Duration,
    /// How often a request that failed for a passing reason is tried again.
    pub retries: u32,
    /// The wait before the first retry; it doubles with each.
    pub back_off: Duration,
    /// Whether a question's samples are asked for in one request.
    pub grouped: bool,
}

impl HttpSettings {
    /// The settings for a server, with the rest as one would start with.
    pub fn new(url: impl Into<String>) -> Self {
        HttpSettings {
            url: url.into(),
            model: None,
            prompt: "{state}\n".into(),
            temperature: 1.0,
            top_p: 1.0,
            max_tokens: 128,
            stop: vec!["\n".into()],
            key_variable: "OPENAI_API_KEY".into(),
            concurrency: 8,
            timeout: Duration::from_secs(120),
            retries: 4,
            back_off: Duration::from_millis(500),
            grouped: false,
        }
    }

    fn check(&self) -> Result<(), HttpError> {
        let wrong = |what: String| Err(HttpError(what));
        if !(self.url.starts_with("http://") || self.url.starts_with("https://")) {
            return wrong(format!(
                "{:?} is no server address; write it as http://127.0.0.1:8000",
                self.url
            ));
        }
        if !self.prompt.contains("{state}") {
            return wrong(format!(
                "the prompt {:?} has no {{state}} in it, so every state would look the same",
                self.prompt
            ));
        }
        if !(self.temperature.is_finite() && self.temperature >= 0.0) {
            return wrong(format!("temperature {} is no number from 0 on", self.temperature));
        }
        if !(self.top_p > 0.0 && self.top_p <= 1.0) {
            return wrong(format!("top-p {} lies not between 0 and 1", self.top_p));
        }
        if self.max_tokens == 0 || self.concurrency == 0 || self.timeout.is_zero() {
            return wrong("maximum tokens, concurrency and timeout must be positive".into());
        }
        Ok(())
    }
}

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

/// A completions server as a policy.
pub struct Http {
    settings: HttpSettings,
    jobs: Sender<Job>,
    answers: Receiver<(u64, usize, Result<Vec<Sample>, Fault>)>,
    /// By serial number: the caller's own numbers may come again.
    open: HashMap<u64, Open>,
    next: u64,
    closing: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
}

/// How often a poll looks whether it is to give up.
const LOOK: Duration = Duration::from_millis(50);

/// A question of which some samples are still out.
struct Open {
    id: RequestId,
    missing: usize,
    samples: Vec<Option<Sample>>,
    cancelled: Arc<AtomicBool>,
}

impl Http {
    /// A policy on a server. Nothing is sent yet; a server that cannot be reached shows as a fault
    /// of each question.
    pub fn new(settings: HttpSettings) -> Result<Self, HttpError> {
        settings.check()?;
        let (jobs, queue) = channel::<Job>();
        let (done, answers) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let closing = Arc::new(AtomicBool::new(false));
        let client = Arc::new(Client::new(&settings, closing.clone()));
        for number in 0..settings.concurrency {
            let (queue, done, client) = (queue.clone(), done.clone(), client.clone());
            let work = move || {
                loop {
                    let job = match queue.lock().unwrap_or_else(PoisonError::into_inner).recv() {
                        Ok(job) => job,
                        Err(_) => return,
                    };
                    // A lost answer would leave the asker waiting for ever.
                    let answer = catch_unwind(AssertUnwindSafe(|| client.ask(&job)))
                        .unwrap_or_else(|_| {
                            Err(Fault("the HTTP client panicked; please report this".into()))
                        });
                    if done.send((job.serial, job.first, answer)).is_err() {
                        return;
                    }
                }
            };
            let named = thread::Builder::new().name(format!("http-{number}"));
            named
                .spawn(work)
                .map_err(|e| HttpError(format!("cannot start a thread for requests: {e}")))?;
        }
        let interrupted = Arc::default();
        Ok(Http { settings, jobs, answers, open: HashMap::new(), next: 0, closing, interrupted })
    }

    /// Takes one answer in; says whether a question is settled by it.
    fn settle(
        &mut self,
        serial: u64,
        first: usize,
        answer: Result<Vec<Sample>, Fault>,
    ) -> Option<Answer> {
        let open = self.open.get_mut(&serial)?;
        match answer {
            Err(fault) => {
                // The question's other samples are of no use any more.
                open.cancelled.store(true, Ordering::Relaxed);
                let id = open.id;
                self.open.remove(&serial);
                Some((id, Err(fault)))
            }
            Ok(samples) => {
                for (sample, place) in samples.into_iter().zip(&mut open.samples[first..]) {
                    *place = Some(sample);
                }
                open.missing -= 1;
                if open.missing > 0 {
                    return None;
                }
                let open = self.open.remove(&serial)?;
                Some((open.id, Ok(open.samples.into_iter().flatten().collect())))
            }
        }
    }
}

impl Http {
    /// Answers every open question with a fault.
    fn abandon(&mut self, why: &str) -> Vec<Answer> {
        let abandoned = |(_, open): (u64, Open)| {
            open.cancelled.store(true, Ordering::Relaxed);
            (open.id, Err(Fault(why.to_owned())))
        };
        self.open.drain().map(abandoned).collect()
    }
}

type Answer = (RequestId, Result<Vec<Sample>, Fault>);

impl Policy for Http {
    fn submit(&mut self, request: Request) {
        let serial = self.next;
        self.next += 1;
        let cancelled = Arc::new(AtomicBool::new(false));
        let prompt: Arc<str> = self.settings.prompt.replace("{state}", &request.state).into();
        let parts: Vec<(usize, usize)> = match self.settings.grouped {
            true => vec![(0, request.samples)],
            false => (0..request.samples).map(|first| (first, 1)).collect(),
        };
        let missing = parts.len();
        for (first, samples) in parts {
            let stream = if self.settings.grouped {
                request.stream
            } else {
                request.stream.child(first as u64)
            };
            let job = Job {
                serial,
                first,
                samples,
                prompt: prompt.clone(),
                stream,
                cancelled: cancelled.clone(),
            };
            // The workers live as long as this sender; were they gone, polling would say so.
            let _ = self.jobs.send(job);
        }
        self.open.insert(
            serial,
            Open { id: request.id, missing, samples: vec![None; request.samples], cancelled },
        );
    }

    fn poll(&mut self) -> Vec<Answer> {
        let mut ready: Vec<Answer> = Vec::new();
        let none_wanted: Vec<u64> = self
            .open
            .iter()
            .filter(|(_, open)| open.samples.is_empty())
            .map(|(serial, _)| *serial)
            .collect();
        for serial in none_wanted {
            ready.extend(self.open.remove(&serial).map(|open| (open.id, Ok(Vec::new()))));
        }
        while !self.open.is_empty() {
            let wait = if ready.is_empty() { LOOK } else { Duration::ZERO };
            match self.answers.recv_timeout(wait) {
                Ok((serial, first, answer)) => ready.extend(self.settle(serial, first, answer)),
                Err(RecvTimeoutError::Timeout) if !ready.is_empty() => break,
                Err(RecvTimeoutError::Timeout) if !self.interrupted.load(Ordering::Relaxed) => {}
                Err(RecvTimeoutError::Timeout) => ready = self.abandon("the search was stopped"),
                Err(RecvTimeoutError::Disconnected) => {
                    let lost = "the threads that send requests are gone; please report this";
                    ready.extend(self.abandon(lost));
                }
            }
        }
        ready
    }

    fn interrupt(&self) -> Option<Arc<AtomicBool>> {
        Some(Arc::clone(&self.interrupted))
    }

    fn describe(&self) -> String {
        let HttpSettings { url, model, temperature, top_p, prompt, .. } = &self.settings;
        let model = model.as_deref().unwrap_or("the server's model");
        let url = secrets::shown(url);
        format!(
            "http ({model} at {url}; temperature {temperature}, top-p {top_p}; prompt {prompt:?})"
        )
    }

    fn identity(&self) -> Identity {
        let settings = &self.settings;
        Identity::new("http")
            .with("url", secrets::shown(&settings.url))
            .with("model", settings.model.as_deref().unwrap_or("the server's"))
            .with("prompt", format!("{:?}", settings.prompt))
            .with("stop", format!("{:?}", settings.stop))
            .with("temperature", settings.temperature)
            .with("top-p", settings.top_p)
            .with("max tokens", settings.max_tokens)
            .with("grouped", settings.grouped)
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Workers finish the request they are in and stop; nobody waits for them.
        self.closing.store(true, Ordering::Relaxed);
    }
}
