//! Whole studies from short files, on Debian's quantum logic database: a small model from scratch,
//! then adapters on top of it.

mod common;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;

use common::{flip_a_bit, printed, read, refused, said};
use serde_json::Value;

const SCRATCH: &str = r#"
name = "from scratch"
model = { hidden = 64, layers = 2, vocab = 600, positions = 256, tokenizer = "symbols" }
data = { environment = "metamath", database = "ql.mm", steps = "1-6", split = "0.7,0.1,0.2" }
objectives = [{ objective = "ce" }]
evaluation = { strategies = ["pass"], budgets = [2], limit = 4, max_tokens = 16, trees = 0 }

[warm_up]
max_steps = 300
max_tokens = 192
batch = { examples = 16, tokens = 1024 }
optimizer = { lr = 3e-3 }

[branch]
max_steps = 2
max_tokens = 192
"#;

const ADAPTERS: &str = r#"
name = "adapters"
model = { base = "scratch/models/ce" }
data = { environment = "metamath", database = "ql.mm", steps = "1-6", split = "0.7,0.1,0.2" }
objectives = [
  { objective = "ce" },
  { objective = "bfs" },
  { objective = "bfs", name = "dear", prior = { kappa = 3 } },
]

[evaluation]
strategies = ["pass", "bfs"]
budgets = [16]
cells = "all"
limit = 20
max_tokens = 24
trees = 4

[warm_up]
max_steps = 6
max_tokens = 192
lora = { rank = 4, alpha = 8.0, dropout = 0.1 }
optimizer = { lr = 1e-2 }

[branch]
max_steps = 6
max_tokens = 192
lora = { rank = 4, alpha = 8.0, dropout = 0.1 }
optimizer = { lr = 1e-2 }
"#;

#[test]
fn a_study_of_adapters_gives_what_its_cells_give_alone() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    std::fs::write(folder.join("scratch.toml"), SCRATCH).unwrap();
    std::fs::write(folder.join("adapters.toml"), ADAPTERS).unwrap();
    printed(folder, "run scratch.toml --out scratch --device cpu");
    printed(folder, "run adapters.toml --out study --device cpu");
    let read = |path: &str| read(folder, path);

    // Cells of one base are searched by one generator that changes adapters between them; each cell
    // alone is the same.
    let mut trees = std::collections::HashSet::new();
    for objective in ["ce", "bfs", "dear"] {
        for strategy in ["pass", "bfs"] {
            let options = "--database ql.mm --theorems study/data/test.jsonl --steps 2-5 --limit \
             20 --budget 16 --max-tokens 24";
            let policy = format!(
                "--policy model:scratch/models/ce --adapter study/models/{objective} --device cpu"
            );
            let out = format!("alone/{objective}-{strategy}.jsonl");
            printed(folder, &format!("eval {options} {policy} --strategy {strategy} --out {out}"));
            let together = read(&format!("study/cells/{objective}-{strategy}-n16.jsonl"));
            assert_eq!(read(&out), together, "{objective} {strategy}");
            assert_eq!(together.lines().count(), 20);
            trees.insert(read(&format!("study/cells/{objective}-{strategy}-n16.trees.jsonl")));
        }
    }
    assert_eq!(trees.len(), 6, "log p in the trees must tell the adapters apart");
    for file in [
        "study/report/index.html",
        "study/report/report.md",
        "study/time.md",
        "study/models/bfs/adapter_model.safetensors",
    ] {
        assert!(!read_bytes(folder, file).is_empty(), "{file}");
    }

    // A study says itself which prover and which pool it was made with: from anywhere, and after a
    // move.
    let elsewhere = tempfile::tempdir().unwrap();
    let table = printed(elsewhere.path(), &format!("verify {}", folder.join("study").display()));
    assert!(table.contains("dear under bfs") && table.contains("files of warm-up"), "{table}");
    assert!(table.lines().last().unwrap().ends_with(" 0"), "{table}");
    std::fs::rename(folder.join("study"), folder.join("moved")).unwrap();
    assert_eq!(printed(folder, "verify moved"), table);
    std::fs::rename(folder.join("moved"), folder.join("study")).unwrap();
    what_is_not_done_is_named(folder, &table);
    identity_of_a_model(folder);
    trees_that_were_not_kept(folder);

    // Nothing is done twice, and a changed setting re-does only what depends on it.
    let again = said(folder, "run adapters.toml --out study --device cpu");
    assert!(again.contains("steps are up to date") && !again.contains("warm-up"), "{again}");
    std::fs::write(folder.join("adapters.toml"), ADAPTERS.replace("limit = 20", "limit = 12"))
        .unwrap();
    let fewer = said(folder, "run adapters.toml --out study --device cpu");
    assert!(
        fewer.contains("cell") && !fewer.contains("warm-up") && !fewer.contains("branch"),
        "{fewer}"
    );
    assert_eq!(read("study/cells/ce-bfs-n16.jsonl").lines().count(), 12);
    another_base(folder);
    fp8_is_refused_on_the_processor(folder);
}

