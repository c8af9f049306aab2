//! Which token sequences have been drawn, and how much of the distribution is left below each
//! prefix: what exact sampling without replacement has to know.
//!
//! A sequence is drawn token by token. At a prefix, a token of conditional probability `p` of whose
//! continuations the share `left` has not been drawn yet is drawn in proportion to `p * left`. The
//! whole sequence then has the distribution that the model gives to sequences that have not been
//! drawn. Only what is left is ever kept, and it is only ever added up from what is left of the
//! tokens; nothing is subtracted from 1, so that a small remainder is as precise as a large one.

/// A place in a trie: the sequences that begin with some tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place(u32);

impl Place {
    /// Before the first token.
    pub const ROOT: Place = Place(0);
}

/// One step of a drawn sequence, as it was when the token was drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The token's probability under the distribution that is sampled from.
    pub p: f32,
    /// What was left of the other tokens: the sum of their `p * left`.
    pub rest: f32,
}

/// A share of a prefix's continuations that is not worth drawing from: it counts as nothing.
pub const DRAWN_OUT: f32 = 1e-9;

const NONE: u32 = u32::MAX;

/// A token after a place.
#[derive(Clone, Copy, Debug)]
struct Child {
    token: u32,
    /// The share of its continuations that has not been drawn.
    left: f32,
    /// The place after it; none until a sequence goes on from there.
    place: u32,
}

/// Where a place's children are.
#[derive(Clone, Copy, Debug, Default)]
struct Run {
    first: u32,
    len: u32,
}

/// The children of a place lie side by side, the oldest first: at a root there are hundreds, which
/// every sample that begins there goes through. A run has room for a power of two of them, and
/// moves to the end when it has outgrown it. Nothing is allocated for one alone, nor before
/// anything is drawn: a search keeps a trie for every node it has made.
#[derive(Clone, Debug)]
pub struct Trie {
    /// The share of the whole distribution that has not been drawn.
    left: f32,
    /// By place.
    runs: Vec<Run>,
    children: Vec<Child>,
}

impl Default for Trie {
    fn default() -> Self {
        Trie { left: 1.0, runs: Vec::new(), children: Vec::new() }
    }
}

impl Trie {
    /// The share of the distribution that has not been drawn.
    pub fn left(&self) -> f64 {
        f64::from(self.left)
    }

    /// The tokens after a prefix of which something has been drawn, each with the share of its
    /// continuations that is left; the last that came first.
    pub fn after(&self, place: Place) -> impl ExactSizeIterator<Item = (u32, f32)> + Clone + '_ {
        self.children(place).iter().rev().map(|child| (child.token, child.left))
    }

    /// The place one token further on; none if nothing that goes on from there has been drawn.
    pub fn step(&self, place: Place, token: u32) -> Option<Place> {
        let child = self.children(place).iter().find(|child| child.token == token)?;
        (child.place != NONE).then_some(Place(child.place))
    }

    /// Takes a sequence out of the distribution.
    pub fn take(&mut self, sequence: impl Iterator<Item = (u32, Step)>) {
        let (mut at, mut path) = (None, Vec::with_capacity(16));
        for (token, step) in sequence {
            let place = self.place_after(at);
            let child = match self.children(place).iter().position(|c| c.token == token) {
                Some(index) => self.runs[place.0 as usize].first as usize + index,
                None => self.add(place, token),
            };
            path.push((child, step));
            at = Some(child);
        }
        let mut left = 0.0;
        for (child, Step { p, rest }) in path.into_iter().rev() {
            self.children[child].left = left;
            let above = rest + p * left;
            left = if above < DRAWN_OUT { 0.0 } else { above.min(1.0) };
        }
        self.left = left;
    }

    fn children(&self, place: Place) -> &[Child] {
        let Run { first, len } = self.runs.get(place.0 as usize).copied().unwrap_or_default();
        &self.children[first as usize..][..len as usize]
    }

    /// The place after a child, or the root.
    fn place_after(&mut self, child: Option<usize>) -> Place {
        let place = child.map_or(0, |child| self.children[child].place);
        if (place as usize) < self.runs.len() {
            return Place(place);
        }
        let place = index(self.runs.len());
        self.runs.push(Run::default());
        if let Some(child) = child {
            self.children[child].place = place;
        }
        Place(place)
    }

    /// Adds a child to a place that does not have it.
    fn add(&mut self, place: Place, token: u32) -> usize {
        let run = &mut self.runs[place.0 as usize];
        let (first, len) = (run.first as usize, run.len as usize);
        let new = Child { token, left: 1.0, place: NONE };
        if len == 0 || len.is_power_of_two() {
            let end = self.children.len();
            if first + len < end {
                self.children.extend_from_within(first..first + len);
                run.first = index(end);
            }
            self.children.resize(run.first as usize + (2 * len).max(1), new);
        }
        run.len += 1;
        let at = run.first as usize + len;
        self.children[at] = new;
        at
    }
}

