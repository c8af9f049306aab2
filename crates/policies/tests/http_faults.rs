//! How the HTTP policy behaves when the other side does not: each server here is a loopback socket
//! that misbehaves in one way.

mod common;

use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use catamount_policies::{Http, HttpSettings, ServedAdapter};
use catamount_search::{Policy, Request, Sample, Stream};
use common::respond;

/// A server that hands each request's number and body to `answer`, and counts the requests.
fn serve(
    answer: impl Fn(usize, &str) -> String + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>) {
    common::serve(move |number, asked| answer(number, &asked.body))
}

fn settings(url: &str) -> HttpSettings {
    HttpSettings {
        back_off: Duration::from_millis(5),
        timeout: Duration::from_secs(5),
        retries: 3,
        ..HttpSettings::new(url)
    }
}

fn ask(settings: HttpSettings, samples: usize) -> Result<Vec<Sample>, String> {
    let mut policy = Http::new(settings).unwrap();
    policy.submit(Request {
        id: 3,
        state: "⊢ p".into(),
        samples,
        stream: Stream::new(1),
        urn: None,
    });
    let (id, answer) = policy.poll().remove(0);
    assert_eq!(id, 3);
    assert!(policy.poll().is_empty(), "nothing is waiting any more");
    answer.map_err(|fault| fault.0)
}

#[test]
fn an_unreachable_server_is_a_fault_that_says_what_to_do() {
    // A port that was just free: nothing listens there.
    let url = format!("http://{}", TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap());
    let reason = ask(settings(&url), 2).unwrap_err();
    assert!(
        reason.contains(&url)
            && reason.contains("is the server running?")
            && reason.contains("after 4 tries"),
        "{reason}"
    );
}

#[test]
fn errors_of_the_server_are_tried_again_and_those_of_the_question_are_not() {
    let (url, count) = serve(|_, _| respond("500 Internal Server Error", "out of memory"));
    let reason = ask(settings(&url), 1).unwrap_err();
    assert!(reason.contains("status 500") && reason.contains("out of memory"), "{reason}");
    assert_eq!(count.load(Ordering::SeqCst), 4);

    for (status, expected) in [
        ("404 Not Found", "loaded there?"),
        ("400 Bad Request", "status 400"),
        ("401 Unauthorized", "OPENAI_API_KEY"),
    ] {
        let (url, count) = serve(move |_, _| respond(status, "no"));
        let reason = ask(settings(&url), 1).unwrap_err();
        assert!(reason.contains(expected), "{reason}");
        assert_eq!(count.load(Ordering::SeqCst), 1);
    }
}

#[test]
fn a_passing_failure_passes() {
    let (url, count) = serve(|number, _| match number {
        0 => respond("503 Service Unavailable", "loading"),
        1 => "HTTP/1.1 200 OK\r\ncontent-length: 999\r\n\r\n{\"choi".into(),
        _ => respond(
            "200 OK",
            r#"{"choices":[{"text":" simp ","logprobs":{"token_logprobs":[-1.5,-0.25]}}]}"#,
        ),
    });
    let samples = ask(settings(&url), 1).unwrap();
    assert_eq!(samples, [Sample { tactic: "simp".into(), log_p: -1.75, tokens: 2 }]);
    assert_eq!(count.load(Ordering::SeqCst), 3);
}

