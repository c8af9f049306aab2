//! The kernel: applying an assertion to the first open goal.
//!
//! Rules, for a theorem with hypotheses H and mandatory variables V:
//! - the goal must be an instance of the assertion's conclusion (one-way matching); slots that do
//!   not occur in the conclusion take the terms that the tactic gives;
//! - for each distinct-variable condition of the assertion, no variable may occur in both terms,
//!   and each pair of variables across them must be distinct by the theorem's own conditions, or
//!   hold a *dummy*: a variable outside V. A dummy counts as distinct from every other variable,
//!   because a `$d` that names it can always be added beside the theorem without changing what the
//!   theorem says (the exporter and the checker add exactly these);
//! - the instances of the assertion's essential hypotheses become the first goals, in order. A goal
//!   that is one of H, or that is open already, is not opened again.

use hashbrown::HashTable;
use rustc_hash::FxHasher;
use std::hash::Hasher;

use crate::assertion::{AssertionId, SLOT};
use crate::database::Database;

/// The largest goal, in nodes. The largest of set.mm has fewer than a thousand.
pub(crate) const LARGEST_GOAL: usize = 1 << 14;

/// No more goals.
pub(crate) const QED: u32 = u32::MAX;

/// A goal of a board: equal goals have equal ids.
pub(crate) type GoalId = u32;

/// Why the kernel refuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// Nothing is left to prove.
    NoGoal,
    /// The assertion does not precede the theorem.
    Later,
    /// Not every open slot is given a term.
    Unbound,
    /// The conclusion does not match.
    Mismatch,
    /// A distinct-variable condition of two slots fails for these variables.
    Distinct(u16, u16, u32, u32),
    /// The result would be larger than the kernel allows.
    TooLarge,
}

#[derive(Clone, Copy)]
struct Cell {
    goal: GoalId,
    next: u32,
}

/// Where the term of a slot lies.
#[derive(Clone, Copy, Debug)]
enum Binding {
    Free,
    /// In the board's nodes.
    Board(u32, u32),
    /// In the terms that came with the tactic.
    Given(u32, u32),
}

/// Terms for the open slots of an assertion, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    pub(crate) nodes: Vec<u32>,
    /// Where each term begins and ends.
    pub(crate) spans: Vec<(u32, u32)>,
}

impl Given {
    pub(crate) fn term(&self, index: usize) -> &[u32] {
        let (from, to) = self.spans[index];
        &self.nodes[from as usize..to as usize]
    }
}

/// The goals that have come up in the proof of one theorem, and the lists of goals that are its
/// states.
pub(crate) struct Board {
    pub(crate) theorem: AssertionId,
    /// The theorem's place in the database.
    pub(crate) at: u32,
    nodes: Vec<u32>,
    spans: Vec<(u32, u32)>,
    index: HashTable<GoalId>,
    /// The goals below this one are the theorem's hypotheses.
    pub(crate) hypotheses: u32,
    /// The theorem's conclusion.
    pub(crate) conclusion: GoalId,
    cells: Vec<Cell>,
    root: u32,
    /// By variable: one more than its row in `distinct` if it is mandatory, else 0.
    rows: Vec<u16>,
    distinct: Vec<bool>,
    width: usize,
    bindings: Vec<Binding>,
    /// The instances of the last assertion's essential hypotheses, in order, hypotheses and
    /// repetitions included.
    pub(crate) children: Vec<GoalId>,
    fresh: Vec<GoalId>,
    left: Vec<u32>,
    right: Vec<u32>,
}

impl Board {
    /// Opens a theorem.
    pub(crate) fn new(database: &Database, theorem: AssertionId) -> Self {
        let assertion = database.assertion(theorem);
        let width = assertion.slots.len();
        let mut rows = vec![0; database.nodes.variables as usize];
        for (row, &variable) in assertion.slots.iter().enumerate() {
            rows[variable as usize] = row as u16 + 1;
        }
        let mut distinct = vec![false; width * width];
        for &(a, b) in &assertion.distinct {
            distinct[usize::from(a) * width + usize::from(b)] = true;
            distinct[usize::from(b) * width + usize::from(a)] = true;
        }
        let mut board = Board {
            theorem,
            at: assertion.ordinal,
            nodes: Vec::with_capacity(1024),
            spans: Vec::with_capacity(32),
            index: HashTable::with_capacity(32),
            hypotheses: 0,
            conclusion: 0,
            cells: Vec::with_capacity(32),
            root: QED,
            rows,
            distinct,
            width,
            bindings: Vec::new(),
            children: Vec::new(),
            fresh: Vec::new(),
            left: Vec::new(),
            right: Vec::new(),
        };
        for essential in &assertion.essentials {
            board.nodes.extend_from_slice(&assertion.concrete(essential));
            board.intern(); // two equal hypotheses are one
        }
        board.hypotheses = board.spans.len() as u32;
        board.nodes.extend_from_slice(&assertion.concrete(&assertion.conclusion));
        board.conclusion = board.intern().0;
        if board.conclusion >= board.hypotheses {
            board.root = board.cons(board.conclusion, QED);
        }
        board
    }