fn index(len: usize) -> u32 {
    u32::try_from(len).ok().filter(|index| *index < NONE).expect("fewer than 2^32 tokens at a node")
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use super::*;
    use crate::Stream;

    const END: u32 = 3;
    const LONGEST: usize = 2;

    /// A small language model: the distribution of the token after a prefix. Token 3 ends a
    /// sequence, and so does its length.
    fn model(prefix: &[u32]) -> [f32; 4] {
        match prefix {
            [] => [0.55, 0.25, 0.05, 0.15],
            [0] => [0.1, 0.0, 0.2, 0.7],
            [1] => [0.25, 0.25, 0.25, 0.25],
            _ => [0.0, 0.0, 0.97, 0.03],
        }
    }

    fn draw(trie: &mut Trie, stream: Stream) -> Vec<u32> {
        let (mut tokens, mut steps, mut place) = (Vec::new(), Vec::new(), Some(Place::ROOT));
        while tokens.last() != Some(&END) && tokens.len() < LONGEST {
            let p = model(&tokens);
            let mut weights = p;
            for (token, left) in place.into_iter().flat_map(|place| trie.after(place)) {
                weights[token as usize] *= left;
            }
            let mut aim = stream.uniform(tokens.len() as u64) as f32 * weights.iter().sum::<f32>();
            let positive = weights.iter().rposition(|w| *w > 0.0).expect("something is left");
            let token = (0..positive)
                .find(|&token| {
                    aim -= weights[token];
                    aim < 0.0
                })
                .unwrap_or(positive);
            let rest = (0..4).filter(|&other| other != token).map(|other| weights[other]).sum();
            steps.push(Step { p: p[token], rest });
            tokens.push(token as u32);
            place = place.and_then(|place| trie.step(place, token as u32));
        }
        trie.take(tokens.iter().copied().zip(steps));
        tokens
    }

    /// Every sequence with its probability.
    fn sequences() -> Vec<(Vec<u32>, f64)> {
        let mut all = Vec::new();
        for (first, p) in (0..4).zip(model(&[])) {
            if first == END {
                all.push((vec![first], f64::from(p)));
                continue;
            }
            for (second, q) in (0..4).zip(model(&[first])) {
                all.push((vec![first, second], f64::from(p) * f64::from(q)));
            }
        }
        all.retain(|(_, p)| *p > 0.0);
        all
    }

    #[test]
    fn ordered_triples_are_drawn_as_without_replacement() {
        let (trials, all) = (60_000, sequences());
        let mut counts: HashMap<Vec<Vec<u32>>, f64> = HashMap::new();
        for trial in 0..trials {
            let (mut trie, stream) = (Trie::default(), Stream::new(7).child(trial));
            let triple = (0..3).map(|i| draw(&mut trie, stream.child(i))).collect();
            *counts.entry(triple).or_default() += 1.0;
        }
        // Chi-square over the triples that are expected often enough; the rest is one class.
        let (mut chi, mut classes, mut rest) = (0.0, 0.0f64, (0.0, 0.0));
        for (a, p) in &all {
            for (b, q) in all.iter().filter(|(b, _)| b != a) {
                for (c, r) in all.iter().filter(|(c, _)| c != a && c != b) {
                    let expected = trials as f64 * p * (q / (1.0 - p)) * (r / (1.0 - p - q));
                    let triple = vec![a.clone(), b.clone(), c.clone()];
                    let observed = counts.remove(&triple).unwrap_or(0.0);
                    if expected >= 10.0 {
                        chi += (observed - expected).powi(2) / expected;
                        classes += 1.0;
                    } else {
                        rest = (rest.0 + expected, rest.1 + observed);
                    }
                }
            }
        }
        chi += (rest.1 - rest.0).powi(2) / rest.0;
        assert!(counts.is_empty(), "drawn twice, or impossible: {counts:?}");
        assert!(classes > 100.0, "{classes} classes");
        // Within 3.1 standard deviations, exceeded once in a thousand times; the seed is fixed.
        assert!(
            chi < classes + 3.1 * (2.0 * classes).sqrt(),
            "chi-square {chi}, {classes} classes"
        );
    }

    #[test]
    fn everything_is_drawn_once_and_then_nothing_is_left() {
        let all = sequences();
        for trial in 0..200 {
            let (mut trie, stream) = (Trie::default(), Stream::new(1).child(trial));
            let (mut gone, mut seen) = (0.0, Vec::new());
            for i in 0..all.len() as u64 {
                assert!((trie.left() - (1.0 - gone)).abs() < 1e-5, "{} left", trie.left());
                let sequence = draw(&mut trie, stream.child(i));
                gone += all.iter().find(|(s, _)| *s == sequence).expect("possible").1;
                assert!(!seen.contains(&sequence), "{sequence:?} came twice");
                seen.push(sequence);
            }
            assert_eq!(trie.left(), 0.0);
        }
    }

    /// Backends draw among scarce tokens in the order in which they come, so that another order
    /// would give other samples.
    #[test]
    fn children_come_the_youngest_first_however_many_there_are() {
        let mut trie = Trie::default();
        let step = Step { p: 0.125, rest: 0.5 };
        for n in 0..40 {
            // In turn after another token and at the root, so that both runs move.
            trie.take([(100, step), (n, step)].into_iter());
            trie.take([(n, step)].into_iter());
            let tokens = |place| trie.after(place).map(|(token, _)| token).collect::<Vec<_>>();
            let mut youngest_first: Vec<u32> = (0..=n).rev().collect();
            assert_eq!(tokens(trie.step(Place::ROOT, 100).unwrap()), youngest_first);
            youngest_first.push(100);
            assert_eq!(tokens(Place::ROOT), youngest_first);
        }
    }

    #[test]
    fn a_small_remainder_keeps_its_precision() {
        let mut trie = Trie::default();
        // All but a hundred-millionth of the distribution is one sequence.
        let step = |p, rest| Step { p, rest };
        trie.take([(5, step(1.0, 0.8e-8)), (6, step(1.0, 0.2e-8))].into_iter());
        assert!((trie.left() / 1e-8 - 1.0).abs() < 1e-6, "{}", trie.left());
        trie.take([(7, step(0.8e-8, 0.2e-8))].into_iter());
        assert!((trie.left() / 0.2e-8 - 1.0).abs() < 1e-6, "{}", trie.left());
        trie.take([(5, step(1.0, 0.0)), (8, step(0.2e-8, 0.0))].into_iter());
        assert_eq!(trie.left(), 0.0);
    }
}
