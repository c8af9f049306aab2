//! Every figure's claim, on the very data the figure is drawn from; and that the files say what was found.

use catamount_theory::{findings, rows, theory};

#[test]
fn every_claim_holds() {
    let mut seen = Vec::new();
    let findings = findings(&mut |name| seen.push(name.to_string())).unwrap();
    assert_eq!(findings.len(), 9);
    assert!(!seen.is_empty());
    let failed: Vec<String> = findings
        .iter()
        .flat_map(|finding| {
            finding.checks.iter().filter(|check| !check.holds()).map(|check| format!("{}: {check:?}", finding.name))
        })
        .collect();
    assert!(findings.iter().all(|finding| !finding.checks.is_empty() && !finding.claim.is_empty()));
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}

#[test]
fn the_table_shows_both_channels() {
    let rows = rows().unwrap();
    assert_eq!(rows.len(), 24);
    let row = |tree, strategy| rows.iter().find(|row| row.tree == tree && row.strategy == strategy).unwrap();
    // CE is nearly right for depth-first search among traps it cannot leave, and wrong where everything is recoverable.
    assert!(row("absorbing", "dfs").ce_error() < row("chain", "dfs").ce_error());
    assert!(row("absorbing", "dfs").own_error() > 0.1);
    // Strategies that return recover what depth-first search loses.
    assert!(row("trap", "mcts").own_error() < row("trap", "dfs").own_error());
}

#[test]
fn files_are_written_and_the_index_names_them() {
    let dir = tempfile::tempdir().unwrap();
    let written = theory(&dir.path().join("new/folder"), &mut |_| {}).unwrap();
    assert_eq!(written.len(), 1 + 3 * 9);
    let index = std::fs::read_to_string(&written[0]).unwrap();
    for path in &written[1..] {
        assert!(std::fs::metadata(path).unwrap().len() > 100, "{}", path.display());
        let name = path.file_name().unwrap().to_str().unwrap();
        assert!(name.ends_with(".png") || index.contains(name), "{name}");
    }
    assert!(!index.contains("**no**"));
    // A file where a folder should be.
    let blocked = dir.path().join("file");
    std::fs::write(&blocked, "x").unwrap();
    assert!(theory(&blocked, &mut |_| {}).is_err());
}
