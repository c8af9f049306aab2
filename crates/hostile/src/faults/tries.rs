//! The faults themselves.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::faults::row::Row;
use crate::faults::server::{KEY, MISBEHAVIOURS, Misbehaviour, serve};
use crate::faults::world::{EVAL, Ran, World, finish, wait};
use crate::random::Random;

/// An evaluation that asks a server.
fn asking(url: &str, out: &str, more: &str) -> String {
    format!(
        "eval --database toy.mm --theorems data/test.jsonl --limit 2 --policy http:{url} \
         --strategy bfs --budget 4 --out {out} {more}"
    )
}

/// The outcomes in a log.
fn outcomes(world: &World, log: &str) -> Vec<String> {
    let text = std::fs::read_to_string(world.path(log)).unwrap_or_default();
    let outcome = |line: &str| {
        let record: serde_json::Value = serde_json::from_str(line).ok()?;
        Some(record["outcome"].as_str()?.to_owned())
    };
    text.lines().filter_map(outcome).collect()
}

/// A server that misbehaves, asked and asked again: errors and nothing else, an exit status that
/// says so, no key anywhere.
pub fn servers(world: &World) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (number, (name, misbehaviour)) in MISBEHAVIOURS.into_iter().enumerate() {
        let mut row = Row::new(&format!("server: {name}"));
        let folder = format!("server-{number}");
        world.fresh(&folder)?;
        let url = serve(misbehaviour)?;
        for _ in 0..2 {
            let out = format!("{folder}/log.jsonl");
            let ran = world.run(&asking(&url, &out, "--http-timeout 5"))?;
            row.tried(ran.ended(&[2]).and_then(|()| only_errors(world, &folder)));
        }
        rows.push(row);
    }
    Ok(rows)
}

/// Refuses a folder whose log says anything but errors, or in whose files the key is.
fn only_errors(world: &World, folder: &str) -> Result<(), String> {
    let outcomes = outcomes(world, &format!("{folder}/log.jsonl"));
    if outcomes.len() < 2 || outcomes.iter().any(|outcome| outcome != "error") {
        return Err(format!("the log says {outcomes:?}"));
    }
    let entries = std::fs::read_dir(world.path(folder)).map_err(|e| e.to_string())?;
    for entry in entries.flatten() {
        let bytes = std::fs::read(entry.path()).map_err(|e| e.to_string())?;
        if String::from_utf8_lossy(&bytes).contains(&KEY[..16]) {
            return Err(format!("the key is in {}", entry.path().display()));
        }
    }
    Ok(())
}

/// A server that hangs: the timeout, the time limit and Ctrl-C all hold.
pub fn hanging(world: &World) -> Result<Vec<Row>> {
    world.fresh("hanging")?;
    let url = serve(Misbehaviour::Hang)?;
    let mut timeout = Row::new("server hangs, --http-timeout 1");
    let ran = world.run(&asking(&url, "hanging/a.jsonl", "--http-timeout 1"))?;
    timeout.tried(ran.ended(&[2]).and_then(|()| within(&ran, 40)));
    let mut limit = Row::new("server hangs, --time-limit 1");
    let ran = world.run(&asking(&url, "hanging/b.jsonl", "--time-limit 1"))?;
    limit.tried(ran.ended(&[0]).and_then(|()| within(&ran, 15)));
    let said = outcomes(world, "hanging/b.jsonl");
    limit.tried(if said == ["time", "time"] { Ok(()) } else { Err(format!("{said:?}")) });
    let mut interrupt = Row::new("server hangs, one Ctrl-C");
    for try_ in 0..3 {
        let child = world.command(&asking(&url, &format!("hanging/c{try_}.jsonl"), "")).spawn()?;
        std::thread::sleep(Duration::from_secs(2));
        signal(child.id(), "INT")?;
        let ran = wait(child)?;
        interrupt.tried(ran.ended(&[130]).and_then(|()| within(&ran, 10)));
    }
    let mut unloading = Row::new("server hangs while it unloads an adapter");
    let url = serve(Misbehaviour::HangUnloading)?;
    let adapter = world.fresh("hanging/adapter")?;
    std::fs::write(adapter.join("adapter_model.safetensors"), "what it holds")?;
    let ran = world.run(&asking(&url, "hanging/d.jsonl", "--adapter hanging/adapter"))?;
    unloading.tried(ran.ended(&[0]).and_then(|()| within(&ran, 30)));
    Ok(vec![timeout, limit, interrupt, unloading])
}

