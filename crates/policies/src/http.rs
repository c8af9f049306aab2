//! Tactics from any OpenAI-compatible server: vLLM, SGLang, llama.cpp and others.
//!
//! The prompt is text by a template, or, with a [`Layout`], the very tokens of training. A tactic
//! ends where the model ends it, and at stop texts where there are any.
//!
//! Each sample is one HTTP request with its own seed, derived from its random stream: where the
//! server honours seeds, the same stream gives the same samples, and fewer samples are a prefix of
//! more. With [`HttpSettings::grouped`] a question is one request with `n` set, which is fewer
//! requests but ties the samples of a question together.
//!
//! A tactic's log-probability is the sum over the tokens that the server reports. vLLM reports the
//! stop token among them; llama.cpp does not report the tokens of a stop string, so that there log
//! p lacks the end of the tactic. Both report probabilities at temperature 1 unless told otherwise
//! when started; SGLang reports those after the temperature unless told otherwise.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use catamount_base::shown;
use catamount_search::{Fault, Identity, Policy, Request, RequestId, Sample};

use adapter::Loaded;
use client::{Client, Job, Prompt};
use naming::Naming;

pub use adapter::ServedAdapter;
pub use settings::{Api, HttpSettings, Layout};

mod adapter;
mod client;
mod naming;
mod reply;
mod secrets;
mod settings;

/// Why settings cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct HttpError(String);

/// A server as a policy.
pub struct Http {
    settings: HttpSettings,
    client: Arc<Client>,
    jobs: Sender<Job>,
    answers: Receiver<(u64, usize, Result<Vec<Sample>, Fault>)>,
    /// By serial number: the caller's own numbers may come again.
    open: HashMap<u64, Open>,
    next: u64,
    closing: Arc<AtomicBool>,
    interrupted: Arc<AtomicBool>,
    /// Kept for its end: the server then unloads the adapter.
    _adapter: Option<Loaded>,
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
    /// A policy on a server. Nothing is sent yet, unless the server is to load an adapter; one that
    /// cannot be reached shows as a fault of each question.
    pub fn new(settings: HttpSettings) -> Result<Self, HttpError> {
        Http::open(settings, &AtomicBool::new(false))
    }

    /// The same; should the server take long to load an adapter, it is not waited for once `stop`
    /// is set.
    pub fn open(settings: HttpSettings, stop: &AtomicBool) -> Result<Self, HttpError> {
        settings.check()?;
        let (jobs, queue) = channel::<Job>();
        let (done, answers) = channel();
        let queue = Arc::new(Mutex::new(queue));
        let closing = Arc::new(AtomicBool::new(false));
        let client = Arc::new(Client::new(&settings, closing.clone()));
        let adapter = settings.adapter.as_ref().filter(|adapter| !adapter.preloaded);
        let adapter =
            adapter.map(|adapter| Loaded::load(client.clone(), adapter, stop)).transpose()?;
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
        let open = HashMap::new();
        let (next, _adapter) = (0, adapter);
        Ok(Http { settings, client, jobs, answers, open, next, closing, interrupted, _adapter })
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
        let prompt = Arc::new(match &self.settings.layout {
            Some(layout) => Prompt::Tokens(layout.prompt(&request.state)),
            None => Prompt::Text(catamount_traces::prompt(&self.settings.prompt, &request.state)),
        });
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
        let HttpSettings { url, temperature, top_p, prompt, layout, .. } = &self.settings;
        let model = self.settings.served().unwrap_or("the server's model");
        let url = shown(url);
        let prompt = match layout {
            Some(_) => "tokens as in training".to_owned(),
            None => format!("{prompt:?}"),
        };
        format!(
            "http ({model} at {url}; temperature {temperature}, top-p {top_p}; prompt {prompt})"
        )
    }

    fn identity(&self) -> Identity {
        let settings = &self.settings;
        let identity = Identity::new("http")
            .with("url", shown(&settings.url))
            .with("api", format!("{:?}", settings.api).to_lowercase())
            .with("model", settings.served().unwrap_or("the server's"))
            .with("stop", format!("{:?}", settings.stop))
            .with("temperature", settings.temperature)
            .with("top-p", settings.top_p)
            .with("max tokens", settings.max_tokens)
            .with("grouped", settings.grouped);
        let identity = match &settings.layout {
            Some(layout) => identity.with("tokenizer", layout.name()),
            None => identity.with("prompt", format!("{:?}", settings.prompt)),
        };
        let identity = match &settings.adapter {
            Some(adapter) => identity.with("adapter", &adapter.content),
            None => identity,
        };
        match self.client.naming() {
            // A log of SGLang without it was sampled from the base.
            Ok(Naming::LoraPath) => identity.with("named by", Naming::LoraPath.field()),
            // A server that does not answer will answer no question either.
            Ok(Naming::Model) | Err(_) => identity,
        }
    }
}

impl Drop for Http {
    fn drop(&mut self) {
        // Workers finish the request they are in and stop; nobody waits for them.
        self.closing.store(true, Ordering::Relaxed);
    }
}
