//! The kernels, loaded, and how they are launched.

use std::collections::HashMap;
use std::ffi::{CStr, c_void};

use catamount_model::{Error, Result};
use cudarc::driver::{result, sys};
use half::bf16;

use crate::address::{Address, Computed, Four, Slice, Stretch, Tensors};
use crate::compile::{Compiled, compile_all};
use crate::device::{Device, Explain};
use crate::launch::{Arg, Grid, Kernel, MOST, Parts, Rates};

/// A source file and what it holds.
pub(crate) struct Program {
    pub name: &'static str,
    pub source: &'static str,
    pub needs: Needs,
    kernels: &'static [Declared],
}

/// What a program is written for.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Any GPU, in either precision.
    Nothing,
    /// Tensor cores, and activations in bf16.
    TensorCores,
    /// What Hopper has and no other.
    Hopper,
}

impl Needs {
    pub fn met(self, capability: (i32, i32), bf16: bool) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::TensorCores => bf16,
            Needs::Hopper => bf16 && capability == HOPPER,
        }
    }
}

/// Hopper's compute capability.
pub(crate) const HOPPER: (i32, i32) = (9, 0);

/// A kernel of a program.
struct Declared {
    name: &'static CStr,
    /// The shared memory it asks for at launch.
    shared: usize,
    /// Its parameters' types, as the sources should have them.
    #[cfg(test)]
    types: &'static [&'static str],
}

/// Activations or weights.
type At = Address<Computed>;

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
/// Stages of 128 bytes of each line of 64 rows and so many tiles of 64 outputs, at a multiple of
/// 1,024 bytes.
pub(crate) const fn few_shared(tiles: usize, slots: usize) -> usize {
    (tiles + 1) * 64 * 128 * slots + 1024
}

/// Declares the kernels of every source file: a constant for each, with the types of its
/// parameters, and the list that they are loaded from. A kernel of which there are several takes
/// the same parameters in each.
macro_rules! programs {
    ($($program:ident $needs:ident {
        $($constant:ident = $kernel:literal $(shared $shared:expr)?, $parameters:ty;)*
    })*) => {
        $($(pub(crate) const $constant: Kernel<$parameters> = Kernel::new($kernel);)*)*

        pub(crate) const PROGRAMS: &[Program] = &[$(Program {
            name: stringify!($program),
            source: include_str!(concat!("kernels/", stringify!($program), ".cu")),
            needs: Needs::$needs,
            kernels: &[$(Declared {
                name: $kernel,
                shared: 0 $(+ $shared)?,
                #[cfg(test)]
                types: <$parameters as crate::launch::Parameters>::TYPES,
            }),*],
        }),*];
    };
}

/// Wide to narrow, narrow to wide, and the gradient of a narrow matrix; see lora.cu.
pub(crate) type Inner = (
    usize,
    Parts,
    usize,
    At,
    usize,
    At,
    At,
    usize,
    f32,
    u64,
    f32,
    usize,
    Address<f32>,
    Address<u32>,
);
pub(crate) type Outer =
    (usize, Parts, usize, At, usize, At, usize, At, usize, f32, u64, f32, usize);
pub(crate) type Gradient =
    (usize, Parts, usize, At, usize, At, usize, Address<f32>, usize, usize, f32, u64, f32);

/// A product of few rows; see few.cu.
pub(crate) type Few =
    (usize, usize, usize, Address<u8>, Address<u8>, Address<f32>, Address<f32>, At, f32, f32, At);

/// Attention; the plain kernels take the heads' width, too.
type Attention = (usize, usize, Address<u32>, At, At, Address<f32>, f32);
type QueryGradient = (usize, usize, Address<u32>, At, At, Address<f32>, At, Address<f32>, At, f32);
type KeyValueGradient =
    (usize, usize, Address<u32>, At, Address<f32>, At, Address<f32>, At, At, f32);
type PlainGradient = (usize, usize, usize, Address<u32>, At, At, Address<f32>, At, At, f32);
type Decode = (usize, usize, usize, At, At, Address<Four>, At, f32);
type Ends = (usize, usize, usize, Address<u32>, At, At, Address<Four>, At, f32);