fn within(ran: &Ran, seconds: u64) -> Result<(), String> {
    match ran.took <= Duration::from_secs(seconds) {
        true => Ok(()),
        false => Err(format!("it took {:?}", ran.took)),
    }
}

/// A prover elsewhere that stops in the middle, without a word: Ctrl-C and the time limit hold.
pub fn stopped_provers(world: &World) -> Result<Vec<Row>> {
    world.fresh("provers")?;
    let mut interrupt = Row::new("prover elsewhere stops, one Ctrl-C");
    let mut limit = Row::new("prover elsewhere stops, --time-limit 1");
    for try_ in 0..2 {
        let out = format!("provers/c{try_}.jsonl");
        let (prover, child) = stopped(world, &out, "")?;
        std::thread::sleep(Duration::from_secs(1));
        signal(child.id(), "INT")?;
        let ran = wait(child)?;
        interrupt.tried(ran.ended(&[130]).and_then(|()| within(&ran, 10)));
        end(prover)?;

        let out = format!("provers/t{try_}.jsonl");
        let (prover, child) = stopped(world, &out, "--time-limit 1")?;
        let ran = wait(child)?;
        limit.tried(ran.ended(&[0]).and_then(|()| within(&ran, 20)));
        let said = outcomes(world, &out);
        let timed = said.iter().any(|outcome| outcome == "time");
        let wrong = said.iter().any(|outcome| outcome == "error");
        limit.tried(if timed && !wrong { Ok(()) } else { Err(format!("{said:?}")) });
        end(prover)?;
    }
    Ok(vec![interrupt, limit])
}

/// An evaluation whose prover is stopped once it has begun; the prover, and the evaluation.
fn stopped(world: &World, out: &str, more: &str) -> Result<(Child, Child)> {
    let mut prover =
        world.command("serve --env metamath --database toy.mm --listen 127.0.0.1:0").spawn()?;
    let mut line = String::new();
    let said = prover.stdout.as_mut().context("no standard output")?;
    BufReader::new(said).read_line(&mut line)?;
    let address = line.trim().rsplit("http://").next().unwrap_or_default();
    let child = world
        .command(&format!(
            "eval --provers {address} --theorems data/test.jsonl --policy ngram:data/test.jsonl \
             --strategy mcts --budget 100000 --limit 4 --concurrency 4 --out {out} {more}"
        ))
        .spawn()?;
    let manifest = world.path(out).with_extension("manifest.json");
    let began = Instant::now();
    while !manifest.exists() && began.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(5));
    }
    signal(prover.id(), "STOP")?;
    Ok((prover, child))
}

fn end(mut prover: Child) -> Result<()> {
    prover.kill()?;
    prover.wait()?;
    Ok(())
}

const EXTRACT: &str = "data metamath --database toy.mm --split 0,0,rest --out disk/data";

/// A disk that fills up in the middle, and is given room again.
pub fn full_disk(world: &World) -> Result<Row> {
    let name = "disk full, then room";
    let probe = Command::new("unshare").args(["-rm", "true"]).stderr(Stdio::null()).status();
    if !probe.is_ok_and(|status| status.success()) {
        return Ok(Row::skipped(name, "no mount namespaces for this user (unshare -rm)"));
    }
    let mut row = Row::new(name);
    world.fresh("disk")?;
    row.tried(world.run("data convert data/test.jsonl converted.jsonl")?.ended(&[0]));
    let evaluation = format!("{EVAL} --out disk/log.jsonl");
    let same = "cmp disk/log.jsonl peace.jsonl";
    let mut full = 0;
    for (kibibytes, arguments, same) in [
        (4, &*evaluation, same),
        (8, &evaluation, same),
        (16, &evaluation, same),
        (24, &evaluation, same),
        (8, EXTRACT, "cmp disk/data/test.jsonl data/test.jsonl"),
        (16, EXTRACT, "cmp disk/data/test.jsonl data/test.jsonl"),
        (4, "score --model model --device cpu data/test.jsonl --out disk/scores.jsonl", "true"),
        (4, "data convert data/test.jsonl disk/t.jsonl", "cmp disk/t.jsonl converted.jsonl"),
        (8, "data convert data/test.jsonl disk/t.parquet", "test -s disk/t.parquet"),
        (64, "run run.toml --out disk/study --device cpu", "test -s disk/study/report/index.html"),
    ] {
        // In a mount namespace of its own: a disk this small, a command, room, the command again.
        let script = format!(
            "mount -t tmpfs -o size={kibibytes}k none disk || exit 77
             \"$@\"; first=$?
             mount -o remount,size=64m disk
             \"$@\"; second=$?
             {same} || exit 78
             echo first $first second $second"
        );
        let mut command = Command::new("unshare");
        let inner = world.shell(&script, arguments);
        command.arg("-rm").arg(inner.get_program()).args(inner.get_args());
        command.current_dir(world.path("")).stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let ran = finish(command)?;
        if ran.code == Some(77) {
            return Ok(Row::skipped(name, "a tmpfs cannot be mounted here"));
        }
        full += usize::from(ran.said.contains("first 2 second 0"));
        let fine = ran.said.contains("first 2 second 0") || ran.said.contains("first 0 second 0");
        row.tried(ran.ended(&[0]).and(if fine { Ok(()) } else { Err(ran.said) }));
    }
    // A disk that is large enough shows nothing.
    row.tried(if full >= 6 { Ok(()) } else { Err(format!("only {full} disks were full")) });
    Ok(row)
}

