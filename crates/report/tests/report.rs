//! A whole report from a whole run folder.

mod synthetic;

use std::fs;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use catamount_base::Lock;
use catamount_evaluate::log::{Outcome, Record};
use catamount_report::{ReportError, report};
use synthetic::{Plan, demonstrated, manifest, record, theorem, write_cell, write_run};

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

#[test]
fn every_table_and_figure_is_there() {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &Plan::default());
    let made = report(dir.path()).unwrap();
    let out = dir.path().join("report");
    for table in [
        "matrix-16",
        "matrix-256",
        "aligned-256",
        "sweep",
        "matching-256",
        "prior",
        "calibration",
        "probabilities",
    ] {
        for ending in ["md", "tex", "csv"] {
            let path = out.join("tables").join(format!("{table}.{ending}"));
            assert!(
                made.files.contains(&path) && fs::metadata(&path).unwrap().len() > 50,
                "{}",
                path.display()
            );
        }
    }
    for figure in [
        "rates-256",
        "gain",
        "success-256",
        "success-16",
        "success-distinct-256",
        "success-tokens-256",
        "depths",
        "loss",
        "distribution-p",
        "distribution-weights",
        "probabilities",
        "reliability",
    ] {
        for ending in ["svg", "png", "csv"] {
            let path = out.join("figures").join(format!("{figure}.{ending}"));
            assert!(
                made.files.contains(&path) && fs::metadata(&path).unwrap().len() > 50,
                "{}",
                path.display()
            );
        }
    }
    assert!(
        made.missing.is_empty() && made.notes.is_empty(),
        "{:?} {:?}",
        made.missing,
        made.notes
    );

    // The matrix says what the logs say.
    let proved = (0..120)
        .filter(|i| record(&theorem(*i), "ua", "bfs", 256, 7).outcome == Outcome::Proved)
        .count();
    let csv = read(out.join("tables/matrix-256.csv"));
    let line = csv.lines().find(|l| l.starts_with("ua,bfs,256,1,120,120,")).unwrap();
    let rate: f64 = line.split(',').nth(6).unwrap().parse().unwrap();
    assert!((rate - proved as f64 / 120.0).abs() < 1e-12, "{line}");
    let markdown = read(out.join("tables/matrix-256.md"));
    assert!(markdown.contains("| UA |") && markdown.contains("**"), "{markdown}");
    assert!(read(out.join("tables/matrix-256.tex")).contains("\\textbf{"));

    // The sweep says what a direct comparison says, and every row is corrected.
    let cells = dir.path().join("cells");
    let direct = catamount_report::compare(
        &cells.join("ce-bfs-256-7.jsonl"),
        &cells.join("ua-bfs-256-7.jsonl"),
    )
    .unwrap()
    .paired;
    let sweep = read(out.join("tables/sweep.csv"));
    let row = format!(
        "bfs,ua,256,{},1,{},{},{},{},{},{},",
        direct.n, direct.b, direct.c, direct.gain_pp, direct.ci_low, direct.ci_high, direct.p
    );
    assert!(sweep.contains(&row), "{row}\n{sweep}");
    assert_eq!(sweep.lines().count(), 1 + 5 * 6 * 3);

    let page = read(&made.page);
    for part in [
        "id=\"trees\"",
        "Synthetic study",
        "0123abc",
        "catamount run synthetic.toml",
        "\u{3ba} = 5, q = 0.02",
        "id=\"w-curves\"",
    ] {
        assert!(page.contains(part), "{part}");
    }
    for outside in ["http://", "https://", "src=\"", "@import", "url("] {
        let found = page.replace("http://www.w3.org/2000/svg", "");
        assert!(!found.contains(outside), "the page must load nothing: {outside}");
    }
    assert!(page.len() < 6_000_000, "{}", page.len());
}

