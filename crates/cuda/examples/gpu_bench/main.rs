//! Speed on this GPU: LoRA training and sampling with 7B-shape weights, small models, and what the
//! matrix products alone would take, each as a line of a table.
//!
//! `cargo run --release -p catamount-cuda --example gpu_bench -- [--fp8] [--profile CASE]...
//! [CASE]...` (all cases where none is named; with `--fp8` the base of the 7B shape is in fp8).
//! Weights are random; times are medians after warm-up. A profile lists every kernel of a case,
//! with its share of the time that the step takes unprofiled. `few`, which times the library and
//! each of our kernels on products of few rows in fp8, is left out where no case is named.

mod decoding;
mod few;
mod floor;
mod profiles;
mod shapes;
mod training;

use std::sync::Arc;
use std::time::Instant;

use catamount_cuda::Cuda;
use catamount_model::{Adapter, Config, Keep, LoraConfig, Memory, Model};
use catamount_search::Stream;

use decoding::decode;
use shapes::{dense, packed, random_model, seven_b, small, smol, studies};
use training::{Training, train};

type Failure = Box<dyn std::error::Error>;

/// What can be asked for. Those of the first line share the 7B shape's weights.
const CASES: [&str; 10] = [
    "floor",
    "dense",
    "packed",
    "recompute",
    "decode",
    "decode256", //
    "studies",
    "small",
    "135m",
    "few",
];
const SEVEN_B: usize = 6;

struct Wanted {
    fp8: bool,
    cases: Vec<String>,
    profiles: Vec<String>,
}

impl Wanted {
    fn parse(mut words: impl Iterator<Item = String>) -> Result<Self, Failure> {
        let mut wanted = Wanted { fp8: false, cases: Vec::new(), profiles: Vec::new() };
        while let Some(word) = words.next() {
            if word == "--fp8" {
                wanted.fp8 = true;
                continue;
            }
            let profiled = word == "--profile";
            let case = if profiled { words.next().unwrap_or_default() } else { word };
            if !CASES.contains(&case.as_str()) {
                let cases = CASES.join(", ");
                return Err(format!("no case {case:?}; the cases are {cases}").into());
            }
            if profiled {
                wanted.profiles.push(case.clone());
            }
            wanted.cases.push(case);
        }
        Ok(wanted)
    }

    fn case(&self, name: &str) -> bool {
        self.cases.is_empty() || self.cases.iter().any(|c| c == name)
    }

    fn profile(&self, name: &str) -> bool {
        self.profiles.iter().any(|c| c == name)
    }
}

fn main() -> Result<(), Failure> {
    let wanted = Wanted::parse(std::env::args().skip(1))?;
    let start = Instant::now();
    let cuda = match Cuda::new(0) {
        Ok(cuda) => Arc::new(cuda),
        Err(reason) => {
            println!("nothing to measure: {reason}");
            return Ok(());
        }
    };
    println!("{} (ready in {:.1} s)", cuda.describe(), start.elapsed().as_secs_f64());
    if wanted.cases.iter().any(|case| case == "few") {
        few::few(&cuda)?;
    }
    if CASES[..SEVEN_B].iter().any(|case| wanted.case(case)) {
        large(&cuda, &wanted)?;
        if wanted.fp8 {
            for line in cuda.fp8_scaling()? {
                println!("fp8 | {line}");
            }
        }
    }
    let shapes = [
        ("studies", "6 layers, d=256, vocabulary 8192", studies()),
        ("small", "6 layers, d=256", small()),
        ("135m", "135M shape", smol()),
    ];
    for (case, name, config) in shapes {
        if wanted.case(case) {
            whole(&cuda, name, config, wanted.profile(case))?;
        }
    }
    Ok(())
}

/// The 7B shape with the paper's adapter.
fn large(cuda: &Arc<Cuda>, wanted: &Wanted) -> Result<(), Failure> {
    let mut model = random_model(cuda, seven_b())?;
    if wanted.fp8 {
        model.use_fp8()?;
    }
    let base = if wanted.fp8 { ", base in fp8" } else { "" };
    if wanted.case("floor") {
        floor::floor(cuda, &model, 2048, &[64, 256])?;
    }
    // Without and with an adapter, which costs something while it is in force.
    for adapted in [false, true] {
        let name = format!("7B shape{}{base}", if adapted { " with LoRA" } else { "" });
        if adapted {
            let (lora, seed) = (LoraConfig::default(), Stream::new(1));
            model.swap_adapter(Some(Adapter::new(&**cuda, &model.config, lora, true, seed)?));
        }
        for (case, batch) in [("decode", 64), ("decode256", 256)] {
            if wanted.case(case) {
                model = decode(model, &name, batch, 128, wanted.profile(case))?;
            }
        }
    }
    let mut run = |case: &str, name: &str, batches: &[_], keep, dropout| {
        let profiled = wanted.profile(case);
        train(cuda, &mut model, &Training { name, batches, keep, dropout, profiled })
    };
    if wanted.case("dense") {
        let name = format!("7B shape{base}, LoRA r=16, 4 x 512");
        run("dense", &name, &[dense(4, 512)], Keep::All, None)?;
    }
    for rows in [4096, 8192, 16_384] {
        if wanted.case("packed") {
            let name = format!("7B shape{base}, LoRA r=16, dropout 0.05, packed to {rows}");
            run("packed", &name, &packed(rows, 6), Keep::All, Some(1))?;
        }
    }
    if wanted.case("recompute") {
        let name = format!("7B shape{base}, LoRA r=16, dropout 0.05, packed to 16384, recomputed");
        run("recompute", &name, &packed(16_384, 4), Keep::Inputs, Some(1))?;
    }
    Ok(())
}

/// A small model, all of whose weights are trained.
fn whole(cuda: &Arc<Cuda>, name: &str, config: Config, profiled: bool) -> Result<(), Failure> {
    let name = format!("{name}, {:.1} M parameters", config.parameters() as f64 / 1e6);
    let mut model = random_model(cuda, config.clone())?;
    for batch in [512, 32] {
        model = decode(model, &name, batch, 128, profiled)?;
    }
    drop(model);
    let mut model = Model::init(cuda.clone(), config, Stream::new(1))?;
    let name = format!("{name}, all weights, 32 x 256");
    let batches = &[dense(32, 256)];
    train(
        cuda,
        &mut model,
        &Training { name: &name, batches, keep: Keep::All, dropout: None, profiled },
    )
}
