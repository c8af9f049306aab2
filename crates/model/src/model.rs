//! The transformer's parameters: a base, trained or frozen, and at most one adapter on top of it.

use std::sync::Arc;

use catamount_search::Stream;

use crate::{
    Adapter, Affine, Backend, Config, Each, Error, Fused, Kind, Norm, Parameter, Result, Shape,
};

/// A linear map.
pub struct Linear<B: Backend> {
    /// `[outputs, inputs]`.
    pub weight: Parameter<B>,
    /// `[1, outputs]`.
    pub bias: Option<Parameter<B>>,
}

/// A transformer block.
pub struct Block<B: Backend> {
    /// Norm before attention.
    pub norm1: Parameter<B>,
    /// Norm before the feed-forward part.
    pub norm2: Parameter<B>,
    /// Its matrices.
    pub linears: Each<Linear<B>>,
}

/// A decoder-only transformer. See [`crate::Activations`] for running it.
pub struct Model<B: Backend> {
    /// Its shape.
    pub config: Config,
    /// Where it lives.
    pub backend: Arc<B>,
    /// `[vocab, hidden]`.
    pub embedding: Parameter<B>,
    /// The blocks.
    pub blocks: Vec<Block<B>>,
    /// The last norm.
    pub norm: Parameter<B>,
    /// `[vocab, hidden]`; none when the embedding serves as the head.
    pub head: Option<Parameter<B>>,
    /// The correction in force; replace it to switch adapters.
    pub adapter: Option<Adapter<B>>,
    /// The rotary table, `[positions, 2, dim / 2]`.
    pub(crate) rope: B::Tensor,
    /// Whether the products of the blocks' matrices are in fp8.
    pub(crate) fp8: bool,
}

impl<B: Backend> Model<B> {
    /// A model with all parameters zero, to be filled by a loader. `trained` gives the base
    /// gradients (full fine-tuning); without, only an adapter can be trained.
    pub fn zeros(backend: Arc<B>, config: Config, trained: bool) -> Result<Self> {
        config.check()?;
        let b = &*backend;
        let (d, v) = (config.hidden, config.vocab);
        let matrix = |name: String, shape| Parameter::zeros(b, name, shape, true, trained);
        let vector = |name: String, len| Parameter::zeros(b, name, [1, len], false, trained);
        let mut blocks = Vec::with_capacity(config.layers);
        for l in 0..config.layers {
            let linear = |fused: Fused| -> Result<Linear<B>> {
                let name = format!("layers.{l}.{}", fused.name());
                let Shape { outputs, inputs } = fused.shape(&config);
                let bias = fused.biased(&config).then(|| vector(format!("{name}.bias"), outputs));
                let weight = matrix(format!("{name}.weight"), [outputs, inputs])?;
                Ok(Linear { weight, bias: bias.transpose()? })
            };
            blocks.push(Block {
                norm1: vector(format!("layers.{l}.norm1.weight"), d)?,
                norm2: vector(format!("layers.{l}.norm2.weight"), d)?,
                linears: Each::try_new(linear)?,
            });
        }
        let table = config.rope_table(config.positions);
        let mut rope = b.zeros(table.len(), Kind::Exact)?;
        b.upload(&table, &mut rope, 0)?;
        Ok(Model {
            embedding: matrix("embedding.weight".into(), [v, d])?,
            blocks,
            norm: vector("norm.weight".into(), d)?,
            head: (!config.tied).then(|| matrix("head.weight".into(), [v, d])).transpose()?,
            adapter: None,
            rope,
            fp8: false,
            config,
            backend,
        })
    }

    /// A model from scratch: normal weights of standard deviation 0.02, the two projections that
    /// write to the residual stream scaled down by sqrt(2 * layers), norms one, biases zero.
    pub fn init(backend: Arc<B>, config: Config, seed: Stream) -> Result<Self> {
        let mut model = Self::zeros(backend.clone(), config, true)?;
        let residual = 0.02 / (2.0 * model.config.layers as f64).sqrt();
        for p in model.base_mut() {
            let std = if p.name.ends_with("o.weight") || p.name.ends_with("down.weight") {
                residual
            } else {
                0.02
            };
            let values: Vec<f32> = if p.shape[0] > 1 {
                let stream = seed.named(&p.name);
                (0..p.len() as u64).map(|i| (std * normal(stream, i)) as f32).collect()
            } else {
                vec![if p.name.contains("norm") { 1.0 } else { 0.0 }; p.len()]
            };
            backend.upload(&values, &mut p.value, 0)?;
        }
        Ok(model)
    }

    /// From now on the blocks' matrices multiply in fp8 ([`Affine::fp8`]); norms, the embedding,
    /// the head and adapters stay as they are. Refused where the base is trained, and by devices
    /// that have no such products. The matrices cannot be read back.
    pub fn use_fp8(&mut self) -> Result<()> {
        if self.base().any(|p| p.grad.is_some()) {
            return Err(Error::Config(
                "products in fp8 are for a frozen base; train an adapter on it (LoRA), or train \
                 without fp8"
                    .into(),
            ));
        }
        self.backend.check_fp8()?;
        for block in &mut self.blocks {
            for fused in Fused::ALL {
                let weight = &mut block.linears[fused].weight.value;
                self.backend.round_to_fp8(fused.shape(&self.config), weight)?;
            }
        }
        self.fp8 = true;
        Ok(())
    }

