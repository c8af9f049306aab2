//! How cuBLASLt is told about a product, and the algorithms it offers for it.

use std::ffi::c_void;

use cudarc::cublaslt::{result, sys};
use result::CublasError;

use crate::matmul::{Matrix, Product, WORKSPACE};
use crate::tensor::Format;

/// What an algorithm's fitness depends on.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Shape {
    sizes: [usize; 3],
    /// Format, stride, transposed, alignment as a power of two.
    operands: [(Format, usize, bool, u32); 3],
    bias: bool,
    scaled: bool,
    fast: bool,
}

impl Shape {
    pub fn of(p: &Product) -> Self {
        let operand = |m: &Matrix| {
            (m.format, m.stride, m.transposed, m.address.raw().trailing_zeros().min(8))
        };
        let operands = [operand(&p.x), operand(&p.y), operand(&p.out)];
        Shape {
            sizes: [p.rows, p.columns, p.inner],
            operands,
            bias: p.bias.is_some(),
            scaled: p.is_scaled(),
            fast: p.fast,
        }
    }

    pub fn is_scaled(&self) -> bool {
        self.scaled
    }

    /// The name under which choices are noted. Sizes that differ little share one: packed batches
    /// have many lengths.
    pub fn bucket(&self) -> String {
        let near = |size: usize| {
            size.next_multiple_of(match size {
                0..=64 => 16,
                65..=512 => 64,
                _ => 256,
            })
        };
        let [rows, columns, inner] = self.sizes.map(near);
        let operand = |(format, _, transposed, alignment): (Format, usize, bool, u32)| {
            format!(
                "{}{}{alignment}",
                match format {
                    Format::F32 => 'f',
                    Format::Bf16 => 'b',
                    Format::Fp8 => 'e',
                },
                if transposed { 't' } else { 'n' }
            )
        };
        let operands = self.operands.map(operand).join("-");
        let marks = [(self.bias, "-bias"), (self.scaled, "-scaled"), (self.fast, "-fast")];
        let marks: String = marks.iter().filter(|(has, _)| *has).map(|(_, mark)| *mark).collect();
        format!("{rows}x{columns}x{inner}-{operands}{marks}")
    }
}

