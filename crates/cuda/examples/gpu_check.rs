//! Compares every operation on the GPU with the plain reference and with the processor, forward and
//! backward, in f32 and bf16, and prints a table.
//!
//! `cargo run --release -p catamount-cuda --example gpu_check`

#[path = "../tests/cases/mod.rs"]
mod cases;

use std::process::ExitCode;
use std::sync::Arc;

use catamount_cuda::{Cuda, Precision};
use catamount_model::{Cpu, Keep, Memory, Reference};

fn main() -> ExitCode {
    let mut failures = 0;
    let report = |what: &str, reference: &cases::Results, got: &cases::Results, most: f64| {
        let mut wrong = 0;
        for c in cases::compare(reference, got) {
            let verdict = if c.error <= most { "ok" } else { "WRONG" };
            wrong += usize::from(c.error > most);
            println!("{what:5} {:62} {:9.2e}  {verdict}", c.name, c.error);
        }
        wrong
    };
    // What plain loops have time for; the processor does the rest.
    const PLAIN: usize = 1 << 28;
    let plain = cases::operations(&Reference, PLAIN);
    let reference = cases::operations(&Cpu, usize::MAX);
    let adapted = cases::adapted(&Reference);
    let trained = cases::adapter_training(Arc::new(Cpu), Keep::All);
    for (name, precision, single, whole) in
        [("f32", Precision::F32, 2e-5, 5e-4), ("bf16", Precision::Bf16, 1e-2, 6e-2)]
    {
        let start = std::time::Instant::now();
        let cuda = match Cuda::with_precision(0, precision) {
            Ok(cuda) => Arc::new(cuda),
            Err(reason) => {
                println!("nothing to check: {reason}");
                return ExitCode::SUCCESS;
            }
        };
        println!("{} (ready in {:.1} s)", cuda.describe(), start.elapsed().as_secs_f64());
        failures += report(name, &plain, &cases::operations(&*cuda, PLAIN), single);
        failures += report(name, &reference, &cases::operations(&*cuda, usize::MAX), single);
        failures += report(name, &adapted, &cases::adapted(&*cuda), single);
        failures +=
            report(name, &trained, &cases::adapter_training(cuda.clone(), Keep::All), whole);
        let (kept, again) = (
            cases::adapter_training(cuda.clone(), Keep::All),
            cases::adapter_training(cuda.clone(), Keep::Inputs),
        );
        println!("{name:5} recomputation changes nothing: {}", kept == again);
        cases::recording(&*cuda);
        println!("{name:5} recordings give what running directly gives");
        for (c, g) in cases::sampling(&Cpu).iter().zip(&cases::sampling(&*cuda)) {
            let (same, all, off) = (c.agreeing(g).len(), c.draws.len(), c.worst(g));
            let fine = same * 50 >= all * 49 && off < 1e-4;
            failures += usize::from(!fine);
            println!(
                "{name:5} {:48} {same}/{all} tokens agree, probabilities within {off:.1e}  {}",
                c.name,
                if fine { "ok" } else { "WRONG" }
            );
        }
    }
    println!("{failures} wrong");
    if failures == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
