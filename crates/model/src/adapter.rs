//! LoRA adapters: small trained corrections of a frozen base, which can be swapped without touching
//! it.

use std::ops::Range;

use catamount_search::Stream;

use crate::{
    Backend, Config, Dropout, Each, Error, Fused, Lora, LoraGradients, Parameter, Result, Shape,
};

/// The linear maps of a block, in the order they are stored: which fused matrix each belongs to is
/// [`TARGETS`].
pub const TARGETS: [(&str, Fused); 7] = [
    ("q_proj", Fused::Qkv),
    ("k_proj", Fused::Qkv),
    ("v_proj", Fused::Qkv),
    ("o_proj", Fused::O),
    ("gate_proj", Fused::GateUp),
    ("up_proj", Fused::GateUp),
    ("down_proj", Fused::Down),
];

/// What an adapter adapts, and how strongly.
#[derive(Clone, Debug, PartialEq)]
pub struct LoraConfig {
    /// r.
    pub rank: usize,
    /// The correction is multiplied by alpha / r.
    pub alpha: f32,
    /// Dropout on the adapter's input while training.
    pub dropout: f32,
    /// Names from [`TARGETS`].
    pub targets: Vec<String>,
}

impl Default for LoraConfig {
    /// The paper's: r = 16, alpha = 32, dropout 0.05, every linear map of a block.
    fn default() -> Self {
        let targets = TARGETS.iter().map(|(name, _)| name.to_string()).collect();
        LoraConfig { rank: 16, alpha: 32.0, dropout: 0.05, targets }
    }
}

impl LoraConfig {
    /// Trainable parameters of an adapter of this shape.
    pub fn parameters(&self, config: &Config) -> u64 {
        let rows = target_rows(config);
        let layer: usize = (0..7)
            .filter(|&i| self.targets.iter().any(|t| t == TARGETS[i].0))
            .map(|i| self.rank * (rows[i].len() + TARGETS[i].1.shape(config).inputs))
            .sum();
        (config.layers * layer) as u64
    }

    fn check(&self) -> Result<()> {
        if self.rank == 0 || self.targets.is_empty() {
            return Err(Error::Config(
                "an adapter needs a rank of at least 1 and at least one target".into(),
            ));
        }
        if let Some(t) = self.targets.iter().find(|t| !TARGETS.iter().any(|(name, _)| name == t)) {
            let known: Vec<&str> = TARGETS.iter().map(|(name, _)| *name).collect();
            return Err(Error::Config(format!(
                "LoRA target `{t}` is not one of {}",
                known.join(", ")
            )));
        }
        if !(0.0..1.0).contains(&self.dropout) {
            return Err(Error::Config(format!("LoRA dropout {} is not in [0, 1)", self.dropout)));
        }
        Ok(())
    }
}

/// The rows of its fused matrix that each of [`TARGETS`] occupies.
pub fn target_rows(config: &Config) -> [Range<usize>; 7] {
    let (q, kv, d, f) = (config.heads.q(), config.heads.kv(), config.hidden, config.intermediate);
    [0..q, q..q + kv, q + kv..q + 2 * kv, 0..d, 0..f, f..2 * f, 0..d]
}

/// The adapter of one fused matrix.
pub struct LoraLinear<B: Backend> {
    /// `[parts * rank, in]`.
    pub a: Parameter<B>,
    /// `[sum of part lengths, rank]`.
    pub b: Parameter<B>,
    /// Output columns of each part.
    pub parts: Vec<Range<usize>>,
    /// Indices into [`TARGETS`], one per part.
    pub targets: Vec<usize>,
}

/// An adapter for every block.
pub struct Adapter<B: Backend> {
    /// Its shape.
    pub config: LoraConfig,
    /// For each block, the adapters of those of its matrices that have targets.
    pub layers: Vec<Each<Option<LoraLinear<B>>>>,
}

