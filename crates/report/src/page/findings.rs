//! The findings in sentences, computed from the same numbers as the tables.

use catamount_base::counted;
use catamount_statistics::holm;

use crate::compare::p_relation;
use crate::group::Group;
use crate::names::{CONTROL, strategy_label};
use crate::run::Run;
use crate::table::html as escape;

/// A few sentences; each states its numbers.
pub(crate) fn sentences(run: &Run) -> Vec<String> {
    let mut out = Vec::new();
    let Some(&budget) = run.budgets().last() else { return out };
    let at: Vec<&Group> = run.groups.iter().filter(|g| g.budget == budget).collect();
    out.extend(highest(&at, budget));
    let compared: Vec<_> = run
        .groups
        .iter()
        .filter(|g| g.objective.full != CONTROL)
        .filter_map(|g| Some((g, g.against(run.control(g)?)?)))
        .collect();
    if compared.is_empty() {
        out.push(
            "No objective can be compared with CE: there is no CE cell under the same \
         strategy and budget."
                .into(),
        );
        return out;
    }
    let corrected = holm(&compared.iter().map(|(_, c)| c.p).collect::<Vec<_>>());
    let count = |test: &dyn Fn(usize) -> bool| (0..compared.len()).filter(|i| test(*i)).count();
    let ahead = count(&|i| compared[i].1.gain_pp > 0.0);
    let behind = count(&|i| compared[i].1.gain_pp < 0.0);
    let better = count(&|i| compared[i].1.gain_pp > 0.0 && compared[i].1.p < 0.05);
    let worse = count(&|i| compared[i].1.gain_pp < 0.0 && compared[i].1.p < 0.05);
    let survive = count(&|i| corrected[i] < 0.05);
    let verb = |count: usize| if count == 1 { "favours" } else { "favour" };
    out.push(format!(
        "Of {} with CE under the same strategy and budget, {ahead} {} the other objective and \
         {behind} {} CE; {} and {} have p < 0.05 before correction, and {survive} {} after \
         Holm\u{2019}s.",
        counted(compared.len(), "comparison"),
        verb(ahead),
        verb(behind),
        counted(better, "gain"),
        losses(worse),
        if survive == 1 { "does" } else { "do" }
    ));
    let largest = compared.iter().max_by(|a, b| a.1.gain_pp.total_cmp(&b.1.gain_pp));
    if let Some((group, c)) = largest {
        // What is largest is a gain only if there is one.
        let what = if c.gain_pp > 0.0 {
            "The largest gain is"
        } else if c.gain_pp == 0.0 {
            "No objective gains on CE anywhere; the nearest comparison is even at"
        } else {
            "No objective gains on CE anywhere; the smallest loss is"
        };
        let points = if c.gain_pp > 0.0 {
            format!("{:+.1}", c.gain_pp)
        } else {
            format!("{:.1}", c.gain_pp.abs())
        };
        out.push(format!(
            "{what} {points} points [{:.1}, {:.1}], p {} (b/c = {}/{}, n = {}): {} under {} at N = \
             {}.",
            c.ci_low,
            c.ci_high,
            p_relation(c.p),
            c.b,
            c.c,
            c.n,
            group.objective.label(),
            strategy_label(&group.strategy),
            group.budget
        ));
    }
    out.extend(to_deploy(run, budget));
    out.extend(trained_for_search(run, budget));
    if !run.missing.is_empty() {
        out.push(format!(
            "Cells are missing from this folder ({}); they are named below.",
            counted(run.missing.len(), "note")
        ));
    }
    out
}

/// Those whose searches are all completed, or all where none is: what is searched first is what is
/// proved soon, so that the rate of a part is too high.
fn complete(groups: Vec<&Group>) -> Vec<&Group> {
    let done = |g: &&Group| {
        let (completed, planned) = g.searches();
        completed >= planned
    };
    if groups.iter().any(done) { groups.into_iter().filter(done).collect() } else { groups }
}

/// The highest rate, and everything that reached it.
fn highest(groups: &[&Group], budget: u64) -> Option<String> {
    // With fewer seeds a rate is one of other theorems.
    let seeds = groups.iter().map(|g| g.cells.len()).max()?;
    let groups = groups.iter().copied().filter(|g| g.cells.len() == seeds).collect();
    let groups = complete(groups);
    let first = groups.iter().max_by(|a, b| a.rate().rate.total_cmp(&b.rate().rate))?;
    let rate = first.rate();
    if rate.rate == 0.0 {
        return Some(format!("At N = {budget} no cell proved any theorem."));
    }
    let name =
        |g: &&Group| format!("{} under {}", g.objective.label(), strategy_label(&g.strategy));
    let reached = groups.iter().filter(|g| g.rate().rate == rate.rate);
    let mut names: Vec<String> = reached.map(name).collect();
    if names.len() > 3 {
        let more = names.split_off(2).len();
        names.push(format!("{more} more"));
    }
    Some(format!(
        "At N = {budget} the highest rate is {:.1} % [{:.1}, {:.1}] of {}: {}.",
        100.0 * rate.rate,
        100.0 * rate.low,
        100.0 * rate.high,
        counted(rate.n as usize, "theorem"),
        names.join(", and ")
    ))
}

