//! The buffers a model runs in, planned once for a largest batch.

use crate::{Backend, Batch, Each, Error, Kind, Model, Packed, Result};

/// What a forward pass keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Keep {
    /// Every activation the backward pass needs.
    All,
    /// Each block's input only; the backward pass computes the rest again, block by block.
    Inputs,
    /// Nothing: scoring and sampling.
    Nothing,
}

/// The activations of one block. With [`Keep::Inputs`] and [`Keep::Nothing`] all blocks share one.
pub(crate) struct BlockActivations<B: Backend> {
    pub rstd1: B::Tensor,
    pub h1: B::Tensor,
    pub qkv: B::Tensor,
    pub attn: B::Tensor,
    pub lse: B::Tensor,
    pub mid: B::Tensor,
    pub rstd2: B::Tensor,
    pub h2: B::Tensor,
    pub gate_up: B::Tensor,
    pub act: B::Tensor,
    /// LoRA's inner products.
    pub t: Each<Option<B::Tensor>>,
}

/// Gradients of activations; only where there is a backward pass.
pub(crate) struct Gradients<B: Backend> {
    pub dx: B::Tensor,
    pub dh: B::Tensor,
    pub dqkv: B::Tensor,
    pub dattn: B::Tensor,
    pub dgate_up: B::Tensor,
    pub dact: B::Tensor,
    pub coefficients: B::Tensor,
}

/// Buffers for batches of up to `rows` token rows, and the state of the pass in progress:
/// [`Model::forward`], then [`Model::score`], then (with coefficients that may depend on the
/// scores) [`Model::backward`].
pub struct Activations<B: Backend> {
    pub(crate) keep: Keep,
    pub(crate) rows: usize,
    /// Residual stream at each block's input, and after the last block.
    pub(crate) x: Vec<B::Tensor>,
    pub(crate) blocks: Vec<BlockActivations<B>>,
    pub(crate) delta: B::Tensor,
    pub(crate) rstd: B::Tensor,
    pub(crate) h: B::Tensor,
    pub(crate) log_p: B::Tensor,
    pub(crate) lse: B::Tensor,
    pub(crate) gradients: Option<Gradients<B>>,
    pub(crate) packed: Packed<B>,
    pub(crate) scored_rows: B::Index,
    pub(crate) targets: B::Index,
    pub(crate) scored: usize,
    pub(crate) dropout: Option<u64>,
    /// That of the last scores, whose gradient the backward pass takes.
    pub(crate) temperature: f32,
}

impl<B: Backend> Activations<B> {
    /// Plans buffers for batches of up to `rows` rows on `model`, with the adapter's rank that is
    /// in force now.
    pub fn new(model: &Model<B>, rows: usize, keep: Keep) -> Result<Self> {
        let (b, c) = (&*model.backend, &model.config);
        let (n, d, q, f) = (rows, c.hidden, c.heads.q(), c.intermediate);
        let activation = |len: usize| b.zeros(len, Kind::Activation);
        let exact = |len: usize| b.zeros(len, Kind::Exact);
        let block = |l: usize| -> Result<BlockActivations<B>> {
            let t = Each::try_new(|fused| {
                let lora = model.adapter.as_ref().and_then(|a| a.view(c, l, fused, None));
                lora.map(|lora| activation(n * lora.width())).transpose()
            })?;
            Ok(BlockActivations {
                rstd1: exact(n)?,
                h1: activation(n * d)?,
                qkv: activation(n * c.heads.qkv())?,
                attn: activation(n * q)?,
                lse: exact(n * c.heads.heads)?,
                mid: activation(n * d)?,
                rstd2: exact(n)?,
                h2: activation(n * d)?,
                gate_up: activation(n * 2 * f)?,
                act: activation(n * f)?,
                t,
            })
        };
        let gradients = || -> Result<Gradients<B>> {
            Ok(Gradients {
                dx: activation(n * d)?,
                dh: activation(n * d)?,
                dqkv: activation(n * c.heads.qkv())?,
                dattn: activation(n * q)?,
                dgate_up: activation(n * 2 * f)?,
                dact: activation(n * f)?,
                coefficients: exact(n)?,
            })
        };
        let (blocks, inputs) = match keep {
            Keep::All => (c.layers, c.layers + 1),
            Keep::Inputs => (1, c.layers + 1),
            Keep::Nothing => (1, 1),
        };
        Ok(Activations {
            keep,
            rows,
            x: (0..inputs).map(|_| activation(n * d)).collect::<Result<_>>()?,
            blocks: (0..blocks).map(block).collect::<Result<_>>()?,
            delta: activation(n * d)?,
            rstd: exact(n)?,
            h: activation(n * d)?,
            log_p: exact(n)?,
            lse: exact(n)?,
            gradients: (keep != Keep::Nothing).then(gradients).transpose()?,
            packed: Packed {
                n: 0,
                sequences: 0,
                longest: 0,
                tokens: b.indices(n)?,
                positions: b.indices(n)?,
                starts: b.indices(n + 1)?,
            },
            scored_rows: b.indices(n)?,
            targets: b.indices(n)?,
            scored: 0,
            dropout: None,
            temperature: 1.0,
        })
    }

    /// The largest batch these buffers hold, in token rows.
    pub fn capacity(&self) -> usize {
        self.rows
    }

    /// Checks a batch against the model and copies it to the device.
    pub(crate) fn set_batch(&mut self, model: &Model<B>, batch: &Batch) -> Result<()> {
        let (n, c) = (batch.len(), &model.config);
        if n == 0 || n > self.rows {
            return Err(Error::Input(format!(
                "a batch of {n} token rows; these buffers take 1 to {}",
                self.rows
            )));
        }
        if batch.longest() > c.positions {
            let (long, most) = (batch.longest(), c.positions);
            return Err(Error::Input(format!(
                "a sequence of {long} tokens; the model has {most} positions"
            )));
        }
        if let Some(t) = batch.tokens.iter().chain(&batch.targets).find(|&&t| t as usize >= c.vocab)
        {
            return Err(Error::Input(format!(
                "token {t} is outside the model's vocabulary of {}",
                c.vocab
            )));
        }
        let whole = batch.starts.first() == Some(&0) && batch.starts.last() == Some(&(n as u32));
        let ordered = batch.starts.is_sorted() && batch.rows.windows(2).all(|w| w[0] < w[1]);
        let inside = batch.rows.last().is_none_or(|&r| (r as usize) < n)
            && batch.positions.iter().all(|&p| (p as usize) < c.positions);
        let even = batch.positions.len() == n && batch.rows.len() == batch.targets.len();
        if !(whole && ordered && inside && even) {
            return Err(Error::Input(
                "the batch's lists do not fit together; build it with Batch::push".into(),
            ));
        }
        let b = &*model.backend;
        b.upload_indices(&batch.tokens, &mut self.packed.tokens)?;
        b.upload_indices(&batch.positions, &mut self.packed.positions)?;
        b.upload_indices(&batch.starts, &mut self.packed.starts)?;
        b.upload_indices(&batch.rows, &mut self.scored_rows)?;
        b.upload_indices(&batch.targets, &mut self.targets)?;
        self.packed.n = n;
        self.packed.sequences = batch.sequences();
        self.packed.longest = batch.longest();
        self.scored = batch.rows.len();
        Ok(())
    }

    /// Where block `l`'s activations and input are.
    pub(crate) fn slots(&self, l: usize) -> (usize, usize) {
        match self.keep {
            Keep::All => (l, l),
            Keep::Inputs => (0, l),
            Keep::Nothing => (0, 0),
        }
    }
}