#[test]
fn garbage_is_a_fault() {
    for (garbage, expected) in [
        ("<html>hello</html>", "not a completion"),
        ("", "not a completion"),
        (r#"{"choices":[]}"#, "0 choices where 1"),
        (r#"{"choices":[{"text":"simp"}]}"#, "no log-probabilities"),
        (r#"{"choices":[{"text":"simp","logprobs":{}}]}"#, "no log-probabilities"),
        (r#"{"choices":[{"text":"simp","logprobs":{"token_logprobs":[]}}]}"#, "no log-prob"),
        (r#"{"choices":[{"text":"simp","logprobs":{"content":[]}}]}"#, "no log-prob"),
        (r#"{"choices":[{"text":"simp","logprobs":{"token_logprobs":[null]}}]}"#, "has null"),
        (r#"{"choices":[{"text":"simp","logprobs":{"token_logprobs":[-1,null]}}]}"#, "has null"),
        (r#"{"choices":[{"text":"simp","logprobs":{"content":[{}]}}]}"#, "has null"),
        (r#"{"choices":[{"text":"simp","logprobs":{"token_logprobs":[5.0]}}]}"#, "has 5"),
        (r#"{"choices":[{"text":"simp","logprobs":{"token_logprobs":[-9,5]}}]}"#, "has 5"),
    ] {
        let (url, _) = serve(move |_, _| respond("200 OK", garbage));
        let reason = ask(settings(&url), 1).unwrap_err();
        assert!(reason.contains(expected) && reason.contains(&url), "{reason}");
    }
    // Not even HTTP.
    let (url, _) = serve(|_, _| "SSH-2.0-OpenSSH_9.2\r\n\r\n".into());
    assert!(ask(settings(&url), 1).unwrap_err().contains(&url));
}

#[test]
fn a_server_that_never_answers_is_not_waited_for() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let short = HttpSettings { timeout: Duration::from_millis(100), retries: 1, ..settings(&url) };
    let reason = ask(short, 1).unwrap_err();
    assert!(reason.contains("did not answer within 100ms"), "{reason}");
}

/// Echoes the seed of each request as its tactic.
fn echo(_: usize, body: &str) -> String {
    let body: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(body["prompt"], "Prove ⊢ p now:");
    assert_eq!((&body["model"], &body["logprobs"]), (&"prover-lora".into(), &1.into()));
    let choices: Vec<_> = (0..body["n"].as_u64().unwrap())
        .rev()
        .map(|n| {
            serde_json::json!({"text": format!("{}.{n}", body["seed"]), "index": n,
            "logprobs": {"content": [{"logprob": -2.0}]}})
        })
        .collect();
    respond("200 OK", &serde_json::json!({ "choices": choices }).to_string())
}

#[test]
fn seeds_come_from_the_stream_and_fewer_samples_are_a_prefix() {
    let count = Arc::new(AtomicUsize::new(0));
    let completions = count.clone();
    let (url, _) = serve(move |number, body| {
        if body.is_empty() {
            // It is asked which models it has, and has no such list.
            return respond("404 Not Found", "");
        }
        completions.fetch_add(1, Ordering::SeqCst);
        echo(number, body)
    });
    let mut settings = settings(&url);
    settings.url += "/v1/";
    settings.prompt = "Prove {state} now:".into();
    settings.model = Some("prover-lora".into());
    let tactics = |settings: &HttpSettings, samples| -> Vec<String> {
        ask(settings.clone(), samples).unwrap().into_iter().map(|sample| sample.tactic).collect()
    };
    let six = tactics(&settings, 6);
    assert_eq!(count.load(Ordering::SeqCst), 6);
    assert_eq!(tactics(&HttpSettings { concurrency: 1, ..settings.clone() }, 4), six[..4]);
    assert!(six.iter().enumerate().all(|(at, tactic)| !six[..at].contains(tactic)), "{six:?}");

    let before = count.load(Ordering::SeqCst);
    settings.grouped = true;
    let grouped = tactics(&settings, 3);
    assert_eq!(count.load(Ordering::SeqCst), before + 1, "one request for all");
    assert!(
        grouped.iter().enumerate().all(|(at, tactic)| tactic.ends_with(&format!(".{at}"))),
        "in the order of their index: {grouped:?}"
    );
}

#[test]
fn many_questions_are_answered_each_once() {
    let (url, _) = serve(|_, body| {
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        match body["prompt"].as_str().unwrap() {
            "bad:::" => respond("400 Bad Request", "no"),
            prompt => respond(
                "200 OK",
                &serde_json::json!({"choices": [{"text": prompt,
                    "logprobs": {"token_logprobs": [-1]}}]})
                .to_string(),
            ),
        }
    });
    let mut policy = Http::new(settings(&url)).unwrap();
    for id in 0..30 {
        let state = if id == 7 { "bad".into() } else { format!("s{id}") };
        policy.submit(Request {
            id,
            state,
            samples: (id % 4) as usize,
            stream: Stream::new(id),
            urn: None,
        });
    }
    let mut seen = Vec::new();
    loop {
        let answers = policy.poll();
        if answers.is_empty() {
            break;
        }
        for (id, answer) in answers {
            seen.push(id);
            match answer {
                Ok(samples) => {
                    assert_eq!(samples.len(), (id % 4) as usize);
                    assert!(samples.iter().all(|sample| sample.tactic == format!("s{id}:::")));
                }
                Err(_) => assert_eq!(id, 7, "a fault concerns one question"),
            }
        }
    }
    seen.sort_unstable();
    assert_eq!(seen, (0..30).collect::<Vec<_>>());
}

#[test]
fn settings_that_cannot_work_are_refused() {
    let good = HttpSettings::new("http://127.0.0.1:1");
    for (settings, expected) in [
        (
            HttpSettings { url: "127.0.0.1:8000".into(), ..good.clone() },
            "is not the address of a server",
        ),
        (HttpSettings { prompt: "{goal}".into(), ..good.clone() }, "{state}"),
        (HttpSettings { temperature: f64::NAN, ..good.clone() }, "temperature"),
        (HttpSettings { top_p: 0.0, ..good.clone() }, "top-p"),
        (HttpSettings { concurrency: 0, ..good.clone() }, "positive"),
    ] {
        let error = Http::new(settings).err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn the_key_is_in_no_fault_whatever_the_server_echoes() {
    // Set for the whole process: no other test sends or looks at this variable.
    let key = "sk-catamount-0123456789";
    // SAFETY: this test alone reads and writes the variable.
    unsafe { std::env::set_var("CATAMOUNT_TEST_KEY", key) };
    let echo = format!("{{\"headers\": {{\"authorization\": \"Bearer {key}\"}}}}");
    // Cut in the middle of the key, it must not show either.
    let late = format!("{}{key}", "x".repeat(300 - key.len() / 2));
    let sample = format!(
        "{{\"choices\":[{{\"text\":\"exact {key}\",\"logprobs\":{{\"token_logprobs\":[-1]}}}}]}}"
    );
    for (status, body) in [
        ("401 Unauthorized", &echo),
        ("500 Internal Server Error", &echo),
        ("400 Bad Request", &late),
        ("200 OK", &echo),
        ("200 OK", &sample),
    ] {
        let body = body.clone();
        let (url, _) = serve(move |_, _| respond(status, &body));
        let settings = HttpSettings {
            key_variable: "CATAMOUNT_TEST_KEY".into(),
            retries: 0,
            ..settings(&url)
        };
        let said = format!("{:?}", ask(settings, 1));
        assert!(!said.contains(&key[..8]), "{said}");
    }
    let secret = HttpSettings::new("http://me:hunter2@127.0.0.1:9");
    assert!(!Http::new(secret).unwrap().describe().contains("hunter2"));
}

#[test]
fn a_poll_of_a_server_that_hangs_can_be_interrupted() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let settings = HttpSettings { timeout: Duration::from_secs(600), ..HttpSettings::new(&url) };
    let mut policy = Http::new(settings).unwrap();
    let flag = policy.interrupt().unwrap();
    for id in 0..3 {
        policy.submit(Request {
            id,
            state: "p".into(),
            samples: 2,
            stream: Stream::new(1),
            urn: None,
        });
    }
    let began = std::time::Instant::now();
    thread::spawn(move || {
        thread::sleep(Duration::from_millis(300));
        flag.store(true, Ordering::Relaxed);
    });
    let answers = policy.poll();
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|(_, answer)| answer.is_err()));
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    assert!(policy.poll().is_empty());
}

/// An adapter, for a server that may take an hour to answer.
fn patient(url: &str) -> HttpSettings {
    let name = "branch".to_owned();
    let (path, content) = ("/models/branch".to_owned(), "c".to_owned());
    let adapter = ServedAdapter { name, path, content, preloaded: false };
    let timeout = Duration::from_secs(3600);
    HttpSettings { adapter: Some(adapter), timeout, ..settings(url) }
}

/// What a thread sends within a minute: an hour would be too long.
fn soon<T>(sent: &Receiver<T>) -> T {
    sent.recv_timeout(Duration::from_secs(60)).expect("it waits for a server that hangs")
}

#[test]
fn a_server_that_hangs_while_it_unloads_an_adapter_holds_nobody_up() {
    let (release, hang) = channel::<()>();
    let hang = Mutex::new(hang);
    let (url, requests) = common::serve(move |_, asked| {
        if asked.path.contains("unload") {
            let _ = hang.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
        respond("200 OK", "Success")
    });
    let (done, ended) = channel();
    thread::spawn(move || {
        drop(Http::new(patient(&url)).unwrap());
        done.send(()).unwrap();
    });
    soon(&ended);
    assert_eq!(requests.load(Ordering::SeqCst), 2, "it was asked to unload");
    drop(release);
}

#[test]
fn a_server_that_hangs_while_it_loads_an_adapter_can_be_left() {
    let stop = Arc::new(AtomicBool::new(false));
    let (release, hang) = channel::<()>();
    let (hang, asked) = (Mutex::new(hang), stop.clone());
    let (url, _) = common::serve(move |_, _| {
        asked.store(true, Ordering::SeqCst);
        let _ = hang.lock().unwrap_or_else(PoisonError::into_inner).recv();
        respond("200 OK", "Success")
    });
    let (done, ended) = channel();
    thread::spawn(move || {
        done.send(Http::open(patient(&url), &stop).err().map(|error| error.to_string())).unwrap();
    });
    let said = soon(&ended).expect("it has no adapter");
    assert!(said.contains("stopped before the server had its adapter"), "{said}");
    drop(release);
}
