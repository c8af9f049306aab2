//! Reading, strictly.

use std::hash::Hash;

use serde::Deserialize;

use super::{
    AFTER_ZERO, Binder, BinderInfo, Constructor, Declaration, Expr, Family, Head, Hints,
    InductiveType, Level, Name, Recursor, Table, Terms,
};

/// How large terms may be.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub bytes: usize,
    /// Expressions, each counted once however often it is used.
    pub exprs: usize,
    /// Of expressions and of levels within each other.
    pub depth: u32,
    /// Of a number that is written out.
    pub digits: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits { bytes: 64 << 20, exprs: 1_000_000, depth: 20_000, digits: 10_000 }
    }
}

/// Lean itself gives up beyond this.
const MOST_VARIABLE: u32 = 1 << 19;
/// Levels within each other: a kernel goes through all their combinations.
const LEVEL_DEPTH: u32 = 256;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    meta: Option<serde_json::Value>,
    #[serde(rename = "in")]
    name_number: Option<u32>,
    #[serde(rename = "il")]
    level_number: Option<u32>,
    #[serde(rename = "ie")]
    expr_number: Option<u32>,
    str: Option<TextName>,
    num: Option<NumberName>,
    succ: Option<u32>,
    max: Option<(u32, u32)>,
    imax: Option<(u32, u32)>,
    param: Option<u32>,
    bvar: Option<u32>,
    sort: Option<u32>,
    #[serde(rename = "const")]
    constant: Option<ConstantLine>,
    app: Option<ApplyLine>,
    lam: Option<BinderLine>,
    #[serde(rename = "forallE")]
    forall: Option<BinderLine>,
    #[serde(rename = "letE")]
    let_: Option<LetLine>,
    proj: Option<ProjectLine>,
    #[serde(rename = "natVal")]
    natural: Option<String>,
    #[serde(rename = "strVal")]
    text: Option<String>,
    axiom: Option<AxiomLine>,
    thm: Option<TheoremLine>,
    def: Option<DefinitionLine>,
    opaque: Option<OpaqueLine>,
    quot: Option<QuotientLine>,
    inductive: Option<FamilyLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TextName {
    pre: u32,
    str: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NumberName {
    pre: u32,
    i: u64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ConstantLine {
    name: u32,
    us: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ApplyLine {
    #[serde(rename = "fn")]
    function: u32,
    arg: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BinderLine {
    name: u32,
    #[serde(rename = "type")]
    domain: u32,
    body: u32,
    #[serde(rename = "binderInfo")]
    info: BinderInfoLine,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum BinderInfoLine {
    Default,
    Implicit,
    StrictImplicit,
    InstImplicit,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LetLine {
    name: u32,
    #[serde(rename = "type")]
    domain: u32,
    value: u32,
    body: u32,
    nondep: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ProjectLine {
    type_name: u32,
    idx: u32,
    #[serde(rename = "struct")]
    of: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct AxiomLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    is_unsafe: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TheoremLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    value: u32,
    all: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct DefinitionLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    value: u32,
    hints: HintsLine,
    safety: Safety,
    all: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum HintsLine {
    Opaque,
    Abbrev,
    Regular(u32),
}

/// `unsafe` and `partial` definitions say nothing that a proof could use.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
enum Safety {
    Safe,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct OpaqueLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    value: u32,
    is_unsafe: bool,
    all: Vec<u32>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct QuotientLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    kind: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct FamilyLine {
    types: Vec<TypeLine>,
    ctors: Vec<ConstructorLine>,
    recs: Vec<RecursorLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct TypeLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    num_params: u32,
    num_indices: u32,
    all: Vec<u32>,
    ctors: Vec<u32>,
    num_nested: u32,
    is_rec: bool,
    is_unsafe: bool,
    is_reflexive: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct ConstructorLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    induct: u32,
    cidx: u32,
    num_params: u32,
    num_fields: u32,
    is_unsafe: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RecursorLine {
    name: u32,
    level_params: Vec<u32>,
    #[serde(rename = "type")]
    type_: u32,
    all: Vec<u32>,
    num_params: u32,
    num_indices: u32,
    num_motives: u32,
    num_minors: u32,
    rules: Vec<RuleLine>,
    k: bool,
    is_unsafe: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleLine {
    ctor: u32,
    nfields: u32,
    rhs: u32,
}

impl Terms {
    /// Reads a whole file; the error names the line.
    pub fn read(text: &str, limits: &Limits) -> Result<Terms, String> {
        if text.len() > limits.bytes {
            return Err(format!("{} bytes, more than {}", text.len(), limits.bytes));
        }
        let mut reader = Reader { limits: *limits, ..Reader::default() };
        for (at, line) in text.lines().enumerate() {
            reader.line(line).map_err(|why| format!("line {}: {why}", at + 1))?;
        }
        Ok(reader.terms)
    }
}

/// What is known of the terms so far.
#[derive(Default)]
struct Reader {
    terms: Terms,
    limits: Limits,
    level_depth: Vec<u32>,
    /// By expression: how deep it is, and the variables it leaves open.
    depth: Vec<u32>,
    open: Vec<u32>,
    declared: std::collections::HashSet<u32>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let line: Line = serde_json::from_str(line).map_err(|e| e.to_string())?;
        let numbers = (line.name_number, line.level_number, line.expr_number);
        let mut records = 0;
        let mut one = || records += 1;
        let mut done: Result<(), String> = Ok(());
        let mut put = |result: Result<(), String>| {
            one();
            if done.is_ok() {
                done = result;
            }
        };
        // A line is one record: it is counted, and whatever else it holds is refused below.
        if line.meta.is_some() {
            put(only(numbers, (None, None, None)));
        }
        if let Some(name) = line.str {
            put(self.name(numbers, Name::Text(name.pre, name.str)));
        }
        if let Some(name) = line.num {
            put(self.name(numbers, Name::Number(name.pre, name.i)));
        }
        let levels = [
            line.succ.map(Level::Succ),
            line.max.map(|(a, b)| Level::Max(a, b)),
            line.imax.map(|(a, b)| Level::Imax(a, b)),
            line.param.map(Level::Param),
        ];
        for level in levels.into_iter().flatten() {
            put(self.level(numbers, level));
        }
        let binder = |b: BinderLine| Binder {
            name: b.name,
            domain: b.domain,
            body: b.body,
            info: match b.info {
                BinderInfoLine::Default => BinderInfo::Default,
                BinderInfoLine::Implicit => BinderInfo::Implicit,
                BinderInfoLine::StrictImplicit => BinderInfo::StrictImplicit,
                BinderInfoLine::InstImplicit => BinderInfo::InstImplicit,
            },
        };
        let exprs = [
            line.bvar.map(Expr::Variable),
            line.sort.map(Expr::Sort),
            line.constant.map(|c| Expr::Constant { name: c.name, levels: c.us }),
            line.app.map(|a| Expr::Apply(a.function, a.arg)),
            line.lam.map(|b| Expr::Lambda(binder(b))),
            line.forall.map(|b| Expr::Forall(binder(b))),
            line.proj.map(|p| Expr::Project { structure: p.type_name, field: p.idx, of: p.of }),
            line.natural.map(Expr::Natural),
            line.text.map(Expr::Text),
        ];
        for expr in exprs.into_iter().flatten() {
            put(self.expr(numbers, expr));
        }
        if let Some(l) = line.let_ {
            let expr = Expr::Let { name: l.name, domain: l.domain, value: l.value, body: l.body };
            put(if l.nondep {
                Err("`nondep` must be false".into())
            } else {
                self.expr(numbers, expr)
            });
        }
        let declarations = [
            line.axiom.map(axiom),
            line.thm.map(theorem),
            line.def.map(definition),
            line.opaque.map(opaque),
            line.quot.map(quotient),
            line.inductive.map(family),
        ];
        for declaration in declarations.into_iter().flatten() {
            put(only(numbers, (None, None, None))
                .and(declaration)
                .and_then(|d| self.declaration(d)));
        }
        done?;
        if records == 1 { Ok(()) } else { Err("not one record".into()) }
    }

    fn name(&mut self, numbers: Numbers, name: Name) -> Result<(), String> {
        let next = self.terms.names.items.len() as u32 + AFTER_ZERO;
        only(numbers, (Some(next), None, None))?;
        let (Name::Text(before, _) | Name::Number(before, _)) = &name;
        backwards(*before, next)?;
        once(&mut self.terms.names, name, AFTER_ZERO)
    }

    fn level(&mut self, numbers: Numbers, level: Level) -> Result<(), String> {
        let next = self.terms.levels.items.len() as u32 + AFTER_ZERO;
        only(numbers, (None, Some(next), None))?;
        let depth_of = |l: u32| match l.checked_sub(1) {
            None => 0,
            Some(at) => self.level_depth[at as usize],
        };
        let depth = match level {
            Level::Succ(a) => backwards(a, next).map(|()| depth_of(a))?,
            Level::Max(a, b) | Level::Imax(a, b) => {
                backwards(a, next)?;
                backwards(b, next)?;
                depth_of(a).max(depth_of(b))
            }
            Level::Param(n) => {
                self.known_name(n)?;
                0
            }
        } + 1;
        if depth > LEVEL_DEPTH {
            return Err(format!("levels more than {LEVEL_DEPTH} deep"));
        }
        self.level_depth.push(depth);
        once(&mut self.terms.levels, level, AFTER_ZERO)
    }

    fn expr(&mut self, numbers: Numbers, expr: Expr) -> Result<(), String> {
        let next = self.terms.exprs.items.len();
        only(numbers, (None, None, Some(next as u32)))?;
        if next >= self.limits.exprs {
            return Err(format!("more than {} expressions", self.limits.exprs));
        }
        let levels = self.terms.levels.items.len() as u32 + AFTER_ZERO;
        let part = |e: u32| -> Result<(u32, u32), String> {
            backwards(e, next as u32)?;
            Ok((self.depth[e as usize], self.open[e as usize]))
        };
        let under = |open: u32| open.saturating_sub(1);
        let (depth, open) = match &expr {
            Expr::Variable(i) if *i >= MOST_VARIABLE => return Err(format!("variable {i}")),
            Expr::Variable(i) => (0, i + 1),
            Expr::Sort(l) => backwards(*l, levels).map(|()| (0, 0))?,
            Expr::Constant { name, levels: us } => {
                self.known_name(*name)?;
                us.iter().try_for_each(|l| backwards(*l, levels))?;
                (0, 0)
            }
            Expr::Apply(f, a) => {
                let (f, a) = (part(*f)?, part(*a)?);
                (f.0.max(a.0), f.1.max(a.1))
            }
            Expr::Lambda(b) | Expr::Forall(b) => {
                self.known_name(b.name)?;
                let (domain, body) = (part(b.domain)?, part(b.body)?);
                (domain.0.max(body.0), domain.1.max(under(body.1)))
            }
            Expr::Let { name, domain, value, body } => {
                self.known_name(*name)?;
                let (domain, value, body) = (part(*domain)?, part(*value)?, part(*body)?);
                (domain.0.max(value.0).max(body.0), domain.1.max(value.1).max(under(body.1)))
            }
            Expr::Project { structure, of, .. } => {
                self.known_name(*structure)?;
                part(*of)?
            }
            Expr::Natural(digits) => {
                let canonical = !digits.is_empty()
                    && digits.bytes().all(|b| b.is_ascii_digit())
                    && (digits == "0" || !digits.starts_with('0'));
                if !canonical || digits.len() > self.limits.digits {
                    return Err("not a number in decimal, or one that is too long".into());
                }
                (0, 0)
            }
            Expr::Text(_) => (0, 0),
        };
        if depth + 1 > self.limits.depth {
            return Err(format!("expressions more than {} deep", self.limits.depth));
        }
        self.depth.push(depth + 1);
        self.open.push(open);
        once(&mut self.terms.exprs, expr, 0)
    }

    fn known_name(&self, name: u32) -> Result<(), String> {
        backwards(name, self.terms.names.items.len() as u32 + AFTER_ZERO)
    }

    fn closed(&self, expr: u32) -> Result<(), String> {
        backwards(expr, self.terms.exprs.items.len() as u32)?;
        if self.open[expr as usize] == 0 {
            Ok(())
        } else {
            Err("a variable that nothing binds".into())
        }
    }

    fn head(&mut self, head: &Head) -> Result<(), String> {
        if head.name == 0 {
            return Err("a declaration without a name".into());
        }
        self.known_name(head.name)?;
        head.levels.iter().try_for_each(|n| self.known_name(*n))?;
        self.closed(head.type_)?;
        if !self.declared.insert(head.name) {
            return Err(format!("{} is declared twice", self.terms.name_text(head.name)));
        }
        Ok(())
    }

    fn declaration(&mut self, declaration: Declaration) -> Result<(), String> {
        match &declaration {
            Declaration::Axiom(head) | Declaration::Quotient(head, _) => self.head(head)?,
            Declaration::Theorem(head, value)
            | Declaration::Definition(head, value, _)
            | Declaration::Opaque(head, value) => {
                self.head(head)?;
                self.closed(*value)?;
            }
            Declaration::Inductive(family) => self.family(family)?,
        }
        self.terms.declarations.push(declaration);
        Ok(())
    }

    fn family(&mut self, family: &Family) -> Result<(), String> {
        let names: Vec<u32> = family.types.iter().map(|t| t.head.name).collect();
        let constructors: Vec<u32> = family.constructors.iter().map(|c| c.head.name).collect();
        if names.is_empty() {
            return Err("a family without types".into());
        }
        for inductive in &family.types {
            self.head(&inductive.head)?;
            if inductive.all != names {
                return Err("`all` is not the family".into());
            }
        }
        let listed: Vec<u32> =
            family.types.iter().flat_map(|t| t.constructors.iter().copied()).collect();
        if listed != constructors {
            return Err("the constructors are not those that the types name".into());
        }
        for constructor in &family.constructors {
            self.head(&constructor.head)?;
            if !names.contains(&constructor.of) {
                return Err("a constructor of another family".into());
            }
        }
        for recursor in &family.recursors {
            self.head(&recursor.head)?;
            for (constructor, _, value) in &recursor.rules {
                self.known_name(*constructor)?;
                self.closed(*value)?;
            }
            recursor.all.iter().try_for_each(|n| self.known_name(*n))?;
        }
        Ok(())
    }
}

type Numbers = (Option<u32>, Option<u32>, Option<u32>);

/// The record must carry the number that comes next, and no other.
fn only(found: Numbers, expected: Numbers) -> Result<(), String> {
    if found == expected { Ok(()) } else { Err("not the number that comes next".into()) }
}

fn backwards(number: u32, next: u32) -> Result<(), String> {
    if number < next { Ok(()) } else { Err(format!("{number} does not exist yet")) }
}

fn once<T: Clone + Eq + Hash>(table: &mut Table<T>, item: T, first: u32) -> Result<(), String> {
    let before = table.items.len();
    table.add(item, first);
    if table.items.len() > before { Ok(()) } else { Err("the same record once more".into()) }
}

fn safe(is_unsafe: bool) -> Result<(), String> {
    if is_unsafe { Err("an unsafe declaration".into()) } else { Ok(()) }
}

fn alone(name: u32, all: &[u32]) -> Result<(), String> {
    if all == [name] { Ok(()) } else { Err("`all` must be the declaration itself".into()) }
}

fn axiom(line: AxiomLine) -> Result<Declaration, String> {
    safe(line.is_unsafe)?;
    let head = Head { name: line.name, levels: line.level_params, type_: line.type_ };
    Ok(Declaration::Axiom(head))
}

fn theorem(line: TheoremLine) -> Result<Declaration, String> {
    alone(line.name, &line.all)?;
    let head = Head { name: line.name, levels: line.level_params, type_: line.type_ };
    Ok(Declaration::Theorem(head, line.value))
}

fn definition(line: DefinitionLine) -> Result<Declaration, String> {
    alone(line.name, &line.all)?;
    let Safety::Safe = line.safety;
    let head = Head { name: line.name, levels: line.level_params, type_: line.type_ };
    let hints = match line.hints {
        HintsLine::Opaque => Hints::Opaque,
        HintsLine::Abbrev => Hints::Abbrev,
        HintsLine::Regular(height) => Hints::Regular(height),
    };
    Ok(Declaration::Definition(head, line.value, hints))
}

fn opaque(line: OpaqueLine) -> Result<Declaration, String> {
    alone(line.name, &line.all)?;
    safe(line.is_unsafe)?;
    let head = Head { name: line.name, levels: line.level_params, type_: line.type_ };
    Ok(Declaration::Opaque(head, line.value))
}

fn quotient(line: QuotientLine) -> Result<Declaration, String> {
    if !["type", "ctor", "lift", "ind"].contains(&line.kind.as_str()) {
        return Err("an unknown kind of quotient".into());
    }
    let head = Head { name: line.name, levels: line.level_params, type_: line.type_ };
    Ok(Declaration::Quotient(head, line.kind))
}

fn family(line: FamilyLine) -> Result<Declaration, String> {
    let mut family = Family { types: vec![], constructors: vec![], recursors: vec![] };
    for t in line.types {
        safe(t.is_unsafe)?;
        family.types.push(InductiveType {
            head: Head { name: t.name, levels: t.level_params, type_: t.type_ },
            parameters: t.num_params,
            indices: t.num_indices,
            all: t.all,
            constructors: t.ctors,
            nested: t.num_nested,
            recursive: t.is_rec,
            reflexive: t.is_reflexive,
        });
    }
    for c in line.ctors {
        safe(c.is_unsafe)?;
        family.constructors.push(Constructor {
            head: Head { name: c.name, levels: c.level_params, type_: c.type_ },
            of: c.induct,
            index: c.cidx,
            parameters: c.num_params,
            fields: c.num_fields,
        });
    }
    for r in line.recs {
        safe(r.is_unsafe)?;
        family.recursors.push(Recursor {
            head: Head { name: r.name, levels: r.level_params, type_: r.type_ },
            all: r.all,
            parameters: r.num_params,
            indices: r.num_indices,
            motives: r.num_motives,
            minors: r.num_minors,
            rules: r.rules.iter().map(|r| (r.ctor, r.nfields, r.rhs)).collect(),
            k: r.k,
        });
    }
    Ok(Declaration::Inductive(family))
}
