//! Against a real completions server, where CATAMOUNT_HTTP_TEST names one; `llama_server.py` beside this file starts one.

use catamount_policies::{Http, HttpSettings};
use catamount_search::{Policy, Request, Sample, Stream};

fn ask(settings: &HttpSettings, samples: usize, seed: u64) -> Vec<Sample> {
    let mut policy = Http::new(settings.clone()).unwrap();
    policy.submit(Request { id: 1, state: "The capital of France is".into(), samples, stream: Stream::new(seed) });
    policy.poll().remove(0).1.unwrap()
}

#[test]
fn a_real_server_samples_what_its_seed_says() {
    let Ok(url) = std::env::var("CATAMOUNT_HTTP_TEST") else {
        eprintln!("skipped: CATAMOUNT_HTTP_TEST is not set");
        return;
    };
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
    assert!(samples.iter().all(|sample| sample.log_p < 0.0 && sample.tokens > 0 && sample.tokens <= 9));
    // The server batches with whatever else it works on, so log p may move in its last digits; the text must not.
    let again = ask(&settings, 2, 5);
    for (a, b) in samples.iter().zip(&again) {
        assert_eq!(a.tactic, b.tactic);
        assert!((a.log_p - b.log_p).abs() < 0.05, "{} {}", a.log_p, b.log_p);
    }
    let other = ask(&settings, 4, 6);
    assert_ne!(samples.iter().map(|s| &s.tactic).collect::<Vec<_>>(), other.iter().map(|s| &s.tactic).collect::<Vec<_>>());
    // Without noise the most probable continuation comes, at whatever seed.
    let greedy = HttpSettings { temperature: 0.0, grouped: true, ..settings };
    let greedy = ask(&greedy, 2, 7);
    assert_eq!(greedy[0].tactic, greedy[1].tactic);
    assert!(greedy[0].tactic.contains("Paris"), "{greedy:?}");
}
