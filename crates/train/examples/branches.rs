//! A warm-up from scratch and one branch per objective, on a file of traces:
//!
//! ```sh
//! cargo run --release -p catamount-train --example branches -- traces.jsonl training [recipe.toml]
//! ```
//!
//! Run again after an interruption (create `training/stop` to ask for one), it continues where it
//! was.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use catamount_model::{Config, Cpu, Model, Tokenizer};
use catamount_objective::{Objective, Surrogate};
use catamount_search::Stream;
use catamount_train::{
    Card, Dataset, Outcome, Recipe, Run, Snapshot, Weigh, export, prepare, train,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (Some(traces), Some(folder)) = (arguments.first(), arguments.get(1)) else {
        return Err("usage: branches TRACES FOLDER [RECIPE]".into());
    };
    let folder = Path::new(folder);
    let recipe = match arguments.get(2) {
        Some(path) => Recipe::from_toml(&std::fs::read_to_string(path)?)?,
        None => Recipe::default(),
    };
    let traces = catamount_traces::read_any(Path::new(traces))?.traces;
    let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
    let tokenizer = Tokenizer::train_symbols(texts, 4096)?;
    let config = Config::small(tokenizer.vocab(), 128, 4, recipe.max_tokens);
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(recipe.seed))?;
    prepare(&mut model, &recipe)?;
    let data = Dataset::tokenize(&tokenizer, &traces, recipe.max_tokens)?;
    println!(
        "{} parameters, {} traces, {} examples",
        model.config.parameters(),
        data.len(),
        data.examples()
    );

    let stop = Arc::new(AtomicBool::new(false));
    let (flag, sign) = (stop.clone(), folder.join("stop"));
    std::thread::spawn(move || {
        while !sign.exists() {
            std::thread::sleep(Duration::from_millis(200));
        }
        flag.store(true, Ordering::Relaxed);
    });
    let warm_up = Surrogate::new(Objective::Ce, 0);
    let mut warm = None;
    let branches =
        [Objective::Ce, Objective::Ua, Objective::Bfs].map(|o| (o.name(), Surrogate::new(o, 64)));
    for (name, objective) in std::iter::once(("warm-up", warm_up)).chain(branches) {
        if let Some(snapshot) = &warm {
            Snapshot::restore(snapshot, &mut model)?;
        }
        let run = Run::new(folder, name, &stop).resuming(true).showing(true);
        let outcome = train(&mut model, &data, &objective, &recipe, &run)?;
        println!("{name}: {:?}", outcome.summary());
        if matches!(outcome, Outcome::Interrupted(_)) {
            return Ok(());
        }
        let mut card = Card { objective: objective.objective().to_string(), ..Card::default() };
        card.budget = Weigh::budget(&objective);
        export(&model, &tokenizer, &card, &folder.join(name).join("model"))?;
        warm = warm.or(Some(Snapshot::take(&model)?));
    }
    Ok(())
}
