//! Tactics as text.
//!
//! ```text
//! tactic       = label { " $ " variable " " symbols }
//! ```
//!
//! The label names an assertion before the theorem. For each of the assertion's variables that its
//! conclusion does not mention, and for no other, one group says what it stands for: `$`, the
//! variable as the assertion names it, and the symbols of the term, all separated by white space.
//! `$` cannot occur in a Metamath symbol, so groups cannot run into each other. The groups may come
//! in any order; they are printed in the order of the assertion's variables.

use crate::assertion::AssertionId;
use crate::database::{Database, Scratch, clip};
use crate::kernel::{Board, Given, Refusal};

/// The longest tactic, in bytes. The longest of set.mm has some two thousand.
pub const LONGEST_TACTIC: usize = 1 << 16;

/// A tactic understood: an assertion and the terms for its open slots.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tactic {
    pub(crate) assertion: AssertionId,
    pub(crate) given: Given,
}

/// Reads a tactic as it would stand in the proof of the theorem at this place of the database.
pub(crate) fn parse(
    database: &Database,
    scratch: &mut Scratch,
    text: &str,
    at: u32,
) -> Result<Tactic, String> {
    if text.len() > LONGEST_TACTIC {
        return Err(format!(
            "the tactic has {} bytes; at most {LONGEST_TACTIC} are read",
            text.len()
        ));
    }
    let mut words = text.split_ascii_whitespace();
    let label = words.next().ok_or("the tactic is empty")?;
    let id =
        database.find(label).ok_or_else(|| format!("there is no assertion `{}`", clip(label)))?;
    let assertion = database.assertion(id);
    if assertion.ordinal >= at {
        return Err(later(label));
    }
    let words: Vec<&str> = words.collect();
    if words.first().is_some_and(|word| *word != "$") {
        return Err(format!("after the label comes `$` and a variable, not `{}`", clip(words[0])));
    }
    let name = |slot: u16| -> &str {
        &database.nodes.kinds[assertion.slots[usize::from(slot)] as usize].pieces[0]
    };
    let mut groups: Vec<Option<&[&str]>> = vec![None; assertion.open.len()];
    for group in words.split(|word| *word == "$").skip(1) {
        let (variable, symbols) = group.split_first().ok_or("`$` without a variable after it")?;
        match assertion.open.iter().position(|&slot| name(slot) == *variable) {
            Some(index) if groups[index].is_some() => {
                return Err(format!("`{variable}` is given twice"));
            }
            Some(index) => groups[index] = Some(symbols),
            None if (0..assertion.slots.len()).any(|slot| name(slot as u16) == *variable) => {
                return Err(format!(
                    "`{variable}` of `{label}` follows from the goal and must not be given"
                ));
            }
            None => return Err(format!("`{label}` has no variable `{}`", clip(variable))),
        }
    }
    let mut given = Given::default();
    for (group, &slot) in groups.iter().zip(&assertion.open) {
        let symbols = group.ok_or_else(|| {
            format!("`{label}` needs a term for `{}`: add `$ {0} ...`", name(slot))
        })?;
        let from = given.nodes.len() as u32;
        let typecode = assertion.typecodes[usize::from(slot)];
        let parsed = database.parse_term(scratch, symbols, typecode, at, &mut given.nodes);
        parsed.map_err(|reason| format!("the term for `{}`: {reason}", name(slot)))?;
        given.spans.push((from, given.nodes.len() as u32));
    }
    Ok(Tactic { assertion: id, given })
}

/// Writes a tactic.
pub(crate) fn write(database: &Database, tactic: &Tactic, out: &mut String) {
    let assertion = database.assertion(tactic.assertion);
    out.push_str(&assertion.label);
    for (index, &slot) in assertion.open.iter().enumerate() {
        out.push_str(" $ ");
        out.push_str(&database.nodes.kinds[assertion.slots[usize::from(slot)] as usize].pieces[0]);
        out.push(' ');
        database.nodes.write(tactic.given.term(index), out);
    }
}

/// A refusal of the kernel in words.
pub(crate) fn explain(
    database: &Database,
    board: &Board,
    state: u32,
    id: AssertionId,
    refusal: Refusal,
) -> String {
    let assertion = database.assertion(id);
    let label = &assertion.label;
    let variable = |node: u32| &database.nodes.kinds[node as usize].pieces[0];
    match refusal {
        Refusal::NoGoal => "nothing is left to prove".to_owned(),
        Refusal::Later => later(label),
        Refusal::Unbound => {
            format!("`{label}` needs terms for {} variable(s)", assertion.open.len())
        }
        Refusal::Mismatch => {
            let mut text = format!("the goal is not an instance of the conclusion of `{label}`");
            if let Some((goal, _)) = board.first(state)
                && board.formula(goal).len() < 100
            {
                text.push_str(": ");
                database.nodes.write(&assertion.concrete(&assertion.conclusion), &mut text);
            }
            text
        }
        Refusal::Distinct(a, b, u, v) => format!(
            "`{label}` wants `{}` and `{}` distinct, but their terms hold `{}` and `{}`",
            variable(assertion.slots[usize::from(a)]),
            variable(assertion.slots[usize::from(b)]),
            variable(u),
            variable(v)
        ),
        Refusal::TooLarge => format!("`{label}` would leave a goal larger than the kernel allows"),
    }
}

fn later(label: &str) -> String {
    format!("`{}` does not come before the theorem", clip(label))
}
