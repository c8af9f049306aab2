//! The page in a real browser: scripts run, controls work, links lead where they say, nothing
//! overflows a phone, and a study that runs fills in.

mod chromium;
mod synthetic;

use std::fs;
use std::path::Path;

use catamount_evaluate::log::Outcome;
use catamount_report::{PLAN, PlannedCell, Server, StudyPlan};
use chromium::{browser, dom, picture};
use serde_json::Value;
use synthetic::{Plan, demonstrated, manifest, record, stem, theorem, tree, write_cell, write_run};

/// Works every control and leaves what it saw in an element of its own.
const DRIVER: &str = r#"
addEventListener('load', () => {
const saw = { errors: window.failures };
const at = (id) => document.getElementById(id);
const set = (id, value) => {
  at(id).value = value;
  for (const kind of ['input', 'change']) at(id).dispatchEvent(new Event(kind, { bubbles: true }));
};
saw.objectives = [...at('w-objective').options].map((o) => {
  set('w-objective', o.value);
  return { name: o.value, success: at('w-success').textContent,
      weights: [...at('w-steps').rows].map((r) => r.cells[4].textContent) };
});
set('w-objective', 'bfs'); set('w-length', 9); saw.rows = at('w-steps').rows.length;
set('w-objective', 'mcts'); set('w-budget', 3); saw.problem = at('w-problem').textContent;
saw.theorems = at('v-theorem').options.length;
saw.trees = [];
for (let t = 0; t < saw.theorems; t++) {
  set('v-theorem', t);
  for (let c = 0; c < at('v-cell').options.length; c++) {
    set('v-cell', c);
    const last = Number(at('v-time').max);
    const proved = at('v-cell').selectedOptions[0].textContent.includes('\u2713');
    set('v-time', 0);
    const before = document.querySelectorAll('#v-log li:not(.later)').length;
    for (let i = 0; i < Math.min(3, last); i++) at('v-next').click();
    const three = document.querySelectorAll('#v-log li:not(.later)').length;
    set('v-time', last);
    saw.trees.push({ last, proved, before, three,
        shown: document.querySelectorAll('#v-log li:not(.later)').length,
      won: document.querySelectorAll('#v-pane circle.won').length,
      on: document.querySelectorAll('#v-pane circle.on').length,
      detail: at('v-detail').textContent.includes('proof found') });
  }
}
const results = () => [...at('t-rows').rows].map((r) => [...r.cells].map((c) => c.textContent));
const found = (text) => text.startsWith('\u2713');
saw.rowsBefore = results().length; at('t-more').click(); saw.rowsAll = results().length;
const choice = (value) => {
  set('t-show', value); if (!at('t-more').hidden) at('t-more').click(); return results();
};
saw.onlyA = choice('a').every((r) => found(r[2]) && !found(r[3])) && results().length;
saw.onlyB = choice('b').every((r) => !found(r[2]) && found(r[3])) && results().length;
saw.both = choice('both').every((r) => found(r[2]) && found(r[3])) && results().length;
saw.neither = choice('neither').every((r) => !found(r[2]) && !found(r[3])) && results().length;
saw.differ = choice('differ').length; choice('all');
const heading = (by) => document.querySelector(`th[data-by=${by}]`);
heading('steps').querySelector('button').click(); at('t-more').click();
saw.rising = results().map((r) => Number(r[1]));
heading('steps').querySelector('button').click(); at('t-more').click();
saw.falling = results().map((r) => Number(r[1]));
saw.sorted = heading('steps').getAttribute('aria-sort');
set('t-find', 'lemma_007'); saw.searched = results().map((r) => r[0]);
set('t-find', ''); if (!at('t-more').hidden) at('t-more').click();
saw.links = [...document.querySelectorAll('#t-rows a')].map((a) => a.getAttribute('href'));
saw.terms = [...document.querySelectorAll('#glossary dt')].map((e) => e.textContent);
saw.experiment = document.querySelector('pre.file').textContent;
saw.cut = [...document.querySelectorAll('main *')].filter((e) => {
  const box = e.getBoundingClientRect(), wide = box.right > innerWidth + 1 && box.width > 0;
  return wide && !e.closest('.scroll, .pane, pre') && getComputedStyle(e).position !== 'absolute';
}).map((e) => e.outerHTML.slice(0, 120));
at('v-rejected').click(); at('v-play').click(); at('v-play').click();
at('theme').click();
saw.theme = document.documentElement.dataset.theme;
at('theme').click();
saw.themeBack = document.documentElement.dataset.theme;
const nameless = (e) =>
  !e.closest('label') && !e.getAttribute('aria-label') && !e.textContent.trim();
const controls = [...document.querySelectorAll('input, select, button')];
saw.unlabelled = controls.filter(nameless).map((e) => e.outerHTML);
const width = (e) => e.getBoundingClientRect().width;
// A figure may hold drawings of its own, one for each panel.
const svgs = [...document.querySelectorAll('figure.drawn svg:not(svg svg)')].map(width);
saw.figures = document.querySelectorAll('figure.drawn').length;
saw.svgs = svgs.filter((width) => width > 0);
location.hash = '#theorems?by=foo'; saw.unknownOrder = results().length;
saw.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
saw.width = innerWidth;
setTimeout(() => {
  saw.curves = at('w-curves').querySelectorAll('polyline').length;
  const out = parent.document.createElement('pre');
  out.id = 'saw';
  out.textContent = JSON.stringify(saw);
  parent.document.body.append(out);
}, 500);
});
"#;

