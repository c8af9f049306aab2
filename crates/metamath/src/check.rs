//! The final word on a proof: metamath-rs's verifier, on text.
//!
//! The kernel's replay only serves to write the proof down. What is verified is a small database of
//! the statements that the proof names, written out from metamath-rs's own reading of the original
//! (labels, formulas, frames; none of the kernel's terms), each before the theorem in the
//! original's order, with the theorem last. Earlier assertions stand in it as axioms: the whole
//! original was verified when it was opened. Should the kernel be wrong, the verifier refuses.

use std::collections::BTreeSet;
use std::fmt::Write;

use catamount_base::guarded;
use metamath_rs::StatementType;
use metamath_rs::scopeck::Hyp;
use metamath_rs::statement::{NO_STATEMENT, StatementRef};
use rustc_hash::FxHashSet;

use crate::assertion::AssertionId;
use crate::axioms::RestsOn;
use crate::database::Database;
use crate::proof::{self, Proof};
use crate::replay::Replay;
use crate::source;

/// Replays tactics, writes the proof down and has metamath-rs verify it; says what it rests on.
///
/// A proof that rests on a theorem which the database itself leaves unproved is refused, however
/// deep below it that theorem lies, unless the database was opened to allow it.
pub(crate) fn check(
    database: &Database,
    theorem: AssertionId,
    tactics: &[String],
) -> Result<(Proof, RestsOn), String> {
    let replay = Replay::run(database, theorem, tactics)?;
    let proof = proof::compress(database, &replay);
    verify(database, theorem, &proof)?;
    let rests_on = database.axioms().of(database, proof.labels.iter().map(|label| &**label));
    match rests_on.unproved.first() {
        Some(first) if !database.allows_unproved() => Err(unproved(first)),
        _ => Ok((proof, rests_on)),
    }
}

/// Why a proof that rests on this theorem is none.
pub(crate) fn unproved(theorem: &str) -> String {
    format!("it rests on `{theorem}`, which has no complete proof in the database")
}

/// Has metamath-rs verify a proof of a theorem, with nothing but what stands before it in the
/// database.
pub(crate) fn verify(
    database: &Database,
    theorem: AssertionId,
    proof: &Proof,
) -> Result<(), String> {
    let label = database.assertion(theorem).label();
    let text = excerpt(database, label, proof)?;
    let verified = guarded(|| {
        let source = source::verify(label.to_owned(), text.into_bytes());
        if let Some(complaints) = source::complaints(&source) {
            return Err(format!("metamath-rs refuses the proof: {}", complaints.first));
        }
        same_frame(database, &source, label)?;
        let statement = source
            .statement(label.as_bytes())
            .ok_or("the theorem is missing from its own check")?;
        source
            .verify_one(&mut (), statement)
            .map_err(|reason| format!("metamath-rs refuses the proof: {reason:?}"))
    });
    verified.unwrap_or_else(|_| Err("metamath-rs gave up on the proof".to_owned()))
}

/// The theorem verified must be the theorem asked for: the same formula, hypotheses and conditions.
fn same_frame(
    database: &Database,
    checked: &metamath_rs::Database,
    label: &str,
) -> Result<(), String> {
    match (Stated::read(&database.source, label), Stated::read(checked, label)) {
        (Some(asked), Some(seen)) if asked == seen => Ok(()),
        _ => Err(format!("the check did not see `{label}` as the database states it")),
    }
}

/// What an assertion says, by metamath-rs's reading.
#[derive(PartialEq, Eq)]
struct Stated {
    /// The mandatory hypotheses, then the conclusion.
    formulas: Vec<String>,
    /// The mandatory distinct-variable conditions.
    distinct: BTreeSet<(String, String)>,
}

impl Stated {
    fn read(source: &metamath_rs::Database, label: &str) -> Option<Self> {
        let frame = source.scope_result().get(label.as_bytes())?;
        let mut formulas: Vec<String> = frame
            .hypotheses
            .iter()
            .map(|hypothesis| math(&source.statement_by_address(hypothesis.address())))
            .collect();
        formulas.push(math(&source.statement(label.as_bytes())?));
        let name = |variable: usize| {
            metamath_rs::as_str(source.name_result().atom_name(frame.var_list[variable])).to_owned()
        };
        let pair = |&(a, b): &(usize, usize)| (name(a).min(name(b)), name(a).max(name(b)));
        Some(Stated { formulas, distinct: frame.mandatory_dv.iter().map(pair).collect() })
    }
}

