//! The kernels, loaded, and how they are launched.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use catamount_model::{Error, Result};
use cudarc::driver::{result, sys};

use crate::compile::{Compiled, compile_all};
use crate::device::{Device, Explain};

/// A source file and what it holds.
pub(crate) struct Program {
    pub name: &'static str,
    pub source: &'static str,
    /// Whether it is written for bf16 tensor cores only.
    pub tensor_cores: bool,
    /// Kernels, each with the shared memory it asks for at launch.
    kernels: &'static [(&'static CStr, usize)],
}

/// Bytes of a tile of 64 rows of `dim` bf16 numbers.
const fn tile(dim: usize) -> usize {
    64 * dim * 2
}

/// Bytes of shared memory of the kernels that take more than a fixed amount.
pub(crate) const fn attention_shared(dim: usize) -> usize {
    5 * tile(dim)
}
pub(crate) const fn query_gradient_shared(dim: usize) -> usize {
    6 * tile(dim)
}
pub(crate) const fn key_value_gradient_shared(dim: usize) -> usize {
    6 * tile(dim) + 4 * 64 * 4
}
pub(crate) const fn lora_gradient_shared(tiles: usize) -> usize {
    4 * 16 * tiles * 66 * 4
}

macro_rules! program {
    ($name:literal, $tensor_cores:literal, [$(($kernel:literal, $shared:expr)),* $(,)?]) => {
        Program {
            name: $name,
            source: include_str!(concat!("kernels/", $name, ".cu")),
            tensor_cores: $tensor_cores,
            kernels: &[$(($kernel, $shared)),*],
        }
    };
}

pub(crate) const PROGRAMS: &[Program] = &[
    program!(
        "elementwise",
        false,
        [
            (c"to_bf16", 0),
            (c"to_f32", 0),
            (c"add", 0),
            (c"randomize", 0),
            (c"embed", 0),
            (c"embed_backward", 0),
            (c"swiglu", 0),
            (c"swiglu_backward", 0),
            (c"rotate_rows", 0),
            (c"gather", 0),
            (c"scatter", 0),
            (c"cache_write", 0),
            (c"dropout", 0),
        ]
    ),
    program!(
        "norm",
        false,
        [
            (c"rms_norm", 0),
            (c"add_rms_norm", 0),
            (c"rms_norm_backward", 0),
            (c"column_partials", 0),
            (c"column_sums", 0),
        ]
    ),
    program!("head", false, [(c"head_scores", 0), (c"head_gradient", 0)]),
    program!(
        "optimizer",
        false,
        [(c"adamw", 0), (c"clear", 0), (c"sum_of_squares", 0), (c"sum_partials", 0)]
    ),
    program!("sample", false, [(c"sample", 0)]),
    program!(
        "plain_attention",
        false,
        [
            (c"plain_attention", 0),
            (c"plain_query_gradient", 0),
            (c"plain_key_value_gradient", 0),
            (c"plain_cache_attention", 0),
        ]
    ),
    program!(
        "attention",
        true,
        [(c"attention_64", attention_shared(64)), (c"attention_128", attention_shared(128))]
    ),
    program!(
        "attention_backward",
        true,
        [
            (c"query_gradient_64", query_gradient_shared(64)),
            (c"query_gradient_128", query_gradient_shared(128)),
            (c"key_value_gradient_64", key_value_gradient_shared(64)),
            (c"key_value_gradient_128", key_value_gradient_shared(128)),
            (c"sum_key_value_parts", 0),
        ]
    ),
    program!("decode", true, [(c"decode_64", 0), (c"decode_128", 0)]),
    program!(
        "lora",
        true,
        [
            (c"transpose_parts", 0),
            (c"lora_inner_2", 0),
            (c"lora_inner_4", 0),
            (c"lora_inner_6", 0),
            (c"lora_inner_8", 0),
            (c"lora_inner_drop_2", 0),
            (c"lora_inner_drop_4", 0),
            (c"lora_inner_drop_6", 0),
            (c"lora_inner_drop_8", 0),
            (c"lora_outer_1", 0),
            (c"lora_outer_2", 0),
            (c"lora_outer_3", 0),
            (c"lora_outer_6", 0),
            (c"lora_outer_drop_1", 0),
            (c"lora_outer_drop_2", 0),
            (c"lora_outer_drop_3", 0),
            (c"lora_outer_drop_6", 0),
            (c"lora_gradient_1", lora_gradient_shared(1)),
            (c"lora_gradient_2", lora_gradient_shared(2)),
            (c"lora_gradient_3", lora_gradient_shared(3)),
            (c"lora_gradient_drop_1", lora_gradient_shared(1)),
            (c"lora_gradient_drop_2", lora_gradient_shared(2)),
            (c"lora_gradient_drop_3", lora_gradient_shared(3)),
        ]
    ),
];

