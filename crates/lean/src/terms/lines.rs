//! The lines of the format: what may stand in one, and the record it makes.

use serde::Deserialize;

use super::{
    Binder, BinderInfo, Constructor, Declaration, Expr, Family, Head, Hints, InductiveType, Level,
    Name, Recursor,
};

/// What a line says.
pub(super) enum Record {
    /// Who wrote the file: of no consequence.
    Meta,
    Name(Name),
    Level(Level),
    Expr(Expr),
    Declaration(Declaration),
}

/// The numbers that a line gives its name, level or expression.
pub(super) type Numbers = (Option<u32>, Option<u32>, Option<u32>);

/// Reads a line, which is one record and nothing else.
pub(super) fn record(line: &str) -> Result<(Numbers, Record), String> {
    let line: Line = serde_json::from_str(line).map_err(|e| e.to_string())?;
    Ok(((line.name_number, line.level_number, line.expr_number), line.record()?))
}

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

impl Line {
    fn record(self) -> Result<Record, String> {
        let mut found: Vec<Record> = self.meta.map(|_| Record::Meta).into_iter().collect();
        let names = [
            self.str.map(|n| Name::Text(n.pre, n.str)),
            self.num.map(|n| Name::Number(n.pre, n.i)),
        ];
        found.extend(names.into_iter().flatten().map(Record::Name));
        let levels = [
            self.succ.map(Level::Succ),
            self.max.map(|(a, b)| Level::Max(a, b)),
            self.imax.map(|(a, b)| Level::Imax(a, b)),
            self.param.map(Level::Param),
        ];
        found.extend(levels.into_iter().flatten().map(Record::Level));
        let exprs = [
            self.bvar.map(Expr::Variable),
            self.sort.map(Expr::Sort),
            self.constant.map(|c| Expr::Constant { name: c.name, levels: c.us }),
            self.app.map(|a| Expr::Apply(a.function, a.arg)),
            self.lam.map(|b| Expr::Lambda(b.into())),
            self.forall.map(|b| Expr::Forall(b.into())),
            self.let_.map(let_).transpose()?,
            self.proj.map(|p| Expr::Project { structure: p.type_name, field: p.idx, of: p.of }),
            self.natural.map(Expr::Natural),
            self.text.map(Expr::Text),
        ];
        found.extend(exprs.into_iter().flatten().map(Record::Expr));
        let declarations = [
            self.axiom.map(axiom),
            self.thm.map(theorem),
            self.def.map(definition),
            self.opaque.map(opaque),
            self.quot.map(quotient),
            self.inductive.map(family),
        ];
        for declaration in declarations.into_iter().flatten() {
            found.push(Record::Declaration(declaration?));
        }
        match (found.pop(), found.is_empty()) {
            (Some(record), true) => Ok(record),
            _ => Err("not one record".into()),
        }
    }
}

impl From<BinderLine> for Binder {
    fn from(line: BinderLine) -> Binder {
        let info = match line.info {
            BinderInfoLine::Default => BinderInfo::Default,
            BinderInfoLine::Implicit => BinderInfo::Implicit,
            BinderInfoLine::StrictImplicit => BinderInfo::StrictImplicit,
            BinderInfoLine::InstImplicit => BinderInfo::InstImplicit,
        };
        Binder { name: line.name, domain: line.domain, body: line.body, info }
    }
}

fn let_(line: LetLine) -> Result<Expr, String> {
    if line.nondep {
        return Err("`nondep` must be false".into());
    }
    Ok(Expr::Let { name: line.name, domain: line.domain, value: line.value, body: line.body })
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
