//! `--policy`: where tactics come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_evaluate::Workload;
use catamount_model::{Backend, Generator, GeneratorConfig, locate};
use catamount_policies::{Http, HttpSettings, Ngram, Replay};
use catamount_search::{Deployment, Policy};
use catamount_traces::read_any;

use crate::device::{Device, OnDevice};
use crate::{environment, model};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where tactics come from: `ngram:TRACES`, `model:FOLDER` (or a GGUF file), `http:URL` (any
    /// OpenAI-compatible completions server), `replay:TRACES`.
    #[arg(long)]
    pub policy: String,
    /// A LoRA adapter in PEFT's format, for `model`.
    #[arg(long)]
    pub adapter: Option<PathBuf>,
    /// auto, cpu or cuda:0, for `model`.
    #[arg(long, default_value = "auto")]
    pub device: Device,
    /// Samples decoded together, for `model`.
    #[arg(long, default_value_t = Workload::BATCH)]
    pub batch: usize,
    /// Model or LoRA adapter name, for `http`.
    #[arg(long)]
    pub model_name: Option<String>,
    /// Longest wait for one answer, in seconds, for `http`. An answer that does not come is tried
    /// again a few times.
    #[arg(long, default_value_t = 120.0)]
    pub http_timeout: f64,
    /// Prompt for `http`, in which {state} stands for the state.
    #[arg(long)]
    pub prompt: Option<String>,
}

impl Arguments {
    /// The policy as a deployment samples it, with so many searches in flight.
    pub fn open(&self, deployment: &Deployment, concurrency: usize) -> Result<Box<dyn Policy>> {
        let Some((kind, rest)) = self.policy.split_once(':') else {
            bail!(
                "--policy {} names no kind; it looks like ngram:train.jsonl or \
                 http://127.0.0.1:8000",
                self.policy
            );
        };
        Ok(match kind {
            "ngram" => Box::new(Ngram::open(Path::new(rest), deployment.temperature())?),
            "replay" => {
                let traces = read_any(Path::new(rest))
                    .with_context(|| format!("--policy {}", self.policy))?
                    .traces;
                Box::new(Replay::new(&traces, 0.9))
            }
            "model" => {
                let work = ModelPolicy { arguments: self, name: rest, deployment, concurrency };
                self.device.run(work)?
            }
            "http" | "https" => {
                let url =
                    if rest.starts_with("//") { self.policy.clone() } else { rest.to_string() };
                let mut settings = HttpSettings::new(url);
                settings.temperature = deployment.temperature();
                settings.top_p = deployment.top_p();
                settings.max_tokens = deployment.max_tokens() as u32;
                settings.model = self.model_name.clone();
                settings.timeout = environment::seconds(self.http_timeout, "--http-timeout")?;
                if let Some(prompt) = &self.prompt {
                    settings.prompt = prompt.clone();
                }
                Box::new(Http::new(settings)?)
            }
            other => {
                let known = ["ngram", "model", "http", "replay"];
                let near = catamount_base::nearest(other, known);
                let hint = near.map(|near| format!("; did you mean {near}?")).unwrap_or_default();
                bail!(
                    "unknown kind of policy `{other}`{hint}; the known ones are {}",
                    known.join(", ")
                )
            }
        })
    }
}

/// A model as a policy, on whichever device.
struct ModelPolicy<'a> {
    arguments: &'a Arguments,
    name: &'a str,
    deployment: &'a Deployment,
    concurrency: usize,
}

impl OnDevice for ModelPolicy<'_> {
    type Output = Box<dyn Policy>;

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<Box<dyn Policy>> {
        let (model, tokenizer) =
            model::open(self.name, self.arguments.adapter.as_deref(), &backend)?;
        let config = GeneratorConfig::deployed(
            &model.config,
            self.deployment,
            self.arguments.batch,
            self.concurrency,
        );
        let mut generator = Generator::new(model, tokenizer, config, self.name)?;
        let adapter = self.arguments.adapter.as_deref();
        generator.set_identity(catamount_model::identity(&locate(self.name)?, adapter)?);
        Ok(Box::new(generator))
    }
}
