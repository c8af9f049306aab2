//! What the command line offers beside its work: examples, completions, manual pages, JSON, and
//! scores that are resumed.

use std::path::Path;
use std::process::Output;
use std::sync::Arc;

use catamount_model::{Config, Cpu, Model, Tokenizer, save};
use catamount_search::Stream;
use serde_json::Value;

const TRACES: &str = concat!(
    r#"{"name": "goal", "steps": [{"state": "$p ( ph -> ( ps -> ph ) )", "tactic": "ax-1"}]}"#,
    "\n",
    r#"{"name": "other", "steps": [{"state": "$p ps", "tactic": "ax-2"}, "#,
    r#"{"state": "$p ph", "tactic": "x"}]}"#,
    "\n",
    r#"{"name": "third", "steps": [{"state": "$p ( ps -> ps )", "tactic": "id"}]}"#,
    "\n",
);
const DATABASE: &str = "$c ( ) -> wff |- $. $v ph ps $.
wph $f wff ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
goal $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.
";

fn catamount(folder: &Path, arguments: &[&str]) -> Output {
    let mut command = assert_cmd::Command::cargo_bin("catamount").unwrap();
    command.current_dir(folder).args(arguments).output().unwrap()
}

fn printed(folder: &Path, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = catamount(folder, &arguments);
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn refused(folder: &Path, arguments: &str) -> String {
    let arguments: Vec<&str> = arguments.split_whitespace().collect();
    let output = catamount(folder, &arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    String::from_utf8(output.stderr).unwrap()
}

fn prepared() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("t.jsonl"), TRACES).unwrap();
    let goal = TRACES.lines().next().unwrap_or_default();
    std::fs::write(folder.path().join("goal.jsonl"), goal).unwrap();
    std::fs::write(folder.path().join("d.mm"), DATABASE).unwrap();
    folder
}

#[test]
fn helps_show_examples_shells_complete_and_manual_pages_are_written() {
    let folder = prepared();
    for command in ["", "eval", "data", "data convert", "run", "weights", "man"] {
        let help = printed(folder.path(), &format!("{command} --help"));
        assert!(help.contains("Examples:\n  # "), "{command}: {help}");
    }
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = printed(folder.path(), &format!("completions {shell}"));
        // fish names a flag without its dashes.
        assert!(script.contains("trace-lean") && script.contains("budget"), "{shell}");
    }
    let page = printed(folder.path(), "man data convert");
    assert!(page.contains(".TH") && page.contains("LeanDojo"), "{page}");
    assert!(page.contains(".SH EXAMPLES\n.nf\n  # ") && !page.contains(".SH EXTRA"), "{page}");
    let help = |command: &str| printed(folder.path(), &format!("{command} --help"));
    assert!(
        help("eval").contains("several, with commas") && !help("prove").contains("several, with")
    );
    let place = |text: &str| help("eval").find(text).unwrap();
    assert!(place("--quiet") > place("--time-limit"), "what every command has comes last");
    assert!(place("\nLean:\n") > place("--time-limit") && place("--project") > place("\nLean:\n"));
    assert!(place("Sample no tactic twice at a node\n") > place("--distinct"));
    printed(folder.path(), "man --out pages");
    for name in ["catamount.1", "catamount-eval.1", "catamount-data-convert.1"] {
        assert!(folder.path().join("pages").join(name).exists(), "{name}");
    }
    assert!(refused(folder.path(), "man evil").contains("the known ones are"));
}

