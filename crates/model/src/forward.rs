//! The forward pass, for training, scoring and decoding alike.

use crate::activations::BlockActivations;
use crate::adapter::fused_shape;
use crate::{Activations, Backend, Batch, Cache, Error, Model, Packed, Result};

/// How a pass attends to the past.
pub(crate) enum Attend<'a, B: Backend> {
    /// Within the packed sequences.
    Packed,
    /// Within the packed sequences, keeping keys and values at these rows of the cache.
    Prefill { cache: &'a mut Cache<B>, slots: &'a B::Index },
    /// Single rows over their cached past, each keeping its own key and value first.
    Decode { cache: &'a mut Cache<B>, slots: &'a B::Index, spans: &'a B::Index },
}

impl<B: Backend> Model<B> {
    /// Runs a packed batch. `dropout` is the key of this step's LoRA dropout; none switches it off.
    pub fn forward(
        &self,
        batch: &Batch,
        acts: &mut Activations<B>,
        dropout: Option<u64>,
    ) -> Result<()> {
        acts.set_batch(self, batch)?;
        acts.dropout = dropout;
        self.run(acts, &mut Attend::Packed)
    }

    /// log p of every scored token of the batch that was run, in the order of [`Batch::targets`].
    pub fn score(&self, acts: &mut Activations<B>) -> Result<Vec<f32>> {
        self.score_at(acts, 1.0)
    }

    /// [`Model::score`] of a model that is sampled at a temperature: softmax of the logits divided
    /// by it.
    pub fn score_at(&self, acts: &mut Activations<B>, temperature: f32) -> Result<Vec<f32>> {
        if !(temperature > 0.0 && temperature.is_finite()) {
            return Err(Error::Input(format!(
                "temperature {temperature} makes no distribution; it must be above 0"
            )));
        }
        let m = acts.scored;
        let mut log_p = vec![0.0; m];
        acts.temperature = temperature;
        if m > 0 {
            let Activations { h, scored_rows: rows, targets, log_p: out, lse, .. } = acts;
            let (v, d, weight) = (self.config.vocab, self.config.hidden, self.head_weight());
            self.backend.head(m, v, d, h, weight, rows, targets, temperature, out, lse)?;
            self.backend.download(out, 0, &mut log_p)?;
        }
        Ok(log_p)
    }

    /// The logits of the batch's scored rows, `[rows, vocab]`: for comparison with other
    /// implementations.
    pub fn logits(&self, acts: &Activations<B>) -> Result<Vec<f32>> {
        let (m, v, d, b) = (acts.scored, self.config.vocab, self.config.hidden, &*self.backend);
        let mut gathered = b.zeros(m * d, crate::Kind::Activation)?;
        let mut logits = b.zeros(m * v, crate::Kind::Exact)?;
        b.gather(m, d, &acts.h, &acts.scored_rows, &mut gathered)?;
        b.linear(m, v, d, &gathered, self.head_weight(), None, &mut logits)?;
        let mut host = vec![0.0; m * v];
        b.download(&logits, 0, &mut host)?;
        Ok(host)
    }

    /// Embedding, blocks, last norm: leaves the normalised stream in `acts.h`.
    pub(crate) fn run(&self, acts: &mut Activations<B>, attend: &mut Attend<'_, B>) -> Result<()> {
        self.backend.enter(|| self.run_here(acts, attend))
    }

