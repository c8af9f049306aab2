//! The final word on a proof: metamath-rs's verifier, on text.
//!
//! The kernel's replay only serves to write the proof down. What is verified is a small database of the statements that the
//! proof names, written out from metamath-rs's own reading of the original (labels, formulas, frames; none of the kernel's
//! terms), each before the theorem in the original's order, with the theorem last. Earlier assertions stand in it as axioms:
//! the whole original was verified when it was opened. Should the kernel be wrong, the verifier refuses.

use std::fmt::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};

use metamath_rs::scopeck::{Frame, Hyp};
use metamath_rs::statement::{StatementAddress, StatementRef};
use rustc_hash::{FxHashMap, FxHashSet};

use crate::assertion::AssertionId;
use crate::database::Database;
use crate::proof::{self, Proof};
use crate::replay::Replay;
use crate::{export, source};

/// Replays tactics, writes the proof down and has metamath-rs verify it.
pub(crate) fn check(database: &Database, theorem: AssertionId, tactics: &[String]) -> Result<Proof, String> {
    let replay = Replay::run(database, theorem, tactics)?;
    let proof = proof::compress(database, &replay);
    verify(database, theorem, &proof)?;
    Ok(proof)
}

/// Has metamath-rs verify a proof of a theorem, with nothing but what stands before it in the database.
pub(crate) fn verify(database: &Database, theorem: AssertionId, proof: &Proof) -> Result<(), String> {
    let label = database.assertion(theorem).label();
    let (text, name) = match excerpt(database, label, proof)? {
        Some(text) => (text, "excerpt"),
        None => (export::replaced(database, &[(theorem, proof)]).map_err(|e| e.to_string())?, "database"),
    };
    let verified = catch_unwind(AssertUnwindSafe(|| {
        let source = source::verify(name.to_owned(), text.into_bytes());
        let errors = source::errors(&source);
        if let Some(first) = errors.first() {
            return Err(format!("metamath-rs refuses the proof: {first}"));
        }
        same_frame(database, &source, label)?;
        let statement = source.statement(label.as_bytes()).ok_or("the theorem is missing from its own check")?;
        source.verify_one(&mut (), statement).map_err(|reason| format!("metamath-rs refuses the proof: {reason:?}"))
    }));
    verified.unwrap_or_else(|_| Err("metamath-rs gave up on the proof".to_owned()))
}

/// The theorem verified must be the theorem asked for: the same formula, hypotheses and conditions.
fn same_frame(database: &Database, checked: &metamath_rs::Database, label: &str) -> Result<(), String> {
    let differs = || format!("the check did not see `{label}` as the database states it");
    let describe = |source: &metamath_rs::Database| -> Option<(Vec<String>, Vec<(String, String)>)> {
        let frame = source.scope_result().get(label.as_bytes())?;
        let name =
            |variable: usize| String::from_utf8_lossy(source.name_result().atom_name(frame.var_list[variable])).into_owned();
        let mut formulas: Vec<String> =
            frame.hypotheses.iter().map(|hypothesis| math(&source.statement_by_address(hypothesis.address()))).collect();
        formulas.push(math(&source.statement(label.as_bytes())?));
        let mut distinct: Vec<(String, String)> = frame
            .mandatory_dv
            .iter()
            .map(|&(a, b)| if name(a) < name(b) { (name(a), name(b)) } else { (name(b), name(a)) })
            .collect();
        distinct.sort();
        distinct.dedup();
        Some((formulas, distinct))
    };
    let (asked, seen) = (describe(&database.source).ok_or_else(differs)?, describe(checked).ok_or_else(differs)?);
    if asked == seen { Ok(()) } else { Err(differs()) }
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
    /// The `$f` statements needed, and the variable each declares.
    floating: FxHashMap<StatementAddress, &'d str>,
}

