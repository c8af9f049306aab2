//! Every table of a report.

pub(crate) mod calibration;
mod matching;
mod matrix;
mod prior;
mod probabilities;
mod sweep;

use catamount_statistics as statistics;

use crate::compare::p_text;
use crate::names::TUNED;
use crate::run::Run;
use crate::table::{Entry, Table};

/// Every table that the run has cells for; the matrix of the largest budget comes first.
pub(crate) fn all(run: &Run) -> Vec<Table> {
    let mut tables: Vec<Table> =
        run.budgets().into_iter().rev().flat_map(|budget| matrix::tables(run, budget)).collect();
    // What training is worth is said against cross-entropy sampled the same way.
    let controls = run.objectives().into_iter().filter(|o| o.is_control() || o.full == TUNED);
    tables.extend(controls.filter_map(|control| sweep::table(run, &control)));
    tables
        .extend(run.budgets().into_iter().rev().filter_map(|budget| matching::table(run, budget)));
    tables.extend(prior::table(run));
    tables.extend(calibration::summary(&run.calibrations));
    tables.extend(calibration::table(&run.calibrations));
    tables.extend(probabilities::table(run));
    tables
}

/// A rate in percent with one decimal.
fn percent(rate: f64) -> String {
    format!("{:.1}", 100.0 * rate)
}

/// `n`, `b/c`, gain with interval, p and corrected p as entries; a star for p < 0.05, bold where it
/// survives correction.
fn paired_entries(c: &statistics::Comparison, holm: f64) -> Vec<Entry> {
    vec![
        c.n.to_string().into(),
        format!("{}/{}", c.b, c.c).into(),
        Entry {
            text: minus(format!("{:+.1} [{:.1}, {:.1}]", c.gain_pp, c.ci_low, c.ci_high)),
            bold: holm < 0.05,
            mark: String::new(),
        },
        Entry {
            text: p_text(c.p),
            bold: false,
            mark: if c.p < 0.05 { "*".into() } else { String::new() },
        },
        p_text(holm).into(),
    ]
}

/// Headings of [`paired_entries`].
fn paired_header() -> [String; 5] {
    ["n", "b/c", "gain (pp), 95 % interval", "p", "Holm p"].map(String::from)
}

/// The same as CSV fields.
fn paired_csv(c: &statistics::Comparison, holm: f64) -> String {
    format!(
        "{},{},{},{},{},{},{},{},{holm}",
        c.n, c.seeds, c.b, c.c, c.gain_pp, c.ci_low, c.ci_high, c.p
    )
}

/// Headings of [`paired_csv`].
const PAIRED_CSV: &str = "n,seeds,b,c,gain_pp,ci_low,ci_high,p,holm_p";

/// A typographic minus sign.
fn minus(text: String) -> String {
    text.replace('-', "\u{2212}")
}

/// Marks the highest of several entries as bold; ties share it.
fn embolden(entries: &mut [(Option<f64>, &mut Entry)]) {
    let best = entries.iter().filter_map(|(rate, _)| *rate).fold(f64::NEG_INFINITY, f64::max);
    // Compared as printed: two rates that read the same are a tie.
    for (rate, entry) in entries {
        entry.bold = rate.is_some_and(|r| r > 0.0 && percent(r) == percent(best));
    }
}
