//! `--policy`: where tactics come from.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_evaluate::Workload;
use catamount_model::{Backend, Generator, GeneratorConfig, locate};
use catamount_policies::{Ngram, Replay};
use catamount_search::{Deployment, Policy};
use catamount_traces::{Manifest, read_any};

use crate::arguments::range;
use crate::device::{Device, OnDevice};
use crate::{model, server};

#[derive(clap::Args)]
pub struct Arguments {
    /// Where tactics come from: `ngram:TRACES`, `model:FOLDER` (or a GGUF file), `http:URL` (any
    /// OpenAI-compatible server), `replay:TRACES`.
    #[arg(long)]
    pub policy: String,
    /// A LoRA adapter in PEFT's format, for `model`; for `http`, one that the server is to load,
    /// and to unload in the end (vLLM, SGLang).
    #[arg(long)]
    pub adapter: Option<PathBuf>,
    #[command(flatten)]
    pub arithmetic: model::Arithmetic,
    /// auto, cpu or cuda:0, for `model`.
    #[arg(long, default_value = "auto")]
    pub device: Device,
    /// Samples decoded together, for `model`.
    #[arg(long, default_value_t = Workload::BATCH)]
    #[arg(value_parser = range(1, Workload::LARGEST_BATCH))]
    pub batch: usize,
    #[command(flatten)]
    pub server: server::Arguments,
    /// Take files of traces as they are, without comparing them with the manifest beside them.
    #[arg(long)]
    pub no_verify: bool,
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
        if !self.no_verify && matches!(kind, "ngram" | "replay") {
            Manifest::verify_file(Path::new(rest))?;
        }
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
                self.server.open(url, self.adapter.as_deref(), deployment)?
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
        let (batch, tokens) = (self.arguments.batch, self.deployment.max_tokens());
        let most = Workload::MOST_DECODED;
        if batch * tokens > most {
            bail!(
                "--batch {batch} with --max-tokens {tokens} decodes {} tokens at once; at most \
                 {most} are allowed",
                batch * tokens
            );
        }
        let Arguments { adapter, arithmetic, .. } = self.arguments;
        let (model, tokenizer) = model::open(self.name, adapter.as_deref(), arithmetic, &backend)?;
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
