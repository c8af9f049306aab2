//! Linear maps and their gradients.

use catamount_model::Result;

use crate::cuda::{Cuda, Turn, long_enough};
use crate::kernels::args;
use crate::matmul::{Matrix, Product};
use crate::tensor::CudaTensor;

impl Cuda {
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn linear_forward(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        x: &CudaTensor,
        weight: &CudaTensor,
        bias: Option<&CudaTensor>,
        y: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let operands = [x.numbers.id, y.numbers.id];
        let x = Matrix::new((self.read(x, n * inputs)?, self.format()), inputs);
        let weight = Matrix::new((self.read(weight, outputs * inputs)?, self.format()), inputs);
        let bias = bias.map(|b| self.read(b, outputs)).transpose()?;
        long_enough(y.len, n * outputs)?;
        y.version += 1;
        let out = Matrix::new(y.computed(), outputs);
        let (rows, columns, inner) = (n, outputs, inputs);
        let product = Product {
            rows,
            columns,
            inner,
            x,
            y: weight.transposed(),
            out,
            alpha: 1.0,
            beta: 0.0,
            bias,
        };
        self.queue_product(&turn, product, operands)
    }

    pub(crate) fn linear_input_gradient(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CudaTensor,
        weight: &CudaTensor,
        dx: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_beside()?;
        if turn.state().read_beside.contains(&dx.numbers.id) {
            self.join_loose()?;
        }
        self.flush(&turn)?;
        let operands = [dy.numbers.id, dx.numbers.id];
        let x = Matrix::new((self.read(dy, n * outputs)?, self.format()), outputs);
        let y = Matrix::new((self.read(weight, outputs * inputs)?, self.format()), inputs);
        let out = Matrix::new((self.write(dx, n * inputs)?, self.format()), inputs);
        let (rows, columns, inner) = (n, inputs, outputs);
        let product =
            Product { rows, columns, inner, x, y, out, alpha: 1.0, beta: 0.0, bias: None };
        self.queue_product(&turn, product, operands)
    }

    #[allow(clippy::too_many_arguments)]
    pub(crate) fn linear_weight_gradient(
        &self,
        n: usize,
        outputs: usize,
        inputs: usize,
        dy: &CudaTensor,
        x: &CudaTensor,
        dweight: &mut CudaTensor,
        dbias: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let gradient = self.read(dy, n * outputs)?;
        let left = Matrix::new((gradient, self.format()), outputs).transposed();
        let y = Matrix::new((self.read(x, n * inputs)?, self.format()), inputs);
        self.write_exact(dweight, outputs * inputs)?;
        let out = Matrix::new((dweight.numbers.pointer(), dweight.format), inputs);
        let (rows, columns, inner) = (outputs, inputs, n);
        self.product(
            &turn,
            &Product { rows, columns, inner, x: left, y, out, alpha: 1.0, beta: 1.0, bias: None },
        )?;
        if let Some(dbias) = dbias {
            let sums = self.write_exact(dbias, outputs)?;
            self.add_column_sums(&turn, n, outputs, gradient, 0, 0, sums)?;
        }
        Ok(())
    }

    /// Adds to `sums` the sum over rows of `dout`, or of `dout * x * rstd` where `x` is not null.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn add_column_sums(
        &self,
        turn: &Turn<'_>,
        n: usize,
        d: usize,
        dout: u64,
        x: u64,
        rstd: u64,
        sums: u64,
    ) -> Result<()> {
        let slices = n.clamp(1, 128);
        let partials = self.scratch(turn, "column partials", slices * d * 4)?;
        let grid = (d.div_ceil(128), slices, 1);
        self.launch_box(c"column_partials", grid, 128, 0, args![n, d, dout, x, rstd, partials])?;
        self.launch(c"column_sums", d.div_ceil(128), 128, args![d, slices, partials, sums])
    }
}
