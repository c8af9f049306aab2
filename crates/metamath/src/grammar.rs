//! The database's syntax axioms as a grammar, and a chart parser that turns symbols into terms.
//!
//! The parser is Earley's, with the rules folded into one trie so that rules with a common
//! beginning are followed once. It keeps its work in vectors, never on the call stack, and gives up
//! after a fixed amount of work, so that neither deep nesting nor an ambiguous grammar can crash it
//! or make it run away.

use rustc_hash::{FxHashMap, FxHashSet};

/// One symbol of the text to parse.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Token {
    /// A constant.
    Constant(u32),
    /// A variable: its typecode and the node that stands for it in terms.
    Leaf {
        /// The typecode of the variable.
        typecode: u32,
        /// The node written into the term.
        node: u32,
    },
}

/// One element of a rule's right-hand side.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Element {
    /// This constant.
    Constant(u32),
    /// Any term of this typecode.
    Term(u32),
}

/// Why symbols do not form a term.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unparsed {
    /// No term can go on with the symbol at this position (or ends here, at the end of the text).
    At(usize),
    /// The parser gave up.
    TooMuchWork,
}

/// How many chart items one parse may make for each symbol, and at least.
const WORK_PER_SYMBOL: usize = 2_000;
const WORK_AT_LEAST: usize = 100_000;
const WORK_AT_MOST: usize = 4_000_000;

#[derive(Debug, Default)]
struct TrieNode {
    /// The next nodes by nonterminal; few.
    terms: Vec<(u32, u32)>,
    /// (typecode, node) of the rules that end here.
    ends: Vec<(u32, u32)>,
}

/// The grammar.
#[derive(Debug)]
pub(crate) struct Grammar {
    trie: Vec<TrieNode>,
    /// The next node by (node, constant), for all nodes together.
    constants: FxHashMap<(u32, u32), u32>,
}

#[derive(Clone, Copy)]
struct Item {
    trie: u32,
    origin: u32,
    /// The item before the last element.
    previous: u32,
    /// The completed term that was the last element, or `NONE` after a constant.
    child: u32,
}

#[derive(Clone, Copy)]
struct Complete {
    node: u32,
    /// The item that ended the rule, or `NONE` for a variable.
    item: u32,
}

const NONE: u32 = u32::MAX;
const ROOT: u32 = 0;

/// The parser's working memory, to be reused from one text to the next.
#[derive(Default)]
pub(crate) struct Chart {
    items: Vec<Item>,
    complete: Vec<Complete>,
    /// Per position, where its items begin.
    sets: Vec<u32>,
    /// Per position, the items that wait for a term, and where that list begins.
    waiting: Vec<u32>,
    waiting_from: Vec<u32>,
    /// (trie, origin) of the items, and (typecode, origin) of the completed terms, at the position
    /// being filled.
    seen: FxHashSet<(u32, u32)>,
    done: FxHashSet<(u32, u32)>,
    /// The items made for the next position.
    next: Vec<Item>,
    stack: Vec<u32>,
}

impl Grammar {
    /// A grammar without rules.
    pub(crate) fn new() -> Self {
        Grammar { trie: vec![TrieNode::default()], constants: FxHashMap::default() }
    }

    /// Adds a rule: these elements form a term of the typecode, with this node at its head.
    pub(crate) fn add(&mut self, elements: &[Element], typecode: u32, node: u32) {
        let mut at = ROOT;
        for element in elements {
            let known = match *element {
                Element::Constant(symbol) => self.constants.get(&(at, symbol)).copied(),
                Element::Term(wanted) => {
                    self.trie[at as usize].terms.iter().find(|(t, _)| *t == wanted).map(|(_, n)| *n)
                }
            };
            at = known.unwrap_or_else(|| {
                let new = self.trie.len() as u32;
                self.trie.push(TrieNode::default());
                match *element {
                    Element::Constant(symbol) => {
                        self.constants.insert((at, symbol), new);
                    }
                    Element::Term(wanted) => self.trie[at as usize].terms.push((wanted, new)),
                }
                new
            });
        }
        self.trie[at as usize].ends.push((typecode, node));
    }

