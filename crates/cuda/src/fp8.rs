//! Products of a frozen base in fp8 (e4m3). A matrix is rounded once, row by row, and its transpose
//! for itself: the gradient of the input sums over rows, where a scale for each would not come out
//! of the sum. What it multiplies is rounded before every product, a token at a time.
//!
//! cuBLASLt multiplies the result by both operands' scales on Hopper, as do our kernels for few
//! rows (`few.rs`). Elsewhere it is left as it is, and a kernel does that.

use catamount_model::{Affine, Error, Result, Shape};

use crate::address::{Address, Computed};
use crate::cuda::{Cuda, Precision};
use crate::device::Buffer;
use crate::few::{CUTS, Cut};
use crate::kernels::{APPLY_SCALES, COLUMNS_TO_FP8, HOPPER, ROWS_TO_FP8};
use crate::launch::Grid;
use crate::matmul::{Matrix, Product};
use crate::tensor::{CudaTensor, Format};
use crate::turn::Ready;

/// The first GPUs that multiply numbers of eight bits.
const ADA: (i32, i32) = (8, 9);

/// What belongs to a matrix in fp8, whose own numbers are where a tensor has them.
pub(crate) struct Fp8 {
    /// What each of its rows is multiplied by.
    scales: Buffer,
    /// The transpose, rounded by its own rows, and their scales.
    transposed: Buffer,
    transposed_scales: Buffer,
}

/// Which way a map is gone through.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    Forward,
    Backward,
}

impl Cuda {
    pub(crate) fn can_fp8(&self) -> Result<()> {
        let (device, capability) = (&self.device, self.device.capability);
        if capability < ADA {
            return Err(Error::Device(format!(
                "{} has compute capability {}.{}; products in fp8 need 8.9 (Ada) or newer",
                device.name, capability.0, capability.1
            )));
        }
        if self.precision != Precision::Bf16 {
            return Err(Error::Device(
                "products in fp8 go with bf16, and this device was opened in f32".into(),
            ));
        }
        Ok(())
    }

    pub(crate) fn matrix_to_fp8(&self, shape: Shape, weight: &mut CudaTensor) -> Result<()> {
        self.can_fp8()?;
        let (turn, device) = (self.turn()?, &self.device);
        let Shape { outputs, inputs } = shape;
        if !outputs.is_multiple_of(16) || !inputs.is_multiple_of(16) {
            return Err(Error::Config(format!(
                "products in fp8 need matrices whose sides are multiples of 16; one is \
                 [{outputs}, {inputs}]"
            )));
        }
        if weight.working.is_some() {
            return Err(Error::Input("a matrix that is trained cannot be kept in fp8".into()));
        }
        let from = self.read(weight, outputs * inputs)?;
        let new = |bytes| Buffer::new(device, bytes);
        let numbers = new(outputs * inputs)?;
        let fp8 = Fp8 {
            scales: new(4 * outputs)?,
            transposed: new(outputs * inputs)?,
            transposed_scales: new(4 * inputs)?,
        };
        let to = numbers.address();
        self.rows_to_fp8(&turn, [outputs, inputs], from, to, fp8.scales.address())?;
        let (to, scales) = (fp8.transposed.address(), fp8.transposed_scales.address());
        let list = (outputs, inputs, from, to, scales);
        self.launch(&turn, COLUMNS_TO_FP8, inputs.div_ceil(32), 256, list)?;
        // The numbers that it was made of are given back.
        weight.version += 1;
        *weight = CudaTensor {
            len: weight.len,
            format: Format::Fp8,
            numbers,
            working: None,
            fp8: Some(fp8),
            version: weight.version,
        };
        Ok(())
    }