    fn run_here(&self, acts: &mut Activations<B>, attend: &mut Attend<'_, B>) -> Result<()> {
        let (b, c) = (&*self.backend, &self.config);
        let (n, d, eps) = (acts.packed.n, c.hidden, c.norm_eps);
        if acts.blocks.iter().any(|block| !self.fits(block)) {
            return Err(Error::Input(
                "the adapter changed since these activations were planned; plan them again".into(),
            ));
        }
        b.embed(n, d, &self.embedding.value, &acts.packed.tokens, &mut acts.x[0])?;
        for l in 0..c.layers {
            let (slot, x) = acts.slots(l);
            let norm = &self.blocks[l].norm1.value;
            if l == 0 {
                let block = &mut acts.blocks[0];
                b.rms_norm(n, d, eps, &acts.x[0], norm, &mut block.rstd1, &mut block.h1)?;
            } else {
                // The previous block's addition to the stream is folded into this block's norm.
                let (before, _) = acts.slots(l - 1);
                let Activations { blocks, x: xs, delta, .. } = &mut *acts;
                if before == slot {
                    let block = &mut blocks[slot];
                    b.add_rms_norm(
                        n,
                        d,
                        eps,
                        &block.mid,
                        delta,
                        norm,
                        &mut xs[x],
                        &mut block.rstd1,
                        &mut block.h1,
                    )?;
                } else {
                    let [before, block] =
                        blocks.get_disjoint_mut([before, slot]).expect("two blocks");
                    b.add_rms_norm(
                        n,
                        d,
                        eps,
                        &before.mid,
                        delta,
                        norm,
                        &mut xs[x],
                        &mut block.rstd1,
                        &mut block.h1,
                    )?;
                }
            }
            let Activations { blocks, x: xs, delta, packed, dropout, .. } = &mut *acts;
            self.block(l, packed, &xs[x], &mut blocks[slot], delta, attend, *dropout)?;
            let block = &mut blocks[slot];
            self.apply(n, l, 3, &block.act, delta, *dropout, &mut block.t[3])?;
        }
        let (slot, _) = acts.slots(c.layers - 1);
        let last = acts.x.len() - 1;
        let Activations { blocks, x, delta, rstd, h, .. } = acts;
        b.add_rms_norm(n, d, eps, &blocks[slot].mid, delta, &self.norm.value, &mut x[last], rstd, h)
    }

    /// One block from its normalised input `h1` to the feed-forward activation `act`; the stream
    /// after attention is left in `mid`.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn block(
        &self,
        l: usize,
        packed: &Packed<B>,
        x: &B::Tensor,
        a: &mut BlockActivations<B>,
        delta: &mut B::Tensor,
        attend: &mut Attend<'_, B>,
        dropout: Option<u64>,
    ) -> Result<()> {
        let (b, c) = (&*self.backend, &self.config);
        let (n, d, heads) = (packed.n, c.hidden, c.heads);
        self.apply(n, l, 0, &a.h1, &mut a.qkv, dropout, &mut a.t[0])?;
        b.rope(n, heads, &mut a.qkv, &packed.positions, &self.rope, false)?;
        match attend {
            Attend::Packed => b.attention(heads, packed, &a.qkv, &mut a.attn, &mut a.lse)?,
            Attend::Prefill { cache, slots } => {
                b.cache_write(n, heads, &a.qkv, slots, &mut cache.layers[l])?;
                b.attention(heads, packed, &a.qkv, &mut a.attn, &mut a.lse)?;
            }
            Attend::Decode { cache, slots, spans } => {
                b.cache_write(n, heads, &a.qkv, slots, &mut cache.layers[l])?;
                b.cache_attention(n, heads, &a.qkv, &cache.layers[l], spans, &mut a.attn)?;
            }
        }
        self.apply(n, l, 1, &a.attn, delta, dropout, &mut a.t[1])?;
        let norm = &self.blocks[l].norm2.value;
        b.add_rms_norm(n, d, c.norm_eps, x, delta, norm, &mut a.mid, &mut a.rstd2, &mut a.h2)?;
        self.apply(n, l, 2, &a.h2, &mut a.gate_up, dropout, &mut a.t[2])?;
        b.swiglu(n, c.intermediate, &a.gate_up, &mut a.act)
    }

    /// One fused matrix with its bias and its adapter.
    #[allow(clippy::too_many_arguments)]
    fn apply(
        &self,
        n: usize,
        l: usize,
        fused: usize,
        x: &B::Tensor,
        y: &mut B::Tensor,
        dropout: Option<u64>,
        t: &mut Option<B::Tensor>,
    ) -> Result<()> {
        let linear = &self.blocks[l].linears[fused];
        let [outputs, inputs] = fused_shape(&self.config, fused);
        let bias = linear.bias.as_ref().map(|p| &p.value);
        self.backend.linear(n, outputs, inputs, x, &linear.weight.value, bias, y)?;
        if let (Some(adapter), Some(t)) = (&self.adapter, t)
            && let Some(lora) = adapter.view(&self.config, l, fused, dropout)
        {
            self.backend.lora(n, &lora, x, t, y)?;
        }
        Ok(())
    }

    /// Whether buffers planned earlier fit the adapter in force now.
    fn fits(&self, block: &BlockActivations<B>) -> bool {
        (0..4).all(|fused| {
            let lora = self.adapter.as_ref().and_then(|a| a.view(&self.config, 0, fused, None));
            lora.is_none_or(|lora| {
                block.t[fused].as_ref().is_some_and(|t| {
                    let rows = self.backend.len(&block.rstd1);
                    self.backend.len(t) >= rows * lora.parts.len() * lora.rank
                })
            })
        })
    }
}
