//! Attempts to get out of a prover's process, made on purpose: what each came to is a line of the
//! doctor's.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use catamount_search::{Environment, Session, StateId, Verdict};
use catamount_traces::Theorem;

use crate::child::Child;
use crate::doctor::Finding;
use crate::environment::Lean;
use crate::options::{Host, Options};
use crate::sandbox::{Layer, Program, Sandbox};
use crate::tool;

/// Tactics that try.
const TACTICS: &str = include_str!("../lean/Escape.lean");
/// What a file that no tactic may read holds.
const SECRET: &str = "a secret of this machine";
/// How long a tactic that never ends is waited for.
const LIMIT: Duration = Duration::from_secs(5);

/// Lets tactics of a library of their own try to leave the process that runs them.
pub(crate) fn by_tactics(host: &Host, mut each: impl FnMut(Finding)) {
    let folder = match tempfile::tempdir() {
        Ok(folder) => folder,
        Err(e) => return each(Finding::new("tactics that try to escape", Err(e.to_string()))),
    };
    if let Err(why) = attempts(host, folder.path(), &mut each) {
        each(Finding::new("tactics that try to escape", Err(why)));
    }
}

fn attempts(host: &Host, folder: &Path, each: &mut impl FnMut(Finding)) -> Result<(), String> {
    let write = |path: &Path, text: &str| fs::write(path, text).map_err(|e| e.to_string());
    let library = folder.join("library");
    fs::create_dir(&library).map_err(|e| e.to_string())?;
    write(&library.join("Escape.lean"), TACTICS)?;
    let outside = folder.join("outside");
    fs::create_dir(&outside).map_err(|e| e.to_string())?;
    let secret = outside.join("secret");
    write(&secret, SECRET)?;
    let lean = Lean::new(Options {
        host: host.clone(),
        root: Some(library),
        workers: 1,
        request_limit: LIMIT,
        ..Options::default()
    })
    .map_err(|e| e.to_string())?;
    let theorem =
        Theorem { name: "escape".into(), file: Some("Escape.lean".into()), ..Theorem::default() };
    let mut session = lean.open(&theorem).map_err(|f| f.to_string())?;
    let permissions = |path: &Path| fs::metadata(path).map(|meta| meta.permissions()).ok();
    let permitted = permissions(&secret);
    let made = outside.join("made");
    let quoted = |path: &Path| format!("{:?}", path.to_string_lossy());
    let tries = [
        ("a tactic that reads a file", format!("read_file {}", quoted(&secret))),
        ("a tactic that lists a folder", format!("list_folder {}", quoted(&outside))),
        ("a tactic that writes a file", format!("write_file {}", quoted(&made))),
        ("a tactic that makes a folder", format!("make_folder {}", quoted(&made))),
        ("a tactic that removes a file", format!("remove_file {}", quoted(&secret))),
        ("a tactic that writes to the channel of answers", "write_file \"/dev/stdout\"".into()),
        ("a tactic that starts a program", "start_program \"/bin/true\"".into()),
        ("a tactic that opens a file to everybody", format!("open_up {}", quoted(&secret))),
        ("a tactic that cuts a file off", format!("cut_off {}", quoted(&secret))),
        ("a tactic that reads the environment", "see_environment \"USER_OF_CATAMOUNT\"".into()),
    ];
    for (what, tactic) in tries {
        let mut outcome = refused(&mut *session, &tactic);
        let kept = fs::read_to_string(&secret).is_ok_and(|text| text == SECRET);
        if made.exists() || !kept || permissions(&secret) != permitted {
            outcome = Err("files of this machine were changed".into());
        }
        each(Finding::new(what, outcome));
    }
    each(Finding::new("a tactic that prints an answer", prints(&mut *session)));
    each(Finding::new("a tactic that ends the process", leaves(&mut *session)));
    each(Finding::new("a tactic that never ends", spins(&mut *session)));
    Ok(())
}

/// Whether a tactic failed at what it tried.
fn refused(session: &mut dyn Session, tactic: &str) -> Result<String, String> {
    match session.apply(StateId(0), tactic).map_err(|f| f.to_string())? {
        Verdict::Rejected { reason } if reason.starts_with("elaboration: escaped") => {
            Err(format!("it got through: {reason}"))
        }
        Verdict::Rejected { reason } => {
            let reason = reason.strip_prefix("elaboration: ").unwrap_or(&reason);
            Ok(format!("held ({})", reason.lines().next().unwrap_or_default()))
        }
        other => Err(format!("it was to fail, but: {other:?}")),
    }
}

