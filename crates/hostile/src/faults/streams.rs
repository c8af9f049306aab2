//! What is said, where it cannot be: standard output and standard error on a full device, and with
//! nobody reading.

use std::fs::OpenOptions;
use std::process::{Command, Stdio};

use anyhow::{Result, bail};

use crate::faults::row::Row;
use crate::faults::world::{World, finish};

/// Every command, and subcommand, that says something on standard output.
const SAYING: [&str; 39] = [
    "--help",
    "--version",
    "help eval",
    "data --help",
    "weights --objective bfs --budget 8 logp.jsonl",
    "theory --out theory",
    "data metamath --database toy.mm --out output/extracted",
    "data split data/test.jsonl --out output/parts",
    "data convert data/test.jsonl output/t.parquet",
    "data convert data/test.jsonl output/t.json",
    "data validate data/test.jsonl",
    "data stats data/test.jsonl",
    "prove id --database toy.mm --policy ngram:data/test.jsonl --strategy bfs --budget 9",
    "prove id --database toy.mm --policy ngram:data/test.jsonl --strategy bfs --budget 9 --tree",
    "eval --database toy.mm --theorems data/test.jsonl --limit 2 --policy ngram:data/test.jsonl \
     --strategy bfs --budget 5 --out output/cell.jsonl",
    "check --database toy.mm claims.jsonl",
    "export --format mm --database toy.mm peace.jsonl",
    "export --format lean --theorems data/test.jsonl peace.jsonl",
    "run demo --print",
    "run demo --dry-run",
    "run --schema",
    "train demo --dry-run",
    "calibrate demo --dry-run",
    "score --model model --device cpu data/test.jsonl",
    "generate --model model --device cpu -k 2 --max-tokens 4 ph",
    "compare peace.jsonl peace.jsonl",
    "compare peace.jsonl peace.jsonl --json",
    "report study",
    "verify study --database toy.mm",
    "verify study --hashes-only",
    "doctor",
    "tune tune.toml --dry-run",
    "step demo --out study --probe",
    "completions bash",
    "completions zsh",
    "man",
    "man --out output/man",
    "help tune",
    "data trace-lean --help",
];

/// Those that need Lean, tried where it has been prepared.
const SAYING_WITH_LEAN: [&str; 3] = [
    "check --env lean lean-claims.jsonl",
    "export --format lean4export --theorems lean.jsonl --out output/terms lean-log.jsonl",
    "data trace-lean library/T.lean --root library --out output/traced.jsonl",
];

/// Those that listen until they are stopped.
const SERVING: [&str; 2] =
    ["serve --env metamath --database toy.mm --listen 127.0.0.1:0", "view study --port 0"];

/// Those that take minutes and checkouts of other people's libraries.
const ELSEWHERE: [&str; 2] = ["lean build", "lean trace"];

/// Refuses to leave a command out: every one has a manual page.
fn all_are_tried(world: &World) -> Result<()> {
    world.run("man --out output/pages")?.ended(&[0]).map_err(anyhow::Error::msg)?;
    let words = |text: &str| format!("{} ", text.replace('-', " "));
    let lists = [&SAYING[..], &SAYING_WITH_LEAN, &SERVING, &ELSEWHERE];
    let tried: Vec<String> = lists.concat().into_iter().map(words).collect();
    for page in std::fs::read_dir(world.path("output/pages"))? {
        let name = page?.file_name().to_string_lossy().into_owned();
        let Some(name) = name.strip_suffix(".1").and_then(|it| it.strip_prefix("catamount-"))
        else {
            continue;
        };
        let name = words(name);
        if !tried.iter().any(|arguments| arguments.starts_with(&name)) {
            bail!("nobody tries `catamount {name}`: it belongs to a list in faults/streams.rs");
        }
    }
    Ok(())
}

fn full() -> Result<Stdio> {
    Ok(OpenOptions::new().write(true).open("/dev/full")?.into())
}

/// A pipe whose reader is gone.
fn closed() -> Result<Stdio> {
    let (reader, writer) = std::io::pipe()?;
    drop(reader);
    Ok(writer.into())
}

/// One of the two streams, as it should not be.
#[derive(Clone, Copy)]
struct Stream {
    name: &'static str,
    set: fn(&mut Command, Stdio) -> &mut Command,
    make: fn() -> Result<Stdio>,
    /// How the command must end. What cannot be printed is an error of its own, unless the reader
    /// has gone; what cannot be said on the way is of no consequence.
    code: i32,
}

const STREAMS: [Stream; 4] = [
    Stream { name: "standard output full", set: Command::stdout, make: full, code: 2 },
    Stream { name: "standard output closed", set: Command::stdout, make: closed, code: 0 },
    Stream { name: "standard error full", set: Command::stderr, make: full, code: 0 },
    Stream { name: "standard error closed", set: Command::stderr, make: closed, code: 0 },
];

/// Tries every command under every one of them.
pub fn output(world: &World) -> Result<Vec<Row>> {
    world.fresh("output")?;
    all_are_tried(world)?;
    let mut rows: Vec<Row> = STREAMS.iter().map(|stream| Row::new(stream.name)).collect();
    for arguments in SAYING {
        // In peace it succeeds, or the tries below say nothing.
        let peace = world.run(arguments)?;
        if let Err(reason) = peace.ended(&[0]) {
            bail!("`catamount {arguments}` fails without any fault: {reason}");
        }
        for (row, stream) in rows.iter_mut().zip(STREAMS) {
            row.tried(under(world, arguments, stream)?);
        }
    }
    // These say where they listen; if that cannot be told, nobody can ask them to stop either.
    for arguments in SERVING {
        for (row, stream) in rows.iter_mut().zip(STREAMS).take(2) {
            row.tried(under(world, arguments, stream)?);
        }
    }
    Ok(rows)
}

/// The same for commands that need Lean, where one is prepared.
pub fn output_with_lean(world: &World) -> Result<Vec<Row>> {
    const TRIED: [usize; 2] = [0, 2];
    let names = TRIED.map(|at| format!("{}, Lean's commands", STREAMS[at].name));
    let mut rows: Vec<Row> = names.iter().map(|name| Row::new(name)).collect();
    for arguments in SAYING_WITH_LEAN {
        if let Err(reason) = world.run(arguments)?.ended(&[0]) {
            let line = reason.lines().next().unwrap_or_default();
            let why = format!("Lean is not prepared here (`{arguments}`: {line})");
            return Ok(names.iter().map(|name| Row::skipped(name, &why)).collect());
        }
        for (row, at) in rows.iter_mut().zip(TRIED) {
            row.tried(under(world, arguments, STREAMS[at])?);
        }
    }
    Ok(rows)
}

fn under(world: &World, arguments: &str, stream: Stream) -> Result<Result<(), String>> {
    let mut command = world.command(arguments);
    (stream.set)(&mut command, (stream.make)()?);
    let ran = finish(command)?;
    Ok(ran.ended(&[stream.code]).map_err(|reason| format!("{arguments}: {reason}")))
}
