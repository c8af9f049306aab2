//! From a database to proofs that another program verifies, on Debian's quantum logic database
//! (ql.mm, 1,138 theorems).

mod common;

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command as Process, Stdio};

use common::{printed, read, refused};

const EVAL: &str = "eval --database ql.mm --theorems data/test.jsonl --steps 1-5 --policy \
 ngram:data/train.jsonl --budget 64 --seed 1";

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let said =
        printed(folder.path(), "data metamath --database ql.mm --out data --split 0.8,0.05,0.15");
    assert!(said.contains("0 without a trace"), "{said}");
    folder
}

#[test]
fn every_strategy_proves_and_metamath_agrees() {
    let folder = prepared();
    let mut proved = 0;
    for strategy in ["pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"] {
        printed(folder.path(), &format!("{EVAL} --strategy {strategy} --out {strategy}.jsonl"));
        let log = std::fs::read_to_string(folder.path().join(format!("{strategy}.jsonl"))).unwrap();
        proved += log.matches("\"proved\"").count();
    }
    assert!(proved > 6, "{proved} proofs show nothing");
    let database = printed(
        folder.path(),
        "export --format mm --database ql.mm pass.jsonl bfs.jsonl dfs.jsonl rdfs.jsonl vdfs.jsonl \
         mcts.jsonl",
    );
    std::fs::write(folder.path().join("found.mm"), database).unwrap();
    let verdict = Process::new("metamath")
        .args(["read found.mm", "verify proof *", "exit"])
        .current_dir(folder.path())
        .output();
    let verdict = verdict.expect("this test needs Debian's package metamath");
    let verdict = String::from_utf8_lossy(&verdict.stdout).into_owned();
    assert!(
        verdict.contains("All proofs in the database were verified") && !verdict.contains("?Error"),
        "{verdict}"
    );

    let comparison: serde_json::Value =
        serde_json::from_str(&printed(folder.path(), "compare dfs.jsonl bfs.jsonl --json"))
            .unwrap();
    for key in ["n", "b", "c", "gain_pp", "ci_low", "ci_high", "p"] {
        assert!(comparison[key].is_number(), "{key}: {comparison}");
    }
}

#[test]
fn found_proofs_become_traces() {
    let folder = prepared();
    for strategy in ["bfs", "rdfs"] {
        printed(folder.path(), &format!("{EVAL} --strategy {strategy} --out {strategy}.jsonl"));
    }
    let found = |more: &str| -> serde_json::Value {
        let logs = "--out found.jsonl --json bfs.jsonl rdfs.jsonl";
        let said = printed(folder.path(), &format!("data found {more} {logs}"));
        serde_json::from_str(&said).unwrap()
    };
    let alone = found("--theorems data/test.jsonl");
    let count = |row: &serde_json::Value, key: &str| row[key].as_u64().unwrap();
    assert!(count(&alone, "demonstrated") > 0 && count(&alone, "found") > 0, "{alone}");
    assert_eq!(count(&alone, "lost"), 0, "{alone}");
    let proofs = count(&alone, "demonstrated") + count(&alone, "found");
    assert_eq!(count(&alone, "proofs"), proofs, "{alone}");
    let demonstrated = traces(folder.path(), "data/test.jsonl");
    for (name, trace) in traces(folder.path(), "found.jsonl") {
        let of = name.split_once("/found-").unwrap().0;
        let (steps, other) = (&trace["steps"], &demonstrated[of]["steps"]);
        assert_eq!(steps[0]["state"], other[0]["state"], "{name}");
        assert_eq!(steps.as_array().unwrap().last().unwrap()["next"], "", "{name}");
        assert_ne!(steps, other, "{name}");
    }

    let both = found("--theorems data/test.jsonl --with-demonstrated");
    let all = traces(folder.path(), "found.jsonl");
    assert_eq!(count(&both, "traces") as usize, all.len());
    assert_eq!(all.len(), demonstrated.len() + count(&alone, "found") as usize);
    let elsewhere = "data found --theorems data/valid.jsonl --out x.jsonl bfs.jsonl";
    assert!(refused(folder.path(), elsewhere).contains("was not searched in data/valid.jsonl"));
}

/// The traces of a file, by name.
fn traces(folder: &Path, file: &str) -> BTreeMap<String, serde_json::Value> {
    let line = |line: &str| serde_json::from_str(line).unwrap();
    let named = |trace: serde_json::Value| (trace["name"].as_str().unwrap().to_owned(), trace);
    read(folder, file).lines().map(|text| named(line(text))).collect()
}

#[test]
fn distinct_samples_are_distinct_under_every_strategy() {
    let folder = prepared();
    let strategies = "pass,bfs,dfs,rdfs,vdfs,mcts";
    let eval = format!("{EVAL} --strategy {strategies} --distinct --trees");
    printed(folder.path(), &format!("{eval} --out one --concurrency 1 --threads 1"));
    printed(folder.path(), &format!("{eval} --out many --concurrency 50 --threads 5"));
    for strategy in strategies.split(',') {
        let read = |name: String| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let log = read(format!("one/{strategy}.jsonl"));
        assert_eq!(read(format!("many/{strategy}.jsonl")), log, "{strategy}");
        assert!(log.contains("\"proved\"") && !log.contains("redrawn"), "{strategy}");
        assert_eq!(log.matches("\"duplicates\":0").count(), log.lines().count(), "{strategy}");
        let manifest = read(format!("one/{strategy}.manifest.json"));
        assert!(manifest.contains("drawn without replacement, exactly"), "{manifest}");
        for line in read(format!("one/{strategy}.trees.jsonl")).lines() {
            let tree: serde_json::Value = serde_json::from_str(line).unwrap();
            let mut seen = std::collections::HashSet::new();
            for expansion in tree["expansions"].as_array().unwrap() {
                let tactic = (expansion["parent"].to_string(), expansion["tactic"].to_string());
                assert!(seen.insert(tactic), "{strategy}: {expansion} came before");
            }
        }
    }
}

