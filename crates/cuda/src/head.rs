//! The head: logits exist for a chunk of rows at a time, in f32. When one chunk holds all rows, the
//! backward pass finds the forward pass's logits still there, unless something they depend on has
//! changed.

use catamount_model::Result;

use crate::cuda::{Cuda, Turn};
use crate::kernels::args;
use crate::matmul::{Matrix, Product};
use crate::tensor::{CudaIndex, CudaTensor, Format};

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

/// The operands of one pass.
struct Pass {
    vocab: usize,
    d: usize,
    /// Rows of x.
    n: usize,
    x: u64,
    weight: u64,
    rows: u64,
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

    #[allow(clippy::too_many_arguments)]
    fn pass(
        &self,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rows: &CudaIndex,
        temperature: f32,
    ) -> Result<Pass> {
        Ok(Pass {
            vocab,
            d,
            n: x.len / d.max(1),
            x: self.read(x, 0)?,
            weight: self.read(weight, vocab * d)?,
            rows: self.index(rows, m)?,
            scale: 1.0 / temperature,
            chunk: self.chunk(m, vocab),
        })
    }

    /// Computes the logits of `len` rows from the `first`-th on; returns the rows' inputs and the
    /// logits.
    fn logits(&self, turn: &Turn<'_>, p: &Pass, first: usize, len: usize) -> Result<(u64, u64)> {
        let format = self.format();
        let gathered = self.scratch(turn, "head rows", p.chunk * p.d * format.bytes())?;
        let logits = self.scratch(turn, "logits", p.chunk * p.vocab * 4)?;
        self.launch(
            c"gather",
            len,
            128,
            args![p.d, p.n, p.x, p.rows + 4 * first as u64, gathered],
        )?;
        let product = Product {
            rows: len,
            columns: p.vocab,
            inner: p.d,
            x: Matrix::new((gathered, format), p.d),
            y: Matrix::new((p.weight, format), p.d).transposed(),
            out: Matrix::new((logits, Format::F32), p.vocab),
            alpha: p.scale,
            beta: 0.0,
            bias: None,
        };
        self.product(turn, &product)?;
        Ok((gathered, logits))
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn head_forward(
        &self,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rows: &CudaIndex,
        targets: &CudaIndex,
        temperature: f32,
        log_p: &mut CudaTensor,
        lse: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let pass = self.pass(m, vocab, d, x, weight, rows, temperature)?;
        let (targets, log_p, lse) =
            (self.index(targets, m)?, self.write_exact(log_p, m)?, self.write_exact(lse, m)?);
        for first in (0..m).step_by(pass.chunk.max(1)) {
            let len = pass.chunk.min(m - first);
            let (_, logits) = self.logits(&turn, &pass, first, len)?;
            let at = 4 * first as u64;
            self.launch(
                c"head_scores",
                len,
                THREADS,
                args![vocab, logits, targets + at, log_p + at, lse + at],
            )?;
        }
        let now = Remembered {
            x: x.stamp(),
            weight: weight.stamp(),
            rows: rows.stamp(),
            sizes: [m, vocab, d],
            temperature: temperature.to_bits(),
        };
        turn.state().logits = (pass.chunk == m).then_some(now);
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn head_gradient(
        &self,
        n: usize,
        m: usize,
        vocab: usize,
        d: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        rows: &CudaIndex,
        targets: &CudaIndex,
        temperature: f32,
        lse: &CudaTensor,
        coefficients: &CudaTensor,
        dx: &mut CudaTensor,
        dweight: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let pass = self.pass(m, vocab, d, x, weight, rows, temperature)?;
        let format = self.format();
        let (targets, lse) = (self.index(targets, m)?, self.read_exact(lse, m)?);
        let coefficients = self.read_exact(coefficients, m)?;
        let dweight = dweight.map(|w| self.write_exact(w, vocab * d)).transpose()?;
        let dx_at = self.write(dx, n * d)?;
        self.clear_bytes(dx_at, n * d * format.bytes())?;
        let now = Remembered {
            x: x.stamp(),
            weight: weight.stamp(),
            rows: rows.stamp(),
            sizes: [m, vocab, d],
            temperature: temperature.to_bits(),
        };
        let remembered = turn.state().logits.take() == Some(now);
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
            let at = 4 * first as u64;
            self.launch(
                c"head_gradient",
                len,
                THREADS,
                args![vocab, logits, targets + at, lse + at, coefficients + at],
            )?;
            // The gradient took the place of each row's logits, and only the first part of it if it
            // is narrower.
            let gradient = Matrix::new((logits, format), vocab * 4 / format.bytes());
            let input = Product {
                rows: len,
                columns: d,
                inner: vocab,
                x: gradient,
                y: Matrix::new((pass.weight, format), d),
                out: Matrix::new((dgathered, format), d),
                alpha: pass.scale,
                beta: 0.0,
                bias: None,
            };
            self.product(&turn, &input)?;
            self.launch(c"scatter", len, 128, args![d, n, dgathered, pass.rows + at, dx_at])?;
            if let Some(dweight) = dweight {
                let weight = Product {
                    rows: vocab,
                    columns: d,
                    inner: len,
                    x: gradient.transposed(),
                    y: Matrix::new((gathered, format), d),
                    out: Matrix::new((dweight, Format::F32), d),
                    alpha: pass.scale,
                    beta: 1.0,
                    bias: None,
                };
                self.product(&turn, &weight)?;
            }
        }
        Ok(())
    }
}