#[test]
fn what_is_missing_or_odd_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        objectives: vec!["ce", "bfs"],
        strategies: vec!["bfs", "pass"],
        budgets: vec![16],
        theorems: 40,
        trees: 2,
        ..Plan::default()
    };
    write_run(dir.path(), &plan);
    let cells = dir.path().join("cells");
    for ending in ["jsonl", "manifest.json", "trees.jsonl"] {
        fs::remove_file(cells.join(format!("bfs-pass-16-7.{ending}"))).unwrap();
    }
    // A cell cut short, with an error and a cap.
    let mut records: Vec<Record> =
        (0..30).map(|i| record(&theorem(i), "ua", "bfs", 16, 7)).collect();
    records[0].outcome = Outcome::Error;
    records[1].outcome = Outcome::Time;
    records[..2].iter_mut().for_each(|record| record.tactics.clear());
    write_cell(&cells, &manifest("ua", "bfs", 16, 7, 40), &records);
    // Another pool, the same place twice, no manifest, and damage.
    let mut elsewhere = manifest("ua", "pass", 16, 7, 40);
    elsewhere.identity.pool = catamount_base::Content::of("other");
    write_cell(&cells, &elsewhere, &records);
    let again = write_cell(&dir.path().join("again"), &manifest("ce", "bfs", 16, 7, 40), &records);
    fs::rename(&again, cells.join("zz-copy.jsonl")).unwrap();
    fs::rename(again.with_extension("manifest.json"), cells.join("zz-copy.manifest.json")).unwrap();
    fs::write(cells.join("bare.jsonl"), "").unwrap();
    fs::write(cells.join("ce-bfs-16-7.times.jsonl"), "whatever a cell keeps besides\n").unwrap();
    fs::write(cells.join("broken.jsonl"), "{\n{}\n").unwrap();
    fs::write(dir.path().join("training/odd.metrics.jsonl"), "nonsense\n{\"step\": 1}\n").unwrap();
    fs::write(cells.join("ce-bfs-16-7.trees.jsonl"), "{\"theorem\":\n").unwrap();

    let made = report(dir.path()).unwrap();
    let (missing, notes) = (made.missing.join("\n"), made.notes.join("\n"));
    assert!(missing.contains("bfs at N = 16: not in this folder under pass"), "{missing}");
    for part in [
        "ua under bfs at N = 16, seed 7: 29 of 40 theorems completed (1 errors, 10 never run)",
        "ua under bfs at N = 16, seed 7: 1 theorems cut off by a wall-clock cap",
        "was run on another pool",
        "zz-copy.jsonl says it is ce under bfs at N = 16, seed 7",
        "bare.jsonl has no manifest",
        "broken.jsonl:1: not a cell record",
        "odd.metrics.jsonl: line 1 is not a measurement",
        "ce-bfs-16-7.trees.jsonl: not a tree record on line(s) 1",
    ] {
        assert!(notes.contains(part), "{part}\n{notes}");
    }
    assert!(!notes.contains("times.jsonl"), "{notes}");
    let page = read(&made.page);
    let matrix = made.tables.iter().find(|t| t.name == "matrix-16").unwrap();
    assert!(
        matrix.to_markdown().contains("\u{2014}")
            && matrix.caption.contains("over those that were (ua under bfs: 29 of 40)")
    );
    assert!(
        page.contains("bfs at N = 16: not in this folder under pass")
            && page.contains("zz-copy.jsonl")
    );

    // With a plan, what was promised counts, not what a table would have room for.
    let promised = serde_json::json!({"cells": [{"objective": "rdfs", "strategy": "rdfs",
        "budget": 64, "seed": 7}]});
    fs::write(dir.path().join("plan.json"), promised.to_string()).unwrap();
    let made = report(dir.path()).unwrap();
    let missing = made.missing;
    assert!(
        missing.iter().any(|m| m == "rdfs under rdfs at N = 64, seed 7: planned, never run"),
        "{missing:?}"
    );
    // What else is there counts, and is named.
    let others = |note: &&String| note.contains("does not plan it: ");
    let note = made.notes.iter().find(others).unwrap();
    assert!(note.contains("bfs under bfs at N = ") && !note.contains("rdfs under rdfs"), "{note}");
}

