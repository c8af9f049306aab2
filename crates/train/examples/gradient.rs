//! Takes one optimizer step with Catamount's own trainer and saves the model.
//!
//!     gradient MODEL TRACES OBJECTIVE BUDGET OUT
//!
//! The recipe leaves nothing between gradient and step but AdamW's division at its first step, step
//! = g / (|g| + eps), which can be undone: whoever compares the two models has the gradient.

use std::env;
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use catamount_model::{Cpu, load, save};
use catamount_objective::{Objective, Surrogate};
use catamount_train::{Dataset, Recipe, Run, train};

const RECIPE: &str = "
max_steps = 1
[batch]
examples = 1000000
[optimizer]
lr = 1.0
eps = 0.5
weight_decay = 0.0
clip = 0.0
[schedule]
warmup = 0.0
decay = false
";

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [folder, traces, objective, budget, out] = arguments.as_slice() else {
        return Err("usage: rust-gradient MODEL TRACES OBJECTIVE BUDGET OUT".into());
    };
    let (mut model, tokenizer) = load(Path::new(folder), Arc::new(Cpu), true)?;
    let traces = catamount_traces::read_any(Path::new(traces))?.traces;
    let recipe = Recipe::from_toml(RECIPE)?;
    let data = Dataset::tokenize(&tokenizer, &traces, recipe.max_tokens)?;
    let surrogate = Surrogate::new(objective.parse::<Objective>()?, budget.parse()?);
    let (out, stop) = (Path::new(out), AtomicBool::new(false));
    let outcome = train(
        &mut model,
        &data,
        &surrogate,
        &recipe,
        &Run::new(&out.join("run"), objective, &stop),
    )?;
    let last = outcome.summary().last.as_ref().ok_or("the trainer took no step")?;
    save(&model, &tokenizer, out)?;
    println!(
        "{{\"steps\": {}, \"loss\": {}, \"tactics\": \
     {}}}",
        outcome.summary().step,
        last.loss,
        last.tactics
    );
    Ok(())
}
