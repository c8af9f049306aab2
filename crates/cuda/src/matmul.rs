//! Matrix products by cuBLASLt. Which algorithm suits a shape is asked once and remembered.

use std::collections::HashMap;
use std::ffi::c_void;

use catamount_model::{Error, Result};
use cudarc::cublaslt::{result, sys};

use crate::device::Device;
use crate::tensor::Format;

/// A row-major matrix in device memory, as one operand of a product.
#[derive(Clone, Copy)]
pub(crate) struct Matrix {
    pub pointer: u64,
    pub format: Format,
    /// Elements from one row to the next.
    pub stride: usize,
    /// Whether the product takes it transposed.
    pub transposed: bool,
}

impl Matrix {
    pub fn new((pointer, format): (u64, Format), stride: usize) -> Self {
        Matrix { pointer, format, stride, transposed: false }
    }

    pub fn transposed(self) -> Self {
        Matrix { transposed: !self.transposed, ..self }
    }

    /// The matrix that starts `elements` further on.
    pub fn skip(self, elements: usize) -> Self {
        Matrix { pointer: self.pointer + (elements * self.format.bytes()) as u64, ..self }
    }
}

/// `out = alpha * x y + beta * out (+ bias)`, where x is `[rows, inner]` and y `[inner, columns]` after transposition.
#[derive(Clone, Copy)]
pub(crate) struct Product {
    pub rows: usize,
    pub columns: usize,
    pub inner: usize,
    pub x: Matrix,
    pub y: Matrix,
    pub out: Matrix,
    pub alpha: f32,
    pub beta: f32,
    /// A row that is added to every row of the result, in the format of `y`.
    pub bias: Option<u64>,
}

#[derive(PartialEq, Eq, Hash)]
struct Shape {
    sizes: [usize; 3],
    operands: [(Format, usize, bool, u32); 3],
    bias: bool,
}

struct Plan {
    description: sys::cublasLtMatmulDesc_t,
    layouts: [sys::cublasLtMatrixLayout_t; 3],
    algorithm: sys::cublasLtMatmulAlgo_t,
}

impl Drop for Plan {
    fn drop(&mut self) {
        // SAFETY: created by `plan`, destroyed once.
        unsafe {
            let _ = result::destroy_matmul_desc(self.description);
            for layout in self.layouts {
                let _ = result::destroy_matrix_layout(layout);
            }
        }
    }
}

pub(crate) struct Matmul {
    handle: sys::cublasLtHandle_t,
    plans: HashMap<Shape, Plan>,
}

// SAFETY: the handle may be used from any thread, one at a time: the owner is behind a lock.
unsafe impl Send for Matmul {}

/// Scratch memory that algorithms may use.
pub(crate) const WORKSPACE: usize = 64 << 20;

/// Plans kept before starting over: packed batches have many different lengths.
const PLANS: usize = 8192;

impl Matmul {
    pub fn new() -> Result<Self> {
        // SAFETY: only asks whether the library can be loaded.
        if !unsafe { sys::is_culib_present() } {
            return Err(Error::Device(
                "cuBLASLt (libcublasLt.so) is not on the loader's path; install the CUDA toolkit 12 or 13, or \
                 `pip install nvidia-cublas` and put its lib folder on LD_LIBRARY_PATH"
                    .into(),
            ));
        }
        let handle = result::create_handle().map_err(|e| Error::Device(format!("starting cuBLASLt: {:?}", e.0)))?;
        Ok(Matmul { handle, plans: HashMap::new() })
    }

    pub fn run(&mut self, device: &Device, workspace: u64, p: &Product) -> Result<()> {
        if p.rows == 0 || p.columns == 0 {
            return Ok(());
        }
        let operand = |m: &Matrix| (m.format, m.stride, m.transposed, m.pointer.trailing_zeros().min(8));
        let shape = Shape {
            sizes: [p.rows, p.columns, p.inner],
            operands: [operand(&p.x), operand(&p.y), operand(&p.out)],
            bias: p.bias.is_some(),
        };
        if self.plans.len() >= PLANS {
            self.plans.clear();
        }
        let failed = |what: &str, e: result::CublasError| {
            let (rows, columns, inner) = (p.rows, p.columns, p.inner);
            Error::Device(format!("cuBLASLt, {what} a product of [{rows}, {inner}] and [{inner}, {columns}]: {:?}", e.0))
        };
        if !self.plans.contains_key(&shape) {
            // SAFETY: all descriptors are created and destroyed there.
            let plan = unsafe { self.plan(p) }.map_err(|e| failed("planning", e))?;
            self.plans.insert(shape, plan);
            return self.run(device, workspace, p);
        }
        let plan = &self.plans[&shape];
        // SAFETY: the operands were checked by the caller to lie inside their buffers; the plan matches their layout.
        unsafe {
            if let Some(bias) = p.bias {
                set(plan.description, sys::cublasLtMatmulDescAttributes_t::CUBLASLT_MATMUL_DESC_BIAS_POINTER, &bias)
                    .map_err(|e| failed("setting the bias of", e))?;
            }
            let [y, x, out] = plan.layouts;
            let at = |m: &Matrix| m.pointer as *const c_void;
            result::matmul(
                self.handle,
                plan.description,
                (&raw const p.alpha).cast(),
                (&raw const p.beta).cast(),
                at(&p.y),
                y,
                at(&p.x),
                x,
                at(&p.out),
                out,
                p.out.pointer as *mut c_void,
                out,
                &raw const plan.algorithm,
                workspace as *mut c_void,
                WORKSPACE,
                device.stream.cast(),
            )
            .map_err(|e| failed("queueing", e))
        }
    }

