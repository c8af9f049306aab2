//! What is trained and sampled does not depend on the machine: every instruction set gives the same
//! bits.

use std::process::Command;
use std::sync::Arc;

use catamount_model::{
    Activations, Batch, Config, Cpu, Generator, GeneratorConfig, Keep, Memory, Model, Sampling,
    Tokenizer,
};
use catamount_search::{Policy, Request, Stream};

/// Gradients of a small model and tactics sampled from it, as text with every bit.
fn digest() -> String {
    // Widths that are no multiple of a vector's, so that every tail is walked.
    let config = Config { intermediate: 75, ..Config::small(300, 48, 2, 128) };
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(1)).unwrap();
    let mut batch = Batch::new();
    for s in 0..3 {
        let tokens: Vec<u32> =
            (0..41).map(|i| (Stream::new(2).child(s).uniform(i) * 300.0) as u32).collect();
        batch.push(&tokens[..7], &tokens[7..]);
    }
    let mut acts = Activations::new(&model, batch.len(), Keep::All).unwrap();
    model.forward(&batch, &mut acts, None).unwrap();
    let log_p = model.score(&mut acts).unwrap();
    model.backward(&mut acts, &vec![-1.0; log_p.len()]).unwrap();
    let mut bits: Vec<u32> = log_p.iter().map(|x| x.to_bits()).collect();
    for p in model.trained() {
        let mut grad = vec![0.0; p.len()];
        Cpu.download(p.grad.as_ref().unwrap(), 0, &mut grad).unwrap();
        bits.extend(grad.iter().map(|x| x.to_bits()));
    }
    let tokenizer = Tokenizer::train_bpe(["a b c d"].iter(), 258).unwrap();
    let config = GeneratorConfig {
        sampling: Sampling { temperature: 0.9, top_p: 0.95 },
        max_tokens: 24,
        max_prompt: 64,
        batch: 8,
        cache: 1024,
    };
    let mut generator = Generator::new(model, tokenizer, config, "digest").unwrap();
    generator.submit(Request {
        id: 1,
        state: "a state of some length".into(),
        samples: 6,
        stream: Stream::new(3),
        urn: None,
    });
    let samples = generator.poll().remove(0).1.unwrap();
    let hash = bits.iter().fold(0u64, |h, b| h.wrapping_mul(0x100_0000_01b3) ^ u64::from(*b));
    format!("{} numbers {hash:016x} {samples:?}", bits.len())
}

/// Run by the test below in a process of its own: the instruction set is chosen once.
#[test]
fn prints_its_digest() {
    println!("digest of {}: {}", Cpu.describe(), digest());
}

#[test]
fn every_instruction_set_gives_the_same_bits() {
    let run = |level: &str| {
        let out = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "prints_its_digest", "--nocapture"])
            .env("CATAMOUNT_SIMD", level)
            .output()
            .unwrap();
        let text = String::from_utf8(out.stdout).unwrap();
        let line =
            text.lines().find_map(|l| l.split_once("digest of ")).map(|(_, rest)| rest.to_string());
        let (device, digest) = line.as_deref().and_then(|l| l.split_once(": ")).expect("a digest");
        (device.to_string(), digest.to_string())
    };
    let (device, baseline) = run("baseline");
    assert!(device.ends_with("baseline"), "{device}");
    for level in ["avx2", "avx512"] {
        let (device, digest) = run(level);
        assert_eq!(digest, baseline, "{device} and the baseline differ");
    }
}
