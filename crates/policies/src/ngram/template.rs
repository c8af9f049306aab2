//! A tactic with the parts that it repeats from its state cut out, so that it can be tried at
//! another state.

use crate::text::{View, between, is_variable, matching, tokens};

/// A piece of a tactic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Piece {
    /// Text as it stands.
    Text(String),
    /// The n-th bracketed group of the goal.
    Group(u16),
    /// The n-th variable of the state.
    Variable(u16),
}

/// A tactic's pieces in order.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Template(pub(crate) Vec<Piece>);

impl Template {
    /// Cuts out of a tactic what its state has too. The first token says what the tactic does and
    /// always stays.
    pub(crate) fn new(tactic: &str, view: &View<'_>) -> Self {
        let words: Vec<&str> = tokens(tactic).collect();
        let pairs = matching(&words);
        let mut pieces = Vec::new();
        let mut done = 0;
        let mut at = 1;
        while at < words.len() {
            let group = pairs[at].and_then(|close| {
                let place = view
                    .groups
                    .iter()
                    .position(|group| *group == between(tactic, words[at], words[close]))?;
                Some((close, Piece::Group(u16::try_from(place).ok()?)))
            });
            let variable = || {
                let place = view
                    .variables
                    .iter()
                    .position(|variable| is_variable(words[at]) && *variable == words[at])?;
                Some((at, Piece::Variable(u16::try_from(place).ok()?)))
            };
            // A name that is being given a value belongs to the tactic, not to the state.
            let assigned = words[at - 1] == "$"
                || words.get(at + 1).is_some_and(|next| matches!(*next, ":=" | ":"));
            if let Some((last, piece)) = group.or_else(|| if assigned { None } else { variable() })
            {
                let start = words[at].as_ptr() as usize - tactic.as_ptr() as usize;
                if start > done {
                    pieces.push(Piece::Text(tactic[done..start].to_owned()));
                }
                pieces.push(piece);
                done = words[last].as_ptr() as usize + words[last].len() - tactic.as_ptr() as usize;
                at = last;
            }
            at += 1;
        }
        if done < tactic.len() {
            pieces.push(Piece::Text(tactic[done..].to_owned()));
        }
        Template(pieces)
    }

    /// The text, where nothing was cut out.
    pub(crate) fn literal(&self) -> Option<&str> {
        match self.0.as_slice() {
            [Piece::Text(text)] => Some(text),
            _ => None,
        }
    }

    /// The tactic at another state; none where that state lacks a part.
    pub(crate) fn render(&self, view: &View<'_>) -> Option<String> {
        let mut tactic = String::new();
        for piece in &self.0 {
            tactic.push_str(match piece {
                Piece::Text(text) => text,
                Piece::Group(n) => view.groups.get(usize::from(*n))?,
                Piece::Variable(n) => view.variables.get(usize::from(*n))?,
            });
        }
        Some(tactic)
    }
}
