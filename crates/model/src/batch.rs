//! Sequences packed end to end, with the tokens whose log-probabilities are wanted.

use std::ops::Range;

/// A packed batch on the host.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// The tokens of all sequences, end to end.
    pub tokens: Vec<u32>,
    /// Each token's position in its sequence.
    pub positions: Vec<u32>,
    /// First row of each sequence, then the number of rows.
    pub starts: Vec<u32>,
    /// Rows whose prediction is scored, ascending.
    pub rows: Vec<u32>,
    /// The token each of those rows should predict.
    pub targets: Vec<u32>,
}

impl Batch {
    /// An empty batch.
    pub fn new() -> Self {
        Batch { starts: vec![0], ..Batch::default() }
    }

    /// Adds `prompt` followed by `completion`, of which every token is scored; the last needs no
    /// row of its own, so `prompt.len() + completion.len() - 1` rows are added. Returns the range
    /// of its scores. The prompt must not be empty.
    pub fn push(&mut self, prompt: &[u32], completion: &[u32]) -> Range<usize> {
        let (first, scores) = (self.tokens.len(), self.rows.len());
        self.tokens.extend(prompt.iter().chain(completion));
        if !completion.is_empty() {
            self.tokens.pop();
        }
        self.positions.extend(0..(self.tokens.len() - first) as u32);
        for (i, &target) in completion.iter().enumerate() {
            self.rows.push((first + prompt.len() + i - 1) as u32);
            self.targets.push(target);
        }
        self.starts.push(self.tokens.len() as u32);
        scores..self.rows.len()
    }

    /// Adds the end of a prompt whose first so many tokens are computed already. Nothing of it is
    /// scored.
    pub fn push_end(&mut self, known: usize, tokens: &[u32]) {
        self.tokens.extend(tokens);
        self.positions.extend((known..known + tokens.len()).map(|position| position as u32));
        self.starts.push(self.tokens.len() as u32);
    }

    /// Token rows.
    pub fn len(&self) -> usize {
        self.tokens.len()
    }

    /// Whether there is nothing to run.
    pub fn is_empty(&self) -> bool {
        self.tokens.is_empty()
    }

    /// Sequences.
    pub fn sequences(&self) -> usize {
        self.starts.len() - 1
    }

    /// Length of the longest sequence.
    pub fn longest(&self) -> usize {
        self.starts.windows(2).map(|w| (w[1] - w[0]) as usize).max().unwrap_or(0)
    }

    /// Empties the batch, keeping its memory.
    pub fn clear(&mut self) {
        for list in [
            &mut self.tokens,
            &mut self.positions,
            &mut self.starts,
            &mut self.rows,
            &mut self.targets,
        ] {
            list.clear();
        }
        self.starts.push(0);
    }
}