    /// The state with the theorem itself to prove; [`QED`] if it is one of its hypotheses.
    pub(crate) fn root(&self) -> u32 {
        self.root
    }

    /// The formula of a goal.
    pub(crate) fn formula(&self, goal: GoalId) -> &[u32] {
        let (from, to) = self.spans[goal as usize];
        &self.nodes[from as usize..to as usize]
    }

    /// The first goal of a state and the rest.
    pub(crate) fn first(&self, state: u32) -> Option<(GoalId, u32)> {
        self.cells.get(state as usize).map(|cell| (cell.goal, cell.next))
    }

    /// The goals of a state, first goal first.
    pub(crate) fn goals(&self, mut state: u32) -> impl Iterator<Item = GoalId> + '_ {
        std::iter::from_fn(move || {
            let (goal, rest) = self.first(state)?;
            state = rest;
            Some(goal)
        })
    }

    /// The term that the last successful application gave to a slot.
    pub(crate) fn bound<'a>(&'a self, slot: usize, given: &'a Given) -> &'a [u32] {
        match self.bindings[slot] {
            Binding::Board(from, to) => &self.nodes[from as usize..to as usize],
            Binding::Given(from, to) => &given.nodes[from as usize..to as usize],
            Binding::Free => &[],
        }
    }

    /// Applies an assertion to the first goal of a state and returns the new state.
    pub(crate) fn apply(
        &mut self,
        database: &Database,
        state: u32,
        id: AssertionId,
        given: &Given,
    ) -> Result<u32, Refusal> {
        let (goal, rest) = self.first(state).ok_or(Refusal::NoGoal)?;
        let assertion = database.assertion(id);
        if assertion.ordinal >= self.at {
            return Err(Refusal::Later);
        }
        if given.spans.len() != assertion.open.len() {
            return Err(Refusal::Unbound);
        }
        self.bindings.clear();
        self.bindings.resize(assertion.slots.len(), Binding::Free);
        for (&slot, &(from, to)) in assertion.open.iter().zip(&given.spans) {
            self.bindings[usize::from(slot)] = Binding::Given(from, to);
        }
        self.unify(database, &assertion.conclusion, &assertion.typecodes, goal)?;
        if !assertion.distinct.is_empty() {
            self.check_distinct(database, &assertion.distinct, given)?;
        }
        self.children.clear();
        self.fresh.clear();
        let mut repeats = false;
        for essential in &assertion.essentials {
            let (child, new) = self.instantiate(essential, given)?;
            self.children.push(child);
            if child >= self.hypotheses && !self.fresh.contains(&child) {
                self.fresh.push(child);
                repeats |= !new;
            }
        }
        let mut list = if repeats { self.without_fresh(rest) } else { rest };
        for at in (0..self.fresh.len()).rev() {
            list = self.cons(self.fresh[at], list);
        }
        Ok(list)
    }

    fn cons(&mut self, goal: GoalId, next: u32) -> u32 {
        self.cells.push(Cell { goal, next });
        self.cells.len() as u32 - 1
    }

    /// Matches a conclusion against a goal, filling the bindings.
    fn unify(
        &mut self,
        database: &Database,
        pattern: &[u32],
        typecodes: &[u32],
        goal: GoalId,
    ) -> Result<(), Refusal> {
        let (from, to) = self.spans[goal as usize];
        let (mut at, end) = (from as usize, to as usize);
        for &node in pattern {
            if node & SLOT == 0 {
                if self.nodes[at] != node {
                    return Err(Refusal::Mismatch);
                }
                at += 1;
                continue;
            }
            let slot = (node & !SLOT) as usize;
            match self.bindings[slot] {
                Binding::Board(from, to) => {
                    let length = (to - from) as usize;
                    if at + length > end
                        || self.nodes[at..at + length] != self.nodes[from as usize..to as usize]
                    {
                        return Err(Refusal::Mismatch);
                    }
                    at += length;
                }
                Binding::Free | Binding::Given(..) => {
                    if database.nodes.kinds[self.nodes[at] as usize].typecode != typecodes[slot] {
                        return Err(Refusal::Mismatch);
                    }
                    let to = database.nodes.end(&self.nodes, at);
                    self.bindings[slot] = Binding::Board(at as u32, to as u32);
                    at = to;
                }
            }
        }
        Ok(())
    }

    fn check_distinct(
        &mut self,
        database: &Database,
        pairs: &[(u16, u16)],
        given: &Given,
    ) -> Result<(), Refusal> {
        let (mut left, mut right) =
            (std::mem::take(&mut self.left), std::mem::take(&mut self.right));
        let mut result = Ok(());
        'pairs: for &(a, b) in pairs {
            self.variables(database, usize::from(a), given, &mut left);
            self.variables(database, usize::from(b), given, &mut right);
            for &u in &left {
                for &v in &right {
                    if !self.are_distinct(u, v) {
                        result = Err(Refusal::Distinct(a, b, u, v));
                        break 'pairs;
                    }
                }
            }
        }
        (self.left, self.right) = (left, right);
        result
    }

    /// The variables of a slot's term, each once.
    fn variables(&self, database: &Database, slot: usize, given: &Given, out: &mut Vec<u32>) {
        out.clear();
        for &node in self.bound(slot, given) {
            if database.nodes.is_variable(node) && !out.contains(&node) {
                out.push(node);
            }
        }
    }

    fn are_distinct(&self, u: u32, v: u32) -> bool {
        let (row, column) = (self.rows[u as usize], self.rows[v as usize]);
        u != v
            && (row == 0
                || column == 0
                || self.distinct[usize::from(row - 1) * self.width + usize::from(column - 1)])
    }

    fn instantiate(&mut self, pattern: &[u32], given: &Given) -> Result<(GoalId, bool), Refusal> {
        let start = self.nodes.len();
        for &node in pattern {
            if node & SLOT == 0 {
                self.nodes.push(node);
                continue;
            }
            match self.bindings[(node & !SLOT) as usize] {
                Binding::Board(from, to) => {
                    self.nodes.extend_from_within(from as usize..to as usize)
                }
                Binding::Given(from, to) => {
                    self.nodes.extend_from_slice(&given.nodes[from as usize..to as usize])
                }
                Binding::Free => {}
            }
            if self.nodes.len() - start > LARGEST_GOAL {
                self.nodes.truncate(start);
                return Err(Refusal::TooLarge);
            }
        }
        Ok(self.intern())
    }

    /// Makes a goal of the nodes after the last goal, or finds the goal that they are; says whether
    /// it is new.
    fn intern(&mut self) -> (GoalId, bool) {
        let start = self.spans.last().map_or(0, |span| span.1) as usize;
        let (old, new) = self.nodes.split_at(start);
        let spans = &self.spans;
        let hash = hash(new);
        let same = |goal: &GoalId| {
            let (from, to) = spans[*goal as usize];
            old[from as usize..to as usize] == *new
        };
        if let Some(&known) = self.index.find(hash, same) {
            self.nodes.truncate(start);
            return (known, false);
        }
        let goal = self.spans.len() as u32;
        self.spans.push((start as u32, self.nodes.len() as u32));
        let (nodes, spans) = (&self.nodes, &self.spans);
        self.index.insert_unique(hash, goal, |&goal| {
            let (from, to) = spans[goal as usize];
            self::hash(&nodes[from as usize..to as usize])
        });
        (goal, true)
    }

    /// A list without the goals that are about to be put in front of it.
    fn without_fresh(&mut self, list: u32) -> u32 {
        let kept: Vec<GoalId> = self.goals(list).collect();
        let Some(last) = kept.iter().rposition(|goal| self.fresh.contains(goal)) else {
            return list;
        };
        let mut tail = list;
        for _ in 0..=last {
            tail = self.cells[tail as usize].next;
        }
        for goal in kept[..last].iter().rev() {
            if !self.fresh.contains(goal) {
                tail = self.cons(*goal, tail);
            }
        }
        tail
    }
}

fn hash(nodes: &[u32]) -> u64 {
    let mut hasher = FxHasher::default();
    for pair in nodes.chunks(2) {
        hasher.write_u64(
            u64::from(pair[0]) << 32 | u64::from(pair.get(1).copied().unwrap_or(u32::MAX)),
        );
    }
    hasher.finish()
}
