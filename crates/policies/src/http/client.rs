//! One question to the server: sent, waited for, tried again where that can help.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{env, thread};

use catamount_base::user;
use catamount_search::{Fault, Sample, Stream};
use serde_json::{Value, json};
use ureq::http::Response;
use ureq::typestate::WithBody;
use ureq::{Agent, Body, RequestBuilder};

use super::naming::Naming;
use super::secrets::Secrets;
use super::{Api, HttpError, HttpSettings, Layout, reply};

/// The largest reply that is read.
const LARGEST: u64 = 32 << 20;
/// The longest wait between two tries.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How long a wait goes on before it is noticed that nobody wants the answer any more.
const NAP: Duration = Duration::from_millis(100);

/// Some samples of a question.
pub(super) struct Job {
    pub(super) serial: u64,
    /// The place of the first sample within the question.
    pub(super) first: usize,
    pub(super) samples: usize,
    pub(super) prompt: Arc<Prompt>,
    pub(super) stream: Stream,
    /// Set once nobody wants the answer.
    pub(super) cancelled: Arc<AtomicBool>,
}

/// What the model goes on from.
pub(super) enum Prompt {
    Text(String),
    /// Or why the state cannot be written in tokens.
    Tokens(Result<Vec<u32>, String>),
}

pub(super) struct Client {
    agent: Agent,
    url: String,
    key: Option<String>,
    secrets: Secrets,
    settings: HttpSettings,
    /// How the server wants a model named, once it has been asked.
    naming: OnceLock<Naming>,
    /// The server could not be reached, retries and all: until it answers again, one try is enough.
    down: AtomicBool,
    closing: Arc<AtomicBool>,
}

/// What came of one try.
enum Failure {
    /// It may go better next time.
    Passing { reason: String, unreachable: bool, wait: Option<Duration> },
    /// It will not.
    Lasting(String),
}

impl Client {
    pub(super) fn new(settings: &HttpSettings, closing: Arc<AtomicBool>) -> Self {
        let base = settings.base();
        let config = Agent::config_builder()
            .timeout_global(Some(settings.timeout))
            .timeout_connect(Some(settings.timeout.min(Duration::from_secs(10))))
            .http_status_as_error(false)
            .max_idle_connections_per_host(settings.concurrency);
        let host = match user(base) {
            Some(user) => &base[user.end + 1..],
            None => base.split("://").nth(1).unwrap_or_default(),
        };
        // A proxy set for the outside world cannot reach this machine's own servers.
        let local = ["localhost", "127.", "[::1]"].iter().any(|name| host.starts_with(name));
        let config = if local { config.proxy(None) } else { config };
        let key = env::var(&settings.key_variable).ok().filter(|key| !key.is_empty());
        let secrets = Secrets::new(key.as_deref(), &settings.url);
        Client {
            agent: config.build().into(),
            url: match settings.api {
                Api::Completions => format!("{base}/v1/completions"),
                Api::Chat => format!("{base}/v1/chat/completions"),
            },
            key,
            secrets,
            settings: settings.clone(),
            naming: OnceLock::new(),
            down: AtomicBool::new(false),
            closing,
        }
    }

    /// The samples of a job, however many tries that takes. Nothing that comes out of here holds
    /// the key, whatever the server echoes: samples and faults end in logs. A key that is too short
    /// to be told from a word stays in tactics, as the word it is there.
    pub(super) fn ask(&self, job: &Job) -> Result<Vec<Sample>, Fault> {
        match self.keep_asking(job) {
            Ok(mut samples) => {
                for sample in &mut samples {
                    let tactic = std::mem::take(&mut sample.tactic);
                    sample.tactic = self.secrets.redacted_tactic(tactic);
                }
                Ok(samples)
            }
            Err(Fault(reason)) => Err(Fault(self.secrets.redacted(&reason))),
        }
    }

