//! Hostile input on the command line: a clear refusal, and never a wrong answer.

use std::path::Path;
use std::process::Output;

use assert_cmd::Command;

fn catamount(folder: &Path, arguments: &str, input: &str) -> Output {
    let mut command = Command::cargo_bin("catamount").unwrap();
    command
        .current_dir(folder)
        .args(arguments.split_whitespace())
        .write_stdin(input)
        .output()
        .unwrap()
}

/// A logic of one connective, a lemma without a proof, and a theorem without one.
const DATABASE: &str = "$c ( ) -> wff |- $. $v ph ps $.
wph $f wff ph $. wps $f wff ps $.
wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
bad $p |- ph $= ? $.
goal $p |- ( ph -> ( ps -> ph ) ) $= ? $.
";

#[test]
fn a_claim_rests_on_nothing_unproved_and_states_what_the_database_states() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d.mm"), DATABASE).unwrap();
    let judged = |claim: &str, more: &str| {
        let output = catamount(folder.path(), &format!("check --database d.mm {more}"), claim);
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let verdict: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        verdict
    };
    let lemma = r#"{"name": "goal", "tactics": ["bad"]}"#;
    let refused = judged(lemma, "");
    assert_eq!(refused["verdict"], "refused");
    assert!(refused["reason"].as_str().unwrap().contains("`bad`"), "{refused}");
    let allowed = judged(lemma, "--allow-unproved");
    assert_eq!(allowed["verdict"], "proved");
    assert_eq!(allowed["axioms"][0], "bad (without a proof)");
    let sound = judged(r#"{"name": "goal", "tactics": ["ax-1"]}"#, "");
    assert_eq!((&sound["verdict"], &sound["axioms"][0]), (&"proved".into(), &"ax-1".into()));
    let other = judged(r#"{"name": "goal", "statement": "$p 0 = 1", "tactics": ["ax-1"]}"#, "");
    assert_eq!(other["verdict"], "refused");
    assert!(other["reason"].as_str().unwrap().contains("$p 0 = 1"), "{other}");
}

#[test]
fn a_pool_that_states_something_else_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("d.mm"), DATABASE).unwrap();
    let trace = |statement: &str| {
        format!(
            "{{\"name\": \"goal\", \"statement\": \"{statement}\", \"steps\": [{{\"state\": \"$p ( \
             ph -> ( ps -> ph ) )\", \"tactic\": \"ax-1\"}}]}}\n"
        )
    };
    let eval = |pool: &str, out: &str| {
        std::fs::write(folder.path().join("pool.jsonl"), pool).unwrap();
        let arguments = format!(
            "eval --database d.mm --theorems pool.jsonl --policy replay:pool.jsonl --strategy bfs \
             --budget 8 --out {out}.jsonl"
        );
        let status = catamount(folder.path(), &arguments, "").status.code();
        let log = std::fs::read_to_string(folder.path().join(format!("{out}.jsonl"))).unwrap();
        (status, log)
    };
    let (status, right) = eval(&trace("$p ( ph -> ( ps -> ph ) )"), "right");
    assert_eq!(status, Some(0));
    assert!(right.contains("\"proved\"") && right.contains("\"axioms\":[\"ax-1\"]"), "{right}");
    // An evaluation whose every theorem is an error is one itself.
    let (status, wrong) = eval(&trace("$p ( ph -> ph )"), "wrong");
    assert_eq!(status, Some(2));
    assert!(wrong.contains("\"error\"") && wrong.contains("the database states"), "{wrong}");
}

#[test]
fn weights_of_masks_and_of_any_budget_are_right_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    for objective in ["ce", "ua", "pass", "bfs", "dfs", "rdfs", "vdfs", "mcts"] {
        for (budget, logp) in [
            ("64", "-1e12"),
            ("64", "-1e15"),
            ("64", "-3.4e38"),
            ("64", "-1.7e308,-1.7e308"),
            ("18446744073709551615", "-1"),
            ("18446744073709551616", "-1"),
        ] {
            let arguments = format!("weights --objective {objective} --budget {budget}");
            let output = catamount(folder.path(), &arguments, &format!("{{\"logp\":[{logp}]}}\n"));
            let said = String::from_utf8_lossy(&output.stderr);
            match output.status.code() {
                Some(2) => assert!(said.starts_with("error: "), "{said}"),
                Some(0) => {
                    let line: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
                    let success = line["log_success"].as_f64().unwrap();
                    assert!(success <= 0.0 && (logp == "-1" || success < -9e11), "{line}");
                    assert!(line["weights"][0].as_f64().is_some(), "{line}");
                }
                code => panic!("{arguments} {logp}: {code:?} {said}"),
            }
        }
    }
}