/// The report in a frame as wide as a phone, with the driver in it; waits on a clean profile.
fn drive(browser: &Path, dir: &Path, page: &str, width: u32) -> Value {
    let watched = page
        .replacen(
            "<head>",
            "<head><script>window.failures = []; addEventListener('error', (e) => \
             failures.push(e.message));</script>",
            1,
        )
        .replacen("</body>", &format!("<script>{DRIVER}</script></body>"), 1);
    let quoted = watched.replace('&', "&amp;").replace('"', "&quot;");
    let frame = dir.join(format!("frame-{width}.html"));
    fs::write(
        &frame,
        format!(
            "<!doctype html><meta charset=utf-8><body><iframe \
     style=\"width:{width}px;height:2000px;border:0\" srcdoc=\"{quoted}\"></iframe>"
        ),
    )
    .unwrap();
    let address = format!("file://{}", frame.display());
    let found = dom(browser, &address, &dir.join(format!("profile-{width}")));
    let start = found.find("<pre id=\"saw\">").unwrap_or_else(|| {
        panic!("the driver did not finish: {}", &found[found.len().saturating_sub(800)..])
    }) + 14;
    let end = start + found[start..].find("</pre>").unwrap();
    let text = found[start..end].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

#[test]
#[ignore = "needs a browser (Debian's chromium, or CATAMOUNT_BROWSER)"]
fn the_page_works_on_a_desk_and_on_a_phone() {
    let browser = browser();
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        theorems: 60,
        trees: 4,
        budgets: vec![16, 64],
        strategies: vec!["bfs", "pass", "mcts"],
        ..Plan::default()
    };
    write_run(dir.path(), &plan);
    let made = catamount_report::report(dir.path()).unwrap();
    let page = fs::read_to_string(&made.page).unwrap();
    for width in [390, 1400] {
        let saw = drive(&browser, dir.path(), &page, width);
        assert_eq!(saw["width"], width);
        assert_eq!(saw["errors"], serde_json::json!([]), "scripts failed at {width}");
        assert_eq!(saw["unlabelled"], serde_json::json!([]));
        let svgs: Vec<f64> =
            saw["svgs"].as_array().unwrap().iter().filter_map(Value::as_f64).collect();
        assert_eq!(Some(svgs.len() as u64), saw["figures"].as_u64(), "each figure once: {svgs:?}");
        assert!(svgs.iter().all(|svg| *svg <= f64::from(width)), "wider than {width}: {svgs:?}");
        assert_eq!(saw["overflow"], 0, "the page scrolls sideways at {width}");
        assert_eq!(saw["cut"], serde_json::json!([]), "cut off at {width}");
        check_theorems(&saw);
        assert_eq!(saw["rows"], 9);
        assert_eq!(saw["curves"], 9);
        assert!(
            saw["problem"].as_str().unwrap().contains("at least 35 expansions"),
            "{}",
            saw["problem"]
        );
        let objectives = saw["objectives"].as_array().unwrap();
        assert_eq!(objectives.len(), 7);
        for objective in objectives {
            assert!(
                objective["weights"].as_array().unwrap().iter().all(|w| w
                    .as_str()
                    .unwrap()
                    .parse::<f64>()
                    .is_ok()),
                "{objective}"
            );
        }
        assert_ne!(saw["theme"], saw["themeBack"]);
        assert_eq!(saw["theorems"], 4);
        let trees = saw["trees"].as_array().unwrap();
        assert_eq!(trees.len(), 4 * 6 * 3);
        for tree in trees {
            assert_eq!(tree["before"], 0, "{tree}");
            assert_eq!(
                tree["three"].as_u64().unwrap(),
                tree["last"].as_u64().unwrap().min(3),
                "{tree}"
            );
            assert_eq!(tree["shown"], tree["last"], "{tree}");
            let proved = tree["proved"].as_bool().unwrap();
            assert_eq!(tree["detail"], proved, "{tree}");
            assert_eq!(tree["won"].as_u64().unwrap() > 1, proved, "{tree}");
            assert!(
                !proved || tree["on"].as_u64().unwrap() > 1,
                "the demonstrated trace is marked: {tree}"
            );
        }
        assert!(
            trees.iter().any(|t| t["proved"] == true) && trees.iter().any(|t| t["proved"] == false)
        );
    }
}

