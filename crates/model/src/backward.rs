//! The backward pass: the chain rule through the forward pass, read from its last line to its
//! first.

use crate::activations::{Gradients, Keep};
use crate::forward::{Attend, Pass, Site};
use crate::{
    Activations, Attended, Backend, Direction, Error, Fused, Head, HeadGradients, Inner, Model,
    Norm, NormInput, Normed, Result,
};

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
        let (b, c) = (&*backend, self.config.clone());
        let pass = Pass { packed, dropout: *dropout };
        let (d, f, heads, eps) = (c.hidden, c.intermediate, c.heads, c.norm_eps);

        b.upload(coefficients, &mut g.coefficients, 0)?;
        let Model { embedding, head, .. } = self;
        let weight = head.as_mut().unwrap_or(embedding);
        let head = Head {
            m,
            vocab: c.vocab,
            d,
            weight: &weight.value,
            rows: scored_rows,
            targets,
            temperature: *temperature,
        };
        let gradients = HeadGradients { dx: &mut g.dh, dweight: weight.grad.as_mut() };
        b.head_backward(n, &head, h, lse, &g.coefficients, gradients)?;
        b.clear(n * d, &mut g.dx)?;
        let input = NormInput { x: &x[c.layers], rstd };
        let norm = Norm { d, eps, weight: &self.norm.value };
        b.rms_norm_backward(n, norm, input, &g.dh, &mut g.dx, self.norm.grad.as_mut())?;

        for l in (0..c.layers).rev() {
            let slot = if keep == Keep::All { l } else { 0 };
            let (x, a) = (&x[l], &mut blocks[slot]);
            if keep == Keep::Inputs {
                let normed = Normed { rstd: &mut a.rstd1, out: &mut a.h1 };
                b.rms_norm(n, self.norm_of(&self.blocks[l].norm1), x, normed)?;
                self.block(l, pass, x, a, delta, &mut Attend::Packed)?;
                self.lora_product(pass.site(l, Fused::Down), &a.act, &mut a.t[Fused::Down], delta)?;
            }
            // `dx` is the gradient of the stream after the block; each norm's backward adds its
            // branch to it.
            let Gradients { dx, dh, dqkv, dattn, dgate_up, dact, .. } = &mut *g;
            self.apply_backward(pass.site(l, Fused::Down), &a.act, &a.t[Fused::Down], dx, dact)?;
            b.swiglu_backward(n, f, &a.gate_up, dact, dgate_up)?;
            self.apply_backward(
                pass.site(l, Fused::GateUp),
                &a.h2,
                &a.t[Fused::GateUp],
                dgate_up,
                dh,
            )?;
            let input = NormInput { x: &a.mid, rstd: &a.rstd2 };
            let norm2 = &mut self.blocks[l].norm2;
            let norm = Norm { d, eps, weight: &norm2.value };
            b.rms_norm_backward(n, norm, input, dh, dx, norm2.grad.as_mut())?;
            self.apply_backward(pass.site(l, Fused::O), &a.attn, &a.t[Fused::O], dx, dattn)?;
            let attended = Attended { qkv: &a.qkv, out: &a.attn, lse: &a.lse };
            b.attention_backward(heads, packed, attended, dattn, dqkv)?;
            b.rope(n, heads, Direction::Backward, &packed.positions, &self.rope, dqkv)?;
            self.apply_backward(pass.site(l, Fused::Qkv), &a.h1, &a.t[Fused::Qkv], dqkv, dh)?;
            let input = NormInput { x, rstd: &a.rstd1 };
            let norm1 = &mut self.blocks[l].norm1;
            let norm = Norm { d, eps, weight: &norm1.value };
            b.rms_norm_backward(n, norm, input, dh, dx, norm1.grad.as_mut())?;
        }
        if let Some(dweight) = &mut self.embedding.grad {
            b.embed_backward(n, d, &g.dx, &packed.tokens, dweight)?;
        }
        Ok(())
    }

    /// Backward of one fused matrix with its bias and adapter: writes `dx`, adds to the gradients
    /// that are wanted.
    fn apply_backward(
        &mut self,
        at: Site,
        x: &B::Tensor,
        t: &Option<B::Tensor>,
        dy: &B::Tensor,
        dx: &mut B::Tensor,
    ) -> Result<()> {
        let Site { n, layer, fused, dropout } = at;
        let backend = self.backend.clone();
        let map = self.map(layer, fused);
        let shape = map.shape;
        backend.linear_backward_input(n, map, dy, dx)?;
        let linear = &mut self.blocks[layer].linears[fused];
        if let Some(dweight) = &mut linear.weight.grad {
            let dbias = linear.bias.as_mut().and_then(|p| p.grad.as_mut());
            backend.linear_backward_weight(n, shape, dy, x, dweight, dbias)?;
        }
        if let (Some(adapter), Some(t)) = (&mut self.adapter, t)
            && let Some((lora, gradients)) =
                adapter.view_with_gradients(&self.config, layer, fused, dropout)
        {
            backend.lora_backward(n, &lora, Inner { x, t }, dy, dx, gradients)?;
        }
        Ok(())
    }

    /// Computes the down projection's inner LoRA product again, which recomputing a block stops
    /// short of.
    fn lora_product(
        &self,
        at: Site,
        x: &B::Tensor,
        t: &mut Option<B::Tensor>,
        scratch: &mut B::Tensor,
    ) -> Result<()> {
        if let (Some(adapter), Some(t)) = (&self.adapter, t)
            && let Some(lora) = adapter.view(&self.config, at.layer, at.fused, at.dropout)
        {
            self.backend.lora(at.n, &lora, x, t, scratch)?;
        }
        Ok(())
    }
}
