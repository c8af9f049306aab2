//! What reads others' bytes here, one function each, for the tests that give it bytes of their own
//! (`crates/hostile`). Whether it likes them does not matter; that it comes back does.

use std::path::Path;

use crate::terms::{Limits, Terms};
use crate::{checkouts, olean, wire};

/// Terms, and what is done with them before anybody has judged them.
pub fn terms(text: &str) -> Result<(), String> {
    // Smaller than what is let in: so many inputs are tried that none may be large.
    let limits = Limits { exprs: 100_000, ..Limits::default() };
    let terms = Terms::read(text, &limits)?;
    let _ = terms.mentioned(&["sorryAx", "Lean.reduceBool"]);
    let _ = (terms.used(), terms.declared(), terms.uses_argument(0), terms.uses_argument(1));
    let own = terms.with_own_names();
    let _ = own.for_judge();
    let mut both = terms.clone();
    both.append(&own);
    let again = Terms::read(&terms.ndjson(), &limits);
    assert_eq!(again.as_ref(), Ok(&terms), "what was read is not what is written");
    Ok(())
}

/// A line of a server's output as its answer to the question of this id, and what is made of it.
pub fn answer(line: &[u8], id: &str) -> bool {
    let hello = serde_json::from_slice::<wire::Hello>(line).is_ok_and(|hello| hello.protocol > 0);
    let Some(reply) = wire::parse_reply(line, id) else { return hello };
    let _ = (reply.refusal(), terms(&reply.terms));
    true
}

/// A compiled module, made fit to be imported.
pub fn compiled(bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    olean::importable(bytes)
}

/// The number of packages that the manifest of a Lake project names.
pub fn packages(project: &Path) -> usize {
    checkouts::packages(project).len()
}
