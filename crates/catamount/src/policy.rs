//! `--policy`: where tactics come from.

use std::path::Path;

use anyhow::{Context, Result, bail};
use catamount_policies::{Http, HttpSettings, Ngram, Replay};
use catamount_search::Policy;
use catamount_traces::read_any;

#[derive(clap::Args)]
pub struct Arguments {
    /// Where tactics come from: `ngram:TRACES`, `http:URL` (any OpenAI-compatible completions server), `replay:TRACES`.
    #[arg(long)]
    pub policy: String,
    /// Sampling temperature.
    #[arg(long, default_value_t = 0.8)]
    pub temperature: f64,
    /// Model or LoRA adapter name, for `http`.
    #[arg(long)]
    pub model_name: Option<String>,
    /// Prompt for `http`, in which {state} stands for the state.
    #[arg(long)]
    pub prompt: Option<String>,
}

impl Arguments {
    pub fn open(&self) -> Result<Box<dyn Policy>> {
        let Some((kind, rest)) = self.policy.split_once(':') else {
            bail!("--policy {} names no kind; it looks like ngram:train.jsonl or http://127.0.0.1:8000", self.policy);
        };
        if !(self.temperature.is_finite() && self.temperature > 0.0) {
            bail!("--temperature must be positive, not {}", self.temperature);
        }
        Ok(match kind {
            "ngram" => Box::new(Ngram::open(Path::new(rest), self.temperature)?),
            "replay" => {
                let traces = read_any(Path::new(rest)).with_context(|| format!("--policy {}", self.policy))?.traces;
                Box::new(Replay::new(&traces, 0.9))
            }
            "http" | "https" => {
                let url = if rest.starts_with("//") { self.policy.clone() } else { rest.to_string() };
                let mut settings = HttpSettings::new(url);
                settings.temperature = self.temperature;
                settings.model = self.model_name.clone();
                if let Some(prompt) = &self.prompt {
                    settings.prompt = prompt.clone();
                }
                Box::new(Http::new(settings)?)
            }
            other => bail!("unknown kind of policy `{other}`; the known ones are ngram, replay, http"),
        })
    }
}
