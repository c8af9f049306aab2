//! The kernels compile, wherever the run-time compiler is found; no GPU is needed.
//! To run it: `pip install nvidia-cuda-nvrtc`, and its lib folder on LD_LIBRARY_PATH.

use catamount_cuda::{compile_all, compiler_version};

#[test]
fn every_kernel_compiles() {
    let (major, minor) = match compiler_version() {
        Ok(version) => version,
        Err(reason) => {
            println!("skipped: {reason}");
            assert!(reason.to_string().contains("nvrtc"), "{reason}");
            return;
        }
    };
    println!("NVRTC {major}.{minor}");
    for (capability, bf16, count) in
        [((8, 0), true, 11), ((8, 9), true, 11), ((9, 0), false, 6), ((9, 0), true, 12)]
    {
        let programs = compile_all(capability, bf16).unwrap();
        assert_eq!(programs.len(), count);
        assert!(programs.iter().all(|p| p.image.starts_with(b"\x7fELF")), "machine code, not PTX");
    }
    // A GPU that this compiler has never heard of gets PTX, which the driver translates.
    let programs = compile_all((99, 0), true).unwrap();
    assert!(programs.iter().all(|p| String::from_utf8_lossy(&p.image).contains(".target")));
}