    fn keep_asking(&self, job: &Job) -> Result<Vec<Sample>, Fault> {
        let unwanted =
            || job.cancelled.load(Ordering::Relaxed) || self.closing.load(Ordering::Relaxed);
        let mut attempt = 0;
        loop {
            if unwanted() {
                return Err(Fault("nobody waits for this answer any more".into()));
            }
            let (reason, unreachable, wait) = match self.ask_once(job) {
                Ok(samples) => {
                    self.down.store(false, Ordering::Relaxed);
                    return Ok(samples);
                }
                Err(Failure::Lasting(reason)) => return Err(Fault(reason)),
                Err(Failure::Passing { reason, unreachable, wait }) => (reason, unreachable, wait),
            };
            let known_down = unreachable && self.down.load(Ordering::Relaxed);
            if attempt == self.settings.retries || known_down {
                if unreachable {
                    self.down.store(true, Ordering::Relaxed);
                }
                return Err(Fault(format!("{reason} (after {} tries)", attempt + 1)));
            }
            let doubled = self.settings.back_off.saturating_mul(1 << attempt.min(16));
            // Jitter, so that requests that failed together do not come back together.
            let jitter = 0.5 + job.stream.named("back-off").uniform(u64::from(attempt));
            let wait = wait.unwrap_or(doubled.min(LONGEST_WAIT).mul_f64(jitter)).min(LONGEST_WAIT);
            let until = Instant::now() + wait;
            while !unwanted() && Instant::now() < until {
                thread::sleep(wait.min(NAP));
            }
            attempt += 1;
        }
    }

    /// How the server wants a model named. It is asked until it has answered.
    pub(super) fn naming(&self) -> Result<Naming, HttpError> {
        if let Some(known) = self.naming.get() {
            return Ok(*known);
        }
        let naming = Naming::ask(self, &self.settings)?;
        Ok(*self.naming.get_or_init(|| naming))
    }

    /// Whose endpoints loaded an adapter, wants it named so.
    pub(super) fn set_naming(&self, naming: Naming) {
        self.naming.get_or_init(|| naming);
    }

    /// Posts to another endpoint of the server, within a limit of its own if there is one: the
    /// status, and what the server says, without secrets.
    pub(super) fn post(
        &self,
        path: &str,
        body: &Value,
        limit: Option<Duration>,
    ) -> Result<(u16, String), HttpError> {
        let limit = limit.map_or(self.settings.timeout, |limit| limit.min(self.settings.timeout));
        let url = format!("{}{path}", self.settings.base());
        let request = self.request(&url).config().timeout_global(Some(limit)).build();
        self.said(&url, request.send(body.to_string()))
    }

    /// Gets a page of the server: the status, and what the server says, without secrets.
    pub(super) fn get(&self, path: &str) -> Result<(u16, String), HttpError> {
        let url = format!("{}{path}", self.settings.base());
        self.said(&url, self.authorized(self.agent.get(&url)).call())
    }

    fn said(
        &self,
        url: &str,
        answer: Result<Response<Body>, ureq::Error>,
    ) -> Result<(u16, String), HttpError> {
        let failed = |e: ureq::Error| HttpError(self.secrets.redacted(&format!("{url}: {e}")));
        let mut response = answer.map_err(failed)?;
        let said = response.body_mut().with_config().limit(LARGEST).read_to_vec();
        let said = String::from_utf8_lossy(&said.map_err(failed)?).into_owned();
        Ok((response.status().as_u16(), self.secrets.redacted(&said)))
    }

    fn request(&self, url: &str) -> RequestBuilder<WithBody> {
        self.authorized(self.agent.post(url).header("content-type", "application/json"))
    }

    fn authorized<B>(&self, request: RequestBuilder<B>) -> RequestBuilder<B> {
        match &self.key {
            Some(key) => request.header("authorization", format!("Bearer {key}")),
            None => request,
        }
    }

