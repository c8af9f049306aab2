//! What vLLM and SGLang take and answer, held to by strict fakes of them: an unknown field, a value
//! of another type or a model that is not loaded is refused as the real ones refuse it.

mod common;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use catamount_policies::{Api, Http, HttpSettings, Layout, ServedAdapter};
use catamount_search::{Policy, Request, Sample, Stream};
use common::{HttpRequest, respond, serve};
use serde_json::{Value, json};

/// The two servers, where they differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Vllm,
    Sglang,
}

/// What a fake server was asked, and which adapters it holds.
#[derive(Default)]
struct Seen {
    requests: Vec<(String, Value)>,
    adapters: BTreeSet<String>,
}

const BASE: &str = "base-model";

/// Fields that both take in completions and chats; what else comes is a mistake.
const SAMPLING: [&str; 9] =
    ["model", "n", "temperature", "top_p", "max_tokens", "seed", "stream", "logprobs", "stop"];

fn fake(kind: Kind) -> (String, Arc<Mutex<Seen>>) {
    let seen: Arc<Mutex<Seen>> = Arc::default();
    let shared = seen.clone();
    let (url, _) = serve(move |_, asked| answer(kind, asked, &mut shared.lock().unwrap()));
    (url, seen)
}

fn answer(kind: Kind, asked: &HttpRequest, seen: &mut Seen) -> String {
    if asked.path == "/v1/models" {
        return models(kind, seen);
    }
    let body: Value = serde_json::from_str(&asked.body).unwrap();
    seen.requests.push((asked.path.clone(), body.clone()));
    let name = body["lora_name"].as_str().unwrap_or_default().to_owned();
    match (kind, asked.path.as_str()) {
        (_, "/v1/completions") => checked(&body, false, seen, kind),
        (_, "/v1/chat/completions") => checked(&body, true, seen, kind),
        (Kind::Vllm, "/v1/load_lora_adapter") => {
            if !seen.adapters.insert(name.clone()) {
                let said = format!("The lora adapter '{name}' has already been loaded.");
                return respond(
                    "400 Bad Request",
                    &json!({"error": {"message": said}}).to_string(),
                );
            }
            respond("200 OK", &format!("Success: LoRA adapter '{name}' added successfully."))
        }
        (Kind::Vllm, "/v1/unload_lora_adapter") => {
            seen.adapters.remove(&name);
            respond("200 OK", &format!("Success: LoRA adapter '{name}' removed successfully."))
        }
        (Kind::Sglang, "/load_lora_adapter") => {
            seen.adapters.insert(name);
            respond("200 OK", &json!({"success": true, "error_message": ""}).to_string())
        }
        (Kind::Sglang, "/unload_lora_adapter") => {
            seen.adapters.remove(&name);
            respond("200 OK", &json!({"success": true}).to_string())
        }
        _ => respond("404 Not Found", "{\"detail\":\"Not Found\"}"),
    }
}

/// The base, and the adapters as vLLM lists them. SGLang need not list them.
fn models(kind: Kind, seen: &Seen) -> String {
    let owner = match kind {
        Kind::Vllm => "vllm",
        Kind::Sglang => "sglang",
    };
    let mut data = vec![json!({"id": BASE, "object": "model", "owned_by": owner, "parent": null})];
    if kind == Kind::Vllm {
        let card = |name: &String| json!({"id": name, "owned_by": owner, "parent": BASE});
        data.extend(seen.adapters.iter().map(card));
    }
    respond("200 OK", &json!({"object": "list", "data": data}).to_string())
}