/// Signals by their numbers, on Linux.
const HUP: i32 = 1;
const INT: i32 = 2;
const ABRT: i32 = 6;
const KILL: i32 = 9;
const SEGV: i32 = 11;
const TERM: i32 = 15;
const XCPU: i32 = 24;
const XFSZ: i32 = 25;

/// Limits of the shell: too few files, too large a file, too much time, too little memory.
pub fn limits(world: &World) -> Result<Vec<Row>> {
    let mut files = Row::new("ulimit -n: few open files");
    world.fresh("limits")?;
    for count in [3, 4, 5, 6, 8, 10, 12, 16, 24, 32] {
        let out = format!("limits/n{count}.jsonl");
        let script = format!("ulimit -n {count}; exec \"$@\"");
        let ran = finish(world.shell(&script, &format!("{EVAL} --out {out}")))?;
        // With three files even the program's own libraries cannot be opened: the loader says so.
        files.tried(ran.ended(&[0, 2, 127]).and_then(|()| world.resumes(&out)));
    }
    let mut size = Row::new("ulimit -f: files cut off, then resumed");
    for blocks in [1, 2, 4, 8] {
        let out = format!("limits/f{blocks}.jsonl");
        let script = format!("ulimit -f {blocks}; exec \"$@\"");
        let ran = finish(world.shell(&script, &format!("{EVAL} --out {out}")))?;
        // Written too far, a file is an error; the log may also be small enough for the limit.
        size.tried(ran.ended_by(&[XFSZ], &[2, 0]).and_then(|()| world.resumes(&out)));
    }
    let mut time = Row::new("ulimit -t: processor time used up, then resumed");
    for seconds in [1, 2] {
        let out = format!("limits/t{seconds}.jsonl");
        let script = format!("ulimit -t {seconds}; exec \"$@\"");
        let ran = finish(world.shell(&script, &format!("{EVAL} --out {out}")))?;
        // The hard limit, which the shell sets as well, kills.
        time.tried(ran.ended_by(&[XCPU, KILL], &[0]).and_then(|()| world.resumes(&out)));
    }
    let mut memory = Row::new("ulimit -v: little memory, then resumed");
    for mebibytes in [16, 48, 64, 96, 128, 256, 1024] {
        let out = format!("limits/v{mebibytes}.jsonl");
        let script = format!("ulimit -v {}; exec \"$@\"", mebibytes << 10);
        let ran = finish(world.shell(&script, &format!("{EVAL} --out {out}")))?;
        // Without room for its libraries the loader says so (127); a program that is refused memory
        // aborts, since nothing can be done with none.
        memory.tried(ran.ended_by(&[ABRT, SEGV], &[0, 2, 127]).and_then(|()| world.resumes(&out)));
    }
    Ok(vec![files, size, time, memory])
}