/// Logits, temperature and top_p; uniforms; scarce tokens (where each row's begin, which, what is
/// left of them, room for their logits and weights); what comes back.
type Sample = (
    usize,
    Address<f32>,
    f32,
    f32,
    Address<f32>,
    Address<u32>,
    Address<u32>,
    Address<f32>,
    Address<f32>,
    Address<f32>,
    Address<u32>,
    Address<f32>,
    Address<f32>,
    Address<f32>,
);

programs! {
    elementwise Nothing {
        TO_BF16 = c"to_bf16", (u64, Address<f32>, Address<bf16>);
        ADD = c"add", (u64, At, At);
        RANDOMIZE = c"randomize", (u64, u64, f32, At);
        EMBED = c"embed", (usize, usize, At, Address<u32>, At);
        EMBED_BACKWARD = c"embed_backward", (usize, usize, usize, At, Address<u32>, Address<f32>);
        SWIGLU = c"swiglu", (usize, At, At, At);
        SWIGLU_BACKWARD = c"swiglu_backward", (usize, At, At, At);
        ROTATE_ROWS = c"rotate_rows",
            (usize, usize, usize, usize, At, At, Address<u32>, Address<f32>, f32, usize, usize,
             Address<u32>, At);
        GATHER = c"gather", (usize, usize, At, Address<u32>, At);
        SCATTER = c"scatter", (usize, usize, At, Address<u32>, At);
        CACHE_WRITE = c"cache_write", (usize, usize, usize, At, Address<u32>, At);
        CACHE_COPY = c"cache_copy", (usize, usize, Address<Four>, At);
        DROPOUT = c"dropout", (u64, u64, f32, usize, At, At);
    }
    norm Nothing {
        RMS_NORM = c"rms_norm", (usize, f32, At, At, Address<f32>, At);
        ADD_RMS_NORM = c"add_rms_norm", (usize, f32, At, At, At, At, At, Address<f32>, At);
        RMS_NORM_BACKWARD = c"rms_norm_backward", (usize, At, At, Address<f32>, At, At);
        COLUMN_PARTIALS = c"column_partials",
            (usize, usize, At, At, Address<f32>, Address<f32>);
        COLUMN_SUMS = c"column_sums", (usize, usize, Address<f32>, Address<f32>);
    }
    head Nothing {
        HEAD_SCORES = c"head_scores",
            (usize, Address<f32>, Address<u32>, Address<f32>, Address<f32>);
        HEAD_GRADIENT = c"head_gradient",
            (usize, Address<f32>, Address<u32>, Address<f32>, Address<f32>);
    }
    optimizer Nothing {
        ADAMW = c"adamw", (Address<Tensors>, Rates);
        CLEAR = c"clear", (Address<Stretch>,);
        SUM_OF_SQUARES = c"sum_of_squares", (Address<Slice>, Address<f64>);
        SUM_PARTIALS = c"sum_partials", (u64, Address<f64>, Address<f64>);
    }
    sample Nothing {
        SAMPLE = c"sample", Sample;
    }
    plain_attention Nothing {
        PLAIN_ATTENTION = c"plain_attention",
            (usize, usize, usize, Address<u32>, At, At, Address<f32>, f32);
        PLAIN_PROMPT_ATTENTION = c"plain_prompt_attention",
            (usize, usize, usize, usize, Address<u32>, At, At, Address<Four>, At, f32);
        PLAIN_QUERY_GRADIENT = c"plain_query_gradient", PlainGradient;
        PLAIN_KEY_VALUE_GRADIENT = c"plain_key_value_gradient", PlainGradient;
        PLAIN_CACHE_ATTENTION = c"plain_cache_attention",
            (usize, usize, usize, usize, At, At, Address<Four>, At, f32);
    }
    attention TensorCores {
        ATTENTION_64 = c"attention_64" shared attention_shared(64), Attention;
        ATTENTION_128 = c"attention_128" shared attention_shared(128), Attention;
        PROMPT_ATTENTION_64 = c"prompt_attention_64" shared attention_shared(64), Ends;
        PROMPT_ATTENTION_128 = c"prompt_attention_128" shared attention_shared(128), Ends;
    }
    attention_backward TensorCores {
        QUERY_GRADIENT_64 = c"query_gradient_64" shared query_gradient_shared(64), QueryGradient;
        QUERY_GRADIENT_128 = c"query_gradient_128" shared query_gradient_shared(128), QueryGradient;
        KEY_VALUE_GRADIENT_64 = c"key_value_gradient_64" shared key_value_gradient_shared(64),
            KeyValueGradient;
        KEY_VALUE_GRADIENT_128 = c"key_value_gradient_128" shared key_value_gradient_shared(128),
            KeyValueGradient;
        SUM_KEY_VALUE_PARTS = c"sum_key_value_parts", (u64, usize, usize, usize, At, At);
    }
    decode TensorCores {
        DECODE_64 = c"decode_64", Decode;
        DECODE_128 = c"decode_128", Decode;
    }
    fp8 TensorCores {
        ROWS_TO_FP8 = c"rows_to_fp8", (usize, At, Address<u8>, Address<f32>);
        COLUMNS_TO_FP8 = c"columns_to_fp8", (usize, usize, At, Address<u8>, Address<f32>);
        APPLY_SCALES = c"apply_scales", (usize, At, Address<f32>, Address<f32>, At, f32, At);
    }
    lora TensorCores {
        TRANSPOSE_PARTS = c"transpose_parts", (Parts, usize, At, At);
        LORA_INNER_2 = c"lora_inner_2", Inner;
        LORA_INNER_4 = c"lora_inner_4", Inner;
        LORA_INNER_6 = c"lora_inner_6", Inner;
        LORA_INNER_8 = c"lora_inner_8", Inner;
        LORA_INNER_DROP_2 = c"lora_inner_drop_2", Inner;
        LORA_INNER_DROP_4 = c"lora_inner_drop_4", Inner;
        LORA_INNER_DROP_6 = c"lora_inner_drop_6", Inner;
        LORA_INNER_DROP_8 = c"lora_inner_drop_8", Inner;
        LORA_OUTER_1 = c"lora_outer_1", Outer;
        LORA_OUTER_2 = c"lora_outer_2", Outer;
        LORA_OUTER_3 = c"lora_outer_3", Outer;
        LORA_OUTER_6 = c"lora_outer_6", Outer;
        LORA_OUTER_DROP_1 = c"lora_outer_drop_1", Outer;
        LORA_OUTER_DROP_2 = c"lora_outer_drop_2", Outer;
        LORA_OUTER_DROP_3 = c"lora_outer_drop_3", Outer;
        LORA_OUTER_DROP_6 = c"lora_outer_drop_6", Outer;
        LORA_GRADIENT_1 = c"lora_gradient_1" shared lora_gradient_shared(1), Gradient;
        LORA_GRADIENT_2 = c"lora_gradient_2" shared lora_gradient_shared(2), Gradient;
        LORA_GRADIENT_3 = c"lora_gradient_3" shared lora_gradient_shared(3), Gradient;
        LORA_GRADIENT_DROP_1 = c"lora_gradient_drop_1" shared lora_gradient_shared(1), Gradient;
        LORA_GRADIENT_DROP_2 = c"lora_gradient_drop_2" shared lora_gradient_shared(2), Gradient;
        LORA_GRADIENT_DROP_3 = c"lora_gradient_drop_3" shared lora_gradient_shared(3), Gradient;
    }
    few Hopper {
        FEW_1 = c"few_1" shared few_shared(1, 6), Few;
        FEW_2 = c"few_2" shared few_shared(2, 8), Few;
        FEW_5 = c"few_5" shared few_shared(5, 4), Few;
    }
}

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
                for Declared { name: kernel, shared, .. } in program.kernels {
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
        stream: sys::CUstream,
        kernel: &CStr,
        Grid { blocks: grid, threads, shared, cluster }: Grid,
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
        let mut pointers = [std::ptr::null_mut::<c_void>(); MOST];
        for (pointer, arg) in pointers.iter_mut().zip(args) {
            *pointer = (&raw const arg.0).cast_mut().cast();
        }
        let mut in_clusters = sys::CUlaunchAttribute {
            id: sys::CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION,
            pad: [0; 4],
            value: sys::CUlaunchAttributeValue {
                clusterDim: sys::CUlaunchAttributeValue_union__bindgen_ty_1 {
                    x: cluster as u32,
                    y: 1,
                    z: 1,
                },
            },
        };
        let config = sys::CUlaunchConfig {
            gridDimX: grid.0 as u32,
            gridDimY: grid.1 as u32,
            gridDimZ: grid.2 as u32,
            blockDimX: threads as u32,
            blockDimY: 1,
            blockDimZ: 1,
            sharedMemBytes: shared as u32,
            hStream: stream,
            attrs: &raw mut in_clusters,
            numAttrs: 1,
        };
        // SAFETY: the arguments are of the types that the kernel is declared with, and the callers
        // in this crate have checked that buffers are long enough.
        unsafe {
            if cluster > 1 {
                let (config, pointers) = (&raw const config, pointers.as_mut_ptr());
                sys::cuLaunchKernelEx(config, function, pointers, std::ptr::null_mut()).result()
            } else {
                result::launch_kernel(
                    function,
                    (grid.0 as u32, grid.1 as u32, grid.2 as u32),
                    (threads as u32, 1, 1),
                    shared as u32,
                    stream,
                    &mut pointers[..args.len()],
                )
            }
        }
        .explain(&format!("launching {}", kernel.to_string_lossy()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text between a `(` at the start and its `)`, and what follows.
    fn parenthesised(text: &str) -> (&str, &str) {
        let mut depth = 0;
        for (at, c) in text.char_indices() {
            depth += i32::from(c == '(') - i32::from(c == ')');
            if depth == 0 {
                return (&text[1..at], &text[at + 1..]);
            }
        }
        panic!("no end of {text}");
    }

    /// The types of a list of parameters, without `const` and names.
    fn types(parameters: &str) -> Vec<String> {
        let kind = |parameter: &str| {
            let words: Vec<&str> = parameter.split_whitespace().collect();
            let words = words.strip_prefix(&["const"]).unwrap_or(&words);
            words[..words.len() - 1].concat()
        };
        parameters.split(',').map(kind).collect()
    }

    /// Every kernel of a source with the types of its parameters. Those that a macro defines are
    /// named by its calls.
    fn kernels(source: &str) -> Vec<(String, Vec<String>)> {
        let source = source.replace("\\\n", " ");
        let mut found = Vec::new();
        for piece in source.split("extern \"C\" __global__ void").skip(1) {
            let mut rest = piece.trim_start();
            if let Some(bounds) = rest.strip_prefix("__launch_bounds__") {
                rest = parenthesised(bounds).1.trim_start();
            }
            let open = rest.find('(').expect("parameters");
            let (name, types) = (rest[..open].trim(), types(parenthesised(&rest[open..]).0));
            let before = &source[..piece.as_ptr() as usize - source.as_ptr() as usize];
            let define = before.lines().last().filter(|line| line.starts_with("#define"));
            let Some(define) = define.map(|line| &line["#define ".len()..]) else {
                found.push((name.to_string(), types));
                continue;
            };
            let open = define.find('(').expect("a macro with parameters");
            let (called, formal) = (&define[..=open], parenthesised(&define[open..]).0);
            for call in source.lines().filter(|line| line.starts_with(called)) {
                let actual = parenthesised(&call[open..]).0;
                let mut name = name.to_string();
                for (formal, actual) in formal.split(',').zip(actual.split(',')) {
                    let (formal, actual) = (formal.trim(), actual.trim());
                    name = name.replace(&format!("##{formal}"), actual);
                    name = if name == formal { actual.to_string() } else { name };
                }
                found.push((name, types.clone()));
            }
        }
        found
    }

    #[test]
    fn declarations_are_those_of_the_sources() {
        for program in PROGRAMS {
            let sources = kernels(program.source);
            for declared in program.kernels {
                let name = declared.name.to_str().unwrap();
                let (_, types) = sources
                    .iter()
                    .find(|(known, _)| known == name)
                    .unwrap_or_else(|| panic!("no {name} in {}.cu", program.name));
                // Programs for tensor cores are only compiled where activations are bf16.
                let same = |(declared, source): (&&str, &String)| {
                    source == declared
                        || program.needs != Needs::Nothing && *declared == "T*" && source == "bf16*"
                };
                assert!(
                    types.len() == declared.types.len()
                        && declared.types.iter().zip(types).all(same),
                    "{name} takes {types:?} in {}.cu and is declared with {:?}",
                    program.name,
                    declared.types
                );
            }
            for (name, _) in &sources {
                let declared = program.kernels.iter().any(|k| k.name.to_str() == Ok(name));
                assert!(declared, "{name} in {}.cu is not declared", program.name);
            }
        }
    }
}