impl<B: Backend> Adapter<B> {
    /// A fresh adapter: A uniform as PEFT draws it, B zero, so that the model is unchanged at
    /// first.
    pub fn new(
        backend: &B,
        model: &Config,
        config: LoraConfig,
        trained: bool,
        seed: Stream,
    ) -> Result<Self> {
        config.check()?;
        let rows = target_rows(model);
        let mut layers = Vec::with_capacity(model.layers);
        for l in 0..model.layers {
            layers.push(Each::try_new(|fused| {
                let targets: Vec<usize> = (0..7)
                    .filter(|&i| {
                        TARGETS[i].1 == fused && config.targets.iter().any(|t| t == TARGETS[i].0)
                    })
                    .collect();
                if targets.is_empty() {
                    return Ok(None);
                }
                let parts: Vec<Range<usize>> = targets.iter().map(|&i| rows[i].clone()).collect();
                let (inputs, outputs) =
                    (fused.shape(model).inputs, parts.iter().map(|p| p.len()).sum());
                let name = |m: &str| format!("layers.{l}.{}.lora_{m}", fused.name());
                let mut a = Parameter::zeros(
                    backend,
                    name("A"),
                    [parts.len() * config.rank, inputs],
                    true,
                    trained,
                )?;
                let b =
                    Parameter::zeros(backend, name("B"), [outputs, config.rank], true, trained)?;
                // Kaiming with a = sqrt(5): uniform within 1 / sqrt(inputs).
                let (stream, bound) = (seed.named(&a.name), 1.0 / (inputs as f64).sqrt());
                let values: Vec<f32> = (0..a.len())
                    .map(|i| ((2.0 * stream.uniform(i as u64) - 1.0) * bound) as f32)
                    .collect();
                backend.upload(&values, &mut a.value, 0)?;
                Ok::<_, Error>(Some(LoraLinear { a, b, parts, targets }))
            })?);
        }
        Ok(Adapter { config, layers })
    }

    /// The view of one block's adapter that the backend's operations take.
    pub fn view(
        &self,
        model: &Config,
        layer: usize,
        fused: Fused,
        dropout: Option<u64>,
    ) -> Option<Lora<'_, B::Tensor>> {
        let lora = self.layers[layer][fused].as_ref()?;
        let site = Site { model, config: &self.config, layer, fused, dropout };
        Some(site.view(&lora.a.value, &lora.b.value, &lora.parts))
    }

    /// The same view, with the gradients of A and B; none where this matrix has no adapter or it is
    /// not being trained.
    pub(crate) fn view_with_gradients(
        &mut self,
        model: &Config,
        layer: usize,
        fused: Fused,
        dropout: Option<u64>,
    ) -> Option<Trained<'_, B::Tensor>> {
        let LoraLinear { a, b, parts, .. } = self.layers[layer][fused].as_mut()?;
        let site = Site { model, config: &self.config, layer, fused, dropout };
        let gradients = LoraGradients { da: a.grad.as_mut()?, db: b.grad.as_mut()? };
        Some((site.view(&a.value, &b.value, parts), gradients))
    }

    /// Its parameters, in a fixed order.
    pub fn parameters(&self) -> impl Iterator<Item = &Parameter<B>> {
        self.layers.iter().flat_map(Each::iter).flatten().flat_map(|l| [&l.a, &l.b])
    }

    /// Its parameters, in the same order, to be updated.
    pub fn parameters_mut(&mut self) -> impl Iterator<Item = &mut Parameter<B>> {
        self.layers.iter_mut().flat_map(Each::iter_mut).flatten().flat_map(|l| [&mut l.a, &mut l.b])
    }
}

/// One block's adapter, and the gradients that its training adds to.
pub(crate) type Trained<'a, T> = (Lora<'a, T>, LoraGradients<'a, T>);

/// Where an adapter applies.
struct Site<'c> {
    model: &'c Config,
    config: &'c LoraConfig,
    layer: usize,
    fused: Fused,
    dropout: Option<u64>,
}

impl Site<'_> {
    fn view<'a, T>(&self, a: &'a T, b: &'a T, parts: &'a [Range<usize>]) -> Lora<'a, T> {
        let Shape { outputs, inputs } = self.fused.shape(self.model);
        let dropout = self.dropout.filter(|_| self.config.dropout > 0.0).map(|seed| Dropout {
            p: self.config.dropout,
            key: Stream(seed).child((self.layer * 4 + self.fused as usize) as u64).0,
        });
        let (rank, scale) = (self.config.rank, self.config.alpha / self.config.rank as f32);
        Lora { a, b, rank, scale, inputs, outputs, parts, dropout }
    }
}
