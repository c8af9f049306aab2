//! Traces from the database's own proofs.
//!
//! metamath-rs verifies each proof and reports its steps; the steps of the logic become tactics, in
//! the order in which the kernel asks for them (always the first goal); steps that build formulas
//! vanish into the tactics' terms. Each tactic is then printed, read back, and applied by the
//! kernel before it enters the trace, so a trace that comes out replays.

use std::ops::Range;

use catamount_traces::{Step, Theorem, Trace};
use metamath_rs::statement::StatementAddress;
use metamath_rs::verify::ProofBuilder;
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::assertion::{AssertionId, Mandatory, SLOT};
use crate::check;
use crate::database::{Database, Meaning, Scratch};
use crate::kernel::{Given, GoalId};
use crate::proof;
use crate::replay::Replay;
use crate::state::Texts;
use crate::tactic::{self, Tactic};

/// Theorems worked on at once for each core: enough to keep all of them busy, few enough to hold in
/// memory.
const BATCH: usize = 8;

/// How to extract.
#[derive(Clone, Debug)]
pub struct Extraction {
    /// The longest trace, in steps. A proof that uses a result twice must prove it twice in a
    /// linear trace unless both uses are open at once, so a few proofs grow very long.
    pub longest: usize,
    /// Whether to have metamath-rs verify, at the end, the whole database with every extracted
    /// proof in place of the original.
    pub recheck: bool,
    /// Only the first so many theorems of the database.
    pub first: Option<usize>,
}

impl Default for Extraction {
    fn default() -> Self {
        Extraction { longest: 100_000, recheck: true, first: None }
    }
}

/// What became of the theorems.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extracted {
    /// Theorems of the database, or as many of them as were asked for.
    pub theorems: usize,
    /// Theorems with a trace.
    pub traces: usize,
    /// Steps in all traces together.
    pub steps: usize,
    /// Theorems that are one of their own hypotheses: nothing to prove, no trace.
    pub trivial: usize,
    /// Theorems without a trace for another reason: the label and the reason.
    pub remainder: Vec<(String, String)>,
    /// Theorems whose trace metamath-rs does not accept as a proof, and why; none if it was not
    /// asked. Their traces were handed out and are not to be used.
    pub refused: Vec<(String, String)>,
}

impl Database {
    /// Extracts a trace from every proof, in database order, on all cores; hands each to the sink
    /// as it is made, together with the number of theorems dealt with so far.
    pub fn extract(&self, how: &Extraction, mut sink: impl FnMut(Trace, usize)) -> Extracted {
        let theorems: Vec<AssertionId> =
            self.theorems().take(how.first.unwrap_or(usize::MAX)).collect();
        let mut report = Extracted { theorems: theorems.len(), ..Extracted::default() };
        let mut proofs = Vec::new();
        let mut done = 0;
        for ids in theorems.chunks(BATCH * rayon::current_num_threads()) {
            let extracted: Vec<_> = ids
                .par_iter()
                .map_init(Scratch::default, |scratch, id| one(self, *id, how, scratch))
                .collect();
            for (id, result) in ids.iter().zip(extracted) {
                done += 1;
                match result {
                    Ok((trace, proof)) => {
                        proofs.extend(proof.map(|proof| (*id, proof)));
                        if trace.steps.is_empty() {
                            report.trivial += 1;
                            continue;
                        }
                        report.traces += 1;
                        report.steps += trace.steps.len();
                        sink(trace, done);
                    }
                    Err(reason) => {
                        report.remainder.push((self.assertion(*id).label().to_owned(), reason))
                    }
                }
            }
        }
        if how.first.is_none() {
            for unsupported in self.unsupported.iter().filter(|unsupported| unsupported.theorem) {
                report.theorems += 1;
                report.remainder.push((unsupported.label.clone(), unsupported.reason.clone()));
            }
        }
        if how.recheck {
            report.refused = self.refused(&proofs);
        }
        report
    }

