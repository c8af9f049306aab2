//! Proofs to the letter: what Metamath's reference program demands of a proof beyond what
//! metamath-rs does. None of it makes a wrong theorem; all of it makes a database that other
//! verifiers refuse.
//!
//! metamath-rs stops reading a proof at its first `?`, skips letters that are none in a compressed
//! proof, and lets such a proof list hypotheses and save steps that need no saving.

use std::collections::HashMap;
use std::rc::Rc;

use metamath_rs::StatementType;
use metamath_rs::scopeck::{Frame, Hyp};
use metamath_rs::statement::{NO_STATEMENT, StatementRef};

type Source = metamath_rs::Database;
/// A formula symbol by symbol; none where a `?` leaves it open.
type Formula<'a> = Option<Rc<[&'a [u8]]>>;

/// The first theorem whose proof is not as it should be, and why.
pub(crate) fn complaint(source: &Source) -> Option<(String, String)> {
    let provable =
        |statement: &StatementRef<'_>| statement.statement_type() == StatementType::Provable;
    source.statements().filter(provable).find_map(|statement| {
        let reason = check(source, &statement).err()?;
        Some((metamath_rs::as_str(statement.label()).to_owned(), reason))
    })
}

fn check(source: &Source, theorem: &StatementRef<'_>) -> Result<(), String> {
    let tokens: Vec<&[u8]> =
        (0..theorem.proof_len()).map(|at| theorem.proof_slice_at(at)).collect();
    let Some(frame) = source.scope_result().get(theorem.label()) else { return Ok(()) };
    match tokens[..] {
        [b"(", ..] => compressed(source, theorem, frame, &tokens[1..]),
        // Steps that name others by number (`1:label`) are not replayed.
        _ if tokens.contains(&&b"?"[..]) && !tokens.concat().contains(&b':') => {
            let mut stack = Stack::new(source);
            for token in tokens {
                match token {
                    b"?" => stack.push(None),
                    label => stack.step(&step(source, theorem, frame, label)?)?,
                }
            }
            stack.finish()
        }
        _ => Ok(()),
    }
}

/// What a label stands for in a proof.
#[derive(Clone)]
enum Step<'a> {
    Hypothesis(Formula<'a>),
    Assertion(&'a Frame, StatementRef<'a>),
}

fn formula<'a>(statement: &StatementRef<'a>) -> Formula<'a> {
    let statement = *statement;
    Some((0..statement.math_len()).map(|at| statement.math_at(at).slice).collect())
}

/// The step of a label: a hypothesis of the theorem, an active `$f`, or an earlier assertion.
fn step<'a>(
    source: &'a Source,
    theorem: &StatementRef<'a>,
    frame: &Frame,
    label: &[u8],
) -> Result<Step<'a>, String> {
    let own = frame.hypotheses.iter().map(|hyp| source.statement_by_address(hyp.address()));
    if let Some(hypothesis) = own.into_iter().find(|hyp| hyp.label() == label) {
        return Ok(Step::Hypothesis(formula(&hypothesis)));
    }
    let unknown = || format!("no statement `{}` holds here", metamath_rs::as_str(label));
    let found = source.scope_result().get(label).ok_or_else(unknown)?;
    let (from, until) = (found.valid.start, found.valid.end);
    // A scope ends in the segment that it begins in.
    let segment = source.statement_by_address(from).segment().id;
    let within =
        until == NO_STATEMENT || segment == theorem.segment().id && theorem.index() < until;
    if source.cmp_address(&from, &theorem.address()).is_ge() || !within {
        return Err(unknown());
    }
    let statement = source.statement(label).ok_or_else(unknown)?;
    Ok(match found.stype {
        StatementType::Floating => Step::Hypothesis(formula(&statement)),
        _ => Step::Assertion(found, statement),
    })
}

