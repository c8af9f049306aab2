//! From applications to an ordinary compressed Metamath proof.

use rustc_hash::FxHashMap;

use crate::assertion::Mandatory;
use crate::database::Database;
use crate::replay::Replay;

/// A compressed proof, as it stands between `$=` and `$.`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Proof {
    /// The labels in the parentheses.
    pub(crate) labels: Vec<Box<str>>,
    /// The steps.
    pub(crate) letters: String,
    /// The nodes of the variables it uses beside the theorem's own.
    pub(crate) dummies: Vec<u32>,
}

/// A step of a proof; equal steps are one.
struct Item {
    step: Step,
    /// Where its children begin and end in [`Steps::children`].
    children: (u32, u32),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Step {
    /// A mandatory hypothesis of the theorem.
    Hypothesis(u32),
    /// A variable or syntax axiom.
    Node(u32),
    /// A logical assertion.
    Assertion(u32),
}

#[derive(Default)]
struct Steps {
    items: Vec<Item>,
    children: Vec<u32>,
    known: FxHashMap<(Step, Box<[u32]>), u32>,
}

impl Steps {
    fn add(&mut self, step: Step, children: &[u32]) -> u32 {
        let key = (step, Box::from(children));
        if let Some(&item) = self.known.get(&key) {
            return item;
        }
        let item = self.items.len() as u32;
        let from = self.children.len() as u32;
        self.children.extend_from_slice(children);
        self.items.push(Item { step, children: (from, self.children.len() as u32) });
        self.known.insert(key, item);
        item
    }

    fn children(&self, item: u32) -> &[u32] {
        let (from, to) = self.items[item as usize].children;
        &self.children[from as usize..to as usize]
    }

