//! `catamount doctor`: what is here, and what is missing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use catamount_lean::Host;
use serde_json::json;

#[derive(clap::Args)]
pub struct Arguments {
    /// Also start Lean: have it prove something, refuse a cheat and stop at a time limit, and try
    /// to break out of the confinement of its process.
    #[arg(long)]
    self_test: bool,
    /// Look at, and test, the toolchain of this Lake project rather than the WebAssembly build.
    #[arg(long)]
    project: Option<PathBuf>,
    /// Print findings as JSON lines, for programs.
    #[arg(long)]
    json: bool,
}

impl Arguments {
    /// Prints a finding; `bad` is what is said of one that is not as it should be.
    fn say(&self, what: &str, ok: bool, text: &str, bad: &str) {
        match self.json {
            true => println!("{}", json!({ "what": what, "ok": ok, "text": text })),
            false => println!("{:<7} {what}: {text}", if ok { "ok" } else { bad }),
        }
    }

    /// Prints what is there, or what is missing and who would miss it.
    fn found(&self, what: &str, ok: bool, text: &str) {
        match PURPOSES.iter().find(|(name, _)| *name == what) {
            Some((_, purpose)) if !ok => {
                self.say(what, ok, &format!("{purpose}; {text}"), "missing");
            }
            _ => self.say(what, ok, text, "missing"),
        }
    }
}

/// What is needed for some things only, where its own text does not say so.
const PURPOSES: [(&str, &str); 5] = [
    ("metamath database", "only for Metamath's theorems, such as those of `catamount run demo`"),
    ("GPU", "only for speed: models run on the processor as well"),
    ("node", "only for Lean without a toolchain"),
    ("lake", "only for Lake projects (--project)"),
    ("lean", "only for Lake projects (--project)"),
];

pub fn run(arguments: &Arguments) -> Result<()> {
    let found = |what: &str, found: Result<String>| match found {
        Ok(text) => arguments.found(what, true, &text),
        Err(error) => arguments.found(what, false, &error.to_string()),
    };
    found(
        "metamath database",
        catamount_data::database_path(Path::new("set.mm"))
            .map(|path| path.display().to_string())
            .map_err(Into::into),
    );
    found(
        "metamath program",
        version("metamath", "Debian's package metamath; only needed to verify exported proofs"),
    );
    found(
        "GPU",
        catamount_cuda::Cuda::new(0)
            .map(|cuda| catamount_model::Memory::describe(&cuda))
            .map_err(Into::into),
    );
    for finding in catamount_lean::diagnose(None, arguments.project.as_deref()) {
        arguments.found(&finding.what, finding.ok, &finding.text);
    }
    if arguments.self_test {
        let host = match &arguments.project {
            Some(project) => Host::Native { project: project.clone() },
            None => Host::default(),
        };
        note!("self-test: the confinement first, then Lean, which takes a while to start");
        let well = catamount_lean::self_test(host, |finding| {
            let what = format!("self-test, {}", finding.what);
            arguments.say(&what, finding.ok, &finding.text, "FAILED");
        });
        if !well {
            anyhow::bail!("the self-test failed; the lines marked FAILED say how");
        }
    }
    Ok(())
}

fn version(program: &str, package: &str) -> Result<String> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .map(|folder| folder.join(program))
        .find(|path| path.is_file());
    found
        .map(|path| path.display().to_string())
        .ok_or_else(|| anyhow::anyhow!("not found; install {package}"))
}
