//! Writing: the published format for other kernels, and a shorter form for the judge.

use serde_json::{Value, json};

use super::{
    Binder, BinderInfo, Constructor, Declaration, Expr, Head, Hints, InductiveType, Level, Name,
    Recursor, Terms,
};

impl Terms {
    /// The whole as lean4export writes it, without the line of metadata.
    pub fn ndjson(&self) -> String {
        let mut out = String::new();
        let mut line = |value: Value| {
            out.push_str(&value.to_string());
            out.push('\n');
        };
        for (at, name) in self.names.items.iter().enumerate() {
            line(match name {
                Name::Text(pre, str) => json!({"str": {"pre": pre, "str": str}, "in": at + 1}),
                Name::Number(pre, i) => json!({"num": {"pre": pre, "i": i}, "in": at + 1}),
            });
        }
        for (at, level) in self.levels.items.iter().enumerate() {
            line(match level {
                Level::Succ(a) => json!({"succ": a, "il": at + 1}),
                Level::Max(a, b) => json!({"max": [a, b], "il": at + 1}),
                Level::Imax(a, b) => json!({"imax": [a, b], "il": at + 1}),
                Level::Param(n) => json!({"param": n, "il": at + 1}),
            });
        }
        for (at, expr) in self.exprs.items.iter().enumerate() {
            line(expr_record(expr, at));
        }
        for declaration in &self.declarations {
            line(declaration_record(declaration));
        }
        out
    }

    /// Names, levels, expressions and declarations as arrays of arrays: what the judge reads.
    ///
    /// None for declarations that it never needs: the quotient type is always imported.
    pub fn for_judge(&self) -> Option<Value> {
        let names: Vec<Value> = self
            .names
            .items
            .iter()
            .map(|n| match n {
                Name::Text(before, text) => json!([before, text]),
                Name::Number(before, number) => json!([before, number]),
            })
            .collect();
        let levels: Vec<Value> = self
            .levels
            .items
            .iter()
            .map(|l| match l {
                Level::Succ(a) => json!([0, a]),
                Level::Max(a, b) => json!([1, a, b]),
                Level::Imax(a, b) => json!([2, a, b]),
                Level::Param(n) => json!([3, n]),
            })
            .collect();
        let exprs: Vec<Value> = self.exprs.items.iter().map(expr_for_judge).collect();
        let declarations =
            self.declarations.iter().map(declaration_for_judge).collect::<Option<Vec<_>>>()?;
        Some(
            json!({"names": names, "levels": levels, "exprs": exprs, "declarations": declarations}),
        )
    }
}

fn binder_number(info: BinderInfo) -> u32 {
    match info {
        BinderInfo::Default => 0,
        BinderInfo::Implicit => 1,
        BinderInfo::StrictImplicit => 2,
        BinderInfo::InstImplicit => 3,
    }
}

fn expr_for_judge(expr: &Expr) -> Value {
    let binder =
        |tag: u32, b: &Binder| json!([tag, b.name, b.domain, b.body, binder_number(b.info)]);
    match expr {
        Expr::Variable(i) => json!([0, i]),
        Expr::Sort(l) => json!([1, l]),
        Expr::Constant { name, levels } => json!([2, name, levels]),
        Expr::Apply(f, a) => json!([3, f, a]),
        Expr::Lambda(b) => binder(4, b),
        Expr::Forall(b) => binder(5, b),
        Expr::Let { name, domain, value, body } => json!([6, name, domain, value, body]),
        Expr::Project { structure, field, of } => json!([7, structure, field, of]),
        Expr::Natural(digits) => json!([8, digits]),
        Expr::Text(text) => json!([9, text]),
    }
}

fn declaration_for_judge(declaration: &Declaration) -> Option<Value> {
    let value = |kind: u32, h: &Head, v: u32| json!([kind, h.name, h.levels, h.type_, v]);
    Some(match declaration {
        Declaration::Axiom(h) => json!([0, h.name, h.levels, h.type_]),
        Declaration::Theorem(h, v) => value(1, h, *v),
        Declaration::Definition(h, v, hints) => {
            // 0 and 1 stand for `opaque` and `abbrev`.
            let hints = match hints {
                Hints::Opaque => 0,
                Hints::Abbrev => 1,
                Hints::Regular(height) => u64::from(*height) + 2,
            };
            json!([2, h.name, h.levels, h.type_, v, hints])
        }
        Declaration::Opaque(h, v) => value(3, h, *v),
        Declaration::Quotient(..) => return None,
        Declaration::Inductive(family) => {
            let first = family.types.first()?;
            let types: Vec<Value> = family
                .types
                .iter()
                .map(|t| {
                    let constructors: Vec<Value> = family
                        .constructors
                        .iter()
                        .filter(|c| c.of == t.head.name)
                        .map(|c| json!([c.head.name, c.head.type_]))
                        .collect();
                    json!([t.head.name, t.head.type_, constructors])
                })
                .collect();
            json!([4, first.head.levels, first.parameters, types])
        }
    })
}