    /// The steps that build a term: from its end, so that a node finds its children on the stack.
    fn term(
        &mut self,
        database: &Database,
        floating: &FxHashMap<u32, u32>,
        term: &[u32],
        stack: &mut Vec<u32>,
    ) -> u32 {
        stack.clear();
        let mut children = Vec::new();
        for &node in term.iter().rev() {
            let kind = &database.nodes.kinds[node as usize];
            let item = match floating.get(&node) {
                Some(&hypothesis) => self.add(Step::Hypothesis(hypothesis), &[]),
                None => {
                    let top = stack.len();
                    children.clear();
                    children
                        .extend(kind.order.iter().map(|&child| stack[top - 1 - child as usize]));
                    stack.truncate(top - kind.arity as usize);
                    self.add(Step::Node(node), &children)
                }
            };
            stack.push(item);
        }
        stack.pop().unwrap_or(0)
    }
}

/// Writes down a finished replay.
///
/// Each goal takes the last application made to it: whatever that rests on was still open then and
/// was closed later, so the steps cannot run in a circle.
pub(crate) fn compress(database: &Database, replay: &Replay) -> Proof {
    let theorem = database.assertion(replay.board.theorem);
    let mut floating = FxHashMap::default();
    let mut steps = Steps::default();
    let mut goals: FxHashMap<u32, u32> = FxHashMap::default();
    let mut essentials = Vec::new();
    for (place, mandatory) in theorem.mandatory.iter().enumerate() {
        match mandatory {
            Mandatory::Floating(slot) => {
                floating.insert(theorem.slots[usize::from(*slot)], place as u32);
            }
            Mandatory::Essential(_) => essentials.push(place as u32),
        }
    }
    for (essential, place) in theorem.essentials.iter().zip(&essentials) {
        let formula = theorem.concrete(essential);
        if let Some(goal) =
            (0..replay.board.hypotheses).find(|goal| *replay.board.formula(*goal) == *formula)
        {
            let item = steps.add(Step::Hypothesis(*place), &[]);
            goals.entry(goal).or_insert(item);
        }
    }
    let mut stack = Vec::new();
    for application in replay.applications.iter().rev() {
        if goals.contains_key(&application.goal) {
            continue;
        }
        let assertion = database.assertion(application.assertion);
        let mut children = Vec::with_capacity(assertion.mandatory.len());
        for mandatory in &assertion.mandatory {
            children.push(match *mandatory {
                Mandatory::Floating(slot) => {
                    let (from, to) = (
                        application.terms[usize::from(slot)],
                        application.terms[usize::from(slot) + 1],
                    );
                    steps.term(
                        database,
                        &floating,
                        &replay.nodes[from as usize..to as usize],
                        &mut stack,
                    )
                }
                Mandatory::Essential(index) => goals[&application.children[usize::from(index)]],
            });
        }
        let item = steps.add(Step::Assertion(application.assertion.0), &children);
        goals.insert(application.goal, item);
    }
    write(database, &steps, goals[&replay.board.conclusion], theorem.mandatory.len())
}

enum Written {
    Hypothesis(u32),
    Label(u32),
    Again(u32),
    Save,
}

/// Writes the steps under one item in reverse Polish order; a step met again is referred to.
fn write(database: &Database, steps: &Steps, root: u32, mandatory: usize) -> Proof {
    let mut uses = vec![0u32; steps.items.len()];
    let mut stack = vec![root];
    while let Some(item) = stack.pop() {
        uses[item as usize] += 1;
        if uses[item as usize] == 1 {
            stack.extend_from_slice(steps.children(item));
        }
    }
    let mut saved: FxHashMap<u32, u32> = FxHashMap::default();
    let mut labels: Vec<Step> = Vec::new();
    let mut numbers: FxHashMap<Step, u32> = FxHashMap::default();
    let mut written = Vec::new();
    let mut stack = vec![(root, 0usize)];
    while let Some((item, child)) = stack.pop() {
        if child == 0
            && let Some(&number) = saved.get(&item)
        {
            written.push(Written::Again(number));
            continue;
        }
        if let Some(&next) = steps.children(item).get(child) {
            stack.push((item, child + 1));
            stack.push((next, 0));
            continue;
        }
        match steps.items[item as usize].step {
            Step::Hypothesis(place) => written.push(Written::Hypothesis(place)),
            step => {
                let number = *numbers.entry(step).or_insert_with(|| {
                    labels.push(step);
                    labels.len() as u32 - 1
                });
                written.push(Written::Label(number));
            }
        }
        if uses[item as usize] > 1 && !steps.children(item).is_empty() {
            saved.insert(item, saved.len() as u32);
            written.push(Written::Save);
        }
    }
    let mut letters = String::with_capacity(written.len() * 2);
    for step in &written {
        match *step {
            Written::Hypothesis(place) => number(place as usize, &mut letters),
            Written::Label(label) => number(mandatory + label as usize, &mut letters),
            Written::Again(saved) => {
                number(mandatory + labels.len() + saved as usize, &mut letters)
            }
            Written::Save => letters.push('Z'),
        }
    }
    let dummy = |step: &Step| match step {
        Step::Node(node) if database.nodes.is_variable(*node) => Some(*node),
        _ => None,
    };
    let dummies = labels.iter().filter_map(dummy).collect();
    let label = |step: Step| match step {
        Step::Assertion(id) => database.assertions[id as usize].label.clone(),
        Step::Node(node) => database.nodes.kinds[node as usize].label.clone(),
        Step::Hypothesis(_) => unreachable!("hypotheses are not listed"),
    };
    Proof { labels: labels.into_iter().map(label).collect(), letters, dummies }
}

/// Metamath's letters for a number counted from 0: the last digit A to T, those before it U to Y.
fn number(mut n: usize, out: &mut String) {
    let last = char::from(b'A' + (n % 20) as u8);
    n /= 20;
    let mut digits = Vec::new();
    while n > 0 {
        n -= 1;
        digits.push(char::from(b'U' + (n % 5) as u8));
        n /= 5;
    }
    out.extend(digits.iter().rev());
    out.push(last);
}

impl Proof {
    /// The text between `$=` and `$.`, wrapped at 79 columns after this indentation.
    pub(crate) fn text(&self, indent: usize) -> String {
        let mut out = String::new();
        let mut column = usize::MAX;
        let mut word = |word: &str, out: &mut String| {
            if column == usize::MAX || column + 1 + word.len() > 79 {
                out.push('\n');
                out.extend(std::iter::repeat_n(' ', indent));
                column = indent;
            } else {
                out.push(' ');
                column += 1;
            }
            out.push_str(word);
            column += word.len();
        };
        word("(", &mut out);
        self.labels.iter().for_each(|label| word(label, &mut out));
        word(")", &mut out);
        for at in (0..self.letters.len()).step_by(70) {
            word(&self.letters[at..self.letters.len().min(at + 70)], &mut out);
        }
        out
    }
}