fn prints(session: &mut dyn Session) -> Result<String, String> {
    let answer = r#"{\"ok\":true,\"done\":true,\"state\":0,\"goals\":\"\"}"#;
    match session.apply(StateId(0), &format!("print_line \"{answer}\"")) {
        Ok(Verdict::Open { .. }) => Ok("held (what it printed was not taken for an answer)".into()),
        Ok(other) => Err(format!("what it printed was believed: {other:?}")),
        Err(fault) => Err(fault.to_string()),
    }
}

fn leaves(session: &mut dyn Session) -> Result<String, String> {
    match session.apply(StateId(0), "leave").map_err(|f| f.to_string())? {
        Verdict::Rejected { .. } => {}
        other => return Err(format!("it counted for something: {other:?}")),
    }
    match session.apply(StateId(0), "exact id").map_err(|f| f.to_string())? {
        Verdict::Proved => Ok("held (the tactic is rejected, the search goes on)".into()),
        other => Err(format!("the search did not go on: {other:?}")),
    }
}

fn spins(session: &mut dyn Session) -> Result<String, String> {
    let clock = format!("limit: no answer within {} s", LIMIT.as_secs());
    match session.apply(StateId(0), "spin").map_err(|f| f.to_string())? {
        Verdict::Rejected { reason } if reason == clock => Ok(format!("stopped ({reason})")),
        other => Err(format!("it was to be stopped by the clock, but: {other:?}")),
    }
}

/// What a shell at a path tries under a layer: what held it, or how it got through.
type Attempt = fn(&Path, &Layer) -> Result<String, String>;

/// Lets a shell, in the place of a prover, try what the kernel should refuse.
pub(crate) fn by_a_shell(layer: &Layer, mut each: impl FnMut(Finding)) {
    let Some(shell) = tool::find("bash") else {
        return each(Finding::new(
            "a program that tries to escape",
            Err("there is no bash".into()),
        ));
    };
    let tries: [(&str, Attempt); 10] = [
        ("a program that reads a file", reads),
        ("a program that writes a file", writes),
        ("a program that opens a file to everybody", marks),
        ("a program that cuts a file off", cuts),
        ("a program that starts another", forks),
        ("a program that opens a connection", connects),
        ("a program that signals another", signals),
        ("a program that reads another's environment", spies),
        ("a program that takes memory", grows),
        ("a program that fills the disk", fills),
    ];
    for (what, attempt) in tries {
        each(Finding::new(what, attempt(&shell, layer)));
    }
}

/// What a program says on its two streams, run confined with a scratch folder of its own.
fn run(layer: &Layer, program: &Path, args: &[&str], scratch: &Path) -> Result<String, String> {
    run_reading(layer, program, args, scratch, Vec::new())
}

