//! The sample of search trees that the page's viewer carries.
//!
//! Trees can be far larger than a page should be, so a few theorems are chosen, those on which
//! cells disagree first, and added while they fit. The page says how many were left out.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use catamount_base::{Lines, LinesError};
use catamount_evaluate::Log;
use catamount_evaluate::log::{TreeRecord, TreeVerdict};
use catamount_traces::Step;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::group::Group;
use crate::names::strategy_label;
use crate::outcomes::key;
use crate::run::Run;

/// At most this many theorems are shown.
const THEOREMS: usize = 12;
/// And at most this much text, in bytes of JSON.
const BYTES: usize = 3_000_000;
/// Longer states and messages are cut.
const TEXT: usize = 400;

/// What the viewer is fed with; texts are numbered, since states and tactics repeat.
#[derive(Default, Serialize)]
pub(crate) struct Sample {
    pub(crate) strings: Vec<String>,
    pub(crate) theorems: Vec<SampledTheorem>,
    /// The searches that kept trees.
    pub(crate) kept: Vec<String>,
    /// Theorems with trees in the run folder.
    pub(crate) available: usize,
    /// Whether demonstrated traces could be read.
    pub(crate) demonstrated: bool,
}

#[derive(Serialize)]
pub(crate) struct SampledTheorem {
    pub(crate) name: String,
    /// Demonstrated tactics and the states before them, as numbers of strings.
    pub(crate) trace: Vec<(usize, usize)>,
    pub(crate) cells: Vec<SampledTree>,
}

#[derive(Serialize)]
pub(crate) struct SampledTree {
    /// Names the search in links, as in the table of theorems.
    pub(crate) key: String,
    pub(crate) label: String,
    pub(crate) budget: u64,
    pub(crate) outcome: String,
    pub(crate) root: usize,
    /// `[parent, tactic, log p, verdict, text, score]`; verdict 0 open, 1 proved, 2 rejected.
    pub(crate) expansions: Vec<(u64, usize, f64, u8, usize, Option<f64>)>,
}

/// Only the name of a tree: enough to choose by.
#[derive(Deserialize)]
struct Name {
    theorem: String,
}

struct Strings {
    list: Vec<String>,
    places: HashMap<String, usize>,
    bytes: usize,
}

impl Strings {
    fn number(&mut self, text: &str) -> usize {
        let cut: String = if text.chars().count() > TEXT {
            text.chars().take(TEXT).chain(['\u{2026}']).collect()
        } else {
            text.to_owned()
        };
        if let Some(&place) = self.places.get(&cut) {
            return place;
        }
        self.bytes += cut.len() + 8;
        self.list.push(cut.clone());
        self.places.insert(cut, self.list.len() - 1);
        self.list.len() - 1
    }
}

/// Chooses and reads the sample; what cannot be read is noted.
pub(crate) fn sample(run: &Run, notes: &mut Vec<String>) -> Sample {
    let sources = sources(run);
    let mut holders: BTreeMap<String, usize> = BTreeMap::new();
    for (_, path) in &sources {
        each::<Name>(path, notes, |name| *holders.entry(name.theorem).or_default() += 1);
    }
    let available = holders.len();
    let chosen = choose(&sources, holders);
    Sample { available, ..read(run, &sources, &chosen, &BTreeMap::new()) }
}

/// The trees of one theorem, whether or not the page carries them; and those that were searched
/// again, by the names of the searches in links.
pub(crate) fn of(run: &Run, theorem: &str, again: Option<&BTreeMap<String, TreeRecord>>) -> Sample {
    let none = BTreeMap::new();
    read(run, &sources(run), &[theorem.to_owned()], again.unwrap_or(&none))
}

/// The log of a search that has a theorem, but not its tree.
pub(crate) fn unkept<'a>(run: &'a Run, theorem: &str, search: &str) -> Option<&'a Log> {
    let (_, log) = named(run, search)?;
    let mut kept = !log.records.contains_key(theorem);
    if let Some(path) = log.trees() {
        each::<Name>(&path, &mut Vec::new(), |name| kept |= name.theorem == theorem);
    }
    (!kept).then_some(log)
}

