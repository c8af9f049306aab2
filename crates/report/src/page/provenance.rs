//! Where everything came from: commit, seeds, data, versions, command.

use std::collections::BTreeSet;
use std::fmt::Write;

use catamount_evaluate::log::Manifest;
use serde_json::Value;

use crate::run::Run;
use crate::table::html as escape;

/// The report's title: the plan's, or the folder's name.
pub(crate) fn title(run: &Run) -> String {
    let planned = run.plan.as_ref().and_then(|plan| plan.title.clone());
    let folder = || {
        run.dir
            .canonicalize()
            .ok()
            .and_then(|d| d.file_name().map(|n| n.to_string_lossy().into_owned()))
    };
    let name = planned.or_else(folder).unwrap_or_else(|| "run".into());
    format!("{name}: which objective, for which search and budget?")
}

/// One line under the title: how much there is.
pub(crate) fn lead(run: &Run) -> String {
    let cells = run.cells().count();
    let seeds = run.cells().map(|(_, seed, _)| seed).collect::<BTreeSet<_>>().len();
    let pool = run.groups.iter().map(crate::group::Group::pool).max().unwrap_or(0);
    let budgets = run.budgets().iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
    format!(
        "<p class=\"lead\">{cells} cells: {} objectives, {} strategies, N = {budgets}; {pool} \
         held-out theorems, {seeds} seed{}.</p>",
        run.objectives().len(),
        run.strategies().len(),
        if seeds == 1 { "" } else { "s" }
    )
}

/// Names and values, the plan's first, then what the manifests say.
pub(crate) fn facts(run: &Run) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    if let Some(Ok(Value::Object(plan))) = run.plan.as_ref().map(serde_json::to_value) {
        // The experiment is shown as the file it came from.
        let kept = |key: &&String| !["cells", "experiment"].contains(&key.as_str());
        let mut keys: Vec<&String> = plan.keys().filter(kept).collect();
        // The command first: it is what a reader looks for.
        keys.sort_by_key(|k| (k.as_str() != "command", k.as_str()));
        for key in keys {
            facts.push((key.clone(), flat(&plan[key])));
        }
    }
    let mut of = |name: &str, get: &dyn Fn(&Manifest) -> Option<String>| {
        let values: BTreeSet<String> =
            run.cells().filter_map(|(_, _, c)| get(c.manifest.as_ref()?)).collect();
        if !values.is_empty() {
            facts.push((name.to_owned(), values.into_iter().collect::<Vec<_>>().join("; ")));
        }
    };
    of("commit of the cells", &|m| m.provenance.commit.clone());
    of("version", &|m| Some(m.provenance.version.clone()));
    of("seeds of the cells", &|m| Some(m.seed().to_string()));
    of("pool", &|m| Some(m.pool.file.clone()));
    of("pool hash", &|m| Some(m.identity.pool.short().to_owned()));
    of("steps of the pool", &|m| m.pool.steps.clone());
    of("environment", &|m| Some(m.environment.clone()));
    of("policies", &|m| Some(m.policy.clone()));
    facts
}

/// The experiment's file, as one that can be run again.
pub(crate) fn experiment(run: &Run) -> Option<String> {
    let mut experiment = run.plan.as_ref()?.experiment.clone();
    leave_out_nulls(&mut experiment);
    toml::to_string(&experiment).ok().filter(|text| !text.is_empty())
}

/// TOML has no null: what is not given is not there.
fn leave_out_nulls(value: &mut Value) {
    match value {
        Value::Object(map) => {
            map.retain(|_, value| !value.is_null());
            map.values_mut().for_each(leave_out_nulls);
        }
        Value::Array(items) => items.iter_mut().for_each(leave_out_nulls),
        _ => {}
    }
}

fn flat(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Array(items) => items.iter().map(flat).collect::<Vec<_>>().join(", "),
        Value::Object(map) => {
            map.iter().map(|(k, v)| format!("{k} {}", flat(v))).collect::<Vec<_>>().join(", ")
        }
        other => other.to_string(),
    }
}

pub(crate) fn html(run: &Run) -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (key, value) in facts(run) {
        let _ = writeln!(out, "<dt>{}</dt><dd><code>{}</code></dd>", escape(&key), escape(&value));
    }
    out.push_str("</dl>\n");
    if let Some(file) = experiment(run) {
        let _ = writeln!(
            out,
            "<details open><summary>The experiment, a file for <code>catamount run \
             experiment.toml</code></summary>\n<pre class=\"file\" tabindex=\"0\" \
             role=\"region\" aria-label=\"The experiment\">{}</pre></details>",
            escape(&file)
        );
    }
    out.push_str(
        "<details><summary>The command of every cell</summary>\n<div \
     class=\"scroll\" tabindex=\"0\" role=\"region\" \
     aria-label=\"Commands\"><table><thead><tr><th scope=\"col\">cell</th><th \
     scope=\"col\">command</th></tr></thead><tbody>\n",
    );
    for (_, _, cell) in run.cells() {
        if let Some(m) = &cell.manifest {
            let _ = writeln!(
                out,
                "<tr><th scope=\"row\">{}</th><td><code>{}</code></td></tr>",
                escape(&cell.label()),
                escape(&m.provenance.command)
            );
        }
    }
    out.push_str("</tbody></table></div></details>\n");
    out
}
