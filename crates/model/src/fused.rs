//! The matrices of a block. Linear maps that share an input are one matrix: q, k and v; gate and
//! up.

use crate::{Config, Shape};

/// One of a block's four matrices, in the order in which they are stored and applied.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fused {
    /// Queries, keys and values.
    Qkv,
    /// Attention's output.
    O,
    /// The feed-forward part's gate and its input.
    GateUp,
    /// The feed-forward part's output.
    Down,
}

impl Fused {
    /// All of them, in order.
    pub const ALL: [Fused; 4] = [Fused::Qkv, Fused::O, Fused::GateUp, Fused::Down];

    /// The name in parameters' names, such as `layers.3.gate_up.weight`.
    pub fn name(self) -> &'static str {
        match self {
            Fused::Qkv => "qkv",
            Fused::O => "o",
            Fused::GateUp => "gate_up",
            Fused::Down => "down",
        }
    }

    /// The module that holds its parts in Hugging Face's checkpoints.
    pub fn module(self) -> &'static str {
        match self {
            Fused::Qkv | Fused::O => "self_attn",
            Fused::GateUp | Fused::Down => "mlp",
        }
    }

    /// Its size in a model.
    pub fn shape(self, config: &Config) -> Shape {
        let (d, f) = (config.hidden, config.intermediate);
        let (outputs, inputs) = match self {
            Fused::Qkv => (config.heads.qkv(), d),
            Fused::O => (d, config.heads.q()),
            Fused::GateUp => (2 * f, d),
            Fused::Down => (d, f),
        };
        Shape { outputs, inputs }
    }

    /// Whether it has a bias in a model.
    pub fn biased(self, config: &Config) -> bool {
        match self {
            Fused::Qkv => config.qkv_bias,
            Fused::O => config.o_bias,
            Fused::GateUp | Fused::Down => false,
        }
    }
}

/// One thing for each of a block's matrices.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Each<T>(pub [T; 4]);

impl<T> Each<T> {
    /// Makes one for each.
    pub fn try_new<E>(mut make: impl FnMut(Fused) -> Result<T, E>) -> Result<Self, E> {
        let [qkv, o, gate_up, down] = Fused::ALL;
        Ok(Each([make(qkv)?, make(o)?, make(gate_up)?, make(down)?]))
    }

    /// In order.
    pub fn iter(&self) -> std::slice::Iter<'_, T> {
        self.0.iter()
    }

    /// In order, to be changed.
    pub fn iter_mut(&mut self) -> std::slice::IterMut<'_, T> {
        self.0.iter_mut()
    }
}

impl<T> std::ops::Index<Fused> for Each<T> {
    type Output = T;

    fn index(&self, fused: Fused) -> &T {
        &self.0[fused as usize]
    }
}

impl<T> std::ops::IndexMut<Fused> for Each<T> {
    fn index_mut(&mut self, fused: Fused) -> &mut T {
        &mut self.0[fused as usize]
    }
}
