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

/// A folder of one cell, whose proof rests on a lemma without a proof.
fn folder_of_a_cell() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
    write("d.mm", DATABASE);
    let step = r#"{"state": "$p ( ph -> ( ps -> ph ) )", "tactic": "bad"}"#;
    write("pool.jsonl", &format!("{{\"name\": \"goal\", \"steps\": [{step}]}}\n"));
    let eval = "eval --database d.mm --allow-unproved --theorems pool.jsonl --policy \
                replay:pool.jsonl --strategy bfs --budget 8 --out cell.jsonl";
    let evaluated = catamount(folder.path(), eval, "");
    assert!(evaluated.status.success(), "{}", String::from_utf8_lossy(&evaluated.stderr));
    folder
}

/// Whether a folder was found to be what it should be, and what was said of it.
fn verified(folder: &Path, more: &str) -> (bool, String) {
    let output = catamount(folder, &format!("verify . {more}"), "");
    assert!(matches!(output.status.code(), Some(0 | 2)), "{output:?}");
    (output.status.success(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_folder_does_not_say_what_its_proofs_may_rest_on() {
    let folder = folder_of_a_cell();
    let folder = folder.path();
    let (sound, said) = verified(folder, "");
    assert!(!sound && said.contains("no proof: ") && said.contains("`bad`"), "{said}");
    assert!(said.contains("another unproved theorems allowed (true)"), "{said}");
    let (sound, said) = verified(folder, "--allow-unproved");
    assert!(sound, "{said}");

    let log = std::fs::read_to_string(folder.join("cell.jsonl")).unwrap();
    let forged = log.replace(r#""axioms":["bad (without a proof)"],"#, "");
    assert_ne!(forged, log);
    std::fs::write(folder.join("cell.jsonl"), forged).unwrap();
    let (sound, said) = verified(folder, "--allow-unproved");
    assert!(!sound && said.contains("rests on the axioms bad (without a proof)"), "{said}");
}

#[cfg(unix)]
#[test]
fn a_folder_starts_no_program() {
    use std::os::unix::fs::PermissionsExt;
    let temporary = folder_of_a_cell();
    let folder = temporary.path();
    let (programs, started) = (folder.join("programs"), folder.join("started"));
    for made in [&programs, &folder.join("project")] {
        std::fs::create_dir(made).unwrap();
    }
    let lake = programs.join("lake");
    std::fs::write(&lake, format!("#!/bin/sh\n: > '{}'\nexit 1\n", started.display())).unwrap();
    std::fs::set_permissions(&lake, PermissionsExt::from_mode(0o755)).unwrap();

    let path = folder.join("cell.manifest.json");
    let text = std::fs::read(&path).unwrap();
    let mut manifest: serde_json::Value = serde_json::from_slice(&text).unwrap();
    let native = serde_json::json!({ "native": { "project": folder.join("project") } });
    let settings = serde_json::json!({ "host": native, "confine": false });
    manifest["setup"] = serde_json::json!({ "prover": "lean", "settings": settings });
    std::fs::write(&path, manifest.to_string()).unwrap();

    let verified = |more: &str| {
        let paths = std::env::var_os("PATH").unwrap_or_default();
        let paths = [programs.clone()].into_iter().chain(std::env::split_paths(&paths));
        let mut command = Command::cargo_bin("catamount").unwrap();
        command.current_dir(folder).env("PATH", std::env::join_paths(paths).unwrap());
        let arguments = format!("verify . {more}");
        let output = command.args(arguments.split_whitespace()).output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        String::from_utf8(output.stderr).unwrap()
    };
    let said = verified("");
    assert!(said.contains("--project") && !started.exists(), "{said}");
    let said = verified("--project project --unconfined");
    assert!(started.exists(), "the user's own word starts it: {said}");
}

#[test]
fn what_only_looks_like_a_result_is_named() {
    let temporary = folder_of_a_cell();
    let folder = temporary.path();
    let path = |name: &str| folder.join(name);
    let wrong = |named: &str| {
        let (sound, said) = verified(folder, "--hashes-only");
        assert!(!sound && said.contains(named), "{said}");
    };
    assert!(verified(folder, "--hashes-only").0);
    // Under a name that a file beside a log would have, too.
    std::fs::copy(path("cell.jsonl"), path("cell.more.jsonl")).unwrap();
    wrong("cell.more.jsonl: results without a manifest");
    std::fs::remove_file(path("cell.more.jsonl")).unwrap();

    let log = std::fs::read(path("cell.jsonl")).unwrap();
    std::fs::write(path("cell.jsonl"), "").unwrap();
    wrong("no result for 1 of its theorems, such as goal");
    std::fs::remove_file(path("cell.jsonl")).unwrap();
    wrong("cell.jsonl: missing");
    std::fs::write(path("cell.jsonl"), log).unwrap();
    std::fs::remove_file(path("cell.manifest.json")).unwrap();
    wrong("cell.jsonl: results without a manifest");
}
