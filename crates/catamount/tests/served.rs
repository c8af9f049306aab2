//! A study whose cells are sampled by a server: adapters that it loads when told, adapters that it
//! has already, and a server of one model that is asked for chats.

mod common;
#[path = "../../policies/tests/common/mod.rs"]
mod server;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use common::{printed, read, refused};
use serde_json::{Value, json};
use server::{respond, serve};

const SCRATCH: &str = r#"
name = "from scratch"
model = { hidden = 16, layers = 1, vocab = 400, positions = 256, tokenizer = "symbols" }
data = { environment = "metamath", database = "ql.mm", steps = "1-6", split = "0.7,0.1,0.2" }
objectives = [{ objective = "ce" }]
evaluation = { strategies = ["pass"], budgets = [1], limit = 1, max_tokens = 4, trees = 0 }
warm_up = { max_steps = 2, max_tokens = 192 }
branch = { max_steps = 1, max_tokens = 192 }
"#;

const SERVED: &str = r#"
name = "served"
model = { base = "scratch/models/ce" }
data = { environment = "metamath", database = "ql.mm", steps = "1-6", split = "0.7,0.1,0.2" }
objectives = [OBJECTIVES]
evaluation = { strategies = ["bfs"], budgets = [4], limit = 3, max_tokens = 8, trees = 0 }
warm_up = { max_steps = 1, max_tokens = 192, lora = { rank = 2, alpha = 4.0 } }
branch = { max_steps = 1, max_tokens = 192, lora = { rank = 2, alpha = 4.0 } }

[policy]
url = "URL"
retries = 1
"#;

/// What the server was asked, and what it holds.
#[derive(Default)]
struct Seen {
    requests: Vec<(String, Value)>,
    adapters: BTreeSet<String>,
}

/// Takes the fields that vLLM takes, serves models that it holds and nothing else.
fn strict(held: &[&str]) -> (String, Arc<Mutex<Seen>>) {
    let adapters = held.iter().map(|name| name.to_string()).collect();
    let seen = Arc::new(Mutex::new(Seen { requests: Vec::new(), adapters }));
    let shared = seen.clone();
    let (url, _) = serve(move |_, asked| {
        let mut seen = shared.lock().unwrap();
        if asked.path == "/v1/models" {
            let card = |name: &String| json!({ "id": name, "owned_by": "vllm" });
            let data: Vec<Value> = seen.adapters.iter().map(card).collect();
            return respond("200 OK", &json!({ "data": data }).to_string());
        }
        let body: Value = serde_json::from_str(&asked.body).unwrap();
        seen.requests.push((asked.path.clone(), body.clone()));
        let name = body["lora_name"].as_str().unwrap_or_default().to_owned();
        match asked.path.as_str() {
            "/v1/load_lora_adapter" => {
                assert!(Path::new(body["lora_path"].as_str().unwrap()).is_dir());
                seen.adapters.insert(name);
                respond("200 OK", "Success")
            }
            "/v1/unload_lora_adapter" => {
                seen.adapters.remove(&name);
                respond("200 OK", "Success")
            }
            path => completion(path, &body, &seen.adapters),
        }
    });
    (url, seen)
}

fn completion(path: &str, body: &Value, held: &BTreeSet<String>) -> String {
    let refuse = |why: &str| respond("400 Bad Request", &json!({ "message": why }).to_string());
    let model = body["model"].as_str().unwrap_or_default();
    if !held.contains(model) {
        return refuse(&format!("the model `{model}` does not exist"));
    }
    let choice = match path {
        "/v1/completions" => {
            let numbers = |list: &Vec<Value>| list.iter().all(Value::is_u64);
            let prompt = &body["prompt"];
            if !prompt.is_string() && !prompt.as_array().is_some_and(numbers) {
                return refuse("a prompt is a text or token ids");
            }
            json!({ "index": 0, "text": "ax-r1", "finish_reason": "stop", "logprobs":
                { "tokens": ["a"], "token_logprobs": [-0.5], "text_offset": [0] } })
        }
        "/v1/chat/completions" => {
            if !body["messages"][0]["content"].is_string() {
                return refuse("a chat has messages of text");
            }
            json!({ "index": 0, "message": { "role": "assistant", "content": "ax-r1" },
                "finish_reason": "stop", "logprobs":
                { "content": [{ "token": "a", "logprob": -0.5, "bytes": [97] }] } })
        }
        _ => return respond("404 Not Found", "{}"),
    };
    respond("200 OK", &json!({ "choices": [choice] }).to_string())
}

