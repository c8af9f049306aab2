//! A study of seconds that has everything in it, and how two of its folders are compared.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

pub const SMALL: &str = r#"
name = "small"
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
split = "0.6,0.2,0.2"

[[objectives]]
objective = "ce"

[[objectives]]
objective = "bfs"
prior = { kappa = 3 }
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

/// Everything of a study that clocks have no part in, by its path. Trees are compared as sets: they
/// are kept in the order in which searches ended; manifests without the command that made them.
pub fn results(study: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    fn below(root: &Path, folder: &Path, found: &mut BTreeMap<PathBuf, Vec<u8>>) {
        for entry in fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if path.is_dir() {
                below(root, &path, found);
            } else if !name.starts_with('.')
                && !name.ends_with("times.jsonl")
                && !name.ends_with("timing.json")
                && !name.contains("tfevents")
                && !name.ends_with("metrics.jsonl")
            {
                let mut bytes = fs::read(&path).unwrap();
                if name.ends_with("trees.jsonl") {
                    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|b| *b == b'\n').collect();
                    lines.sort_unstable();
                    lines.dedup();
                    bytes = lines.concat();
                }
                if name.ends_with("manifest.json") {
                    let mut manifest: serde_json::Value = serde_json::from_slice(&bytes).unwrap();
                    manifest.as_object_mut().unwrap().remove("command");
                    bytes = manifest.to_string().into_bytes();
                }
                found.insert(path.strip_prefix(root).unwrap().to_path_buf(), bytes);
            }
        }
    }
    let mut found = BTreeMap::new();
    for part in ["data", "models", "training", "cells"] {
        below(study, &study.join(part), &mut found);
    }
    // Where something is chosen.
    let tune = study.join("tune");
    if tune.exists() {
        below(study, &tune, &mut found);
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
