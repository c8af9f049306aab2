//! The findings in sentences, computed from the same numbers as the tables.

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
    let best = at.iter().max_by(|a, b| a.rate().rate.total_cmp(&b.rate().rate));
    if let Some(best) = best {
        let rate = best.rate();
        out.push(format!(
            "At N = {budget} the highest rate is {:.1} % [{:.1}, {:.1}] of {} theorems: {} under \
             {}.",
            100.0 * rate.rate,
            100.0 * rate.low,
            100.0 * rate.high,
            rate.n,
            best.objective.label(),
            strategy_label(&best.strategy)
        ));
    }
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
    out.push(format!(
        "Of {} comparisons with CE under the same strategy and budget, {ahead} favour the other \
         objective and {behind} favour CE; {better} gains and {worse} losses have p < 0.05 before \
         correction, and {survive} {} after Holm\u{2019}s.",
        compared.len(),
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
    if !run.missing.is_empty() {
        out.push(format!(
            "Cells are missing from this folder ({} notes); they are named below.",
            run.missing.len()
        ));
    }
    out
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
