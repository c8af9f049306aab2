//! The forward pass, for training, scoring and decoding alike.

use crate::activations::BlockActivations;
use crate::{
    Activations, Backend, Batch, Cache, Direction, Error, Fused, Head, Model, Normed, Packed,
    Result, Scores,
};

/// How a pass attends to the past.
pub(crate) enum Attend<'a, B: Backend> {
    /// Within the packed sequences.
    Packed,
    /// The sequences are the ends of prompts: they keep keys and values at these rows of the cache
    /// and attend to all that it has of the prompt, some of which is copied from others first.
    Ends { cache: &'a mut Cache<B>, slots: &'a B::Index, places: &'a B::Index },
    /// Single rows over their cached past, each keeping its own key and value first.
    Decode { cache: &'a mut Cache<B>, slots: &'a B::Index, spans: &'a B::Index },
}

/// What is the same for every block of a pass.
pub(crate) struct Pass<'a, B: Backend> {
    pub packed: &'a Packed<B>,
    /// The key of this step's LoRA dropout.
    pub dropout: Option<u64>,
}

impl<B: Backend> Clone for Pass<'_, B> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<B: Backend> Copy for Pass<'_, B> {}

impl<B: Backend> Pass<'_, B> {
    /// A fused matrix of one block, as this pass applies it.
    pub fn site(&self, layer: usize, fused: Fused) -> Site {
        Site { n: self.packed.n, layer, fused, dropout: self.dropout }
    }
}

/// Where a fused matrix is applied, and to how many rows.
#[derive(Clone, Copy)]
pub(crate) struct Site {
    pub n: usize,
    pub layer: usize,
    pub fused: Fused,
    pub dropout: Option<u64>,
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
            let head = Head {
                m,
                vocab: self.config.vocab,
                d: self.config.hidden,
                weight: self.head_weight(),
                rows,
                targets,
                temperature,
            };
            self.backend.head(&head, h, Scores { log_p: out, lse })?;
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
        b.linear(m, self.head_map(), &gathered, &mut logits)?;
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
        let (n, d) = (acts.packed.n, c.hidden);
        if acts.blocks.iter().any(|block| !self.fits(block)) {
            return Err(Error::Input(
                "the adapter changed since these activations were planned; plan them again".into(),
            ));
        }
        b.embed(n, d, &self.embedding.value, &acts.packed.tokens, &mut acts.x[0])?;
        for l in 0..c.layers {
            let (slot, x) = acts.slots(l);
            let norm = self.norm_of(&self.blocks[l].norm1);
            if l == 0 {
                let BlockActivations { rstd1: rstd, h1: out, .. } = &mut acts.blocks[0];
                b.rms_norm(n, norm, &acts.x[0], Normed { rstd, out })?;
            } else {
                // The previous block's addition to the stream is folded into this block's norm.
                let (before, _) = acts.slots(l - 1);
                let Activations { blocks, x: xs, delta, .. } = &mut *acts;
                if before == slot {
                    let BlockActivations { mid, rstd1: rstd, h1: out, .. } = &mut blocks[slot];
                    b.add_rms_norm(n, norm, mid, delta, &mut xs[x], Normed { rstd, out })?;
                } else {
                    let [before, block] =
                        blocks.get_disjoint_mut([before, slot]).expect("two blocks");
                    let normed = Normed { rstd: &mut block.rstd1, out: &mut block.h1 };
                    b.add_rms_norm(n, norm, &before.mid, delta, &mut xs[x], normed)?;
                }
            }
            let Activations { blocks, x: xs, delta, packed, dropout, .. } = &mut *acts;
            let (pass, block) = (Pass { packed, dropout: *dropout }, &mut blocks[slot]);
            self.block(l, pass, &xs[x], block, delta, attend)?;
            self.apply(pass.site(l, Fused::Down), &block.act, &mut block.t[Fused::Down], delta)?;
        }
        let (slot, _) = acts.slots(c.layers - 1);
        let last = acts.x.len() - 1;
        let Activations { blocks, x, delta, rstd, h: out, .. } = acts;
        let norm = self.norm_of(&self.norm);
        b.add_rms_norm(n, norm, &blocks[slot].mid, delta, &mut x[last], Normed { rstd, out })
    }

    /// One block from its normalised input `h1` to the feed-forward activation `act`; the stream
    /// after attention is left in `mid`.
    pub(crate) fn block(
        &self,
        l: usize,
        pass: Pass<'_, B>,
        x: &B::Tensor,
        a: &mut BlockActivations<B>,
        delta: &mut B::Tensor,
        attend: &mut Attend<'_, B>,
    ) -> Result<()> {
        let (b, c, packed) = (&*self.backend, &self.config, pass.packed);
        let (n, heads) = (packed.n, c.heads);
        self.apply(pass.site(l, Fused::Qkv), &a.h1, &mut a.t[Fused::Qkv], &mut a.qkv)?;
        b.rope(n, heads, Direction::Forward, &packed.positions, &self.rope, &mut a.qkv)?;
        match attend {
            Attend::Packed => b.attention(heads, packed, &a.qkv, &mut a.attn, &mut a.lse)?,
            Attend::Ends { cache, slots, places } => {
                let cache = &mut cache.layers[l];
                b.cache_write(n, heads, &a.qkv, slots, cache)?;
                b.cache_copy(packed.sequences, heads, places, cache)?;
                b.prompt_attention(heads, packed, &a.qkv, cache, places, &mut a.attn)?;
            }
            Attend::Decode { cache, slots, spans } => {
                b.cache_write(n, heads, &a.qkv, slots, &mut cache.layers[l])?;
                b.cache_attention(n, heads, &a.qkv, &cache.layers[l], spans, &mut a.attn)?;
            }
        }
        self.apply(pass.site(l, Fused::O), &a.attn, &mut a.t[Fused::O], delta)?;
        let norm = self.norm_of(&self.blocks[l].norm2);
        let normed = Normed { rstd: &mut a.rstd2, out: &mut a.h2 };
        b.add_rms_norm(n, norm, x, delta, &mut a.mid, normed)?;
        self.apply(pass.site(l, Fused::GateUp), &a.h2, &mut a.t[Fused::GateUp], &mut a.gate_up)?;
        b.swiglu(n, c.intermediate, &a.gate_up, &mut a.act)
    }

    /// One fused matrix with its bias and its adapter; `t` is the adapter's inner product.
    fn apply(
        &self,
        at: Site,
        x: &B::Tensor,
        t: &mut Option<B::Tensor>,
        y: &mut B::Tensor,
    ) -> Result<()> {
        self.backend.linear(at.n, self.map(at.layer, at.fused), x, y)?;
        if let (Some(adapter), Some(t)) = (&self.adapter, t)
            && let Some(lora) = adapter.view(&self.config, at.layer, at.fused, at.dropout)
        {
            self.backend.lora(at.n, &lora, x, t, y)?;
        }
        Ok(())
    }

    /// Whether buffers planned earlier fit the adapter in force now.
    fn fits(&self, block: &BlockActivations<B>) -> bool {
        Fused::ALL.into_iter().all(|fused| {
            let lora = self.adapter.as_ref().and_then(|a| a.view(&self.config, 0, fused, None));
            lora.is_none_or(|lora| {
                block.t[fused].as_ref().is_some_and(|t| {
                    let rows = self.backend.len(&block.rstd1);
                    self.backend.len(t) >= rows * lora.width()
                })
            })
        })
    }
}
