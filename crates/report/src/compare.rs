//! Comparing cells on the theorems both completed.
//!
//! The paired set holds every theorem that both logs completed: an outcome other than `error`, at
//! some seed, and counts the seeds at which both did. A theorem cut off by a wall-clock cap
//! (`time`) is a failure, as in the paper's first experiment; one that is missing or errored in
//! either log is in no pair, and is counted and named.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use catamount_evaluate::log::Outcome;
use catamount_evaluate::{Log, LogError};
use catamount_statistics::{
    self as statistics, Bootstrap, Rate, Theorem, bootstrap_searches, holm, wilson,
};
use serde::Serialize;

use crate::cost::{Cost, Within};

mod text;

pub use self::text::comparison_table;
pub(crate) use self::text::{p_relation, p_text};

/// Resamples of the cross-check; enough for two decimals of a percentage point.
const RESAMPLES: u32 = 10_000;
const BOOTSTRAP_SEED: u64 = 0;

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
    /// What both searches were held to; none for all that they spent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub within: Option<Within>,
    /// Searches that both completed: theorems times the seeds that have them.
    pub searches: u64,
    /// `n`, `b`, `c`, `gain_pp`, `ci_low`, `ci_high`, `p`, `seeds`: B against A.
    #[serde(flatten)]
    pub paired: statistics::Comparison,
    /// p corrected for the family it was computed in, where there is one ([`compare_family`]).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub holm_p: Option<f64>,
    /// The smallest true gain that such a comparison finds significant nine times in ten, in
    /// percentage points ([`statistics::Comparison::visible_pp`]).
    pub visible_pp: f64,
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
    /// Its rate on the paired set, over searches, with Wilson's interval for as many theorems.
    pub rate: Rate,
    /// What a search spent on average, whatever it was held to.
    pub spent: Spent,
    /// Searches that ended without a proof before what both were held to: what they would have
    /// proved by then is not known, and they count as unproved.
    #[serde(skip_serializing_if = "is_zero")]
    pub ended_before: usize,
    /// Theorems of the paired set, over all seeds, that a wall-clock cap cut off.
    pub capped: usize,
}

/// Means over the searches of a side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Spent {
    /// Sampled tactics.
    pub expansions: f64,
    /// Tactics that were tried, each once at a node: what the prover is asked.
    pub distinct: f64,
    /// Tokens generated.
    pub tokens: f64,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

/// Compares log B with log A: the gain is B's.
pub fn compare(a: &Path, b: &Path) -> Result<Comparison, CompareError> {
    compare_seeds(&[a.to_path_buf()], &[b.to_path_buf()])
}

/// Compares several sides, each with one log per seed, with the same side A, within each of the
/// limits given (or at all that was spent, if none is); each p is corrected (Holm) for the whole
/// family.
pub fn compare_family(
    a: &[PathBuf],
    others: &[Vec<PathBuf>],
    within: &[Within],
) -> Result<Vec<Comparison>, CompareError> {
    let first = read(a)?;
    let mut family = Vec::new();
    let limits: Vec<Option<Within>> =
        if within.is_empty() { vec![None] } else { within.iter().copied().map(Some).collect() };
    for other in others {
        let second = read(other)?;
        // A's seeds may be more than B's: what was not finished is compared where it was.
        let shared: Vec<&Log> = match second.len() < first.len() {
            true => first.iter().filter(|a| second.iter().any(|b| seed(b) == seed(a))).collect(),
            false => first.iter().collect(),
        };
        for &limit in &limits {
            let second: Vec<&Log> = second.iter().collect();
            family.push(compare_within(&shared, &second, limit)?);
        }
    }
    if family.len() == 1 {
        return Ok(family);
    }
    let corrected = holm(&family.iter().map(|c| c.paired.p).collect::<Vec<_>>());
    for (comparison, p) in family.iter_mut().zip(corrected) {
        comparison.holm_p = Some(p);
    }
    Ok(family)
}

/// Compares several seeds of B with the same seeds of A, the theorem being the unit.
pub fn compare_seeds(a: &[PathBuf], b: &[PathBuf]) -> Result<Comparison, CompareError> {
    let (a, b) = (read(a)?, read(b)?);
    compare_cells(&a.iter().collect::<Vec<_>>(), &b.iter().collect::<Vec<_>>())
}

fn read(paths: &[PathBuf]) -> Result<Vec<Log>, CompareError> {
    Ok(paths.iter().map(|path| Log::read(path)).collect::<Result<_, _>>()?)
}

/// Compares cells that were read already.
pub fn compare_cells(a: &[&Log], b: &[&Log]) -> Result<Comparison, CompareError> {
    compare_within(a, b, None)
}

