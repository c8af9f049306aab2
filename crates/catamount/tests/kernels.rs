//! A second kernel at the command line: its word stands in records and beside exported terms. A
//! small kernel of the tests' own takes nanoda's place.

mod common;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Output;

use assert_cmd::Command;
use common::{folder_with, read};
use serde_json::Value;

/// Two theorems that stand on the library, and one whose proof is none.
const POOL: &str = concat!(
    r#"{"name": "a", "header": "", "statement": "theorem a (p q : Prop) : p ∧ q → p", "#,
    r#""steps": [{"state": "p q : Prop\n⊢ p ∧ q → p", "tactic": "exact And.left"}]}"#,
    "\n",
    r#"{"name": "b", "header": "", "statement": "theorem b (p q : Prop) : p ∧ q → q", "#,
    r#""steps": [{"state": "p q : Prop\n⊢ p ∧ q → q", "tactic": "exact And.right"}]}"#,
    "\n",
);

/// The binary, with a kernel on its PATH.
fn run(folder: &Path, arguments: &str) -> Output {
    let kernel = folder.join("bin/nanoda_bin");
    fs::create_dir_all(kernel.parent().unwrap()).unwrap();
    let text = include_str!("../../lean/tests/kernel.sh");
    fs::write(&kernel, format!("#!/bin/bash\n{text}")).unwrap();
    fs::set_permissions(&kernel, fs::Permissions::from_mode(0o755)).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut command = Command::cargo_bin("catamount").unwrap();
    command.env("PATH", format!("{}:{path}", kernel.parent().unwrap().display()));
    command.current_dir(folder).args(arguments.split_whitespace()).output().unwrap()
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&[&output.stdout[..], &output.stderr].concat()).into_owned()
}

#[test]
fn what_a_second_kernel_said_is_kept() {
    let temporary = folder_with("pool.jsonl", POOL);
    let folder = temporary.path();
    let search = "eval --env lean --workers 1 --theorems pool.jsonl --policy replay:pool.jsonl \
                  --strategy bfs --budget 8 --out cell.jsonl";
    let found = run(folder, &format!("{search} --kernel nanoda"));
    assert!(found.status.success(), "{}", said(&found));
    let records: Vec<Value> = read(folder, "cell.jsonl")
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .filter(|line: &Value| line["outcome"] == "proved")
        .collect();
    assert_eq!(records.len(), 2, "{}", said(&found));
    for record in &records {
        assert!(record["note"].as_str().unwrap().contains("nanoda agrees"), "{record}");
        assert!(!record["relative_to"].as_array().unwrap().is_empty(), "{record}");
    }
    // The same log is not that of one kernel alone.
    let other = run(folder, search);
    assert_eq!(other.status.code(), Some(2));
    assert!(said(&other).contains("second kernel was nanoda"), "{}", said(&other));

    // One record's proof is none: the others are written, and the end says so.
    let log = read(folder, "cell.jsonl").replace("exact And.left", "exact And.right");
    fs::write(folder.join("bent.jsonl"), log).unwrap();
    let export = "export --format lean4export --theorems pool.jsonl --out terms bent.jsonl";
    let written = run(folder, export);
    assert_eq!(written.status.code(), Some(2), "{}", said(&written));
    assert!(said(&written).contains("theorem a: no proof of it is written"), "{}", said(&written));
    assert!(said(&written).contains("1 of 2 proofs were not written"), "{}", said(&written));
    assert!(said(&written).contains("\n  And.right\n"), "{}", said(&written));
    let settings: Value = serde_json::from_str(&read(folder, "terms/b.config.json")).unwrap();
    let permitted = settings["permitted_axioms"].as_array().unwrap();
    assert!(permitted.contains(&"And.right".into()), "{settings}");
    assert!(read(folder, "terms/b.ndjson").starts_with("{\"meta\":"));
    assert!(!folder.join("terms/a.ndjson").exists());
}
