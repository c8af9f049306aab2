//! `[policy]`: a server that samples in place of this machine. It serves the base model; each
//! branch is an adapter, which it is told to load when the branch is searched and to unload
//! afterwards.

use std::path::Path;
use std::sync::atomic::Ordering;
use std::time::Duration;

use catamount_base::Content;
use catamount_model::{Backend, locate, tokenizer_of};
use catamount_policies::{Api, Http, HttpSettings, Layout, ServedAdapter};
use catamount_search::Deployment;

use crate::error::{Error, Work};
use crate::experiment::Server;
use crate::step::Trained;
use crate::study::Study;

/// The files that an adapter is.
const ADAPTER: [&str; 2] = ["adapter_config.json", "adapter_model.safetensors"];

impl Server {
    /// The server as the policy of one model of a study, sampled as it is deployed.
    pub(crate) fn open<B: Backend>(
        &self,
        study: &Study<'_, B>,
        trained: &Trained,
        deployment: &Deployment,
    ) -> Work<Http> {
        let mut adapter = adapter(&study.path(trained.model()))?;
        if let Some(name) = self.adapters.get(trained.slug()).or(self.model.as_ref()) {
            adapter = ServedAdapter { name: name.clone(), preloaded: true, ..adapter };
        }
        let usual = HttpSettings::new(&self.url);
        let in_text = self.chat || self.prompt.is_some();
        let settings = HttpSettings {
            api: if self.chat { Api::Chat } else { Api::Completions },
            adapter: Some(adapter),
            layout: study.adapted().filter(|_| !in_text).map(layout).transpose()?,
            prompt: self.prompt.clone().unwrap_or_else(|| usual.prompt.clone()),
            stop: self.stop.clone(),
            temperature: deployment.temperature(),
            top_p: deployment.top_p(),
            max_tokens: deployment.max_tokens() as u32,
            concurrency: self.concurrency,
            timeout: self.timeout,
            retries: self.retries,
            grouped: self.grouped,
            ..usual
        };
        match Http::open(settings, study.stop) {
            Err(_) if study.stop.load(Ordering::Relaxed) => Err(Error::Interrupted.into()),
            opened => Ok(opened?),
        }
    }
}

/// A branch's adapter as the server is told of it. Its content names it: two studies may share a
/// server, and a branch that was trained again is another adapter.
fn adapter(folder: &Path) -> Work<ServedAdapter> {
    let folder = std::path::absolute(folder).map_err(Error::io(folder))?;
    let content = Content::of_files(&folder, ADAPTER).map_err(Error::io(&folder))?;
    let name = format!("catamount-{}", content.short());
    let (path, content) = (folder.display().to_string(), content.to_string());
    Ok(ServedAdapter { name, path, content, preloaded: false })
}

/// The layout of training, by the base's tokenizer.
fn layout(base: &str) -> Work<Layout> {
    let folder = locate(base)?;
    let path = if folder.is_file() { folder.clone() } else { folder.join("tokenizer.json") };
    let content = Content::of_file(&path).map_err(Error::io(&path))?;
    let tokenizer = tokenizer_of(&folder)?;
    let end = tokenizer.end();
    let encode = move |state: &str| tokenizer.prompt(state).map_err(|error| error.to_string());
    Ok(Layout::new(content.to_string(), end, encode))
}

/// How long one answer may take, if the file does not say.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(HttpSettings::TIMEOUT);
