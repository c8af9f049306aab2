//! Policies: those of the crates, opened from their settings, and any Python callable.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use catamount_policies::{Api, Http, HttpSettings, Ngram, Replay, ServedAdapter};
use catamount_search::{Fault, Policy, Request, RequestId, Sample};
use catamount_traces::read_any;
use pyo3::exceptions::{PyException, PyTypeError, PyValueError};
use pyo3::prelude::*;
use serde::Deserialize;

use crate::traces::{shape_error, to_json};

/// Settings of a policy that needs no Python.
#[derive(Clone, Debug, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Settings {
    /// Counts fitted to traces.
    Ngram { traces: String, temperature: f64 },
    /// Demonstrations played back.
    Replay { traces: String, probability: f64 },
    /// A completions server.
    Openai {
        url: String,
        model: Option<String>,
        tokenizer: Option<String>,
        prompt: String,
        chat: bool,
        adapter: Option<String>,
        temperature: f64,
        top_p: f64,
        max_tokens: u32,
        stop: Vec<String>,
        key_variable: String,
        concurrency: usize,
        timeout: f64,
        retries: u32,
        grouped: bool,
    },
}

/// A policy of the crates, known by its settings; each search opens its own.
#[pyclass(frozen, module = "catamount._catamount")]
pub struct NativePolicy(Settings);

#[pymethods]
impl NativePolicy {
    /// From settings as JSON.
    #[new]
    fn new(settings: &str) -> PyResult<Self> {
        Ok(NativePolicy(serde_json::from_str(settings).map_err(shape_error)?))
    }

    /// What the policy says of itself.
    fn describe(&self, py: Python<'_>) -> PyResult<String> {
        // A server of the policy's may be a thread of this interpreter: it has to have its turn.
        py.detach(|| Ok(self.at_rest()?.describe()))
    }

    /// What the policy is by content, as JSON.
    fn identity(&self, py: Python<'_>) -> PyResult<String> {
        to_json(&py.detach(|| PyResult::Ok(self.at_rest()?.identity()))?)
    }
}

impl NativePolicy {
    /// Opens the policy for a search.
    pub fn open(&self) -> PyResult<Box<dyn Policy>> {
        self.opened(true)
    }

    /// The policy to look at: what it is does not depend on what a server has loaded.
    fn at_rest(&self) -> PyResult<Box<dyn Policy>> {
        self.opened(false)
    }

    fn opened(&self, search: bool) -> PyResult<Box<dyn Policy>> {
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        Ok(match &self.0 {
            Settings::Ngram { traces, temperature } => Box::new(
                Ngram::open(Path::new(traces), *temperature).map_err(|error| wrong(&error))?,
            ),
            Settings::Replay { traces, probability } => {
                let traces = read_any(Path::new(traces)).map_err(|error| wrong(&error))?.traces;
                Box::new(Replay::new(&traces, *probability))
            }
            Settings::Openai {
                url,
                model,
                tokenizer,
                prompt,
                chat,
                adapter,
                temperature,
                top_p,
                max_tokens,
                stop,
                key_variable,
                concurrency,
                timeout,
                retries,
                grouped,
            } => {
                let timeout =
                    Duration::try_from_secs_f64(*timeout).map_err(|error| wrong(&error))?;
                if *chat && tokenizer.is_some() {
                    return Err(PyValueError::new_err(
                        "a chat takes text: leave out tokenizer or chat",
                    ));
                }
                let layout = tokenizer.as_deref().map(|model| catamount::layout(Path::new(model)));
                let adapter = adapter
                    .as_deref()
                    .map(|folder| catamount::served(Path::new(folder), model.as_deref()))
                    .transpose()
                    .map_err(described)?
                    .map(|adapter| ServedAdapter {
                        preloaded: adapter.preloaded || !search,
                        ..adapter
                    });
                let settings = HttpSettings {
                    api: if *chat { Api::Chat } else { Api::Completions },
                    layout: layout.transpose().map_err(described)?,
                    adapter,
                    model: model.clone(),
                    prompt: prompt.clone(),
                    temperature: *temperature,
                    top_p: *top_p,
                    max_tokens: *max_tokens,
                    stop: stop.clone(),
                    key_variable: key_variable.clone(),
                    concurrency: *concurrency,
                    timeout,
                    retries: *retries,
                    grouped: *grouped,
                    ..HttpSettings::new(url.clone())
                };
                Box::new(Http::new(settings).map_err(|error| wrong(&error))?)
            }
        })
    }
}