/// Who answers a request: an adapter, or the base. vLLM knows adapters as models and refuses what
/// it does not know; SGLang takes any model for its base, and an adapter by its own field or behind
/// the base's name.
fn answerer(kind: Kind, body: &Value, seen: &Seen) -> Result<Option<String>, String> {
    let model = body["model"].as_str().unwrap_or(BASE);
    let adapter = match kind {
        Kind::Vllm => Some(model).filter(|model| *model != BASE),
        Kind::Sglang => {
            model.split_once(':').map(|(_, adapter)| adapter).or(body["lora_path"].as_str())
        }
    };
    let Some(adapter) = adapter else { return Ok(None) };
    match (seen.adapters.contains(adapter), kind) {
        (true, _) => Ok(Some(adapter.to_owned())),
        (false, Kind::Vllm) => {
            let said = format!("The model `{adapter}` does not exist.");
            let said = json!({"error": {"message": said}}).to_string();
            Err(respond("404 Not Found", &said))
        }
        (false, Kind::Sglang) => {
            let said = format!("The following requested LoRA adapters are not loaded: {adapter}");
            let said = json!({"object": "error", "message": said}).to_string();
            Err(respond("400 Bad Request", &said))
        }
    }
}

fn checked(body: &Value, chat: bool, seen: &Seen, kind: Kind) -> String {
    if let Some(why) = refusal(body, chat, kind) {
        let error = json!({"object": "error", "message": why, "type": "BadRequestError"});
        return respond("400 Bad Request", &error.to_string());
    }
    let adapter = match answerer(kind, body, seen) {
        Ok(adapter) => adapter,
        Err(refused) => return refused,
    };
    let text = match adapter {
        Some(adapter) => format!(" exact {adapter} "),
        None => " have h := foo\n  exact h ".to_owned(),
    };
    let choice = |index: u64| {
        let mut choice = json!({"index": index, "finish_reason": "stop"});
        match kind {
            Kind::Vllm => choice["stop_reason"] = json!(7),
            Kind::Sglang => choice["matched_stop"] = json!(7),
        }
        if chat {
            let token = |log_p: f64| json!({"token": "x", "logprob": log_p, "bytes": [120]});
            choice["message"] = json!({"role": "assistant", "content": text});
            choice["logprobs"] = json!({"content": [token(-1.5), token(-0.25)]});
        } else {
            choice["text"] = json!(text);
            choice["logprobs"] = json!({
                "text_offset": [0, 5], "tokens": ["a", "b"], "token_logprobs": [-1.5, -0.25],
                "top_logprobs": [{"a": -1.5}, {"b": -0.25}],
            });
        }
        choice
    };
    let choices: Vec<Value> = (0..body["n"].as_u64().unwrap()).map(choice).collect();
    let usage = json!({"prompt_tokens": 3, "completion_tokens": 2, "total_tokens": 5});
    let reply = json!({"id": "cmpl-1", "object": "text_completion", "created": 1, "model": BASE,
                       "choices": choices, "usage": usage});
    respond("200 OK", &reply.to_string())
}

/// Why a request is refused.
fn refusal(body: &Value, chat: bool, kind: Kind) -> Option<String> {
    let own: &[&str] = if chat { &["messages"] } else { &["prompt", "stop_token_ids"] };
    let known = |key: &str| {
        let lora = kind == Kind::Sglang && key == "lora_path";
        SAMPLING.contains(&key) || own.contains(&key) || lora
    };
    if let Some(extra) = body.as_object()?.keys().find(|key| !known(key)) {
        return Some(format!("unknown field {extra}"));
    }
    let numbers =
        |value: &Value| value.as_array().is_some_and(|list| list.iter().all(Value::is_u64));
    let fine = [
        ("temperature", body["temperature"].is_number()),
        ("top_p", body["top_p"].as_f64().is_some_and(|p| p > 0.0 && p <= 1.0)),
        ("max_tokens", body["max_tokens"].as_u64().is_some_and(|n| n > 0)),
        ("seed", body["seed"].as_i64().is_some_and(|seed| seed < 1 << 31)),
        ("n", body["n"].as_u64().is_some_and(|n| n > 0)),
        ("stop", body["stop"].is_null() || body["stop"].is_array()),
        ("logprobs", if chat { body["logprobs"] == true } else { body["logprobs"] == 1 }),
        (
            "prompt",
            if chat {
                body["messages"][0]["role"] == "user" && body["messages"][0]["content"].is_string()
            } else {
                body["prompt"].is_string() || numbers(&body["prompt"])
            },
        ),
        ("stop_token_ids", body["stop_token_ids"].is_null() || numbers(&body["stop_token_ids"])),
    ];
    fine.iter().find(|(_, fine)| !fine).map(|(key, _)| format!("{key} is not valid"))
}

