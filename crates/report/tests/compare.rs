//! Comparing logs: what is paired, what is refused, what is said.

mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};

use catamount_evaluate::Log;
use catamount_evaluate::log::{Outcome, Record};
use catamount_report::{
    CompareError, Cost, Within, compare, compare_family, compare_seeds, comparison_table,
};
use synthetic::{demonstrated, manifest, record, theorem, write_cell};

fn result(name: &str, outcome: Outcome) -> Record {
    let tactics = if outcome == Outcome::Proved { demonstrated(name) } else { Vec::new() };
    Record { outcome, expansions: 5, tactics, ..record(name, "ce", "bfs", 16, 1) }
}

/// 458 theorems with the paper's 10/1, all else alike; returns both logs.
fn paper_logs(dir: &Path) -> (PathBuf, PathBuf) {
    let log = |objective: &str, solved: &dyn Fn(usize) -> bool| {
        let records: Vec<Record> = (0..458)
            .map(|i| result(&theorem(i), if solved(i) { Outcome::Proved } else { Outcome::Budget }))
            .collect();
        write_cell(dir, &manifest(objective, "pass", 16, 42, 458), &records)
    };
    (log("ce", &|i| (10..=100).contains(&i)), log("pass", &|i| i < 100))
}

#[test]
fn the_papers_row_comes_out_of_logs() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = paper_logs(dir.path());
    let found = compare(&a, &b).unwrap();
    assert_eq!((found.paired.n, found.paired.b, found.paired.c), (458, 10, 1));
    let json: serde_json::Value = serde_json::from_str(&found.to_json()).unwrap();
    for (key, value) in [
        ("n", 458.0),
        ("b", 10.0),
        ("c", 1.0),
        ("gain_pp", 1.965),
        ("ci_low", 0.546),
        ("ci_high", 3.384),
        ("p", 0.01172),
    ] {
        assert!((json[key].as_f64().unwrap() - value).abs() < 1e-3, "{key}: {}", json[key]);
    }
    let text = found.to_string();
    assert!(
        text.contains("+2.0 pp, 95 % interval [0.5, 3.4], exact two-sided p = 0.012"),
        "{text}"
    );
    assert!(text.contains("solved by A only (1): Demo.lemma_100"), "{text}");
    let back = compare(&b, &a).unwrap();
    assert_eq!((back.paired.b, back.paired.c, back.paired.p), (1, 10, found.paired.p));
    let boot = found.bootstrap.unwrap();
    assert!((boot.low - 0.546).abs() < 0.5 && (boot.high - 3.384).abs() < 0.5, "{boot:?}");
}

#[test]
fn a_family_is_corrected() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = paper_logs(dir.path());
    let records: Vec<Record> = (0..458).map(|i| result(&theorem(i), Outcome::Budget)).collect();
    let none = write_cell(dir.path(), &manifest("ua", "pass", 16, 42, 458), &records);
    let family =
        compare_family(std::slice::from_ref(&a), &[vec![b.clone()], vec![none]], &[]).unwrap();
    let single = compare(&a, &b).unwrap();
    assert_eq!(single.holm_p, None);
    assert!(!single.to_json().contains("holm_p"));
    assert!(
        (family[0].holm_p.unwrap() - single.paired.p).abs() < 1e-12,
        "the larger of two is its own"
    );
    assert!(
        family[1].paired.c == 91
            && (family[1].holm_p.unwrap() / family[1].paired.p - 2.0).abs() < 1e-12
    );
    assert!(family[1].to_string().contains("(Holm): p < 0.001"));
}

