//! Everything that reads what others wrote, as a function of bytes.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Result;
use catamount_evaluate::Log;
use catamount_experiment::{Experiment, Inputs, Plan, Workload};
use catamount_lean::{Recipe, doors};
use catamount_metamath::{Database, Extraction, Metamath};
use catamount_model::{Cpu, load, load_adapter, load_gguf};
use catamount_objective::{Objective, Surrogate};
use catamount_policies::{Http, HttpSettings, Ngram};
use catamount_search::{Environment, Policy, Request, StateId, Stream};
use catamount_traces::parquet::read_scores;
use catamount_traces::{LogP, Theorem, leandojo, parquet, read_any, validate};

use crate::verdicts::TOY;
use crate::{readers, seeds};

/// What reads an input. Whether it likes it does not matter; that it comes back does.
pub type Reading = Box<dyn FnMut(&[u8])>;

/// A parser, or what stands behind one.
pub struct Target {
    /// Its name, which is also that of its folder of kept inputs.
    pub name: &'static str,
    /// Valid inputs.
    pub seeds: Vec<Vec<u8>>,
    /// Reads an input.
    pub read: Reading,
    /// How many inputs it takes while others take a hundred.
    pub share: usize,
}

/// The names of all targets.
pub const NAMES: [&str; 27] = [
    "weights",
    "traces",
    "leandojo",
    "parquet",
    "ngram",
    "experiment",
    "log",
    "manifest",
    "safetensors",
    "config",
    "tokenizer",
    "adapter",
    "gguf",
    "database",
    "tactic",
    "completion",
    "wire",
    "terms",
    "olean",
    "scores",
    "lora",
    "checkpoint",
    "service",
    "stamp",
    "plan",
    "recipe",
    "lake",
];

