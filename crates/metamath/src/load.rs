//! From metamath-rs's statements to terms.

use std::path::Path;
use std::sync::OnceLock;

use metamath_rs::scopeck::{Frame, Hyp};
use metamath_rs::statement::{StatementRef, StatementType};
use rayon::prelude::*;
use rustc_hash::FxHashMap;

use crate::assertion::{Assertion, AssertionId, Mandatory, SLOT};
use crate::axioms;
use crate::database::{Database, Meaning, Unsupported};
use crate::grammar::{Chart, Element, Grammar, Token};
use crate::source::content;
use crate::term::{Node, Nodes};

/// Builds the tables of a verified database.
pub(crate) fn load(path: &Path, source: metamath_rs::Database) -> Database {
    let mut database = Database {
        path: path.to_path_buf(),
        content: content(&source),
        source,
        symbols: FxHashMap::default(),
        variables: FxHashMap::default(),
        nodes: Nodes::default(),
        grammar: Grammar::new(),
        bodies: Vec::new(),
        logical: Vec::new(),
        assertions: Vec::new(),
        labels: FxHashMap::default(),
        meaning: Vec::new(),
        bases: FxHashMap::default(),
        unsupported: Vec::new(),
        allows_unproved: false,
        axioms: OnceLock::new(),
    };
    // The tables are filled while the statements are read, so the source is taken out for the
    // while; its clone shares all data.
    let source = database.source.clone();
    let statements: Vec<StatementRef<'_>> = source.statements().collect();
    for (ordinal, statement) in statements.iter().enumerate() {
        database
            .bases
            .entry(statement.segment().id.0)
            .or_insert(ordinal as u32 - statement.index() as u32);
    }
    database.meaning = vec![Meaning::Nothing; statements.len()];
    variables(&mut database, &source, &statements);
    rules(&mut database, &source, &statements);
    assertions(&mut database, &source, &statements);
    database
}

/// The symbols of a formula: the typecode first.
fn symbols<'a>(statement: &StatementRef<'a>) -> impl Iterator<Item = &'a str> + use<'a> {
    let statement = *statement;
    (0..statement.math_len()).map(move |at| metamath_rs::as_str(statement.math_at(at).slice))
}

fn intern(database: &mut Database, symbol: &str) -> u32 {
    if let Some(&known) = database.symbols.get(symbol) {
        return known;
    }
    let new = database.symbols.len() as u32;
    database.symbols.insert(symbol.into(), new);
    new
}

