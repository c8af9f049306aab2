//! `catamount score`: log p of every tactic, ready for `catamount weights`.

use std::collections::HashSet;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use catamount_base::{Appender, Content, Lines, Lock, Progress};
use catamount_model::{Backend, identity, locate};
use catamount_search::Identity;
use catamount_traces::{LogP, Manifest, Trace, read_any};

use crate::arguments::range;
use crate::device::OnDevice;
use crate::{model, output, stop};

/// Token rows scored together at most.
const TOKENS: usize = 1 << 24;

#[derive(clap::Args)]
pub struct Arguments {
    #[command(flatten)]
    model: model::Arguments,
    /// The temperature that tactics will be sampled at: log p is that of the logits divided by it.
    /// At 1 it is the model's own.
    #[arg(long, default_value_t = 1.0, allow_negative_numbers = true, value_parser = temperature)]
    temperature: f64,
    /// Token rows scored together.
    #[arg(long, default_value_t = 4096, value_parser = range(1, TOKENS))]
    tokens: usize,
    /// Write to this file instead of standard output; run again after an interruption, the command
    /// goes on where the file ends.
    #[arg(long)]
    out: Option<PathBuf>,
    /// Take the file as it is, without comparing it with the manifest beside it.
    #[arg(long)]
    no_verify: bool,
    /// Traces: own format, LeanDojo JSON or Parquet; several by a pattern, such as 't-*.jsonl'.
    traces: PathBuf,
}

fn temperature(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|t| *t > 0.0 && *t <= 10.0);
    number.ok_or_else(|| "a temperature is a number above 0 and at most 10".to_string())
}

/// Where lines go, each as soon as it is known.
enum Sink {
    /// A pipe, or a terminal.
    Output(output::Output),
    /// A file with one writer.
    File { path: PathBuf, appender: Appender, _lock: Lock },
}

impl Sink {
    fn write(&mut self, line: &LogP) -> std::io::Result<()> {
        match self {
            Sink::Output(out) => {
                serde_json::to_writer(&mut *out, line)?;
                out.write_all(b"\n")
            }
            Sink::File { appender, .. } => appender.append(line),
        }
    }
}

/// A file of scores, opened to be continued, and the names that it has.
fn resume(path: &Path, identity: &Identity) -> Result<(Sink, HashSet<String>)> {
    let lock = Lock::at(&beside(path, "lock"), path)?;
    let manifest = beside(path, "manifest.json");
    let mut done = HashSet::new();
    if path.exists() {
        let text = std::fs::read(&manifest).with_context(|| {
            format!(
                "{} is there, but {}, which says what it holds, is not; name another --out",
                path.display(),
                manifest.display()
            )
        })?;
        let there: Identity = serde_json::from_slice(&text)
            .with_context(|| format!("{} is damaged", manifest.display()))?;
        if let Some((part, was, is)) = there.differences(identity).first() {
            bail!(
                "{} holds other scores ({part}: {was} there, {is} here); name another --out",
                path.display()
            );
        }
        for line in Lines::<LogP>::read(path)? {
            done.insert(line.name.as_str().unwrap_or_default().to_owned());
        }
    } else {
        catamount_base::write(&manifest, serde_json::to_vec(identity)?)
            .with_context(|| format!("cannot write {}", manifest.display()))?;
    }
    let appender =
        Appender::open(path).with_context(|| format!("cannot write {}", path.display()))?;
    Ok((Sink::File { path: path.to_owned(), appender, _lock: lock }, done))
}

/// A file that belongs to another: `scored.jsonl` has `.scored.jsonl.lock`.
fn beside(path: &Path, what: &str) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".{name}.{what}"))
}

impl OnDevice for &Arguments {
    type Output = ();

    fn run<B: Backend>(self, backend: Arc<B>) -> Result<()> {
        if !self.no_verify {
            Manifest::verify_file(&self.traces)?;
        }
        let mut traces: Vec<Trace> = read_any(&self.traces)?.traces;
        let adapter = self.model.adapter.as_deref();
        let (mut sink, mut before) = (Sink::Output(output::lock()), 0);
        if let Some(path) = &self.out {
            let mut identity = identity(&locate(&self.model.model)?, adapter)?
                .with("traces", Content::of_value(&traces))
                .with("temperature", self.temperature);
            if let Some(arithmetic) = self.model.arithmetic.name() {
                identity = identity.with("arithmetic", arithmetic);
            }
            let (file, done) = resume(path, &identity)?;
            before = done.len();
            traces.retain(|trace| !done.contains(&trace.theorem.name));
            sink = file;
        }
        let (model, tokenizer) =
            model::open(&self.model.model, adapter, &self.model.arithmetic, &backend)?;
        let bar = Progress::new((before + traces.len()) as u64, "traces");
        if before > 0 {
            bar.say(format!("{before} traces were scored before"));
            bar.resumed_at(before as u64);
        }
        let mut unscored = 0;
        let mut each = |scored: catamount_train::Scored| {
            bar.advance(1);
            let name = scored.trace.theorem.name;
            match scored.log_p {
                Ok(logp) => sink
                    .write(&LogP { name: name.into(), logp })
                    .map_err(catamount_train::Error::file(&self.traces))?,
                Err(reason) => {
                    unscored += 1;
                    bar.say(format!("{name}: {reason}"));
                }
            }
            Ok(())
        };
        let complete = catamount_train::score(
            &model,
            &tokenizer,
            self.temperature,
            traces.into_iter().map(Ok),
            self.tokens,
            stop::on_interrupt(),
            &mut each,
        )?;
        bar.finish();
        if unscored > 0 {
            eprintln!("{unscored} traces are too long for the model and were left out");
        }
        match sink {
            Sink::File { .. } if !complete => {
                note!("interrupted; run the same command to go on");
            }
            Sink::File { path, .. } => println!("scores written to {}", path.display()),
            Sink::Output(_) => {}
        }
        Ok(())
    }
}

pub fn run(arguments: &Arguments) -> Result<()> {
    arguments.model.device.run(arguments)
}