/// How a kernel is spread out.
#[derive(Clone, Copy)]
pub(crate) struct Grid {
    pub blocks: (usize, usize, usize),
    /// Threads of a block.
    pub threads: usize,
    /// Bytes of shared memory of a block, beyond what the kernel declares.
    pub shared: usize,
}

impl Grid {
    pub fn row(blocks: usize, threads: usize) -> Self {
        Grid::of((blocks, 1, 1), threads)
    }

    pub fn of(blocks: (usize, usize, usize), threads: usize) -> Self {
        Grid { blocks, threads, shared: 0 }
    }

    pub fn with_shared(self, shared: usize) -> Self {
        Grid { shared, ..self }
    }
}

/// One kernel argument: large enough for the largest, a list of column ranges passed by value.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct Arg([u64; 4]);

impl From<u64> for Arg {
    fn from(x: u64) -> Self {
        Arg([x, 0, 0, 0])
    }
}
impl From<usize> for Arg {
    /// As a C `int`; sizes are checked to fit when the operation is called.
    fn from(x: usize) -> Self {
        Arg([x as u32 as u64, 0, 0, 0])
    }
}
impl From<f32> for Arg {
    fn from(x: f32) -> Self {
        Arg([u64::from(x.to_bits()), 0, 0, 0])
    }
}
impl From<[i32; 8]> for Arg {
    fn from(x: [i32; 8]) -> Self {
        Arg(std::array::from_fn(|i| {
            u64::from(x[2 * i] as u32) | u64::from(x[2 * i + 1] as u32) << 32
        }))
    }
}

/// Builds the list of arguments of a launch: addresses and element counts as `u64`, sizes as
/// `usize`, numbers as `f32`.
macro_rules! args {
    ($($x:expr),* $(,)?) => { &[$($crate::kernels::Arg::from($x)),*] };
}
pub(crate) use args;

pub(crate) struct Kernels {
    functions: HashMap<&'static CStr, sys::CUfunction>,
}

// SAFETY: functions are handles of the driver, usable from any thread.
unsafe impl Send for Kernels {}
// SAFETY: as above.
unsafe impl Sync for Kernels {}

impl Kernels {
    /// Compiles what is not in the cache, and loads everything.
    pub fn load(device: &Device, bf16: bool) -> Result<Self> {
        let mut functions = HashMap::new();
        for Compiled { name, image, .. } in compile_all(device.capability, bf16)? {
            let program = PROGRAMS.iter().find(|p| p.name == name).expect("compiled from the list");
            // SAFETY: the image is a cubin or NUL-terminated PTX; modules stay loaded as long as
            // the context.
            unsafe {
                let module = result::module::load_data(image.as_ptr().cast::<c_void>())
                    .explain(&format!("loading {name}.cu"))?;
                for (kernel, shared) in program.kernels {
                    let function = result::module::get_function(module, (*kernel).to_owned())
                        .explain(&format!("finding {} in {name}.cu", kernel.to_string_lossy()))?;
                    if *shared > 0 {
                        use sys::CUfunction_attribute as Attribute;
                        let attribute = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
                        result::function::set_function_attribute(
                            function,
                            attribute,
                            *shared as i32,
                        )
                        .explain(&format!(
                            "giving {} its shared memory",
                            kernel.to_string_lossy()
                        ))?;
                    }
                    functions.insert(*kernel, function);
                }
            }
        }
        Ok(Kernels { functions })
    }

    /// Queues one kernel. An empty grid queues nothing.
    pub fn launch(
        &self,
        device: &Device,
        kernel: &'static CStr,
        Grid { blocks: grid, threads, shared }: Grid,
        args: &[Arg],
    ) -> Result<()> {
        if grid.0 * grid.1 * grid.2 == 0 {
            return Ok(());
        }
        if grid.0 > i32::MAX as usize || grid.1 > 65_535 || grid.2 > 65_535 {
            let name = kernel.to_string_lossy();
            return Err(Error::Input(format!(
                "a grid of {grid:?} blocks for {name} is too large; use smaller batches"
            )));
        }
        let function = *self
            .functions
            .get(kernel)
            .ok_or_else(|| Error::Device(format!("no kernel {kernel:?} in this precision")))?;
        let mut pointers: [*mut c_void; 24] = [std::ptr::null_mut(); 24];
        for (pointer, arg) in pointers.iter_mut().zip(args) {
            *pointer = (&raw const arg.0).cast_mut().cast();
        }
        // SAFETY: the callers in this crate pass what the kernel declares, with buffers checked to
        // be long enough.
        unsafe {
            result::launch_kernel(
                function,
                (grid.0 as u32, grid.1 as u32, grid.2 as u32),
                (threads as u32, 1, 1),
                shared as u32,
                device.current(),
                &mut pointers[..args.len()],
            )
        }
        .explain(&format!("launching {}", kernel.to_string_lossy()))
    }
}
