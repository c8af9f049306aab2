//! Terms that were altered: none is accepted unless it proves the very same statement and a second
//! kernel agrees.
//!
//! `make fuzz-terms` goes on for `CATAMOUNT_FUZZ_MINUTES` (20) instead of stopping after 150;
//! `CATAMOUNT_FUZZ_SEED` changes what is tried.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use catamount_lean::{Lean, Options};
use catamount_search::{Checked, Stream};
use catamount_traces::Theorem;
use serde_json::{Value, json};

use crate::kernels::nanoda_is_here;
use crate::setup::{lean, options, theorem};

/// Small proofs that between them have every kind of line.
const PROOFS: [(&str, &[&str]); 8] = [
    ("theorem t (a b : Nat) : a + b = b + a", &["omega"]),
    ("theorem t (p q : Prop) : p ∧ q → q ∧ p", &["intro h", "exact ⟨h.2, h.1⟩"]),
    ("theorem t (n : Nat) : n * 0 = 0", &["induction n with\n| zero => rfl\n| succ n ih => simp"]),
    ("theorem t {α : Type u} (xs : List α) : xs ++ [] = xs", &["induction xs <;> simp_all"]),
    ("theorem t : (2 : Nat) + 2 = 4 ∧ \"a\" ++ \"b\" = \"ab\"", &["decide"]),
    ("theorem t (f : Nat → Nat) (h : ∀ x, f x = x) : f 3 = 3", &["have k := h 3", "exact k"]),
    ("theorem t (x : Nat × Nat) : (x.1, x.2) = x", &["let y := x", "cases x", "rfl"]),
    ("theorem t (a b : Nat) (h : a ≤ b) : ∃ c, b = a + c", &["exact ⟨b - a, by omega⟩"]),
];

/// A file of terms, line by line.
type Lines = Vec<Value>;

fn lines(text: &str) -> Lines {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn text(lines: &[Value]) -> String {
    lines.iter().map(|line| format!("{line}\n")).collect()
}

/// A source of choices.
struct Dice {
    stream: Stream,
    drawn: u64,
}

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.drawn += 1;
        ((self.stream.uniform(self.drawn) * n as f64) as usize).min(n.saturating_sub(1))
    }
}

/// The key under which a line's own number stands.
fn number_of(line: &Value) -> Option<&'static str> {
    ["in", "il", "ie"].into_iter().find(|key| line.get(key).is_some())
}

/// Where the numbers of a value are, but for the line's own.
fn numbers(value: &Value, path: &str, found: &mut Vec<String>) {
    match value {
        Value::Number(_) => found.push(path.to_owned()),
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                numbers(item, &format!("{path}/{at}"), found);
            }
        }
        Value::Object(fields) => {
            for (key, item) in fields {
                if !matches!(key.as_str(), "in" | "il" | "ie") || !path.is_empty() {
                    numbers(item, &format!("{path}/{key}"), found);
                }
            }
        }
        _ => {}
    }
}

