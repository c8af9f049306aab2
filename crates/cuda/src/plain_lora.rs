//! LoRA's products where the fused kernels do not fit: plain products, a part at a time. It is
//! slower, and there for what `lora.rs` cannot do: f32, which comparisons with the processor need;
//! odd ranks; inner products wider than 96 columns; widths without sixteen-byte boundaries.

use catamount_model::Result;

use crate::address::{Address, Computed};
use crate::cuda::Cuda;
use crate::kernels::DROPOUT;
use crate::lora::Site;
use crate::matmul::{Matrix, Product};
use crate::tensor::Format;
use crate::turn::Ready;

/// The addresses of a backward pass.
pub(crate) struct Gradients {
    pub x: Address<Computed>,
    pub t: Address<Computed>,
    pub dy: Address<Computed>,
    pub dx: Address<Computed>,
    pub da: Address<f32>,
    pub db: Address<f32>,
    pub dt: Address<Computed>,
}

impl Cuda {
    pub(crate) fn lora_forward_plain(
        &self,
        turn: &Ready<'_>,
        s: &Site<'_>,
        x: Address<Computed>,
        t: Address<Computed>,
        y: Address<Computed>,
    ) -> Result<()> {
        let (l, format) = (s.lora, self.format());
        let x = self.dropped(turn, s, x)?;
        let matrix = |pointer, stride| Matrix::new((pointer, format), stride);
        let a = matrix(s.a, l.inputs).transposed();
        let sizes = [s.n, s.width, l.inputs];
        self.product(turn, &Product::of(sizes, matrix(x, l.inputs), a, matrix(t, s.width)))?;
        let mut before = 0;
        for (i, part) in l.parts.iter().enumerate() {
            let t = matrix(t, s.width).skip(i * l.rank);
            let b = matrix(s.b, l.rank).skip(before * l.rank).transposed();
            let y = matrix(y, l.outputs).skip(part.start);
            let outer = Product::of([s.n, part.len(), l.rank], t, b, y);
            self.product(turn, &Product { alpha: l.scale, beta: 1.0, ..outer })?;
            before += part.len();
        }
        Ok(())
    }

    pub(crate) fn lora_gradients_plain(
        &self,
        turn: &Ready<'_>,
        s: &Site<'_>,
        Gradients { x, t, dy, dx, da, db, dt }: Gradients,
    ) -> Result<()> {
        let (l, n, format) = (s.lora, s.n, self.format());
        let matrix = |pointer, stride| Matrix::new((pointer, format), stride);
        let exact = |pointer, stride| Matrix::new((pointer, Format::F32), stride);
        let product =
            |product, alpha, beta| self.product(turn, &Product { alpha, beta, ..product });
        let mut before = 0;
        for (i, part) in l.parts.iter().enumerate() {
            let dy = matrix(dy, l.outputs).skip(part.start);
            let b = matrix(s.b, l.rank).skip(before * l.rank);
            let dt = matrix(dt, s.width).skip(i * l.rank);
            product(Product::of([n, l.rank, part.len()], dy, b, dt), l.scale, 0.0)?;
            let t = matrix(t, s.width).skip(i * l.rank);
            let db = exact(db, l.rank).skip(before * l.rank);
            product(Product::of([part.len(), l.rank, n], dy.transposed(), t, db), l.scale, 1.0)?;
            before += part.len();
        }
        let x = matrix(self.dropped(turn, s, x)?, l.inputs);
        let (dt, a) = (matrix(dt, s.width), matrix(s.a, l.inputs));
        let da = exact(da, l.inputs);
        product(Product::of([s.width, l.inputs, n], dt.transposed(), x, da), 1.0, 1.0)?;
        let through = |to| Product::of([n, l.inputs, s.width], dt, a, matrix(to, l.inputs));
        if s.p == 0.0 {
            return product(through(dx), 1.0, 1.0);
        }
        let len = n * l.inputs;
        let dropped = self.scratch(turn, "lora dx", len * format.bytes())?;
        product(through(dropped), 1.0, 0.0)?;
        let list = (len as u64, s.key, s.p, 1usize, dropped, dx);
        self.launch(turn, DROPOUT, len.div_ceil(256), 256, list)
    }

    /// The adapter's input after dropout: itself where there is none.
    fn dropped(
        &self,
        turn: &Ready<'_>,
        s: &Site<'_>,
        x: Address<Computed>,
    ) -> Result<Address<Computed>> {
        if s.p == 0.0 {
            return Ok(x);
        }
        let len = s.n * s.lora.inputs;
        let to = self.scratch(turn, "lora input", len * self.format().bytes())?;
        let list = (len as u64, s.key, s.p, 0usize, x, to);
        self.launch(turn, DROPOUT, len.div_ceil(256), 256, list)?;
        Ok(to)
    }
}
