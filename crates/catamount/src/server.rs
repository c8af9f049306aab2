//! `--policy http:URL`: how a server is asked.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use catamount_base::Content;
use catamount_model::tokenizer_of;
use catamount_policies::{Api, Http, HttpSettings, Layout, ServedAdapter};
use catamount_search::{Deployment, Policy};

use crate::arguments::range;
use crate::{environment, stop};

/// Where the help lists these.
const HEADING: &str = "Server (--policy http:URL)";

#[derive(clap::Args)]
pub struct Arguments {
    /// The model to ask for, or an adapter that the server has loaded, by its name there. With
    /// --adapter, the name under which the server is to load it.
    #[arg(long, help_heading = HEADING)]
    pub model_name: Option<String>,
    /// Send token ids, laid out as in training by the tokenizer of this model's folder (or GGUF
    /// file), instead of text. vLLM, SGLang and llama.cpp take them.
    #[arg(long, help_heading = HEADING, value_name = "FOLDER")]
    #[arg(conflicts_with_all = ["prompt", "chat"])]
    pub tokenizer: Option<PathBuf>,
    /// The prompt as text, in which {state} stands for the state and \n for a new line
    /// [default: that of training, "{state}:::"].
    #[arg(long, help_heading = HEADING)]
    pub prompt: Option<String>,
    /// Ask /v1/chat/completions, with the prompt as the user's message.
    #[arg(long, help_heading = HEADING)]
    pub chat: bool,
    /// A text that ends a tactic, beside the model's own end of text; \n is a new line; again for
    /// more.
    #[arg(long, help_heading = HEADING, value_name = "TEXT")]
    pub stop: Vec<String>,
    /// Requests under way at once.
    #[arg(long, help_heading = HEADING, default_value_t = HttpSettings::CONCURRENCY)]
    #[arg(value_parser = range(1, HttpSettings::MOST_REQUESTS))]
    pub http_concurrency: usize,
    /// Longest wait for one answer, in seconds.
    #[arg(long, help_heading = HEADING, default_value_t = HttpSettings::TIMEOUT as f64)]
    pub http_timeout: f64,
    /// How many times to retry a request after a temporary failure.
    #[arg(long, help_heading = HEADING, default_value_t = HttpSettings::RETRIES)]
    pub http_retries: u32,
    /// Ask for all samples of a state in one request (`n`): fewer requests, but their seeds are no
    /// longer their own.
    #[arg(long, help_heading = HEADING)]
    pub http_grouped: bool,
}

impl Arguments {
    /// The server as a policy.
    pub fn open(
        &self,
        url: String,
        adapter: Option<&Path>,
        deployment: &Deployment,
    ) -> Result<Box<dyn Policy>> {
        let mut settings = HttpSettings::new(url);
        settings.api = if self.chat { Api::Chat } else { Api::Completions };
        settings.temperature = deployment.temperature();
        settings.top_p = deployment.top_p();
        settings.max_tokens = deployment.max_tokens() as u32;
        settings.model = self.model_name.clone();
        settings.adapter =
            adapter.map(|adapter| served(adapter, self.model_name.as_deref())).transpose()?;
        settings.stop = self.stop.iter().map(|text| unescaped(text)).collect();
        settings.concurrency = self.http_concurrency;
        settings.timeout = environment::seconds(self.http_timeout, "--http-timeout")?;
        settings.retries = self.http_retries;
        settings.grouped = self.http_grouped;
        settings.layout = self.tokenizer.as_deref().map(layout).transpose()?;
        match &self.prompt {
            Some(prompt) => settings.prompt = unescaped(prompt),
            None if self.tokenizer.is_none() => eprintln!(
                "warning: the server is asked with text, which it may tokenize unlike training; \
                 give --tokenizer MODEL for a model trained here, or --prompt for another"
            ),
            None => {}
        }
        Ok(Box::new(Http::open(settings, stop::on_interrupt())?))
    }
}

/// The layout of training, by the tokenizer of a model's folder or GGUF file.
pub fn layout(model: &Path) -> Result<Layout> {
    let path = if model.is_file() { model.to_path_buf() } else { model.join("tokenizer.json") };
    let content = Content::of_file(&path)
        .with_context(|| format!("tokenizer: cannot read {}", path.display()))?;
    let tokenizer = tokenizer_of(model)?;
    let end = tokenizer.end();
    let encode = move |state: &str| tokenizer.prompt(state).map_err(|error| error.to_string());
    Ok(Layout::new(content.to_string(), end, encode))
}

/// An adapter's folder as a server is told of it.
pub fn served(folder: &Path, name: Option<&str>) -> Result<ServedAdapter> {
    let folder =
        std::path::absolute(folder).with_context(|| format!("--adapter {}", folder.display()))?;
    let weights = folder.join("adapter_model.safetensors");
    let content = Content::of_file(&weights).with_context(|| {
        format!("--adapter: {} is not there; PEFT writes it so", weights.display())
    })?;
    let own = folder.file_name().map(|name| name.to_string_lossy().into_owned());
    let Some(name) = name.map(str::to_owned).or(own) else {
        bail!("--adapter {} has no name; give one with --model-name", folder.display());
    };
    let path = folder.display().to_string();
    Ok(ServedAdapter { name, path, content: content.to_string(), preloaded: false })
}

/// A text in which `\n` stands for a new line and `\\` for a backslash.
fn unescaped(text: &str) -> String {
    let mut out = String::new();
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (letter, letters.clone().next()) {
            ('\\', Some('n')) => {
                out.push('\n');
                letters.next();
            }
            ('\\', Some('\\')) => {
                out.push('\\');
                letters.next();
            }
            _ => out.push(letter),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_lines_can_be_written_on_a_command_line() {
        assert_eq!(unescaped(r"{state}\n"), "{state}\n");
        assert_eq!(unescaped(r"a\\nb\t\"), "a\\nb\\t\\");
    }
}
