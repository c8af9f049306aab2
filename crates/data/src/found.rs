//! A proof that a search found, as a trace to train on.

use catamount_search::{Environment, Fault, StateId, Verdict};
use catamount_traces::{Step, Theorem, Trace};

/// The trace of a proof: each tactic with the state before and after it, as the prover prints them.
/// Whether it is a proof is for a check to say.
pub fn traced(
    environment: &dyn Environment,
    theorem: &Theorem,
    tactics: &[String],
) -> Result<Trace, Fault> {
    let mut session = environment.open(theorem)?;
    let (mut at, mut state) = (StateId(0), session.root().to_owned());
    let mut steps = Vec::new();
    for (number, tactic) in (1..).zip(tactics) {
        let wrong = |why: &str| Fault(format!("step {number}, `{tactic}`: {why}"));
        let next = match session.apply(at, tactic)? {
            Verdict::Open { state, text } => {
                at = state;
                text
            }
            Verdict::Proved if number == tactics.len() => String::new(),
            Verdict::Proved => return Err(wrong("nothing is left to prove after it")),
            Verdict::Rejected { reason } => return Err(wrong(&reason)),
        };
        let before = std::mem::replace(&mut state, next.clone());
        let (tactic, next) = (tactic.clone(), Some(next));
        steps.push(Step { state: before, tactic, next, annotated: None });
    }
    match state.is_empty() {
        true => Ok(Trace { theorem: theorem.clone(), steps }),
        false => Err(Fault("goals are left after the last tactic".into())),
    }
}