/// Every symbol gets a number, and every `$f` statement a node.
fn variables(
    database: &mut Database,
    source: &metamath_rs::Database,
    statements: &[StatementRef<'_>],
) {
    let scopes = source.scope_result();
    for (ordinal, statement) in statements.iter().enumerate() {
        match statement.statement_type() {
            StatementType::Constant | StatementType::Variable => {
                symbols(statement).for_each(|symbol| _ = intern(database, symbol));
            }
            StatementType::Floating => {
                let Some(frame) = scopes.get(statement.label()) else { continue };
                let mut parts = symbols(statement);
                let (Some(typecode), Some(name)) = (parts.next(), parts.next()) else { continue };
                let (typecode, symbol) = (intern(database, typecode), intern(database, name));
                let range = frame.valid;
                let until = if range.end == metamath_rs::statement::NO_STATEMENT {
                    u32::MAX
                } else {
                    database.bases[&statement.segment().id.0] + range.end as u32
                };
                let node = database.nodes.push(Node {
                    label: metamath_rs::as_str(statement.label()).into(),
                    typecode,
                    arity: 0,
                    pieces: [name.into()].into(),
                    order: [].into(),
                    ordinal: ordinal as u32,
                    until,
                });
                database.variables.entry(symbol).or_default().push(node);
                database.meaning[ordinal] = Meaning::Variable(node);
                if !database.bodies.contains(&typecode) {
                    database.bodies.push(typecode);
                }
            }
            _ => {}
        }
    }
    let logical = logical(statements);
    database.bodies.retain(|typecode| {
        !logical.iter().any(|name| database.symbols.get(*name) == Some(typecode))
    });
    database.nodes.variables = database.nodes.kinds.len() as u32;
    // By custom formulas are about wffs; that is only a preference, for the other typecodes are
    // tried too. It may have no variables at all, as in quantum logic.
    if let Some(wff) = database.symbols.get("wff").copied() {
        database.bodies.retain(|typecode| *typecode != wff);
        database.bodies.insert(0, wff);
    }
}

/// The typecodes that say something, though a variable is declared with one: `|-`, and those that
/// hypotheses have more often than variables. Were they taken to build terms, a single such
/// variable would leave the whole database without theorems.
fn logical<'a>(statements: &[StatementRef<'a>]) -> Vec<&'a str> {
    let mut counts: FxHashMap<&str, (usize, usize)> = FxHashMap::default();
    for statement in statements {
        let Some(typecode) = symbols(statement).next() else { continue };
        match statement.statement_type() {
            StatementType::Floating => counts.entry(typecode).or_default().0 += 1,
            StatementType::Essential => counts.entry(typecode).or_default().1 += 1,
            _ => {}
        }
    }
    let says = |(typecode, (variables, hypotheses)): (&'a str, (usize, usize))| {
        (typecode == "|-" || hypotheses > variables).then_some(typecode)
    };
    counts.into_iter().filter_map(says).collect()
}

/// Every syntax axiom becomes a rule of the grammar.
fn rules(database: &mut Database, source: &metamath_rs::Database, statements: &[StatementRef<'_>]) {
    for (ordinal, statement) in statements.iter().enumerate() {
        if !statement.is_assertion() {
            continue;
        }
        let Some(typecode) = symbols(statement).next().map(|t| intern(database, t)) else {
            continue;
        };
        if !database.bodies.contains(&typecode) {
            if !database.logical.iter().any(|(t, _)| *t == typecode) {
                let head = symbols(statement).next().unwrap_or_default();
                let node = database.nodes.push(Node {
                    label: head.into(),
                    typecode,
                    arity: 1,
                    pieces: [head.into(), "".into()].into(),
                    order: [0].into(),
                    ordinal: 0,
                    until: u32::MAX,
                });
                database.logical.push((typecode, node));
            }
            continue;
        }
        if statement.statement_type() != StatementType::Axiom {
            continue;
        }
        database.meaning[ordinal] =
            match rule(database, source, statement, typecode, ordinal as u32) {
                Ok(node) => Meaning::Syntax(node),
                Err(reason) => unsupported(database, statement, reason),
            };
    }
}

fn unsupported(
    database: &mut Database,
    statement: &StatementRef<'_>,
    reason: impl Into<String>,
) -> Meaning {
    let label = metamath_rs::as_str(statement.label()).to_owned();
    let typecode = symbols(statement).next().and_then(|typecode| database.symbols.get(typecode));
    let theorem = statement.statement_type() == StatementType::Provable
        && typecode.is_none_or(|t| !database.bodies.contains(t));
    database.unsupported.push(Unsupported { label, reason: reason.into(), theorem });
    Meaning::Unsupported
}

fn rule(
    database: &mut Database,
    source: &metamath_rs::Database,
    statement: &StatementRef<'_>,
    typecode: u32,
    ordinal: u32,
) -> Result<u32, &'static str> {
    let frame = source.scope_result().get(statement.label()).ok_or("it has no frame")?;
    if frame.hypotheses.iter().any(|h| matches!(h, Hyp::Essential(..)))
        || !frame.mandatory_dv.is_empty()
    {
        return Err("a syntax axiom with conditions");
    }
    if statement.math_len() < 2 {
        return Err("a syntax axiom without symbols");
    }
    let slots = Slots::new(database, source, frame);
    let (mut elements, mut pieces, mut children) = (Vec::new(), vec![String::new()], Vec::new());
    for name in symbols(statement).skip(1) {
        match slots.token(database, name) {
            Token::Leaf { typecode, node } => {
                let slot = node & !SLOT;
                if children.contains(&slot) {
                    return Err("a syntax axiom with a repeated variable");
                }
                children.push(slot);
                pieces.push(String::new());
                elements.push(Element::Term(typecode));
            }
            Token::Constant(symbol) => {
                let piece = pieces.last_mut().expect("there is always a last piece");
                if !piece.is_empty() {
                    piece.push(' ');
                }
                piece.push_str(name);
                elements.push(Element::Constant(symbol));
            }
        }
    }
    if children.len() > usize::from(u8::MAX) {
        return Err("a syntax axiom with too many variables");
    }
    if elements == [Element::Term(typecode)] {
        return Err("a syntax axiom that says nothing");
    }
    let order = slots
        .order(frame)
        .iter()
        .map(|slot| children.iter().position(|c| c == slot).unwrap_or(0) as u32)
        .collect();
    let node = database.nodes.push(Node {
        label: metamath_rs::as_str(statement.label()).into(),
        typecode,
        arity: children.len() as u32,
        pieces: pieces.into_iter().map(Into::into).collect(),
        order,
        ordinal,
        until: u32::MAX,
    });
    database.grammar.add(&elements, typecode, node);
    Ok(node)
}