/// Runs a study against a server that holds these adapters; what the server was asked.
fn study(
    folder: &Path,
    name: &str,
    objectives: &str,
    policy: &str,
    held: &[&str],
) -> Vec<(String, Value)> {
    let (url, seen) = strict(held);
    let file = SERVED.replace("OBJECTIVES", objectives).replace("URL", &url) + policy;
    std::fs::write(folder.join(format!("{name}.toml")), file).unwrap();
    printed(folder, &format!("run {name}.toml --out {name} --device cpu"));
    for objective in ["ce", "bfs"].iter().filter(|objective| objectives.contains(*objective)) {
        let log = read(folder, &format!("{name}/cells/{objective}-bfs-n4.jsonl"));
        assert_eq!(log.lines().count(), 3, "{log}");
        assert!(!log.contains("\"error\""), "{log}");
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.adapters.iter().collect::<Vec<_>>(), held, "as it was before");
    seen.requests.clone()
}

#[test]
fn a_study_is_sampled_by_whichever_server_has_its_adapters() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    std::fs::write(folder.join("scratch.toml"), SCRATCH).unwrap();
    printed(folder, "train scratch.toml --out scratch --device cpu");
    let both = r#"{ objective = "ce" }, { objective = "bfs" }"#;

    // One is there under a name of its own, the other is loaded; both are asked in tokens.
    let asked = study(folder, "named", both, "adapters = { ce = \"my-ce\" }\n", &["my-ce"]);
    let of = |path: &str| asked.iter().filter(|(asked, _)| asked == path).count();
    assert_eq!((of("/v1/load_lora_adapter"), of("/v1/unload_lora_adapter")), (1, 1));
    let models: BTreeSet<&str> =
        asked.iter().filter_map(|(_, body)| body["model"].as_str()).collect();
    assert!(models.len() == 2 && models.contains("my-ce"), "{models:?}");
    assert!(asked.iter().all(|(_, body)| body["prompt"].is_null() || body["prompt"].is_array()));

    // A server of one model, asked for chats, and one asked with a text.
    let one = r#"{ objective = "ce" }"#;
    let policy = "model = \"the-one\"\nchat = true\nprompt = \"Prove {state}\"\n";
    let asked = study(folder, "chat", one, policy, &["the-one"]);
    let content = |body: &Value| body["messages"][0]["content"].as_str().unwrap().to_owned();
    for (path, body) in &asked {
        assert_eq!(path, "/v1/chat/completions");
        assert!(content(body).starts_with("Prove $"), "{body}");
    }
    let policy = "model = \"the-one\"\nprompt = \"{state} =>\"\n";
    let asked = study(folder, "text", one, policy, &["the-one"]);
    assert!(asked.iter().all(|(_, body)| body["prompt"].as_str().unwrap().ends_with(" =>")));
}

/// A study whose server is dead has nothing to show, says so by its exit status, and goes on where
/// it was once the server is back. What stands in the server's address is nobody else's business.
#[test]
fn a_study_whose_searches_failed_is_not_done() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    std::fs::write(folder.join("scratch.toml"), SCRATCH).unwrap();
    printed(folder, "train scratch.toml --out scratch --device cpu");
    let alive = Arc::new(AtomicBool::new(false));
    let shared = alive.clone();
    let held = BTreeSet::from(["the-one".to_owned()]);
    let (url, _) = serve(move |_, asked| match shared.load(Ordering::SeqCst) {
        // It is asked for its models, and has no list of them.
        true if asked.body.is_empty() => respond("404 Not Found", "{}"),
        true => completion(&asked.path, &serde_json::from_str(&asked.body).unwrap(), &held),
        false => String::new(),
    });
    let url = url.replace("http://", "http://me:dont-tell-a-soul@");
    let policy = "model = \"the-one\"\nprompt = \"{state} =>\"\n";
    let objectives = r#"{ objective = "ce" }"#;
    let file = SERVED.replace("OBJECTIVES", objectives).replace("URL", &url) + policy;
    std::fs::write(folder.join("study.toml"), file).unwrap();

    let said = refused(folder, "run study.toml --out study --device cpu");
    assert!(said.contains("3 searches ended in errors"), "{said}");
    assert!(read(folder, "study/report/index.html").contains("</html>"));
    // As a scheduler has it: nothing else waits for these searches.
    let step = "step study.toml --out study --device cpu --only cell-ce-bfs-n4";
    assert_eq!(common::catamount(folder, step).status.code(), Some(3));

    alive.store(true, Ordering::SeqCst);
    printed(folder, "run study.toml --out study --device cpu");
    let log = read(folder, "study/cells/ce-bfs-n4.jsonl");
    let last: Vec<&str> = log.lines().rev().take(3).collect();
    assert!(last.iter().all(|line| !line.contains("\"error\"")), "{log}");
    assert!(!holds(&folder.join("study"), b"dont-tell-a-soul"));
}

/// Whether a text stands in a file of a folder.
fn holds(folder: &Path, text: &[u8]) -> bool {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).any(|path| {
        match path.is_dir() {
            true => holds(&path, text),
            false => std::fs::read(&path).unwrap().windows(text.len()).any(|part| part == text),
        }
    })
}