/// An error with its causes.
fn described(error: impl std::fmt::Display) -> PyErr {
    PyValueError::new_err(format!("{error:#}"))
}

/// What ends a run early: an exception raised by Python code, or Ctrl-C.
#[derive(Clone, Default)]
pub struct Interruption {
    /// Read by the driver between questions.
    pub stop: Arc<AtomicBool>,
    failure: Arc<Mutex<Option<PyErr>>>,
}

impl Interruption {
    /// Keeps the first error and asks the driver to stop.
    pub fn raise(&self, error: PyErr) {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }

    /// The error, if there was one.
    pub fn take(&self) -> Option<PyErr> {
        self.failure.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Lets Python handle a pending signal.
    pub fn check_signals(&self) {
        if let Err(error) = Python::attach(|py| py.check_signals()) {
            self.raise(error);
        }
    }
}

/// A Python callable: a list of questions `(state, n, seed)` in, a list of answers out, each a list
/// of n tuples `(tactic, log_p)` or `(tactic, log_p, tokens)`. An answer may be an exception
/// instead: then that theorem is an error, tried again on resume. An exception that is raised ends
/// the run.
pub struct Callable {
    /// The callable.
    pub function: Py<PyAny>,
    /// For manifests.
    pub name: String,
    /// The most questions per call.
    pub batch: usize,
    /// Where exceptions go.
    pub interruption: Interruption,
    /// Questions not yet asked, oldest first.
    pub pending: Vec<Request>,
}

impl Callable {
    fn ask(
        &self,
        py: Python<'_>,
        requests: &[Request],
    ) -> PyResult<Vec<Result<Vec<Sample>, Fault>>> {
        let questions: Vec<(&str, usize, u64)> = requests
            .iter()
            .map(|request| (request.state.as_str(), request.samples, request.stream.0))
            .collect();
        let answers = self.function.bind(py).call1((questions,))?;
        let answers: Vec<Bound<'_, PyAny>> = answers.try_iter()?.collect::<PyResult<_>>()?;
        if answers.len() != requests.len() {
            return Err(PyValueError::new_err(format!(
                "the policy was asked {} questions and gave {} answers",
                requests.len(),
                answers.len()
            )));
        }
        requests
            .iter()
            .zip(answers)
            .map(|(request, answer)| read_answer(request, &answer))
            .collect()
    }
}

fn read_answer(
    request: &Request,
    answer: &Bound<'_, PyAny>,
) -> PyResult<Result<Vec<Sample>, Fault>> {
    if answer.is_instance_of::<PyException>() {
        return Ok(Err(Fault(format!("the policy failed: {}", answer.repr()?))));
    }
    let mut samples = Vec::with_capacity(request.samples);
    for sample in answer.try_iter()? {
        samples.push(read_sample(&sample?)?);
    }
    if samples.len() != request.samples {
        let (asked, given) = (request.samples, samples.len());
        return Err(PyValueError::new_err(format!(
            "the policy was asked for {asked} tactics at a state and gave {given}"
        )));
    }
    Ok(Ok(samples))
}

fn read_sample(sample: &Bound<'_, PyAny>) -> PyResult<Sample> {
    let three = sample.extract::<(String, f64, usize)>();
    let (tactic, log_p, tokens) = match three {
        Ok(three) => three,
        Err(_) => {
            let (tactic, log_p) = sample.extract::<(String, f64)>().map_err(|_| {
                PyTypeError::new_err(format!(
                    "a sample is a tuple (tactic, log_p) or (tactic, log_p, tokens), not {sample:?}"
                ))
            })?;
            (tactic, log_p, 0)
        }
    };
    if log_p.is_nan() || log_p > 0.0 {
        return Err(PyValueError::new_err(format!(
            "the tactic {tactic:?} has log-probability {log_p}; it must be at most 0"
        )));
    }
    Ok(Sample { tactic, log_p, tokens })
}

impl Policy for Callable {
    fn submit(&mut self, request: Request) {
        self.pending.push(request);
    }

    fn poll(&mut self) -> Vec<(RequestId, Result<Vec<Sample>, Fault>)> {
        let count = self.pending.len().min(self.batch.max(1));
        let requests: Vec<Request> = self.pending.drain(..count).collect();
        match Python::attach(|py| self.ask(py, &requests)) {
            Ok(answers) => requests.into_iter().map(|request| request.id).zip(answers).collect(),
            Err(error) => {
                self.interruption.raise(error);
                Vec::new()
            }
        }
    }

    fn describe(&self) -> String {
        self.name.clone()
    }
}
