//! A Metamath database, opened, verified and turned into terms.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use catamount_base::Content;
use rustc_hash::FxHashMap;

use crate::assertion::{Assertion, AssertionId};
use crate::axioms::Axioms;
use crate::grammar::{Chart, Grammar, Token, Unparsed};
use crate::term::Nodes;
use crate::{Error, load, source};

/// What a statement means to a proof.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Meaning {
    /// Nothing a proof can refer to.
    Nothing,
    /// A variable.
    Variable(u32),
    /// A syntax axiom.
    Syntax(u32),
    /// A syntax theorem: a pattern over its floating hypotheses, in their order.
    Abbreviation(Box<[u32]>),
    /// An assertion of the logic.
    Logical(AssertionId),
    /// An essential hypothesis.
    Essential,
    /// A statement that the kernel does not understand.
    Unsupported,
}

/// A statement that the kernel does not understand, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsupported {
    /// The label of the statement.
    pub label: String,
    /// Why it cannot be used.
    pub reason: String,
    /// Whether it is a theorem of the logic, rather than an axiom or a piece of syntax.
    pub theorem: bool,
}

/// A Metamath database: its assertions as terms, and metamath-rs's own view of it for the final
/// checks.
#[derive(Debug)]
pub struct Database {
    pub(crate) path: PathBuf,
    /// Of the file and of what it includes.
    pub(crate) content: Content,
    pub(crate) source: metamath_rs::Database,
    pub(crate) symbols: FxHashMap<Box<str>, u32>,
    /// The variables of a symbol; more than one only where scopes redeclare it.
    pub(crate) variables: FxHashMap<u32, Vec<u32>>,
    pub(crate) nodes: Nodes,
    pub(crate) grammar: Grammar,
    /// The typecodes a formula's body may have, the likeliest first.
    pub(crate) bodies: Vec<u32>,
    /// The typecodes that make formulas, each with its head node.
    pub(crate) logical: Vec<(u32, u32)>,
    pub(crate) assertions: Vec<Assertion>,
    pub(crate) labels: FxHashMap<Box<str>, AssertionId>,
    /// By statement, in database order.
    pub(crate) meaning: Vec<Meaning>,
    /// The place of the first statement of each segment.
    pub(crate) bases: FxHashMap<u32, u32>,
    pub(crate) unsupported: Vec<Unsupported>,
    pub(crate) allows_unproved: bool,
    /// Made when it is first asked for.
    pub(crate) axioms: OnceLock<Axioms>,
}