/// Compares what cells had proved within a limit.
pub fn compare_within(
    a: &[&Log],
    b: &[&Log],
    within: Option<Within>,
) -> Result<Comparison, CompareError> {
    if let Some(Within { cost: Cost::Expansions, limit }) = within {
        let budgets = a.iter().chain(b).filter_map(|cell| Some(cell.manifest.as_ref()?.budget()));
        if let Some(budget) = budgets.min().filter(|&budget| budget < limit) {
            let reason =
                format!("the searches had {budget} expansions, and say nothing of {limit}");
            return Err(different(a, b, &reason));
        }
    }
    let set = Paired::new(&match_seeds(a, b, within)?, within);
    if set.theorems.is_empty() {
        return Err(different(a, b, "no theorem was completed in both"));
    }
    let paired = statistics::Comparison::of_theorems(&set.theorems)
        .map_err(|e| different(a, b, &e.to_string()))?;
    let side = |cells: &[&Log], solved: u64| {
        let records = || {
            let all = cells.iter().flat_map(|cell| cell.records.values());
            all.filter(|r| r.outcome != Outcome::Error && set.names.contains(r.theorem.as_str()))
        };
        let mean = |cost: Cost| {
            records().map(|record| cost.of(record) as f64).sum::<f64>() / records().count() as f64
        };
        let before = |record: &&catamount_evaluate::log::Record| {
            // What had nothing left to expand would not have gone on.
            let cut = matches!(record.outcome, Outcome::Budget | Outcome::Time);
            cut && within.is_some_and(|w| w.cost.of(record) < w.limit)
        };
        Side {
            logs: cells.iter().map(|c| c.path.clone()).collect(),
            label: label(cells),
            rate: wilson(solved as f64 / set.searches as f64 * paired.n as f64, paired.n),
            spent: Spent {
                expansions: mean(Cost::Expansions),
                distinct: mean(Cost::Distinct),
                tokens: mean(Cost::Tokens),
            },
            ended_before: records().filter(before).count(),
            capped: records().filter(|record| record.outcome == Outcome::Time).count(),
        }
    };
    let mut notes: Vec<String> = a.iter().chain(b).flat_map(|c| c.notes.iter().cloned()).collect();
    notes.dedup();
    notes.extend(environment_note(a, b));
    let differences: Vec<(f64, u64)> =
        set.theorems.iter().map(|t| (100.0 * (t.b as f64 - t.c as f64), t.seeds)).collect();
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
        within,
        searches: set.searches,
        visible_pp: paired.visible_pp(),
        paired,
        holm_p: None,
        bootstrap: bootstrap_searches(&differences, RESAMPLES, BOOTSTRAP_SEED),
        only_b: named(|t| t.b > 0),
        only_a: named(|t| t.c > 0),
        unpaired: set.unpaired.iter().map(|n| (*n).to_owned()).collect(),
        notes,
    })
}

/// The statistics alone, for tables that compare many cells at once; `None` when they cannot be
/// compared.
pub(crate) fn paired_statistics(a: &[&Log], b: &[&Log]) -> Option<statistics::Comparison> {
    let set = Paired::new(&match_seeds(a, b, None).ok()?, None);
    statistics::Comparison::of_theorems(&set.theorems).ok().filter(|c| c.n > 0)
}

/// The theorems completed on both sides at some seed, in the order of their names.
struct Paired<'a> {
    names: BTreeSet<&'a str>,
    theorems: Vec<Theorem>,
    /// Searches of these theorems on each side, and how many of them were successes.
    searches: u64,
    solved: (u64, u64),
    unpaired: Vec<&'a str>,
}

impl<'a> Paired<'a> {
    fn new(pairs: &[(&'a Log, &'a Log)], within: Option<Within>) -> Self {
        let mut all: BTreeSet<&str> = BTreeSet::new();
        for cell in pairs.iter().flat_map(|(x, y)| [x, y]) {
            all.extend(cell.records.keys().map(String::as_str));
        }
        let mut set = Self {
            names: BTreeSet::new(),
            theorems: Vec::new(),
            searches: 0,
            solved: (0, 0),
            unpaired: Vec::new(),
        };
        for name in all {
            // At the seeds that have it: each may have a split of its own.
            let solved = |log: &Log| {
                let soon = |w: Within| w.cost.of(&log.records[name]) <= w.limit;
                Some(log.solved(name)? && within.is_none_or(soon))
            };
            let both = |(x, y): &(&Log, &Log)| Some((solved(x)?, solved(y)?));
            let outcomes: Vec<(bool, bool)> = pairs.iter().filter_map(both).collect();
            if outcomes.is_empty() {
                set.unpaired.push(name);
                continue;
            }
            let count = |test: fn(&(bool, bool)) -> bool| {
                outcomes.iter().filter(|o| test(o)).count() as u64
            };
            let seeds = outcomes.len() as u64;
            set.searches += seeds;
            set.solved.0 += count(|o| o.0);
            set.solved.1 += count(|o| o.1);
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
fn match_seeds<'a>(
    a: &[&'a Log],
    b: &[&'a Log],
    within: Option<Within>,
) -> Result<Vec<(&'a Log, &'a Log)>, CompareError> {
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
    if a.len() == 1 {
        if let (Some(x), Some(y)) = (seed(a[0]), seed(b[0]))
            && x != y
        {
            return Err(different(a, b, &format!("different seeds ({x} and {y})")));
        }
        return same_theorems(vec![(a[0], b[0])], within);
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
    same_theorems(sorted_a.into_iter().zip(sorted_b).collect(), within)
}

fn seed(cell: &Log) -> Option<u64> {
    cell.manifest.as_ref().map(|manifest| manifest.seed())
}

/// Refuses pairs of different pools or budgets. Seeds may have pools of their own, where each has
/// its own split. A smaller budget is a prefix of a larger one, so that both may be held to it.
fn same_theorems<'a>(
    pairs: Vec<(&'a Log, &'a Log)>,
    within: Option<Within>,
) -> Result<Vec<(&'a Log, &'a Log)>, CompareError> {
    let budget = pairs.iter().find_map(|(a, _)| Some(a.manifest.as_ref()?.budget()));
    let held = within.is_some_and(|within| within.cost == Cost::Expansions);
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
        } else if held {
            continue;
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
