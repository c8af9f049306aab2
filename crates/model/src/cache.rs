//! The key/value cache: one pool of rows per block, handed out as contiguous runs.

use crate::{Backend, Kind, Model, Result};

/// The pool. Which rows are in use is the allocator's business ([`Runs`]); the cache only holds the
/// numbers.
pub struct Cache<B: Backend> {
    /// Per block `capacity` rows of keys and values, in the backend's own order.
    pub layers: Vec<B::Tensor>,
    /// Rows.
    pub capacity: usize,
}

impl<B: Backend> Cache<B> {
    /// A pool of `capacity` token rows for a model.
    pub fn new(model: &Model<B>, capacity: usize) -> Result<Self> {
        let (b, c) = (&model.backend, &model.config);
        let layers = (0..c.layers)
            .map(|_| b.zeros(capacity * 2 * c.heads.kv(), Kind::Activation))
            .collect::<Result<_>>()?;
        Ok(Cache { layers, capacity })
    }
}

/// Hands out runs of rows, first fit, and takes them back.
#[derive(Debug)]
pub struct Runs {
    /// Free runs as (first, length), ascending, never adjacent.
    free: Vec<(u32, u32)>,
}

impl Runs {
    /// All of `0..capacity` free.
    pub fn new(capacity: usize) -> Self {
        Runs { free: vec![(0, capacity as u32)] }
    }

    /// The first row of a run of `len` rows, if there is one.
    pub fn take(&mut self, len: usize) -> Option<u32> {
        let len = len as u32;
        let i = self.free.iter().position(|&(_, free)| free >= len)?;
        let (first, free) = self.free[i];
        if free == len {
            self.free.remove(i);
        } else {
            self.free[i] = (first + len, free - len);
        }
        Some(first)
    }

    /// Gives a run back.
    pub fn give(&mut self, first: u32, len: usize) {
        let len = len as u32;
        if len == 0 {
            return;
        }
        let i = self.free.partition_point(|&(f, _)| f < first);
        self.free.insert(i, (first, len));
        if i + 1 < self.free.len() && first + len == self.free[i + 1].0 {
            self.free[i].1 += self.free.remove(i + 1).1;
        }
        if i > 0 && self.free[i - 1].0 + self.free[i - 1].1 == first {
            self.free[i - 1].1 += self.free.remove(i).1;
        }
    }

    /// Rows that are free.
    pub fn available(&self) -> usize {
        self.free.iter().map(|&(_, len)| len as usize).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_never_overlap_and_come_back_whole() {
        let mut runs = Runs::new(100);
        let mut held: Vec<(u32, usize)> = Vec::new();
        let stream = catamount_search::Stream::new(1);
        for i in 0..2000u64 {
            let len = 1 + (stream.uniform(2 * i) * 12.0) as usize;
            if let Some(first) = runs.take(len) {
                let end = first + len as u32;
                assert!(end <= 100 && held.iter().all(|&(f, l)| end <= f || f + l as u32 <= first));
                held.push((first, len));
            }
            if held.len() > 3 && stream.uniform(2 * i + 1) < 0.6 {
                let (first, len) =
                    held.swap_remove((stream.uniform(i) * held.len() as f64) as usize);
                runs.give(first, len);
            }
            assert_eq!(runs.available() + held.iter().map(|h| h.1).sum::<usize>(), 100);
        }
        held.into_iter().for_each(|(first, len)| runs.give(first, len));
        assert_eq!(runs.take(100), Some(0), "all the pieces join up again");
    }
}