fn losses(count: usize) -> String {
    format!("{count} {}", if count == 1 { "loss" } else { "losses" })
}

/// What to do: the best row under each strategy, or the simplest that is not worse for sure, beside
/// the control where it is better for sure.
/// The best is chosen on the theorems that it is then compared on, so that p is corrected for every
/// row it was chosen from.
fn to_deploy(run: &Run, budget: u64) -> Option<String> {
    let (mut candidates, mut p) = (Vec::new(), Vec::new());
    for strategy in run.strategies() {
        let control = run.group(CONTROL, &strategy, budget)?;
        // Rates of other theorems are no reason for anything.
        let alike = |g: &&Group| {
            (&g.strategy, g.budget) == (&strategy, budget)
                && g.cells.keys().eq(control.cells.keys())
        };
        let rows = complete(run.groups.iter().filter(alike).collect());
        let best = simplest(&rows, best_of(rows.iter().copied())?);
        let mut chosen = None;
        for row in rows.iter().filter(|row| row.objective != control.objective) {
            let Some(compared) = row.against(control) else { continue };
            if row.objective == best.objective {
                chosen = Some((p.len(), compared));
            }
            p.push(compared.p);
        }
        candidates.push((strategy, control, best, chosen));
    }
    let corrected = holm(&p);
    let mut advice = Vec::new();
    for (strategy, control, best, chosen) in candidates {
        let against = chosen.filter(|(at, c)| corrected[*at] < 0.05 && c.gain_pp > 0.0);
        let (label, rate) = (strategy_label(&strategy), 100.0 * best.rate().rate);
        advice.push(match against {
            Some((_, c)) => format!(
                "under {label} {}: {rate:.1} %, {:+.1} points [{:.1}, {:.1}] over CE",
                best.objective.label(),
                c.gain_pp,
                c.ci_low,
                c.ci_high
            ),
            None => format!(
                "under {label} plain CE ({:.1} %); nothing is better after Holm\u{2019}s \
                 correction",
                100.0 * control.rate().rate
            ),
        });
    }
    let many = run.objectives().len() > 1 && !advice.is_empty();
    many.then(|| format!("What to deploy at N = {budget}: {}.", advice.join("; ")))
}

fn best_of<'a>(rows: impl Iterator<Item = &'a Group>) -> Option<&'a Group> {
    rows.max_by(|a, b| a.rate().rate.total_cmp(&b.rate().rate))
}

/// The best row of cross-entropy, however it is sampled, unless another is better for sure: it
/// needs no objective.
fn simplest<'a>(rows: &[&'a Group], best: &'a Group) -> &'a Group {
    let plain = best_of(rows.iter().copied().filter(|row| row.objective.is_control()));
    let better = |plain: &Group| best.against(plain).is_some_and(|compared| compared.p < 0.05);
    plain.filter(|plain| !better(plain)).unwrap_or(best)
}

/// What training for the search adds where both models are sampled in the same way.
fn trained_for_search(run: &Run, budget: u64) -> Option<String> {
    let mut compared = Vec::new();
    for group in run.groups.iter().filter(|g| g.budget == budget && !g.objective.is_control()) {
        let sampling = group.objective.sampling;
        let same = |g: &&Group| {
            (g.budget, &g.strategy) == (budget, &group.strategy)
                && g.objective.is_control()
                && g.objective.sampling == sampling
        };
        let control = run.groups.iter().find(same);
        compared.extend(control.and_then(|control| group.against(control)));
    }
    let gains = compared.iter().map(|c| c.gain_pp);
    let (least, most) =
        (gains.clone().fold(f64::INFINITY, f64::min), gains.fold(f64::NEG_INFINITY, f64::max));
    let corrected = holm(&compared.iter().map(|c| c.p).collect::<Vec<_>>());
    let sure = |up: bool| {
        let sure =
            compared.iter().zip(&corrected).filter(|(c, p)| **p < 0.05 && (c.gain_pp > 0.0) == up);
        sure.count()
    };
    let (better, worse) = (sure(true), sure(false));
    (!compared.is_empty()).then(|| {
        format!(
            "Training for the search, against CE sampled in the same way: {least:+.1} to \
             {most:+.1} points over {}; after Holm\u{2019}s correction {} and {} are more than \
             noise.",
            counted(compared.len(), "comparison"),
            counted(better, "gain"),
            losses(worse)
        )
    })
}

pub(crate) fn html(run: &Run) -> String {
    let items: String = sentences(run)
        .iter()
        .map(|s| {
            format!(
                "<li>{}</li>\n",
                escape(s).replace(" = ", "\u{a0}=\u{a0}").replace(" %", "\u{202f}%")
            )
        })
        .collect();
    format!("<ul class=\"findings\">\n{items}</ul>\n")
}