impl Target {
    /// A target by its name. Files it needs lie in the folder, which is its own.
    pub fn new(name: &str, folder: &Path) -> Result<Target> {
        let at = |name: &str| folder.join(name);
        let (mut share, name) = (100, *NAMES.iter().find(|n| **n == name).unwrap_or(&""));
        let (mut seeds, read): (Vec<Vec<u8>>, Reading) = match name {
            "weights" => (vec![WEIGHTS.into()], Box::new(weights)),
            "experiment" => {
                let presets = catamount_experiment::PRESETS.iter();
                let texts = presets.map(|(_, _, text)| text.as_bytes().to_vec()).collect();
                (texts, Box::new(experiment))
            }
            "traces" | "leandojo" | "parquet" | "ngram" => {
                let [lines, json, tables] = seeds::trace_files(folder)?;
                let path = at("input");
                match name {
                    "traces" => (lines, file(path, |path| drop((read_any(path), validate(path))))),
                    "leandojo" => (json, file(path, |path| drop(leandojo::read(path)))),
                    "parquet" => (tables, file(path, |path| drop(parquet::read(path)))),
                    _ => (lines, file(path, |path| drop(Ngram::open(path, 0.8)))),
                }
            }
            "log" | "manifest" => {
                std::fs::write(at("cell.jsonl"), LOG)?;
                std::fs::write(at("cell.manifest.json"), MANIFEST)?;
                let log = at("cell.jsonl");
                let (seed, path) = match name {
                    "log" => (LOG, log.clone()),
                    _ => (MANIFEST, at("cell.manifest.json")),
                };
                let read = move |_: &Path| {
                    let _ = Log::read(&log);
                    let _ = catamount_report::compare(&log, &log);
                };
                (vec![seed.into()], file(path, read))
            }
            "safetensors" | "config" | "tokenizer" | "adapter" | "lora" | "gguf" => {
                share = 50;
                let model = seeds::model(folder)?;
                let folder = folder.to_path_buf();
                let config = model.config.clone();
                let whole = move |_: &Path| {
                    if let Ok((_, tokenizer)) = load(&folder, Arc::new(Cpu), false) {
                        let _ = tokenizer.prompt("|- ph").and_then(|ids| tokenizer.decode(&ids));
                    }
                };
                match name {
                    "gguf" => {
                        let read = |path: &Path| drop(load_gguf(path, Arc::new(Cpu), false));
                        (vec![seeds::gguf(&model)?], file(at("model.gguf"), read))
                    }
                    "adapter" | "lora" => {
                        let path = match name {
                            "adapter" => at("adapter_config.json"),
                            _ => at("adapter_model.safetensors"),
                        };
                        let seed = std::fs::read(&path)?;
                        let folder = path.parent().unwrap_or(Path::new(".")).to_path_buf();
                        let read =
                            move |_: &Path| drop(load_adapter(&Cpu, &config, &folder, false));
                        (vec![seed], file(path, read))
                    }
                    _ => {
                        let path = match name {
                            "safetensors" => at("model.safetensors"),
                            "config" => at("config.json"),
                            _ => at("tokenizer.json"),
                        };
                        (vec![std::fs::read(&path)?], file(path, whole))
                    }
                }
            }
            "database" => {
                share = 50;
                (vec![TOY.into(), SMALL.into()], Box::new(database))
            }
            "tactic" => {
                let toy = Metamath::new(Database::from_text("toy.mm", TOY.into())?);
                let seeds = TACTICS.iter().map(|tactic| tactic.as_bytes().to_vec()).collect();
                (seeds, Box::new(move |bytes| tactic(&toy, bytes)))
            }
            "completion" => {
                share = 25;
                let seeds = COMPLETIONS.iter().map(|reply| reply.as_bytes().to_vec()).collect();
                (seeds, completion()?)
            }
            "wire" => {
                let seeds = ANSWERS.iter().map(|answer| answer.as_bytes().to_vec()).collect();
                (seeds, Box::new(|bytes| _ = doors::answer(bytes, "7")))
            }
            "terms" => {
                let read = |bytes: &[u8]| _ = std::str::from_utf8(bytes).map(doors::terms);
                (vec![TERMS.into()], Box::new(read))
            }
            "olean" => (Vec::new(), Box::new(|bytes| _ = doors::compiled(bytes.to_vec()))),
            "scores" => (Vec::new(), file(at("s.parquet"), |path| drop(read_scores(path)))),
            "checkpoint" => {
                share = 25;
                readers::checkpoint(folder)?
            }
            "service" => {
                share = 25;
                readers::service()?
            }
            "stamp" | "plan" => {
                // A whole report is made of a plan.
                share = if name == "plan" { 4 } else { 50 };
                readers::study(name, folder)?
            }
            "recipe" => {
                let read = |path: &Path| drop(Recipe::open(&path.to_string_lossy()));
                (vec![RECIPE.into()], file(at("recipe.toml"), read))
            }
            "lake" => {
                let read = |path: &Path| _ = path.parent().map(doors::packages);
                (vec![LAKE.into()], file(at("lake-manifest.json"), read))
            }
            _ => anyhow::bail!("the targets are {}", NAMES.join(", ")),
        };
        seeds.extend(seeds::kept(name)?);
        Ok(Target { name, seeds, read, share })
    }
}

/// A reader of files, given bytes.
fn file(path: std::path::PathBuf, mut read: impl FnMut(&Path) + 'static) -> Reading {
    Box::new(move |bytes| {
        // A file that cannot be written reads as the one before; the folder is a temporary one.
        if std::fs::write(&path, bytes).is_ok() {
            read(&path);
        }
    })
}

const WEIGHTS: &str = "{\"name\": \"t\", \"logp\": [-0.1, -4.6, -0.7]}";

/// A file of log-probabilities as `catamount weights` reads it, under every objective.
fn weights(bytes: &[u8]) {
    let lines = bytes.split(|byte| *byte == b'\n').map(LogP::parse);
    let inputs: Vec<LogP> = lines.map_while(Result::ok).flatten().collect();
    let traces: Vec<&[f64]> = inputs.iter().map(|input| input.logp.as_slice()).collect();
    for objective in Objective::ALL {
        for budget in [0, 7, 64, u64::MAX] {
            for weighed in Surrogate::new(objective, budget).weigh_all(&traces).iter().flatten() {
                let mut numbers = weighed.weights.iter().chain([&weighed.log_success]);
                assert!(numbers.all(|x| x.is_finite()), "{objective} {budget} {traces:?}");
                assert!(weighed.log_success <= 0.0, "{objective} {budget} {traces:?}");
            }
        }
    }
}

fn experiment(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(experiment) = Experiment::parse(text, "input.toml")
        && let Ok(plan) = Plan::new(&experiment, &Inputs::named("input.toml"))
    {
        let workload = Workload::unread(&experiment);
        let _ = plan.describe(&experiment, &workload, Path::new("study"));
    }
}

