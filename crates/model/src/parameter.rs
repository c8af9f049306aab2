//! One parameter tensor, with its gradient where it is being trained.

use crate::{Backend, Kind, Result, Update};

/// A parameter. Linear maps that share an input are stored as one matrix (q, k, v; gate, up):
/// elementwise updates do not care, and checkpoints name the row ranges as Hugging Face does.
pub struct Parameter<B: Backend> {
    /// A stable name, such as `layers.3.gate_up.weight`.
    pub name: String,
    /// `[rows, columns]`; vectors have one row.
    pub shape: [usize; 2],
    /// Whether weight decay is meant for it: true for matrices, false for norms and biases.
    pub decay: bool,
    /// The numbers.
    pub value: B::Tensor,
    /// d loss / d value, added to by every backward pass; present exactly when the parameter is
    /// trained.
    pub grad: Option<B::Tensor>,
}

impl<B: Backend> Parameter<B> {
    /// A parameter of zeros.
    pub fn zeros(
        backend: &B,
        name: String,
        shape: [usize; 2],
        decay: bool,
        trained: bool,
    ) -> Result<Self> {
        let len = shape[0] * shape[1];
        let kind = if trained { Kind::Trained } else { Kind::Frozen };
        let grad = trained.then(|| backend.zeros(len, Kind::Exact)).transpose()?;
        Ok(Parameter { name, shape, decay, value: backend.zeros(len, kind)?, grad })
    }

    /// Elements.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.shape[0] * self.shape[1]
    }

    /// What an optimizer updates, given the parameter's two moments; none where it is not trained.
    pub fn update<'a>(
        &'a mut self,
        [m, v]: &'a mut [B::Tensor; 2],
    ) -> Option<Update<'a, B::Tensor>> {
        Some(Update { grad: self.grad.as_ref()?, m, v, value: &mut self.value })
    }

    /// A copy of the numbers on the host.
    pub fn to_host(&self, backend: &B) -> Result<Vec<f32>> {
        let mut host = vec![0.0; self.len()];
        backend.download(&self.value, 0, &mut host)?;
        Ok(host)
    }
}