fn settings(url: &str) -> HttpSettings {
    let (timeout, back_off) = (Duration::from_secs(5), Duration::from_millis(5));
    let (temperature, top_p) = (0.8, 0.95);
    HttpSettings { timeout, back_off, retries: 1, temperature, top_p, ..HttpSettings::new(url) }
}

fn ask(policy: &mut Http, samples: usize) -> Result<Vec<Sample>, String> {
    let (state, stream) = ("⊢ p".into(), Stream::new(1));
    policy.submit(Request { id: 3, state, samples, stream, urn: None });
    policy.poll().remove(0).1.map_err(|fault| fault.0)
}

#[test]
fn completions_and_chats_are_asked_as_both_servers_take_it() {
    for kind in [Kind::Vllm, Kind::Sglang] {
        for (api, grouped) in
            [(Api::Completions, false), (Api::Completions, true), (Api::Chat, true)]
        {
            let (url, seen) = fake(kind);
            let stop = vec!["\n\n".to_owned()];
            let settings = HttpSettings { api, grouped, stop, ..settings(&url) };
            let samples = ask(&mut Http::new(settings).unwrap(), 3).unwrap();
            assert_eq!(samples.len(), 3, "{kind:?} {api:?}");
            // A tactic of several lines comes whole.
            assert_eq!(samples[0].tactic, "have h := foo\n  exact h");
            assert_eq!((samples[0].log_p, samples[0].tokens), (-1.75, 2));
            let seen = seen.lock().unwrap();
            assert_eq!(seen.requests.len(), if grouped { 1 } else { 3 });
            let (path, body) = &seen.requests[0];
            let text = match api {
                Api::Completions => &body["prompt"],
                Api::Chat => &body["messages"][0]["content"],
            };
            assert_eq!(text, "⊢ p:::", "{path}");
            assert_eq!(body["stop"], json!(["\n\n"]));
        }
    }
}

#[test]
fn the_prompt_of_training_is_sent_as_its_tokens() {
    for kind in [Kind::Vllm, Kind::Sglang] {
        let (url, seen) = fake(kind);
        let layout = Layout::new("tokens", 7, |state| match state.len() {
            0 => Err("nothing to say".to_owned()),
            length => Ok(vec![length as u32, 42]),
        });
        let settings = HttpSettings { layout: Some(layout), ..settings(&url) };
        let mut policy = Http::new(settings.clone()).unwrap();
        ask(&mut policy, 1).unwrap();
        let body = seen.lock().unwrap().requests[0].1.clone();
        assert_eq!((&body["prompt"], &body["stop_token_ids"]), (&json!([5, 42]), &json!([7])));
        assert!(body["stop"].is_null(), "the end token ends a tactic, not a newline");
        let stream = Stream::new(1);
        policy.submit(Request { id: 4, state: String::new(), samples: 1, stream, urn: None });
        let fault = policy.poll().remove(0).1.unwrap_err();
        assert!(fault.0.contains("nothing to say"), "{fault}");
        let chat = HttpSettings { api: Api::Chat, ..settings };
        assert!(Http::new(chat).err().unwrap().to_string().contains("not token ids"));
    }
}

