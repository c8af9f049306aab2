//! The legend: one entry per name, laid out in rows that fit.

use crate::canvas::{Anchor, Canvas, width};
use crate::series::{Kind, Series};

/// Height of one row.
pub(crate) const ROW: f64 = 20.0;
const SIZE: f64 = 12.5;
const SAMPLE: f64 = 24.0;
const GAP: f64 = 18.0;

/// A name, how it is drawn, and its place in the palette.
pub(crate) struct Entry<'a> {
    pub(crate) series: &'a Series,
    pub(crate) colour: usize,
}

fn rows<'a, 'b>(entries: &'b [Entry<'a>], limit: f64) -> Vec<Vec<&'b Entry<'a>>> {
    let mut rows: Vec<Vec<&Entry>> = Vec::new();
    let mut used = f64::INFINITY;
    for entry in entries {
        let w = SAMPLE + 6.0 + width(&entry.series.name, SIZE) + GAP;
        if used + w > limit {
            rows.push(Vec::new());
            used = 0.0;
        }
        used += w;
        if let Some(row) = rows.last_mut() {
            row.push(entry);
        }
    }
    rows
}

/// Height a legend will need; nothing for a single unnamed or lone series.
pub(crate) fn height(entries: &[Entry], limit: f64) -> f64 {
    if entries.len() < 2 { 0.0 } else { rows(entries, limit).len() as f64 * ROW + 6.0 }
}

/// Draws the legend with its top left corner at a point.
pub(crate) fn draw(canvas: &mut Canvas, entries: &[Entry], (left, top): (f64, f64), limit: f64) {
    if entries.len() < 2 {
        return;
    }
    for (i, row) in rows(entries, limit).into_iter().enumerate() {
        let (mut x, y) = (left, top + i as f64 * ROW + ROW / 2.0);
        for Entry { series, colour } in row {
            canvas.series(*colour, |c| match series.kind {
                Kind::Bars => c.bar(x + 6.0, y - 6.0, 12.0, 12.0, 0.9, ""),
                Kind::Histogram => {
                    c.bar(x + 4.0, y - 6.0, 16.0, 12.0, 0.25, "");
                    c.line((x + 4.0, y - 6.0), (x + 20.0, y - 6.0), 1.6);
                }
                Kind::Line | Kind::Step => {
                    c.stroke(&[vec![(x, y), (x + SAMPLE, y)]], 2.0, dashes(series));
                    if series.markers {
                        c.marker(*colour, (x + SAMPLE / 2.0, y), 3.6, false, "");
                    }
                }
            });
            canvas.role("ink", |c| {
                c.text((x + SAMPLE + 6.0, y + 4.4), Anchor::Start, SIZE, false, &series.name)
            });
            x += SAMPLE + 6.0 + width(&series.name, SIZE) + GAP;
        }
    }
}

/// The dash pattern of a series' line.
pub(crate) fn dashes(series: &Series) -> &'static str {
    if series.dashed { "6 5" } else { "" }
}
