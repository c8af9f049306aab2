//! Where in a TOML file a key stands, and which key stands at a place: what an error needs to say.

use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

/// A parsed file that remembers where everything stood.
pub(crate) struct Layout<'t> {
    text: &'t str,
    root: Option<Spanned<DeTable<'t>>>,
}

impl<'t> Layout<'t> {
    pub fn of(text: &'t str) -> Self {
        // What does not parse has no layout; the parser's own error has the place.
        Layout { text, root: DeTable::parse(text).ok() }
    }

    /// The line, counted from 1, of a byte.
    pub fn line_at(&self, byte: usize) -> usize {
        1 + self.text.bytes().take(byte).filter(|byte| *byte == b'\n').count()
    }

    /// The line of a key such as `objectives[1].prior`, or of the part of it that the file has;
    /// none if not even its first part is there.
    pub fn line(&self, key: &str) -> Option<usize> {
        let mut table = self.root.as_ref()?.get_ref();
        let mut found = None;
        for part in key.split('.') {
            let (name, index) = match part.split_once('[') {
                Some((name, rest)) => (name, rest.trim_end_matches(']').parse::<usize>().ok()),
                None => (part, None),
            };
            let Some((key, mut value)) = table.iter().find(|(key, _)| key.get_ref() == name) else {
                break;
            };
            found = Some(self.line_at(key.span().start));
            if let (Some(index), Some(items)) = (index, value.get_ref().as_array()) {
                let Some(item) = items.get(index) else { break };
                found = Some(self.line_at(item.span().start));
                value = item;
            }
            let Some(inner) = value.get_ref().as_table() else { break };
            table = inner;
        }
        found
    }

    /// The innermost key whose name or value covers a span.
    pub fn key(&self, span: &Range<usize>) -> Option<String> {
        let mut best: Option<(usize, String)> = None;
        self.search(self.root.as_ref()?.get_ref(), "", span, &mut best);
        best.map(|(_, key)| key)
    }

    fn search(
        &self,
        table: &DeTable<'t>,
        prefix: &str,
        wanted: &Range<usize>,
        best: &mut Option<(usize, String)>,
    ) {
        for (key, value) in table.iter() {
            let path = format!("{prefix}{}", key.get_ref());
            for span in [key.span(), value.span()] {
                note(&span, wanted, &path, best);
            }
            self.inside(value, &path, wanted, best);
        }
    }

    fn inside(
        &self,
        value: &Spanned<DeValue<'t>>,
        path: &str,
        wanted: &Range<usize>,
        best: &mut Option<(usize, String)>,
    ) {
        if let Some(table) = value.get_ref().as_table() {
            self.search(table, &format!("{path}."), wanted, best);
        }
        for (index, item) in
            value.get_ref().as_array().into_iter().flat_map(|a| a.iter().enumerate())
        {
            let path = format!("{path}[{index}]");
            note(&item.span(), wanted, &path, best);
            self.inside(item, &path, wanted, best);
        }
    }
}

fn note(
    span: &Range<usize>,
    wanted: &Range<usize>,
    path: &str,
    best: &mut Option<(usize, String)>,
) {
    let covers = span.start <= wanted.start && wanted.end <= span.end;
    if covers && best.as_ref().is_none_or(|(length, _)| span.len() <= *length) {
        *best = Some((span.len(), path.to_string()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "a = 1\nb = { c = 2,\n  d = [3, 4] }\n[e]\nf = 5\n[[g]]\nh = 6\n[[g]]\nh = 7\n";

    #[test]
    fn keys_have_lines_and_places_have_keys() {
        let layout = Layout::of(TEXT);
        for (key, line) in [
            ("a", 1),
            ("b.c", 2),
            ("b.d", 3),
            ("e.f", 5),
            ("g[0].h", 7),
            ("g[1].h", 9),
            ("e.missing", 4),
            ("b.c.d", 2),
        ] {
            assert_eq!(layout.line(key), Some(line), "{key}");
        }
        assert_eq!(layout.line("missing"), None);
        for (value, key) in [("2", "b.c"), ("4", "b.d[1]"), ("5", "e.f"), ("7", "g[1].h")] {
            let at = TEXT.find(value).unwrap();
            assert_eq!(layout.key(&(at..at + 1)).as_deref(), Some(key));
        }
    }
}