#[test]
fn a_killed_evaluation_goes_on_to_the_same_log() {
    killed_and_resumed(EVAL);
    killed_and_resumed(&format!("{EVAL} --distinct"));
}

fn killed_and_resumed(eval: &str) {
    let folder = prepared();
    let whole = format!("{eval} --strategy vdfs --out whole.jsonl");
    printed(folder.path(), &whole);
    // Killed after some results are on the disk, more than once.
    let binary = assert_cmd::cargo::cargo_bin("catamount");
    let pieces = format!("{eval} --strategy vdfs --out pieces.jsonl --concurrency 1 --threads 1");
    let log = folder.path().join("pieces.jsonl");
    let mut killed = 0;
    for target in [5, 20] {
        let mut child = Process::new(&binary)
            .args(pieces.split_whitespace())
            .current_dir(folder.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        loop {
            let lines = std::fs::read_to_string(&log).map_or(0, |text| text.lines().count());
            if lines >= target || child.try_wait().unwrap().is_some() {
                break;
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        killed += usize::from(child.try_wait().unwrap().is_none());
        child.kill().unwrap();
        child.wait().unwrap();
    }
    assert!(killed > 0, "the evaluation was over before it could be killed");
    printed(folder.path(), &format!("{eval} --strategy vdfs --out pieces.jsonl"));
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    assert_eq!(read("pieces.jsonl"), read("whole.jsonl"));

    let error = refused(
        folder.path(),
        &format!("{} --strategy vdfs --out whole.jsonl", eval.replace("--seed 1", "--seed 2")),
    );
    assert!(error.contains("seed was 1 and is now 2"), "{error}");
}

#[test]
fn claims_are_judged_one_by_one() {
    let folder = prepared();
    let traces = std::fs::read_to_string(folder.path().join("data/test.jsonl")).unwrap();
    let trace: serde_json::Value = serde_json::from_str(traces.lines().next().unwrap()).unwrap();
    let tactics: Vec<_> =
        trace["steps"].as_array().unwrap().iter().map(|step| step["tactic"].clone()).collect();
    let claim = |tactics: &[serde_json::Value]| {
        serde_json::json!({ "name": trace["name"], "tactics": tactics }).to_string()
    };
    let circular =
        serde_json::json!({ "name": trace["name"], "tactics": [trace["name"]] }).to_string();
    let unknown = "{\"name\": \"no-such-theorem\", \"tactics\": [\"a1i\"]}".to_string();
    let file = [claim(&tactics), claim(&tactics[1..]), circular, unknown].join("\n");
    std::fs::write(folder.path().join("claims.jsonl"), file).unwrap();
    let said = printed(folder.path(), "check --env metamath --database ql.mm claims.jsonl");
    let verdicts: Vec<serde_json::Value> =
        said.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let verdict = |i: usize| verdicts[i]["verdict"].as_str().unwrap();
    assert_eq!(
        [verdict(0), verdict(1), verdict(2), verdict(3)],
        ["proved", "refused", "refused", "refused"],
        "{said}"
    );
    assert!(verdicts[1..].iter().all(|verdict| verdict["reason"].is_string()));
}

#[test]
fn data_without_a_trace_are_refused() {
    let temporary = prepared();
    let folder = temporary.path();
    for (command, named) in [
        ("data metamath --database ql.mm --first 0 --out none", "0 is not in 1.."),
        ("data metamath --database ql.mm --steps 900-901 --out none", "there is no trace"),
        ("data split data/train.jsonl --split 0,0,0 --out none", "there is no trace"),
    ] {
        let said = refused(folder, command);
        assert!(said.contains(named), "{command}: {said}");
        assert!(!folder.join("none/manifest.json").exists(), "{command}");
    }
}

#[test]
fn mistakes_are_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(
        refused(folder.path(), "data metamath --database nothing.mm --out data")
            .contains("metamath-databases")
    );
    std::fs::write(folder.path().join("broken.mm"), "$c a $. $v x $. ax $a a x").unwrap();
    assert!(
        refused(folder.path(), "data metamath --database broken.mm --out data")
            .contains("broken.mm")
    );
    assert!(
        refused(
            folder.path(),
            "prove nonsense --database ql.mm --policy replay:none --strategy bfs --budget 4"
        )
        .contains("nonsense")
    );
    assert!(refused(folder.path(), "run dmeo").contains("did you mean `demo`"));
    assert!(refused(folder.path(), "compare a.jsonl b.jsonl").contains("a.jsonl"));
    let unknown = refused(
        folder.path(),
        "eval --theorems none.jsonl --policy ngram:x --strategy astar --budget 4 --out c.jsonl",
    );
    assert!(unknown.contains("astar") && unknown.contains("mcts"), "{unknown}");
}