/// A compressed proof, from behind its opening parenthesis on.
fn compressed(
    source: &Source,
    theorem: &StatementRef<'_>,
    frame: &Frame,
    tokens: &[&[u8]],
) -> Result<(), String> {
    let Some(close) = tokens.iter().position(|token| *token == b")") else {
        return Err("its list of labels has no end".to_owned());
    };
    let letters = tokens[close + 1..].concat();
    let open = letters.contains(&b'?');
    let mut steps: Vec<Step<'_>> = Vec::new();
    let own = frame.hypotheses.iter().map(|hyp| source.statement_by_address(hyp.address()));
    let own: Vec<StatementRef<'_>> = own.collect();
    steps.extend(own.iter().map(|hyp| Step::Hypothesis(formula(hyp))));
    for label in &tokens[..close] {
        if own.iter().any(|hyp| hyp.label() == *label) {
            let label = metamath_rs::as_str(label);
            return Err(format!("its list of labels has the hypothesis `{label}` in it"));
        }
        steps.push(step(source, theorem, frame, label)?);
    }
    let mut stack = Stack::new(source);
    let (mut saved, mut number): (Vec<Formula<'_>>, usize) = (Vec::new(), 0);
    // Whether the last letter ended a step that may be saved.
    let mut savable = false;
    for letter in letters {
        match letter {
            b'A'..=b'T' => {
                let at = number.saturating_mul(20).saturating_add(usize::from(letter - b'A'));
                (number, savable) = (0, matches!(steps.get(at), Some(Step::Assertion(..))));
                if !open {
                    continue;
                }
                match (steps.get(at), at.checked_sub(steps.len()).and_then(|at| saved.get(at))) {
                    (Some(step), _) => stack.step(step)?,
                    (None, Some(formula)) => stack.push(formula.clone()),
                    (None, None) => return Err(format!("it refers to step {}", at + 1)),
                }
            }
            b'U'..=b'Y' => {
                number = number.saturating_mul(5).saturating_add(usize::from(letter - b'U') + 1);
                savable = false;
            }
            b'Z' if savable => {
                saved.push(stack.stack.last().cloned().flatten());
                savable = false;
            }
            b'Z' => return Err("it saves what is not a step by an assertion".to_owned()),
            b'?' if number == 0 => {
                stack.push(None);
                savable = false;
            }
            other => {
                let letter = char::from(other);
                return Err(format!("`{letter}` has no meaning in its compressed proof"));
            }
        }
    }
    if open { stack.finish() } else { Ok(()) }
}

/// The stack of a proof with holes in it.
struct Stack<'a> {
    source: &'a Source,
    stack: Vec<Formula<'a>>,
}

impl<'a> Stack<'a> {
    fn new(source: &'a Source) -> Self {
        Stack { source, stack: Vec::new() }
    }

    fn push(&mut self, formula: Formula<'a>) {
        self.stack.push(formula);
    }

    fn step(&mut self, step: &Step<'a>) -> Result<(), String> {
        let (frame, statement) = match step {
            Step::Hypothesis(formula) => {
                self.push(formula.clone());
                return Ok(());
            }
            Step::Assertion(frame, statement) => (frame, statement),
        };
        let label = metamath_rs::as_str(statement.label());
        let wanted = frame.hypotheses.len();
        let Some(first) = self.stack.len().checked_sub(wanted) else {
            return Err(format!("`{label}` needs {wanted} hypotheses"));
        };
        let arguments = self.stack.split_off(first);
        let result = applied(self.source, frame, statement, &arguments)
            .ok_or_else(|| format!("the hypotheses of `{label}` cannot be unified"))?;
        self.push(result);
        Ok(())
    }

    fn finish(&self) -> Result<(), String> {
        match self.stack.len() {
            1 => Ok(()),
            many => Err(format!("it ends with {many} formulas on its stack instead of one")),
        }
    }
}

/// What an assertion gives for these hypotheses, as far as they are known; nothing if they do not
/// fit.
fn applied<'a>(
    source: &'a Source,
    frame: &Frame,
    statement: &StatementRef<'a>,
    arguments: &[Formula<'a>],
) -> Option<Formula<'a>> {
    let mut values: HashMap<&[u8], &[&'a [u8]]> = HashMap::new();
    let mut expected = Vec::new();
    for (hypothesis, argument) in frame.hypotheses.iter().zip(arguments) {
        let pattern = formula(&source.statement_by_address(hypothesis.address()))?;
        match (hypothesis, argument) {
            (Hyp::Floating(..), Some(argument)) => {
                if argument.first() != pattern.first() {
                    return None;
                }
                values.insert(pattern.get(1)?, argument.get(1..)?);
            }
            // A variable whose value nobody knows leaves everything open.
            (Hyp::Floating(..), None) => return Some(None),
            (Hyp::Essential(..), Some(argument)) => expected.push((pattern, argument)),
            (Hyp::Essential(..), None) => {}
        }
    }
    let substituted = |pattern: &[&'a [u8]]| -> Rc<[&'a [u8]]> {
        let value = |symbol: &&'a [u8]| match values.get(symbol) {
            Some(value) => value.to_vec(),
            None => vec![*symbol],
        };
        pattern.iter().flat_map(value).collect()
    };
    let fits = expected.iter().all(|(pattern, argument)| substituted(pattern) == **argument);
    fits.then(|| formula(statement).map(|conclusion| substituted(&conclusion)))
}
