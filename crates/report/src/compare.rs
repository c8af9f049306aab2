//! Comparing cells on the theorems both completed.
//!
//! The paired set holds every theorem that both logs completed: an outcome other than `error`, at
//! some seed, and counts the seeds at which both did. A theorem cut off by a wall-clock cap
//! (`time`) is a failure, as in the paper's first experiment; one that is missing or errored in
//! either log is in no pair, and is counted and named.

use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};

use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, LogError};
use catamount_statistics::{self as statistics, Bootstrap, Rate, Theorem, bootstrap, holm, wilson};
use serde::Serialize;

/// Resamples of the cross-check; enough for two decimals of a percentage point.
const RESAMPLES: u32 = 10_000;
const BOOTSTRAP_SEED: u64 = 0;
/// At most this many names are listed in a text; the JSON has all of them.
const NAMED: usize = 8;

/// Why logs could not be compared.
#[derive(Debug, thiserror::Error)]
pub enum CompareError {
    /// One of them could not be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// They are not of the same experiment.
    #[error("cannot compare {} with {}: {reason}", a.display(), b.display())]
    Different {
        /// The first log.
        a: PathBuf,
        /// The second log.
        b: PathBuf,
        /// What differs.
        reason: String,
    },
}

/// A paired comparison of log B with log A, ready to print or to write as JSON.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// What the first side is.
    pub first: Side,
    /// What the second side is.
    pub second: Side,
    /// `n`, `b`, `c`, `gain_pp`, `ci_low`, `ci_high`, `p`, `seeds`: B against A.
    #[serde(flatten)]
    pub paired: statistics::Comparison,
    /// p corrected for the family it was computed in, where there is one ([`compare_family`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holm_p: Option<f64>,
    /// The gain's interval again, by resampling theorems, in percentage points.
    pub bootstrap: Option<Bootstrap>,
    /// Theorems in one log or both that are not in the paired set.
    pub unpaired: Vec<String>,
    /// Theorems solved by B only (at some seed).
    pub only_b: Vec<String>,
    /// Theorems solved by A only (at some seed).
    pub only_a: Vec<String>,
    /// What a reader should know about the logs.
    pub notes: Vec<String>,
}

/// One side of a comparison.
#[derive(Clone, Debug, Serialize)]
pub struct Side {
    /// Its logs, one per seed.
    pub logs: Vec<PathBuf>,
    /// `objective under strategy at N`, or the file's name.
    pub label: String,
    /// Its rate on the paired set, with Wilson's interval.
    pub rate: Rate,
    /// Theorems of the paired set, over all seeds, that a wall-clock cap cut off.
    pub capped: usize,
}

/// Compares log B with log A: the gain is B's.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison, CompareError> {
    compare_seeds(&[a.to_path_buf()], &[b.to_path_buf()])
}

/// Compares several logs with the same log A, each p corrected (Holm) for the whole family.
pub fn compare_family(a: &Path, others: &[PathBuf]) -> Result<Vec<Comparison>, CompareError> {
    let first = Log::read(a)?;
    let mut family = Vec::new();
    for other in others {
        family.push(compare_cells(&[&first], &[&Log::read(other)?])?);
    }
    let corrected = holm(&family.iter().map(|c| c.paired.p).collect::<Vec<_>>());
    for (comparison, p) in family.iter_mut().zip(corrected) {
        comparison.holm_p = Some(p);
    }
    Ok(family)
}

/// Compares several seeds of B with the same seeds of A, the theorem being the unit.
pub fn compare_seeds(a: &[PathBuf], b: &[PathBuf]) -> Result<Comparison, CompareError> {
    let read =
        |paths: &[PathBuf]| paths.iter().map(|p| Log::read(p)).collect::<Result<Vec<_>, _>>();
    let (a, b) = (read(a)?, read(b)?);
    compare_cells(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())
}

/// Compares cells that were read already.
pub fn compare_cells(a: &[&Log], b: &[&Log]) -> Result<Comparison, CompareError> {
    let set = Paired::new(&match_seeds(a, b)?);
    if set.theorems.is_empty() {
        return Err(different(a, b, "no theorem was completed in both"));
    }
    let paired = statistics::Comparison::of_theorems(&set.theorems)
        .map_err(|e| different(a, b, &e.to_string()))?;
    let side = |cells: &[&Log], solved: f64| Side {
        logs: cells.iter().map(|c| c.path.clone()).collect(),
        label: label(cells),
        rate: wilson(solved, paired.n),
        capped: cells
            .iter()
            .flat_map(|c| c.records.values())
            .filter(|r| r.outcome == Outcome::Time && set.names.contains(r.theorem.as_str()))
            .count(),
    };
    let mut notes: Vec<String> = a.iter().chain(b).flat_map(|c| c.notes.iter().cloned()).collect();
    notes.dedup();
    notes.extend(environment_note(a, b));
    let differences: Vec<f64> =
        set.theorems.iter().map(|t| 100.0 * (t.b as f64 - t.c as f64) / t.seeds as f64).collect();
    let named = |test: fn(&Theorem) -> bool| {
        set.names
            .iter()
            .zip(&set.theorems)
            .filter(|(_, t)| test(t))
            .map(|(n, _)| (*n).to_owned())
            .collect::<Vec<String>>()
    };
    Ok(Comparison {
        first: side(a, set.solved.0),
        second: side(b, set.solved.1),
        paired,
        holm_p: None,
        bootstrap: bootstrap(&differences, RESAMPLES, BOOTSTRAP_SEED),
        only_b: named(|t| t.b > 0),
        only_a: named(|t| t.c > 0),
        unpaired: set.unpaired.iter().map(|n| (*n).to_owned()).collect(),
        notes,
    })
}

