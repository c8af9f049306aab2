//! Declarations as data, in the format of lean4export (NDJSON 3.1).
//!
//! What a prover hands over is a claim by somebody who may be hostile. It is read strictly: within
//! bounds, every number the next one, every reference backwards, nothing twice and nothing unknown.
//! So there are no cycles, and what was read can be passed on to a kernel without a second thought.

mod lines;
mod proof;
mod read;
mod write;

use std::collections::{HashMap, HashSet};
use std::hash::Hash;

use serde_json::{Value, json};

pub(crate) use read::Limits;

/// A name; number 0 is the anonymous one.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Name {
    Text(u32, String),
    Number(u32, u64),
}

/// A universe level; number 0 is the level zero.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Level {
    Succ(u32),
    Max(u32, u32),
    Imax(u32, u32),
    Param(u32),
}

/// How an argument is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum BinderInfo {
    Default,
    Implicit,
    StrictImplicit,
    InstImplicit,
}

/// A binder with its body.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Binder {
    pub name: u32,
    pub domain: u32,
    pub body: u32,
    pub info: BinderInfo,
}

/// An expression.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Expr {
    Variable(u32),
    Sort(u32),
    Constant {
        name: u32,
        levels: Vec<u32>,
    },
    Apply(u32, u32),
    Lambda(Binder),
    Forall(Binder),
    Let {
        name: u32,
        domain: u32,
        value: u32,
        body: u32,
    },
    Project {
        structure: u32,
        field: u32,
        of: u32,
    },
    /// A natural number, in decimal.
    Natural(String),
    Text(String),
}

/// What every declaration has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    pub name: u32,
    pub levels: Vec<u32>,
    pub type_: u32,
}

/// How eagerly a definition is unfolded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Hints {
    Opaque,
    Abbrev,
    Regular(u32),
}

/// One declaration.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Declaration {
    Axiom(Head),
    Theorem(Head, u32),
    Definition(Head, u32, Hints),
    Opaque(Head, u32),
    Quotient(Head, String),
    Inductive(Family),
}

/// Inductive types that are declared together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Family {
    pub types: Vec<InductiveType>,
    pub constructors: Vec<Constructor>,
    pub recursors: Vec<Recursor>,
}

/// One type of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct InductiveType {
    pub head: Head,
    pub parameters: u32,
    pub indices: u32,
    pub all: Vec<u32>,
    pub constructors: Vec<u32>,
    pub nested: u32,
    pub recursive: bool,
    pub reflexive: bool,
}

/// One constructor of a family.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Constructor {
    pub head: Head,
    pub of: u32,
    pub index: u32,
    pub parameters: u32,
    pub fields: u32,
}

/// One recursor of a family. A kernel makes its own; other readers want to see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Recursor {
    pub head: Head,
    pub all: Vec<u32>,
    pub parameters: u32,
    pub indices: u32,
    pub motives: u32,
    pub minors: u32,
    /// Constructor, number of fields, right-hand side.
    pub rules: Vec<(u32, u32, u32)>,
    pub k: bool,
}

impl Declaration {
    /// The names it declares, the family's types first.
    pub fn names(&self) -> Vec<u32> {
        match self {
            Declaration::Axiom(head)
            | Declaration::Theorem(head, _)
            | Declaration::Definition(head, ..)
            | Declaration::Opaque(head, _)
            | Declaration::Quotient(head, _) => vec![head.name],
            Declaration::Inductive(family) => {
                let types = family.types.iter().map(|t| t.head.name);
                let constructors = family.constructors.iter().map(|c| c.head.name);
                let recursors = family.recursors.iter().map(|r| r.head.name);
                types.chain(constructors).chain(recursors).collect()
            }
        }
    }
}

/// Numbered things, each once.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Table<T: Eq + Hash> {
    items: Vec<T>,
    numbers: HashMap<T, u32>,
}

impl<T: Eq + Hash> Default for Table<T> {
    fn default() -> Self {
        Table { items: Vec::new(), numbers: HashMap::new() }
    }
}

impl<T: Clone + Eq + Hash> Table<T> {
    fn add(&mut self, item: T, first: u32) -> u32 {
        if let Some(&number) = self.numbers.get(&item) {
            return number;
        }
        let number = self.items.len() as u32 + first;
        self.numbers.insert(item.clone(), number);
        self.items.push(item);
        number
    }
}

/// Number of the first name and the first level that is written out.
const AFTER_ZERO: u32 = 1;

/// Declarations, each after everything it uses.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Terms {
    names: Table<Name>,
    levels: Table<Level>,
    exprs: Table<Expr>,
    pub declarations: Vec<Declaration>,
}

impl Terms {
    fn name(&self, number: u32) -> Option<&Name> {
        self.names.items.get((number as usize).checked_sub(1)?)
    }

    /// A name as text, for people.
    pub fn name_text(&self, number: u32) -> String {
        let parts = self.parts(number);
        let part = |v: &Value| v.as_str().map_or_else(|| v.to_string(), str::to_owned);
        parts.iter().map(part).collect::<Vec<_>>().join(".")
    }

    /// A name as the list of its parts, which text would run together.
    pub fn parts(&self, number: u32) -> Vec<Value> {
        let mut parts = Vec::new();
        let mut at = number;
        while let Some(name) = self.name(at) {
            at = match name {
                Name::Text(before, text) => {
                    parts.push(json!(text));
                    *before
                }
                Name::Number(before, number) => {
                    parts.push(json!(number));
                    *before
                }
            };
        }
        parts.reverse();
        parts
    }

