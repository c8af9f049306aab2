//! Comparisons in words: one in full, several as a table.

use std::fmt::{self, Write};

use catamount_statistics::Rate;

use super::{Comparison, Spent};

/// At most this many names are listed in a text; the JSON has all of them.
const NAMED: usize = 8;

/// A p-value as the paper prints it.
pub(crate) fn p_text(p: f64) -> String {
    if p.is_nan() {
        "\u{2013}".into()
    } else if p < 0.0005 {
        "<0.001".into()
    } else {
        format!("{p:.3}")
    }
}

/// `= 0.012`, or `< 0.001`, to stand after a p.
pub(crate) fn p_relation(p: f64) -> String {
    match p_text(p).strip_prefix('<') {
        Some(bound) => format!("< {bound}"),
        None => format!("= {}", p_text(p)),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |r: &Rate| {
            format!("{:5.1} % [{:.1}, {:.1}]", 100.0 * r.rate, 100.0 * r.low, 100.0 * r.high)
        };
        if let Some(within) = &self.within {
            writeln!(f, "within {within} of each search:")?;
        }
        writeln!(f, "A  {}  {}", percent(&self.first.rate), self.first.label)?;
        writeln!(f, "B  {}  {}", percent(&self.second.rate), self.second.label)?;
        let s = &self.paired;
        let seeds = match self.first.logs.len() {
            1 => String::new(),
            seeds => format!(", {} searches at {seeds} seeds", self.searches),
        };
        writeln!(
            f,
            "\nn = {} theorems completed by both{seeds}; b/c = {}/{} (B only / A only)",
            s.n, s.b, s.c
        )?;
        writeln!(
            f,
            "gain of B: {:+.1} pp, 95 % interval [{:.1}, {:.1}], exact two-sided p {}",
            s.gain_pp,
            s.ci_low,
            s.ci_high,
            p_relation(s.p)
        )?;
        if let Some(p) = self.holm_p {
            writeln!(f, "corrected for the family of comparisons (Holm): p {}", p_relation(p))?;
        }
        writeln!(
            f,
            "with as many that differ, a gain of {:.1} pp would be seen with 90 % power",
            self.visible_pp
        )?;
        if let Some(boot) = &self.bootstrap {
            writeln!(
                f,
                "bootstrap over theorems: [{:.1}, {:.1}] ({} resamples)",
                boot.low, boot.high, boot.resamples
            )?;
        }
        for (name, side) in [("A", &self.first), ("B", &self.second)] {
            let Spent { expansions, distinct, tokens } = side.spent;
            write!(
                f,
                "{name} spent {expansions:.0} expansions, {distinct:.0} distinct tactics and \
                 {tokens:.0} tokens a search"
            )?;
            if let (Some(within), 1..) = (&self.within, side.ended_before) {
                write!(f, "; {} ended unproved before {within}", side.ended_before)?;
            }
            writeln!(f)?;
        }
        let mut list = |what: &str, names: &[String]| -> fmt::Result {
            if names.is_empty() {
                return Ok(());
            }
            let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if names.len() > NAMED {
                format!(" and {} more (--json has all)", names.len() - NAMED)
            } else {
                String::new()
            };
            writeln!(f, "{what} ({}): {shown}{more}", names.len())
        };
        list("solved by B only", &self.only_b)?;
        list("solved by A only", &self.only_a)?;
        list("not paired: missing or errored in a log", &self.unpaired)?;
        if self.first.capped + self.second.capped > 0 {
            writeln!(
                f,
                "cut off by a wall-clock cap, counted as unproved: A {}, B {}",
                self.first.capped, self.second.capped
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}

/// Several comparisons with the same A, a line each.
pub fn comparison_table(family: &[Comparison]) -> String {
    let mut rows = vec![
        ["B", "within", "searches", "A %", "B %", "gain", "95 % interval", "b/c", "p", "Holm p"]
            .map(String::from)
            .to_vec(),
    ];
    rows[0].push("90 % power".into());
    let ended = family.iter().any(|one| one.first.ended_before + one.second.ended_before > 0);
    if ended {
        rows[0].push("ended before".into());
    }
    for one in family {
        let c = &one.paired;
        rows.push(vec![
            one.second.label.clone(),
            one.within.map_or("all".into(), |within| within.to_string()),
            one.searches.to_string(),
            format!("{:.1}", 100.0 * one.first.rate.rate),
            format!("{:.1}", 100.0 * one.second.rate.rate),
            format!("{:+.1}", c.gain_pp),
            format!("[{:.1}, {:.1}]", c.ci_low, c.ci_high),
            format!("{}/{}", c.b, c.c),
            p_text(c.p),
            p_text(one.holm_p.unwrap_or(c.p)),
            format!("{:.1}", one.visible_pp),
        ]);
        if ended {
            let counts = format!("{}/{}", one.first.ended_before, one.second.ended_before);
            rows.last_mut().into_iter().for_each(|row| row.push(counts.clone()));
        }
    }
    let width =
        |column: usize| rows.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
    let mut text = String::new();
    if let Some(one) = family.first() {
        let _ = writeln!(text, "A: {}\n", one.first.label);
    }
    for row in &rows {
        for (column, entry) in row.iter().enumerate() {
            let width = width(column);
            let _ = match column {
                0 => write!(text, "{entry:<width$}"),
                _ => write!(text, "  {entry:>width$}"),
            };
        }
        text.push('\n');
    }
    text.push_str(
        "\nA and B: % of the searches that both completed. Holm p: corrected for all of these. \
         90 % power: the gain that would be seen nine times in ten, with as many that differ.\n",
    );
    if ended {
        text.push_str(
            "Ended before: searches of A and of B that were out of budget without a proof before \
             they had spent that much; they count as unproved, which is more than is known.\n",
        );
    }
    text
}
