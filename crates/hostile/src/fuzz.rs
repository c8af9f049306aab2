//! Many mutated inputs for a target, in a process that may die of them.

use std::any::Any;
use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};

use crate::mutation::mutated;
use crate::random::Random;
use crate::target::Target;

/// The longest that one input may take.
pub const LONGEST: Duration = Duration::from_secs(20);
/// The most memory that a reader may ask for, in kibibytes: the inputs are small.
const MEMORY: u64 = 4 << 20;
/// Reported by a reader's process when an input made it panic; an abort is reported by nobody.
const PANICKED: i32 = 3;

/// What became of a target's inputs.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    /// How many.
    pub inputs: u64,
    /// Numbers of those that made the reader panic, with its words.
    pub panics: Vec<(u64, String)>,
    /// Numbers of those that ended the process.
    pub aborts: Vec<u64>,
    /// Numbers of those that took too long.
    pub hangs: Vec<u64>,
    /// The longest that any took.
    pub slowest: Duration,
}

impl Tally {
    /// Whether nothing went wrong.
    pub fn is_clean(&self) -> bool {
        self.panics.is_empty() && self.aborts.is_empty() && self.hangs.is_empty()
    }
}

/// The input of a number.
pub fn input(target: &Target, number: u64) -> Vec<u8> {
    // The seeds themselves come first, undamaged.
    match target.seeds.get(number as usize) {
        Some(seed) => seed.clone(),
        None => mutated(&target.seeds, &mut Random::new(target.name, number)),
    }
}

/// Reads one input; the words of a panic if there was one.
pub fn read(target: &mut Target, bytes: &[u8]) -> Result<(), String> {
    let words = |panic: Box<dyn Any + Send>| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
    };
    catch_unwind(AssertUnwindSafe(|| (target.read)(bytes))).map_err(words)
}

/// The reader's process: reads the inputs from `from` to `to` and notes, in a file, which it is at
/// and how long the slowest took.
pub fn reader(name: &str, from: u64, to: u64, notes: &Path) -> Result<i32> {
    let folder = tempfile::tempdir()?;
    let mut target = Target::new(name, folder.path())?;
    let notes = File::options().write(true).open(notes).context("the notes")?;
    let mut slowest = Duration::ZERO;
    for number in from..to {
        notes.write_all_at(&number.to_le_bytes(), 0)?;
        let bytes = input(&target, number);
        let began = Instant::now();
        let outcome = read(&mut target, &bytes);
        slowest = slowest.max(began.elapsed());
        notes.write_all_at(&(slowest.as_micros() as u64).to_le_bytes(), 8)?;
        if let Err(words) = outcome {
            std::io::stdout().write_all(words.as_bytes())?;
            return Ok(PANICKED);
        }
    }
    notes.write_all_at(&to.to_le_bytes(), 0)?;
    Ok(0)
}

/// Has a target read so many inputs, in as many processes as it takes.
pub fn run(name: &'static str, inputs: u64, folder: &Path) -> Result<Tally> {
    let notes = folder.join(format!("{name}.notes"));
    let mut tally = Tally { inputs, ..Tally::default() };
    let mut from = 0;
    while from < inputs {
        std::fs::write(&notes, [0; 16])?;
        let mut child = start(name, from, inputs, &notes)?;
        let ended = watch(&mut child, &notes)?;
        let (at, slowest) = read_notes(&notes)?;
        tally.slowest = tally.slowest.max(slowest);
        match ended {
            Ended::Well => break,
            Ended::Panicked(words) => tally.panics.push((at, words)),
            Ended::Died => tally.aborts.push(at),
            Ended::Hung => tally.hangs.push(at),
        }
        from = at + 1;
    }
    Ok(tally)
}

enum Ended {
    Well,
    Panicked(String),
    Died,
    Hung,
}

fn start(name: &str, from: u64, to: u64, notes: &Path) -> Result<Child> {
    let program: PathBuf = std::env::current_exe()?;
    // The shell sets the limit on memory and then is this program.
    Command::new("sh")
        .args(["-c", &format!("ulimit -v {MEMORY}; exec \"$0\" \"$@\"")])
        .arg(program)
        .args(["read", name, &from.to_string(), &to.to_string()])
        .arg(notes)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .context("cannot start a reader")
}

/// Waits for a reader, unless it stays at one input for too long.
fn watch(child: &mut Child, notes: &Path) -> Result<Ended> {
    let (mut at, mut since) = (u64::MAX, Instant::now());
    loop {
        if let Some(status) = child.try_wait()? {
            let mut words = String::new();
            if let Some(mut out) = child.stdout.take() {
                std::io::Read::read_to_string(&mut out, &mut words)?;
            }
            return Ok(match status.code() {
                Some(0) => Ended::Well,
                Some(PANICKED) => Ended::Panicked(words),
                _ => Ended::Died,
            });
        }
        let (now, _) = read_notes(notes)?;
        if now != at {
            (at, since) = (now, Instant::now());
        } else if since.elapsed() > LONGEST {
            child.kill()?;
            child.wait()?;
            return Ok(Ended::Hung);
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn read_notes(notes: &Path) -> Result<(u64, Duration)> {
    let bytes = std::fs::read(notes)?;
    let word = |at: usize| {
        let bytes: Option<[u8; 8]> = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
        bytes.map_or(0, u64::from_le_bytes)
    };
    Ok((word(0), Duration::from_micros(word(8))))
}
