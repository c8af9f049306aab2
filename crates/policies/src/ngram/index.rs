//! Finds the demonstrated states most like a given one: cosine similarity over features weighted by
//! rarity.

use std::collections::HashMap;

/// Features of more states than this say too little to be worth following.
const COMMON: usize = 2000;
/// How many postings are followed for one question, rarest feature first.
const POSTINGS: usize = 12_000;

/// An inverted index over the features of the demonstrated states.
pub(crate) struct Index {
    lists: HashMap<u64, (u32, u32)>,
    postings: Vec<u32>,
    norms: Vec<f32>,
}

impl Index {
    pub(crate) fn new(states: &[Vec<u64>]) -> Self {
        let mut pairs: Vec<(u64, u32)> = Vec::new();
        for (number, features) in (0u32..).zip(states) {
            pairs.extend(features.iter().map(|feature| (*feature, number)));
        }
        pairs.sort_unstable();
        let mut index =
            Index { lists: HashMap::new(), postings: Vec::new(), norms: vec![0.0; states.len()] };
        for run in pairs.chunk_by(|a, b| a.0 == b.0) {
            let weight = rarity(states.len(), run.len());
            run.iter().for_each(|(_, number)| index.norms[*number as usize] += weight * weight);
            if run.len() <= COMMON {
                index.lists.insert(run[0].0, (index.postings.len() as u32, run.len() as u32));
                index.postings.extend(run.iter().map(|(_, number)| *number));
            }
        }
        index.norms.iter_mut().for_each(|norm| *norm = norm.sqrt().max(1e-6));
        index
    }

    /// The `count` most similar states with their similarity, most similar first.
    pub(crate) fn nearest(
        &self,
        features: &[u64],
        count: usize,
        scores: &mut Scores,
    ) -> Vec<(u32, f32)> {
        let mut lists: Vec<(u32, u32)> =
            features.iter().filter_map(|feature| self.lists.get(feature).copied()).collect();
        lists.sort_unstable_by_key(|(start, length)| (*length, *start));
        scores.values.resize(self.norms.len(), 0.0);
        let mut followed = 0;
        for (start, length) in lists {
            followed += length as usize;
            if followed > POSTINGS {
                break;
            }
            let weight = rarity(self.norms.len(), length as usize);
            for number in &self.postings[start as usize..(start + length) as usize] {
                let value = &mut scores.values[*number as usize];
                if *value == 0.0 {
                    scores.touched.push(*number);
                }
                *value += weight * weight;
            }
        }
        // The question's own norm is the same for all and is left out.
        let mut found: Vec<(u32, f32)> = scores
            .touched
            .drain(..)
            .map(|n| (n, std::mem::take(&mut scores.values[n as usize]) / self.norms[n as usize]))
            .collect();
        let best_first = |a: &(u32, f32), b: &(u32, f32)| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0));
        if found.len() > count {
            found.select_nth_unstable_by(count, best_first);
            found.truncate(count);
        }
        found.sort_unstable_by(best_first);
        found
    }
}

/// Memory that one question after another uses; all zero in between.
#[derive(Default)]
pub(crate) struct Scores {
    values: Vec<f32>,
    touched: Vec<u32>,
}

fn rarity(all: usize, having: usize) -> f32 {
    ((all + 1) as f32 / having as f32).ln()
}