/// One alteration, named. It may leave the file as it was.
fn mutate(lines: &mut Lines, others: &[Lines], dice: &mut Dice) -> &'static str {
    let at = dice.below(lines.len());
    match dice.below(12) {
        0..=3 => {
            let mut found = Vec::new();
            numbers(&lines[at], "", &mut found);
            let most = lines.len();
            if let Some(path) = found.get(dice.below(found.len().max(1))) {
                let old = lines[at].pointer(path).and_then(Value::as_u64).unwrap_or(0);
                let new = match dice.below(4) {
                    0 => old.saturating_sub(1),
                    1 => old + 1,
                    2 => dice.below(8) as u64,
                    _ => dice.below(most) as u64,
                };
                *lines[at].pointer_mut(path).unwrap() = json!(new);
            }
            "a reference"
        }
        4 => {
            // Another line's content under this one's number.
            let other = lines[dice.below(lines.len())].clone();
            if let (Some(a), Some(b)) = (number_of(&lines[at]), number_of(&other))
                && a == b
            {
                let own = lines[at][a].clone();
                lines[at] = other;
                lines[at][a] = own;
            }
            "a line's content"
        }
        5 => {
            lines.remove(at);
            "a line dropped"
        }
        6 => {
            let line = lines[at].clone();
            lines.insert(dice.below(lines.len() + 1), line);
            "a line twice"
        }
        7 => {
            let names = ["False", "True", "Nat", "sorryAx", "Eq", "t", "u", "propext", "rec", ""];
            let name = names[dice.below(names.len())];
            let named = lines.iter().filter(|l| l.get("str").is_some()).count();
            let chosen = dice.below(named.max(1));
            if let Some(line) = lines.iter_mut().filter(|l| l.get("str").is_some()).nth(chosen) {
                line["str"]["str"] = json!(name);
            }
            "a name"
        }
        8 => {
            let kinds = ["thm", "def", "axiom", "opaque", "app", "lam", "forallE", "max", "imax"];
            let to = kinds[dice.below(kinds.len())];
            let from = kinds.into_iter().find(|kind| lines[at].get(kind).is_some());
            if let (Some(from), Some(fields)) = (from, lines[at].as_object_mut()) {
                let content = fields.remove(from).unwrap_or_default();
                fields.insert(to.to_owned(), content);
            }
            "the kind of a line"
        }
        9 => {
            let line = &mut lines[at];
            if let Some(digits) = line.get_mut("natVal") {
                *digits = json!(dice.below(9).to_string());
            }
            for kind in ["lam", "forallE"] {
                if let Some(binder) = line.get_mut(kind) {
                    let infos = ["default", "implicit", "strictImplicit", "instImplicit"];
                    binder["binderInfo"] = json!(infos[dice.below(4)]);
                }
            }
            for kind in ["thm", "def"] {
                if let Some(levels) =
                    line.get_mut(kind).and_then(|d| d["levelParams"].as_array_mut())
                    && levels.pop().is_none()
                {
                    levels.push(json!(1));
                }
            }
            "a literal, a binder or a declaration's levels"
        }
        10 => {
            // The last theorem with another of its terms for a proof.
            let terms = lines.iter().filter(|l| l.get("ie").is_some()).count();
            let value = dice.below(terms);
            if let Some(last) = lines.last_mut().and_then(|l| l.get_mut("thm")) {
                last["value"] = json!(value);
            }
            "the theorem's proof"
        }
        _ => {
            *lines = others[dice.below(others.len())].clone();
            "another theorem's proof"
        }
    }
}

/// The type of the last theorem, written out, without what does not count: names and kinds of
/// bound variables. `None` where there is no such thing.
fn statement(lines: &[Value]) -> Option<String> {
    let by_number = |key: &str| -> HashMap<u64, &Value> {
        lines.iter().filter_map(|l| Some((l.get(key)?.as_u64()?, l))).collect()
    };
    let (names, levels, exprs) = (by_number("in"), by_number("il"), by_number("ie"));
    let tables = Tables { names, levels, exprs };
    let theorem = lines.last()?.get("thm")?;
    tables.expr(theorem["type"].as_u64()?, 200)
}

struct Tables<'a> {
    names: HashMap<u64, &'a Value>,
    levels: HashMap<u64, &'a Value>,
    exprs: HashMap<u64, &'a Value>,
}

