//! What counts can see of a state: the first goal, its hypotheses, and the parts of both that a
//! tactic may repeat.
//!
//! Nothing here knows a prover. A goal stands after a turnstile (`⊢`, `$p`, or the last `|-`) and
//! ends at a blank line or the next marker; what comes before it is hypotheses; text without a
//! turnstile is a goal as a whole.

/// Groups looked at in one state; a demonstration that repeats a later one keeps it as text.
const GROUPS: usize = 128;

/// A state, taken apart.
#[derive(Debug, Default)]
pub(crate) struct View<'a> {
    /// The first goal's tokens, without parentheses around the whole.
    pub(crate) goal: Vec<&'a str>,
    /// Each hypothesis's tokens.
    pub(crate) hypotheses: Vec<Vec<&'a str>>,
    /// Bracketed groups as they are written, in order, without repetition, the goal's first.
    pub(crate) groups: Vec<&'a str>,
    /// Names that look like variables, in order of appearance, the goal's first.
    pub(crate) variables: Vec<&'a str>,
}

impl<'a> View<'a> {
    pub(crate) fn new(state: &'a str) -> Self {
        let block = state.trim().split("\n\n").next().unwrap_or_default();
        let (before, goal) = split_goal(block);
        let mut view = View { goal: tokens(goal).collect(), ..View::default() };
        let pairs = matching(&view.goal);
        view.add_groups(goal, &view.goal.clone(), &pairs);
        if pairs
            .first()
            .is_some_and(|close| close.is_some_and(|close| close + 1 == view.goal.len()))
        {
            view.goal.pop();
            view.goal.remove(0);
        }
        for line in before.split('\n').flat_map(|line| line.split("$e ")) {
            let hypothesis: Vec<&str> = tokens(line).collect();
            if !hypothesis.is_empty() {
                view.add_groups(line, &hypothesis, &matching(&hypothesis));
                view.hypotheses.push(hypothesis);
            }
        }
        for token in view.goal.iter().chain(view.hypotheses.iter().flatten()) {
            if is_variable(token) && !view.variables.contains(token) {
                view.variables.push(token);
            }
        }
        view
    }

    fn add_groups(&mut self, text: &'a str, tokens: &[&'a str], pairs: &[Option<usize>]) {
        for (open, close) in
            pairs.iter().enumerate().filter_map(|(open, close)| Some((open, (*close)?)))
        {
            let group = between(text, tokens[open], tokens[close]);
            if self.groups.len() < GROUPS && !self.groups.contains(&group) {
                self.groups.push(group);
            }
        }
    }
}

/// The text before the goal, and the goal.
fn split_goal(block: &str) -> (&str, &str) {
    let marks = |marker: &'static str| {
        block.match_indices(marker).map(|(at, _)| at).filter(move |at| {
            let rest = &block[at + marker.len()..];
            rest.is_empty() || rest.starts_with(char::is_whitespace)
        })
    };
    let (at, length) = match (marks("⊢").next(), marks("$p").next(), marks("|-").last()) {
        (Some(at), ..) => (at, "⊢".len()),
        (_, Some(at), _) => (at, 2),
        (.., Some(at)) => (at, 2),
        _ => (0, 0),
    };
    let goal = &block[at + length..];
    let end = goal.find("$p ").or_else(|| goal.find("⊢ ")).unwrap_or(goal.len());
    (&block[..at], &goal[..end])
}

/// Tokens between spaces; brackets and commas stuck to a word are tokens of their own, symbols are
/// left whole.
pub(crate) fn tokens(text: &str) -> impl Iterator<Item = &str> {
    text.split_whitespace().flat_map(|word| {
        let mut rest = word;
        let whole = !word.contains(char::is_alphanumeric);
        std::iter::from_fn(move || {
            let first = rest.chars().next()?;
            let stuck = |c: char| matches!(c, '(' | ')' | '[' | ']' | '{' | '}' | '⟨' | '⟩' | ',');
            let end = match whole {
                true => rest.len(),
                false if stuck(first) => first.len_utf8(),
                false => rest.find(stuck).unwrap_or(rest.len()),
            };
            let (token, after) = rest.split_at(end);
            rest = after;
            Some(token)
        })
    })
}

/// For each token, where the bracket it opens closes.
pub(crate) fn matching(tokens: &[&str]) -> Vec<Option<usize>> {
    let mut pairs = vec![None; tokens.len()];
    let mut open: Vec<usize> = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match *token {
            "(" | "[" | "{" | "⟨" | "<." => open.push(at),
            ")" | "]" | "}" | "⟩" | ">." => {
                if let Some(start) = open.pop() {
                    pairs[start] = Some(at);
                }
            }
            _ => {}
        }
    }
    pairs
}

/// The part of `text` from one of its tokens to another, both included.
pub(crate) fn between<'a>(text: &'a str, first: &str, last: &str) -> &'a str {
    let start = first.as_ptr() as usize - text.as_ptr() as usize;
    let end = last.as_ptr() as usize + last.len() - text.as_ptr() as usize;
    &text[start..end]
}

/// Whether a token looks like a variable: one letter or two small ones, perhaps with an index.
pub(crate) fn is_variable(token: &str) -> bool {
    let letters = token.chars().take_while(|c| c.is_alphabetic()).count();
    let small = token.chars().take(letters).all(char::is_lowercase);
    let index =
        token.chars().skip(letters).all(|c| c.is_numeric() || matches!(c, '\'' | '_' | '✝'));
    (letters == 1 || letters == 2 && small)
        && index
        && !matches!(token, "at" | "by" | "in" | "if" | "rw")
}

/// A hash that is the same on every platform and in every version.
#[derive(Clone, Copy)]
pub(crate) struct Hash(pub(crate) u64);

impl Hash {
    pub(crate) fn new(kind: u64) -> Self {
        Hash(0xcbf2_9ce4_8422_2325).number(kind)
    }

    pub(crate) fn text(self, text: &str) -> Self {
        // The length keeps "a b" + "c" apart from "a" + "b c".
        text.bytes().fold(self, |hash, byte| hash.step(u64::from(byte))).number(text.len() as u64)
    }

    pub(crate) fn number(self, number: u64) -> Self {
        self.step(number ^ 0x9e37_79b9_7f4a_7c15)
    }

    fn step(self, word: u64) -> Self {
        let mixed = (self.0 ^ word).wrapping_mul(0x100_0000_01b3);
        Hash(mixed ^ (mixed >> 29))
    }
}
