//! LoRA's products where the fused kernels do not fit: plain products, a part at a time.

use catamount_model::Result;

use crate::cuda::{Cuda, Turn};
use crate::kernels::args;
use crate::lora::Site;
use crate::matmul::{Matrix, Product};
use crate::tensor::Format;

impl Cuda {
    pub(crate) fn lora_forward_plain(
        &self,
        turn: &Turn<'_>,
        s: &Site<'_>,
        x: u64,
        t: u64,
        y: u64,
    ) -> Result<()> {
        let (l, format) = (s.lora, self.format());
        let x = self.dropped(turn, s, x)?;
        let matrix = |pointer, stride| Matrix::new((pointer, format), stride);
        let inner = Product {
            rows: s.n,
            columns: s.width,
            inner: l.inputs,
            x: matrix(x, l.inputs),
            y: matrix(s.a, l.inputs).transposed(),
            out: matrix(t, s.width),
            alpha: 1.0,
            beta: 0.0,
            bias: None,
        };
        self.product(turn, &inner)?;
        let mut before = 0;
        for (i, part) in l.parts.iter().enumerate() {
            let outer = Product {
                rows: s.n,
                columns: part.len(),
                inner: l.rank,
                x: matrix(t, s.width).skip(i * l.rank),
                y: matrix(s.b, l.rank).skip(before * l.rank).transposed(),
                out: matrix(y, l.outputs).skip(part.start),
                alpha: l.scale,
                beta: 1.0,
                bias: None,
            };
            self.product(turn, &outer)?;
            before += part.len();
        }
        Ok(())
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn lora_gradients_plain(
        &self,
        turn: &Turn<'_>,
        s: &Site<'_>,
        x: u64,
        t: u64,
        dy: u64,
        dx: u64,
        da: u64,
        db: u64,
        dt: u64,
    ) -> Result<()> {
        let (l, n, format) = (s.lora, s.n, self.format());
        let matrix = |pointer, stride| Matrix::new((pointer, format), stride);
        let exact = |pointer, stride| Matrix::new((pointer, Format::F32), stride);
        let product = |rows, columns, inner, x, y, out, alpha, beta| {
            self.product(
                turn,
                &Product { rows, columns, inner, x, y, out, alpha, beta, bias: None },
            )
        };
        let mut before = 0;
        for (i, part) in l.parts.iter().enumerate() {
            let dy = matrix(dy, l.outputs).skip(part.start);
            let b = matrix(s.b, l.rank).skip(before * l.rank);
            product(
                n,
                l.rank,
                part.len(),
                dy,
                b,
                matrix(dt, s.width).skip(i * l.rank),
                l.scale,
                0.0,
            )?;
            let (t, db) =
                (matrix(t, s.width).skip(i * l.rank), exact(db, l.rank).skip(before * l.rank));
            product(part.len(), l.rank, n, dy.transposed(), t, db, l.scale, 1.0)?;
            before += part.len();
        }
        let x = self.dropped(turn, s, x)?;
        let (dt, a) = (matrix(dt, s.width), matrix(s.a, l.inputs));
        product(
            s.width,
            l.inputs,
            n,
            dt.transposed(),
            matrix(x, l.inputs),
            exact(da, l.inputs),
            1.0,
            1.0,
        )?;
        if s.p == 0.0 {
            return product(n, l.inputs, s.width, dt, a, matrix(dx, l.inputs), 1.0, 1.0);
        }
        let len = n * l.inputs;
        let through = self.scratch(turn, "lora dx", len * format.bytes())?;
        product(n, l.inputs, s.width, dt, a, matrix(through, l.inputs), 1.0, 0.0)?;
        self.launch(
            c"dropout",
            len.div_ceil(256),
            256,
            args![len as u64, s.key, s.p, 1usize, through, dx],
        )
    }

    /// The adapter's input after dropout: itself where there is none.
    fn dropped(&self, turn: &Turn<'_>, s: &Site<'_>, x: u64) -> Result<u64> {
        if s.p == 0.0 {
            return Ok(x);
        }
        let len = s.n * s.lora.inputs;
        let to = self.scratch(turn, "lora input", len * self.format().bytes())?;
        self.launch(
            c"dropout",
            len.div_ceil(256),
            256,
            args![len as u64, s.key, s.p, 0usize, x, to],
        )?;
        Ok(to)
    }
}