const SMALL: &str = "$c ( ) -> wff |- $. $v ph ps $.
wph $f wff ph $. wps $f wff ps $. wi $a wff ( ph -> ps ) $.
ax-1 $a |- ( ph -> ( ps -> ph ) ) $.
${ mp.1 $e |- ph $. mp.2 $e |- ( ph -> ps ) $. ax-mp $a |- ps $. $}
a1 $p |- ( ph -> ( ps -> ph ) ) $= wph wps ax-1 $.
";

/// A database, and everything that is then done with it.
fn database(bytes: &[u8]) {
    if let Ok(database) = Database::from_text("input.mm", bytes.to_vec()) {
        let _ = database.extract(&Extraction::default(), |_, _| {});
        for id in database.theorems() {
            let _ = (database.statement(id), database.key(id));
        }
    }
}

const TACTICS: [&str; 6] = [
    "ax-mp $ ph ( ps -> ps )",
    "syl $ ps -. A. x -. x = y",
    "mpd $ ps ( ph -> ( ps -> ch ) )",
    "ax-1",
    "mp2 $ ph ph $ ps ps",
    "ax-gen",
];

/// A tactic at the root of a theorem, and as a whole proof.
fn tactic(toy: &Metamath, bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes).into_owned();
    let theorem = Theorem { name: "syl".into(), ..Theorem::default() };
    if let Ok(mut session) = toy.open(&theorem) {
        let _ = session.apply(StateId(0), &text);
    }
    let _ = toy.check(&theorem, &[text]);
}

const COMPLETIONS: [&str; 2] = [
    r#"{"choices":[{"text":" simp ","index":0,"logprobs":{"token_logprobs":[-1.5,-0.25]}}]}"#,
    r#"{"choices":[{"text":"rfl","logprobs":{"content":[{"logprob":-0.5}]}}]}"#,
];

/// A server that answers with the input, and the policy that asks it.
fn completion() -> Result<Reading> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let reply: Arc<Mutex<Vec<u8>>> = Arc::default();
    let served = Arc::clone(&reply);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let reply = served.lock().unwrap_or_else(PoisonError::into_inner).clone();
            answer(stream, &reply);
        }
    });
    let settings = HttpSettings {
        timeout: Duration::from_secs(5),
        retries: 0,
        concurrency: 1,
        ..HttpSettings::new(url)
    };
    let mut policy = Http::new(settings)?;
    Ok(Box::new(move |bytes| {
        *reply.lock().unwrap_or_else(PoisonError::into_inner) = bytes.to_vec();
        policy.submit(Request {
            id: 0,
            state: "⊢ p".into(),
            samples: 1,
            stream: Stream::new(1),
            urn: None,
        });
        for (_, answer) in policy.poll() {
            for sample in answer.into_iter().flatten() {
                assert!(sample.log_p.is_finite() && sample.log_p <= 0.0, "{sample:?}");
            }
        }
    }))
}

/// Takes a request in, as far as it is there, and sends a reply: as the body of a good answer, or,
/// if it looks like one, as the whole answer.
fn answer(mut stream: TcpStream, reply: &[u8]) {
    let mut request = [0; 4096];
    let _ = stream.read(&mut request);
    if !reply.starts_with(b"HTTP") {
        let head = format!(
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
            reply.len()
        );
        let _ = stream.write_all(head.as_bytes());
    }
    let _ = stream.write_all(reply);
}

/// What a Lean server answers.
const ANSWERS: [&str; 3] = [
    r#"{"id":"7","ok":true,"ctx":1,"state":2,"goals":"⊢ p","done":false}"#,
    r#"{"id":"7","ok":false,"kind":"tactic","error":"no goals"}"#,
    concat!(
        r#"{"id":"7","ok":true,"done":true,"axioms":["propext"],"library_axioms_visible":true,"#,
        r#""theorems":[{"name":"t","line":1,"statement":"theorem t : p","proof":"by simp","#,
        r#""steps":[{"state":"⊢ p","tactic":"simp"}]}],"errors":[{"line":3,"error":"x"}]}"#
    ),
];