/// The mandatory variables of a frame.
struct Slots {
    /// Per slot: the symbol, its typecode, the node of its `$f` statement.
    slots: Vec<(u32, u32, u32)>,
}

impl Slots {
    fn new(database: &Database, source: &metamath_rs::Database, frame: &Frame) -> Self {
        let names = source.name_result();
        let mut slots = vec![(0, 0, 0); frame.mandatory_count];
        for hypothesis in &frame.hypotheses {
            if let Hyp::Floating(address, slot, _) = *hypothesis
                && let Meaning::Variable(node) =
                    database.meaning[database.ordinal(address) as usize]
            {
                let name = metamath_rs::as_str(names.atom_name(frame.var_list[slot]));
                slots[slot] =
                    (database.symbols[name], database.nodes.kinds[node as usize].typecode, node);
            }
        }
        Slots { slots }
    }

    /// How a symbol reads in the scope of the frame.
    fn token(&self, database: &Database, name: &str) -> Token {
        let symbol = database.symbols[name];
        match self.slots.iter().position(|s| s.0 == symbol) {
            Some(slot) => Token::Leaf { typecode: self.slots[slot].1, node: SLOT | slot as u32 },
            None => Token::Constant(symbol),
        }
    }

    /// The slots in the order of the floating hypotheses.
    fn order(&self, frame: &Frame) -> Vec<u32> {
        let floating =
            |h: &Hyp| if let Hyp::Floating(_, slot, _) = h { Some(*slot as u32) } else { None };
        frame.hypotheses.iter().filter_map(floating).collect()
    }
}

enum Loaded {
    Logical(Assertion),
    Abbreviation(Box<[u32]>),
    Refused(String),
}