#[test]
fn what_is_reported_can_be_had_as_json() {
    let folder = prepared();
    let json = |arguments: &str| -> Value {
        let text = printed(folder.path(), arguments);
        serde_json::from_str(&text).unwrap_or_else(|error| panic!("{arguments}: {error}: {text}"))
    };
    assert_eq!(json("data stats --json t.jsonl")["traces"], 3);
    assert_eq!(json("data validate --json t.jsonl")["errors"], serde_json::json!([]));
    let converted = json("data convert --json t.jsonl t.jsonl.gz");
    assert_eq!((&converted["traces"], &converted["format"]), (&3.into(), &"jsonl".into()));
    assert_eq!(json("data stats --json t.jsonl.gz")["traces"], 3);
    assert!(json("theory --json --out theory")["files"].as_array().is_some_and(|f| f.len() > 3));
    let made = json("data metamath --json --database d.mm --split 0,0,rest --out data");
    assert_eq!((&made["test"], &made["theorems"]), (&1.into(), &1.into()));
    let search = "--database d.mm --policy replay:t.jsonl --strategy bfs --budget 8";
    assert_eq!(json(&format!("prove goal {search} --json"))["outcome"], "proved");
    let cell = json(&format!("eval --theorems goal.jsonl {search} --out cells/c.jsonl --json"));
    assert_eq!((&cell["proved"], &cell["budget"]), (&1.into(), &8.into()));
    let plan = json("run demo --dry-run --json");
    assert_eq!(plan["steps"][0]["kind"], "data");
    let report = json("report --json .");
    assert!(report["tables"][0]["rows"].is_array(), "{report}");
    let checked = json("verify --json --hashes-only .");
    assert_eq!(
        (&checked["failures"], &checked["rows"][0]["failed"]),
        (&Value::Array(vec![]), &0.into())
    );
    for line in printed(folder.path(), "doctor --json").lines() {
        let finding: Value = serde_json::from_str(line).unwrap();
        assert!(finding["ok"].is_boolean() && finding["what"].is_string(), "{line}");
    }
}

#[test]
fn what_is_missing_says_who_would_miss_it() {
    let mut doctor = assert_cmd::Command::cargo_bin("catamount").unwrap();
    let output = doctor.arg("doctor").env("PATH", "").output().unwrap();
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("\nmissing lake: only for Lake projects (--project); `lake`"), "{said}");
    for line in said.lines().filter(|line| line.starts_with("missing")) {
        let why = ["only ", "first use", "needed once"];
        assert!(why.iter().any(|why| line.contains(why)), "{line}");
    }
}

#[test]
fn a_missing_folder_is_named_and_the_reason_said_once() {
    let folder = prepared();
    for arguments in ["report nowhere", "verify nowhere", "view d.mm", "data stats nowhere"] {
        let said = refused(folder.path(), arguments);
        assert!(said.contains("nowhere") || said.contains("d.mm is a file"), "{arguments}: {said}");
        assert!(said.matches("No such file").count() <= 1, "{arguments}: {said}");
    }
    let said = refused(folder.path(), "report .");
    assert!(said.contains(". holds no cell with a manifest; a run folder has"), "{said}");
}

/// A theorem needs no demonstrated proof to be searched, unless its length is asked for.
#[test]
fn theorems_without_steps_are_searched() {
    let folder = prepared();
    std::fs::write(folder.path().join("bare.jsonl"), "{\"name\": \"goal\"}\n").unwrap();
    let eval = "eval --database d.mm --theorems bare.jsonl --policy replay:t.jsonl --strategy bfs \
                --budget 8";
    let said = printed(folder.path(), &format!("{eval} --out bare-cell.jsonl"));
    assert!(said.contains("1 of 1 proved"), "{said}");
    let said = refused(folder.path(), &format!("{eval} --steps 1-9 --out none.jsonl"));
    assert!(said.contains("has no theorem of that many steps"), "{said}");
    assert!(refused(folder.path(), "data stats bare.jsonl").contains("has no steps"));
}