#[test]
fn an_adapter_is_loaded_before_it_is_asked_and_unloaded_in_the_end() {
    for kind in [Kind::Vllm, Kind::Sglang] {
        let (url, seen) = fake(kind);
        // Left behind by a process that was killed.
        seen.lock().unwrap().adapters.insert("bfs".into());
        let adapter = ServedAdapter {
            name: "bfs".into(),
            path: "/models/bfs".into(),
            content: "c0ffee".into(),
            preloaded: false,
        };
        let settings = HttpSettings { adapter: Some(adapter), ..settings(&url) };
        let mut policy = Http::new(settings).unwrap();
        assert_eq!(ask(&mut policy, 1).unwrap()[0].tactic, "exact bfs", "{kind:?}");
        assert_eq!(policy.identity().get("adapter"), Some("c0ffee"));
        named_as(kind, &policy);
        {
            let seen = seen.lock().unwrap();
            assert!(seen.adapters.contains("bfs"));
            let loads = |(path, body): &&(String, Value)| {
                path.ends_with("/load_lora_adapter") && body["lora_path"] == "/models/bfs"
            };
            assert!(seen.requests.iter().find(loads).is_some(), "{kind:?}");
        }
        drop(policy);
        assert!(seen.lock().unwrap().adapters.is_empty(), "{kind:?}");
    }
}

/// A log of SGLang says that its adapter was named as SGLang takes it; older ones were sampled from
/// the base, and are not continued.
fn named_as(kind: Kind, policy: &Http) {
    let named = match kind {
        Kind::Vllm => None,
        Kind::Sglang => Some("lora_path"),
    };
    assert_eq!(policy.identity().get("named by"), named, "{kind:?}");
}

#[test]
fn an_adapter_that_the_server_has_answers_and_not_the_base() {
    for kind in [Kind::Vllm, Kind::Sglang] {
        let (url, seen) = fake(kind);
        seen.lock().unwrap().adapters.insert("bfs".into());
        let adapter = |name: &str| ServedAdapter {
            name: name.into(),
            path: "/models/bfs".into(),
            content: "c0ffee".into(),
            preloaded: true,
        };
        let by_content = HttpSettings { adapter: Some(adapter("bfs")), ..settings(&url) };
        let by_name = HttpSettings { model: Some("bfs".into()), ..settings(&url) };
        for settings in [by_content, by_name] {
            let mut policy = Http::new(settings).unwrap();
            assert_eq!(ask(&mut policy, 1).unwrap()[0].tactic, "exact bfs", "{kind:?}");
            named_as(kind, &policy);
        }
        assert_eq!(seen.lock().unwrap().adapters.len(), 1, "it is not ours to unload");
        let base = HttpSettings { model: Some(BASE.into()), ..settings(&url) };
        let mut base = Http::new(base).unwrap();
        assert!(ask(&mut base, 1).unwrap()[0].tactic.starts_with("have h"), "{kind:?}");
        assert_eq!(base.identity().get("named by"), None);
        let gone = HttpSettings { adapter: Some(adapter("gone")), ..settings(&url) };
        let reason = ask(&mut Http::new(gone).unwrap(), 1).unwrap_err();
        assert!(reason.contains("gone") && reason.contains("HTTP status 40"), "{reason}");
    }
}

#[test]
fn sglang_takes_an_adapter_behind_its_base() {
    let (url, seen) = fake(Kind::Sglang);
    seen.lock().unwrap().adapters.insert("bfs".into());
    let settings = HttpSettings { model: Some(format!("{BASE}:bfs")), ..settings(&url) };
    assert_eq!(ask(&mut Http::new(settings).unwrap(), 1).unwrap()[0].tactic, "exact bfs");
}

#[test]
fn a_server_without_adapters_says_how_to_have_them() {
    let (url, _) = serve(|_, _| respond("404 Not Found", "{}"));
    let adapter = ServedAdapter {
        name: "a".into(),
        path: "a".into(),
        content: String::new(),
        preloaded: false,
    };
    let settings = HttpSettings { adapter: Some(adapter), ..settings(&url) };
    let error = Http::new(settings).err().unwrap().to_string();
    assert!(error.contains("VLLM_ALLOW_RUNTIME_LORA_UPDATING"), "{error}");
}

#[test]
fn a_model_that_is_not_loaded_is_a_fault_that_names_it() {
    let (url, _) = fake(Kind::Vllm);
    let settings = HttpSettings { model: Some("gone".into()), ..settings(&url) };
    let reason = ask(&mut Http::new(settings).unwrap(), 1).unwrap_err();
    assert!(reason.contains("`gone`") && reason.contains("loaded there?"), "{reason}");
}
