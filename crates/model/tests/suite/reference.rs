//! The processor against the plain reference: every operation, three steps of training, sampling,
//! and whole tactics.

use std::sync::Arc;

use catamount_model::{Cpu, Generator, GeneratorConfig, Keep, Memory, Model, Reference, Sampling};
use catamount_search::{Policy, Request, Stream};

use crate::tactics::{PLAIN, STATES, answers, model, tokenizer};

// What counts and prints comparisons is for the programs that run on a GPU.
#[allow(dead_code, unused_imports)]
#[path = "../../../cuda/tests/cases/mod.rs"]
mod cases;

/// Multiplications of a product that plain loops have time for.
const MOST: usize = 1 << 28;

fn within(reference: &cases::Results, got: &cases::Results, most: f64) {
    for c in cases::compare(reference, got) {
        assert!(c.error <= most, "{}: relative error {:.2e} above {most:.0e}", c.name, c.error);
    }
}

#[test]
fn every_operation_agrees() {
    within(&cases::operations(&Reference, MOST), &cases::operations(&Cpu, MOST), 1e-5);
    within(&cases::adapted(&Reference), &cases::adapted(&Cpu), 1e-5);
    cases::recording(&Reference, false);
}

/// What rounding to fp8 costs: some per cent of a product, of a gradient, of what is learnt.
#[test]
fn fp8_is_near() {
    cases::recording(&Reference, true);
    let plain = cases::adapter_training(Arc::new(Reference), Keep::All);
    let rounded = cases::training(Arc::new(Reference), Keep::All, true);
    within(&plain, &rounded, 0.2);
    for c in cases::compare(&plain, &rounded) {
        println!("{:40} {:.2e}", c.name, c.error);
    }
    let worst = cases::compare(&plain, &rounded).iter().map(|c| c.error).fold(0.0, f64::max);
    assert!(worst > 1e-3, "the worst error is {worst}: nothing was rounded");
    assert_eq!(rounded, cases::training(Arc::new(Reference), Keep::Inputs, true));
    assert!(cases::fp8(&Reference).iter().all(|(_, x)| x.iter().all(|x| x.is_finite())));
}

#[test]
fn the_processor_refuses_fp8() {
    let mut model = model(&tokenizer(), 3);
    let refused = model.use_fp8().unwrap_err().to_string();
    assert!(refused.contains("frozen base"), "{refused}");
    let mut frozen = Model::zeros(Arc::new(Cpu), model.config.clone(), false).unwrap();
    let refused = frozen.use_fp8().unwrap_err().to_string();
    assert!(refused.contains("compute capability 8.9"), "{refused}");
    assert_eq!(frozen.arithmetic(), "f32");
    let mut plain = Model::zeros(Arc::new(Reference), model.config.clone(), false).unwrap();
    plain.use_fp8().unwrap();
    assert_eq!(plain.arithmetic(), "f32, base in fp8");
}

#[test]
fn training_agrees() {
    let plain = cases::adapter_training(Arc::new(Reference), Keep::All);
    within(&plain, &cases::adapter_training(Arc::new(Cpu), Keep::All), 5e-4);
}

#[test]
fn the_same_uniforms_draw_the_same_tokens() {
    for (plain, fast) in cases::sampling(&Reference).iter().zip(&cases::sampling(&Cpu)) {
        let (same, all) = (plain.agreeing(fast).len(), plain.draws.len());
        // A uniform may fall within rounding of the boundary between two tokens.
        assert!(same * 50 >= all * 49, "{}: {same} of {all} tokens agree", plain.name);
        let worst = plain.worst(fast);
        assert!(worst < 1e-4, "{}: probabilities differ by {worst}", plain.name);
    }
}

#[test]
fn the_same_tactics_are_generated() {
    let fast = model(&tokenizer(), 3);
    for sampling in [Sampling { temperature: 0.0, top_p: 1.0 }, PLAIN] {
        let config =
            GeneratorConfig { sampling, max_tokens: 8, max_prompt: 40, batch: 8, cache: 500 };
        let mut plain = Model::zeros(Arc::new(Reference), fast.config.clone(), false).unwrap();
        let mut copy = Model::zeros(Arc::new(Cpu), fast.config.clone(), false).unwrap();
        for ((from, to), other) in fast.base().zip(plain.base_mut()).zip(copy.base_mut()) {
            let values = from.to_host(&Cpu).unwrap();
            Reference.upload(&values, &mut to.value, 0).unwrap();
            Cpu.upload(&values, &mut other.value, 0).unwrap();
        }
        let mut plain = Generator::new(plain, tokenizer(), config, "plain").unwrap();
        let mut fast = Generator::new(copy, tokenizer(), config, "fast").unwrap();
        for (id, state) in (0..).zip(STATES) {
            let (state, stream) = (state.to_string(), Stream::new(5).child(id));
            let request = Request { id, state, samples: 3, stream, urn: None };
            plain.submit(request.clone());
            fast.submit(request);
        }
        let (plain, fast) = (answers(&mut plain), answers(&mut fast));
        for (id, samples) in plain {
            for (a, b) in samples.iter().zip(&fast[&id]) {
                assert_eq!(a.tactic, b.tactic);
                assert!((a.log_p - b.log_p).abs() < 1e-4, "{} and {}", a.log_p, b.log_p);
            }
        }
    }
}
