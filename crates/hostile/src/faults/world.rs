//! What the faults happen in: the program, a small database, traces of it, and an evaluation whose
//! log is known.

use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::faults::server::KEY;
use crate::seeds;
use crate::verdicts::TOY;

/// Longer than anything here may take.
const PATIENCE: Duration = Duration::from_secs(180);

/// A study in which something is to be chosen.
const TUNE: &str = r#"
name = "tune"
model = { hidden = 32, layers = 1, vocab = 400, positions = 128, tokenizer = "symbols" }
data = { environment = "metamath", database = "toy.mm", split = "0.6,0.2,0.2" }
evaluation = { strategies = ["bfs"], budgets = [6] }

[[objectives]]
objective = "ce"

[[objectives]]
objective = "auto"
"#;
/// A study of seconds.
const RUN: &str = r#"
name = "run"
model = { hidden = 16, layers = 1, vocab = 100, positions = 64, tokenizer = "symbols" }
data = { environment = "metamath", database = "toy.mm", split = "0.6,0.2,0.2" }
objectives = [{ objective = "ce" }]
evaluation = { strategies = ["bfs"], budgets = [4], max_tokens = 4, trees = 0 }
warm_up = { max_steps = 1, max_tokens = 64 }
branch = { max_steps = 1, max_tokens = 64 }
"#;
/// A search that found a proof in Lean.
const LEAN_LOG: &str = concat!(
    r#"{"theorem":"t","outcome":"proved","expansions":1,"tactics":["omega"],"valid":1,"#,
    r#""rejected":0,"distinct":1,"duplicates":0,"depths":[1],"tokens":2}"#,
    "\n"
);

/// How a run of the program ended.
#[derive(Debug)]
pub struct Ran {
    /// Its exit status; none if a signal ended it.
    pub code: Option<i32>,
    /// The signal that ended it.
    pub signal: Option<i32>,
    /// Everything it said.
    pub said: String,
    /// How long it took.
    pub took: Duration,
    /// Whether it had to be ended.
    pub hung: bool,
}

impl Ran {
    /// Refuses what may never happen, whatever the fault.
    pub fn decent(&self) -> Result<(), String> {
        let said = &self.said;
        if self.hung {
            return Err(format!("it hung for {:?}", self.took));
        }
        if said.contains("panicked") || self.code == Some(101) {
            return Err(format!("it panicked: {said}"));
        }
        if said.contains(KEY) || said.contains(&KEY[..16]) {
            return Err(format!("it showed the key: {said}"));
        }
        Ok(())
    }

    /// Refuses another end than by one of these signals or exit statuses.
    pub fn ended_by(&self, signals: &[i32], codes: &[i32]) -> Result<(), String> {
        self.decent()?;
        match self.signal {
            Some(signal) if signals.contains(&signal) => Ok(()),
            Some(signal) => Err(format!("signal {signal} instead of {signals:?}: {}", self.said)),
            None => self.ended(codes),
        }
    }

    /// Refuses another exit status than these.
    pub fn ended(&self, codes: &[i32]) -> Result<(), String> {
        self.decent()?;
        match self.code {
            Some(code) if codes.contains(&code) => Ok(()),
            code => Err(format!("exit status {code:?} instead of {codes:?}: {}", self.said)),
        }
    }
}

/// The evaluation that is interrupted.
pub const EVAL: &str = "eval --database toy.mm --theorems data/test.jsonl --policy \
                        ngram:data/test.jsonl --strategy mcts --budget 100 --seed 3 \
                        --concurrency 2 \
                        --threads 1";

/// The program and its files.
pub struct World {
    folder: tempfile::TempDir,
    program: PathBuf,
    /// The log that [`EVAL`] writes when nothing happens.
    pub log: Vec<u8>,
    /// How long that takes.
    pub duration: Duration,
}

