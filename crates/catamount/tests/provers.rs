//! `catamount eval --provers`: searches whose provers are elsewhere leave the log of those that
//! have their own.

mod common;

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use common::service::Service;
use common::{DATABASE, folder_with, printed, read, refused, said};
use serde_json::Value;

const SEARCH: &str = "eval --theorems data/test.jsonl --steps 1-6 --policy ngram:data/train.jsonl \
                      --strategy bfs --budget 96 --trees";

fn trees(folder: &Path, cell: &str) -> String {
    read(folder, &format!("{cell}.trees.jsonl"))
}

#[test]
fn provers_that_are_killed_on_the_way_change_nothing() {
    let temporary = folder_with("addresses", "");
    let folder = temporary.path();
    said(folder, "data metamath --database ql.mm --steps 1-6 --split 0.7,0.1,0.2 --out data");
    said(folder, &format!("{SEARCH} --database ql.mm --out local.jsonl"));

    let start = || Service::start(&["--database", DATABASE, "--queue", "2"]);
    let mut services = [start(), start()];
    let name = |services: &[Service; 2]| {
        let lines = services.each_ref().map(|service| service.address.clone()).join("\n");
        fs::write(folder.join("next"), lines).unwrap();
        fs::rename(folder.join("next"), folder.join("addresses")).unwrap();
    };
    name(&services);
    thread::scope(|scope| {
        let command = format!("{SEARCH} --provers addresses --out remote.jsonl");
        let search = scope.spawn(move || said(folder, &command));
        let log = folder.join("remote.jsonl");
        let lines = || fs::read_to_string(&log).map_or(0, |text| text.lines().count());
        for (victim, enough) in [(0, 5), (1, 25)] {
            let deadline = Instant::now() + Duration::from_secs(120);
            while lines() < enough && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(2));
            }
            assert!(!search.is_finished(), "nothing was left to be disturbed");
            services[victim] = start();
            name(&services);
        }
        search.join().unwrap();
    });
    assert_eq!(read(folder, "remote.jsonl"), read(folder, "local.jsonl"));
    assert_eq!(trees(folder, "remote"), trees(folder, "local"));
}

/// A pool of two Lean theorems, one of which takes a search.
const LEAN: &str = concat!(
    r#"{"name": "a", "header": "", "statement": "theorem a (p q : Prop) : p → q → p", "#,
    r#""steps": [{"state": "p q : Prop\n⊢ p → q → p", "tactic": "intro h _"}, "#,
    r#"{"state": "p q : Prop\nh : p\na✝ : q\n⊢ p", "tactic": "exact h"}]}"#,
    "\n",
    r#"{"name": "b", "header": "", "statement": "theorem b (p : Prop) : p → p", "#,
    r#""steps": [{"state": "p : Prop\n⊢ p → p", "tactic": "exact id"}]}"#,
    "\n",
);

#[test]
fn lean_elsewhere_is_lean() {
    let temporary = folder_with("pool.jsonl", LEAN);
    let folder = temporary.path();
    let search = "eval --theorems pool.jsonl --policy ngram:pool.jsonl --strategy bfs --budget 24 \
                  --trees";
    // The bundled library, which this writes: as a study has it, and as a service is told of it.
    let study: Value =
        serde_json::from_str(&printed(folder, "step lean-demo --out study --probe")).unwrap();
    let root = folder.join("study/library");
    let lean = ["--env", "lean", "--workers", "1", "--root", root.to_str().unwrap()];
    said(folder, &format!("{search} {} --out local.jsonl", lean.join(" ")));
    let service = Service::start(&lean);
    assert_eq!(service.ask("GET", "/status", "").1["identity"], study["prover"]["Ok"]);
    said(folder, &format!("{search} --provers {} --out remote.jsonl", service.address));
    assert_eq!(read(folder, "remote.jsonl"), read(folder, "local.jsonl"));
    assert_eq!(trees(folder, "remote"), trees(folder, "local"));
    assert!(read(folder, "local.jsonl").contains("\"proved\""));
    // A kernel that was asked for is not left out in silence.
    let asked = format!("{search} --kernel nanoda --provers {} --out x.jsonl", service.address);
    assert!(refused(folder, &asked).contains("judge without nanoda"));
}

#[test]
fn addresses_that_are_none_are_refused() {
    let temporary = folder_with("pool.jsonl", LEAN);
    let search = "eval --theorems pool.jsonl --policy ngram:pool.jsonl --strategy bfs --budget 8";
    let try_at = |provers: &str| {
        refused(temporary.path(), &format!("{search} --provers {provers} --out x.jsonl"))
    };
    assert!(try_at("nowhere").contains("neither a file nor an address"));
    let reason = try_at("127.0.0.1:1");
    assert!(reason.contains("127.0.0.1:1") && reason.contains("is it running"), "{reason}");
}
