//! Kernels from source to machine code, by NVRTC, once per source, GPU kind and compiler: the
//! result is kept in the user's cache.

use std::ffi::CString;
use std::path::PathBuf;

use catamount_model::{Error, Result};
use cudarc::nvrtc::{result, sys};

use crate::kernels::{Needs, PROGRAMS, Program};
use crate::tensor::Format;

const COMMON: &str = include_str!("kernels/common.cuh");
const MMA: &str = include_str!("kernels/mma.cuh");
const HOPPER: &str = include_str!("kernels/hopper.cuh");

/// One compiled program.
pub struct Compiled {
    /// The source file's name.
    pub name: &'static str,
    /// Machine code, or PTX where the compiler is older than the GPU.
    pub image: Vec<u8>,
    /// Whether it came from the cache.
    pub cached: bool,
}

/// The version of NVRTC, or why there is none.
pub fn compiler_version() -> Result<(i32, i32)> {
    // SAFETY: only asks whether the library can be loaded.
    if !unsafe { sys::is_culib_present() } {
        return Err(Error::Device(
            "NVRTC (libnvrtc.so, CUDA's run-time compiler) is not on the loader's path; install \
             the CUDA toolkit 12 or 13, or \
             `pip install nvidia-cuda-nvrtc nvidia-cublas` and put their lib folders on \
             LD_LIBRARY_PATH"
                .into(),
        ));
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both are valid places for an int.
    let status = unsafe { sys::nvrtcVersion(&raw mut major, &raw mut minor) };
    if status != sys::nvrtcResult::NVRTC_SUCCESS || major < 12 {
        return Err(Error::Device(format!(
            "NVRTC {major}.{minor} ({status:?}) is too old; install CUDA 12 or 13"
        )));
    }
    Ok((major, minor))
}

/// The target for a GPU of this capability: its own machine code, or the newest PTX the compiler
/// knows.
fn architecture(capability: (i32, i32)) -> Result<String> {
    let mut count = 0;
    // SAFETY: the list gets room for as many numbers as the library says it has.
    let known = unsafe {
        let failed = |s: sys::nvrtcResult| {
            Error::Device(format!("asking NVRTC for the GPUs it knows: {s:?}"))
        };
        sys::nvrtcGetNumSupportedArchs(&raw mut count).result().map_err(|e| failed(e.0))?;
        let mut known = vec![0; count as usize];
        sys::nvrtcGetSupportedArchs(known.as_mut_ptr()).result().map_err(|e| failed(e.0))?;
        known
    };
    let wanted = capability.0 * 10 + capability.1;
    if known.contains(&wanted) {
        return Ok(format!("sm_{wanted}"));
    }
    match known.iter().filter(|&&a| a < wanted).max() {
        Some(best) => Ok(format!("compute_{best}")),
        None => Err(Error::Device(format!(
            "NVRTC cannot compile for compute capability {}.{}",
            capability.0, capability.1
        ))),
    }
}

/// Compiles every program for a GPU of this compute capability, in bf16 (`true`) or f32.
pub fn compile_all(capability: (i32, i32), bf16: bool) -> Result<Vec<Compiled>> {
    let version = compiler_version()?;
    let architecture = architecture(capability)?;
    let format = if bf16 { Format::Bf16 } else { Format::F32 };
    let wanted: Vec<&Program> = PROGRAMS.iter().filter(|p| p.needs.met(capability, bf16)).collect();
    std::thread::scope(|scope| {
        let workers: Vec<_> = wanted
            .iter()
            .map(|program| scope.spawn(|| cached(program, &architecture, format, version)))
            .collect();
        workers.into_iter().map(|w| w.join().expect("the compiler does not panic")).collect()
    })
}

fn cached(
    program: &Program,
    architecture: &str,
    format: Format,
    version: (i32, i32),
) -> Result<Compiled> {
    let (before, features): (&[&str], _) = match program.needs {
        Needs::Nothing => (&[COMMON], ""),
        Needs::TensorCores => (&[COMMON, MMA], ""),
        // What no later GPU has must be asked for.
        Needs::Hopper => (&[COMMON, MMA, HOPPER], "a"),
    };
    let source = [before.concat().as_str(), program.source].concat();
    let architecture = format!("{architecture}{features}");
    let activation = if format == Format::Bf16 { "bf16" } else { "float" };
    let options = [
        format!("--gpu-architecture={architecture}"),
        "--std=c++17".into(),
        "-default-device".into(),
        format!("-DACTIVATION={activation}"),
        "-diag-suppress=128".into(),
    ];
    let key = fingerprint(&format!("{source}\n{options:?}\n{version:?}"));
    let path = cache_folder("kernels")
        .map(|folder| folder.join(format!("{}-{architecture}-{key:016x}.cubin", program.name)));
    if let Some(image) =
        path.as_ref().and_then(|p| std::fs::read(p).ok()).filter(|image| !image.is_empty())
    {
        return Ok(Compiled { name: program.name, image, cached: true });
    }
    let image = compile(program.name, &source, &options, architecture.starts_with("sm_"))?;
    if let Some(path) = path {
        // Only a cache: a full or read-only disk costs the next start a few seconds.
        let _ = catamount_base::write(&path, &image);
    }
    Ok(Compiled { name: program.name, image, cached: false })
}

fn compile(name: &str, source: &str, options: &[String], machine_code: bool) -> Result<Vec<u8>> {
    let failed = |what: &str, e: result::NvrtcError| {
        Error::Device(format!("NVRTC, {what} {name}.cu: {:?}", e.0))
    };
    let text = CString::new(source).expect("kernel sources hold no NUL");
    let file = CString::new(format!("{name}.cu")).expect("names hold no NUL");
    let program = result::create_program(&text, Some(&file)).map_err(|e| failed("reading", e))?;
    // SAFETY: the program lives until it is destroyed below; buffers are as long as the library
    // says.
    unsafe {
        let image = match result::compile_program(program, options) {
            Err(e) => {
                let log = result::get_program_log(program).unwrap_or_default();
                let log: String = log
                    .iter()
                    .map(|&c| c as u8 as char)
                    .filter(|c| *c != '\0')
                    .take(2000)
                    .collect();
                Err(Error::Device(format!("NVRTC, compiling {name}.cu: {:?}\n{log}", e.0)))
            }
            Ok(()) if machine_code => {
                let mut size = 0;
                sys::nvrtcGetCUBINSize(program, &raw mut size)
                    .result()
                    .map_err(|e| failed("measuring", e))?;
                let mut image = vec![0u8; size];
                sys::nvrtcGetCUBIN(program, image.as_mut_ptr().cast())
                    .result()
                    .map_err(|e| failed("taking", e))?;
                Ok(image)
            }
            Ok(()) => result::get_ptx(program)
                .map(|ptx| ptx.into_iter().map(|c| c as u8).collect())
                .map_err(|e| failed("taking the PTX of", e)),
        };
        let _ = result::destroy_program(program);
        image
    }
}

/// Where what was found out about this machine is kept: compiled kernels, chosen algorithms.
pub(crate) fn cache_folder(name: &str) -> Option<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|v| !v.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("catamount").join(name))
}

/// FNV-1a.
fn fingerprint(text: &str) -> u64 {
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |h, b| (h ^ u64::from(b)).wrapping_mul(0x0100_0000_01b3))
}