#[test]
fn missing_errored_and_capped_theorems() {
    let dir = tempfile::tempdir().unwrap();
    let outcomes = |second: bool| {
        let o = |a, b| if second { b } else { a };
        vec![
            result("both", Outcome::Proved),
            result("capped", o(Outcome::Time, Outcome::Proved)),
            result("errored", o(Outcome::Proved, Outcome::Error)),
            result("exhausted", o(Outcome::Exhausted, Outcome::Budget)),
        ]
    };
    let a = write_cell(dir.path(), &manifest("ce", "bfs", 16, 1, 5), &outcomes(false));
    let mut second = outcomes(true);
    second.push(result("only here", Outcome::Proved));
    let b = write_cell(dir.path(), &manifest("bfs", "bfs", 16, 1, 5), &second);
    let found = compare(&a, &b).unwrap();
    assert_eq!(
        (found.paired.n, found.paired.b, found.paired.c),
        (3, 1, 0),
        "a cap is a failure, an error is no result"
    );
    assert_eq!(found.unpaired, ["errored", "only here"]);
    assert_eq!((found.first.capped, found.second.capped), (1, 0));
    assert!(
        found
            .to_string()
            .contains("not paired: missing or errored in a log (2): errored, only here")
    );
}

#[test]
fn logs_of_different_experiments_are_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let records = [result("t", Outcome::Proved)];
    let base = write_cell(dir.path(), &manifest("ce", "bfs", 16, 1, 1), &records);
    let mut other_pool = manifest("ua", "bfs", 16, 1, 1);
    other_pool.identity.pool = catamount_base::Content::of("another");
    for (m, what) in [
        (manifest("ua", "bfs", 64, 1, 1), "different budgets (16 and 64)"),
        (manifest("ua", "bfs", 16, 2, 1), "different seeds (1 and 2)"),
        (other_pool, "different pools"),
    ] {
        let other = write_cell(&dir.path().join("other"), &m, &records);
        let error = compare(&base, &other).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, CompareError::Different { .. }) && text.contains(what), "{text}");
        assert!(text.contains("ce-bfs-16-1.jsonl") && text.contains("ua-bfs"), "{text}");
    }
    let disjoint = write_cell(
        &dir.path().join("x"),
        &manifest("ua", "bfs", 16, 1, 1),
        &[result("u", Outcome::Proved)],
    );
    assert!(
        compare(&base, &disjoint)
            .unwrap_err()
            .to_string()
            .contains("no theorem was completed in both")
    );
}

#[test]
fn damaged_lines() {
    let dir = tempfile::tempdir().unwrap();
    let path = write_cell(
        dir.path(),
        &manifest("ce", "bfs", 16, 1, 3),
        &[result("a", Outcome::Proved), result("b", Outcome::Budget)],
    );
    let whole = fs::read_to_string(&path).unwrap();
    let half = serde_json::to_string(&result("c", Outcome::Proved)).unwrap();

    fs::write(&path, format!("{whole}{}", &half[..40])).unwrap();
    let cell = Log::read(&path).unwrap();
    assert_eq!(cell.records.len(), 2);
    assert!(
        cell.notes.iter().any(|n| n.contains("line 3, the last, is unfinished")),
        "{:?}",
        cell.notes
    );

    // Cut inside a character of several bytes.
    let mut bytes = whole.clone().into_bytes();
    bytes.extend(b"{\"theorem\":\"\xe2\x88");
    fs::write(&path, bytes).unwrap();
    assert_eq!(Log::read(&path).unwrap().records.len(), 2);

    fs::write(&path, format!("{}\n{whole}", &half[..40])).unwrap();
    let error = Log::read(&path).unwrap_err().to_string();
    assert!(
        error.contains(".jsonl:1: not a cell record") && error.contains("remove this line"),
        "{error}"
    );

    fs::write(&path, "").unwrap();
    assert!(Log::read(&path).unwrap().records.is_empty());
    assert!(
        Log::read(&dir.path().join("nowhere.jsonl"))
            .unwrap_err()
            .to_string()
            .contains("nowhere.jsonl")
    );
    fs::write(&path, whole).unwrap();
    fs::write(path.with_extension("manifest.json"), "{").unwrap();
    assert!(Log::read(&path).unwrap_err().to_string().contains("not a cell's manifest"));
}

