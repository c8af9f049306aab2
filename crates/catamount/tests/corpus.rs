//! A corpus of one's own: a recipe by its path, a checkout with no more than its last commit,
//! traced, and searched with `--corpus`.

mod common;

use std::fs;
use std::path::Path;
use std::process::Command;

use common::{catamount, folder_with, printed, read, refused, said};

const LOGIC: &str = "theorem Mine.swap (p q : Prop) (h : p ∧ q) : q ∧ p := by
  constructor
  · exact h.2
  · exact h.1
";
const USES: &str = "import Mine.Logic

theorem Mine.twice (p q : Prop) (h : p ∧ q) : p ∧ q := by
  apply Mine.swap
  exact Mine.swap p q h
";

fn git(folder: &Path, args: &[&str]) -> String {
    let who = ["-c", "user.name=a", "-c", "user.email=a@example.org"];
    let out = Command::new("git").arg("-C").arg(folder).args(who).args(args).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap().trim().to_owned()
}

#[test]
fn a_corpus_is_traced_and_searched_by_its_recipe() {
    let temporary = folder_with("note", "");
    let folder = temporary.path();
    let origin = folder.join("origin");
    fs::create_dir_all(origin.join("lean/Mine")).unwrap();
    git(&origin, &["init", "--quiet"]);
    for (file, text) in [("Logic", LOGIC), ("Uses", USES)] {
        fs::write(origin.join(format!("lean/Mine/{file}.lean")), text).unwrap();
        git(&origin, &["add", "."]);
        git(&origin, &["commit", "--quiet", "-m", file]);
    }
    let commit = git(&origin, &["rev-parse", "HEAD"]);
    let address = format!("file://{}", origin.display());
    git(folder, &["clone", "--quiet", "--depth", "1", &address, "checkouts/mine"]);
    let recipe = format!(
        "name = \"mine\"\nrepository = \"{address}\"\ncommit = \"{commit}\"\nfolder = \"lean\"\n\
         modules = [\"Mine\"]\n"
    );
    fs::write(folder.join("mine.toml"), recipe).unwrap();

    let traced = "lean trace mine.toml --checkouts checkouts --out t.jsonl --json";
    let row: serde_json::Value = serde_json::from_str(&printed(folder, traced)).unwrap();
    assert_eq!([&row["theorems"], &row["traces"]], [2, 2], "{row}");

    let search = "eval --theorems t.jsonl --policy replay:t.jsonl --strategy bfs --budget 16 \
                  --env lean --workers 1";
    let corpus = "--corpus mine.toml --checkouts checkouts";
    said(folder, &format!("{search} {corpus} --out cell.jsonl"));
    assert_eq!(read(folder, "cell.jsonl").matches("\"proved\"").count(), 2);

    // What the recipe says is not said again, or otherwise.
    for other in ["--library l", "--root r", "--project p", "--leave-out Mine", "--helpers"] {
        let output = catamount(folder, &format!("{search} {corpus} {other} --out x.jsonl"));
        let reason = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success() && reason.contains("cannot be used with"), "{reason}");
    }
    git(&folder.join("checkouts/mine"), &["commit", "--quiet", "--allow-empty", "-m", "more"]);
    let moved = refused(folder, &format!("{search} {corpus} --out x.jsonl"));
    assert!(moved.contains(&commit) && moved.contains("git -C"), "{moved}");
}