impl Tables<'_> {
    fn name(&self, number: &Value) -> Option<String> {
        let number = number.as_u64()?;
        if number == 0 {
            return Some(String::new());
        }
        let line = self.names.get(&number)?;
        let (part, last) = match line.get("str") {
            Some(part) => (part, part["str"].to_string()),
            None => (line.get("num")?, line["num"]["i"].to_string()),
        };
        Some(format!("{}.{last}", self.name(&part["pre"])?))
    }

    fn level(&self, number: &Value) -> Option<String> {
        let number = number.as_u64()?;
        if number == 0 {
            return Some("0".into());
        }
        let line = self.levels.get(&number)?;
        for key in ["max", "imax"] {
            if let Some(pair) = line.get(key) {
                return Some(format!("{key}({},{})", self.level(&pair[0])?, self.level(&pair[1])?));
            }
        }
        match line.get("succ") {
            Some(below) => Some(format!("succ({})", self.level(below)?)),
            None => self.name(line.get("param")?),
        }
    }

    fn expr(&self, number: u64, depth: u32) -> Option<String> {
        let line = self.exprs.get(&number)?;
        let below = |value: &Value| self.expr(value.as_u64()?, depth.checked_sub(1)?);
        let (kind, content) =
            line.as_object()?.iter().find(|(key, _)| !matches!(key.as_str(), "ie"))?;
        Some(match kind.as_str() {
            "sort" => format!("sort({})", self.level(content)?),
            "const" => {
                let levels: Option<Vec<_>> =
                    content["us"].as_array()?.iter().map(|l| self.level(l)).collect();
                format!("const({},{:?})", self.name(&content["name"])?, levels?)
            }
            "app" => format!("app({},{})", below(&content["fn"])?, below(&content["arg"])?),
            "lam" | "forallE" => {
                format!("{kind}({},{})", below(&content["type"])?, below(&content["body"])?)
            }
            "letE" => format!(
                "let({},{},{})",
                below(&content["type"])?,
                below(&content["value"])?,
                below(&content["body"])?
            ),
            "proj" => format!(
                "proj({},{},{})",
                self.name(&content["typeName"])?,
                content["idx"],
                below(&content["struct"])?
            ),
            _ => format!("{kind}({content})"),
        })
    }
}

fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |value| value.parse().expect("a number"))
}

#[test]
fn no_altered_proof_is_accepted_for_anything_it_does_not_prove() {
    let second = nanoda_is_here();
    // A term that keeps the kernel busy is an error of ours and no verdict; nobody need wait for
    // it.
    let limit = Duration::from_secs(30);
    let judging = Lean::new(Options { check_limit: limit, workers: 1, ..options() }).unwrap();
    let originals: Vec<(Theorem, Lines)> = PROOFS
        .iter()
        .map(|(text, tactics)| {
            let (theorem, tactics) = (theorem(text), tactics.iter().map(|t| (*t).to_owned()));
            let terms = lean().terms(&theorem, &tactics.collect::<Vec<_>>()).unwrap().expect(text);
            (theorem, lines(&terms))
        })
        .collect();
    let all: Vec<Lines> = originals.iter().map(|(_, lines)| lines.clone()).collect();
    for (theorem, proof) in &originals {
        let judged = lean().judge(theorem, &text(proof)).unwrap();
        assert!(matches!(judged, Checked::Proved { .. }), "{}: {judged:?}", theorem.statement);
    }
    let mut dice = Dice { stream: Stream::new(setting("CATAMOUNT_FUZZ_SEED", 1)), drawn: 0 };
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    let long = Duration::from_secs(60 * setting("CATAMOUNT_FUZZ_MINUTES", 0));
    let (begin, mut tried, mut compared) = (Instant::now(), 0, 0);
    while tried < 150 || begin.elapsed() < long {
        tried += 1;
        let (theorem, proof) = &originals[dice.below(originals.len())];
        let mut altered = proof.clone();
        let what = mutate(&mut altered, &all, &mut dice);
        if altered == *proof || altered.is_empty() {
            continue;
        }
        let class = match judging.judge(theorem, &text(&altered)) {
            Err(_) => "no verdict".to_owned(),
            Ok(Checked::Refused { reason }) => {
                format!("refused, {}", reason.split(':').next().unwrap_or_default())
            }
            Ok(Checked::Proved { .. }) => {
                let shown = || format!("{what} of {}:\n{}", theorem.statement, text(&altered));
                assert_eq!(statement(&altered), statement(proof), "{}", shown());
                if second {
                    let certificate = lean().certificate_of(theorem, &text(&altered)).unwrap();
                    let verdict = certificate.expect("it can be written").put_to_nanoda(&options());
                    assert!(verdict.unwrap().is_ok(), "{}", shown());
                    compared += 1;
                }
                format!("accepted, {what}")
            }
        };
        *counts.entry(class).or_default() += 1;
    }
    eprintln!("{tried} alterations, {compared} accepted ones put to nanoda: {counts:#?}");
    // The alterations are not all caught at the door.
    let of = |class: &str| counts.get(class).copied().unwrap_or(0);
    assert!(of("refused, terms") > 0 && of("refused, kernel") > 0, "{counts:?}");
}