impl Database {
    /// Opens a `.mm` file: parses it, verifies every proof in it with metamath-rs, and parses its
    /// formulas.
    ///
    /// A file that is missing, truncated or inconsistent is an error that names the file and the
    /// position.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        Self::from_text(path, read(path)?)
    }

    /// The [`Database::content`] of a file, without verifying anything in it.
    pub fn content_of(path: impl AsRef<Path>) -> Result<Content, Error> {
        let path = path.as_ref();
        source::content_of(path, read(path)?)
    }

    /// Opens a database held in memory; `path` is for messages, and for files it includes.
    pub fn from_text(path: impl AsRef<Path>, text: Vec<u8>) -> Result<Self, Error> {
        let path = path.as_ref();
        let source = source::verified(path, text)?;
        Ok(load::load(path, source))
    }

    /// The same database, in which a proof may rest on theorems that have no proof of their own
    /// (`$= ? $.`). Verdicts still name them. Without this such a proof is refused, and no trace is
    /// made of it: whoever may leave a lemma unproved can prove anything.
    pub fn allowing_unproved(self, allowed: bool) -> Self {
        Database { allows_unproved: allowed, ..self }
    }

    /// Whether proofs may rest on theorems that have no proof of their own.
    pub fn allows_unproved(&self) -> bool {
        self.allows_unproved
    }

    /// What every assertion rests on.
    pub(crate) fn axioms(&self) -> &Axioms {
        self.axioms.get_or_init(|| Axioms::new(self))
    }

    /// What it is, wherever it lies: the hash of its text, included files and all.
    pub fn content(&self) -> &Content {
        &self.content
    }

    /// The file it was opened from.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The logical assertions (axioms, definitions, theorems), in database order.
    pub fn assertions(&self) -> &[Assertion] {
        &self.assertions
    }

    /// The assertion of a name.
    pub fn find(&self, label: &str) -> Option<AssertionId> {
        self.labels.get(label).copied()
    }

    /// The assertion of an id.
    pub fn assertion(&self, id: AssertionId) -> &Assertion {
        &self.assertions[id.0 as usize]
    }

    /// The theorem of a name; an axiom is none.
    pub fn theorem(&self, label: &str) -> Result<AssertionId, Error> {
        let unknown = |hint: &str| Error::UnknownTheorem {
            label: label.to_owned(),
            path: self.path.clone(),
            hint: hint.to_owned(),
        };
        match self.find(label) {
            Some(id) if self.assertion(id).axiom => {
                Err(unknown(": it is an axiom, which has no proof"))
            }
            Some(id) => Ok(id),
            None if self.not_understood(label).is_some() => {
                Err(unknown(" that the kernel understands: its statement does not parse"))
            }
            None => Err(unknown("; names are case-sensitive labels of $p statements")),
        }
    }

    /// The theorems (statements with a proof), in database order.
    pub fn theorems(&self) -> impl Iterator<Item = AssertionId> + '_ {
        self.assertions
            .iter()
            .enumerate()
            .filter(|(_, a)| !a.axiom)
            .map(|(i, _)| AssertionId(i as u32))
    }

    /// Statements that the kernel does not understand; it neither uses nor proves them.
    pub fn unsupported(&self) -> &[Unsupported] {
        &self.unsupported
    }

    /// The statement of a label, if it is one that the kernel does not understand.
    pub(crate) fn not_understood(&self, label: &str) -> Option<&Unsupported> {
        self.unsupported.iter().find(|unsupported| unsupported.label == label)
    }

    /// A statement as text: the root state of its proof (the grammar is on the front page).
    pub fn statement(&self, id: AssertionId) -> String {
        let assertion = self.assertion(id);
        let mut out = String::new();
        for essential in &assertion.essentials {
            self.write_formula("$e", &assertion.concrete(essential), &mut out);
        }
        self.write_formula("$p", &assertion.concrete(&assertion.conclusion), &mut out);
        out
    }

    /// Refuses a statement, as a claim or a pool gives it, that is not this theorem's in all but
    /// white space; an empty one says nothing.
    pub(crate) fn agrees(&self, id: AssertionId, statement: &str) -> Result<(), String> {
        let own = self.statement(id);
        if statement.trim().is_empty()
            || statement.split_ascii_whitespace().eq(own.split_ascii_whitespace())
        {
            return Ok(());
        }
        Err(format!(
            "the database states `{}` as `{own}`, not as `{}`",
            self.assertion(id).label(),
            clip(statement)
        ))
    }

    /// Appends a marker and a formula. The typecode is written only where the database has more
    /// than one that could stand there.
    pub(crate) fn write_formula(&self, marker: &str, formula: &[u32], out: &mut String) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(marker);
        out.push(' ');
        let shown = if self.logical.len() == 1 { &formula[1..] } else { formula };
        self.nodes.write(shown, out);
    }

    /// The place of a statement in the database.
    pub(crate) fn ordinal(&self, address: metamath_rs::statement::StatementAddress) -> u32 {
        let statement = self.source.statement_by_address(address);
        self.bases[&statement.segment().id.0] + statement.index() as u32
    }

    /// The variable that a symbol names at a place of the database.
    pub(crate) fn variable(&self, symbol: u32, at: u32) -> Option<u32> {
        let active = |node: &u32| {
            let kind = &self.nodes.kinds[*node as usize];
            kind.ordinal < at && at < kind.until
        };
        self.variables.get(&symbol)?.iter().copied().find(active)
    }

    /// Parses symbols, as they would be read at a place of the database, as a term of a typecode.
    pub(crate) fn parse_term(
        &self,
        scratch: &mut Scratch,
        symbols: &[&str],
        typecode: u32,
        at: u32,
        out: &mut Vec<u32>,
    ) -> Result<(), String> {
        scratch.tokens.clear();
        for name in symbols {
            let symbol = *self
                .symbols
                .get(*name)
                .ok_or_else(|| format!("unknown symbol `{}`", clip(name)))?;
            let token = match self.variable(symbol, at) {
                Some(node) => {
                    Token::Leaf { typecode: self.nodes.kinds[node as usize].typecode, node }
                }
                None if self.variables.contains_key(&symbol) => {
                    return Err(format!("the variable `{name}` is not active here"));
                }
                None => Token::Constant(symbol),
            };
            scratch.tokens.push(token);
        }
        let from = out.len();
        self.grammar.parse(&mut scratch.chart, &scratch.tokens, &[typecode], out).map_err(
            |unparsed| match unparsed {
                Unparsed::At(position) => match symbols.get(position) {
                    Some(symbol) => format!(
                        "no {} goes on with `{symbol}` as its symbol {}",
                        self.symbol(typecode),
                        position + 1
                    ),
                    None => {
                        format!("the symbols do not end where a {} ends", self.symbol(typecode))
                    }
                },
                Unparsed::TooMuchWork => "the term takes too long to parse".to_owned(),
            },
        )?;
        match out[from..].iter().find(|node| self.nodes.kinds[**node as usize].ordinal >= at) {
            Some(&node) => Err(format!(
                "`{}` is only introduced later in the database",
                self.nodes.kinds[node as usize].label
            )),
            None => Ok(()),
        }
    }

    /// The name of a symbol; for messages only, as it searches.
    pub(crate) fn symbol(&self, symbol: u32) -> &str {
        self.symbols.iter().find(|(_, s)| **s == symbol).map_or("?", |(name, _)| name)
    }
}

/// Working memory for parsing, to be reused.
#[derive(Default)]
pub(crate) struct Scratch {
    tokens: Vec<Token>,
    chart: Chart,
}

fn read(path: &Path) -> Result<Vec<u8>, Error> {
    std::fs::read(path).map_err(|reason| Error::Unreadable { path: path.to_path_buf(), reason })
}

/// The beginning of a text that may be a megabyte long, for messages.
pub(crate) fn clip(text: &str) -> &str {
    let end = text.char_indices().nth(60).map_or(text.len(), |(at, _)| at);
    &text[..end]
}
