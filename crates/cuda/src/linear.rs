//! Linear maps and their gradients.

use catamount_model::{Affine, Result, Shape};

use crate::address::{Address, Computed};
use crate::cuda::{Cuda, long_enough};
use crate::fp8::Way;
use crate::kernels::{COLUMN_PARTIALS, COLUMN_SUMS};
use crate::launch::Grid;
use crate::matmul::{Matrix, Product};
use crate::tensor::CudaTensor;
use crate::turn::Ready;

impl Cuda {
    pub(crate) fn linear_forward(
        &self,
        n: usize,
        map: Affine<'_, CudaTensor>,
        x: &CudaTensor,
        y: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn()?;
        let Affine { shape: Shape { outputs, inputs }, weight, bias, .. } = map;
        let operands = [x.numbers.id, y.numbers.id];
        let x = self.read(x, n * inputs)?;
        let bias = bias.map(|b| self.read(b, outputs)).transpose()?;
        long_enough(y.len, n * outputs)?;
        y.version += 1;
        let out = Matrix::new(y.computed(), outputs);
        let product = if map.fp8 {
            self.fp8_product(&turn, n, map, Way::Forward, x, out)?
        } else {
            let x = Matrix::new((x, self.format()), inputs);
            let weight = Matrix::new((self.read(weight, outputs * inputs)?, self.format()), inputs);
            Product::of([n, outputs, inputs], x, weight.transposed(), out)
        };
        self.leave_product(turn, Product { bias, ..product }, operands)
    }

    pub(crate) fn linear_input_gradient(
        &self,
        n: usize,
        map: Affine<'_, CudaTensor>,
        dy: &CudaTensor,
        dx: &mut CudaTensor,
    ) -> Result<()> {
        let turn = self.turn_beside()?.writing(&[dx.numbers.id])?.settle()?;
        let Shape { outputs, inputs } = map.shape;
        let operands = [dy.numbers.id, dx.numbers.id];
        let dy = self.read(dy, n * outputs)?;
        let out = Matrix::new((self.write(dx, n * inputs)?, self.format()), inputs);
        let product = if map.fp8 {
            self.fp8_product(&turn, n, map, Way::Backward, dy, out)?
        } else {
            let x = Matrix::new((dy, self.format()), outputs);
            let y = Matrix::new((self.read(map.weight, outputs * inputs)?, self.format()), inputs);
            Product::of([n, inputs, outputs], x, y, out)
        };
        self.leave_product(turn, product, operands)
    }

    pub(crate) fn linear_weight_gradient(
        &self,
        n: usize,
        Shape { outputs, inputs }: Shape,
        dy: &CudaTensor,
        x: &CudaTensor,
        dweight: &mut CudaTensor,
        dbias: Option<&mut CudaTensor>,
    ) -> Result<()> {
        let turn = self.turn()?;
        let gradient = self.read(dy, n * outputs)?;
        let left = Matrix::new((gradient, self.format()), outputs).transposed();
        let y = Matrix::new((self.read(x, n * inputs)?, self.format()), inputs);
        let gradients = self.write_exact(dweight, outputs * inputs)?;
        let out = Matrix::new((gradients, dweight.format), inputs);
        let product = Product::of([outputs, inputs, n], left, y, out);
        self.product(&turn, &Product { beta: 1.0, ..product })?;
        if let Some(dbias) = dbias {
            let sums = self.write_exact(dbias, outputs)?;
            self.add_column_sums(&turn, [n, outputs], gradient, None, sums)?;
        }
        Ok(())
    }

    /// Adds to `sums` the sum over `n` rows of `dout`, or of `dout * x * rstd` where there are
    /// these.
    pub(crate) fn add_column_sums(
        &self,
        turn: &Ready<'_>,
        [n, d]: [usize; 2],
        dout: Address<Computed>,
        normed: Option<(Address<Computed>, Address<f32>)>,
        sums: Address<f32>,
    ) -> Result<()> {
        let slices = n.clamp(1, 128);
        let partials = self.scratch(turn, "column partials", slices * d * 4)?;
        let (x, rstd) = normed.unwrap_or((Address::NULL, Address::NULL));
        let grid = Grid::of((d.div_ceil(128), slices, 1), 128);
        self.launch_box(turn, COLUMN_PARTIALS, grid, (n, d, dout, x, rstd, partials))?;
        self.launch(turn, COLUMN_SUMS, d.div_ceil(128), 128, (d, slices, partials, sums))
    }
}