/// The excerpt as text; `None` where a variable has two declarations, which no excerpt without the original's scopes can hold.
fn excerpt(database: &Database, label: &str, proof: &Proof) -> Result<Option<String>, String> {
    let source = &database.source;
    let find = |label: &str| source.statement(label.as_bytes()).ok_or_else(|| format!("no statement `{label}`"));
    let before = |a: StatementAddress, b: StatementAddress| source.cmp_address(&a, &b).is_lt();
    let theorem = find(label)?;
    let mut used = Vec::new();
    let mut excerpt = Excerpt { source, constants: FxHashSet::default(), floating: FxHashMap::default() };
    for name in &proof.labels {
        let statement = find(name)?;
        if !before(statement.address(), theorem.address()) {
            return Err(format!("`{name}` does not come before `{label}`"));
        }
        if statement.is_assertion() {
            used.push(statement);
        } else if statement.statement_type() == metamath_rs::StatementType::Floating {
            excerpt.floating(&statement);
        } else {
            return Err(format!("`{name}` is no statement that a proof can use"));
        }
    }
    used.sort_by(|a, b| source.cmp_address(&a.address(), &b.address()));
    let dummies: Vec<&str> = proof
        .labels
        .iter()
        .filter_map(|name| source.statement(name.as_bytes()))
        .filter_map(|statement| excerpt.floating.get(&statement.address()).copied())
        .collect();
    let mut body = String::new();
    let mut hypothesis = 0;
    for statement in &used {
        excerpt.block(statement, &mut body, &mut hypothesis, None)?;
    }
    let conditions = distinct_dummies(source, theorem, &dummies)?;
    excerpt.block(&theorem, &mut body, &mut hypothesis, Some((conditions, proof)))?;
    let mut floating: Vec<(StatementAddress, &str)> = excerpt.floating.iter().map(|(a, v)| (*a, *v)).collect();
    floating.sort_by(|a, b| source.cmp_address(&a.0, &b.0));
    let variables: FxHashSet<&str> = floating.iter().map(|(_, variable)| *variable).collect();
    if variables.len() < floating.len() || variables.iter().any(|v| excerpt.constants.contains(v)) {
        return Ok(None);
    }
    let mut text = String::with_capacity(body.len() + 1024);
    let list = |keyword: &str, mut symbols: Vec<&str>, text: &mut String| {
        symbols.sort_unstable();
        if !symbols.is_empty() {
            _ = writeln!(text, "{keyword} {} $.", symbols.join(" "));
        }
    };
    list("$c", excerpt.constants.iter().copied().collect(), &mut text);
    list("$v", variables.into_iter().collect(), &mut text);
    for (address, _) in floating {
        let statement = source.statement_by_address(address);
        _ = writeln!(text, "{} $f {} $.", metamath_rs::as_str(statement.label()), math(&statement));
    }
    text.push_str(&body);
    Ok(Some(text))
}

/// The `$d` pairs that make a theorem's dummies distinct from every other variable. Every pair holds a variable that is not
/// mandatory, so none of them changes what the theorem says.
pub(crate) fn distinct_dummies<'d>(
    source: &'d metamath_rs::Database,
    theorem: StatementRef<'d>,
    dummies: &[&'d str],
) -> Result<Vec<(&'d str, &'d str)>, String> {
    let frame = source.scope_result().get(theorem.label()).ok_or("the theorem has no frame")?;
    let names = source.name_result();
    let mandatory: Vec<&str> = frame.mandatory_vars().iter().map(|v| metamath_rs::as_str(names.atom_name(*v))).collect();
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
    fn floating(&mut self, statement: &StatementRef<'d>) {
        let symbol = |at| metamath_rs::as_str(statement.math_at(at).slice);
        self.constants.insert(symbol(0));
        self.floating.insert(statement.address(), symbol(1));
    }

    /// Writes an assertion with its frame: as an axiom, or with conditions on dummies and a proof.
    fn block(
        &mut self,
        statement: &StatementRef<'d>,
        out: &mut String,
        hypothesis: &mut usize,
        proof: Option<(Vec<(&str, &str)>, &Proof)>,
    ) -> Result<(), String> {
        let source = self.source;
        let label = metamath_rs::as_str(statement.label());
        let frame: &'d Frame = source.scope_result().get(statement.label()).ok_or_else(|| format!("`{label}` has no frame"))?;
        let variable = |index: usize| metamath_rs::as_str(source.name_result().atom_name(frame.var_list[index]));
        let variables: Vec<&str> = (0..frame.mandatory_count).map(variable).collect();
        let formula = |statement: &StatementRef<'d>, constants: &mut FxHashSet<&'d str>| {
            for at in 0..statement.math_len() {
                let symbol = metamath_rs::as_str(statement.math_at(at).slice);
                if !variables.contains(&symbol) {
                    constants.insert(symbol);
                }
            }
            math(statement)
        };
        out.push_str("${\n");
        for &(a, b) in &frame.mandatory_dv {
            _ = writeln!(out, "$d {} {} $.", variable(a), variable(b));
        }
        for hyp in &frame.hypotheses {
            let given = source.statement_by_address(hyp.address());
            match hyp {
                Hyp::Floating(..) => self.floating(&given),
                Hyp::Essential(..) => {
                    // Two assertions may share a hypothesis, which the excerpt repeats: each copy needs a label of its own.
                    let fresh = loop {
                        *hypothesis += 1;
                        let fresh = format!("hyp.{hypothesis}");
                        if source.statement(fresh.as_bytes()).is_none() {
                            break fresh;
                        }
                    };
                    _ = writeln!(out, "{fresh} $e {} $.", formula(&given, &mut self.constants));
                }
            }
        }
        let conclusion = formula(statement, &mut self.constants);
        match proof {
            None => _ = writeln!(out, "{label} $a {conclusion} $.\n$}}"),
            Some((conditions, proof)) => {
                for (a, b) in conditions {
                    _ = writeln!(out, "$d {a} {b} $.");
                }
                _ = writeln!(out, "{label} $p {conclusion} $={} $.\n$}}", proof.text(2));
            }
        }
        Ok(())
    }
}