/// Signals at random moments; after each, the evaluation resumes to the known log.
pub fn signals(world: &World) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    world.fresh("signals")?;
    // Ctrl-C is heard, and the work in hand is finished; the others end it where it is, and none of
    // them comes too late to count.
    for (name, number, times, codes) in [
        ("INT", INT, 6, &[130, 0][..]),
        ("TERM", TERM, 4, &[143, 0]),
        ("HUP", HUP, 2, &[129, 0]),
        ("KILL", KILL, 20, &[0]),
    ] {
        let mut row = Row::new(&format!("kill -{name} at random moments, then resumed"));
        for try_ in 0..times {
            let out = format!("signals/{name}{try_}.jsonl");
            let mut random = Random::new(name, try_);
            let moment = world.duration.mul_f64(random.below(1000) as f64 / 1000.0);
            let child = world.command(&format!("{EVAL} --out {out}")).spawn()?;
            std::thread::sleep(moment);
            signal(child.id(), name)?;
            let ran = wait(child)?;
            // Before the evaluation listens, the signal itself ends the process: nothing is begun.
            let heard = name == "INT" && world.path(&out).exists();
            let signals: &[i32] = if heard { &[] } else { &[number] };
            row.tried(ran.ended_by(signals, codes).and_then(|()| world.resumes(&out)));
        }
        rows.push(row);
    }
    rows.push(killed_data(world)?);
    Ok(rows)
}

/// How often extraction is killed.
const KILLED: u64 = 20;

/// What is left unfinished below a folder.
fn left(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for path in std::fs::read_dir(folder).into_iter().flatten().flatten().map(|it| it.path()) {
        if path.to_string_lossy().ends_with(".unfinished") {
            found.push(path);
        } else if path.is_dir() {
            found.extend(left(&path));
        }
    }
    found
}

/// Extraction killed at random moments leaves nothing behind once it has run to its end.
fn killed_data(world: &World) -> Result<Row> {
    let mut row = Row::new("kill -KILL of data at random moments, then run");
    let extract = "data metamath --database toy.mm --split 0,0,rest --out killed/data";
    let folder = world.fresh("killed")?;
    let peace = world.run(extract)?;
    row.tried(peace.ended(&[0]));
    let (mut killed, mut unfinished) = (0, 0);
    for number in 0..KILLED {
        world.fresh("killed")?;
        let child = world.command(extract).spawn()?;
        let share = Random::new("data", number).below(1000) as f64 / 1000.0;
        std::thread::sleep(peace.took.mul_f64(share));
        signal(child.id(), "KILL")?;
        let ran = wait(child)?;
        killed += u64::from(ran.signal == Some(KILL));
        row.tried(ran.ended_by(&[KILL], &[0]));
        unfinished += left(&folder).len();
        // Over what is left, and nothing of that stays.
        row.tried(world.run(extract)?.ended(&[0]));
        let left = left(&folder);
        row.tried(if left.is_empty() { Ok(()) } else { Err(format!("left behind: {left:?}")) });
    }
    let met = 2 * killed >= KILLED && unfinished > 0;
    row.tried(if met {
        Ok(())
    } else {
        Err(format!("{killed} of {KILLED} were killed, {unfinished} files left unfinished"))
    });
    let names = |path: std::path::PathBuf| -> Vec<String> {
        let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    };
    let (left, expected) = (names(folder.join("data")), names(world.path("data")));
    row.tried(if left == expected { Ok(()) } else { Err(format!("left behind: {left:?}")) });
    Ok(row)
}

/// A clock that jumps while an evaluation runs.
pub fn clock(world: &World) -> Result<Row> {
    let name = "the clock jumps";
    let there = Command::new("faketime").arg("--version").stdout(Stdio::null()).status();
    if !there.is_ok_and(|status| status.success()) {
        return Ok(Row::skipped(name, "the program `faketime` is not installed (Debian faketime)"));
    }
    let mut row = Row::new(name);
    world.fresh("clock")?;
    for (number, when) in ["+400d", "-400d", "+0 x1000", "@2038-01-19 03:14:06"].iter().enumerate()
    {
        let out = format!("clock/{number}.jsonl");
        let script = format!("exec faketime -f '{when}' \"$@\"");
        let ran = finish(world.shell(&script, &format!("{EVAL} --out {out}")))?;
        row.tried(ran.ended(&[0]).and_then(|()| world.resumes(&out)));
    }
    Ok(row)
}

fn signal(process: u32, name: &str) -> Result<()> {
    // It may have ended by itself; then there is nobody to signal.
    Command::new("kill")
        .args([&format!("-{name}"), &process.to_string()])
        .stderr(Stdio::null())
        .status()?;
    Ok(())
}