#[test]
fn repeated_theorems() {
    let dir = tempfile::tempdir().unwrap();
    let records = [
        result("retried", Outcome::Error),
        result("twice", Outcome::Proved),
        result("differs", Outcome::Budget),
        result("retried", Outcome::Proved),
        result("twice", Outcome::Proved),
        result("differs", Outcome::Proved),
        result("twice", Outcome::Error),
    ];
    let path = write_cell(dir.path(), &manifest("ce", "bfs", 16, 1, 3), &records);
    let cell = Log::read(&path).unwrap();
    assert_eq!(cell.solved("retried"), Some(true));
    assert_eq!(cell.solved("twice"), Some(true), "an error never replaces a result");
    assert_eq!(cell.solved("differs"), Some(true), "the last result counts");
    assert_eq!(cell.notes.len(), 2, "{:?}", cell.notes);
    assert!(cell.notes[0].contains("1 theorem(s) logged twice"), "{:?}", cell.notes);
    assert!(cell.notes[1].contains("differs (lines 3 and 6)"), "{:?}", cell.notes);
}

#[test]
fn a_proof_beyond_the_budget_is_none() {
    let dir = tempfile::tempdir().unwrap();
    let late = Record { expansions: 17, ..result("late", Outcome::Proved) };
    let path = write_cell(dir.path(), &manifest("ce", "bfs", 16, 1, 1), &[late]);
    let cell = Log::read(&path).unwrap();
    assert_eq!(cell.solved("late"), None);
    assert!(
        cell.notes[0].contains("late: 17 expansions within a budget of 16"),
        "{:?}",
        cell.notes
    );
}

#[test]
fn without_manifests_a_note_says_what_was_not_checked() {
    let dir = tempfile::tempdir().unwrap();
    let (a, b) = paper_logs(dir.path());
    fs::remove_file(a.with_extension("manifest.json")).unwrap();
    let found = compare(&a, &b).unwrap();
    assert!(found.notes.iter().any(|n| n.contains("no manifest")), "{:?}", found.notes);
}

#[test]
fn seeds_are_pooled_by_theorem() {
    let dir = tempfile::tempdir().unwrap();
    // Three seeds that agree on everything carry no more evidence than one.
    let logs = |objective: &str, second: bool| -> Vec<PathBuf> {
        [1, 2, 3]
            .into_iter()
            .map(|seed| {
                let records: Vec<Record> = (0..60)
                    .map(|i| {
                        let solved = i >= 40 || (i < 9 && second) || (i == 9 && !second);
                        result(&theorem(i), if solved { Outcome::Proved } else { Outcome::Budget })
                    })
                    .collect();
                write_cell(dir.path(), &manifest(objective, "bfs", 16, seed, 60), &records)
            })
            .collect()
    };
    let (a, b) = (logs("ce", false), logs("bfs", true));
    let pooled = compare_seeds(&a, &b).unwrap();
    let single = compare(&a[0], &b[0]).unwrap();
    assert_eq!(
        (pooled.paired.n, pooled.paired.b, pooled.paired.c, pooled.paired.seeds),
        (60, 27, 3, 3)
    );
    assert!(
        (pooled.paired.p - single.paired.p).abs() < 1e-12
            && (pooled.paired.ci_low - single.paired.ci_low).abs() < 1e-9
    );
    assert!(compare_seeds(&a, &b[..2]).unwrap_err().to_string().contains("give one per seed"));
    assert!(
        compare_seeds(&a[..2], &b[1..])
            .unwrap_err()
            .to_string()
            .contains("different seeds (1, 2 and 2, 3)")
    );
    let twice = [a[0].clone(), a[0].clone()];
    assert!(
        compare_seeds(&twice, &[b[0].clone(), b[0].clone()])
            .unwrap_err()
            .to_string()
            .contains("the same seed twice")
    );
}

