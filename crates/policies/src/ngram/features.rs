//! Contexts, from the most general to the most specific, and the loose features by which similar
//! states are found.

use crate::text::{Hash, View, is_variable, matching};

/// How many contexts a state has.
pub(crate) const LEVELS: usize = 6;

/// The contexts of a state. Each refines the one before it: the goal's outermost symbols; its
/// outermost shape; its shape two brackets deep; the goal up to renaming; the goal; the state.
pub(crate) fn contexts(state: &str, view: &View<'_>) -> [u64; LEVELS] {
    let depths = depths(&view.goal);
    let mut heads = Hash::new(0);
    let constants =
        view.goal.iter().zip(&depths).filter(|(token, depth)| **depth == 0 && !is_variable(token));
    for (token, _) in constants.take(3) {
        heads = heads.text(token);
    }
    let mut goal = Hash::new(4);
    for token in &view.goal {
        goal = goal.text(token);
    }
    [
        heads.0,
        shape(&view.goal, &depths, 0, false).0,
        shape(&view.goal, &depths, 1, true).0,
        shape(&view.goal, &depths, usize::MAX, true).0,
        goal.0,
        Hash::new(5).text(state).0,
    ]
}

/// The goal with everything deeper than `deep` brackets as a hole and variables as numbers (or as
/// one symbol).
fn shape(tokens: &[&str], depths: &[usize], deep: usize, numbered: bool) -> Hash {
    let mut variables: Vec<&str> = Vec::new();
    let mut hash = Hash::new(2).number(deep as u64);
    let mut in_hole = false;
    for (token, depth) in tokens.iter().zip(depths) {
        if *depth > deep {
            if !in_hole {
                hash = hash.number(1);
            }
            in_hole = true;
            continue;
        }
        in_hole = false;
        if !is_variable(token) {
            hash = hash.text(token);
        } else if numbered {
            let number = variables.iter().position(|v| v == token).unwrap_or_else(|| {
                variables.push(token);
                variables.len() - 1
            });
            hash = hash.number(2 + number as u64);
        } else {
            hash = hash.number(2);
        }
    }
    hash
}

/// How many brackets each token is in; a bracket counts as inside itself.
fn depths(tokens: &[&str]) -> Vec<usize> {
    let mut change = vec![0isize; tokens.len() + 1];
    for (open, close) in matching(tokens).into_iter().enumerate() {
        if let Some(close) = close {
            change[open] += 1;
            change[close + 1] -= 1;
        }
    }
    let mut depth = 0;
    change[..tokens.len()]
        .iter()
        .map(|change| {
            depth += change;
            depth as usize
        })
        .collect()
}

/// Features for finding similar states: tokens, pairs and triples of the goal with variables made
/// equal, its tokens as they are, and the outermost shape and tokens of each hypothesis. Sorted,
/// without repetition.
pub(crate) fn features(view: &View<'_>) -> Vec<u64> {
    let plain: Vec<&str> =
        view.goal.iter().map(|token| if is_variable(token) { "·" } else { token }).collect();
    let mut features = Vec::with_capacity(plain.len() * 4 + view.hypotheses.len() * 8);
    for n in 1..=3 {
        features.extend(plain.windows(n).map(|gram| {
            gram.iter().fold(Hash::new(10 + n as u64), |hash, token| hash.text(token)).0
        }));
    }
    features.extend(view.goal.iter().map(|token| Hash::new(20).text(token).0));
    for hypothesis in &view.hypotheses {
        features.push(shape(hypothesis, &depths(hypothesis), 1, false).number(21).0);
        features.extend(
            hypothesis
                .iter()
                .filter(|token| !is_variable(token))
                .map(|token| Hash::new(22).text(token).0),
        );
    }
    features.sort_unstable();
    features.dedup();
    features
}
