//! Compares logits, log-probabilities and gradients with what `parity/reference.py` wrote in double
//! precision, and saves everything once more for `parity/check.py` to load. Exits with 1 if a
//! relative error of the logits, the log-probabilities or any tensor's gradient reaches 1e-4.
//! PyTorch's own errors in single precision stand beside them.

use std::collections::HashMap;
use std::path::Path;
use std::sync::Arc;

use catamount_model::{
    Activations, Batch, Cpu, Keep, Memory, Model, Result, load, load_adapter, load_gguf, peft_name,
    pieces, save, save_adapter,
};

type Reference = HashMap<String, Vec<f32>>;

fn read(path: &Path) -> std::result::Result<Reference, Box<dyn std::error::Error>> {
    let bytes = std::fs::read(path)?;
    let tensors = safetensors::SafeTensors::deserialize(&bytes)?;
    let numbers =
        |data: &[u8]| data.as_chunks::<4>().0.iter().map(|b| f32::from_le_bytes(*b)).collect();
    Ok(tensors.tensors().into_iter().map(|(name, t)| (name, numbers(t.data()))).collect())
}

/// ‖got - want‖² and ‖want‖².
fn squares(got: &[f32], want: &[f32]) -> (f64, f64) {
    assert_eq!(got.len(), want.len());
    let sum = |it: &mut dyn Iterator<Item = f64>| it.map(|x| x * x).sum::<f64>();
    (
        sum(&mut got.iter().zip(want).map(|(a, b)| f64::from(a - b))),
        sum(&mut want.iter().map(|b| f64::from(*b))),
    )
}

fn ratio((difference, size): (f64, f64)) -> f64 {
    (difference / size.max(1e-60)).sqrt()
}

fn error(got: &[f32], want: &[f32]) -> f64 {
    ratio(squares(got, want))
}

fn run(model: &mut Model<Cpu>, reference: &Reference, prefix: &str) -> Result<(f64, f64)> {
    let tokens: Vec<u32> = reference["tokens"].iter().map(|t| *t as u32).collect();
    let mut batch = Batch::new();
    batch.push(&tokens[..1], &tokens[1..]);
    let mut acts = Activations::new(model, batch.len(), Keep::All)?;
    model.clear_gradients()?;
    model.forward(&batch, &mut acts, None)?;
    let logits = error(&model.logits(&acts)?, &reference[&format!("{prefix}logits")]);
    let log_p = error(&model.score(&mut acts)?, &reference[&format!("{prefix}log_p")]);
    model.backward(&mut acts, &reference["coefficients"])?;
    Ok((logits, log_p))
}

/// The relative error of the whole gradient, and of the worst tensor.
fn gradients(model: &Model<Cpu>, reference: &Reference) -> Result<(f64, f64)> {
    let (mut worst, mut whole) = (0.0f64, (0.0, 0.0));
    let grads: HashMap<&str, _> =
        model.trained().map(|p| (p.name.as_str(), p.grad.as_ref())).collect();
    let mut compare = |parameter: &str, offset: usize, name: &str| -> Result<()> {
        let want = &reference[name];
        let mut got = vec![0.0; want.len()];
        model.backend.download(grads[parameter].expect("trained"), offset, &mut got)?;
        // A key's bias shifts every score of a query alike: its true gradient is zero and only
        // rounding is left.
        if !name.ends_with("k_proj.bias") {
            let (difference, size) = squares(&got, want);
            whole = (whole.0 + difference, whole.1 + size);
            worst = worst.max(ratio((difference, size)));
        }
        Ok(())
    };
    match &model.adapter {
        None => {
            for piece in pieces(&model.config) {
                compare(&piece.parameter, piece.offset, &format!("grad.{}", piece.hugging_face))?;
            }
        }
        Some(adapter) => {
            for (l, layer) in adapter.layers.iter().enumerate() {
                for lora in layer.iter().flatten() {
                    let (rank, mut row) = (adapter.config.rank, 0);
                    for (i, (part, target)) in lora.parts.iter().zip(&lora.targets).enumerate() {
                        let name = |m| format!("lora.grad.{}", peft_name(l, *target, m));
                        compare(&lora.a.name, i * rank * lora.a.shape[1], &name("A"))?;
                        compare(&lora.b.name, row * rank, &name("B"))?;
                        row += part.len();
                    }
                }
            }
        }
    }
    Ok((ratio(whole), worst))
}

fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
    let root = std::env::args().nth(1).ok_or("usage: parity FOLDER (from parity/reference.py)")?;
    let mut worst = 0.0f64;
    println!("{:34} {:>9} {:>9} {:>20}", "", "", "", "PyTorch in f32:");
    println!(
        "{:10} {:5} {:>8} {:>8} {:>9} {:>9} {:>9} {:>9}",
        "model", "", "logits", "log p", "gradient", "worst", "gradient", "worst"
    );
    let mut folders: Vec<_> =
        std::fs::read_dir(&root)?.map(|e| Ok(e?.path())).collect::<std::io::Result<_>>()?;
    folders.sort();
    for folder in folders {
        let reference = read(&folder.join("reference.safetensors"))?;
        let open = |trained: bool| match std::fs::read_to_string(folder.join("gguf.txt")) {
            Ok(path) => load_gguf(Path::new(&path), Arc::new(Cpu), trained),
            Err(_) => load(&folder, Arc::new(Cpu), trained),
        };
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let mut line = |what: &str,
                        (logits, log_p): (f64, f64),
                        (gradient, tensor): (f64, f64),
                        torch: &[f32]| {
            print!("{name:10} {what:5} {logits:8.1e} {log_p:8.1e} {gradient:9.1e} {tensor:9.1e}");
            println!(" {:9.1e} {:9.1e}", torch[0], torch[1]);
            worst = worst.max(logits).max(log_p).max(tensor);
        };
        let (mut model, tokenizer) = open(true)?;
        let scores = run(&mut model, &reference, "")?;
        line("full", scores, gradients(&model, &reference)?, &reference["single"]);
        save(&model, &tokenizer, &folder.join("saved"))?;
        drop(model);
        let (mut model, _) = open(false)?;
        let adapter = load_adapter(&Cpu, &model.config, &folder.join("adapter"), true)?;
        save_adapter(&Cpu, &adapter, "saved", &folder.join("saved-adapter"))?;
        model.swap_adapter(Some(adapter));
        let scores = run(&mut model, &reference, "lora.")?;
        line("lora", scores, gradients(&model, &reference)?, &reference["lora.single"]);
    }
    if worst >= 1e-4 {
        return Err(format!("the worst relative error is {worst:.1e}").into());
    }
    Ok(())
}
