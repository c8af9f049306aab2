//! The page in a real browser: scripts run, controls work, nothing overflows a phone.
//!
//! Needs Debian's `chromium` (or the program named by `CATAMOUNT_BROWSER`); on a machine without
//! one it says so and checks nothing.

mod synthetic;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use synthetic::{Plan, write_run};

fn browser() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("CATAMOUNT_BROWSER") {
        return Some(named.into());
    }
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .flat_map(|dir| ["chromium", "chromium-browser", "google-chrome"].map(|n| dir.join(n)))
        .find(|p| p.is_file())
}

/// The page's DOM once its scripts have run.
fn dom(browser: &Path, page: &Path, profile: &Path) -> String {
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
        ])
        .args([
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            "--virtual-time-budget=8000",
            "--dump-dom",
        ])
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", page.display()))
        .output()
        .unwrap_or_else(|e| panic!("cannot run {}: {e}", browser.display()));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Works every control and leaves what it saw in an element of its own.
const DRIVER: &str = r#"
addEventListener('load', () => {
const saw = { errors: window.failures };
const at = (id) => document.getElementById(id);
const set = (id, value) => { at(id).value = value; at(id).dispatchEvent(new Event('input', { bubbles: true })); at(id).dispatchEvent(new Event('change', { bubbles: true })); };
saw.objectives = [...at('w-objective').options].map((o) => {
  set('w-objective', o.value);
  return { name: o.value, success: at('w-success').textContent, weights: [...at('w-steps').rows].map((r) => r.cells[4].textContent) };
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
    saw.trees.push({ last, proved, before, three, shown: document.querySelectorAll('#v-log li:not(.later)').length,
      won: document.querySelectorAll('#v-pane circle.won').length, on: document.querySelectorAll('#v-pane circle.on').length,
      detail: at('v-detail').textContent.includes('proof found') });
  }
}
at('v-rejected').click(); at('v-play').click(); at('v-play').click();
at('theme').click(); saw.theme = document.documentElement.dataset.theme; at('theme').click(); saw.themeBack = document.documentElement.dataset.theme;
saw.unlabelled = [...document.querySelectorAll('input, select, button')].filter((e) => !e.closest('label') && !e.getAttribute('aria-label') && !e.textContent.trim()).map((e) => e.outerHTML);
saw.overflow = document.documentElement.scrollWidth - document.documentElement.clientWidth;
saw.width = innerWidth;
setTimeout(() => {
  saw.curves = at('w-curves').querySelectorAll('polyline').length;
  const out = parent.document.createElement('pre'); out.id = 'saw'; out.textContent = JSON.stringify(saw); parent.document.body.append(out);
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
    let found = dom(browser, &frame, &dir.join(format!("profile-{width}")));
    let start = found.find("<pre id=\"saw\">").unwrap_or_else(|| {
        panic!("the driver did not finish: {}", &found[found.len().saturating_sub(800)..])
    }) + 14;
    let end = start + found[start..].find("</pre>").unwrap();
    let text = found[start..end].replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_page_works_on_a_desk_and_on_a_phone() {
    let Some(browser) = browser() else {
        eprintln!(
            "no browser found (apt install chromium, or set CATAMOUNT_BROWSER): the page was not \
             tried in one"
        );
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let plan = Plan {
        theorems: 30,
        trees: 4,
        budgets: vec![16, 64],
        strategies: vec!["bfs", "pass", "mcts"],
        ..Plan::default()
    };
    write_run(dir.path(), &plan);
    let made = catamount_report::report(dir.path()).unwrap();
    let page = fs::read_to_string(&made.page).unwrap();
    for width in [390, 1200] {
        let saw = drive(&browser, dir.path(), &page, width);
        assert_eq!(saw["width"], width);
        assert_eq!(saw["errors"], serde_json::json!([]), "scripts failed at {width}");
        assert_eq!(saw["unlabelled"], serde_json::json!([]));
        assert_eq!(saw["overflow"], 0, "the page scrolls sideways at {width}");
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