    /// A map's product with `n` rows of `x`, in fp8.
    pub(crate) fn fp8_product(
        &self,
        turn: &Ready<'_>,
        n: usize,
        map: Affine<'_, CudaTensor>,
        way: Way,
        x: Address<Computed>,
        out: Matrix,
    ) -> Result<Product> {
        let (Format::Fp8, Some(fp8)) = (map.weight.format, &map.weight.fp8) else {
            return Err(Error::Input("a product in fp8 with a matrix that is not".into()));
        };
        if out.format != Format::Bf16 {
            return Err(Error::Input("products in fp8 give bf16".into()));
        }
        let Shape { outputs, inputs } = map.shape;
        crate::cuda::long_enough(map.weight.len, outputs * inputs)?;
        let (columns, inner, numbers, scales) = match way {
            Way::Forward => (outputs, inputs, &map.weight.numbers, &fp8.scales),
            Way::Backward => (inputs, outputs, &fp8.transposed, &fp8.transposed_scales),
        };
        let rounded = self.scratch(turn, "fp8 rows", n * inner)?;
        let row_scales = self.scratch(turn, "fp8 scales", 4 * n)?;
        self.rows_to_fp8(turn, [n, inner], x, rounded, row_scales)?;
        let x = Matrix::new((rounded, Format::Fp8), inner).scaled(row_scales);
        let weight = Matrix::new((numbers.address::<u8>(), Format::Fp8), inner)
            .transposed()
            .scaled(scales.address());
        let product = Product::of([n, columns, inner], x, weight, out);
        // Gradients are small differences: their sums are carried in full.
        Ok(Product { fast: way == Way::Forward, ..product })
    }

    fn rows_to_fp8(
        &self,
        turn: &Ready<'_>,
        [rows, width]: [usize; 2],
        x: Address<Computed>,
        to: Address<u8>,
        scales: Address<f32>,
    ) -> Result<()> {
        let threads = (width / 8).next_multiple_of(32).clamp(32, 1024);
        self.launch(turn, ROWS_TO_FP8, rows, threads, (width, x, to, scales))
    }

    /// The product without scales, to a place of its own, if the library does not apply them.
    pub(crate) fn without_scales(
        &self,
        turn: &Ready<'_>,
        product: &Product,
    ) -> Result<Option<Product>> {
        if !product.is_scaled() || turn.state().matmul.applies_scales(self.tools(), product) {
            return Ok(None);
        }
        let (x, y) = (product.x.scaled(Address::NULL), product.y.scaled(Address::NULL));
        let raw: Address<u8> =
            self.scratch(turn, "fp8 unscaled", 2 * product.rows * product.columns)?;
        let out = Matrix::new((raw, Format::Bf16), product.columns);
        Ok(Some(Product { x, y, out, beta: 0.0, bias: None, ..*product }))
    }

    /// Makes of what [`Cuda::without_scales`] gave what the product should.
    pub(crate) fn apply_scales(
        &self,
        turn: &Ready<'_>,
        raw: &Product,
        product: &Product,
    ) -> Result<()> {
        let (columns, bias) = (product.columns, product.bias.unwrap_or(Address::NULL));
        let grid = Grid::of((product.rows, columns.div_ceil(8 * 256), 1), 256);
        let (rows, outputs) = (product.x.scales, product.y.scales);
        let to = product.out.address;
        let list = (columns, raw.out.address, rows, outputs, bias, product.beta, to);
        self.launch_box(turn, APPLY_SCALES, grid, list)
    }

    /// How the products in fp8 that were met are scaled, a line for each shape.
    pub fn fp8_scaling(&self) -> Result<Vec<String>> {
        Ok(self.turn()?.state().matmul.scaling())
    }

    /// Computes every product of few rows in one of the ways that our kernels know, whichever is
    /// the fastest, from now on. They are numbered; tells whether there is this one, on this GPU.
    #[doc(hidden)]
    pub fn try_few(&self, index: usize) -> Result<bool> {
        if index >= CUTS || self.device.capability != HOPPER {
            return Ok(false);
        }
        let turn = self.turn()?;
        let matmul = &mut turn.state().matmul;
        matmul.forget_plans();
        matmul.tried = Some(Cut::any(index));
        Ok(true)
    }

    /// Applies the scales of products in fp8 as on a GPU whose library does not, from now on.
    #[doc(hidden)]
    pub fn scale_afterwards(&self) -> Result<()> {
        self.turn()?.state().matmul.apart = true;
        Ok(())
    }
}
