//! The products of a decoding step with a base in fp8, one shape at a time: the library's fastest
//! algorithm, and our kernels.

use catamount_cuda::{Cuda, Race, Raced};
use catamount_model::{Fused, Kind, Layers, Memory, Result, Shape};

use crate::shapes::seven_b;

/// Bytes of weights that are gone through in turn: far more than the cache of any GPU.
const BYTES: usize = 400 << 20;

/// The 7B shape's matrices with several numbers of rows, and what all layers take together.
pub fn few(cuda: &Cuda) -> Result<()> {
    let config = seven_b();
    let mut sums = [(64, 0.0, 0.0), (32, 0.0, 0.0), (16, 0.0, 0.0), (1, 0.0, 0.0)];
    for fused in Fused::ALL {
        let shape = fused.shape(&config);
        let Shape { outputs, inputs } = shape;
        let bytes = outputs * inputs;
        let copies = BYTES.div_ceil(bytes);
        let mut weights = cuda.zeros(copies * bytes, Kind::Frozen)?;
        cuda.randomize(&mut weights, 0.02, 1)?;
        cuda.round_to_fp8(Shape { outputs: outputs * copies, inputs }, &mut weights)?;
        let mut x = cuda.zeros(64 * inputs, Kind::Activation)?;
        cuda.randomize(&mut x, 1.0, 2)?;
        let mut y = cuda.zeros(64 * outputs, Kind::Activation)?;
        for (rows, library, ours) in &mut sums {
            let race = Race { rows: *rows, shape, weights: &weights, x: &x };
            let raced = cuda.race(&race, &mut y)?;
            for one in &raced {
                println!("few | fp8 {rows} x {inputs} to {outputs} | {}", line(one, bytes));
            }
            let all_layers = |of_library: bool| {
                let those = raced.iter().filter(|r| (r.name == "library") == of_library);
                config.layers as f64 * those.map(|r| r.seconds).fold(f64::NAN, f64::min)
            };
            *library += all_layers(true);
            *ours += all_layers(false);
        }
    }
    for (rows, library, ours) in sums {
        let (library, ours) = (library * 1e3, ours * 1e3);
        println!("few | fp8 {rows} rows, all layers | library {library:.3} ms | ours {ours:.3} ms");
    }
    Ok(())
}

fn line(raced: &Raced, bytes: usize) -> String {
    let Raced { name, seconds, error, repeats } = raced;
    format!(
        "{name:7} | {:6.2} us, {:.2} TB/s | error {error:.1e}{}{}",
        seconds * 1e6,
        bytes as f64 / seconds / 1e12,
        if *error < 0.02 { "" } else { " | WRONG" },
        if *repeats { "" } else { " | OTHER BITS" },
    )
}