/// A search by its name in links.
fn named<'a>(run: &'a Run, search: &str) -> Option<(&'a Group, &'a Log)> {
    let several = several(run);
    let named = |group: &Group, seed: u64| {
        let seed = several.then_some(seed);
        key(&group.objective.full, &group.strategy, group.budget, seed) == search
    };
    let found = run.cells().find(|(group, seed, _)| named(group, *seed));
    found.map(|(group, _, log)| (group, log))
}

/// Whether links have to say which seed.
fn several(run: &Run) -> bool {
    run.groups.iter().any(|group| group.cells.len() > 1)
}

fn read(
    run: &Run,
    sources: &[(&Group, PathBuf)],
    chosen: &[String],
    again: &BTreeMap<String, TreeRecord>,
) -> Sample {
    let mut strings = Strings { list: Vec::new(), places: HashMap::new(), bytes: 0 };
    strings.number("");
    let mut trees: HashMap<(usize, String), TreeRecord> = HashMap::new();
    for (i, (_, path)) in sources.iter().enumerate() {
        each::<TreeRecord>(path, &mut Vec::new(), |tree| {
            if chosen.contains(&tree.theorem) {
                trees.insert((i, tree.theorem.clone()), tree);
            }
        });
    }
    let traces = traces(run, chosen);
    let several = several(run);
    let kept = sources.iter().map(|(group, _)| link(group, several)).collect();
    let mut sample = Sample { kept, demonstrated: !traces.is_empty(), ..Sample::default() };
    let mut used = 0;
    for name in chosen {
        let before = (strings.bytes, strings.list.len());
        let mut cells = Vec::new();
        for (i, (group, _)) in sources.iter().enumerate() {
            if let Some(tree) = trees.get(&(i, name.clone())) {
                cells.push(sampled(group, several, tree, &mut strings));
            }
        }
        for (search, tree) in again.iter().filter(|(_, tree)| tree.theorem == *name) {
            if let Some((group, _)) = named(run, search) {
                let mut cell = sampled(group, several, tree, &mut strings);
                cell.key.clone_from(search);
                cell.label.push_str(", searched again");
                cells.push(cell);
            }
        }
        let steps = traces.get(name).into_iter().flatten();
        let trace: Vec<_> =
            steps.map(|s| (strings.number(&s.tactic), strings.number(&s.state))).collect();
        used += strings.bytes - before.0
            + cells.iter().map(|c| 120 + 36 * c.expansions.len()).sum::<usize>();
        if used > BYTES && !sample.theorems.is_empty() {
            let dropped = strings.list.split_off(before.1);
            for text in dropped {
                strings.places.remove(&text);
            }
            break;
        }
        sample.theorems.push(SampledTheorem { name: name.clone(), trace, cells });
    }
    sample.strings = strings.list;
    sample
}

/// For every objective and strategy, the largest budget that kept trees; the first seed.
fn sources(run: &Run) -> Vec<(&Group, PathBuf)> {
    let mut sources: Vec<(&Group, PathBuf)> = Vec::new();
    for group in run.groups.iter().rev() {
        let Some(path) = group.cells.values().find_map(catamount_evaluate::Log::trees) else {
            continue;
        };
        if !sources
            .iter()
            .any(|(g, _)| g.objective == group.objective && g.strategy == group.strategy)
        {
            sources.push((group, path));
        }
    }
    sources.sort_by_key(|(g, _)| (crate::names::strategy_rank(&g.strategy), g.objective.rank()));
    sources
}

