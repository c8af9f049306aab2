//! The few SVG shapes a chart needs, written as text.
//!
//! Colour is set once per group as `color` and used as `currentColor` below it: a stylesheet can
//! then re-theme a figure by class, while a renderer without one still finds the light values in
//! the attributes.

use std::fmt::Write;

use crate::palette::{SERIES_COLOURS, role};

/// Where a text is anchored.
#[derive(Clone, Copy)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// SVG text in the making.
#[derive(Default)]
pub(crate) struct Canvas {
    out: String,
}

impl Canvas {
    pub(crate) fn finish(self) -> String {
        self.out
    }

    /// Draws inside a group of a role's colour (`ground`, `ink`, `soft`, `grid`).
    pub(crate) fn role(&mut self, name: &str, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.out, r#"<g class="cf-{name}" color="{}">"#, role(name));
        draw(self);
        self.out.push_str("</g>\n");
    }

    /// Draws inside a group of a series' colour.
    pub(crate) fn series(&mut self, index: usize, draw: impl FnOnce(&mut Self)) {
        let i = index % SERIES_COLOURS.len();
        let _ = write!(self.out, r#"<g class="cf-s{i}" color="{}">"#, SERIES_COLOURS[i].0);
        draw(self);
        self.out.push_str("</g>\n");
    }

    /// Draws inside a rectangle and clips at its edges; coordinates inside are relative to its
    /// corner.
    pub(crate) fn clipped(&mut self, x: f64, y: f64, w: f64, h: f64, draw: impl FnOnce(&mut Self)) {
        let _ = write!(
            self.out,
            r#"<svg x="{}" y="{}" width="{}" height="{}" overflow="hidden">"#,
            r(x),
            r(y),
            r(w),
            r(h)
        );
        draw(self);
        self.out.push_str("</svg>\n");
    }

    /// Draws with the origin moved.
    pub(crate) fn moved(&mut self, x: f64, y: f64, draw: impl FnOnce(&mut Self)) {
        let _ = write!(self.out, r#"<g transform="translate({} {})">"#, r(x), r(y));
        draw(self);
        self.out.push_str("</g>\n");
    }

    pub(crate) fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), width: f64) {
        let _ = write!(
            self.out,
            r#"<line {} stroke="currentColor" stroke-width="{width}"/>"#,
            ends((x1, y1), (x2, y2))
        );
    }

