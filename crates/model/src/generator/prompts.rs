//! Computing prompts: many states together, their keys and values left in the cache. A state
//! shares most of its text with the one that it came from; where the device can, what a prompt has
//! in common with one in the cache is copied and only the rest is computed.
//!
//! Where a backend pads its decoding steps, another batch shape may round differently. A prompt is
//! then always computed in a batch of the same number of rows, which depends on its own length
//! alone, so that the company it is in changes nothing; and since the shapes are few, they can be
//! recorded.

use crate::forward::Attend;
use crate::prefix::Prefix;
use crate::{Activations, Backend, Batch, Cache, Keep, Model, Result};

/// Rows that prompts are computed in. A small model is done with a few thousand in the time it
/// takes to launch them.
fn chunk(parameters: u64) -> usize {
    if parameters < 50_000_000 { 2048 } else { 1024 }
}

/// Prompts gathered to be computed together.
struct Gathered {
    /// Rows they are computed in.
    rows: usize,
    batch: Batch,
    slots: Vec<u32>,
    /// For each, where the whole prompt is in the cache: its first row and its rows.
    places: Vec<u32>,
}

/// Computes prompts.
pub(super) struct Prompts<B: Backend> {
    acts: Activations<B>,
    slots: B::Index,
    /// Where whole prompts are in the cache, if beginnings are taken from there.
    places: Option<B::Index>,
    /// Rows of the smallest batch; the others are twice, four times... as long.
    chunk: usize,
    /// Whether shapes are kept fixed.
    fixed: bool,
    gathered: Vec<Gathered>,
    /// Key of the first recording; the low 32 bits are free.
    recording: u64,
}

impl<B: Backend> Prompts<B> {
    /// Plans the buffers for prompts of up to `longest` tokens.
    pub fn new(model: &Model<B>, longest: usize, fixed: bool, recording: u64) -> Result<Self> {
        let chunk = if fixed { chunk(model.config.parameters()) } else { longest.max(512) };
        let capacity = rows(chunk, longest);
        let acts = Activations::new(model, capacity, Keep::Nothing)?;
        let b = &model.backend;
        // Of fixed shapes, how much of a prompt is known would make another.
        let shares = b.shares_prompts() && !fixed;
        let places = if shares { Some(b.indices(2 * capacity)?) } else { None };
        Ok(Prompts {
            acts,
            slots: b.indices(capacity)?,
            places,
            chunk,
            fixed,
            gathered: Vec::new(),
            recording,
        })
    }

    /// Adds a prompt whose keys and values belong at this place of the cache, and of which rows
    /// elsewhere in the cache are the beginning. What is full is queued on the device.
    pub fn push(
        &mut self,
        model: &Model<B>,
        cache: &mut Cache<B>,
        tokens: &[u32],
        place: Prefix,
        known: Prefix,
    ) -> Result<()> {
        let known_len = if self.places.is_some() { known.len as usize } else { 0 };
        if known_len > 0 {
            for layer in &mut cache.layers {
                let (heads, to) = (model.config.heads, place.first);
                model.backend.cache_copy(heads, known_len, known.first, to, layer)?;
            }
        }
        let tokens = &tokens[known_len..];
        if tokens.is_empty() {
            return Ok(());
        }
        let rows = rows(self.chunk, tokens.len());
        let at = match self.gathered.iter().position(|g| g.rows == rows) {
            Some(at) => at,
            None => {
                let (slots, places) = (Vec::new(), Vec::new());
                self.gathered.push(Gathered { rows, batch: Batch::new(), slots, places });
                self.gathered.len() - 1
            }
        };
        if self.gathered[at].batch.len() + tokens.len() > rows {
            self.run(model, cache, at)?;
        }
        let gathered = &mut self.gathered[at];
        gathered.batch.push_end(known_len, tokens);
        gathered.slots.extend(place.first + known_len as u32..place.first + place.len);
        gathered.places.extend([place.first, place.len]);
        Ok(())
    }

    /// Queues the rest on the device.
    pub fn finish(&mut self, model: &Model<B>, cache: &mut Cache<B>) -> Result<()> {
        (0..self.gathered.len()).try_for_each(|at| self.run(model, cache, at))
    }

    /// Forgets what was gathered.
    pub fn clear(&mut self) {
        self.gathered.clear();
    }

    fn run(&mut self, model: &Model<B>, cache: &mut Cache<B>, at: usize) -> Result<()> {
        let Gathered { rows, batch, slots, places } = &mut self.gathered[at];
        if batch.is_empty() {
            return Ok(());
        }
        let (b, acts) = (&*model.backend, &mut self.acts);
        acts.set_batch(model, batch)?;
        let mut key = None;
        if self.fixed {
            // Rows beyond the prompts hold old numbers, belong to no sequence and are kept nowhere.
            // How many sequences there may be and how long only sets how many blocks are launched;
            // a few sizes of each, so that there are few recordings.
            let packed = &mut acts.packed;
            packed.n = *rows;
            packed.sequences = packed.sequences.next_power_of_two().max(16);
            packed.longest = packed.longest.next_power_of_two().clamp(64, *rows);
            let mut starts = std::mem::take(&mut batch.starts);
            starts.resize(packed.sequences + 1, batch.tokens.len() as u32);
            b.upload_indices(&starts, &mut packed.starts)?;
            slots.resize(*rows, u32::MAX);
            let [sequences, longest] =
                [packed.sequences, packed.longest].map(|size| u64::from(size.trailing_zeros()));
            key = Some(
                self.recording
                    | 1 << 31
                    | (*rows / self.chunk) as u64
                    | sequences << 8
                    | longest << 16,
            );
        }
        b.upload_indices(slots, &mut self.slots)?;
        if let Some(index) = &mut self.places {
            b.upload_indices(places, index)?;
        }
        let (at, whole) = (&self.slots, &self.places);
        let mut body = || match whole {
            Some(prompts) => model.run(acts, &mut Attend::Ends { cache, slots: at, prompts }),
            None => model.run(acts, &mut Attend::Prefill { cache, slots: at }),
        };
        match key {
            Some(key) => b.replay(key, &mut body)?,
            None => body()?,
        }
        batch.clear();
        slots.clear();
        places.clear();
        Ok(())
    }
}

/// Rows of the batch that a prompt of `len` tokens is computed in.
fn rows(chunk: usize, len: usize) -> usize {
    chunk * len.div_ceil(chunk).next_power_of_two()
}