/// Every other assertion is parsed, in parallel.
fn assertions(
    database: &mut Database,
    source: &metamath_rs::Database,
    statements: &[StatementRef<'_>],
) {
    let todo: Vec<usize> = (0..statements.len())
        .filter(|&i| statements[i].is_assertion() && database.meaning[i] == Meaning::Nothing)
        .collect();
    let shared = &*database;
    let loaded: Vec<Loaded> = todo
        .par_iter()
        .map_init(Chart::default, |chart, &ordinal| {
            assertion(shared, source, &statements[ordinal], ordinal as u32, chart)
                .unwrap_or_else(Loaded::Refused)
        })
        .collect();
    for (ordinal, loaded) in todo.into_iter().zip(loaded) {
        database.meaning[ordinal] = match loaded {
            Loaded::Abbreviation(pattern) => Meaning::Abbreviation(pattern),
            Loaded::Refused(reason) => unsupported(database, &statements[ordinal], reason),
            Loaded::Logical(assertion) => {
                let id = AssertionId(database.assertions.len() as u32);
                database.labels.insert(assertion.label.clone(), id);
                database.assertions.push(assertion);
                Meaning::Logical(id)
            }
        };
    }
    for (ordinal, statement) in statements.iter().enumerate() {
        if statement.statement_type() == StatementType::Essential {
            database.meaning[ordinal] = Meaning::Essential;
        }
    }
}

fn assertion(
    database: &Database,
    source: &metamath_rs::Database,
    statement: &StatementRef<'_>,
    ordinal: u32,
    chart: &mut Chart,
) -> Result<Loaded, String> {
    let frame = source.scope_result().get(statement.label()).ok_or("it has no frame")?;
    let slots = Slots::new(database, source, frame);
    let mut tokens = Vec::new();
    let mut formula =
        |chart: &mut Chart, statement: &StatementRef<'_>| -> Result<Box<[u32]>, String> {
            tokens.clear();
            tokens.extend(symbols(statement).skip(1).map(|name| slots.token(database, name)));
            let typecode = symbols(statement)
                .next()
                .and_then(|t| database.symbols.get(t).copied())
                .ok_or("it has no typecode")?;
            let head = database.logical.iter().find(|(t, _)| *t == typecode).map(|(_, node)| *node);
            let mut out: Vec<u32> = head.into_iter().collect();
            let wanted = if head.is_some() { &database.bodies[..] } else { &[typecode][..] };
            let parsed = database.grammar.parse(chart, &tokens, wanted, &mut out);
            parsed.map_err(|_| {
                format!(
                    "the grammar does not parse `{}`",
                    symbols(statement).collect::<Vec<_>>().join(" ")
                )
            })?;
            Ok(out.into())
        };
    let conclusion = formula(chart, statement)?;
    let (mut essentials, mut mandatory) = (Vec::new(), Vec::new());
    for hypothesis in &frame.hypotheses {
        match *hypothesis {
            Hyp::Floating(_, slot, _) => mandatory.push(Mandatory::Floating(slot as u16)),
            Hyp::Essential(address, _) => {
                mandatory.push(Mandatory::Essential(essentials.len() as u16));
                essentials.push(formula(chart, &source.statement_by_address(address))?);
            }
        }
    }
    let typecode = symbols(statement).next().and_then(|t| database.symbols.get(t).copied());
    if typecode.is_some_and(|t| database.bodies.contains(&t)) {
        if !essentials.is_empty() || !frame.mandatory_dv.is_empty() {
            return Err("a syntax theorem with conditions".to_owned());
        }
        let order = slots.order(frame);
        let position = |slot: u32| order.iter().position(|s| *s == slot).unwrap_or(0) as u32;
        let renumber =
            |&node: &u32| if node & SLOT != 0 { SLOT | position(node & !SLOT) } else { node };
        return Ok(Loaded::Abbreviation(conclusion.iter().map(renumber).collect()));
    }
    let axiom = statement.statement_type() == StatementType::Axiom;
    let open = (0..slots.slots.len() as u32)
        .filter(|slot| !conclusion.contains(&(SLOT | slot)))
        .map(|slot| slot as u16);
    Ok(Loaded::Logical(Assertion {
        label: metamath_rs::as_str(statement.label()).into(),
        ordinal,
        axiom,
        proved: !axiom && axioms::is_proved(statement),
        slots: slots.slots.iter().map(|s| s.2).collect(),
        typecodes: slots.slots.iter().map(|s| s.1).collect(),
        mandatory: mandatory.into(),
        open: open.collect(),
        distinct: frame.mandatory_dv.iter().map(|&(a, b)| (a as u16, b as u16)).collect(),
        conclusion,
        essentials: essentials.into(),
    }))
}
