//! A table once, written as Markdown, LaTeX, HTML, plain text and CSV.

use std::fmt::Write;

use serde::Serialize;

/// One entry of a table.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Entry {
    /// What it says.
    pub text: String,
    /// The best of its column.
    pub bold: bool,
    /// A mark after it: `*` for p < 0.05, `†` for an incomplete cell.
    pub mark: String,
}

impl<S: Into<String>> From<S> for Entry {
    fn from(text: S) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// A table with its caption, and the raw numbers behind it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Table {
    /// File name without ending.
    pub name: String,
    /// A short title.
    pub title: String,
    /// What the numbers are and how they were made.
    pub caption: String,
    /// Column headings; the first `text_columns` are aligned left, the others right.
    pub header: Vec<String>,
    /// How many leading columns hold names.
    pub text_columns: usize,
    /// The rows.
    pub rows: Vec<Vec<Entry>>,
    /// The raw numbers, with a heading line.
    pub csv: String,
}

impl Table {
    fn columns(&self) -> usize {
        self.header.len()
    }

    /// GitHub-flavoured Markdown with its title and caption.
    pub fn to_markdown(&self) -> String {
        let mut out = format!("### {}\n\n", self.title);
        let escape = |text: &str| text.replace('|', "\\|").replace('*', "\\*").replace('\n', " ");
        let _ = writeln!(
            out,
            "| {} |",
            self.header.iter().map(|h| escape(h)).collect::<Vec<_>>().join(" | ")
        );
        let rules = (0..self.columns()).map(|i| if i < self.text_columns { "---" } else { "---:" });
        let _ = writeln!(out, "|{}|", rules.collect::<Vec<_>>().join("|"));
        for row in &self.rows {
            let cells = row.iter().map(|e| {
                let text = escape(&e.text);
                let mark = escape(&e.mark);
                if e.bold { format!("**{text}**{mark}") } else { format!("{text}{mark}") }
            });
            let _ = writeln!(out, "| {} |", cells.collect::<Vec<_>>().join(" | "));
        }
        let _ = writeln!(out, "\n{}\n", self.caption);
        out
    }

    /// A LaTeX table that needs `booktabs` only.
    pub fn to_latex(&self) -> String {
        let align: String =
            (0..self.columns()).map(|i| if i < self.text_columns { 'l' } else { 'r' }).collect();
        let mut out = format!(
            "\\begin{{table}}[ht]\n\\centering\n\\caption{{\\textbf{{{}.}} \
             {}}}\n\\label{{tab:{}}}\n\\small\n\\begin{{tabular}}{{{align}}}\n\\toprule\n",
            latex(&self.title),
            latex(&self.caption),
            self.name
        );
        let _ = writeln!(
            out,
            "{} \\\\\n\\midrule",
            self.header.iter().map(|h| latex(h)).collect::<Vec<_>>().join(" & ")
        );
        for row in &self.rows {
            let cells = row.iter().map(|e| {
                let text = latex(&e.text);
                let mark = if e.mark.is_empty() {
                    String::new()
                } else {
                    format!("$^{{{}}}$", math(&e.mark))
                };
                if e.bold { format!("\\textbf{{{text}}}{mark}") } else { format!("{text}{mark}") }
            });
            let _ = writeln!(out, "{} \\\\", cells.collect::<Vec<_>>().join(" & "));
        }
        out.push_str("\\bottomrule\n\\end{tabular}\n\\end{table}\n");
        out
    }

