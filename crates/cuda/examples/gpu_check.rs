//! Compares every operation on the GPU with the plain reference and with the processor, forward and
//! backward, in f32 and bf16 and with a base in fp8, and prints a table.
//!
//! `cargo run --release -p catamount-cuda --example gpu_check -- [--require-gpu] [--fp8|--no-fp8]`
//! (the last two for what is in fp8 alone, or all but that). Fails if anything differs; without a
//! GPU it says so and fails only where one is required.

#[path = "../tests/cases/mod.rs"]
mod cases;

use std::process::ExitCode;
use std::sync::Arc;

use cases::Tally;
use catamount_cuda::{Cuda, Precision};
use catamount_model::{Cpu, Keep, Kind, Layers, Memory, Reference, Shape};

fn main() -> ExitCode {
    let asked = |word: &str| std::env::args().skip(1).any(|given| given == word);
    let (required, fp8_alone) = (asked("--require-gpu"), asked("--fp8"));
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
    if fp8_alone {
        fp8(&mut tally, required);
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
        cases::recording(&*cuda, false);
        tally.verdict(name, "recordings give what running directly gives", true);
        for (c, g) in cases::sampling(&Cpu).iter().zip(&cases::sampling(&*cuda)) {
            let (same, all, off) = (c.agreeing(g).len(), c.draws.len(), c.worst(g));
            let what =
                format!("{:48} {same}/{all} tokens agree, probabilities within {off:.1e}", c.name);
            tally.verdict(name, &what, same * 50 >= all * 49 && off < 1e-4);
        }
    }
    if !asked("--no-fp8") {
        fp8(&mut tally, required);
    }
    tally.finish()
}

/// Products in fp8, scaled as this GPU's library likes it and as those that cannot have it.
fn fp8(tally: &mut Tally, required: bool) {
    let plain = cases::fp8(&Reference);
    let trained = cases::training(Arc::new(Reference), Keep::All, true);
    for (name, afterwards) in [("fp8", false), ("apart", true)] {
        let cuda = match Cuda::new(0) {
            Ok(cuda) => Arc::new(cuda),
            Err(reason) => return tally.absent(name, &reason.to_string(), required),
        };
        let shape = Shape { outputs: 16, inputs: 16 };
        let able = cuda.zeros(256, Kind::Frozen).and_then(|mut w| cuda.round_to_fp8(shape, &mut w));
        if let Err(reason) = able {
            return tally.absent(name, &reason.to_string(), false);
        }
        if afterwards {
            cuda.scale_afterwards().expect("a GPU");
        }
        println!("{}, base in fp8, scales applied afterwards: {afterwards}", cuda.describe());
        // The same numbers are rounded; sums of the tensor cores have few bits more than bf16.
        tally.results(name, &plain, &cases::fp8(&*cuda), 2e-2);
        // In a whole pass other roundings to bf16 tip some over to the next of few numbers.
        let kept = cases::training(cuda.clone(), Keep::All, true);
        tally.results(name, &trained, &kept, 1.5e-1);
        let repeated = cases::training(cuda.clone(), Keep::All, true);
        tally.verdict(name, "a second run gives the same bits", kept == repeated);
        let again = cases::training(cuda.clone(), Keep::Inputs, true);
        tally.verdict(name, "recomputation gives the same bits", kept == again);
        cases::recording(&*cuda, true);
        tally.verdict(name, "recordings give what running directly gives", true);
        for line in cuda.fp8_scaling().unwrap_or_default() {
            println!("{name:5} {line}");
        }
    }
    few(tally);
}

/// Products of few rows in fp8, cut up in all the ways that our kernels know.
fn few(tally: &mut Tally) {
    let plain = cases::few(&Reference);
    let cuda = Cuda::new(0).expect("a GPU");
    for index in (0..).take_while(|index| cuda.try_few(*index).expect("a GPU")) {
        tally.results("fp8", &plain, &cases::few(&cuda), 2e-2);
        let what = format!("a row alone and among others, cut {index}");
        tally.verdict("fp8", &what, cases::few_alone(&cuda));
    }
}