fn math(statement: &StatementRef<'_>) -> String {
    let mut out = String::new();
    for at in 0..statement.math_len() {
        if at > 0 {
            out.push(' ');
        }
        out.push_str(metamath_rs::as_str(statement.math_at(at).slice));
    }
    out
}

/// What goes into an excerpt.
struct Excerpt<'d> {
    source: &'d metamath_rs::Database,
    constants: FxHashSet<&'d str>,
    variables: FxHashSet<&'d str>,
    /// The `$f` statements that hold to the end of the database.
    global: Vec<StatementRef<'d>>,
    hypotheses: usize,
}

/// The excerpt as text: the statements in the order of the original. A `$f` statement that the
/// original keeps in a scope stands inside the block of each assertion that needs it, as the same
/// variable may be declared anew later.
fn excerpt(database: &Database, label: &str, proof: &Proof) -> Result<String, String> {
    let source = &database.source;
    let find = |label: &str| {
        source.statement(label.as_bytes()).ok_or_else(|| format!("no statement `{label}`"))
    };
    let order =
        |a: &StatementRef<'_>, b: &StatementRef<'_>| source.cmp_address(&a.address(), &b.address());
    let theorem = find(label)?;
    let (mut used, mut dummies) = (Vec::new(), Vec::new());
    for name in &proof.labels {
        let statement = find(name)?;
        if !order(&statement, &theorem).is_lt() {
            return Err(format!("`{name}` does not come before `{label}`"));
        }
        match statement.statement_type() {
            StatementType::Floating => dummies.push(statement),
            StatementType::Axiom | StatementType::Provable => used.push(statement),
            _ => return Err(format!("`{name}` is not a statement that a proof can use")),
        }
    }
    used.sort_by(order);
    let (constants, variables) = Default::default();
    let mut excerpt = Excerpt { source, constants, variables, global: Vec::new(), hypotheses: 0 };
    let mut blocks = Vec::with_capacity(used.len() + 1);
    for statement in used {
        blocks.push((statement, excerpt.block(&statement, None)?));
    }
    blocks.push((theorem, excerpt.block(&theorem, Some((&dummies, proof)))?));
    let Excerpt { constants, variables, mut global, .. } = excerpt;
    global.sort_by(order);
    global.dedup_by_key(|statement| statement.address());
    let mut text = format!("$c {} $.\n", sorted(constants));
    if !variables.is_empty() {
        _ = writeln!(text, "$v {} $.", sorted(variables));
    }
    let mut global = global.iter().peekable();
    for (statement, block) in blocks {
        while let Some(floating) = global.next_if(|floating| order(floating, &statement).is_lt()) {
            _ = writeln!(
                text,
                "{} $f {} $.",
                metamath_rs::as_str(floating.label()),
                math(floating)
            );
        }
        text.push_str(&block);
    }
    Ok(text)
}

fn sorted(symbols: FxHashSet<&str>) -> String {
    let mut symbols: Vec<&str> = symbols.into_iter().collect();
    symbols.sort_unstable();
    symbols.join(" ")
}

/// The `$d` pairs that make a theorem's dummies distinct from every other variable. Every pair
/// holds a variable that is not mandatory, so none of them changes what the theorem says.
pub(crate) fn distinct_dummies<'d>(
    source: &'d metamath_rs::Database,
    theorem: StatementRef<'d>,
    dummies: &[&'d str],
) -> Result<Vec<(&'d str, &'d str)>, String> {
    let frame = source.scope_result().get(theorem.label()).ok_or("the theorem has no frame")?;
    let names = source.name_result();
    let mandatory: Vec<&str> =
        frame.mandatory_vars().iter().map(|v| metamath_rs::as_str(names.atom_name(*v))).collect();
    if let Some(variable) = dummies.iter().find(|dummy| mandatory.contains(dummy)) {
        return Err(format!("`{variable}` is a variable of the theorem and cannot be a dummy"));
    }
    let mut pairs = Vec::new();
    for (index, dummy) in dummies.iter().enumerate() {
        pairs.extend(mandatory.iter().chain(&dummies[..index]).map(|other| (*dummy, *other)));
    }
    Ok(pairs)
}

impl<'d> Excerpt<'d> {
    /// A label that the original does not have. Two assertions may share a hypothesis, which the
    /// excerpt then repeats, and each copy needs a label of its own; a compressed proof does not
    /// name them.
    fn fresh(&mut self) -> String {
        loop {
            self.hypotheses += 1;
            let fresh = format!("hyp.{}", self.hypotheses);
            if self.source.statement(fresh.as_bytes()).is_none() {
                return fresh;
            }
        }
    }

