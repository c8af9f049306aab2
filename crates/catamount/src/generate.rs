//! `catamount generate`: what a model would try at a state.

use std::io::Read;
use std::sync::Arc;

use anyhow::{Context, Result};
use catamount_evaluate::Workload;
use catamount_model::{Backend, Generator, GeneratorConfig, Sampling, fitting};
use catamount_search::{Policy, Request, Stream};

use crate::arguments::range;
use crate::device::OnDevice;
use crate::{model, search};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    model: model::Arguments,
    /// How many tactics to sample.
    #[arg(short = 'k', long, default_value_t = 8)]
    #[arg(value_parser = range(1, Workload::LARGEST_BATCH))]
    samples: usize,
    /// Sampling temperature; 0 takes the most probable token each time.
    #[arg(long, default_value_t = search::paper().temperature() as f32)]
    temperature: f32,
    /// Smallest set of tokens with this probability to draw from.
    #[arg(long, default_value_t = 1.0)]
    top_p: f32,
    /// Longest tactic, in tokens [default: 128, or half of a small model's positions].
    #[arg(long)]
    max_tokens: Option<usize>,
    /// Seed.
    #[arg(long, default_value_t = 42)]
    seed: u64,
    /// The state; standard input if not given.
    state: Option<String>,
}

impl OnDevice for &Arguments {
    type Output = ();

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<()> {
        let state = match &self.state {
            Some(state) => state.clone(),
            None => {
                let mut text = String::new();
                std::io::stdin().read_to_string(&mut text).context("cannot read standard input")?;
                text.trim_end().to_string()
            }
        };
        let model::Arguments { model: name, adapter, arithmetic, .. } = &self.model;
        let (model, tokenizer) = model::open(name, adapter.as_deref(), arithmetic, &backend)?;
        let sampling = Sampling { temperature: self.temperature, top_p: self.top_p };
        let usual = fitting(&model.config, search::paper().max_tokens());
        let max_tokens = self.max_tokens.unwrap_or(usual);
        let config = GeneratorConfig { sampling, max_tokens, ..GeneratorConfig::default() };
        let mut generator = Generator::new(model, tokenizer, config, &self.model.model)?;
        generator.submit(Request {
            id: 0,
            state,
            samples: self.samples,
            stream: Stream::new(self.seed),
            urn: None,
        });
        for (_, answer) in generator.poll() {
            for sample in answer.map_err(|fault| anyhow::anyhow!("{fault}"))? {
                println!(
                    "{}",
                    serde_json::json!({ "tactic": sample.tactic, "log_p": sample.log_p,
                        "tokens": sample.tokens })
                );
            }
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.model.device.run(arguments)
}