    /// The theorems whose proofs metamath-rs does not accept, and why. One look at the whole
    /// database with all of them in place is quick and as a rule the end of it; should it refuse,
    /// each proof is verified by itself, to find those that are to blame.
    fn refused(&self, proofs: &[(AssertionId, proof::Proof)]) -> Vec<(String, String)> {
        let borrowed: Vec<_> = proofs.iter().map(|(id, proof)| (*id, proof)).collect();
        if self.accepts(&borrowed).is_ok() {
            return Vec::new();
        }
        let verdict = |(id, proof): &(AssertionId, proof::Proof)| {
            let reason = check::verify(self, *id, proof).err()?;
            Some((self.assertion(*id).label().to_owned(), reason))
        };
        proofs.par_iter().filter_map(verdict).collect()
    }

    /// The trace of one theorem's proof; empty if there is nothing to prove.
    pub fn trace(&self, theorem: AssertionId) -> Result<Trace, String> {
        let how = Extraction { recheck: false, ..Extraction::default() };
        one(self, theorem, &how, &mut Scratch::default()).map(|(trace, _)| trace)
    }
}

fn one(
    database: &Database,
    theorem: AssertionId,
    how: &Extraction,
    scratch: &mut Scratch,
) -> Result<(Trace, Option<proof::Proof>), String> {
    let assertion = database.assertion(theorem);
    if !assertion.proved {
        return Err("its proof in the database is incomplete".to_owned());
    }
    if !database.allows_unproved()
        && let Some(first) = database.axioms().of(database, [assertion.label()]).unproved.first()
    {
        return Err(check::unproved(first));
    }
    let statement =
        database.source.statement(assertion.label.as_bytes()).ok_or("it has no statement")?;
    let mut builder =
        Builder { database, nodes: Vec::new(), terms: Vec::new(), steps: Vec::new(), failed: None };
    let root = database
        .source
        .verify_one(&mut builder, statement)
        .map_err(|reason| format!("metamath-rs: {reason:?}"))?;
    if let Some(reason) = builder.failed {
        return Err(reason);
    }
    let mut replay = Replay::new(database, theorem);
    let mut texts = Texts::new(database, &replay.board);
    let mut trace = Trace {
        theorem: Theorem {
            name: assertion.label().to_owned(),
            statement: database.statement(theorem),
            ..Theorem::default()
        },
        steps: Vec::new(),
    };
    // Which step of the original proof proves an open goal.
    let mut proves: FxHashMap<GoalId, Item> = FxHashMap::default();
    proves.insert(replay.board.conclusion, root);
    while let Some((goal, _)) = replay.board.first(replay.state) {
        if trace.steps.len() == how.longest {
            return Err(format!("its linear proof has more than {} steps", how.longest));
        }
        let Some(Item::Step(index)) = proves.get(&goal).copied() else {
            return Err("the proof does not say how to prove a goal".to_owned());
        };
        let Original { assertion: id, children } = &builder.steps[index as usize];
        let tactic = builder.tactic(*id, children);
        let mut text = String::new();
        tactic::write(database, &tactic, &mut text);
        let read = tactic::parse(database, scratch, &text, replay.board.at)?;
        if read != tactic {
            return Err(format!("`{text}` does not read as it was written"));
        }
        trace.steps.push(Step {
            state: texts.state(database, &replay.board, replay.state),
            tactic: text,
            ..Step::default()
        });
        replay.apply(database, &read)?;
        let proofs = database.assertion(*id).mandatory.iter().zip(children);
        let proofs = proofs
            .filter(|(mandatory, _)| matches!(mandatory, Mandatory::Essential(_)))
            .map(|(_, child)| *child);
        for (child, item) in replay.board.children.iter().zip(proofs) {
            proves.insert(*child, item);
        }
    }
    let proof = how.recheck.then(|| proof::compress(database, &replay));
    Ok((trace, proof))
}

/// An entry of the verifier's stack.
#[derive(Clone, Copy, Debug)]
enum Item {
    /// A term.
    Term(u32),
    /// A hypothesis of the theorem.
    Hypothesis,
    /// A step of the logic.
    Step(u32),
    /// Something that the kernel does not understand.
    Unknown,
}

