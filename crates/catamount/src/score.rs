//! `catamount score`: log p of every tactic, ready for `catamount weights`.

use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use catamount_model::Backend;
use catamount_traces::read_any;
use serde_json::json;

use crate::device::OnDevice;
use crate::{model, output, progress, stop};

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    model: model::Arguments,
    /// The temperature that tactics will be sampled at: log p is that of the logits divided by it.
    /// At 1 it is the model's own.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = temperature)]
    temperature: f64,
    /// Token rows scored together.
    #[arg(long, default_value_t = 4096)]
    tokens: usize,
    /// Traces: own format, LeanDojo JSON or Parquet.
    traces: PathBuf,
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|t| *t > 0.0 && *t <= 10.0);
    number.ok_or_else(|| "a temperature is a number above 0 and at most 10".to_string())
}

impl OnDevice for &Arguments {
    type Output = ();

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<()> {
        let traces = read_any(&self.traces)?.traces;
        let (model, tokenizer) =
            model::open(&self.model.model, self.model.adapter.as_deref(), &backend)?;
        let mut out = std::io::BufWriter::new(output::lock());
        let bar = progress::bar(traces.len() as u64, "traces");
        let mut unscored = 0;
        let mut each = |scored: catamount_train::Scored| {
            bar.inc(1);
            match scored.log_p {
                Ok(log_p) => {
                    let line = json!({ "name": scored.trace.theorem.name, "logp": log_p });
                    writeln!(out, "{line}").map_err(catamount_train::Error::file(&self.traces))?;
                }
                Err(reason) => {
                    unscored += 1;
                    bar.println(format!("{}: {reason}", scored.trace.theorem.name));
                }
            }
            Ok(())
        };
        catamount_train::score(
            &model,
            &tokenizer,
            self.temperature,
            traces.into_iter().map(Ok),
            self.tokens,
            stop::on_interrupt(),
            &mut each,
        )?;
        bar.finish_and_clear();
        out.flush()?;
        if unscored > 0 {
            eprintln!("{unscored} traces are too long for the model and were left out");
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.model.device.run(arguments)
}