    /// Takes in a `$f` statement: into the block if it has a scope, else among those for all. A
    /// dummy's is named by the proof.
    fn floating(
        &mut self,
        statement: &StatementRef<'d>,
        dummy: bool,
        block: &mut String,
    ) -> Result<(), String> {
        let label = metamath_rs::as_str(statement.label());
        let frame = self
            .source
            .scope_result()
            .get(statement.label())
            .ok_or_else(|| format!("`{label}` has no scope"))?;
        let symbol = |at| metamath_rs::as_str(statement.math_at(at).slice);
        self.constants.insert(symbol(0));
        self.variables.insert(symbol(1));
        if frame.valid.end == NO_STATEMENT {
            self.global.push(*statement);
        } else {
            let label = if dummy { label.to_owned() } else { self.fresh() };
            _ = writeln!(block, "{label} $f {} $.", math(statement));
        }
        Ok(())
    }

    /// Writes out a formula and notes its constants.
    fn formula(&mut self, statement: &StatementRef<'d>, variables: &[&str]) -> String {
        for at in 0..statement.math_len() {
            let symbol = metamath_rs::as_str(statement.math_at(at).slice);
            if !variables.contains(&symbol) {
                self.constants.insert(symbol);
            }
        }
        math(statement)
    }

    /// An assertion with its frame: as an axiom, or with its dummies and a proof.
    fn block(
        &mut self,
        statement: &StatementRef<'d>,
        proof: Option<(&[StatementRef<'d>], &Proof)>,
    ) -> Result<String, String> {
        let source = self.source;
        let label = metamath_rs::as_str(statement.label());
        let frame = source
            .scope_result()
            .get(statement.label())
            .ok_or_else(|| format!("`{label}` has no frame"))?;
        let variable = |index: usize| {
            metamath_rs::as_str(source.name_result().atom_name(frame.var_list[index]))
        };
        let variables: Vec<&str> = (0..frame.mandatory_count).map(variable).collect();
        let mut out = String::from("${\n");
        if let Some((dummies, _)) = proof {
            dummies.iter().try_for_each(|dummy| self.floating(dummy, true, &mut out))?;
            let names: Vec<&str> =
                dummies.iter().map(|dummy| metamath_rs::as_str(dummy.math_at(1).slice)).collect();
            for (a, b) in distinct_dummies(source, *statement, &names)? {
                _ = writeln!(out, "$d {a} {b} $.");
            }
        }
        for &(a, b) in &frame.mandatory_dv {
            _ = writeln!(out, "$d {} {} $.", variable(a), variable(b));
        }
        for hypothesis in &frame.hypotheses {
            let given = source.statement_by_address(hypothesis.address());
            match hypothesis {
                Hyp::Floating(..) => self.floating(&given, false, &mut out)?,
                Hyp::Essential(..) => {
                    let fresh = self.fresh();
                    _ = writeln!(out, "{fresh} $e {} $.", self.formula(&given, &variables));
                }
            }
        }
        let conclusion = self.formula(statement, &variables);
        match proof {
            None => _ = writeln!(out, "{label} $a {conclusion} $.\n$}}"),
            Some((_, proof)) => {
                _ = writeln!(out, "{label} $p {conclusion} $={} $.\n$}}", proof.text(2))
            }
        }
        Ok(out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The verdict on a proof of `syl2` written by hand: the kernel has no part in it.
    fn verdict(labels: &[&str], letters: &str) -> Result<(), String> {
        let database = Database::open(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/toy.mm"))
            .expect("the toy is consistent");
        let labels = labels.iter().map(|label| (*label).into()).collect();
        let proof = Proof { labels, letters: letters.to_owned(), dummies: Vec::new() };
        verify(&database, database.theorem("syl2").expect("a theorem"), &proof)
    }

    #[test]
    fn the_verifier_judges_alone() {
        assert_eq!(verdict(&["syl"], "ABCEDF"), Ok(()));
        for (labels, letters) in [
            (&["syl"][..], "ABCDEF"),
            (&["syl"], "ABCED"),
            (&["syl"], "ABCEDFG"),
            (&["syl"], ""),
            (&["syl"], "?"),
            (&["a1i"], "ABCEDF"),
            (&["wnn"], "ABCEDF"),
            (&["none"], "ABCEDF"),
        ] {
            assert!(verdict(labels, letters).is_err(), "{labels:?} {letters}");
        }
        // Itself and a later theorem that says the same of more.
        for later in ["syl2", "3syl"] {
            assert!(verdict(&[later], "ABCEDF").unwrap_err().contains("does not come before"));
        }
    }
}