    /// cuBLASLt counts by columns: a row-major matrix is its transpose there, so it is asked for outᵀ = yᵀ xᵀ.
    unsafe fn plan(&self, p: &Product) -> std::result::Result<Plan, result::CublasError> {
        use sys::cublasLtMatmulDescAttributes_t as D;
        use sys::cublasLtMatmulPreferenceAttributes_t as P;
        let data = |f: Format| match f {
            Format::F32 => sys::cudaDataType_t::CUDA_R_32F,
            Format::Bf16 => sys::cudaDataType_t::CUDA_R_16BF,
        };
        let description =
            result::create_matmul_desc(sys::cublasComputeType_t::CUBLAS_COMPUTE_32F, sys::cudaDataType_t::CUDA_R_32F)?;
        let layout = |m: &Matrix, rows: usize, columns: usize| {
            let (rows, columns) = if m.transposed { (columns, rows) } else { (rows, columns) };
            result::create_matrix_layout(data(m.format), columns as u64, rows as u64, m.stride as i64)
        };
        let layouts = [layout(&p.y, p.inner, p.columns)?, layout(&p.x, p.rows, p.inner)?, layout(&p.out, p.rows, p.columns)?];
        let mut plan = Plan { description, layouts, algorithm: sys::cublasLtMatmulAlgo_t { data: [0; 8] } };
        // SAFETY: every attribute gets a value of its own type, and descriptors are alive.
        unsafe {
            set(description, D::CUBLASLT_MATMUL_DESC_TRANSA, &i32::from(p.y.transposed))?;
            set(description, D::CUBLASLT_MATMUL_DESC_TRANSB, &i32::from(p.x.transposed))?;
            if p.bias.is_some() {
                let epilogue = sys::cublasLtEpilogue_t::CUBLASLT_EPILOGUE_BIAS;
                set(description, D::CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue)?;
                set(description, D::CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &data(p.y.format))?;
            }
            let preference = result::create_matmul_pref()?;
            let prefer = |attribute, value: &dyn Bytes| {
                result::set_matmul_pref_attribute(preference, attribute, value.pointer(), value.size())
            };
            let alignment = |m: &Matrix| 1u32 << m.pointer.trailing_zeros().min(8);
            let found = prefer(P::CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &WORKSPACE)
                .and_then(|()| prefer(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, &alignment(&p.y)))
                .and_then(|()| prefer(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, &alignment(&p.x)))
                .and_then(|()| prefer(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, &alignment(&p.out)))
                .and_then(|()| prefer(P::CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, &alignment(&p.out)))
                .and_then(|()| {
                    let [y, x, out] = layouts;
                    result::get_matmul_algo_heuristic(self.handle, description, y, x, out, out, preference)
                });
            let _ = result::destroy_matmul_pref(preference);
            plan.algorithm = found?.algo;
        }
        Ok(plan)
    }
}

impl Drop for Matmul {
    fn drop(&mut self) {
        self.plans.clear();
        // SAFETY: created by `new`, destroyed once.
        let _ = unsafe { result::destroy_handle(self.handle) };
    }
}

unsafe fn set<V>(
    description: sys::cublasLtMatmulDesc_t,
    attribute: sys::cublasLtMatmulDescAttributes_t,
    value: &V,
) -> std::result::Result<(), result::CublasError> {
    // SAFETY: the library copies the value.
    unsafe { result::set_matmul_desc_attribute(description, attribute, std::ptr::from_ref(value).cast(), size_of::<V>()) }
}

/// A plain value whose bytes the library copies.
trait Bytes {
    fn pointer(&self) -> *const c_void;
    fn size(&self) -> usize;
}

impl<V: Copy> Bytes for V {
    fn pointer(&self) -> *const c_void {
        std::ptr::from_ref(self).cast()
    }
    fn size(&self) -> usize {
        size_of::<V>()
    }
}