/// Theorems in most cells first; among those, the ones some cells prove and others do not.
fn choose(sources: &[(&Group, PathBuf)], holders: BTreeMap<String, usize>) -> Vec<String> {
    let solved = |name: &str| {
        let outcomes: Vec<bool> =
            sources.iter().filter_map(|(g, _)| g.cells.values().next()?.solved(name)).collect();
        let yes = outcomes.iter().filter(|s| **s).count();
        // 0: cells disagree, 1: all prove it, 2: none does.
        if yes == 0 { 2 } else { u8::from(yes == outcomes.len()) }
    };
    let mut kinds: [Vec<(usize, String)>; 3] = Default::default();
    for (name, cells) in holders {
        kinds[solved(&name) as usize].push((cells, name));
    }
    for kind in &mut kinds {
        kind.sort_by(|a, b| b.0.cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
    }
    let mut chosen = Vec::new();
    let mut iters = kinds.map(Vec::into_iter);
    // Three of disagreement to one each of the others, until enough.
    while chosen.len() < THEOREMS {
        let before = chosen.len();
        for (kind, share) in iters.iter_mut().zip([3, 1, 1]) {
            chosen.extend(kind.by_ref().take(share).map(|(_, name)| name));
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen.truncate(THEOREMS);
    chosen
}

/// The name in links of the search whose trees are shown for a group.
fn link(group: &Group, several: bool) -> String {
    let seed = group.cells.keys().next().copied().filter(|_| several);
    key(&group.objective.full, &group.strategy, group.budget, seed)
}

fn sampled(group: &Group, several: bool, tree: &TreeRecord, strings: &mut Strings) -> SampledTree {
    let outcome = group
        .cells
        .values()
        .next()
        .and_then(|c| c.records.get(&tree.theorem))
        .map_or_else(|| "unknown".to_owned(), |r| format!("{:?}", r.outcome).to_lowercase());
    let short = |v: f64| if v.is_finite() { (v * 1000.0).round() / 1000.0 } else { -999.0 };
    SampledTree {
        key: link(group, several),
        label: format!("{} \u{b7} {}", strategy_label(&group.strategy), group.objective.label()),
        budget: group.budget,
        outcome,
        root: strings.number(&tree.root),
        expansions: tree
            .expansions
            .iter()
            .enumerate()
            .map(|(i, e)| {
                let verdict = match e.verdict {
                    TreeVerdict::Open => 0,
                    TreeVerdict::Proved => 1,
                    TreeVerdict::Rejected => 2,
                };
                // A parent that does not precede its child would make the viewer loop: such a node
                // hangs from the root.
                let parent = if e.parent <= i as u64 { e.parent } else { 0 };
                (
                    parent,
                    strings.number(&e.tactic),
                    short(e.log_p),
                    verdict,
                    strings.number(&e.text),
                    e.score.map(short),
                )
            })
            .collect(),
    }
}

/// Demonstrated steps of the chosen theorems, from the pool's file where it can still be read.
fn traces(run: &Run, chosen: &[String]) -> HashMap<String, Vec<Step>> {
    let described = run.cells().find_map(|(_, _, c)| Some((c, c.manifest.as_ref()?)));
    let Some((cell, manifest)) = described else { return HashMap::new() };
    // The study that the cell is part of: with several seeds, one of them.
    let study = cell.path.parent().and_then(Path::parent).unwrap_or(&run.dir);
    let given = PathBuf::from(&manifest.pool.file);
    let file = given.file_name().map(PathBuf::from).unwrap_or_default();
    let found =
        [given.clone(), study.join(&given), study.join("data").join(&file), run.dir.join(&file)]
            .into_iter()
            .find(|p| p.is_file());
    let Some(Ok(loaded)) = found.map(|p| catamount_traces::read_any(&p)) else {
        return HashMap::new();
    };
    loaded
        .traces
        .into_iter()
        .filter(|t| !t.steps.is_empty() && chosen.contains(&t.theorem.name))
        .map(|t| (t.theorem.name, t.steps))
        .collect()
}

/// Calls back with every tree of a file; lines that are none are noted, and reading goes on.
fn each<T: DeserializeOwned>(path: &Path, notes: &mut Vec<String>, mut found: impl FnMut(T)) {
    let mut broken = Vec::new();
    let lines = match Lines::<T>::open(path) {
        Ok(lines) => lines,
        Err(error) => {
            notes.push(format!("{error}: it cannot be read, so its trees are not shown"));
            return;
        }
    };
    for line in lines {
        match line {
            Ok((_, tree)) => found(tree),
            Err(LinesError::Damaged { line, .. }) => broken.push(line.to_string()),
            Err(error @ LinesError::Io { .. }) => {
                notes.push(format!("{error}: the rest of its trees is not shown"));
                break;
            }
        }
    }
    if !broken.is_empty() {
        notes.push(format!(
            "{}: not a tree record on line(s) {}; set aside",
            path.display(),
            broken.join(", ")
        ));
    }
}
