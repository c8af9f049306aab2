//! The head: logits exist for a chunk of rows at a time, in f32. When one chunk holds all rows, the
//! backward pass finds the forward pass's logits still there, unless something they depend on has
//! changed.

use catamount_model::{Head, HeadGradients, Result, Scores};

use crate::address::{Address, Computed};
use crate::cuda::Cuda;
use crate::kernels::{GATHER, HEAD_GRADIENT, HEAD_SCORES, SCATTER};
use crate::matmul::{Matrix, Product};
use crate::tensor::{CudaIndex, CudaTensor, Format};
use crate::turn::Ready;

/// Threads for a row of logits.
const THREADS: usize = 512;
/// At most this many bytes of logits.
const LOGITS: usize = 3 << 29;

/// What the logits in scratch memory were computed from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Remembered {
    x: (u64, u64),
    weight: (u64, u64),
    rows: (u64, u64),
    sizes: [usize; 3],
    /// As bits: what is the same must be the very same.
    temperature: u32,
}

impl Remembered {
    fn of(head: &Head<'_, CudaTensor, CudaIndex>, x: &CudaTensor) -> Self {
        Remembered {
            x: x.stamp(),
            weight: head.weight.stamp(),
            rows: head.rows.stamp(),
            sizes: [head.m, head.vocab, head.d],
            temperature: head.temperature.to_bits(),
        }
    }
}

/// The operands of one pass.
struct Pass {
    vocab: usize,
    d: usize,
    /// Rows of x.
    n: usize,
    x: Address<Computed>,
    weight: Address<Computed>,
    rows: Address<u32>,
    targets: Address<u32>,
    /// 1 / temperature, which the products multiply by: at temperature 1 they are what they are
    /// without it.
    scale: f32,
    chunk: usize,
}

impl Cuda {
    pub(crate) fn forget_logits(&self) {
        if let Ok(turn) = self.turn() {
            turn.state().logits = None;
        }
    }

    /// Rows of logits that exist at once.
    fn chunk(&self, m: usize, vocab: usize) -> usize {
        let most = LOGITS.min(self.device.total / 64) / (vocab * 4);
        m.min(if most >= 128 { most / 128 * 128 } else { most.max(1) })
    }

    fn pass(&self, head: &Head<'_, CudaTensor, CudaIndex>, x: &CudaTensor) -> Result<Pass> {
        let &Head { m, vocab, d, weight, rows, targets, temperature } = head;
        Ok(Pass {
            vocab,
            d,
            n: x.len / d.max(1),
            x: self.read(x, 0)?,
            weight: self.read(weight, vocab * d)?,
            rows: self.index(rows, m)?,
            targets: self.index(targets, m)?,
            scale: 1.0 / temperature,
            chunk: self.chunk(m, vocab),
        })
    }

    /// Computes the logits of `len` rows from the `first`-th on; returns the rows' inputs and the
    /// logits.
    fn logits(
        &self,
        turn: &Ready<'_>,
        p: &Pass,
        first: usize,
        len: usize,
    ) -> Result<(Address<Computed>, Address<f32>)> {
        let format = self.format();
        let gathered = self.scratch(turn, "head rows", p.chunk * p.d * format.bytes())?;
        let logits = self.scratch(turn, "logits", p.chunk * p.vocab * 4)?;
        self.launch(turn, GATHER, len, 128, (p.d, p.n, p.x, p.rows.skip(first), gathered))?;
        let x = Matrix::new((gathered, format), p.d);
        let weight = Matrix::new((p.weight, format), p.d).transposed();
        let out = Matrix::new((logits, Format::F32), p.vocab);
        let product = Product::of([len, p.vocab, p.d], x, weight, out);
        self.product(turn, &Product { alpha: p.scale, ..product })?;
        Ok((gathered, logits))
    }

    pub(crate) fn head_forward(
        &self,
        head: &Head<'_, CudaTensor, CudaIndex>,
        x: &CudaTensor,
        scores: Scores<'_, CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let (pass, m) = (self.pass(head, x)?, head.m);
        let (log_p, lse) = (self.write_exact(scores.log_p, m)?, self.write_exact(scores.lse, m)?);
        for first in (0..m).step_by(pass.chunk.max(1)) {
            let len = pass.chunk.min(m - first);
            let (_, logits) = self.logits(&turn, &pass, first, len)?;
            self.launch(
                &turn,
                HEAD_SCORES,
                len,
                THREADS,
                (pass.vocab, logits, pass.targets.skip(first), log_p.skip(first), lse.skip(first)),
            )?;
        }
        turn.state().logits = (pass.chunk == m).then(|| Remembered::of(head, x));
        Ok(())
    }

    pub(crate) fn head_gradient(
        &self,
        n: usize,
        head: &Head<'_, CudaTensor, CudaIndex>,
        x: &CudaTensor,
        lse: &CudaTensor,
        coefficients: &CudaTensor,
        HeadGradients { dx, dweight }: HeadGradients<'_, CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let (pass, format) = (self.pass(head, x)?, self.format());
        let &Head { m, vocab, d, .. } = head;
        let (lse, coefficients) = (self.read_exact(lse, m)?, self.read_exact(coefficients, m)?);
        let dweight = dweight.map(|w| self.write_exact(w, vocab * d)).transpose()?;
        let dx_at = self.write(dx, n * d)?;
        self.clear_bytes(&turn, dx_at, n * d * format.bytes())?;
        let remembered = turn.state().logits.take() == Some(Remembered::of(head, x));
        for first in (0..m).step_by(pass.chunk.max(1)) {
            let len = pass.chunk.min(m - first);
            let dgathered =
                self.scratch(&turn, "head gradients", pass.chunk * d * format.bytes())?;
            let (gathered, logits) = if remembered {
                let gathered = self.scratch(&turn, "head rows", pass.chunk * d * format.bytes())?;
                (gathered, self.scratch(&turn, "logits", pass.chunk * vocab * 4)?)
            } else {
                self.logits(&turn, &pass, first, len)?
            };
            self.launch(
                &turn,
                HEAD_GRADIENT,
                len,
                THREADS,
                (
                    vocab,
                    logits,
                    pass.targets.skip(first),
                    lse.skip(first),
                    coefficients.skip(first),
                ),
            )?;
            // The gradient took the place of each row's logits, and only the first part of it if it
            // is narrower.
            let gradient = Matrix::new((logits, format), vocab * 4 / format.bytes());
            let (weight, to) =
                (Matrix::new((pass.weight, format), d), Matrix::new((dgathered, format), d));
            let input = Product::of([len, d, vocab], gradient, weight, to);
            let input = Product { alpha: pass.scale, ..input };
            self.product(&turn, &input)?;
            self.launch(&turn, SCATTER, len, 128, (d, n, dgathered, pass.rows.skip(first), dx_at))?;
            if let Some(dweight) = dweight {
                let (x, to) =
                    (Matrix::new((gathered, format), d), Matrix::new((dweight, Format::F32), d));
                let weight = Product::of([vocab, d, len], gradient.transposed(), x, to);
                self.product(&turn, &Product { alpha: pass.scale, beta: 1.0, ..weight })?;
            }
        }
        Ok(())
    }
}
