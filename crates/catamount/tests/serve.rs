//! `catamount serve` as a client meets it: real HTTP, the real prover.

mod common;

use common::service::Service;
use serde_json::json;

#[test]
fn a_theorem_is_opened_run_and_judged() {
    let service = Service::start(&["--env", "lean", "--workers", "1", "--sessions", "1"]);
    let theorem = json!({ "name": "t", "statement": "theorem t (p : Prop) : p → p" });
    let (status, opened) = service.post("/open", theorem.clone());
    assert_eq!((status, &opened["goals"]), (200, &json!("p : Prop\n⊢ p → p")), "{opened}");
    let session = &opened["session"];
    let run = |state: u64, tactic: &str| {
        service.post("/run", json!({ "session": session, "state": state, "tactic": tactic })).1
    };
    let next = run(0, "intro h");
    assert_eq!(next["goals"], "p : Prop\nh : p\n⊢ p");
    assert!(run(0, "exact h")["rejected"].is_string());
    assert_eq!(run(next["state"].as_u64().unwrap(), "exact h")["done"], true);

    let (status, full) = service.post("/open", theorem.clone());
    assert_eq!(status, 503, "{full}");
    assert_eq!(service.post("/close", json!({ "session": session })).0, 200);
    let again = json!({ "session": session, "state": 0, "tactic": "intro h" });
    assert_eq!(service.post("/run", again).0, 404);

    let ask = |path: &str, header: &str, tactics: &[&str]| {
        let mut claim = theorem.clone();
        claim["header"] = json!(header);
        claim["tactics"] = json!(tactics);
        service.post(path, claim).1["verdict"].clone()
    };
    assert_eq!(ask("/judge", "", &["intro h", "exact h"]), "proved");
    assert_eq!(ask("/judge", "", &["sorry"]), "refused");
    // One's own header may do what a stranger's may not.
    let header = "open Nat renaming le → lt";
    assert_eq!(ask("/judge", header, &["exact id"]), "proved");
    assert_eq!(ask("/check", header, &["exact id"]), "refused");
    assert_eq!(ask("/check", "", &["exact id"]), "proved");

    let text = "theorem t : 1 = 1 := by\n  rfl\ntheorem u : 1 = 2 := by\n  sorry";
    let (status, report) = service.post("/file", json!({ "text": text }));
    assert_eq!((status, &report["outcome"]), (200, &json!("sorry")), "{report}");
    assert_eq!(report["sorries"][0]["goal"], "⊢ 1 = 2");
    assert_eq!(report["messages"][0]["line"], 3);
    assert_eq!(service.post("/file", json!({ "text": "", "more": 1 })).0, 400);

    let (status, said) = service.ask("GET", "/status", "");
    assert_eq!((status, &said["sessions"]), (200, &json!(0)), "{said}");
}

#[test]
fn what_is_wrong_with_a_request_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let database = folder.path().join("d.mm");
    std::fs::write(
        &database,
        "$c ( ) -> wff |- $. $v ph ps $.
wph $f wff ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
goal $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.
",
    )
    .unwrap();
    let service = Service::start(&["--database", database.to_str().unwrap()]);
    let (_, opened) = service.post("/open", json!({ "name": "goal" }));
    let session = opened["session"].as_u64().unwrap();
    let unknown = json!({ "session": session, "state": 77, "tactic": "ax-1" });
    assert_eq!(service.post("/run", unknown).0, 404);
    let run = json!({ "session": session, "tactic": "ax-1" });
    assert_eq!(service.post("/run", run).1["done"], true);
    let judged = service.post("/judge", json!({ "name": "goal", "tactics": ["ax-1"] })).1;
    assert_eq!(judged["verdict"], "proved", "{judged}");
    let cases = [
        ("POST", "/open", "{", 400),
        ("POST", "/open", "{\"name\": \"nothing\"}", 422),
        ("POST", "/nothing", "{}", 404),
        ("POST", "/check", "{\"statement\": \"x\", \"tactics\": []}", 404),
        ("POST", "/file", "{\"text\": \"\"}", 404),
        ("GET", "/open", "", 405),
        ("POST", "/run", "{\"session\": 99, \"tactic\": \"x\"}", 404),
        ("POST", "/close", "{\"session\": 99}", 404),
    ];
    for (method, path, body, expected) in cases {
        let (status, answer) = service.ask(method, path, body);
        assert_eq!(status, expected, "{method} {path}");
        assert!(answer["error"].is_string(), "{answer}");
    }
    let long = format!("{{\"name\": \"{}\"}}", "x".repeat(1 << 20));
    assert_eq!(service.ask("POST", "/open", &long).0, 413);
}