    /// A dashed guide line.
    pub(crate) fn guide(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64)) {
        let _ = write!(
            self.out,
            r#"<line {} stroke="currentColor" stroke-width="1" stroke-dasharray="2 3"/>"#,
            ends((x1, y1), (x2, y2))
        );
    }

    /// An open path through runs of points; each run is one stroke.
    pub(crate) fn stroke(&mut self, runs: &[Vec<(f64, f64)>], width: f64, dashes: &str) {
        let d = runs.iter().map(|run| path(run)).collect::<String>();
        if !d.is_empty() {
            let dash = if dashes.is_empty() {
                String::new()
            } else {
                format!(r#" stroke-dasharray="{dashes}""#)
            };
            let round = r#"stroke-linejoin="round" stroke-linecap="round""#;
            let pen = format!(r#"stroke="currentColor" stroke-width="{width}" {round}{dash}"#);
            let _ = write!(self.out, r#"<path d="{d}" fill="none" {pen}/>"#);
        }
    }

    /// A closed, tinted area.
    pub(crate) fn area(&mut self, points: &[(f64, f64)], opacity: f64) {
        if points.len() > 2 {
            let _ = write!(
                self.out,
                r#"<path d="{}Z" fill="currentColor" fill-opacity="{opacity}" stroke="none"/>"#,
                path(points)
            );
        }
    }

    /// A solid rectangle with a tooltip.
    pub(crate) fn bar(&mut self, x: f64, y: f64, w: f64, h: f64, opacity: f64, tip: &str) {
        let (x, y, w, h) = (r(x), r(y), r(w.max(0.0)), r(h.max(0.0)));
        let place = format!(r#"x="{x}" y="{y}" width="{w}" height="{h}" rx="1""#);
        let fill = format!(r#"fill="currentColor" fill-opacity="{opacity}""#);
        let _ = write!(self.out, "<rect {place} {fill}><title>{}</title></rect>", escape(tip));
    }

    /// The background.
    pub(crate) fn ground(&mut self, w: f64, h: f64) {
        let _ =
            write!(self.out, r#"<rect width="{}" height="{}" fill="currentColor"/>"#, r(w), r(h));
    }

    /// A marker of the `shape`-th form, filled or hollow, with a tooltip.
    pub(crate) fn marker(
        &mut self,
        shape: usize,
        (x, y): (f64, f64),
        size: f64,
        hollow: bool,
        tip: &str,
    ) {
        let s = size;
        let around: &[(f64, f64)] = match shape % 8 {
            1 => &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)],
            2 => &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)],
            3 => &[(0.0, -1.3), (1.1, 0.0), (0.0, 1.3), (-1.1, 0.0)],
            4 => &[(0.0, 1.2), (1.1, -0.8), (-1.1, -0.8)],
            5 => &[
                (-0.4, -1.1),
                (0.4, -1.1),
                (0.4, -0.4),
                (1.1, -0.4),
                (1.1, 0.4),
                (0.4, 0.4),
                (0.4, 1.1),
                (-0.4, 1.1),
                (-0.4, 0.4),
                (-1.1, 0.4),
                (-1.1, -0.4),
                (-0.4, -0.4),
            ],
            6 => &[(-1.2, 0.0), (0.8, 1.1), (0.8, -1.1)],
            7 => &[(1.2, 0.0), (-0.8, 1.1), (-0.8, -1.1)],
            _ => &[],
        };
        // A hollow marker is filled with the ground, so that no line shows through it.
        let _ = if hollow {
            write!(self.out, r#"<g class="cf-ground" color="{}">"#, role("ground"))
        } else {
            Ok(())
        };
        let tip =
            if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escape(tip)) };
        for outline in [false, true] {
            if outline && !hollow {
                break;
            }
            let paint = if outline {
                r#"fill="none" stroke="currentColor" stroke-width="1.6""#
            } else {
                r#"fill="currentColor""#
            };
            let _ = if around.is_empty() {
                write!(
                    self.out,
                    r#"<circle cx="{}" cy="{}" r="{}" {paint}>{tip}</circle>"#,
                    r(x),
                    r(y),
                    r(s)
                )
            } else {
                let corners: Vec<_> = around.iter().map(|(a, b)| (x + a * s, y + b * s)).collect();
                write!(self.out, r#"<path d="{}Z" {paint}>{tip}</path>"#, path(&corners))
            };
            if hollow && !outline {
                self.out.push_str("</g>");
            }
        }
    }

    /// A line of text.
    pub(crate) fn text(
        &mut self,
        (x, y): (f64, f64),
        anchor: Anchor,
        size: f64,
        bold: bool,
        text: &str,
    ) {
        self.turned((x, y), anchor, size, bold, 0.0, text);
    }

    /// A line of text turned around its anchor.
    pub(crate) fn turned(
        &mut self,
        (x, y): (f64, f64),
        anchor: Anchor,
        size: f64,
        bold: bool,
        degrees: f64,
        text: &str,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if bold { r#" font-weight="600""# } else { "" };
        let turn = if degrees == 0.0 {
            String::new()
        } else {
            format!(r#" transform="rotate({degrees} {} {})""#, r(x), r(y))
        };
        let place = format!(r#"x="{}" y="{}" text-anchor="{anchor}""#, r(x), r(y));
        let _ = write!(
            self.out,
            r#"<text {place} font-size="{size}"{weight}{turn} fill="currentColor">{}</text>"#,
            raised(&escape(text))
        );
    }
}

/// Where a line begins and ends.
fn ends((x1, y1): (f64, f64), (x2, y2): (f64, f64)) -> String {
    format!(r#"x1="{}" y1="{}" x2="{}" y2="{}""#, r(x1), r(y1), r(x2), r(y2))
}

/// Superscripts drawn as small raised digits: few faces have the characters, and a fallback face
/// would change mid-number.
fn raised(text: &str) -> String {
    let plain = |c: char| match c {
        '\u{b9}' => Some('1'),
        '\u{b2}' => Some('2'),
        '\u{b3}' => Some('3'),
        '\u{207b}' => Some('\u{2212}'),
        '\u{2070}' | '\u{2074}'..='\u{2079}' => char::from_digit(c as u32 - 0x2070, 10),
        _ => None,
    };
    let mut out = String::with_capacity(text.len());
    let mut up = false;
    for c in text.chars() {
        match (plain(c), up) {
            (Some(digit), true) => out.push(digit),
            (Some(digit), false) => {
                let _ = write!(out, r#"<tspan dy="-0.4em" font-size="75%">{digit}"#);
                up = true;
            }
            (None, false) => out.push(c),
            (None, true) => {
                // Down again for the rest; 0.4 of the small size is 0.3 of the full one.
                let _ = write!(out, r#"</tspan><tspan dy="0.3em">{c}</tspan>"#);
                up = false;
            }
        }
    }
    if up {
        out.push_str("</tspan>");
    }
    out
}

/// A coordinate with two decimals at most.
fn r(v: f64) -> String {
    let text = format!("{v:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".into() } else { text.into() }
}

fn path(points: &[(f64, f64)]) -> String {
    let mut d = String::new();
    for (i, (x, y)) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if i == 0 { "M" } else { "L" }, r(*x), r(*y));
    }
    d
}

/// Text made safe for XML: markup characters escaped, characters XML cannot hold replaced.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' | '\r' => out.push(' '),
            c if c < ' '
                || ('\u{7f}'..='\u{9f}').contains(&c)
                || matches!(c, '\u{fffe}' | '\u{ffff}') =>
            {
                out.push('\u{fffd}')
            }
            c => out.push(c),
        }
    }
    out
}

/// Estimated width of a text in a common sans-serif face; errs on the wide side, so that nothing
/// collides.
pub(crate) fn width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' | '|' | '.' | ',' | ':' | ';' | '!' => 0.3,
            'f' | 't' | 'r' | '(' | ')' | '[' | ']' | ' ' | '-' | '/' => 0.38,
            'm' | 'w' | 'M' | 'W' | '@' | '%' => 0.92,
            'A'..='Z' => 0.7,
            '0'..='9' => 0.6,
            _ => 0.58,
        })
        .sum();
    em * size
}

/// Breaks a text into lines no wider than given, at spaces.
pub(crate) fn wrap(text: &str, size: f64, limit: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(line, size) + width(word, size) + 0.3 * size <= limit => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.into()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn superscripts_are_raised_digits() {
        assert_eq!(
            raised("10\u{207b}\u{2075}"),
            "10<tspan dy=\"-0.4em\" font-size=\"75%\">\u{2212}5</tspan>"
        );
        assert_eq!(
            raised("n\u{b2}%"),
            "n<tspan dy=\"-0.4em\" font-size=\"75%\">2</tspan><tspan dy=\"0.3em\">%</tspan>"
        );
        assert_eq!(raised("plain"), "plain");
    }

    #[test]
    fn text_wraps_at_spaces() {
        assert_eq!(wrap("one two three", 10.0, 45.0), ["one two", "three"]);
        assert!(wrap("", 10.0, 40.0).is_empty());
    }
}