/// The statistics alone, for tables that compare many cells at once; `None` when they cannot be
/// compared.
pub(crate) fn paired_statistics(a: &[&Log], b: &[&Log]) -> Option<statistics::Comparison> {
    let set = Paired::new(&match_seeds(a, b).ok()?);
    statistics::Comparison::of_theorems(&set.theorems).ok().filter(|c| c.n > 0)
}

/// The theorems completed on both sides at some seed, in the order of their names.
struct Paired<'a> {
    names: BTreeSet<&'a str>,
    theorems: Vec<Theorem>,
    /// Sums of per-theorem mean successes.
    solved: (f64, f64),
    unpaired: Vec<&'a str>,
}

impl<'a> Paired<'a> {
    fn new(pairs: &[(&'a Log, &'a Log)]) -> Self {
        let mut all: BTreeSet<&str> = BTreeSet::new();
        for cell in pairs.iter().flat_map(|(x, y)| [x, y]) {
            all.extend(cell.records.keys().map(String::as_str));
        }
        let mut set = Self {
            names: BTreeSet::new(),
            theorems: Vec::new(),
            solved: (0.0, 0.0),
            unpaired: Vec::new(),
        };
        for name in all {
            // At the seeds that have it: each may have a split of its own.
            let both = |(x, y): &(&Log, &Log)| Some((x.solved(name)?, y.solved(name)?));
            let outcomes: Vec<(bool, bool)> = pairs.iter().filter_map(both).collect();
            if outcomes.is_empty() {
                set.unpaired.push(name);
                continue;
            }
            let count = |test: fn(&(bool, bool)) -> bool| {
                outcomes.iter().filter(|o| test(o)).count() as u64
            };
            let seeds = outcomes.len() as u64;
            set.solved.0 += count(|o| o.0) as f64 / seeds as f64;
            set.solved.1 += count(|o| o.1) as f64 / seeds as f64;
            set.theorems.push(Theorem {
                b: count(|o| o.1 && !o.0),
                c: count(|o| o.0 && !o.1),
                seeds,
            });
            set.names.insert(name);
        }
        set
    }
}

/// Pairs the cells of both sides seed by seed, refusing what is not the same experiment.
fn match_seeds<'a>(a: &[&'a Log], b: &[&'a Log]) -> Result<Vec<(&'a Log, &'a Log)>, CompareError> {
    if a.is_empty() || a.len() != b.len() {
        return Err(different(
            a,
            b,
            &format!(
                "{} log(s) on one side and {} on the other: give one per seed",
                a.len(),
                b.len()
            ),
        ));
    }
    let seed = |c: &Log| c.manifest.as_ref().map(|m| m.seed());
    if a.len() == 1 {
        if let (Some(x), Some(y)) = (seed(a[0]), seed(b[0]))
            && x != y
        {
            return Err(different(a, b, &format!("different seeds ({x} and {y})")));
        }
        return same_theorems(vec![(a[0], b[0])]);
    }
    let sorted = |cells: &[&'a Log]| {
        let mut cells = cells.to_vec();
        cells.sort_by_key(|c| seed(c));
        cells
    };
    let (sorted_a, sorted_b) = (sorted(a), sorted(b));
    let seeds = |cells: &[&Log]| cells.iter().map(|c| seed(c)).collect::<Vec<_>>();
    let (x, y) = (seeds(&sorted_a), seeds(&sorted_b));
    if x != y || x.iter().any(Option::is_none) {
        let show = |seeds: &[Option<u64>]| {
            seeds
                .iter()
                .map(|s| s.map_or("unknown".into(), |s| s.to_string()))
                .collect::<Vec<_>>()
                .join(", ")
        };
        return Err(different(a, b, &format!("different seeds ({} and {})", show(&x), show(&y))));
    }
    if x.windows(2).any(|w| w[0] == w[1]) {
        return Err(different(a, b, "the same seed twice on one side"));
    }
    same_theorems(sorted_a.into_iter().zip(sorted_b).collect())
}