/// Everything a call needs besides the addresses.
pub(crate) struct Plan {
    pub description: sys::cublasLtMatmulDesc_t,
    pub layouts: [sys::cublasLtMatrixLayout_t; 3],
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: created by `new`, destroyed once.
        unsafe {
            let _ = result::destroy_matmul_desc(self.description);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

fn data(format: Format) -> sys::cudaDataType_t {
    match format {
        Format::F32 => sys::cudaDataType_t::CUDA_R_32F,
        Format::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
        Format::Fp8 => sys::cudaDataType_t::CUDA_R_8F_E4M3,
    }
}

impl Plan {
    /// cuBLASLt counts by columns: a row-major matrix is its transpose there, so it is asked for
    /// outᵀ = yᵀ xᵀ.
    pub fn new(p: &Product) -> Result<Self, CublasError> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        let description = result::create_matmul_desc(
            sys::cublasComputeType_t::CUBLAS_COMPUTE_32F,
            sys::cudaDataType_t::CUDA_R_32F,
        )?;
        let layout = |m: &Matrix, rows: usize, columns: usize| {
            let (rows, columns) = if m.transposed { (columns, rows) } else { (rows, columns) };
            result::create_matrix_layout(
                data(m.format),
                columns as u64,
                rows as u64,
                m.stride as i64,
            )
        };
        let layouts = [
            layout(&p.y, p.inner, p.columns)?,
            layout(&p.x, p.rows, p.inner)?,
            layout(&p.out, p.rows, p.columns)?,
        ];
        let plan = Plan { description, layouts };
        // SAFETY: every attribute gets a value of its own type, and descriptors are alive.
        unsafe {
            plan.set(D::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(p.y.transposed))?;
            plan.set(D::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(p.x.transposed))?;
            if p.bias.is_some() {
                let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                plan.set(D::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
                let format = if p.y.format == Format::Fp8 { Format::Bf16 } else { p.y.format };
                plan.set(D::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &data(format))?;
            }
            if p.is_scaled() {
                use sys::cublasLtMatmulMatrixScale_t as S;
                let mode = S::CUBLASLT_MATMUL_MATRIX_SCALE_OUTER_VEC_32F;
                plan.set(D::CUBLASLT_MATMUL_DESC_A_SCALE_MODE, &mode)?;
                plan.set(D::CUBLASLT_MATMUL_DESC_B_SCALE_MODE, &mode)?;
            }
            if p.fast {
                plan.set(D::CUBLASLT_MATMUL_DESC_FAST_ACCUM, &1i8)?;
            }
            plan.point_to_scales(p)?;
        }
        Ok(plan)
    }

    /// Says where a product's scales are, if it has any.
    ///
    /// # Safety
    /// The description must be of a product of this kind.
    pub unsafe fn point_to_scales(&self, p: &Product) -> Result<(), CublasError> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        if p.is_scaled() {
            // SAFETY: both attributes are addresses.
            unsafe {
                self.set(D::CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &p.y.scales.raw())?;
                self.set(D::CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &p.x.scales.raw())?;
            }
        }
        Ok(())
    }

    /// Sets an attribute of the description.
    ///
    /// # Safety
    /// The value must be of the type the attribute has.
    pub unsafe fn set<V>(
        &self,
        attribute: sys::cublasLtMatmulDescAttributes_t,
        value: &V,
    ) -> Result<(), CublasError> {
        // SAFETY: the library copies the value.
        unsafe {
            result::set_matmul_desc_attribute(
                self.description,
                attribute,
                std::ptr::from_ref(value).cast(),
                size_of::<V>(),
            )
        }
    }

    /// Whether an algorithm chosen for a similar product, or by an earlier process, can compute
    /// this one.
    pub fn accepts(
        &self,
        handle: sys::cublasLtHandle_t,
        algorithm: &sys::cublasLtMatmulAlgo_t,
    ) -> bool {
        let [y, x, out] = self.layouts;
        let mut found = std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed();
        // SAFETY: all descriptors are alive, and the library fills the result if it succeeds.
        unsafe {
            let status = sys::cublasLtMatmulAlgoCheck(
                handle,
                self.description,
                y,
                x,
                out,
                out,
                algorithm,
                found.as_mut_ptr(),
            );
            status == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS
                && found.assume_init().workspaceSize <= WORKSPACE
        }
    }

    /// Up to `count` algorithms, at least one, in the order the library would try them.
    pub fn candidates(
        &self,
        handle: sys::cublasLtHandle_t,
        p: &Product,
        count: usize,
    ) -> Result<Vec<sys::cublasLtMatmulAlgo_t>, CublasError> {
        use sys::cublasLtMatmulPreferenceAttributes_t as P;
        let preference = result::create_matmul_pref()?;
        let prefer = |attribute, value: *const c_void, size: usize| {
            // SAFETY: the library copies the value.
            unsafe { result::set_matmul_pref_attribute(preference, attribute, value, size) }
        };
        let alignment = |m: &Matrix| 1u32 << m.address.raw().trailing_zeros().min(8);
        let number = |attribute, value: u32| prefer(attribute, (&raw const value).cast(), 4);
        // Slices of an inner product are added in f32 and in a fixed order, or not made.
        let reductions =
            sys::cublasLtReductionScheme_t::CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE as u32;
        let most = WORKSPACE;
        let asked = prefer(
            P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
            (&raw const most).cast(),
            size_of::<usize>(),
        )
        .and_then(|()| number(P::CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, reductions))
        .and_then(|()| number(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment(&p.y)))
        .and_then(|()| number(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment(&p.x)))
        .and_then(|()| number(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, alignment(&p.out)))
        .and_then(|()| number(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, alignment(&p.out)));
        let mut found =
            vec![std::mem::MaybeUninit::<sys::cublasLtMatmulHeuristicResult_t>::zeroed(); count];
        let mut returned = 0;
        let [y, x, out] = self.layouts;
        // SAFETY: there is room for `count` results, of which the library fills `returned`.
        let asked = asked.and_then(|()| unsafe {
            sys::cublasLtMatmulAlgoGetHeuristic(
                handle,
                self.description,
                y,
                x,
                out,
                out,
                preference,
                count as i32,
                found.as_mut_ptr().cast(),
                &raw mut returned,
            )
            .result()
        });
        // SAFETY: created above, destroyed once.
        let _ = unsafe { result::destroy_matmul_pref(preference) };
        asked?;
        // SAFETY: filled by the library.
        let found = found.iter().take(returned as usize).map(|f| unsafe { f.assume_init() });
        let usable: Vec<_> = found
            .filter(|f| f.state == sys::cublasStatus_t::CUBLAS_STATUS_SUCCESS)
            .map(|f| f.algo)
            .collect();
        if usable.is_empty() {
            Err(CublasError(sys::cublasStatus_t::CUBLAS_STATUS_NOT_SUPPORTED))
        } else {
            Ok(usable)
        }
    }
}