impl World {
    /// Prepares the files and runs the evaluation once in peace.
    pub fn new(program: &Path) -> Result<World> {
        let folder = tempfile::tempdir()?;
        let put = |name: &str, text: &str| std::fs::write(folder.path().join(name), text);
        put("toy.mm", TOY)?;
        put("logp.jsonl", "{\"name\": \"t\", \"logp\": [-0.1, -4.6]}\n")?;
        put("tune.toml", TUNE)?;
        put("run.toml", RUN)?;
        std::fs::create_dir(folder.path().join("library"))?;
        put("library/T.lean", "theorem t (a b : Nat) : a + b = b + a := by\n  omega\n")?;
        let statement = r#""name":"t","statement":"theorem t (a b : Nat) : a + b = b + a""#;
        put("lean-claims.jsonl", &format!("{{{statement},\"tactics\":[\"omega\"]}}\n"))?;
        put("lean.jsonl", &format!("{{{statement},\"steps\":[]}}\n"))?;
        put("lean-log.jsonl", LEAN_LOG)?;
        put("claims.jsonl", "{\"name\": \"a1i\", \"tactics\": [\"ax-1\"]}\n")?;
        let model = folder.path().join("model");
        std::fs::create_dir(&model)?;
        seeds::model(&model)?;
        let mut world = World {
            folder,
            program: program.to_path_buf(),
            log: Vec::new(),
            duration: Duration::ZERO,
        };
        let data = "data metamath --database toy.mm --split 0,0,rest --out data";
        for arguments in [data.to_owned(), format!("{EVAL} --out peace.jsonl")] {
            let ran = world.run(&arguments)?;
            world.duration = ran.took;
            if ran.code != Some(0) {
                bail!("{arguments}: {}", ran.said);
            }
        }
        world.log = std::fs::read(world.path("peace.jsonl"))?;
        // A study is a folder of cells.
        let cells = world.fresh("study/cells")?;
        for ending in ["jsonl", "manifest.json"] {
            let from = world.path(&format!("peace.{ending}"));
            std::fs::copy(from, cells.join(format!("ngram-mcts-100-3.{ending}")))?;
        }
        Ok(world)
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The program, with arguments, ready to be started.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        self.prepare(&mut command);
        command.args(arguments.split_whitespace());
        command
    }

    /// A shell that does something first; `"$@"` is the program with its arguments.
    pub fn shell(&self, script: &str, arguments: &str) -> Command {
        let mut command = Command::new("sh");
        self.prepare(&mut command);
        command.args(["-c", script, "sh"]).arg(&self.program).args(arguments.split_whitespace());
        command
    }

    fn prepare(&self, command: &mut Command) {
        command
            .current_dir(self.folder.path())
            .env("OPENAI_API_KEY", KEY)
            .env("RUST_BACKTRACE", "0")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
    }

    /// Runs the program to its end.
    pub fn run(&self, arguments: &str) -> Result<Ran> {
        finish(self.command(arguments))
    }

    /// A folder for one try, gone before the next of the same name.
    pub fn fresh(&self, name: &str) -> Result<PathBuf> {
        let path = self.path(name);
        if path.exists() {
            std::fs::remove_dir_all(&path)?;
        }
        std::fs::create_dir_all(&path)?;
        Ok(path)
    }

    /// Resumes an evaluation in peace and compares its log with the known one.
    pub fn resumes(&self, out: &str) -> Result<(), String> {
        let ran = self.run(&format!("{EVAL} --out {out}")).map_err(|error| error.to_string())?;
        ran.ended(&[0])?;
        match std::fs::read(self.path(out)) {
            Ok(log) if log == self.log => Ok(()),
            Ok(_) => Err("the log after resuming is another one".into()),
            Err(error) => Err(format!("there is no log after resuming: {error}")),
        }
    }
}

/// Waits for a process, unless it takes too long.
pub fn finish(mut command: Command) -> Result<Ran> {
    let child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
    wait(child)
}

/// Waits for a process that was started.
pub fn wait(mut child: Child) -> Result<Ran> {
    let began = Instant::now();
    let readers = [child.stdout.take().map(read), child.stderr.take().map(read)];
    let mut hung = false;
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if began.elapsed() > PATIENCE {
            hung = true;
            child.kill()?;
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    let took = began.elapsed();
    let texts = readers.into_iter().flatten().filter_map(|reader| reader.join().ok());
    let (code, signal) = (status.code(), status.signal());
    Ok(Ran { code, signal, said: texts.collect(), took, hung })
}

fn read(mut from: impl std::io::Read + Send + 'static) -> std::thread::JoinHandle<String> {
    std::thread::spawn(move || {
        let mut bytes = Vec::new();
        // What was said before the pipe broke counts.
        let _ = from.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    })
}
