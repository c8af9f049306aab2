//! The plotted numbers as CSV: one line per value, whatever the chart.

use std::fmt::Write;

use crate::axis::Scale;
use crate::figure::Figure;

/// `series,x,y,low,high`, with a `panel` column in front where there are panels.
pub(crate) fn csv<'a>(panels: impl IntoIterator<Item = (Option<&'a str>, &'a Figure)>) -> String {
    let mut out = String::new();
    for (panel, figure) in panels {
        if out.is_empty() {
            out.push_str(if panel.is_some() {
                "panel,series,x,y,low,high\n"
            } else {
                "series,x,y,low,high\n"
            });
        }
        for series in &figure.series {
            for point in &series.points {
                if let Some(panel) = panel {
                    let _ = write!(out, "{},", field(panel));
                }
                let x = match &figure.x.scale {
                    Scale::Categories(names) => {
                        names.get(point.x as usize).map_or_else(|| number(point.x), |n| field(n))
                    }
                    _ => number(point.x),
                };
                let (low, high) = point
                    .interval
                    .map_or((String::new(), String::new()), |(a, b)| (number(a), number(b)));
                let _ =
                    writeln!(out, "{},{x},{},{low},{high}", field(&series.name), number(point.y));
            }
        }
    }
    if out.is_empty() { "series,x,y,low,high\n".into() } else { out }
}

/// A number that reads back as itself; nothing for one that is not finite.
fn number(v: f64) -> String {
    if v.is_finite() { format!("{v}") } else { String::new() }
}

fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}