/// Before anything is done, and with what it would need.
fn fp8_is_refused_on_the_processor(folder: &Path) {
    let fp8 = |text: &str| text.replace("model = { ", "model = { arithmetic = \"fp8\", ");
    std::fs::write(folder.join("fp8.toml"), fp8(ADAPTERS)).unwrap();
    let needed = "compute capability 8.9";
    let refusal = refused(folder, "run fp8.toml --out fp8 --device cpu");
    assert!(refusal.contains(needed), "{refusal}");
    let model = "scratch/models/ce --arithmetic fp8 --device cpu";
    let refusal = refused(folder, &format!("generate --model {model} state"));
    assert!(refusal.contains("--arithmetic fp8") && refusal.contains(needed), "{refusal}");
    let options = "--database ql.mm --theorems study/data/test.jsonl --strategy bfs --budget 4";
    let refusal =
        refused(folder, &format!("eval {options} --policy model:{model} --out fp8.jsonl"));
    assert!(refusal.contains(needed), "{refusal}");
    // All parameters of a new model are trained.
    std::fs::write(folder.join("fp8.toml"), fp8(SCRATCH)).unwrap();
    let refusal = refused(folder, "run fp8.toml --out fp8 --device cpu");
    assert!(refusal.contains("model.arithmetic"), "{refusal}");
}

/// Adapters of a base whose content has changed are other adapters; what was made with it comes
/// back with it.
fn another_base(folder: &Path) {
    let run = "run adapters.toml --out study --device cpu";
    let adapter = "study/models/warm-up/adapter_model.safetensors";
    let path = folder.join("scratch/models/ce/model.safetensors");
    let (before, kept) = (read_bytes(folder, adapter), std::fs::read(&path).unwrap());
    flip_a_bit(&path);
    let other = said(folder, run);
    for step in ["warm-up", "branch ce", "cell"] {
        assert!(other.contains(step), "{step} is made again: {other}");
    }
    assert!(!other.contains("] data"), "{other}");
    std::fs::write(&path, kept).unwrap();
    let back = said(folder, run);
    assert!(back.contains("taken back from stale/"), "{back}");
    assert_eq!(read_bytes(folder, adapter), before);
}

