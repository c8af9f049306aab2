//! Micro-batches: whole traces side by side while they fit.

use std::ops::Range;

use crate::Dataset;

/// A trace, or a part of one that is too large for one micro-batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub trace: usize,
    /// Which of the data's examples.
    pub examples: Range<usize>,
    /// Whether these are all examples of the trace.
    pub whole: bool,
}

/// Packs traces, in their order, into micro-batches of at most `tokens` rows. A trace that fits
/// into a micro-batch is never torn.
pub(crate) fn pack(data: &Dataset, traces: &[u32], tokens: usize) -> Vec<Vec<Piece>> {
    let mut batches: Vec<Vec<Piece>> = Vec::new();
    let mut used = usize::MAX;
    let mut add = |piece: Piece, rows: usize| {
        if used.saturating_add(rows) > tokens {
            batches.push(Vec::new());
            used = 0;
        }
        used += rows;
        batches.last_mut().expect("opened above").push(piece);
    };
    for &trace in traces {
        let (trace, examples) = (trace as usize, data.trace(trace as usize));
        let rows: usize = examples.clone().map(|e| data.rows(e)).sum();
        if rows <= tokens {
            add(Piece { trace, examples, whole: true }, rows);
            continue;
        }
        let (mut first, mut sum) = (examples.start, 0);
        for e in examples.clone() {
            if sum + data.rows(e) > tokens {
                add(Piece { trace, examples: first..e, whole: false }, sum);
                (first, sum) = (e, 0);
            }
            sum += data.rows(e);
        }
        add(Piece { trace, examples: first..examples.end, whole: false }, sum);
    }
    batches
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Example;

    #[test]
    fn traces_stay_whole_where_they_can() {
        // Rows per example: 9. Traces of 2, 1, 5 and 1 examples; a micro-batch takes three
        // examples.
        let example = Example { prompt: vec![0; 8], tactic: vec![0; 2] };
        let data = Dataset::new([2, 1, 5, 1].map(|n| vec![example.clone(); n]), 10).unwrap();
        let batches = pack(&data, &[0, 1, 2, 3], 29);
        let shape: Vec<Vec<(usize, usize, bool)>> = batches
            .iter()
            .map(|b| b.iter().map(|p| (p.trace, p.examples.len(), p.whole)).collect())
            .collect();
        assert_eq!(
            shape,
            [
                vec![(0, 2, true), (1, 1, true)],
                vec![(2, 3, false)],
                vec![(2, 2, false), (3, 1, true)]
            ]
        );
        let covered: Vec<usize> =
            batches.iter().flatten().flat_map(|p| p.examples.clone()).collect();
        assert_eq!(covered, (0..9).collect::<Vec<_>>());
    }
}
