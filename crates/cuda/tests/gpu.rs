//! Every operation on the GPU against the processor, and against the plain reference where loops
//! have time for it: `cargo test --release --workspace --test gpu -- --ignored` where there is a
//! GPU.

mod cases;

use std::sync::Arc;

use catamount_cuda::{Cuda, Precision};
use catamount_model::{Cpu, Error, Head, Keep, Kind, Layers, Memory, Reference, Scores};

/// Largest relative error of a single operation: f32, then bf16.
const SINGLE: [f64; 2] = [2e-5, 1e-2];
/// And of a whole training run.
const WHOLE: [f64; 2] = [5e-4, 6e-2];
/// Multiplications of a product that the reference has time for.
const PLAIN: usize = 1 << 28;

fn open(precision: Precision) -> Cuda {
    Cuda::with_precision(0, precision).expect("an NVIDIA GPU")
}

fn within(reference: &cases::Results, got: &cases::Results, most: f64) {
    for c in cases::compare(reference, got) {
        assert!(
            c.error <= most,
            "{}: relative error {:.2e}, at most {most:.0e} is expected",
            c.name,
            c.error
        );
    }
}

#[test]
fn what_differs_and_a_required_gpu_that_is_absent_are_counted() {
    let results = |x: f32| vec![("x".to_string(), vec![x, 2.0])];
    let mut tally = cases::Tally::default();
    tally.results("f32", &results(1.0), &results(1.0), 0.0);
    tally.absent("f32", "no driver", false);
    assert_eq!(tally, cases::Tally { checked: 1, wrong: 0 });
    tally.results("f32", &results(1.0), &results(1.1), 1e-3);
    tally.results("f32", &results(1.0), &results(f32::NAN), 1e-3);
    tally.verdict("f32", "recomputation gives the same bits", false);
    tally.absent("f32", "no driver", true);
    assert_eq!(tally, cases::Tally { checked: 4, wrong: 4 });
    assert_eq!(tally.finish(), std::process::ExitCode::FAILURE);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn operations_agree_with_the_processor_and_the_reference() {
    for (precision, most) in [(Precision::F32, SINGLE[0]), (Precision::Bf16, SINGLE[1])] {
        let cuda = open(precision);
        let all = usize::MAX;
        within(&cases::operations(&Cpu, all), &cases::operations(&cuda, all), most);
        within(&cases::operations(&Reference, PLAIN), &cases::operations(&cuda, PLAIN), most);
        within(&cases::adapted(&Reference), &cases::adapted(&cuda), most);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn training_agrees_with_the_processor() {
    for (precision, most) in [(Precision::F32, WHOLE[0]), (Precision::Bf16, WHOLE[1])] {
        let cuda = open(precision);
        let cuda = Arc::new(cuda);
        let reference = cases::adapter_training(Arc::new(Cpu), Keep::All);
        let kept = cases::adapter_training(cuda.clone(), Keep::All);
        within(&reference, &kept, most);
        assert_eq!(kept, cases::adapter_training(cuda.clone(), Keep::All), "two runs, bit for bit");
        assert_eq!(
            kept,
            cases::adapter_training(cuda, Keep::Inputs),
            "recomputation changes nothing"
        );
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn fp8_agrees_with_the_reference() {
    for afterwards in [false, true] {
        let cuda = Arc::new(open(Precision::Bf16));
        if afterwards {
            cuda.scale_afterwards().unwrap();
        }
        within(&cases::fp8(&Reference), &cases::fp8(&*cuda), 2e-2);
        let plain = cases::training(Arc::new(Reference), Keep::All, true);
        let kept = cases::training(cuda.clone(), Keep::All, true);
        within(&plain, &kept, 1.5e-1);
        assert_eq!(kept, cases::training(cuda.clone(), Keep::Inputs, true));
        cases::recording(&*cuda, true);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn products_of_few_rows_agree_with_the_reference_however_they_are_cut() {
    let cuda = open(Precision::Bf16);
    let plain = cases::few(&Reference);
    for index in (0..).take_while(|index| cuda.try_few(*index).unwrap()) {
        within(&plain, &cases::few(&cuda), 2e-2);
        assert!(cases::few_alone(&cuda), "cut {index}");
        cases::recording(&cuda, true);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn the_same_uniforms_draw_the_same_tokens() {
    let cuda = open(Precision::Bf16);
    let drawn = cases::sampling(&cuda);
    let (cpu, plain) = (cases::sampling(&Cpu), cases::sampling(&Reference));
    for (cpu, gpu) in cpu.iter().chain(&plain).zip(drawn.iter().chain(&drawn)) {
        let (same, all) = (cpu.agreeing(gpu), cpu.draws.len());
        // A uniform may fall within rounding of the boundary between two tokens.
        assert!(same.len() * 50 >= all * 49, "{}: {} of {all} tokens agree", cpu.name, same.len());
        let worst = cpu.worst(gpu);
        assert!(worst < 1e-4, "{}: probabilities differ by {worst}", cpu.name);
    }
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn recordings_give_what_running_directly_gives() {
    let cuda = open(Precision::Bf16);
    cases::recording(&cuda, false);
}

#[test]
#[ignore = "needs an NVIDIA GPU"]
fn faults_are_said_clearly() {
    match Cuda::new(99) {
        Ok(_) => panic!("there is no hundredth GPU"),
        Err(e) => assert!(
            e.to_string().contains("NVIDIA driver") || e.to_string().contains("no GPU 99"),
            "{e}"
        ),
    }
    let cuda = open(Precision::Bf16);
    match cuda.zeros(1 << 42, Kind::Activation) {
        Err(Error::Memory { wanted, free, .. }) => {
            assert!(wanted == 1 << 43 && free > 0 && free < wanted)
        }
        Err(other) => panic!("{other}"),
        Ok(_) => panic!("8 TiB do not fit"),
    }
    // The device still works, short buffers are refused, and NaN shows in the scores.
    let mut x = cuda.zeros(8, Kind::Activation).unwrap();
    cuda.upload(&[f32::NAN; 8], &mut x, 0).unwrap();
    let mut short = cuda.zeros(4, Kind::Activation).unwrap();
    assert!(matches!(cuda.swiglu(2, 4, &x, &mut short), Err(Error::Input(_))));
    let (weight, index) = (cuda.zeros(80, Kind::Frozen).unwrap(), cuda.indices(1).unwrap());
    let (mut log_p, mut lse) =
        (cuda.zeros(1, Kind::Exact).unwrap(), cuda.zeros(1, Kind::Exact).unwrap());
    let head = Head {
        m: 1,
        vocab: 10,
        d: 8,
        weight: &weight,
        rows: &index,
        targets: &index,
        temperature: 1.0,
    };
    cuda.head(&head, &x, Scores { log_p: &mut log_p, lse: &mut lse }).unwrap();
    let mut host = [0.0];
    cuda.download(&log_p, 0, &mut host).unwrap();
    assert!(host[0].is_nan());
}