/// The server searches a theorem again whose tree was not kept, and comes to what the log says.
fn trees_that_were_not_kept(folder: &Path) {
    let program = assert_cmd::cargo::cargo_bin("catamount");
    let mut server = std::process::Command::new(program)
        .current_dir(folder)
        .args(["view", "study", "--port", "0", "--device", "cpu"])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut first = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut first).unwrap();
    let address = first.trim_start_matches("http://").split('/').next().unwrap();
    let kept = read(folder, "study/cells/dear-bfs-n16.trees.jsonl");
    let log = read(folder, "study/cells/dear-bfs-n16.jsonl");
    let mut records = log.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let record = records.rfind(|record| !kept.contains(record["theorem"].as_str().unwrap()));
    let record = record.unwrap();
    let theorem = record["theorem"].as_str().unwrap();
    let get = |search: &str| {
        let mut stream = TcpStream::connect(address).unwrap();
        let target = format!("/trees.json?theorem={theorem}&search={search}");
        write!(stream, "GET {target} HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    let answer = get("dear%2Fbfs%2F16");
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let (_, found) = answer.split_once("\r\n\r\n").unwrap();
    let found: Value = serde_json::from_str(found).unwrap();
    let cell = &found["theorems"][0]["cells"][0];
    assert!(cell["label"].as_str().unwrap().ends_with("searched again"), "{cell}");
    let expansions = cell["expansions"].as_array().unwrap().len() as u64;
    assert_eq!(Some(expansions), record["expansions"].as_u64());
}

/// A log belongs to one model and one adapter, by content; which instructions computed it is
/// nothing that it depends on.
fn identity_of_a_model(folder: &Path) {
    let eval = |adapter: &str| {
        format!(
            "eval --database ql.mm --theorems study/data/test.jsonl --steps 2-5 --limit 20 \
             --budget 16 --max-tokens 24 --policy model:scratch/models/ce --adapter {adapter} \
             --device cpu --strategy bfs --out alone/ce-bfs.jsonl"
        )
    };
    let log = || read(folder, "alone/ce-bfs.jsonl");
    let (before, same) = (log(), eval("study/models/ce"));
    let reason = refused(folder, &eval("study/models/bfs"));
    assert!(reason.contains("the policy's adapter was"), "{reason}");
    assert!(reason.contains("choose another place"), "{reason}");
    for (file, part) in [
        ("scratch/models/ce/model.safetensors", "weights"),
        ("scratch/models/ce/tokenizer.json", "weights"),
        ("study/models/ce/adapter_model.safetensors", "adapter"),
    ] {
        let path = folder.join(file);
        let kept = std::fs::read(&path).unwrap();
        match part {
            _ if file.ends_with("json") => {
                std::fs::write(&path, [kept.as_slice(), b"\n"].concat()).unwrap();
            }
            _ => flip_a_bit(&path),
        }
        let reason = refused(folder, &same);
        assert!(reason.contains(&format!("the policy's {part} was")), "{file}: {reason}");
        std::fs::write(&path, kept).unwrap();
    }
    let mut command = assert_cmd::Command::cargo_bin("catamount").unwrap();
    let plain = command.env("CATAMOUNT_SIMD", "baseline").env("RAYON_NUM_THREADS", "1");
    let output = plain.current_dir(folder).args(same.split_whitespace()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert_eq!(log(), before);
}

const PROBABILITIES: &str = r#"
name = "probabilities"
folds = 2
model = { hidden = 32, layers = 1, vocab = 600, positions = 256, tokenizer = "symbols" }
data = { environment = "metamath", database = "ql.mm", steps = "1-6", split = "0.6,0.2,0.2" }
evaluation = { strategies = ["bfs"], budgets = [4], limit = 4, max_tokens = 16, trees = 0 }
objectives = [
    { objective = "ua" },
    { objective = "ua", name = "mapped", probabilities = "mapped", temperature = "deployed" },
    { objective = "ua", name = "crossed", probabilities = "cross-fitted", floor = 0.2 },
]

[warm_up]
max_steps = 40
max_tokens = 192
batch = { examples = 16, tokens = 1024 }
optimizer = { lr = 3e-3 }

[branch]
max_steps = 3
max_tokens = 192
"#;

#[test]
fn weights_rest_on_the_probabilities_that_are_asked_for() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    std::fs::write(folder.join("study.toml"), PROBABILITIES).unwrap();
    let log = said(folder, "run study.toml --out study --device cpu");
    assert!(log.contains("fold 2 of 2") && log.contains("used for weights"), "{log}");
    let last = |name: &str| -> serde_json::Value {
        let path = folder.join(format!("study/training/{name}.metrics.jsonl"));
        let text = std::fs::read_to_string(path).unwrap();
        serde_json::from_str(text.lines().last().unwrap()).unwrap()
    };
    for name in ["ua", "mapped", "crossed"] {
        assert!(last(name)["valid"]["ce"].as_f64().unwrap() > 0.0);
    }
    assert!(last("crossed")["w_quantiles"][0].as_f64().unwrap() >= 0.2, "the floor holds");
    for scores in ["mapped@t0.8", "cross-fitted-2@t1"] {
        assert!(!read_bytes(folder, &format!("study/scores/{scores}.jsonl")).is_empty());
        let reading = read_bytes(folder, &format!("study/scores/{scores}.reading.json"));
        let reading: serde_json::Value = serde_json::from_slice(&reading).unwrap();
        let [training, used] = ["training", "used"].map(|of| reading[of]["tactics"].as_u64());
        assert_eq!(training, used, "every tactic has its probability");
    }
    let page = String::from_utf8(read_bytes(folder, "study/report/report.md")).unwrap();
    assert!(page.contains("Probabilities that weights were computed from"), "{page}");

    // Too few validation tactics are said as soon as there are data.
    let short = PROBABILITIES.replace("0.6,0.2,0.2", "rest,4,20");
    std::fs::write(folder.join("short.toml"), short).unwrap();
    let said = refused(folder, "run short.toml --out short --device cpu");
    assert!(said.contains("needs 100") && !said.contains("warm-up"), "{said}");
}

fn read_bytes(folder: &Path, path: &str) -> Vec<u8> {
    std::fs::read(folder.join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// A verified study is one that is done: what is not has a row, and so has every checkpoint.
fn what_is_not_done_is_named(folder: &Path, table: &str) {
    assert!(table.contains("checkpoints of warm-up"), "{table}");
    let verify = "verify study --hashes-only";
    let stamp = folder.join("study/steps/cell-bfs-bfs-n16.json");
    let text = std::fs::read_to_string(&stamp).unwrap();
    std::fs::write(&stamp, text.replace("\"done\": true", "\"done\": false")).unwrap();
    assert!(refused(folder, verify).contains("cell-bfs-bfs-n16: was begun and is not done"));
    std::fs::remove_file(&stamp).unwrap();
    assert!(refused(folder, verify).contains("cell-bfs-bfs-n16: was planned and is not done"));
    std::fs::write(&stamp, text).unwrap();

    let checkpoints = folder.join("study/training/warm-up/checkpoints");
    let one = std::fs::read_dir(checkpoints).unwrap().next().unwrap().unwrap().path();
    let state = one.join("state.safetensors");
    let whole = std::fs::read(&state).unwrap();
    flip_a_bit(&state);
    assert!(refused(folder, verify).contains("state.safetensors: changed"));
    std::fs::write(&state, whole).unwrap();
    printed(folder, verify);
}
