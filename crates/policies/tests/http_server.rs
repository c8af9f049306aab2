//! Against a real completions server, where CATAMOUNT_HTTP_TEST names one; `llama_server.py` beside
//! this file starts one.

use catamount_policies::{Api, Http, HttpSettings, Layout};
use catamount_search::{Policy, Request, Sample, Stream};

fn ask(settings: &HttpSettings, samples: usize, seed: u64) -> Vec<Sample> {
    let mut policy = Http::new(settings.clone()).unwrap();
    policy.submit(Request {
        id: 1,
        state: "The capital of France is".into(),
        samples,
        stream: Stream::new(seed),
        urn: None,
    });
    policy.poll().remove(0).1.unwrap()
}

#[test]
#[ignore = "needs a llama.cpp server (CATAMOUNT_HTTP_TEST)"]
fn a_real_server_samples_what_its_seed_says() {
    let url = std::env::var("CATAMOUNT_HTTP_TEST").expect("CATAMOUNT_HTTP_TEST");
    let settings = HttpSettings {
        prompt: "{state}".into(),
        max_tokens: 8,
        stop: vec![".".into()],
        concurrency: 2,
        ..HttpSettings::new(url)
    };
    let samples = ask(&settings, 4, 5);
    eprintln!("{samples:?}");
    assert_eq!(samples.len(), 4);
    assert!(
        samples.iter().all(|sample| sample.log_p < 0.0 && sample.tokens > 0 && sample.tokens <= 9)
    );
    // The server batches with whatever else it works on, so log p may move in its last digits; the
    // text must not.
    let again = ask(&settings, 2, 5);
    for (a, b) in samples.iter().zip(&again) {
        assert_eq!(a.tactic, b.tactic);
        assert!((a.log_p - b.log_p).abs() < 0.05, "{} {}", a.log_p, b.log_p);
    }
    let other = ask(&settings, 4, 6);
    assert_ne!(
        samples.iter().map(|s| &s.tactic).collect::<Vec<_>>(),
        other.iter().map(|s| &s.tactic).collect::<Vec<_>>()
    );
    // Without noise the most probable continuation comes, at whatever seed.
    let greedy = HttpSettings { temperature: 0.0, grouped: true, ..settings };
    let greedy = ask(&greedy, 2, 7);
    assert_eq!(greedy[0].tactic, greedy[1].tactic);
    assert!(greedy[0].tactic.contains("Paris"), "{greedy:?}");
}

/// Posts to the server, which must answer with JSON.
fn post(url: &str, path: &str, body: serde_json::Value) -> serde_json::Value {
    let text = ureq::post(format!("{url}{path}"))
        .send(body.to_string())
        .unwrap()
        .body_mut()
        .read_to_string()
        .unwrap();
    serde_json::from_str(&text).unwrap()
}

/// Asked with the tokens of a text it goes on as from the text, and a chat has its own template.
#[test]
#[ignore = "needs a llama.cpp server (CATAMOUNT_HTTP_TEST)"]
fn a_real_server_takes_token_ids_and_chats() {
    let url = std::env::var("CATAMOUNT_HTTP_TEST").expect("CATAMOUNT_HTTP_TEST");
    let (max_tokens, concurrency) = (8, 1);
    let text = HttpSettings {
        prompt: "{state}".into(),
        temperature: 0.0,
        max_tokens,
        concurrency,
        ..HttpSettings::new(&url)
    };
    let server = url.clone();
    let encode = move |state: &str| -> Result<Vec<u32>, String> {
        let said = post(&server, "/tokenize", serde_json::json!({ "content": state }));
        serde_json::from_value(said["tokens"].clone()).map_err(|error| error.to_string())
    };
    // SmolLM2's end of text; a token that never comes would do as well.
    let tokens = HttpSettings { layout: Some(Layout::new("smollm2", 2, encode)), ..text.clone() };
    let (as_text, as_tokens) = (ask(&text, 1, 3), ask(&tokens, 1, 3));
    assert_eq!(as_text[0].tactic, as_tokens[0].tactic);
    assert!((as_text[0].log_p - as_tokens[0].log_p).abs() < 0.05, "{as_text:?} {as_tokens:?}");
    let prompt = "What is the capital of France? {state}".into();
    let chat = ask(&HttpSettings { api: Api::Chat, prompt, ..text }, 1, 3);
    eprintln!("{chat:?}");
    assert!(!chat[0].tactic.is_empty() && chat[0].log_p < 0.0 && chat[0].tokens > 0, "{chat:?}");
    assert_ne!(chat[0].tactic, as_text[0].tactic, "the template makes it another question");
}

/// The server and our own engine read the same GGUF file: same tokens, and the same
/// log-probabilities but for the 8-bit activations that llama.cpp multiplies quantised weights by.
#[test]
#[ignore = "needs a llama.cpp server (CATAMOUNT_HTTP_TEST)"]
fn a_real_server_and_our_engine_agree_token_by_token() {
    use catamount_model::{Activations, Batch, Cpu, Keep, load_gguf};

    let url = std::env::var("CATAMOUNT_HTTP_TEST").expect("CATAMOUNT_HTTP_TEST");
    let prompts = [
        "The capital of France is",
        "theorem add_comm (a b : Nat) : a + b = b + a := by",
        "Once upon a time, in 1987,  there were ∀ x ∈ ℕ, x ≤ x²",
    ];
    let first = post(&url, "/v1/completions", serde_json::json!({"prompt": "a", "max_tokens": 1}));
    let path = first["model"].as_str().expect("llama.cpp names its file");
    let (model, tokenizer) = load_gguf(path.as_ref(), std::sync::Arc::new(Cpu), false).unwrap();
    let (mut worst, mut sum, mut count) = (0.0f64, 0.0, 0);
    for prompt in prompts {
        let theirs = post(&url, "/tokenize", serde_json::json!({"content": prompt}));
        let prompt_tokens = tokenizer.encode(prompt).unwrap();
        assert_eq!(theirs["tokens"], serde_json::json!(prompt_tokens), "{prompt}");
        let body = serde_json::json!({"prompt": prompt, "max_tokens": 24, "logprobs": 1,
            "temperature": 1.0, "seed": 3});
        let answer = post(&url, "/v1/completions", body);
        let content = answer["choices"][0]["logprobs"]["content"].as_array().unwrap();
        // A character of several tokens is reported as one, the earlier of them missing: stop
        // before it.
        let whole = |t: &&serde_json::Value| t["token"].as_str().is_some_and(str::is_ascii);
        let content: Vec<_> = content.iter().take_while(whole).collect();
        let tokens: Vec<u32> = content.iter().map(|t| t["id"].as_u64().unwrap() as u32).collect();
        let mut batch = Batch::new();
        batch.push(&prompt_tokens, &tokens);
        let mut acts = Activations::new(&model, batch.len(), Keep::Nothing).unwrap();
        model.forward(&batch, &mut acts, None).unwrap();
        for (ours, theirs) in model.score(&mut acts).unwrap().iter().zip(&content) {
            let gap = (f64::from(*ours) - theirs["logprob"].as_f64().unwrap()).abs();
            (worst, sum, count) = (worst.max(gap), sum + gap, count + 1);
        }
    }
    let mean = sum / f64::from(count);
    eprintln!("{count} tokens: log p differs by {mean:.4} on average, {worst:.4} at most");
    assert!(count > 30 && mean < 0.08 && worst < 0.3, "{mean} on average, {worst} at most");
}