#[test]
fn several_seeds_are_pooled() {
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        objectives: vec!["ce", "bfs"],
        strategies: vec!["bfs"],
        budgets: vec![16],
        seeds: vec![1, 2, 3],
        theorems: 50,
        trees: 1,
    };
    write_run(dir.path(), &plan);
    let made = report(dir.path()).unwrap();
    let sweep = made.tables.iter().find(|t| t.name == "sweep").unwrap();
    assert!(sweep.csv.lines().nth(1).unwrap().starts_with("bfs,bfs,16,50,3,"), "{}", sweep.csv);
    assert!(
        made.tables[0].caption.contains("3 seeds pooled by theorem"),
        "{}",
        made.tables[0].caption
    );
}

/// What two wrote at once would be of neither.
#[test]
fn a_report_waits_for_whoever_is_writing_one() {
    let dir = tempfile::tempdir().unwrap();
    write_run(dir.path(), &Plan::default());
    let other = Lock::wait(&dir.path().join(".report.lock")).unwrap();
    let (tell, told) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(|| tell.send(report(dir.path()).map(drop)).unwrap());
        let early = told.recv_timeout(Duration::from_secs(2));
        assert!(early.is_err() && !dir.path().join("report").exists(), "it did not wait");
        drop(other);
    });
    told.recv().unwrap().unwrap();
    assert!(dir.path().join("report/index.html").exists());
}

#[test]
fn folders_that_hold_no_run() {
    let dir = tempfile::tempdir().unwrap();
    assert!(matches!(report(&dir.path().join("none")), Err(ReportError::Read { .. })));
    assert!(report(dir.path()).unwrap_err().to_string().contains("holds no cell with a manifest"));
    fs::write(dir.path().join("plan.json"), "{").unwrap();
    assert!(report(dir.path()).unwrap_err().to_string().contains("plan.json: not what a study"));
    fs::remove_file(dir.path().join("plan.json")).unwrap();
    fs::write(dir.path().join("calibration.json"), "[1]").unwrap();
    assert!(
        report(dir.path()).unwrap_err().to_string().contains("calibration.json: not what a study")
    );
}

/// Two cells of `n` theorems, one of which proves all of them.
fn one_sided(n: usize, winner: &str) -> String {
    let dir = tempfile::tempdir().unwrap();
    let names: Vec<String> = (0..n).map(theorem).collect();
    for objective in ["ce", "bfs"] {
        let outcome = if objective == winner { Outcome::Proved } else { Outcome::Budget };
        let records: Vec<Record> = names
            .iter()
            .map(|name| {
                let proved = outcome == Outcome::Proved;
                let tactics = if proved { demonstrated(name) } else { Vec::new() };
                Record { outcome, tactics, ..record(name, objective, "bfs", 16, 1) }
            })
            .collect();
        write_cell(&dir.path().join("cells"), &manifest(objective, "bfs", 16, 1, n), &records);
    }
    report(dir.path()).unwrap();
    read(dir.path().join("report").join("index.html"))
}

#[test]
fn sentences_say_what_happened_and_intervals_are_possible() {
    let lost = one_sided(5, "ce");
    assert!(!lost.contains("largest gain"), "a loss is no gain");
    assert!(lost.contains("the smallest loss is 100.0 points [-100.0, -12.3]"), "{lost}");
    let even = one_sided(5, "neither");
    assert!(even.contains("the nearest comparison is even at 0.0 points"));
    let won = one_sided(5, "bfs");
    assert!(won.contains("The largest gain is +100.0 points [12.3, 100.0]"));
    assert!(!won.contains("187.7"));
}