/// The table of theorems says what the logs say, in the order that was asked for.
fn check_theorems(saw: &Value) {
    assert_eq!((saw["rowsBefore"].as_u64(), saw["rowsAll"].as_u64()), (Some(50), Some(60)));
    let count = |key: &str| saw[key].as_u64().unwrap_or_else(|| panic!("{key}: {}", saw[key]));
    let (a, b, both, neither) = (count("onlyA"), count("onlyB"), count("both"), count("neither"));
    assert_eq!(a + b + both + neither, 60);
    assert_eq!(count("differ"), a + b);
    let steps = |key: &str| -> Vec<u64> {
        saw[key].as_array().unwrap().iter().map(|v| v.as_u64().unwrap()).collect()
    };
    assert!(steps("rising").is_sorted() && steps("falling").iter().rev().is_sorted());
    assert_eq!(steps("rising").len(), 60);
    assert_eq!(saw["sorted"], "descending");
    assert_eq!(saw["searched"], serde_json::json!([theorem(7)]));
    let links = saw["links"].as_array().unwrap();
    // Four theorems have trees, under both searches that are compared.
    assert_eq!(links.len(), 8, "{links:?}");
    assert!(links.iter().all(|link| link.as_str().unwrap().starts_with("#searches?theorem=Demo")));
    let terms = saw["terms"].as_array().unwrap();
    assert!(["CE", "UA", "CAT", "expansion"].iter().all(|t| terms.contains(&(*t).into())));
    assert!(saw["experiment"].as_str().unwrap().contains("[evaluation]\nbudgets = [16, 64]"));
}

#[test]
#[ignore = "needs a browser (Debian's chromium, or CATAMOUNT_BROWSER)"]
fn errors_come_last_whichever_way_theorems_are_sorted() {
    let dir = tempfile::tempdir().unwrap();
    let records: Vec<_> = (0..12)
        .map(|i| {
            let mut record = record(&theorem(i), "ce", "bfs", 64, 7);
            record.outcome = match i % 3 {
                0 => Outcome::Proved,
                1 => Outcome::Budget,
                _ => Outcome::Error,
            };
            record.tactics = match record.outcome {
                Outcome::Proved => demonstrated(&record.theorem),
                _ => Vec::new(),
            };
            record
        })
        .collect();
    write_cell(&dir.path().join("cells"), &manifest("ce", "bfs", 64, 7, 12), &records);
    let made = catamount_report::report(dir.path()).unwrap();
    let mut ways = Vec::new();
    for by in ["a", "-a"] {
        let link = format!("file://{}#theorems?show=all&by={by}", made.page.display());
        let page = dom(&browser(), &link, &dir.path().join("profile"));
        let rows = page.split("id=\"t-rows\">").nth(1).unwrap().split("</tbody>").next().unwrap();
        let ends: Vec<String> = rows
            .match_indices("<span class=\"v")
            .step_by(2)
            .map(|(at, _)| rows[at..].chars().skip(14).take(1).collect())
            .collect();
        assert_eq!(ends.concat(), "111100002222", "{by}: {rows}");
        ways.push(rows.to_owned());
    }
    assert_ne!(ways[0], ways[1], "the other way round is another order");
}

#[test]
#[ignore = "needs a browser (Debian's chromium, or CATAMOUNT_BROWSER)"]
fn links_lead_where_they_say() {
    let browser = browser();
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        theorems: 30,
        trees: 4,
        budgets: vec![64],
        strategies: vec!["bfs", "mcts"],
        ..Plan::default()
    };
    write_run(dir.path(), &plan);
    let made = catamount_report::report(dir.path()).unwrap();
    let profile = dir.path().join("profile");
    let open =
        |link: &str| dom(&browser, &format!("file://{}#{link}", made.page.display()), &profile);
    let last = record(&theorem(2), "ua", "mcts", 64, 7).expansions;
    let found = open("searches?theorem=Demo.lemma_002&search=ua%2Fmcts%2F64&at=2");
    assert!(found.contains(&format!(">2 of {last}</output>")), "{last}");
    assert!(found.contains("MCTS \u{b7} UA, N = 64"));
    let proved = |objective: &str, i: usize| {
        !record(&theorem(i), objective, "bfs", 64, 7).tactics.is_empty()
    };
    let only = (0..30).filter(|&i| proved("bfs", i) && !proved("ce", i)).count();
    let found = open("theorems?a=ce%2Fbfs%2F64&b=bfs%2Fbfs%2F64&show=b");
    let text = if only == 1 { "1 theorem".into() } else { format!("{only} theorems") };
    assert!(found.contains(&format!("<b>{text}</b> of 30")), "{only}");
}