    /// An HTML table inside a figure, its caption below the title.
    pub fn to_html(&self) -> String {
        let mut out = format!(
            "<figure class=\"table\" id=\"table-{}\">\n<figcaption><strong>{}.</strong> \
             {}</figcaption>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" \
             aria-label=\"{}\"><table>\n<thead><tr>",
            self.name,
            html(&self.title),
            html(&self.caption),
            html(&self.title)
        );
        let class = |i: usize| if i < self.text_columns { "" } else { " class=\"n\"" };
        for (i, h) in self.header.iter().enumerate() {
            let _ = write!(out, "<th scope=\"col\"{}>{}</th>", class(i), html(h));
        }
        out.push_str("</tr></thead>\n<tbody>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for (i, e) in row.iter().enumerate() {
                let mark = if e.mark.is_empty() {
                    String::new()
                } else {
                    format!("<sup>{}</sup>", html(&e.mark))
                };
                let text = html(&e.text);
                let text = if e.bold { format!("<strong>{text}</strong>") } else { text };
                let tag = if i == 0 { "th scope=\"row\"" } else { "td" };
                let _ = write!(out, "<{tag}{}>{text}{mark}</{}>", class(i), &tag[..2]);
            }
            out.push_str("</tr>\n");
        }
        out.push_str("</tbody></table></div></figure>\n");
        out
    }

    /// Aligned plain text for a terminal, with what its marks mean below it; `^` stands for bold.
    pub fn to_text(&self) -> String {
        let text = |e: &Entry| format!("{}{}{}", e.text, if e.bold { "^" } else { "" }, e.mark);
        let rows: Vec<Vec<String>> =
            self.rows.iter().map(|r| r.iter().map(text).collect()).collect();
        let widths: Vec<usize> = (0..self.columns())
            .map(|i| {
                rows.iter()
                    .filter_map(|r| r.get(i))
                    .chain([&self.header[i]])
                    .map(|t| t.chars().count())
                    .max()
                    .unwrap_or(0)
            })
            .collect();
        let mut out = format!("{}\n", self.title);
        for row in std::iter::once(&self.header).chain(&rows) {
            for (i, text) in row.iter().enumerate() {
                let pad = " ".repeat(widths[i].saturating_sub(text.chars().count()));
                let _ = if i < self.text_columns {
                    write!(out, "{text}{pad}  ")
                } else {
                    write!(out, "{pad}{text}  ")
                };
            }
            out.truncate(out.trim_end().len());
            out.push('\n');
        }
        let entries = || self.rows.iter().flatten();
        if entries().any(|e| e.bold) {
            let meaning = self.meaning("old: ").unwrap_or("bold in the report");
            let _ = writeln!(out, "^ {meaning}");
        }
        if entries().any(|e| e.mark.contains('*'))
            && let Some(meaning) = self.meaning("*: ")
        {
            let _ = writeln!(out, "* {meaning}");
        }
        out
    }

    /// What the caption says of a mark: the rest of the clause that begins so.
    fn meaning(&self, mark: &str) -> Option<&str> {
        let (_, rest) = self.caption.split_once(mark)?;
        let end = [". ", "; "].iter().filter_map(|stop| rest.find(stop)).min();
        Some(rest[..end.unwrap_or(rest.len())].trim_end_matches('.'))
    }
}

/// Text made safe inside HTML.
pub(crate) fn html(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// One field of a CSV line.
pub(crate) fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Text made safe inside LaTeX, the few symbols we print included.
fn latex(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out.push_str("\\textbackslash{}"),
            '~' => out.push_str("\\textasciitilde{}"),
            '^' => out.push_str("\\textasciicircum{}"),
            '<' => out.push_str("$<$"),
            '>' => out.push_str("$>$"),
            '\u{3ba}' => out.push_str("$\\kappa$"),
            '\u{2212}' => out.push_str("$-$"),
            '\u{2013}' => out.push_str("--"),
            '\u{2014}' => out.push_str("---"),
            '\u{2265}' => out.push_str("$\\ge$"),
            '\u{2264}' => out.push_str("$\\le$"),
            '\u{d7}' => out.push_str("$\\times$"),
            '\u{2020}' => out.push_str("$\\dagger$"),
            '\u{b2}' => out.push_str("$^{2}$"),
            c => out.push(c),
        }
    }
    out
}

fn math(mark: &str) -> String {
    mark.replace('\u{2020}', "\\dagger ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let bold = Entry { text: "26.6".into(), bold: true, mark: "*".into() };
        Table {
            name: "matrix".into(),
            title: "Proofs found (%) & more".into(),
            caption:
                "\u{3ba} = 5, p < 0.05. Bold: highest of its column. *: p < 0.05 at \u{3ba} = 5."
                    .into(),
            header: vec!["objective".into(), "Pass@N".into()],
            text_columns: 1,
            rows: vec![vec!["a|b_c <x>".into(), bold], vec!["CE".into(), "21.2".into()]],
            csv: String::new(),
        }
    }

    #[test]
    fn every_form_keeps_marks_and_escapes() {
        let t = table();
        assert!(
            t.to_markdown().contains("| a\\|b_c <x> | **26.6**\\* |\n| CE | 21.2 |"),
            "{}",
            t.to_markdown()
        );
        assert!(
            t.to_latex().contains("a|b\\_c $<$x$>$ & \\textbf{26.6}$^{*}$ \\\\"),
            "{}",
            t.to_latex()
        );
        assert!(t.to_latex().contains("(\\%) \\& more.} $\\kappa$ = 5"));
        assert!(t.to_html().contains(
            "<th scope=\"row\">a|b_c &lt;x&gt;</th><td \
             class=\"n\"><strong>26.6</strong><sup>*</sup></td>"
        ));
        let text = t.to_text();
        let lines: Vec<&str> = text.lines().skip(2).collect();
        assert_eq!(lines[0], "a|b_c <x>  26.6^*");
        assert_eq!(lines[2..], ["^ highest of its column", "* p < 0.05 at \u{3ba} = 5"]);
    }
}
