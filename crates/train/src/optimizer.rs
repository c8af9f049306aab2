//! AdamW's state: two moments for every trained parameter, in f32.

use catamount_model::{AdamW, Backend, Kind, Model, Parameter};

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
        for (parameter, [m, v]) in model.trained_mut().zip(&mut self.tensors) {
            let adamw = AdamW {
                lr: lr as f32,
                beta1: optimizer.beta1 as f32,
                beta2: optimizer.beta2 as f32,
                eps: optimizer.eps as f32,
                weight_decay: if parameter.decay { optimizer.weight_decay as f32 } else { 0.0 },
                step: self.updates,
                grad_scale: grad_scale as f32,
            };
            let len = parameter.len();
            if let Parameter { grad: Some(grad), value, .. } = parameter {
                backend.adamw(len, &adamw, grad, m, v, value)?;
            }
        }
        Ok(())
    }
}