/// Seven more proofs than CE in 40: enough for one objective, not for the best of four, which is
/// chosen on the theorems that it is compared on.
#[test]
fn what_to_deploy_is_corrected_for_the_choice() {
    let advice = |objectives: &[&str]| {
        let dir = tempfile::tempdir().unwrap();
        for objective in objectives {
            let proved = match *objective {
                "bfs" | "ce+distinct" => 17,
                "bfs+distinct" => 18,
                "ua+distinct" => 30,
                _ => 10,
            };
            let records: Vec<Record> = (0..40)
                .map(|i| {
                    let outcome = if i < proved { Outcome::Proved } else { Outcome::Budget };
                    let name = theorem(i);
                    let tactics = if i < proved { demonstrated(&name) } else { Vec::new() };
                    Record { outcome, tactics, ..record(&name, objective, "bfs", 16, 1) }
                })
                .collect();
            write_cell(&dir.path().join("cells"), &manifest(objective, "bfs", 16, 1, 40), &records);
        }
        report(dir.path()).unwrap();
        let page = read(dir.path().join("report/index.html"));
        let at = page.find("What to deploy").unwrap();
        page[at..].split("</li>").next().unwrap().to_owned()
    };
    assert!(advice(&["ce", "bfs"]).contains("over CE"));
    let best_of_four = advice(&["ce", "bfs", "ua", "pass", "rdfs"]);
    assert!(best_of_four.contains("nothing is better"), "{best_of_four}");
    // Cross-entropy is as good as what is not better for sure, and simpler.
    let simplest = advice(&["ce", "ce+distinct", "bfs+distinct"]);
    assert!(simplest.contains("under BFS CE, distinct samples: 42.5"), "{simplest}");
    let better = advice(&["ce", "ce+distinct", "ua+distinct"]);
    assert!(better.contains("under BFS UA, distinct samples: 75.0"), "{better}");
}

/// What a search that was stopped had done by then is what is easy.
#[test]
fn the_rate_of_a_part_is_not_the_highest() {
    let dir = tempfile::tempdir().unwrap();
    let cell = |objective: &str, searched: usize, proved: usize| {
        let outcome = |i| if i < proved { Outcome::Proved } else { Outcome::Budget };
        let tactics = |i| if i < proved { demonstrated(&theorem(i)) } else { Vec::new() };
        let one = |i| Record {
            outcome: outcome(i),
            tactics: tactics(i),
            ..record(&theorem(i), objective, "bfs", 16, 1)
        };
        let records: Vec<Record> = (0..searched).map(one).collect();
        write_cell(&dir.path().join("cells"), &manifest(objective, "bfs", 16, 1, 40), &records);
    };
    cell("ce", 40, 20);
    cell("bfs", 10, 10);
    report(dir.path()).unwrap();
    let page = read(dir.path().join("report/report.md"));
    let highest = page.lines().find(|line| line.contains("highest rate")).unwrap();
    assert!(highest.contains("50.0") && highest.contains("CE under BFS"), "{highest}");
}

/// Seeds with pools of their own: what is missing of them is marked, and the caption counts all.
#[test]
fn cells_of_several_seeds_that_are_not_complete_are_marked() {
    let dir = tempfile::tempdir().unwrap();
    let cells = dir.path().join("cells");
    let cell = |objective: &str, seed: u64, theorems: std::ops::Range<usize>| {
        let records: Vec<Record> =
            theorems.map(|i| record(&theorem(i), objective, "bfs", 16, seed)).collect();
        write_cell(&cells, &manifest(objective, "bfs", 16, seed, 40), &records)
    };
    cell("ce", 1, 0..40);
    cell("ce", 2, 20..60);
    // One search is missing; a whole seed is.
    cell("ua", 1, 0..39);
    cell("ua", 2, 20..60);
    cell("bfs", 1, 0..40);
    report(dir.path()).unwrap();
    let matrix = read(dir.path().join("report/tables/matrix-16.md"));
    assert!(matrix.contains("60 held-out theorems, 80 searches at 2 seeds"), "{matrix}");
    assert!(matrix.contains("ua under bfs: 79 of 80; bfs under bfs: 40 of 80"), "{matrix}");
    assert_eq!(matrix.matches('\u{2020}').count(), 3, "{matrix}");
    let csv = read(dir.path().join("report/tables/matrix-16.csv"));
    assert!(csv.lines().any(|l| l.starts_with("ce,bfs,16,2,40,60,") && l.ends_with(",80,80")));
}
