//! Readers that need more than a file: a checkpoint whose checksums are right, a service that
//! listens, a study's folder.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use anyhow::{Context, Result};
use catamount_base::Checksums;
use catamount_experiment::{Experiment, Inputs, Plan, preset_text};
use catamount_metamath::{Database, Metamath};
use catamount_model::{Config, Cpu, Model, Tokenizer};
use catamount_objective::{Objective, Surrogate};
use catamount_report::{PLAN, StudyPlan};
use catamount_search::Stream;
use catamount_service::{Limits, Service};
use catamount_train::{Batching, Checkpoint, Dataset, Recipe, Run, train};
use serde_json::json;

use crate::seeds;
use crate::target::{LOG, MANIFEST, Reading};
use crate::verdicts::TOY;

/// Valid inputs, and what reads such.
pub type Reader = (Vec<Vec<u8>>, Reading);

/// Files of a training checkpoint: its position or its tensors, with checksums that fit, so that
/// what is damaged is not found by them.
pub fn checkpoint(folder: &Path) -> Result<Reader> {
    let traces: Vec<_> = seeds::traces().into_iter().filter(|t| !t.steps.is_empty()).collect();
    let texts = traces.iter().flat_map(|t| &t.steps).flat_map(|s| [&s.state, &s.tactic]);
    let tokenizer = Tokenizer::train_symbols(texts, 270)?;
    let config = Config::small(tokenizer.vocab(), 8, 1, 64);
    let mut model = Model::init(Arc::new(Cpu), config, Stream::new(1))?;
    let data = Dataset::tokenize(&tokenizer, &traces, 64)?;
    let batch = Batching { examples: 2, tokens: 128, recompute: false };
    let recipe = Recipe { max_tokens: 64, max_steps: Some(1), batch, ..Recipe::default() };
    let (folder, go) = (folder.to_path_buf(), AtomicBool::new(false));
    let objective = Surrogate::new(Objective::Ce, 1);
    train(&mut model, &data, &objective, &recipe, &Run::new(&folder, "run", &go))?;
    let newest = Checkpoint::latest(&folder.join("run/checkpoints"), &mut |_| {})?;
    let place = newest.context("training left no checkpoint")?.folder().to_path_buf();
    let names = ["position.json", "state.safetensors", "checksums.json"];
    let sound: Vec<Vec<u8>> =
        names.iter().map(|name| std::fs::read(place.join(name))).collect::<Result<_, _>>()?;
    let seeds = sound[..2].to_vec();
    let read = move |bytes: &[u8]| {
        // A position is JSON; what is not is taken for tensors.
        let altered = usize::from(!bytes.starts_with(b"{"));
        for (at, name) in names.iter().enumerate() {
            let bytes = if at == altered { bytes } else { &sound[at] };
            let _ = std::fs::write(place.join(name), bytes);
        }
        if let Ok(sums) = Checksums::of(&place, &names[..2])
            && let Ok(text) = serde_json::to_vec(&sums)
        {
            let _ = std::fs::write(place.join(names[2]), text);
        }
        if let Ok(checkpoint) = Checkpoint::open(&place) {
            let _ = (checkpoint.step(), checkpoint.restore_parameters(&mut model));
        }
        let run = Run::new(&folder, "run", &go).resuming(true);
        let _ = train(&mut model, &data, &objective, &recipe, &run);
    };
    Ok((seeds, Box::new(read)))
}

/// The stamp of a study's step, and its plan: what `run --dry-run` and `report` make of them.
pub fn study(name: &str, folder: &Path) -> Result<Reader> {
    let text = preset_text("demo")?;
    let experiment = Experiment::parse(text, "demo")?;
    let plan = Plan::new(&experiment, &Inputs::named("demo"))?;
    std::fs::create_dir_all(folder.join("steps"))?;
    let folder = folder.to_path_buf();
    if name == "plan" {
        let cell = r#"{"title":"t","seeds":{"experiment":1,"warm_up":2,"branch":3},"cells":[]}"#;
        let whole = StudyPlan { command: Some("catamount run".into()), ..StudyPlan::default() };
        let seeds = vec![cell.into(), serde_json::to_vec(&whole)?];
        let cell = folder.join("cells");
        std::fs::create_dir_all(&cell)?;
        std::fs::write(cell.join("ce-bfs-8-1.jsonl"), LOG)?;
        std::fs::write(cell.join("ce-bfs-8-1.manifest.json"), MANIFEST)?;
        let read = move |bytes: &[u8]| {
            if std::fs::write(folder.join(PLAN), bytes).is_ok() {
                let _ = catamount_report::report(&folder);
            }
        };
        return Ok((seeds, Box::new(read)));
    }
    let outline = plan.outline(&experiment, &folder);
    let step = outline.steps.first().context("the plan has no steps")?;
    let (path, key) = (folder.join("steps").join(format!("{}.json", step.id)), &step.key);
    let file = json!({"bytes": 3, "blake3": "0".repeat(64)});
    let done = json!({"key": key, "done": true, "seconds": 1.5, "outputs": {"data/train": file}});
    let to = json!({"place": "stale/0001-data", "files": ["data"], "goal": "return"});
    let moving = json!({"key": key, "done": false, "seconds": 0.0, "moving": to});
    let read = move |bytes: &[u8]| {
        if std::fs::write(&path, bytes).is_ok() {
            let _ = plan.outline(&experiment, &folder);
        }
    };
    Ok((vec![done.to_string().into(), moving.to_string().into()], Box::new(read)))
}

/// Requests to a service, as bytes on its socket. After each it is asked how it is: a thread that
/// panicked would answer nobody any more.
pub fn service() -> Result<Reader> {
    let toy: Arc<Metamath> = Arc::new(Metamath::new(Database::from_text("toy.mm", TOY.into())?));
    let limits = Limits { queue: 8, sessions: 8, idle: Duration::from_secs(1), threads: 1 };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let stop = AtomicBool::new(false);
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let _ = Service::new(toy, limits).run(any, &stop, |address| drop(sender.send(address)));
    });
    let address = receiver.recv().context("the service did not begin to listen")?;
    let request = |path: &str, body: &str| {
        let length = body.len();
        format!("POST {path} HTTP/1.1\r\nHost: x\r\nContent-Length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let seeds = vec![
        request("/open", r#"{"name":"syl","statement":""}"#),
        request("/run", r#"{"session":1,"state":0,"tactic":"ax-mp $ ph ps","release":[3]}"#),
        request("/judge", r#"{"theorem":{"name":"a1i"},"tactics":["ax-mp $ ph ph","ax-1"]}"#),
        request("/check", r#"{"name":"t","header":"","statement":"theorem t","tactics":[]}"#),
        request("/file", r#"{"text":"example : True := trivial","limit":1.5}"#),
        request("/close", r#"{"session":1}"#),
        b"GET /status HTTP/1.1\r\nHost: x\r\n\r\n".to_vec(),
    ];
    let read = move |bytes: &[u8]| {
        let _ = exchange(&address, bytes);
        let well = exchange(&address, b"GET /status HTTP/1.1\r\nConnection: close\r\n\r\n");
        assert!(
            well.as_ref().is_ok_and(|answer| answer.starts_with(b"HTTP/1.1 200")),
            "the service answers no more: {well:?}"
        );
    };
    Ok((seeds, Box::new(read)))
}

/// Sends bytes and nothing after them, and takes in what comes back.
fn exchange(address: &str, bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    stream.set_write_timeout(Some(Duration::from_secs(10)))?;
    stream.write_all(bytes)?;
    stream.shutdown(std::net::Shutdown::Write)?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer)?;
    Ok(answer)
}