fn expr_record(expr: &Expr, at: usize) -> Value {
    let info = |b: &Binder| match b.info {
        BinderInfo::Default => "default",
        BinderInfo::Implicit => "implicit",
        BinderInfo::StrictImplicit => "strictImplicit",
        BinderInfo::InstImplicit => "instImplicit",
    };
    let binder = |b: &Binder| {
        json!({"name": b.name, "type": b.domain, "body": b.body,
        "binderInfo": info(b)})
    };
    match expr {
        Expr::Variable(i) => json!({"bvar": i, "ie": at}),
        Expr::Sort(l) => json!({"sort": l, "ie": at}),
        Expr::Constant { name, levels } => {
            json!({"const": {"name": name, "us": levels}, "ie": at})
        }
        Expr::Apply(f, a) => json!({"app": {"fn": f, "arg": a}, "ie": at}),
        Expr::Lambda(b) => json!({"lam": binder(b), "ie": at}),
        Expr::Forall(b) => json!({"forallE": binder(b), "ie": at}),
        Expr::Let { name, domain, value, body } => {
            let record = json!({"name": name, "type": domain, "value": value, "body": body,
                "nondep": false});
            json!({"letE": record, "ie": at})
        }
        Expr::Project { structure, field, of } => {
            json!({"proj": {"typeName": structure, "idx": field, "struct": of}, "ie": at})
        }
        Expr::Natural(digits) => json!({"natVal": digits, "ie": at}),
        Expr::Text(text) => json!({"strVal": text, "ie": at}),
    }
}

fn with_head(head: &Head, more: Value) -> Value {
    let mut record = json!({"name": head.name, "levelParams": head.levels, "type": head.type_});
    if let (Value::Object(all), Value::Object(more)) = (&mut record, more) {
        all.extend(more);
    }
    record
}

fn declaration_record(declaration: &Declaration) -> Value {
    match declaration {
        Declaration::Axiom(h) => json!({"axiom": with_head(h, json!({"isUnsafe": false}))}),
        Declaration::Theorem(h, v) => {
            json!({"thm": with_head(h, json!({"value": v, "all": [h.name]}))})
        }
        Declaration::Definition(h, v, hints) => {
            let hints = match hints {
                Hints::Opaque => json!("opaque"),
                Hints::Abbrev => json!("abbrev"),
                Hints::Regular(height) => json!({"regular": height}),
            };
            let more = json!({"value": v, "hints": hints, "safety": "safe", "all": [h.name]});
            json!({"def": with_head(h, more)})
        }
        Declaration::Opaque(h, v) => {
            json!({"opaque": with_head(h, json!({"value": v, "isUnsafe": false, "all": [h.name]}))})
        }
        Declaration::Quotient(h, kind) => json!({"quot": with_head(h, json!({"kind": kind}))}),
        Declaration::Inductive(family) => json!({"inductive": {
            "types": family.types.iter().map(type_record).collect::<Vec<_>>(),
            "ctors": family.constructors.iter().map(constructor_record).collect::<Vec<_>>(),
            "recs": family.recursors.iter().map(recursor_record).collect::<Vec<_>>(),
        }}),
    }
}

fn type_record(t: &InductiveType) -> Value {
    let more = json!({
        "numParams": t.parameters, "numIndices": t.indices, "all": t.all, "ctors": t.constructors,
        "numNested": t.nested, "isRec": t.recursive, "isUnsafe": false, "isReflexive": t.reflexive,
    });
    with_head(&t.head, more)
}

fn constructor_record(c: &Constructor) -> Value {
    let more = json!({
        "induct": c.of, "cidx": c.index, "numParams": c.parameters, "numFields": c.fields,
        "isUnsafe": false,
    });
    with_head(&c.head, more)
}

fn recursor_record(r: &Recursor) -> Value {
    let rules: Vec<Value> = r
        .rules
        .iter()
        .map(|(ctor, nfields, rhs)| json!({"ctor": ctor, "nfields": nfields, "rhs": rhs}))
        .collect();
    let more = json!({
        "all": r.all, "numParams": r.parameters, "numIndices": r.indices,
        "numMotives": r.motives, "numMinors": r.minors, "rules": rules, "k": r.k,
        "isUnsafe": false,
    });
    with_head(&r.head, more)
}