#[test]
#[ignore = "needs a browser (Debian's chromium, or CATAMOUNT_BROWSER)"]
fn a_study_that_runs_fills_in() {
    let browser = browser();
    let dir = tempfile::tempdir().unwrap();
    let cells = ["ce", "bfs"].map(|objective| PlannedCell {
        objective: objective.into(),
        strategy: "bfs".into(),
        budget: 16,
        seed: Some(7),
        log: Some(format!("cells/{}.jsonl", stem(objective, "bfs", 16, 7)).into()),
    });
    let plan =
        StudyPlan { title: Some("live".into()), cells: cells.into(), ..StudyPlan::default() };
    fs::write(dir.path().join(PLAN), serde_json::to_string(&plan).unwrap()).unwrap();
    let server = Server::bind(dir.path(), 0).unwrap().searching(Box::new(|log, theorem| {
        assert!(log.ends_with(format!("{}.jsonl", stem("ce", "bfs", 16, 7))), "{}", log.display());
        Ok(tree(&record(theorem, "ce", "bfs", 16, 7), "bfs"))
    }));
    let address = server.address().unwrap();
    std::thread::spawn(move || server.serve());
    let profile = dir.path().join("profile");
    let open = |link: &str| dom(&browser, &format!("http://{address}/{link}"), &profile);
    let before = open("");
    assert!(before.contains("0 of 2 cells are complete"), "{before}");
    assert!(before.contains("nothing to report on yet"));

    let log = dir.path().join("cells");
    let records: Vec<_> = (0..9).map(|i| record(&theorem(i), "ce", "bfs", 16, 7)).collect();
    write_cell(&log, &manifest("ce", "bfs", 16, 7, 9), &records);
    let tree = serde_json::to_string(&tree(&records[8], "bfs")).unwrap();
    fs::write(log.join(format!("{}.trees.jsonl", stem("ce", "bfs", 16, 7))), tree).unwrap();
    let half: Vec<_> = (0..4).map(|i| record(&theorem(i), "bfs", "bfs", 16, 7)).collect();
    write_cell(&log, &manifest("bfs", "bfs", 16, 7, 9), &half);
    let link = format!("#searches?theorem={}&search=ce%2Fbfs%2F16", theorem(8));
    let after = open(&link);
    assert!(after.contains("1 of 2 cells are complete"), "{after}");
    assert!(after.contains("4 of 9"));
    assert!(after.contains(&format!("of {}</output>", records[8].expansions)));

    // No tree of this one was kept: its result is a link all the same, and it is searched again.
    assert!(after.contains(&format!("#searches?theorem={}&amp;search=ce%2Fbfs%2F16", theorem(3))));
    let again = open(&format!("#searches?theorem={}&search=ce%2Fbfs%2F16", theorem(3)));
    assert!(again.contains(", searched again"), "{again}");
    assert!(again.contains(&format!("of {}</output>", records[3].expansions)));
}

/// Pictures of the page as people see it: wide and narrow, light and dark.
///
/// With `CATAMOUNT_SCREENSHOTS` they are kept in that folder, and with `CATAMOUNT_STUDY` they are
/// of that study's report (`make screenshots`).
#[test]
#[ignore = "needs a browser (Debian's chromium, or CATAMOUNT_BROWSER)"]
fn pictures() {
    let browser = browser();
    let dir = tempfile::tempdir().unwrap();
    let page = match std::env::var_os("CATAMOUNT_STUDY") {
        Some(study) => catamount_report::report(Path::new(&study)).unwrap().page,
        None => {
            write_run(dir.path(), &Plan { theorems: 30, trees: 4, ..Plan::default() });
            catamount_report::report(dir.path()).unwrap().page
        }
    };
    let kept = std::env::var_os("CATAMOUNT_SCREENSHOTS");
    let out = kept.as_ref().map_or(dir.path(), Path::new);
    let page = fs::read_to_string(page).unwrap();
    for (width, height) in [(390, 1400), (1400, 1400)] {
        for theme in ["light", "dark"] {
            let chosen = page.replacen("<html ", &format!("<html data-theme=\"{theme}\" "), 1);
            let file = dir.path().join(format!("{width}-{theme}.html"));
            fs::write(&file, chosen).unwrap();
            let png = out.join(format!("report-{width}-{theme}.png"));
            let profile = dir.path().join(format!("profile-{width}-{theme}"));
            picture(&browser, &file, &png, (width, height), &profile);
            let bytes = fs::read(&png).unwrap();
            let number = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
            assert_eq!((number(16), number(20)), (width, height), "{}", png.display());
            // One colour all over would be a page that shows nothing, and a few kilobytes.
            assert!(bytes.len() > 40_000, "{}: {} bytes", png.display(), bytes.len());
        }
    }
}
