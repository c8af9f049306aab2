//! Reading, strictly.

use std::collections::HashSet;
use std::hash::Hash;

use super::lines::{Numbers, Record, record};
use super::{AFTER_ZERO, Declaration, Expr, Family, Head, Level, Name, Table, Terms};

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
    /// Bytes of all names if each were written out: they share their beginnings, and what is made
    /// of them (lists of parts, texts) does not.
    pub names: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            bytes: 64 << 20,
            exprs: 1_000_000,
            depth: 20_000,
            digits: 10_000,
            names: 256 << 20,
        }
    }
}

/// Lean itself gives up beyond this.
const MOST_VARIABLE: u32 = 1 << 19;
/// Levels within each other: a kernel goes through all their combinations.
const LEVEL_DEPTH: u32 = 256;
/// Parts of a name: those of libraries have a dozen.
const NAME_DEPTH: u32 = 256;
/// What a part of a name takes beside its text.
const PART_BYTES: usize = 32;

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
    /// By name: how many parts it has, and its size when written out.
    name_depth: Vec<u32>,
    name_size: Vec<usize>,
    names: usize,
    level_depth: Vec<u32>,
    /// By expression: how deep it is, and the variables it leaves open.
    depth: Vec<u32>,
    open: Vec<u32>,
    declared: HashSet<u32>,
}

impl Reader {
    fn line(&mut self, line: &str) -> Result<(), String> {
        let (numbers, record) = record(line)?;
        match record {
            Record::Meta => only(numbers, (None, None, None)),
            Record::Name(name) => self.name(numbers, name),
            Record::Level(level) => self.level(numbers, level),
            Record::Expr(expr) => self.expr(numbers, expr),
            Record::Declaration(declaration) => {
                only(numbers, (None, None, None))?;
                self.declaration(declaration)
            }
        }
    }

    fn name(&mut self, numbers: Numbers, name: Name) -> Result<(), String> {
        let next = self.terms.names.items.len() as u32 + AFTER_ZERO;
        only(numbers, (Some(next), None, None))?;
        let (Name::Text(before, _) | Name::Number(before, _)) = &name;
        backwards(*before, next)?;
        let (depth, size) = match before.checked_sub(1) {
            None => (0, 0),
            Some(at) => (self.name_depth[at as usize], self.name_size[at as usize]),
        };
        if depth + 1 > NAME_DEPTH {
            return Err(format!("a name of more than {NAME_DEPTH} parts"));
        }
        let part = if let Name::Text(_, text) = &name { text.len() } else { 0 };
        let size = size.saturating_add(part + PART_BYTES);
        self.names = self.names.saturating_add(size);
        if self.names > self.limits.names {
            return Err(format!("names of more than {} bytes", self.limits.names));
        }
        self.name_depth.push(depth + 1);
        self.name_size.push(size);
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

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write;
    use std::time::{Duration, Instant};

    fn read(text: &str) -> Result<Terms, String> {
        Terms::read(text, &Limits::default())
    }

    #[test]
    fn a_name_has_so_many_parts_and_no_more() {
        let chain = |parts: u32| {
            (1..=parts).fold(String::new(), |mut text, n| {
                let _ = writeln!(text, r#"{{"in":{n},"str":{{"pre":{},"str":"a"}}}}"#, n - 1);
                text
            })
        };
        let deepest = read(&chain(NAME_DEPTH)).unwrap();
        assert_eq!(deepest.parts(NAME_DEPTH).len(), NAME_DEPTH as usize);
        let error = read(&chain(200_000)).unwrap_err();
        assert_eq!(error, "line 257: a name of more than 256 parts");
    }

    #[test]
    fn names_that_share_a_long_beginning_are_not_written_out() {
        let long = "a".repeat(1 << 20);
        let mut text = format!("{{\"in\":1,\"str\":{{\"pre\":0,\"str\":\"{long}\"}}}}\n");
        for n in 2..100_000 {
            let _ = writeln!(text, r#"{{"in":{n},"num":{{"pre":1,"i":{n}}}}}"#);
        }
        let error = read(&text).unwrap_err();
        assert_eq!(error, "line 256: names of more than 268435456 bytes");
    }

    #[test]
    fn names_are_found_whatever_their_parts() {
        let lines = [
            r#"{"in":1,"str":{"pre":0,"str":"Lean"}}"#,
            r#"{"in":2,"str":{"pre":1,"str":"reduceBool"}}"#,
            r#"{"in":3,"str":{"pre":0,"str":"Nat.gcd"}}"#,
            r#"{"in":4,"num":{"pre":1,"i":7}}"#,
        ];
        let terms = read(&lines.join("\n")).unwrap();
        for name in ["Lean", "Lean.reduceBool", "Nat.gcd", "Lean.7"] {
            assert_eq!(terms.mentioned(&["no", name]), Some(name));
        }
        let none = ["reduceBool", "Nat", "gcd", "Lean.", ".Lean", "Lean.reduceBool.", "Lean.77"];
        assert_eq!(terms.mentioned(&none), None);
    }

    /// A theorem whose value is `fun _ => e`, where `e` is made of the lines.
    fn unused_argument(exprs: &[String]) -> Terms {
        let mut text = String::from("{\"in\":1,\"str\":{\"pre\":0,\"str\":\"t\"}}\n");
        text.push_str("{\"ie\":0,\"sort\":0}\n");
        for (number, line) in exprs.iter().enumerate() {
            let _ = writeln!(text, "{{\"ie\":{},{line}}}", number + 1);
        }
        let last = exprs.len();
        let lambda = binder(last);
        let _ = writeln!(text, "{{\"ie\":{},{lambda}}}", last + 1);
        let _ = writeln!(
            text,
            r#"{{"thm":{{"name":1,"levelParams":[],"type":0,"value":{},"all":[1]}}}}"#,
            last + 1
        );
        read(&text).unwrap()
    }

    fn binder(body: usize) -> String {
        format!(r#""lam":{{"name":0,"type":0,"body":{body},"binderInfo":"default"}}"#)
    }

    fn apply(f: usize, a: usize) -> String {
        format!(r#""app":{{"fn":{f},"arg":{a}}}"#)
    }

    #[test]
    fn closed_terms_are_not_looked_through_at_every_depth() {
        // Each term holds the one before both as it is and under a binder.
        let shared = |first: &str| -> Vec<String> {
            let mut exprs = vec![first.to_owned()];
            for n in 0..9_000 {
                exprs.push(binder(2 * n + 1));
                exprs.push(apply(2 * n + 1, 2 * n + 2));
            }
            exprs
        };
        let began = Instant::now();
        let closed = unused_argument(&shared(r#""const":{"name":1,"us":[]}"#));
        assert!(!closed.uses_argument(0));
        // One that leaves far variables open is held to use what it may.
        assert!(unused_argument(&shared(r#""bvar":0"#)).uses_argument(0));
        assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
        assert!(!unused_argument(&[r#""natVal":"1""#.into()]).uses_argument(0));
    }
}
