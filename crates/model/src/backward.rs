//! The backward pass: the chain rule through the forward pass, read from its last line to its
//! first.

use crate::activations::{Gradients, Keep};
use crate::adapter::fused_shape;
use crate::forward::Attend;
use crate::{Activations, Backend, Error, Model, Result};

impl<B: Backend> Model<B> {
    /// Adds the gradient of `sum_j coefficients[j] * log_p[j]` to the trained parameters, for the
    /// batch that was run and scored last, at the temperature it was scored at; the coefficients
    /// are constants (to minimise a loss of weights times negative log-probabilities, pass the
    /// negated weights).
    pub fn backward(&mut self, acts: &mut Activations<B>, coefficients: &[f32]) -> Result<()> {
        let backend = self.backend.clone();
        backend.enter(|| self.backward_here(acts, coefficients))
    }

    fn backward_here(&mut self, acts: &mut Activations<B>, coefficients: &[f32]) -> Result<()> {
        let (keep, m, n) = (acts.keep, acts.scored, acts.packed.n);
        if coefficients.len() != m {
            return Err(Error::Input(format!(
                "{} coefficients for {m} scored tokens",
                coefficients.len()
            )));
        }
        if self.adapter.as_ref().is_some_and(|a| a.parameters().any(|p| p.grad.is_none())) {
            return Err(Error::Input(
                "the adapter in force is frozen; load it for training, or take it off".into(),
            ));
        }
        let Activations {
            x,
            blocks,
            delta,
            rstd,
            h,
            lse,
            gradients,
            packed,
            scored_rows,
            targets,
            dropout,
            temperature,
            ..
        } = acts;
        let Some(g) = gradients else {
            return Err(Error::Input(
                "these activations were planned without a backward pass".into(),
            ));
        };
        let backend = self.backend.clone();
        let (b, c, dropout) = (&*backend, self.config.clone(), *dropout);
        let (d, f, v, heads) = (c.hidden, c.intermediate, c.vocab, c.heads);

        b.upload(coefficients, &mut g.coefficients, 0)?;
        let Model { embedding, head, .. } = self;
        let weight = head.as_mut().unwrap_or(embedding);
        let dweight = weight.grad.as_mut();
        b.head_backward(
            n,
            m,
            v,
            d,
            h,
            &weight.value,
            scored_rows,
            targets,
            *temperature,
            lse,
            &g.coefficients,
            &mut g.dh,
            dweight,
        )?;
        b.clear(n * d, &mut g.dx)?;
        let last = &x[c.layers];
        b.rms_norm_backward(
            n,
            d,
            last,
            &self.norm.value,
            rstd,
            &g.dh,
            &mut g.dx,
            self.norm.grad.as_mut(),
        )?;

        for l in (0..c.layers).rev() {
            let slot = if keep == Keep::All { l } else { 0 };
            let (x, a) = (&x[l], &mut blocks[slot]);
            if keep == Keep::Inputs {
                b.rms_norm(
                    n,
                    d,
                    c.norm_eps,
                    x,
                    &self.blocks[l].norm1.value,
                    &mut a.rstd1,
                    &mut a.h1,
                )?;
                self.block(l, packed, x, a, delta, &mut Attend::Packed, dropout)?;
                self.lora_product(n, l, &a.act, &mut a.t[3], delta, dropout)?;
            }
            // `dx` is the gradient of the stream after the block; each norm's backward adds its
            // branch to it.
            let Gradients { dx, dh, dqkv, dattn, dgate_up, dact, .. } = &mut *g;
            self.apply_backward(n, l, 3, &a.act, a.t[3].as_ref(), dx, dact, dropout)?;
            b.swiglu_backward(n, f, &a.gate_up, dact, dgate_up)?;
            self.apply_backward(n, l, 2, &a.h2, a.t[2].as_ref(), dgate_up, dh, dropout)?;
            let norm = &mut self.blocks[l].norm2;
            b.rms_norm_backward(n, d, &a.mid, &norm.value, &a.rstd2, dh, dx, norm.grad.as_mut())?;
            self.apply_backward(n, l, 1, &a.attn, a.t[1].as_ref(), dx, dattn, dropout)?;
            b.attention_backward(heads, packed, &a.qkv, &a.attn, &a.lse, dattn, dqkv)?;
            b.rope(n, heads, dqkv, &packed.positions, &self.rope, true)?;
            self.apply_backward(n, l, 0, &a.h1, a.t[0].as_ref(), dqkv, dh, dropout)?;
            let norm = &mut self.blocks[l].norm1;
            b.rms_norm_backward(n, d, x, &norm.value, &a.rstd1, dh, dx, norm.grad.as_mut())?;
        }
        if let Some(dweight) = &mut self.embedding.grad {
            b.embed_backward(n, d, &g.dx, &packed.tokens, dweight)?;
        }
        Ok(())
    }

    /// Backward of one fused matrix with its bias and adapter: writes `dx`, adds to the gradients
    /// that are wanted.
    #[allow(clippy::too_many_arguments)]
    fn apply_backward(
        &mut self,
        n: usize,
        l: usize,
        fused: usize,
        x: &B::Tensor,
        t: Option<&B::Tensor>,
        dy: &B::Tensor,
        dx: &mut B::Tensor,
        dropout: Option<u64>,
    ) -> Result<()> {
        let [outputs, inputs] = fused_shape(&self.config, fused);
        let linear = &mut self.blocks[l].linears[fused];
        self.backend.linear_backward_input(n, outputs, inputs, dy, &linear.weight.value, dx)?;
        if let Some(dweight) = &mut linear.weight.grad {
            let dbias = linear.bias.as_mut().and_then(|p| p.grad.as_mut());
            self.backend.linear_backward_weight(n, outputs, inputs, dy, x, dweight, dbias)?;
        }
        if let (Some(adapter), Some(t)) = (&mut self.adapter, t)
            && let Some((lora, da, db)) =
                adapter.view_with_gradients(&self.config, l, fused, dropout)
        {
            self.backend.lora_backward(n, &lora, x, t, dy, dx, da, db)?;
        }
        Ok(())
    }

    /// Computes the down projection's inner LoRA product again, which recomputing a block stops
    /// short of.
    fn lora_product(
        &self,
        n: usize,
        l: usize,
        x: &B::Tensor,
        t: &mut Option<B::Tensor>,
        scratch: &mut B::Tensor,
        dropout: Option<u64>,
    ) -> Result<()> {
        if let (Some(adapter), Some(t)) = (&self.adapter, t)
            && let Some(lora) = adapter.view(&self.config, l, 3, dropout)
        {
            self.backend.lora(n, &lora, x, t, scratch)?;
        }
        Ok(())
    }
}