struct Original {
    assertion: AssertionId,
    /// In the order of the assertion's mandatory hypotheses.
    children: Vec<Item>,
}

/// Collects the steps of a proof while metamath-rs verifies it.
struct Builder<'d> {
    database: &'d Database,
    nodes: Vec<u32>,
    terms: Vec<Range<usize>>,
    steps: Vec<Original>,
    failed: Option<String>,
}

impl Builder<'_> {
    fn term(&self, item: Item) -> Range<usize> {
        if let Item::Term(term) = item { self.terms[term as usize].clone() } else { 0..0 }
    }

    fn add_term(&mut self, from: usize) -> Item {
        self.terms.push(from..self.nodes.len());
        Item::Term(self.terms.len() as u32 - 1)
    }

    /// The tactic of a step: what its open slots stand for.
    fn tactic(&self, id: AssertionId, children: &[Item]) -> Tactic {
        let assertion = self.database.assertion(id);
        let mut given = Given::default();
        for open in &assertion.open {
            let place = assertion.mandatory.iter().position(|m| *m == Mandatory::Floating(*open));
            let from = given.nodes.len() as u32;
            if let Some(place) = place {
                given.nodes.extend_from_slice(&self.nodes[self.term(children[place])]);
            }
            given.spans.push((from, given.nodes.len() as u32));
        }
        Tactic { assertion: id, given }
    }
}

impl ProofBuilder for Builder<'_> {
    type Item = Item;
    type Accum = Vec<Item>;

    fn push(&mut self, hyps: &mut Vec<Item>, hyp: Item) {
        hyps.push(hyp);
    }

    fn build(
        &mut self,
        address: StatementAddress,
        children: Vec<Item>,
        _: &[u8],
        _: Range<usize>,
    ) -> Item {
        let database = self.database;
        let from = self.nodes.len();
        match &database.meaning[database.ordinal(address) as usize] {
            Meaning::Variable(node) => {
                self.nodes.push(*node);
                self.add_term(from)
            }
            Meaning::Syntax(node) => {
                self.nodes.push(*node);
                let order = &database.nodes.kinds[*node as usize].order;
                for child in 0..order.len() as u32 {
                    let place = order.iter().position(|c| *c == child).unwrap_or(0);
                    self.nodes.extend_from_within(self.term(children[place]));
                }
                self.add_term(from)
            }
            Meaning::Abbreviation(pattern) => {
                for node in pattern {
                    if node & SLOT == 0 {
                        self.nodes.push(*node);
                    } else {
                        self.nodes.extend_from_within(self.term(children[(node & !SLOT) as usize]));
                    }
                }
                self.add_term(from)
            }
            Meaning::Essential => Item::Hypothesis,
            Meaning::Logical(assertion) => {
                self.steps.push(Original { assertion: *assertion, children });
                Item::Step(self.steps.len() as u32 - 1)
            }
            Meaning::Unsupported | Meaning::Nothing => {
                let label = database.source.statement_by_address(address).label();
                let label = String::from_utf8_lossy(label);
                self.failed.get_or_insert_with(|| {
                    format!("its proof uses `{label}`, which the kernel does not understand")
                });
                Item::Unknown
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proof::Proof;

    #[test]
    fn a_proof_that_metamath_rs_refuses_is_named_and_the_others_are_not() {
        let database = Database::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toy.mm"))
            .expect("the toy is consistent");
        let proof = |labels: &[&str], letters: &str| Proof {
            labels: labels.iter().map(|label| (*label).into()).collect(),
            letters: letters.to_owned(),
            dummies: Vec::new(),
        };
        let theorem = |label: &str| database.theorem(label).expect("a theorem");
        let good = (theorem("syl2"), proof(&["syl"], "ABCEDF"));
        assert_eq!(database.refused(std::slice::from_ref(&good)), []);
        let bad = (theorem("3syl"), proof(&["syl"], "ABCEDF"));
        let refused = database.refused(&[good, bad]);
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].0 == "3syl" && refused[0].1.contains("metamath-rs"), "{refused:?}");
    }
}
