//! Every figure's claim, on the very data the figure is drawn from; and that the files say what was
//! found.

use std::path::PathBuf;
use std::sync::OnceLock;

use catamount_figure::Figure;
use catamount_search::StrategyKind;
use catamount_theory::{Check, Finding, TheoryError, findings, rows, theory, write};

/// What was found and written, once for all tests.
struct Found {
    /// Each figure's name, number of checks and failed checks.
    findings: Vec<(&'static str, usize, Vec<String>)>,
    written: Result<Vec<PathBuf>, String>,
    steps: usize,
    _folder: tempfile::TempDir,
}

fn found() -> &'static Found {
    static FOUND: OnceLock<Found> = OnceLock::new();
    let failed = |finding: &Finding| {
        finding
            .checks
            .iter()
            .filter(|check| !check.holds())
            .map(|check| format!("{check:?}"))
            .collect::<Vec<String>>()
    };
    FOUND.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let mut steps = 0;
        let found = findings(&mut |_| steps += 1).unwrap();
        let written = write(&found, &folder.path().join("new/folder"), &mut |_| steps += 1)
            .map_err(|error| error.to_string());
        let findings = found
            .iter()
            .map(|finding| (finding.name, finding.checks.len(), failed(finding)))
            .collect();
        Found { findings, written, steps, _folder: folder }
    })
}

fn holds(name: &str) {
    let (_, checks, failed) =
        found().findings.iter().find(|finding| finding.0 == name).expect("the figure exists");
    assert!(*checks > 0 && failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn weights_fall_with_p() {
    holds("weight-by-p");
}

#[test]
fn weights_fall_with_the_budget() {
    holds("weight-by-budget");
}

#[test]
fn the_retry_weight_is_a_criticality() {
    holds("criticality");
}

#[test]
fn bypass_deflates_and_the_gap_decomposes() {
    holds("bypass");
}

#[test]
fn kappa_brackets() {
    holds("kappa-bracket");
}

#[test]
fn recoverable_misses_hump_and_absorption_floors() {
    holds("hump-and-floor");
}

#[test]
fn the_retry_weight_is_a_budget_average() {
    holds("ua-and-retry");
}

#[test]
fn deployed_weights_lie_where_theory_says() {
    holds("surrogate-error");
    holds("deployed-by-budget");
}

#[test]
fn the_table_shows_both_channels() {
    let rows = rows().unwrap();
    assert_eq!(rows.len(), 24);
    let row = |tree, strategy| {
        rows.iter().find(|row| row.tree == tree && row.strategy == strategy).unwrap()
    };
    // CE is nearer for depth-first searches among traps they cannot leave than where everything is
    // recoverable.
    for strategy in [StrategyKind::Dfs, StrategyKind::Rdfs, StrategyKind::Vdfs] {
        assert!(
            row("absorbing", strategy).ce_error() < row("chain", strategy).ce_error(),
            "{strategy}"
        );
        assert!(row("absorbing", strategy).own_error() > 0.1, "{strategy}");
    }
    // Searches that jump recover from finite traps, so their surrogates are nearer than that of a
    // search that stays.
    assert!(
        row("trap", StrategyKind::Rdfs).own_error() < row("trap", StrategyKind::Dfs).own_error()
    );
    // With many alternative proofs raising p can do harm: it starves them.
    assert!(row("bypass", StrategyKind::Bfs).truth(0) < 0.0);
    // What the evaluation visit changes.
    let visit = row("chain", StrategyKind::Mcts).own_error();
    assert!(visit > 1e-5 && visit < 1e-2, "{visit}");
}

#[test]
fn files_are_written_and_the_index_names_them() {
    let written = found().written.as_ref().unwrap();
    assert!(found().steps >= 9 + 8);
    assert_eq!(written.len(), 1 + 3 * 9);
    let index = std::fs::read_to_string(&written[0]).unwrap();
    assert!(!index.contains("**no**"));
    for path in &written[1..] {
        assert!(std::fs::metadata(path).unwrap().len() > 100, "{}", path.display());
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with(".png") || index.contains(name), "{name}");
    }
}

#[test]
fn a_false_claim_is_written_and_refused() {
    let dir = tempfile::tempdir().unwrap();
    let finding = Finding {
        name: "false",
        claim: "Two is at most one.".into(),
        checks: vec![Check::at_most("two", 2.0, 1.0), Check::at_least("two", 2.0, 1.0)],
        chart: Box::new(Figure::new("False")),
        table: String::new(),
    };
    let error = write(&[finding], dir.path(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, TheoryError::Failed { failed: 1, .. }), "{error}");
    let index = std::fs::read_to_string(dir.path().join("theory.md")).unwrap();
    assert!(
        index.contains("| two | 2 | at most 1 | **no** |")
            && index.contains("| two | 2 | at least 1 | yes |")
    );
}

#[test]
fn a_folder_that_cannot_be_made_is_known_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "x").unwrap();
    let mut steps = 0;
    assert!(matches!(theory(&blocked, &mut |_| steps += 1), Err(TheoryError::Write { .. })));
    assert_eq!(steps, 0);
}