    /// Names that are declared here, as parts.
    pub fn declared(&self) -> Vec<Vec<Value>> {
        self.declarations.iter().flat_map(Declaration::names).map(|n| self.parts(n)).collect()
    }

    /// Names that are used here and not declared, as parts.
    pub fn used(&self) -> Vec<Vec<Value>> {
        let own: HashSet<u32> = self.declarations.iter().flat_map(Declaration::names).collect();
        let mut seen = HashSet::new();
        let used = self.exprs.items.iter().filter_map(|e| match e {
            Expr::Constant { name, .. } | Expr::Project { structure: name, .. } => Some(*name),
            _ => None,
        });
        used.filter(|n| !own.contains(n) && seen.insert(*n)).map(|n| self.parts(n)).collect()
    }

    /// The first of these names that is there at all.
    pub fn mentioned<'a>(&self, names: &[&'a str]) -> Option<&'a str> {
        let numbers = 1..=self.names.items.len() as u32;
        names.iter().copied().find(|text| numbers.clone().any(|number| self.reads(number, text)))
    }

    /// Whether a name's text is this one. None is written out for that: names share their
    /// beginnings, and their texts together may be far longer than what was read.
    fn reads(&self, mut number: u32, mut text: &str) -> bool {
        while let Some(name) = self.name(number) {
            let (before, rest) = match name {
                Name::Text(before, part) => (*before, text.strip_suffix(part.as_str())),
                Name::Number(before, n) => (*before, text.strip_suffix(&n.to_string())),
            };
            let Some(rest) = rest else { return false };
            if before == 0 {
                return rest.is_empty();
            }
            let Some(rest) = rest.strip_suffix('.') else { return false };
            (number, text) = (before, rest);
        }
        text.is_empty()
    }

    /// Adds the declarations of `other` after these, in one numbering.
    pub fn append(&mut self, other: &Terms) {
        let mut names = vec![0];
        for name in &other.names.items {
            let name = match name {
                Name::Text(before, text) => Name::Text(names[*before as usize], text.clone()),
                Name::Number(before, n) => Name::Number(names[*before as usize], *n),
            };
            names.push(self.names.add(name, AFTER_ZERO));
        }
        let name = |n: u32| names[n as usize];
        let mut levels = vec![0];
        for level in &other.levels.items {
            let at = |l: u32| levels[l as usize];
            let level = match level {
                Level::Succ(a) => Level::Succ(at(*a)),
                Level::Max(a, b) => Level::Max(at(*a), at(*b)),
                Level::Imax(a, b) => Level::Imax(at(*a), at(*b)),
                Level::Param(n) => Level::Param(name(*n)),
            };
            levels.push(self.levels.add(level, AFTER_ZERO));
        }
        let level = |l: u32| levels[l as usize];
        let mut exprs: Vec<u32> = Vec::new();
        for expr in &other.exprs.items {
            let at = |e: u32| exprs[e as usize];
            let binder = |b: &Binder| Binder {
                name: name(b.name),
                domain: at(b.domain),
                body: at(b.body),
                info: b.info,
            };
            let expr = match expr {
                Expr::Variable(_) | Expr::Natural(_) | Expr::Text(_) => expr.clone(),
                Expr::Sort(l) => Expr::Sort(level(*l)),
                Expr::Constant { name: n, levels } => Expr::Constant {
                    name: name(*n),
                    levels: levels.iter().map(|l| level(*l)).collect(),
                },
                Expr::Apply(f, a) => Expr::Apply(at(*f), at(*a)),
                Expr::Lambda(b) => Expr::Lambda(binder(b)),
                Expr::Forall(b) => Expr::Forall(binder(b)),
                Expr::Let { name: n, domain, value, body } => Expr::Let {
                    name: name(*n),
                    domain: at(*domain),
                    value: at(*value),
                    body: at(*body),
                },
                Expr::Project { structure, field, of } => {
                    Expr::Project { structure: name(*structure), field: *field, of: at(*of) }
                }
            };
            exprs.push(self.exprs.add(expr, 0));
        }
        let expr = |e: u32| exprs[e as usize];
        let all = |ns: &[u32]| ns.iter().map(|n| name(*n)).collect::<Vec<_>>();
        let head =
            |h: &Head| Head { name: name(h.name), levels: all(&h.levels), type_: expr(h.type_) };
        for declaration in &other.declarations {
            self.declarations.push(match declaration {
                Declaration::Axiom(h) => Declaration::Axiom(head(h)),
                Declaration::Theorem(h, v) => Declaration::Theorem(head(h), expr(*v)),
                Declaration::Definition(h, v, hints) => {
                    Declaration::Definition(head(h), expr(*v), *hints)
                }
                Declaration::Opaque(h, v) => Declaration::Opaque(head(h), expr(*v)),
                Declaration::Quotient(h, kind) => Declaration::Quotient(head(h), kind.clone()),
                Declaration::Inductive(family) => Declaration::Inductive(Family {
                    types: family
                        .types
                        .iter()
                        .map(|t| InductiveType {
                            head: head(&t.head),
                            all: all(&t.all),
                            constructors: all(&t.constructors),
                            ..*t
                        })
                        .collect(),
                    constructors: family
                        .constructors
                        .iter()
                        .map(|c| Constructor { head: head(&c.head), of: name(c.of), ..*c })
                        .collect(),
                    recursors: family
                        .recursors
                        .iter()
                        .map(|r| Recursor {
                            head: head(&r.head),
                            all: all(&r.all),
                            rules: r
                                .rules
                                .iter()
                                .map(|(c, n, e)| (name(*c), *n, expr(*e)))
                                .collect(),
                            ..*r
                        })
                        .collect(),
                }),
            });
        }
    }
}
