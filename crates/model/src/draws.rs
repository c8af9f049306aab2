//! One token drawn from each row of logits: what the rows say, and what came of it.

/// How tokens are drawn from logits.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sampling {
    /// Divides the logits; 0 takes the most probable token.
    pub temperature: f32,
    /// Draws from the smallest set of most probable tokens whose probability (at this temperature)
    /// reaches this; 1 keeps all.
    pub top_p: f32,
}

/// The rows of one call of [`crate::Decode::sample`], to be filled again for the next.
///
/// A row may have *scarce* tokens, of which less is left to draw than the model says: sampling
/// without replacement. A scarce token is drawn in proportion to its probability times what is left
/// of it.
#[derive(Clone, Debug, Default)]
pub struct Draws {
    /// A number in [0, 1) for each row, which decides its token.
    pub uniforms: Vec<f32>,
    /// Where each row's scarce tokens begin, then how many there are in all.
    pub starts: Vec<u32>,
    /// The scarce tokens; in a row each only once.
    pub scarce: Vec<u32>,
    /// What is left of each of them: from 0, nothing, to 1, all of it.
    pub left: Vec<f32>,
    /// Each row's token.
    pub tokens: Vec<u32>,
    /// Its log-probability at temperature 1.
    pub log_p: Vec<f32>,
    /// Its probability under the distribution that was drawn from, before any of it was gone.
    pub p: Vec<f32>,
    /// What is left of all other tokens: the sum of their probabilities under the same
    /// distribution, each times what is left of it.
    pub rest: Vec<f32>,
}

impl Draws {
    /// How many rows there are.
    pub fn len(&self) -> usize {
        self.uniforms.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.uniforms.is_empty()
    }

    /// Forgets all rows.
    pub fn clear(&mut self) {
        self.uniforms.clear();
        self.scarce.clear();
        self.left.clear();
        self.starts.clear();
        self.starts.push(0);
    }

    /// Adds a row with these scarce tokens.
    pub fn push(&mut self, uniform: f32, scarce: impl IntoIterator<Item = (u32, f32)>) {
        self.begin(uniform);
        scarce.into_iter().for_each(|(token, left)| self.make_scarce(token, left));
    }

    /// Adds a row without scarce tokens.
    pub fn begin(&mut self, uniform: f32) {
        if self.starts.is_empty() {
            self.starts.push(0);
        }
        self.uniforms.push(uniform);
        self.starts.push(self.scarce.len() as u32);
    }

    /// Makes a token of the last row scarce.
    pub fn make_scarce(&mut self, token: u32, left: f32) {
        self.scarce.push(token);
        self.left.push(left);
        if let Some(end) = self.starts.last_mut() {
            *end += 1;
        }
    }

    /// Makes many tokens of the last row scarce.
    pub fn make_all_scarce(&mut self, scarce: impl Iterator<Item = (u32, f32)> + Clone) {
        self.scarce.extend(scarce.clone().map(|(token, _)| token));
        self.left.extend(scarce.map(|(_, left)| left));
        if let Some(end) = self.starts.last_mut() {
            *end = self.scarce.len() as u32;
        }
    }

    /// A row's scarce tokens and what is left of each.
    pub fn scarce_of(&self, row: usize) -> (&[u32], &[f32]) {
        let range = self.starts[row] as usize..self.starts[row + 1] as usize;
        (&self.scarce[range.clone()], &self.left[range])
    }

    /// Makes room for what comes of the rows.
    pub fn make_room(&mut self) {
        let n = self.len();
        self.tokens.resize(n, 0);
        for out in [&mut self.log_p, &mut self.p, &mut self.rest] {
            out.resize(n, 0.0);
        }
    }
}