/// Seeds with splits of their own share some theorems only: rates, gain and bootstrap are all means
/// over searches, and the rates differ by the gain.
#[test]
fn rates_and_gains_are_of_searches() {
    let dir = tempfile::tempdir().unwrap();
    let logs = |objective: &str, second: bool| -> Vec<PathBuf> {
        let seed = |seed: usize| {
            // 40 theorems are in both pools, 20 in one of them each.
            let records: Vec<Record> = (20 * (seed - 1)..20 * (seed - 1) + 60)
                .map(|i| {
                    let solved = i % 4 == 0 || (second && (20..60).contains(&i) && i % 2 == 0);
                    result(&theorem(i), if solved { Outcome::Proved } else { Outcome::Budget })
                })
                .collect();
            write_cell(dir.path(), &manifest(objective, "bfs", 16, seed as u64, 60), &records)
        };
        [1, 2].into_iter().map(seed).collect()
    };
    let found = compare_seeds(&logs("ce", false), &logs("bfs", true)).unwrap();
    assert_eq!((found.paired.n, found.searches), (80, 120));
    assert!((found.first.rate.rate - 30.0 / 120.0).abs() < 1e-12, "{:?}", found.first.rate);
    let difference = 100.0 * (found.second.rate.rate - found.first.rate.rate);
    assert!((difference - found.paired.gain_pp).abs() < 1e-9, "{difference}");
    let boot = found.bootstrap.unwrap();
    assert!((boot.low + boot.high) / 2.0 - found.paired.gain_pp < 1.0, "{boot:?}");
    assert!(found.to_string().contains("80 theorems completed by both, 120 searches at 2 seeds"));
}

/// Smaller budgets from the same logs, in any unit; several seeds; a family; what could be seen.
#[test]
fn smaller_budgets_are_read_off_the_same_logs() {
    let dir = tempfile::tempdir().unwrap();
    let logs = |objective: &str, at: u64| -> Vec<PathBuf> {
        let seed = |seed: u64| {
            let records: Vec<Record> = (0..50)
                .map(|i| {
                    let solved = i < 20;
                    let outcome = if solved { Outcome::Proved } else { Outcome::Budget };
                    let expansions = if solved { at } else { 16 };
                    Record { expansions, distinct: 3, tokens: 40, ..result(&theorem(i), outcome) }
                })
                .collect();
            write_cell(dir.path(), &manifest(objective, "bfs", 16, seed, 50), &records)
        };
        [1, 2].into_iter().map(seed).collect()
    };
    let (slow, quick) = (logs("ce", 12), logs("bfs", 6));
    let within = |limit, cost| Within { cost, limit };
    let limits = [4, 8, 16].map(|limit| within(limit, Cost::Expansions));
    let found = compare_family(&slow, &[quick.clone(), quick[..1].to_vec()], &limits).unwrap();
    let gains: Vec<f64> = found.iter().map(|c| c.paired.gain_pp).collect();
    assert_eq!(gains, [0.0, 40.0, 0.0, 0.0, 40.0, 0.0]);
    assert_eq!((found[1].searches, found[4].searches), (100, 50), "the seeds that both have");
    assert!(found.iter().all(|c| c.holm_p.is_some()));
    let table = comparison_table(&found);
    assert!(table.contains("8 expansions") && table.contains("+40.0"), "{table}");
    // 40 of 100 searches differ: 3.24 standard errors of sqrt(20 * 4)/100.
    assert!((found[1].visible_pp - 3.2415 * 100.0 * 80f64.sqrt() / 100.0).abs() < 0.01);
    assert!(found[1].to_string().contains("with 90 % power"));
    let tried =
        compare_family(&slow, std::slice::from_ref(&quick), &[within(5, Cost::Distinct)]).unwrap();
    assert_eq!((tried[0].paired.gain_pp, tried[0].first.ended_before), (0.0, 60));
    assert!(tried[0].to_string().contains("60 ended unproved before 5 distinct tactics"));
    let beyond = compare_family(&slow, &[quick], &[within(17, Cost::Expansions)]);
    assert!(beyond.unwrap_err().to_string().contains("had 16 expansions, and say nothing of 17"));
}