/// `run ... & view ...`: whichever comes first.
#[test]
fn a_folder_that_is_not_there_yet_is_waited_for() {
    use std::io::{BufRead, BufReader};
    let folder = prepared();
    let mut view = std::process::Command::new(assert_cmd::cargo::cargo_bin("catamount"))
        .current_dir(folder.path())
        .args(["view", "later", "--port", "0", "--device", "cpu"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut said = String::new();
    BufReader::new(view.stderr.take().unwrap()).read_line(&mut said).unwrap();
    assert!(said.contains("there is no folder later yet; waiting for it"), "{said}");
    std::fs::create_dir(folder.path().join("later")).unwrap();
    let mut address = String::new();
    BufReader::new(view.stdout.take().unwrap()).read_line(&mut address).unwrap();
    view.kill().unwrap();
    view.wait().unwrap();
    assert!(address.starts_with("http://127.0.0.1:"), "{address}");
}

#[test]
fn another_budget_under_the_same_name_is_refused_without_contradiction() {
    let folder = prepared();
    let eval = "eval --database d.mm --theorems goal.jsonl --policy replay:t.jsonl \
                --strategy bfs --out c.jsonl --budget";
    printed(folder.path(), &format!("{eval} 8"));
    let said = refused(folder.path(), &format!("{eval} 9"));
    assert!(said.contains("budget was 8 and is now 9"), "{said}");
    assert!(!said.contains("goes on from there"), "{said}");
    // Of another kind of policy, that it is one is all there is to say.
    let said = refused(folder.path(), &format!("{eval} 8").replace("replay:t", "ngram:goal"));
    assert!(said.contains("kind was replay and is now ngram; choose"), "{said}");
}

#[test]
fn scores_go_on_where_they_were_interrupted() {
    let folder = prepared();
    let model = folder.path().join("model");
    std::fs::create_dir(&model).unwrap();
    let texts = ["|- ( ph -> ps )", "syl ax-1 $ ps"];
    let tokenizer = Tokenizer::train_symbols(texts.iter(), 270).unwrap();
    let config = Config::small(tokenizer.vocab(), 8, 2, 64);
    let network = Model::init(Arc::new(Cpu), config, Stream::new(1)).unwrap();
    save(&network, &tokenizer, &model).unwrap();

    let score = "score --model model --device cpu t.jsonl";
    let all = printed(folder.path(), score);
    assert_eq!(all.lines().count(), 3);
    printed(folder.path(), &format!("{score} --out s.jsonl"));
    let path = folder.path().join("s.jsonl");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
    // Killed in the middle of the second line.
    let first = all.lines().next().unwrap();
    std::fs::write(&path, format!("{first}\n{{\"name\":\"oth")).unwrap();
    printed(folder.path(), &format!("{score} --out s.jsonl"));
    assert_eq!(std::fs::read_to_string(&path).unwrap(), all);
    let said = refused(folder.path(), &format!("{score} --out s.jsonl --temperature 0.5"));
    assert!(said.contains("temperature: 1 there, 0.5 here"), "{said}");
}

#[test]
fn quiet_says_results_alone_and_verbose_says_what_is_used() {
    let folder = prepared();
    let eval = |out: &str, flag: &str| -> (String, String) {
        let line = format!(
            "{flag} eval --database d.mm --theorems goal.jsonl --policy replay:t.jsonl \
             --strategy bfs --budget 8 --out {out}"
        );
        let output = catamount(folder.path(), &line.split_whitespace().collect::<Vec<_>>());
        assert!(output.status.success());
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        (text(output.stdout), text(output.stderr))
    };
    let (printed, said) = eval("a.jsonl", "-q");
    assert!(printed.contains("1 of 1 proved") && said.is_empty(), "{printed}{said}");
    let (_, said) = eval("b.jsonl", "-v");
    assert!(said.contains("prover: Metamath") && said.contains("policy: replay"), "{said}");
    let (_, said) = eval("c.jsonl", "");
    assert!(!said.is_empty() && !said.contains("prover: "), "{said}");
    let said = refused(folder.path(), "-q data stats none.jsonl");
    assert!(said.starts_with("error: none.jsonl"), "{said}");
}

#[test]
fn the_beginning_of_a_presets_name_is_enough_and_a_plan_needs_no_data() {
    let folder = prepared();
    let whole = printed(folder.path(), "run paper-official --print");
    assert_eq!(printed(folder.path(), "run paper --print"), whole);
    let capped = whole.replacen("[warm_up]", "[warm_up]\nmax_steps = 17", 1);
    std::fs::write(folder.path().join("capped.toml"), capped).unwrap();
    let plan = printed(folder.path(), "run capped.toml --dry-run");
    assert!(plan.contains("missing: ") && plan.contains("at most 17 steps, "), "{plan}");
    assert!(plan.contains("optimizer steps: counted once traces exist"), "{plan}");
    let plan = printed(folder.path(), "run capped.toml --dry-run --json");
    let plan: Value = serde_json::from_str(&plan).unwrap();
    let missing: Vec<&str> =
        plan["missing"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    for (input, said) in [
        ("random/train.json", &missing[0]),
        ("random/val.json", &missing[1]),
        ("random/test.json", &missing[2]),
        ("model.base: there is no folder or GGUF file Qwen/Qwen2.5-Math-7B-", &missing[3]),
        ("data.project: there is no folder mathlib4", &missing[4]),
    ] {
        assert!(said.contains(input), "{input}: {missing:?}");
    }
    // The same keeps a run from beginning.
    let said = refused(folder.path(), "run capped.toml --device cpu");
    assert!(said.contains("5 inputs are missing:\n") && said.contains(missing[4]), "{said}");
    assert!(plan["steps"][1]["updates"]["assuming"].is_string());
    // The study of the documentation's pictures.
    let pictured = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/images/study.toml");
    assert!(printed(folder.path(), &format!("run {pictured} --dry-run")).contains("distinct bfs"));
}

/// Traces of which one is too long for the recipe.
fn study_of_files(folder: &Path) {
    let trace = |name: &str, steps: usize| {
        let step = |n: usize| format!(r#"{{"state": "$p ( ph -> {n} )", "tactic": "ax-{n}"}}"#);
        let steps: Vec<String> = (0..steps).map(step).collect();
        format!(r#"{{"name": "{name}", "steps": [{}]}}"#, steps.join(", "))
    };
    let long = format!(
        r#"{{"name": "long", "steps": [{{"state": "{}", "tactic": "x"}}]}}"#,
        "y ".repeat(80)
    );
    let train: Vec<String> = (0..9).map(|n| trace(&format!("t{n}"), 1 + n % 4)).collect();
    std::fs::write(folder.join("train.jsonl"), format!("{}\n{long}\n", train.join("\n"))).unwrap();
    std::fs::write(folder.join("valid.jsonl"), trace("v", 2)).unwrap();
    std::fs::write(folder.join("test.jsonl"), trace("goal", 2)).unwrap();
    let file = r#"
        name = "counted"
        model = { hidden = 8, layers = 1, vocab = 300, positions = 64, tokenizer = "symbols" }
        objectives = [{ objective = "bfs" }]
        evaluation = { strategies = ["bfs"], budgets = [8] }
        [data]
        environment = "metamath"
        database = "d.mm"
        train = "train.jsonl"
        valid = "valid.jsonl"
        test = "test.jsonl"
        [warm_up]
        epochs = 3
        max_tokens = 40
        batch = { examples = 4, tokens = 128 }
        [branch]
        epochs = 2
        max_tokens = 40
        batch = { examples = 5, tokens = 128 }
    "#;
    std::fs::write(folder.join("counted.toml"), file).unwrap();
}

#[test]
fn a_dry_run_counts_steps_as_training_does_and_models_have_cards() {
    let folder = prepared();
    study_of_files(folder.path());
    let planned = || -> Value {
        let plan = printed(folder.path(), "train counted.toml --out study --dry-run --json");
        serde_json::from_str(&plan).unwrap()
    };
    let updates = |plan: &Value, place: usize| plan["steps"][place]["updates"].clone();
    let before = planned();
    printed(folder.path(), "train counted.toml --out study --device cpu");
    for (place, name) in [(1, "warm-up"), (2, "bfs")] {
        let metrics = folder.path().join(format!("study/training/{name}.metrics.jsonl"));
        let metrics = std::fs::read_to_string(metrics).unwrap();
        let last: Value = serde_json::from_str(metrics.lines().last().unwrap()).unwrap();
        let counted = serde_json::json!({ "least": last["steps"], "most": last["steps"] });
        assert_eq!(last["dropped"], 1, "the long one");
        assert_eq!(updates(&before, place), counted, "{name}");
        // The same from the study's own data.
        assert_eq!(updates(&planned(), place), counted, "{name}");
    }
    let card = std::fs::read_to_string(folder.path().join("study/models/bfs/README.md")).unwrap();
    assert!(card.contains("library_name: transformers"), "{card}");
    assert!(card.contains("| objective | `bfs` |\n| strategy | bfs |"), "{card}");
    assert!(card.contains("| budget it was trained for | 8 |"), "{card}");
    assert!(card.contains("| trained on | 9 traces of the study \"counted\" |"), "{card}");
    assert!(card.contains("| held-out cross-entropy of a tactic | "), "{card}");
}