    /// Parses the tokens as a term of the first of these typecodes for which there is one, and
    /// appends it to `out`.
    pub(crate) fn parse(
        &self,
        chart: &mut Chart,
        tokens: &[Token],
        typecodes: &[u32],
        out: &mut Vec<u32>,
    ) -> Result<(), Unparsed> {
        let limit = (tokens.len() * WORK_PER_SYMBOL).clamp(WORK_AT_LEAST, WORK_AT_MOST);
        chart.items.clear();
        chart.complete.clear();
        chart.sets.clear();
        chart.waiting.clear();
        chart.waiting_from.clear();
        chart.next.clear();
        chart.sets.push(0);
        chart.waiting_from.push(0);
        chart.items.push(Item { trie: ROOT, origin: 0, previous: NONE, child: NONE });
        chart.waiting.push(0);
        let mut goal: Option<(usize, u32)> = None;
        let rank = |typecode: u32| typecodes.iter().position(|t| *t == typecode);
        for (position, token) in tokens.iter().enumerate() {
            let (here, end) = (position as u32, position + 1 == tokens.len());
            // Scan: everything in the present set that can take the token.
            let first = chart.sets[position] as usize;
            let next_set = chart.items.len();
            chart.seen.clear();
            chart.done.clear();
            match *token {
                Token::Constant(symbol) => {
                    for index in first..next_set {
                        let item = chart.items[index];
                        if let Some(&trie) = self.constants.get(&(item.trie, symbol)) {
                            chart.next.push(Item {
                                trie,
                                origin: item.origin,
                                previous: index as u32,
                                child: NONE,
                            });
                        }
                    }
                }
                Token::Leaf { typecode, node } => {
                    let term = chart.complete.len() as u32;
                    chart.complete.push(Complete { node, item: NONE });
                    self.advance(chart, here, typecode, term);
                    chart.done.insert((typecode, here));
                    if end && here == 0 {
                        goal = rank(typecode).map(|rank| (rank, term));
                    }
                }
            }
            chart.sets.push(next_set as u32);
            chart.waiting_from.push(chart.waiting.len() as u32);
            // Complete: the list grows while it is worked through.
            let mut at = 0;
            let mut predicted = false;
            while at < chart.next.len() {
                let item = chart.next[at];
                at += 1;
                if !chart.seen.insert((item.trie, item.origin)) {
                    continue;
                }
                let index = chart.items.len() as u32;
                chart.items.push(item);
                let trie = &self.trie[item.trie as usize];
                if !trie.terms.is_empty() {
                    chart.waiting.push(index);
                    predicted = true;
                }
                for &(typecode, node) in &trie.ends {
                    if chart.done.insert((typecode, item.origin)) {
                        let term = chart.complete.len() as u32;
                        chart.complete.push(Complete { node, item: index });
                        self.advance(chart, item.origin, typecode, term);
                        if end
                            && item.origin == 0
                            && rank(typecode)
                                .is_some_and(|new| goal.is_none_or(|(old, _)| new < old))
                        {
                            goal = rank(typecode).map(|rank| (rank, term));
                        }
                    }
                }
                if chart.items.len() + chart.next.len() > limit {
                    return Err(Unparsed::TooMuchWork);
                }
            }
            chart.next.clear();
            if chart.items.len() == next_set && !end {
                // A variable is a whole term by itself: then it is the next symbol that cannot
                // follow.
                let whole = position == 0 && matches!(token, Token::Leaf { .. });
                return Err(Unparsed::At(position + usize::from(whole)));
            }
            if predicted {
                let index = chart.items.len() as u32;
                chart.items.push(Item {
                    trie: ROOT,
                    origin: here + 1,
                    previous: NONE,
                    child: NONE,
                });
                chart.waiting.push(index);
            }
        }
        let (_, term) = goal.ok_or(Unparsed::At(tokens.len()))?;
        self.write(chart, term, out);
        Ok(())
    }

    /// A term of this typecode spans from `origin` to the position being filled: everything that
    /// waited for one goes on.
    fn advance(&self, chart: &mut Chart, origin: u32, typecode: u32, term: u32) {
        let from = chart.waiting_from[origin as usize] as usize;
        let to = chart
            .waiting_from
            .get(origin as usize + 1)
            .map_or(chart.waiting.len(), |&to| to as usize);
        for at in from..to {
            let index = chart.waiting[at];
            let item = chart.items[index as usize];
            if let Some(&(_, trie)) =
                self.trie[item.trie as usize].terms.iter().find(|(wanted, _)| *wanted == typecode)
            {
                chart.next.push(Item { trie, origin: item.origin, previous: index, child: term });
            }
        }
    }

    /// Writes a completed term in preorder.
    fn write(&self, chart: &mut Chart, term: u32, out: &mut Vec<u32>) {
        chart.stack.clear();
        chart.stack.push(term);
        while let Some(term) = chart.stack.pop() {
            let Complete { node, mut item } = chart.complete[term as usize];
            out.push(node);
            // The items lead from the last child back to the first, which thereby ends on top of
            // the stack.
            while item != NONE {
                let Item { previous, child, .. } = chart.items[item as usize];
                if child != NONE {
                    chart.stack.push(child);
                }
                item = previous;
            }
        }
    }
}