pub(crate) const LOG: &str = concat!(
    r#"{"theorem":"a","outcome":"proved","expansions":3,"tactics":["ax-1"],"axioms":["ax-1"],"#,
    r#""demonstrated":2,"valid":2,"rejected":1,"distinct":3,"duplicates":0,"depths":[2,1],"#,
    r#""tokens":9}"#,
    "\n",
    r#"{"theorem":"b","outcome":"error","expansions":0,"valid":0,"rejected":0,"distinct":0,"#,
    r#""duplicates":0,"depths":[],"tokens":0,"reason":"lost"}"#,
    "\n",
    r#"{"theorem":"c","outcome":"budget","expansions":8,"valid":0,"rejected":8,"distinct":5,"#,
    r#""duplicates":3,"depths":[8],"tokens":40}"#,
    "\n"
);
pub(crate) const MANIFEST: &str = concat!(
    r#"{"identity":{"format":2,"policy":{"kind":"ngram","file":"0a"},"environment":{"kind":"#,
    r#""metamath","database":"1b"},"pool":"2c","deployment":{"strategy":"bfs","budget":8,"#,
    r#""max_depth":64,"temperature":0.8,"top_p":1.0,"distinct":false,"max_tokens":32,"#,
    r#""bfs_beam":2,"bfs_samples":4,"bfs_alpha":0.5,"bfs_restart_when_empty":true},"seed":1,"#,
    r#""limits":{"search":null,"theorem":null}},"objective":"ce","policy":"p","#,
    r#""environment":"e","pool":{"file":"f","theorems":3,"steps":null,"names":["a","b","c"]},"#,
    r#""version":"0.1.0","commit":null,"command":"catamount eval"}"#
);

/// `theorem t : p -> p`, and a lemma beside it, in the format of lean4export.
const TERMS: &str = concat!(
    r#"{"meta":{"exporter":{"name":"x","version":"1"},"format":{"version":"3.1.0"}}}"#,
    "\n",
    r#"{"in":1,"str":{"pre":0,"str":"t"}}"#,
    "\n",
    r#"{"in":2,"num":{"pre":1,"i":7}}"#,
    "\n",
    r#"{"in":3,"str":{"pre":0,"str":"u"}}"#,
    "\n",
    r#"{"il":1,"param":3}"#,
    "\n",
    r#"{"il":2,"succ":1}"#,
    "\n",
    r#"{"il":3,"imax":[1,2]}"#,
    "\n",
    r#"{"ie":0,"sort":0}"#,
    "\n",
    r#"{"ie":1,"bvar":0}"#,
    "\n",
    r#"{"ie":2,"bvar":1}"#,
    "\n",
    r#"{"ie":3,"forallE":{"name":1,"type":1,"body":2,"binderInfo":"default"}}"#,
    "\n",
    r#"{"ie":4,"forallE":{"name":3,"type":0,"body":3,"binderInfo":"implicit"}}"#,
    "\n",
    r#"{"ie":5,"lam":{"name":1,"type":1,"body":1,"binderInfo":"default"}}"#,
    "\n",
    r#"{"ie":6,"lam":{"name":3,"type":0,"body":5,"binderInfo":"implicit"}}"#,
    "\n",
    r#"{"ie":7,"const":{"name":2,"us":[1]}}"#,
    "\n",
    r#"{"ie":8,"natVal":"12"}"#,
    "\n",
    r#"{"ie":9,"app":{"fn":7,"arg":8}}"#,
    "\n",
    r#"{"thm":{"name":2,"levelParams":[3],"type":4,"value":6,"all":[2]}}"#,
    "\n",
    r#"{"thm":{"name":1,"levelParams":[],"type":4,"value":6,"all":[1]}}"#,
    "\n",
);
const RECIPE: &str = "name = \"cedar\"\nrepository = \"https://example.org/cedar\"\n\
    commit = \"8f9d9cff6bd728b17a24e163c9402775d9e6a365\"\nfolder = \"lean\"\n\
    libraries = [\"batteries\"]\nmodules = [\"Cedar\"]\nleave_out = [\"Cedar.Slow\"]\n";
const LAKE: &str = concat!(
    r#"{"version":"1.1.0","packagesDir":".lake/packages","packages":[{"url":"https://e.org/a","#,
    r#""type":"git","name":"mathlib","rev":"29dcec074de168ac2bf835a77ef68bbe069194c5"}]}"#
);