    /// Whether the blocks' matrices multiply in fp8.
    pub fn is_fp8(&self) -> bool {
        self.fp8
    }

    /// The numbers that it computes in, for identities.
    pub fn arithmetic(&self) -> String {
        let device = self.backend.arithmetic();
        if self.fp8 { format!("{device}, base in fp8") } else { device.to_string() }
    }

    /// Puts an adapter in force and returns the one it replaces.
    pub fn swap_adapter(&mut self, adapter: Option<Adapter<B>>) -> Option<Adapter<B>> {
        std::mem::replace(&mut self.adapter, adapter)
    }

    /// The head's matrix: its own, or the embedding's.
    pub fn head_weight(&self) -> &B::Tensor {
        &self.head.as_ref().unwrap_or(&self.embedding).value
    }

    /// The head as a linear map.
    pub(crate) fn head_map(&self) -> Affine<'_, B::Tensor> {
        let shape = Shape { outputs: self.config.vocab, inputs: self.config.hidden };
        Affine { shape, weight: self.head_weight(), bias: None, fp8: false }
    }

    /// One of a block's fused matrices, with its bias.
    pub fn map(&self, layer: usize, fused: Fused) -> Affine<'_, B::Tensor> {
        let Linear { weight, bias } = &self.blocks[layer].linears[fused];
        Affine {
            shape: fused.shape(&self.config),
            weight: &weight.value,
            bias: bias.as_ref().map(|p| &p.value),
            fp8: self.fp8,
        }
    }

    /// The norm that a parameter is the weight of.
    pub(crate) fn norm_of<'a>(&self, weight: &'a Parameter<B>) -> Norm<'a, B::Tensor> {
        Norm { d: self.config.hidden, eps: self.config.norm_eps, weight: &weight.value }
    }

    /// The base's parameters, in a fixed order.
    pub fn base(&self) -> impl Iterator<Item = &Parameter<B>> {
        let blocks = self.blocks.iter().flat_map(|b| {
            let linears = b.linears.iter().flat_map(|l| std::iter::once(&l.weight).chain(&l.bias));
            [&b.norm1, &b.norm2].into_iter().chain(linears)
        });
        std::iter::once(&self.embedding).chain(blocks).chain([&self.norm]).chain(&self.head)
    }

    /// The base's parameters, in the same order, to be changed.
    pub fn base_mut(&mut self) -> impl Iterator<Item = &mut Parameter<B>> {
        let blocks = self.blocks.iter_mut().flat_map(|b| {
            let linears = b
                .linears
                .iter_mut()
                .flat_map(|l| std::iter::once(&mut l.weight).chain(&mut l.bias));
            [&mut b.norm1, &mut b.norm2].into_iter().chain(linears)
        });
        std::iter::once(&mut self.embedding)
            .chain(blocks)
            .chain([&mut self.norm])
            .chain(&mut self.head)
    }

    /// The parameters being trained, in a fixed order: what an optimizer walks.
    pub fn trained(&self) -> impl Iterator<Item = &Parameter<B>> {
        self.base()
            .chain(self.adapter.iter().flat_map(|a| a.parameters()))
            .filter(|p| p.grad.is_some())
    }

    /// The parameters being trained, in the same order, to be updated.
    pub fn trained_mut(&mut self) -> impl Iterator<Item = &mut Parameter<B>> {
        let Model { embedding, blocks, norm, head, adapter, .. } = self;
        let blocks = blocks.iter_mut().flat_map(|b| {
            let linears = b
                .linears
                .iter_mut()
                .flat_map(|l| std::iter::once(&mut l.weight).chain(&mut l.bias));
            [&mut b.norm1, &mut b.norm2].into_iter().chain(linears)
        });
        let base = std::iter::once(embedding).chain(blocks).chain([norm]).chain(head);
        base.chain(adapter.iter_mut().flat_map(|a| a.parameters_mut())).filter(|p| p.grad.is_some())
    }

    /// Sets every gradient to zero.
    pub fn clear_gradients(&mut self) -> Result<()> {
        let backend = self.backend.clone();
        let mut grads: Vec<_> = self.trained_mut().filter_map(|p| p.grad.as_mut()).collect();
        backend.clear_all(&mut grads)
    }

    /// The global norm of the gradients.
    pub fn gradient_norm(&self) -> Result<f64> {
        let grads: Vec<&B::Tensor> = self.trained().filter_map(|p| p.grad.as_ref()).collect();
        Ok(self.backend.sum_of_squares(&grads)?.sqrt())
    }
}

/// The `i`-th standard normal number of a stream (Box and Muller).
fn normal(stream: Stream, i: u64) -> f64 {
    let (u, v) = (1.0 - stream.uniform(2 * i), stream.uniform(2 * i + 1));
    (-2.0 * u.ln()).sqrt() * (2.0 * std::f64::consts::PI * v).cos()
}
