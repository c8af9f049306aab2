//! LoRA adapters that a server loads and unloads while it runs.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use super::HttpError;
use super::client::Client;
use super::naming::Naming;
use super::reply::excerpt;

/// An adapter in PEFT's format, for a server to load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServedAdapter {
    /// The name that requests use.
    pub name: String,
    /// Its folder, as the server sees it.
    pub path: String,
    /// What it holds, for identities.
    pub content: String,
    /// Whether the server has it already under that name: it is then neither loaded nor unloaded.
    pub preloaded: bool,
}

/// The endpoints of vLLM, and those of SGLang, and how each wants adapters named.
const DIALECTS: [(&str, &str, Naming); 2] = [
    ("/v1/load_lora_adapter", "/v1/unload_lora_adapter", Naming::Model),
    ("/load_lora_adapter", "/unload_lora_adapter", Naming::LoraPath),
];

const HOW: &str = "start vLLM with --enable-lora and VLLM_ALLOW_RUNTIME_LORA_UPDATING=True in its \
                   environment, or SGLang with --enable-lora and --max-lora-rank; or load the \
                   adapter when the server starts and give its name alone";

/// How long a server may take to unload one: nobody needs to know that it has.
const UNLOADING: Duration = Duration::from_secs(3);

/// Between two looks whether the adapter is still wanted.
const LOOK: Duration = Duration::from_millis(50);

/// An adapter that the server holds for us; dropped, it is unloaded.
pub(super) struct Loaded {
    client: Arc<Client>,
    name: String,
    unload: &'static str,
}

impl Loaded {
    /// Has the server load an adapter, unless `stop` is set before it has. One of that name which
    /// an earlier process left is replaced: whether it is the same cannot be asked.
    pub(super) fn load(
        client: Arc<Client>,
        adapter: &ServedAdapter,
        stop: &AtomicBool,
    ) -> Result<Self, HttpError> {
        let post = |path: &'static str, body: &Value| watched(&client, path, body, stop);
        let name = &adapter.name;
        let body = json!({ "lora_name": name, "lora_path": &adapter.path });
        for (load, unload, naming) in DIALECTS {
            let (mut status, mut said) = post(load, &body)?;
            if status == 404 || status == 405 {
                continue;
            }
            if (400..500).contains(&status) && said.contains("already") {
                post(unload, &json!({ "lora_name": name }))?;
                (status, said) = post(load, &body)?;
            }
            return match status {
                200 => {
                    client.set_naming(naming);
                    Ok(Loaded { client, name: name.clone(), unload })
                }
                _ => Err(HttpError(format!(
                    "the server does not load the adapter {} (HTTP status {status}): {said}; the \
                     folder must be one that the server itself can read",
                    adapter.path
                ))),
            };
        }
        Err(HttpError(format!("this server loads no adapters while it runs; {HOW}")))
    }
}

impl Drop for Loaded {
    fn drop(&mut self) {
        // A server that has gone away holds nothing for us either.
        let name = json!({ "lora_name": &self.name });
        let _ = self.client.post(self.unload, &name, Some(UNLOADING));
    }
}

/// Posts on a thread of its own, which is left alone once `stop` is set: a server may hang.
fn watched(
    client: &Arc<Client>,
    path: &'static str,
    body: &Value,
    stop: &AtomicBool,
) -> Result<(u16, String), HttpError> {
    let (sender, answered) = channel();
    let (client, body) = (Arc::clone(client), body.clone());
    let post = move || drop(sender.send(client.post(path, &body, None)));
    let named = thread::Builder::new().name("adapter".into());
    named.spawn(post).map_err(|e| HttpError(format!("cannot start a thread for requests: {e}")))?;
    loop {
        match answered.recv_timeout(LOOK) {
            Ok(answer) => {
                let (status, said) = answer?;
                return Ok((status, excerpt(said.as_bytes())));
            }
            Err(RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(RecvTimeoutError::Timeout) => {
                return Err(HttpError("stopped before the server had its adapter".into()));
            }
            Err(RecvTimeoutError::Disconnected) => {
                return Err(HttpError("the HTTP client panicked; please report this".into()));
            }
        }
    }
}
