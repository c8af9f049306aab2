//! Computing prompts: many states together, their keys and values left in the cache. A state
//! shares most of its text with the one that it came from; what a prompt has in common with one in
//! the cache is copied and only the rest is computed.
//!
//! Where a backend pads its decoding steps, another batch shape may round differently. Prompts are
//! then always computed in batches of one number of rows, long ones in pieces, so that neither
//! their company nor what was known of them changes anything; and since the shapes are few, they
//! can be recorded.

use crate::forward::Attend;
use crate::prefix::Prefix;
use crate::{Activations, Backend, Batch, Cache, Keep, Model, Place, Result};

/// Rows that prompts are computed in, where these are fixed. A small model is done with a few
/// thousand in the time it takes to launch them.
pub(super) fn fixed_rows(parameters: u64) -> usize {
    if parameters < 50_000_000 { 2048 } else { 1024 }
}

/// Prompts gathered to be computed together.
struct Gathered {
    batch: Batch,
    slots: Vec<u32>,
    places: Vec<Place>,
}

impl Gathered {
    /// Whether one of them takes its beginning from rows of this place.
    fn takes_from(&self, place: Prefix) -> bool {
        self.places.iter().any(|gathered| {
            let before = gathered.source + gathered.known <= place.first;
            let after = place.first + place.len <= gathered.source;
            gathered.known > 0 && !before && !after
        })
    }

    fn clear(&mut self) {
        self.batch.clear();
        self.slots.clear();
        self.places.clear();
    }
}

/// Computes prompts.
pub(super) struct Prompts<B: Backend> {
    acts: Activations<B>,
    slots: B::Index,
    places: B::Index,
    /// Rows of a batch: of each, if shapes are fixed, or of the largest.
    rows: usize,
    fixed: bool,
    gathered: Gathered,
    /// Key of the first recording; the low 32 bits are free.
    recording: u64,
}

impl<B: Backend> Prompts<B> {
    /// Plans the buffers for prompts of up to `longest` tokens; `fixed` is the rows of every batch,
    /// a power of two of at least 16.
    pub fn new(
        model: &Model<B>,
        longest: usize,
        fixed: Option<usize>,
        recording: u64,
    ) -> Result<Self> {
        let rows = fixed.unwrap_or(longest.max(512));
        let b = &model.backend;
        Ok(Prompts {
            acts: Activations::new(model, rows, Keep::Nothing)?,
            slots: b.indices(rows)?,
            places: b.indices(4 * rows)?,
            rows,
            fixed: fixed.is_some(),
            gathered: Gathered { batch: Batch::new(), slots: Vec::new(), places: Vec::new() },
            recording,
        })
    }

    /// Adds a prompt whose keys and values belong at this place of the cache, and of which rows
    /// elsewhere in the cache are the beginning. What is full is queued on the device. Returns how
    /// many of the prompt's tokens need not be computed.
    pub fn push(
        &mut self,
        model: &Model<B>,
        cache: &mut Cache<B>,
        tokens: &[u32],
        place: Prefix,
        known: Prefix,
    ) -> Result<usize> {
        // The last one is, in any case: a sequence without rows would have no place in a batch.
        let copied = (known.len as usize).min(tokens.len().saturating_sub(1));
        // Room may have been made where a prompt of this batch begins to be copied from.
        if self.gathered.takes_from(place) {
            self.finish(model, cache)?;
        }
        let mut at = copied;
        while at < tokens.len() {
            let piece = &tokens[at..tokens.len().min(at + self.rows)];
            if self.gathered.batch.len() + piece.len() > self.rows {
                self.finish(model, cache)?;
            }
            let Gathered { batch, slots, places } = &mut self.gathered;
            let (first, source) = (place.first, known.first);
            slots.extend(first + at as u32..first + (at + piece.len()) as u32);
            // What is copied is copied with the first piece.
            let copy = if at == copied { copied as u32 } else { 0 };
            batch.push_end(at, piece);
            at += piece.len();
            places.push(Place { first, rows: at as u32, source, known: copy });
        }
        Ok(copied)
    }

    /// Forgets what was gathered.
    pub fn clear(&mut self) {
        self.gathered.clear();
    }

    /// Queues what was gathered on the device.
    pub fn finish(&mut self, model: &Model<B>, cache: &mut Cache<B>) -> Result<()> {
        let Gathered { batch, slots, places } = &mut self.gathered;
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
            packed.n = self.rows;
            packed.sequences = packed.sequences.next_power_of_two().max(16);
            packed.longest = packed.longest.next_power_of_two().max(64).min(self.rows);
            let mut starts = std::mem::take(&mut batch.starts);
            starts.resize(packed.sequences + 1, batch.tokens.len() as u32);
            b.upload_indices(&starts, &mut packed.starts)?;
            slots.resize(self.rows, u32::MAX);
            places.resize(packed.sequences, Place::default());
            let [sequences, longest] =
                [packed.sequences, packed.longest].map(|size| u64::from(size.trailing_zeros()));
            key = Some(self.recording | 1 << 31 | sequences << 8 | longest << 16);
        }
        let numbers: Vec<u32> = places.iter().flat_map(|place| place.numbers()).collect();
        b.upload_indices(slots, &mut self.slots)?;
        b.upload_indices(&numbers, &mut self.places)?;
        let (slots, places) = (&self.slots, &self.places);
        let mut body = || model.run(acts, &mut Attend::Ends { cache, slots, places });
        match key {
            Some(key) => b.replay(key, &mut body)?,
            None => body()?,
        }
        self.gathered.clear();
        Ok(())
    }
}
