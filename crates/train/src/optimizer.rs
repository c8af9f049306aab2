//! AdamW's state: two moments for every trained parameter, in f32.

use catamount_model::{AdamW, Backend, Kind, Model};

use crate::{Optimizer, Result};

/// The moments of every trained parameter, in the model's order.
pub(crate) struct Moments<B: Backend> {
    /// First and second moment.
    pub tensors: Vec<[B::Tensor; 2]>,
    /// Updates made so far.
    pub updates: u64,
}

impl<B: Backend> Moments<B> {
    /// Zeros.
    pub fn new(model: &Model<B>) -> Result<Self> {
        let zeros = |len| model.backend.zeros(len, Kind::Exact);
        let tensors = model
            .trained()
            .map(|p| Ok([zeros(p.len())?, zeros(p.len())?]))
            .collect::<Result<_>>()?;
        Ok(Moments { tensors, updates: 0 })
    }

    /// One update of every trained parameter with its gradient times `grad_scale`.
    pub fn update(
        &mut self,
        model: &mut Model<B>,
        optimizer: &Optimizer,
        lr: f64,
        grad_scale: f64,
    ) -> Result<()> {
        self.updates += 1;
        let backend = model.backend.clone();
        let step = |weight_decay| AdamW {
            lr: lr as f32,
            beta1: optimizer.beta1 as f32,
            beta2: optimizer.beta2 as f32,
            eps: optimizer.eps as f32,
            weight_decay,
            step: self.updates,
            grad_scale: grad_scale as f32,
        };
        let (mut decayed, mut others) = (Vec::new(), Vec::new());
        for (parameter, moments) in model.trained_mut().zip(&mut self.tensors) {
            let list = if parameter.decay { &mut decayed } else { &mut others };
            list.extend(parameter.update(moments));
        }
        backend.adamw(&step(optimizer.weight_decay as f32), &mut decayed)?;
        backend.adamw(&step(0.0), &mut others)?;
        Ok(())
    }
}
