//! The page: one self-contained file, and the same findings as Markdown.

mod findings;
mod glossary;
mod provenance;

use std::fmt::Write;
use std::path::Path;

use catamount_figure::stylesheet;
use serde::Serialize;

use crate::figures::Drawn;
use crate::outcomes::outcomes;
use crate::run::Run;
use crate::table::{Table, html as escape};
use crate::trees::Sample;
use crate::utilisation;

const CSS: &str = include_str!("../assets/page.css");
const THEME: &str = include_str!("../assets/theme.js");
const PAGE: &str = include_str!("../assets/page.js");
const LIVE: &str = include_str!("../assets/live.js");
const THEOREMS: &str = include_str!("../assets/theorems.js");
const WEIGHTS: &str = include_str!("../assets/weights.js");
const EXPLORER: &str = include_str!("../assets/explorer.js");
const VIEWER: &str = include_str!("../assets/viewer.js");
const EXPLORER_HTML: &str = include_str!("../assets/explorer.html");
const VIEWER_HTML: &str = include_str!("../assets/viewer.html");
const THEOREMS_HTML: &str = include_str!("../assets/theorems.html");
const LIVE_HTML: &str = include_str!("../assets/live.html");

/// The page's name in a report's folder.
pub(crate) const INDEX: &str = "index.html";

/// Who shows the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Served {
    /// Nobody: it is a file.
    No,
    /// A server, which has the trees that were kept.
    Showing,
    /// A server that searches again for those that were not.
    Searching,
}

/// The page with everything in it: no request leaves it, unless it is served.
pub(crate) fn html(
    run: &Run,
    tables: &[Table],
    figures: &[Drawn],
    sample: &Sample,
    served: Served,
) -> String {
    let mut main = String::new();
    if served != Served::No {
        main.push_str(LIVE_HTML);
    }
    section(&mut main, "findings", "Findings", &findings::html(run));
    section(&mut main, "tables", "Tables", &tables.iter().map(Table::to_html).collect::<String>());
    let drawn: String = figures.iter().map(figure).collect();
    section(&mut main, "figures", "Figures", &drawn);
    section(&mut main, "theorems", "Theorem by theorem", &theorems(run));
    section(&mut main, "searches", "Searches, expansion by expansion", &viewer(sample, served));
    section(&mut main, "weights", "Weights, by hand", EXPLORER_HTML);
    if let Some(busy) = utilisation::table(run) {
        section(&mut main, "utilisation", "Generators and provers", &busy.to_html());
    }
    section(&mut main, "glossary", "What the words mean", &glossary::html());
    section(&mut main, "notes", "What is missing, and what to know", &notes(run));
    section(&mut main, "provenance", "How to reproduce this", &provenance::html(run));
    let links = [
        ("findings", "Findings"),
        ("tables", "Tables"),
        ("figures", "Figures"),
        ("theorems", "Theorems"),
        ("searches", "Searches"),
        ("weights", "Weights"),
        ("glossary", "Glossary"),
        ("notes", "Notes"),
        ("provenance", "Reproduce"),
    ]
    .map(|(id, text)| format!("<a href=\"#{id}\">{text}</a>"))
    .join("\n");
    let title = provenance::title(run);
    let header = format!(
        "{}\n<nav aria-label=\"Sections\">\n{links}\n{THEME_BUTTON}\n</nav>",
        provenance::lead(run)
    );
    let live = match served {
        Served::No => [""; 2],
        Served::Showing => [LIVE, ""],
        Served::Searching => [LIVE, "Page.searches = true;"],
    };
    let scripts = [PAGE, live[0], live[1], THEOREMS, WEIGHTS, EXPLORER, VIEWER];
    document(&title, "", &header, &main, &scripts)
}

const THEME_BUTTON: &str = "<button type=\"button\" id=\"theme\" aria-label=\"Switch between \
                            light and dark\" hidden>\u{25d0}</button>";

/// What a server shows of a study that has no results yet.
pub(crate) fn waiting(dir: &Path, reason: &str) -> String {
    let main = format!(
        "{LIVE_HTML}<section id=\"findings\"><p>There is nothing to report on yet. This page fills \
         by itself.</p><p><small>{}</small></p></section>\n",
        escape(reason)
    );
    let title = dir.display().to_string();
    document(&title, " class=\"waiting\"", THEME_BUTTON, &main, &[PAGE, LIVE])
}

fn document(title: &str, body: &str, header: &str, main: &str, scripts: &[&str]) -> String {
    // Light is the base; dark by preference unless light was chosen, and dark by choice.
    let colours = format!(
        "{}\n@media (prefers-color-scheme:dark){{{}}}\n{}",
        stylesheet("", false),
        stylesheet(":root:not([data-theme=light]) ", true),
        stylesheet(":root[data-theme=dark] ", true)
    );
    let title = escape(title);
    let head = format!(
        "<meta charset=\"utf-8\">\n<meta name=\"viewport\" content=\"width=device-width, \
         initial-scale=1\">\n<meta name=\"color-scheme\" content=\"light \
         dark\">\n<title>{title}</title>\n<style>\n{CSS}\n{colours}\n</style>\n<script>\n{THEME}\n\
         </script>"
    );
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n{head}\n</head>\n<body{body}>\n<a \
         class=\"skip\" href=\"#findings\">Skip to the findings</a>\n<header>\n<p \
         class=\"kicker\">Catamount \u{b7} compute-aligned training for theorem-proving \
         search</p>\n<h1>{title}</h1>\n{header}\n</header>\n<main>\n{main}</main>\n<footer><p>\
         Generated from logs by Catamount {version}. Nothing on this page was typed in, and it \
         loads nothing from elsewhere.</p></footer>\n<script>\n{scripts}\n</script>\n</body>\n\
         </html>\n",
        version = env!("CARGO_PKG_VERSION"),
        scripts = scripts.join("\n"),
    )
}

