//! Folds: parts of the training traces, each of which can be judged by a model that was trained on
//! the others.

use std::collections::HashMap;

use crate::split::hash;
use crate::{Error, Trace};

/// The fold of each trace, from 0 to `count - 1`. Near-duplicates, for which `key` is the same,
/// share a fold, or a model would have seen what it is to judge; folds are as equal in size as
/// whole groups allow. Which group goes where depends on the hash of (seed, key), not on the order
/// of the traces.
pub fn folds(
    traces: &[Trace],
    count: usize,
    seed: u64,
    key: impl Fn(&Trace) -> String,
) -> Result<Vec<usize>, Error> {
    if count < 2 {
        return Err(Error::Split(format!(
            "{count} folds: at least 2 are needed, so that each trace has a model that never saw it"
        )));
    }
    let hashes: Vec<[u8; 32]> = traces.iter().map(|trace| hash(seed, &key(trace))).collect();
    let mut sizes: HashMap<[u8; 32], usize> = HashMap::new();
    hashes.iter().for_each(|hash| *sizes.entry(*hash).or_default() += 1);
    if sizes.len() < count {
        return Err(Error::Split(format!(
            "{count} folds of {} traces: only {} of them are not near-duplicates of others; use \
             fewer folds",
            traces.len(),
            sizes.len()
        )));
    }
    let mut groups: Vec<([u8; 32], usize)> = sizes.into_iter().collect();
    groups.sort_unstable();
    let mut filled = vec![0; count];
    let mut fold_of = HashMap::new();
    for (hash, size) in groups {
        let smallest = (0..count).min_by_key(|fold| filled[*fold]).unwrap_or(0);
        filled[smallest] += size;
        fold_of.insert(hash, smallest);
    }
    Ok(hashes.iter().map(|hash| fold_of[hash]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Step, Theorem, text_key};

    fn trace(name: &str, statement: &str) -> Trace {
        let theorem =
            Theorem { name: name.into(), statement: statement.into(), ..Theorem::default() };
        let step = Step { state: statement.into(), tactic: "t".into(), ..Step::default() };
        Trace { theorem, steps: vec![step] }
    }

    fn traces(n: usize) -> Vec<Trace> {
        (0..n).map(|i| trace(&format!("t{i}"), &format!("state{}", "x".repeat(i + 3)))).collect()
    }

    #[test]
    fn folds_are_even_and_do_not_depend_on_the_order() {
        let mut traces = traces(100);
        let before = folds(&traces, 3, 7, text_key).unwrap();
        for fold in 0..3 {
            assert!((33..=34).contains(&before.iter().filter(|f| **f == fold).count()));
        }
        traces.reverse();
        let mut after = folds(&traces, 3, 7, text_key).unwrap();
        after.reverse();
        assert_eq!(before, after);
        assert_ne!(before, folds(&traces, 3, 8, text_key).unwrap());
    }

    #[test]
    fn near_duplicates_share_a_fold() {
        let mut traces = traces(20);
        traces.push(trace("mine", "A + B = long"));
        traces.push(trace("copy", "x  + y = long"));
        for count in 2..6 {
            let folds = folds(&traces, count, 1, text_key).unwrap();
            assert_eq!(folds[20], folds[21]);
            assert_eq!(folds.iter().max(), Some(&(count - 1)));
        }
    }

    #[test]
    fn counts_out_of_range_are_refused() {
        let few = traces(3);
        let error = |count| folds(&few, count, 1, text_key).unwrap_err().to_string();
        assert!(error(1).contains("at least 2"));
        assert!(error(4).contains("4 folds of 3 traces"));
    }
}