/// Refuses pairs of different pools or budgets. Seeds may have pools of their own, where each has
/// its own split.
fn same_theorems<'a>(
    pairs: Vec<(&'a Log, &'a Log)>,
) -> Result<Vec<(&'a Log, &'a Log)>, CompareError> {
    let budget = pairs.iter().find_map(|(a, _)| Some(a.manifest.as_ref()?.budget()));
    for (a, b) in &pairs {
        let (Some(m), Some(n)) = (&a.manifest, &b.manifest) else { continue };
        let reason = if m.identity.pool != n.identity.pool {
            format!(
                "different pools ({} with hash {}, and {} with hash {})",
                m.pool.file,
                m.identity.pool.short(),
                n.pool.file,
                n.identity.pool.short()
            )
        } else if m.budget() != n.budget() {
            format!("different budgets ({} and {})", m.budget(), n.budget())
        } else if let Some(budget) = budget.filter(|&budget| budget != m.budget()) {
            format!("different budgets ({budget} and {})", m.budget())
        } else {
            continue;
        };
        return Err(different(&[a], &[b], &reason));
    }
    Ok(pairs)
}

fn different(a: &[&Log], b: &[&Log], reason: &str) -> CompareError {
    let first = |cells: &[&Log]| cells.first().map(|c| c.path.clone()).unwrap_or_default();
    CompareError::Different { a: first(a), b: first(b), reason: reason.to_owned() }
}

fn label(cells: &[&Log]) -> String {
    match cells {
        [one] => one.label(),
        many => many.first().map_or_else(String::new, |c| match &c.manifest {
            Some(m) => format!(
                "{} under {} at N = {}, {} seeds",
                m.objective,
                m.strategy(),
                m.budget(),
                many.len()
            ),
            None => c.name.clone(),
        }),
    }
}

fn environment_note(a: &[&Log], b: &[&Log]) -> Option<String> {
    let of = |cells: &[&Log]| {
        cells.first().and_then(|c| c.manifest.as_ref()).map(|m| m.environment.clone())
    };
    let (x, y) = (of(a)?, of(b)?);
    (x != y).then(|| format!("the environments differ: {x} and {y}"))
}

impl Comparison {
    /// The comparison as pretty JSON.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }
}

/// A p-value as the paper prints it.
pub(crate) fn p_text(p: f64) -> String {
    if p.is_nan() {
        "\u{2013}".into()
    } else if p < 0.0005 {
        "<0.001".into()
    } else {
        format!("{p:.3}")
    }
}

/// `= 0.012`, or `< 0.001`, to stand after a p.
pub(crate) fn p_relation(p: f64) -> String {
    match p_text(p).strip_prefix('<') {
        Some(bound) => format!("< {bound}"),
        None => format!("= {}", p_text(p)),
    }
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |r: &Rate| {
            format!("{:5.1} % [{:.1}, {:.1}]", 100.0 * r.rate, 100.0 * r.low, 100.0 * r.high)
        };
        writeln!(f, "A  {}  {}", percent(&self.first.rate), self.first.label)?;
        writeln!(f, "B  {}  {}", percent(&self.second.rate), self.second.label)?;
        let s = &self.paired;
        let seeds = if s.seeds == 1 { String::new() } else { format!(", {} seeds each", s.seeds) };
        writeln!(
            f,
            "\nn = {} theorems completed by both{seeds}; b/c = {}/{} (B only / A only)",
            s.n, s.b, s.c
        )?;
        writeln!(
            f,
            "gain of B: {:+.1} pp, 95 % interval [{:.1}, {:.1}], exact two-sided p {}",
            s.gain_pp,
            s.ci_low,
            s.ci_high,
            p_relation(s.p)
        )?;
        if let Some(p) = self.holm_p {
            writeln!(f, "corrected for the family of comparisons (Holm): p {}", p_relation(p))?;
        }
        if let Some(boot) = &self.bootstrap {
            writeln!(
                f,
                "bootstrap over theorems: [{:.1}, {:.1}] ({} resamples)",
                boot.low, boot.high, boot.resamples
            )?;
        }
        let mut list = |what: &str, names: &[String]| -> fmt::Result {
            if names.is_empty() {
                return Ok(());
            }
            let shown = names.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
            let more = if names.len() > NAMED {
                format!(" and {} more (--json has all)", names.len() - NAMED)
            } else {
                String::new()
            };
            writeln!(f, "{what} ({}): {shown}{more}", names.len())
        };
        list("solved by B only", &self.only_b)?;
        list("solved by A only", &self.only_a)?;
        list("not paired: missing or errored in a log", &self.unpaired)?;
        if self.first.capped + self.second.capped > 0 {
            writeln!(
                f,
                "cut off by a wall-clock cap, counted as unproved: A {}, B {}",
                self.first.capped, self.second.capped
            )?;
        }
        for note in &self.notes {
            writeln!(f, "note: {note}")?;
        }
        Ok(())
    }
}