/// The same for a program that may read some files more.
fn run_reading(
    layer: &Layer,
    program: &Path,
    args: &[&str],
    scratch: &Path,
    read: Vec<PathBuf>,
) -> Result<String, String> {
    let program = Program {
        path: program.to_path_buf(),
        args: args.iter().map(Into::into).collect(),
        env: vec![("PATH".into(), "/usr/bin:/bin".into())],
        folder: Some(scratch.to_path_buf()),
    };
    let sandbox = Sandbox { read, write: vec![scratch.to_path_buf()], memory_mb: 64 };
    let mut child = Child::spawn(&program, &sandbox, layer).map_err(|e| e.to_string())?;
    let (_, out, err) = child.streams();
    let deadline = Instant::now() + Duration::from_secs(20);
    while child.status().is_none() {
        if Instant::now() > deadline {
            return Err("it did not end within 20 s".into());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let mut said = String::new();
    let streams: [Option<Box<dyn Read>>; 2] =
        [out.map(|s| Box::new(s) as _), err.map(|s| Box::new(s) as _)];
    for stream in streams.into_iter().flatten() {
        let mut stream = stream.take(4096);
        stream.read_to_string(&mut said).map_err(|e| e.to_string())?;
    }
    Ok(said.trim().to_owned())
}

/// A folder with a scratch folder inside, and what a shell says to `script` when it has `$1` = that
/// folder.
fn shell(layer: &Layer, shell: &Path, script: &str, folder: &Path) -> Result<String, String> {
    let scratch = folder.join("scratch");
    fs::create_dir(&scratch).map_err(|e| e.to_string())?;
    run(layer, shell, &["-c", script, "shell", &folder.to_string_lossy()], &scratch)
}

fn folder() -> Result<tempfile::TempDir, String> {
    tempfile::tempdir().map_err(|e| e.to_string())
}

fn held(said: &str) -> Result<String, String> {
    Ok(format!("held ({})", said.lines().next().unwrap_or("it said nothing")))
}

fn reads(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    fs::write(folder.path().join("secret"), SECRET).map_err(|e| e.to_string())?;
    let said =
        shell(layer, bash, "echo \"$(< $1/secret)\"; read x < $1/secret; echo $x", folder.path())?;
    if said.contains(SECRET) { Err("it read the file".into()) } else { held(&said) }
}

fn writes(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let script = "echo x > mine; echo x > $1/outside";
    let said = shell(layer, bash, script, folder.path())?;
    if folder.path().join("outside").exists() {
        return Err("it wrote outside its scratch folder".into());
    }
    match folder.path().join("scratch").join("mine").exists() {
        true => held(said.lines().last().unwrap_or_default()),
        false => Err(format!("it could not even write its scratch folder: {said}")),
    }
}

/// Tries to change who may read a file, and when it was changed.
fn marks(_: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let secret = folder.path().join("secret");
    fs::write(&secret, SECRET).map_err(|e| e.to_string())?;
    let marks = || {
        let meta = fs::metadata(&secret).map_err(|e| e.to_string())?;
        Ok::<_, String>((meta.permissions(), meta.modified().map_err(|e| e.to_string())?))
    };
    let before = marks()?;
    let path = secret.to_string_lossy().into_owned();
    let mut said = String::new();
    for (name, args) in [("chmod", ["0777", &path]), ("touch", ["--date=2001-01-01", &path])] {
        let program = tool::find(name).ok_or_else(|| format!("there is no {name}"))?;
        said = run(layer, &program, &args, folder.path())?;
        if marks()? != before {
            return Err(format!("{name} marked a file"));
        }
    }
    held(&said)
}

/// Tries to empty a file by its path, and by opening it for reading.
fn cuts(_: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let file = folder.path().join("file");
    fs::write(&file, SECRET).map_err(|e| e.to_string())?;
    let Some(perl) = tool::find("perl") else {
        return Ok("not tried (there is no perl)".into());
    };
    // The scratch folder is elsewhere, so that the file is not below it; it may be read.
    let scratch = self::folder()?;
    let cut = libc::O_TRUNC;
    let script = format!(
        "print truncate($ARGV[0], 0) ? 'cut' : $!, ' '; \
         print sysopen(F, $ARGV[0], {cut}) ? 'cut' : $!"
    );
    let readable = folder.path().to_path_buf();
    let args = ["-e", &script, &file.to_string_lossy()];
    let said = run_reading(layer, &perl, &args, scratch.path(), vec![readable])?;
    if fs::read_to_string(&file).is_ok_and(|text| text == SECRET) {
        held(&said)
    } else {
        Err(format!("it cut the file off ({said})"))
    }
}

fn forks(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let said = shell(layer, bash, "/bin/echo start''ed || true; echo", folder.path())?;
    if said.contains("started") { Err("it started a program".into()) } else { held(&said) }
}

fn connects(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let listener = TcpListener::bind("127.0.0.1:0").map_err(|e| e.to_string())?;
    listener.set_nonblocking(true).map_err(|e| e.to_string())?;
    let port = listener.local_addr().map_err(|e| e.to_string())?.port();
    let script = format!("echo hello > /dev/tcp/127.0.0.1/{port}");
    let said = shell(layer, bash, &script, folder.path())?;
    match listener.accept() {
        Ok((mut stream, _)) => {
            let _ = stream.write_all(b"bye");
            Err("it opened a connection".into())
        }
        Err(_) => held(&said),
    }
}

/// Signals this process; signal 0 does nothing but to say whether another would arrive.
fn signals(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let script = format!("kill -0 {} && echo reached", std::process::id());
    let said = shell(layer, bash, &script, folder.path())?;
    if said.contains("reached") { Err("its signal would arrive".into()) } else { held(&said) }
}

/// Looks for this process's environment, in which there may be keys.
fn spies(bash: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let environment = format!("/proc/{}/environ", std::process::id());
    let script = format!("read -r -d '' x < {environment} && echo reached");
    let said = shell(layer, bash, &script, folder.path())?;
    if said.contains("reached") { Err("it read the environment".into()) } else { held(&said) }
}

fn grows(_: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let dd = tool::find("dd").ok_or("there is no dd")?;
    let said =
        run(layer, &dd, &["if=/dev/zero", "of=/dev/null", "bs=6G", "count=1"], folder.path())?;
    if said.contains("copied") { Err("it took 6 GiB".into()) } else { held(&said) }
}

/// Writes a byte far beyond the end of a file of its own, which takes no room.
fn fills(_: &Path, layer: &Layer) -> Result<String, String> {
    let folder = folder()?;
    let dd = tool::find("dd").ok_or("there is no dd")?;
    let args = ["if=/dev/zero", "of=big", "bs=1", "count=1", "seek=4G"];
    let said = run(layer, &dd, &args, folder.path())?;
    let large = fs::metadata(folder.path().join("big")).is_ok_and(|meta| meta.len() > 1 << 30);
    if large { Err("it made a file of 4 GiB".into()) } else { held(&said) }
}