fn section(out: &mut String, id: &str, title: &str, body: &str) {
    let _ = writeln!(
        out,
        "<section id=\"{id}\" aria-labelledby=\"{id}-title\">\n<h2 \
         id=\"{id}-title\">{title}</h2>\n{body}</section>"
    );
}

fn figure(drawn: &Drawn) -> String {
    format!(
        "<figure class=\"drawn\" id=\"figure-{name}\">\n<div class=\"scroll wide\" tabindex=\"0\" \
         role=\"region\" aria-label=\"{label}\">{svg}</div>\n<div class=\"narrow\">{narrow}</div>\n\
         <figcaption>{caption} <a \
         href=\"figures/{name}.csv\">data</a> <a href=\"figures/{name}.svg\">SVG</a> <a \
         href=\"figures/{name}.png\">PNG</a></figcaption>\n</figure>\n",
        name = drawn.name,
        label = escape(drawn.chart.title()),
        svg = drawn.chart.to_inline_svg(),
        narrow = drawn.chart.for_phone().to_inline_svg(),
        caption = escape(&drawn.caption),
    )
}

fn theorems(run: &Run) -> String {
    format!(
        "<p>Any two searches side by side. A result that is a link leads to its tree; the address \
         of the page names what is shown, and can be sent to somebody.</p>\n{THEOREMS_HTML}\n\
         <script type=\"application/json\" id=\"outcomes\">{}</script>\n",
        json(&outcomes(run))
    )
}

fn viewer(sample: &Sample, served: Served) -> String {
    let others = match served {
        Served::Searching => {
            "Any other is searched again when its result in the table above is followed."
        }
        _ => "<code>catamount view</code> with the study's folder searches any other again.",
    };
    if sample.theorems.is_empty() && served != Served::Searching {
        return format!("<p>No cell of this run kept its search trees. {others}</p>\n");
    }
    let demonstrated = if sample.demonstrated {
        "The demonstrated trace is marked where the search follows it."
    } else {
        "The pool's file could not be read here, so the demonstrated trace is not marked."
    };
    format!(
        "<p>Trees of {} of the {} theorems that have any: those on which cells disagree first, as \
         many as fit in the page. {others} {demonstrated}</p>\n{VIEWER_HTML}\n<script \
         type=\"application/json\" id=\"trees\">{}</script>\n",
        sample.theorems.len(),
        sample.available,
        json(sample)
    )
}

fn notes(run: &Run) -> String {
    let list = |items: &[String]| {
        items.iter().map(|i| format!("<li>{}</li>", escape(i))).collect::<String>()
    };
    let mut out = String::new();
    if run.missing.is_empty() {
        out.push_str("<p>No cell is missing.</p>\n");
    } else {
        let _ = writeln!(
            out,
            "<h3>Missing cells</h3>\n<ul class=\"plain\">{}</ul>",
            list(&run.missing)
        );
    }
    if !run.notes.is_empty() {
        let _ =
            writeln!(out, "<h3>About the logs</h3>\n<ul class=\"plain\">{}</ul>", list(&run.notes));
    }
    out.push_str(
        "<h3>How theorems are counted</h3>\n<p>A theorem is completed in a cell when its \
     search ended in any way but an error. A proof counts when it passed the final check within \
     the budget; a search cut off by a wall-clock cap counts as unproved; an errored or missing \
     theorem is in no rate and in no pair. Every comparison is paired on the theorems both cells \
     completed. Several seeds are pooled with the theorem as the unit: each contributes the mean \
     of its seeds\u{2019} differences, and p comes from the exact sign-flip test over theorems, \
     which for one seed is McNemar\u{2019}s.</p>\n",
    );
    out
}

/// JSON that is safe inside a script element.
fn json(value: &impl Serialize) -> String {
    serde_json::to_string(value)
        .unwrap_or_else(|_| "null".into())
        .replace("</", "<\\/")
        .replace("<!--", "<\\u0021--")
}

/// The same as Markdown, figures linked.
pub(crate) fn markdown(run: &Run, tables: &[Table], figures: &[Drawn]) -> String {
    let mut out = format!("# {}\n\n", provenance::title(run));
    for sentence in findings::sentences(run) {
        let _ = writeln!(out, "- {sentence}");
    }
    out.push_str("\n## Tables\n\n");
    out.extend(tables.iter().map(Table::to_markdown));
    out.push_str("## Figures\n\n");
    for drawn in figures {
        let _ = writeln!(
            out,
            "![{}](figures/{}.svg)\n\n{}\n",
            drawn.chart.title(),
            drawn.name,
            drawn.caption
        );
    }
    let mut list = |title: &str, items: &[String]| {
        if !items.is_empty() {
            let _ = writeln!(out, "## {title}\n");
            for item in items {
                let _ = writeln!(out, "- {item}");
            }
            out.push('\n');
        }
    };
    list("Missing cells", &run.missing);
    list("About the logs", &run.notes);
    if let Some(busy) = utilisation::table(run) {
        let _ = writeln!(out, "## Generators and provers\n\n{}", busy.to_markdown());
    }
    let _ = writeln!(out, "## How to reproduce this\n");
    for (key, value) in provenance::facts(run) {
        let _ = writeln!(out, "- {key}: `{value}`");
    }
    if let Some(file) = provenance::experiment(run) {
        let _ = writeln!(out, "\n```toml\n{file}```");
    }
    out
}
