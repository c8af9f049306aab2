//! The matrix: objective by strategy at one budget, and the paper's view of it.

use std::fmt::Write;

use super::{embolden, percent};
use crate::group::Group;
use crate::names::{CONTROL, Objective, strategy_label};
use crate::run::Run;
use crate::table::{Entry, Table, field};

/// The full matrix and, where there are matched objectives, the view CE / matched / UA.
pub(super) fn tables(run: &Run, budget: u64) -> Vec<Table> {
    let strategies: Vec<String> = run
        .strategies()
        .into_iter()
        .filter(|s| run.groups.iter().any(|g| g.budget == budget && g.strategy == *s))
        .collect();
    let objectives: Vec<Objective> = run
        .objectives()
        .into_iter()
        .filter(|o| run.groups.iter().any(|g| g.budget == budget && g.objective == *o))
        .collect();
    let rows: Vec<(String, Vec<Option<&Group>>)> = objectives
        .iter()
        .map(|o| (o.label(), strategies.iter().map(|s| run.group(&o.full, s, budget)).collect()))
        .collect();
    let full = table(run, budget, &strategies, rows, "matrix", "Proofs found (%)");
    let family = objectives.iter().filter(|o| o.is_search_aware()).count();
    let mut view = Vec::new();
    for (label, pick) in [("CE", CONTROL), ("UA, shared", "ua")] {
        view.push((
            label.to_owned(),
            strategies.iter().map(|s| run.group(pick, s, budget)).collect::<Vec<_>>(),
        ));
    }
    view.insert(
        1,
        (
            "search-aware CAT, matched".to_owned(),
            strategies.iter().map(|s| run.matched(s, budget)).collect(),
        ),
    );
    view.retain(|(_, groups)| groups.iter().any(Option::is_some));
    let mut tables = vec![full];
    if family > 1 && view.len() > 1 {
        tables.push(table(
            run,
            budget,
            &strategies,
            view,
            "aligned",
            "Objectives matched to the deployed strategy: proofs found (%)",
        ));
    }
    tables
}

fn table(
    run: &Run,
    budget: u64,
    strategies: &[String],
    groups: Vec<(String, Vec<Option<&Group>>)>,
    name: &str,
    title: &str,
) -> Table {
    let mut csv = String::from(
        "objective,strategy,budget,seeds,pool,n,rate,wilson_low,wilson_high,p_against_ce,\
         searches,planned\n",
    );
    let all = || groups.iter().flat_map(|(_, groups)| groups).flatten();
    let seeds = all().map(|group| group.cells.len()).max().unwrap_or(1);
    let (mut incomplete, mut holes) = (Vec::new(), false);
    let mut rates: Vec<Vec<Option<f64>>> = Vec::new();
    let mut rows: Vec<Vec<Entry>> = Vec::new();
    for (label, groups) in &groups {
        let mut row: Vec<Entry> = vec![label.as_str().into()];
        let mut line = Vec::new();
        for group in groups {
            let Some(group) = group else {
                holes = true;
                row.push("\u{2014}".into());
                line.push(None);
                continue;
            };
            let rate = group.rate();
            let p = run
                .control(group)
                .filter(|_| group.objective.full != CONTROL)
                .and_then(|c| group.against(c))
                .map(|c| c.p);
            let mut mark = String::new();
            if p.is_some_and(|p| p < 0.05) {
                mark.push('*');
            }
            let (completed, mut planned) = group.searches();
            // A seed that is missing is as many searches as the others have.
            planned += (seeds - group.cells.len()) * group.pool();
            if completed < planned {
                mark.push('\u{2020}');
                incomplete.push(format!(
                    "{} under {}: {completed} of {planned}",
                    group.objective.full, group.strategy
                ));
            }
            let _ = writeln!(
                csv,
                "{},{},{budget},{},{},{},{},{},{},{},{completed},{planned}",
                field(&group.objective.full),
                field(&group.strategy),
                group.cells.len(),
                group.pool(),
                rate.n,
                rate.rate,
                rate.low,
                rate.high,
                p.map(|p| p.to_string()).unwrap_or_default()
            );
            let spread = group.rate_spread();
            let sd = spread.map(|s| format!(" \u{b1} {:.1}", s.sd)).unwrap_or_default();
            row.push(Entry { text: percent(rate.rate) + &sd, bold: false, mark });
            // Rates of other theorems are not the highest of anything.
            line.push((group.cells.len() == seeds).then_some(rate.rate));
        }
        rates.push(line);
        rows.push(row);
    }
    for column in 0..strategies.len() {
        let mut entries: Vec<(Option<f64>, &mut Entry)> = rows
            .iter_mut()
            .zip(&rates)
            .map(|(row, rates)| (rates[column], &mut row[column + 1]))
            .collect();
        embolden(&mut entries);
    }
    let pool = all().map(|group| group.pool()).max().unwrap_or(0);
    let theorems = all().map(|group| group.rate().n as usize).max().unwrap_or(0).max(pool);
    let mut caption = format!(
        "{theorems} held-out theorems{}. Columns are deployed strategies, rows training \
         objectives. Bold: highest of its column. *: p < 0.05 against CE under the same strategy \
         (exact, paired, uncorrected).",
        if seeds > 1 {
            format!(
                ", {} searches at {seeds} seeds pooled by theorem (\u{b1}: standard deviation over \
                 seeds)",
                all().map(|group| group.searches().1).max().unwrap_or(0)
            )
        } else {
            String::new()
        }
    );
    if holes {
        caption.push_str(" \u{2014}: no such cell.");
    }
    if !incomplete.is_empty() {
        let _ = write!(
            caption,
            " \u{2020}: not all searches were completed, and the rate is over those that were \
             ({}); it is not to be compared with rates over others, as paired gains can be.",
            incomplete.join("; ")
        );
    }
    let header = std::iter::once("objective".to_owned())
        .chain(strategies.iter().map(|s| strategy_label(s)))
        .collect();
    Table {
        name: format!("{name}-{budget}"),
        title: format!("{title} at N = {budget}"),
        caption,
        header,
        text_columns: 1,
        rows,
        csv,
    }
}