    fn ask_once(&self, job: &Job) -> Result<Vec<Sample>, Failure> {
        let url = &self.url;
        let unknown =
            |HttpError(reason)| Failure::Passing { reason, unreachable: true, wait: None };
        let naming = self.naming().map_err(unknown)?;
        let body = self.body(job, naming).map_err(Failure::Lasting)?;
        let failed = |e: ureq::Error| self.failure(e);
        let mut response = self.request(url).send(body).map_err(failed)?;
        let status = response.status().as_u16();
        let wait = response
            .headers()
            .get("retry-after")
            .and_then(|value| value.to_str().ok()?.trim().parse().ok());
        let body =
            response.body_mut().with_config().limit(LARGEST).read_to_vec().map_err(failed)?;
        if status == 200 {
            let samples = reply::samples(&body, job.samples, &self.secrets);
            return samples.map_err(|reason| Failure::Lasting(format!("{url}: {reason}")));
        }
        // Before it is cut, or the beginning of a secret might be left at the end.
        let said = self.secrets.redacted(&String::from_utf8_lossy(&body));
        let said = reply::excerpt(said.as_bytes());
        let reason = format!("{url} answered with HTTP status {status}: {said}");
        match status {
            408 | 425 | 429 | 500..=599 => Err(Failure::Passing {
                reason,
                unreachable: false,
                wait: wait.map(Duration::from_secs),
            }),
            401 | 403 => Err(Failure::Lasting(format!(
                "{reason}; the key is read from {}",
                self.settings.key_variable
            ))),
            404 => Err(Failure::Lasting(format!(
                "{reason}; is the model {:?} loaded there?",
                self.settings.served()
            ))),
            _ => Err(Failure::Lasting(reason)),
        }
    }

    fn body(&self, job: &Job, naming: Naming) -> Result<String, String> {
        let settings = &self.settings;
        let mut body = json!({
            "n": job.samples,
            "temperature": settings.temperature,
            "top_p": settings.top_p,
            "max_tokens": settings.max_tokens,
            // Servers differ in how wide a seed may be; 31 bits suit all.
            "seed": job.stream.0 >> 33,
            "stream": false,
        });
        match (&*job.prompt, settings.api) {
            (Prompt::Text(text), Api::Completions) => {
                body["prompt"] = json!(text);
                body["logprobs"] = json!(1);
            }
            (Prompt::Text(text), Api::Chat) => {
                body["messages"] = json!([{ "role": "user", "content": text }]);
                body["logprobs"] = json!(true);
            }
            (Prompt::Tokens(tokens), _) => {
                body["prompt"] = json!(tokens.as_ref().map_err(String::clone)?);
                body["logprobs"] = json!(1);
                // The end of training need not be the end that the server knows of.
                let end = settings.layout.as_ref().map(Layout::end);
                body["stop_token_ids"] = json!(end.into_iter().collect::<Vec<u32>>());
            }
        }
        if !settings.stop.is_empty() {
            body["stop"] = json!(settings.stop);
        }
        if let Some(model) = settings.served() {
            body[naming.field()] = json!(model);
        }
        Ok(body.to_string())
    }

    fn failure(&self, error: ureq::Error) -> Failure {
        let url = &self.url;
        let hint = "is the server running? start one with `vllm serve MODEL` or `llama-server -m \
         MODEL.gguf`";
        match error {
            ureq::Error::Timeout(what) => {
                let reason =
                    format!("{url} did not answer within {:?} ({what})", self.settings.timeout);
                Failure::Passing { reason, unreachable: true, wait: None }
            }
            ureq::Error::Io(_) | ureq::Error::ConnectionFailed | ureq::Error::HostNotFound => {
                Failure::Passing {
                    reason: format!("cannot reach {url}: {error}; {hint}"),
                    unreachable: true,
                    wait: None,
                }
            }
            // A server that goes away in the middle of a reply shows as broken HTTP.
            ureq::Error::Protocol(_) => Failure::Passing {
                reason: format!("{url} does not speak HTTP as expected: {error}"),
                unreachable: true,
                wait: None,
            },
            other => Failure::Lasting(format!("{url}: {other}")),
        }
    }
}
