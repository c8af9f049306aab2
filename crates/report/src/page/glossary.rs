//! What the words of the page mean; the same list as in the documentation.

use std::fmt::Write;

use crate::table::html as escape;

const GLOSSARY: &str = include_str!("../../assets/glossary.md");

/// Terms and meanings: an item is `- **term**: meaning`, and goes on over indented lines.
fn items() -> Vec<(String, String)> {
    let mut items: Vec<String> = Vec::new();
    for line in GLOSSARY.lines() {
        match (line.strip_prefix("- "), items.last_mut()) {
            (Some(item), _) => items.push(item.to_owned()),
            (None, Some(item)) => *item = format!("{item} {}", line.trim()),
            (None, None) => {}
        }
    }
    let apart = |item: String| {
        let (term, meaning) = item.strip_prefix("**")?.split_once("**: ")?;
        Some((term.to_owned(), meaning.to_owned()))
    };
    items.into_iter().filter_map(apart).collect()
}

pub(crate) fn html() -> String {
    let mut out = String::from("<dl class=\"facts\">\n");
    for (term, meaning) in items() {
        let meaning = escape(&meaning);
        // Bold words inside a meaning.
        let parts = meaning.split("**").enumerate();
        let marked = parts.map(|(i, part)| match i % 2 {
            0 => part.to_owned(),
            _ => format!("<strong>{part}</strong>"),
        });
        let meaning: String = marked.collect();
        let _ = writeln!(out, "<dt>{}</dt><dd>{meaning}</dd>", escape(&term));
    }
    out.push_str("</dl>\n");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_of_the_list_is_taken() {
        assert_eq!(items().len(), GLOSSARY.matches("\n- ").count() + 1);
        for term in ["CE", "UA", "CAT", "kappa, \u{3ba}", "q, absorption", "expansion"] {
            assert!(items().iter().any(|(found, _)| found == term), "{term}");
        }
        assert!(!html().contains("**"));
    }
}
