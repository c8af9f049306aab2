//! Several seeds as one study, and what cannot be calibrated or tuned, on Debian's quantum logic
//! database.

mod common;

use std::fs;

use common::small::{assert_same, results};
use common::{folder_with, read, refused, said};

const STUDY: &str = r#"
name = "seeds"
seeds = [3, 11]
split_seed = 7
model = { hidden = 32, layers = 1, vocab = 400, positions = 128, tokenizer = "symbols" }
objectives = [{ objective = "ce" }, { objective = "bfs" }]
evaluation = { strategies = ["bfs"], budgets = [12], limit = 20, max_tokens = 16, trees = 2 }

[data]
environment = "metamath"
database = "ql.mm"
first = 300
steps = "1-4"
split = "0.5,0.2,0.3"

[warm_up]
max_steps = 80
max_tokens = 96
batch = { examples = 8, tokens = 256 }
optimizer = { lr = 3e-3 }

[branch]
max_steps = 4
max_tokens = 96
"#;

/// A column of the first row of a table.
fn column(csv: &str, name: &str) -> String {
    let mut lines = csv.lines();
    let place = lines.next().unwrap().split(',').position(|heading| heading == name).unwrap();
    lines.next().unwrap().split(',').nth(place).unwrap().to_string()
}

#[test]
fn seeds_are_studies_of_their_own_under_one_report() {
    let temporary = folder_with("seeds.toml", STUDY);
    let folder = temporary.path();
    let first = said(folder, "run seeds.toml --out study --device cpu");
    assert!(first.contains("seed 3\n") && first.contains("seed 11\n"), "{first}");
    let both = |path: &str| {
        ["seed-3", "seed-11"]
            .map(|seed| fs::read(folder.join("study").join(seed).join(path)).unwrap())
    };
    let [one, other] = both("data/test.jsonl");
    assert!(one == other, "a split of their own was not asked for");
    let [one, other] = both("models/warm-up/model.safetensors");
    assert!(one != other, "every seed has its own initialisation");
    let sweep = read(folder, "study/report/tables/sweep.csv");
    assert_eq!((column(&sweep, "seeds"), column(&sweep, "n")), ("2".into(), "20".into()));
    let [low, gain, high] = ["seed_min", "gain_pp", "seed_max"]
        .map(|name| column(&sweep, name).parse::<f64>().unwrap());
    assert!(low <= gain && gain <= high, "{sweep}");
    assert!(read(folder, "study/report/report.md").contains("2 seeds pooled by theorem"));

    // Several processes do the seeds at once, and leave the same.
    let spread = said(folder, "run seeds.toml --out spread --device cpu:0,cpu:1");
    let first = |step: &str| spread.find(&format!("] {step} on cpu:")).expect(step);
    assert!(first("seed 11, warm-up") < first("seed 3, report"), "{spread}");
    for seed in ["seed-3", "seed-11"] {
        let of = |study: &str| results(&folder.join(study).join(seed));
        assert_same(&of("study"), &of("spread"), seed);
    }
    assert_eq!(read(folder, "spread/report/tables/sweep.csv"), sweep);

    // Nothing is done twice.
    let again = said(folder, "run seeds.toml --out study --device cpu");
    assert!(!again.contains("warm-up") && again.contains("steps are up to date"), "{again}");

    // A split for every seed: more theorems, each with the seeds that hold it out.
    fs::write(folder.join("own.toml"), STUDY.replace("split_seed = 7\n", "")).unwrap();
    said(folder, "run own.toml --out own --device cpu");
    let data = |seed: &str| read(folder, &format!("own/{seed}/data/test.jsonl"));
    assert_ne!(data("seed-3"), data("seed-11"));
    let sweep = read(folder, "own/report/tables/sweep.csv");
    assert!(column(&sweep, "n").parse::<usize>().unwrap() > 20, "{sweep}");
}

#[test]
fn what_cannot_be_fitted_or_chosen_is_refused() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let refused = |text: String, arguments: &str| {
        fs::write(folder.join("x.toml"), text).unwrap();
        refused(folder, &format!("{arguments} x.toml --out x --device cpu"))
    };
    let one = STUDY.replace("seeds = [3, 11]\n", "");
    let said = refused(one.clone(), "tune");
    assert!(said.contains("objective = \"auto\""), "{said}");
    let auto = one.replace("{ objective = \"bfs\" }", "{ objective = \"auto\" }");
    let auto = auto.replace("[data]", "tune = { probabilities = \"training\" }\n[data]");
    let said = refused(auto.replace("0.5,0.2,0.3", "0.7,0,0.3"), "run");
    assert!(said.contains("data.split: leaves 0 validation theorems"), "{said}");
    let counted = refused(auto.replace("0.5,0.2,0.3", "rest,39,50"), "run");
    assert!(counted.contains("at least 40 are needed"), "{counted}");
    assert!(!folder.join("x").exists(), "nothing was begun");
    // How many theorems there are of the lengths asked for is known once the data are made, and
    // before anything is trained.
    let fitted = "objective = \"bfs\", prior = \"fitted\", probabilities = \"training\"";
    let fitted = one.replace("objective = \"bfs\"", fitted);
    for (text, command) in [(one, "calibrate"), (auto, "run"), (fitted, "run")] {
        fs::remove_dir_all(folder.join("x")).ok();
        let few = refused(text.replace("0.5,0.2,0.3", "0.85,0.05,0.1"), command);
        assert!(few.contains("at least 40 are needed") && few.contains("data.split"), "{few}");
        assert!(folder.join("x/data").exists() && !folder.join("x/models").exists(), "{few}");
    }
}
