//! A study of seconds that has everything in it, and how two of its folders are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const SMALL: &str = r#"
name = "small"
folds = 2
model = { hidden = 32, layers = 1, vocab = 400, positions = 128, tokenizer = "symbols" }

[evaluation]
strategies = ["pass", "bfs"]
budgets = [6]
limit = 12
max_tokens = 12
trees = 3
concurrency = 4

[data]
environment = "metamath"
database = "ql.mm"
first = 300
steps = "1-4"
split = "0.5,0.3,0.2"

[[objectives]]
objective = "ce"

[[objectives]]
objective = "bfs"
prior = { kappa = 3 }
probabilities = "cross-fitted"
name = "a b"

[[objectives]]
objective = "auto"

[tune]
objectives = ["ua"]
fitted = false
shares = [0.5]
temperatures = [0.8, 1.2]
theorems = 10

[warm_up]
max_steps = 40
max_tokens = 96
batch = { examples = 8, tokens = 256 }
optimizer = { lr = 3e-3 }
checkpoints = { every = 8, keep = 2 }

[branch]
max_steps = 12
max_tokens = 96
batch = { examples = 8, tokens = 256 }
checkpoints = { every = 4, keep = 2 }
"#;

/// A JSON object without some of its fields, and in a stamp without the hashes of files that have
/// them.
fn without(json: &[u8], fields: &[&str]) -> Vec<u8> {
    let mut value: serde_json::Value = serde_json::from_slice(json).unwrap();
    let object = value.as_object_mut().unwrap();
    fields.iter().for_each(|field| drop(object.remove(*field)));
    if let Some(outputs) = object.get_mut("outputs").and_then(|outputs| outputs.as_object_mut()) {
        let timed = ["metrics.jsonl", "times.jsonl", "timing.json", ".manifest.json"];
        outputs.retain(|path, _| {
            !timed.iter().any(|ending| path.ends_with(ending)) && !path.contains("tfevents")
        });
    }
    value.to_string().into_bytes()
}

/// Everything of a study that clocks have no part in, by its path: manifests without the command
/// that made them, metrics without their speed, stamps without their seconds, of checkpoints the
/// last (a process that is asked to stop on the way, or left alone, keeps one where it is).
pub fn results(study: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn below(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        let entries = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
        let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
        if folder.ends_with("checkpoints") {
            paths = paths.into_iter().max().into_iter().collect();
        }
        for path in paths {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                below(root, &path, found);
            } else if !name.starts_with('.')
                && !name.ends_with("times.jsonl")
                && !name.ends_with("timing.json")
                && !name.contains("tfevents")
            {
                let mut bytes = fs::read(&path).unwrap();
                if name.ends_with("metrics.jsonl") {
                    let lines = bytes.split(|b| *b == b'\n').filter(|line| !line.is_empty());
                    bytes = lines.flat_map(|line| without(line, &["tokens_per_s"])).collect();
                }
                if name.ends_with("manifest.json") {
                    // A policy's words name the threads that it had.
                    bytes = without(&bytes, &["command", "policy"]);
                }
                if folder.ends_with("steps") {
                    bytes = without(&bytes, &["seconds"]);
                }
                found.insert(path.strip_prefix(root).unwrap().to_path_buf(), bytes);
            }
        }
    }
    let mut found = BTreeMap::new();
    for part in ["data", "models", "training", "cells", "steps"] {
        below(study, &study.join(part), &mut found);
    }
    // Where something is scored, fitted or chosen.
    for part in ["scores", "calibration", "tune"].map(|part| study.join(part)) {
        if part.exists() {
            below(study, &part, &mut found);
        }
    }
    found
}

pub fn assert_same(
    one: &BTreeMap<PathBuf, Vec<u8>>,
    other: &BTreeMap<PathBuf, Vec<u8>>,
    when: &str,
) {
    let names = |results: &BTreeMap<PathBuf, Vec<u8>>| results.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(one), names(other), "{when}");
    for (path, bytes) in one {
        assert!(bytes == &other[path], "{} differs, {when}", path.display());
    }
}
