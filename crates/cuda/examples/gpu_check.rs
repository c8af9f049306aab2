//! Compares every operation on the GPU with the plain reference and with the processor, forward and
//! backward, in f32 and bf16, and prints a table.
//!
//! `cargo run --release -p catamount-cuda --example gpu_check [-- --require-gpu]`. Fails if
//! anything differs; without a GPU it says so and fails only where one is required.

#[path = "../tests/cases/mod.rs"]
mod cases;

use std::process::ExitCode;
use std::sync::Arc;

use cases::Tally;
use catamount_cuda::{Cuda, Precision};
use catamount_model::{Cpu, Keep, Memory, Reference};

fn main() -> ExitCode {
    let required = std::env::args().skip(1).any(|word| word == "--require-gpu");
    // What plain loops have time for; the processor does the rest.
    const PLAIN: usize = 1 << 28;
    let mut tally = Tally::default();
    let mut opened = Vec::new();
    for (name, precision, single, whole) in
        [("f32", Precision::F32, 2e-5, 5e-4), ("bf16", Precision::Bf16, 1e-2, 6e-2)]
    {
        match Cuda::with_precision(0, precision) {
            Ok(cuda) => opened.push((name, Arc::new(cuda), single, whole)),
            Err(reason) => tally.absent(name, &reason.to_string(), required),
        }
    }
    if opened.is_empty() {
        return tally.finish();
    }
    let plain = cases::operations(&Reference, PLAIN);
    let reference = cases::operations(&Cpu, usize::MAX);
    let adapted = cases::adapted(&Reference);
    let trained = cases::adapter_training(Arc::new(Cpu), Keep::All);
    for (name, cuda, single, whole) in opened {
        println!("{}", cuda.describe());
        tally.results(name, &plain, &cases::operations(&*cuda, PLAIN), single);
        tally.results(name, &reference, &cases::operations(&*cuda, usize::MAX), single);
        tally.results(name, &adapted, &cases::adapted(&*cuda), single);
        let kept = cases::adapter_training(cuda.clone(), Keep::All);
        tally.results(name, &trained, &kept, whole);
        let repeated = cases::adapter_training(cuda.clone(), Keep::All);
        tally.verdict(name, "a second run gives the same bits", kept == repeated);
        let again = cases::adapter_training(cuda.clone(), Keep::Inputs);
        tally.verdict(name, "recomputation gives the same bits", kept == again);
        // Stops with what differs, if anything does.
        cases::recording(&*cuda);
        tally.verdict(name, "recordings give what running directly gives", true);
        for (c, g) in cases::sampling(&Cpu).iter().zip(&cases::sampling(&*cuda)) {
            let (same, all, off) = (c.agreeing(g).len(), c.draws.len(), c.worst(g));
            let what =
                format!("{:48} {same}/{all} tokens agree, probabilities within {off:.1e}", c.name);
            tally.verdict(name, &what, same * 50 >= all * 49 && off < 1e-4);
        }
    }
    tally.finish()
}
