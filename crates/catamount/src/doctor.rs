//! `catamount doctor`: what is here, and what is missing.

use std::path::{Path, PathBuf};

use anyhow::Result;
use catamount_lean::Host;

#[derive(clap::Args)]
pub struct Arguments {
    /// Also start Lean: have it prove something, refuse a cheat and stop at a time limit, and try
    /// to break out of the confinement of its process.
    #[arg(long)]
    self_test: bool,
    /// Test the toolchain of this Lake project rather than the WebAssembly build.
    #[arg(long)]
    project: Option<PathBuf>,
}

pub fn run(arguments: &Arguments) -> Result<()> {
    say(
        "metamath database",
        catamount_data::database_path(Path::new("set.mm"))
            .map(|path| path.display().to_string())
            .map_err(Into::into),
    );
    say(
        "metamath program",
        version("metamath", "Debian's package metamath; only needed to verify exported proofs"),
    );
    say(
        "GPU",
        catamount_cuda::Cuda::new(0)
            .map(|cuda| catamount_model::Backend::describe(&cuda))
            .map_err(Into::into),
    );
    for finding in catamount_lean::diagnose(None) {
        println!("{} {}: {}", mark(finding.ok), finding.what, finding.text);
    }
    if arguments.self_test {
        let host = match &arguments.project {
            Some(project) => Host::Native { project: project.clone() },
            None => Host::default(),
        };
        println!(
            "self-test: a kernel's confinement first, then Lean, which takes a while to start"
        );
        let well = catamount_lean::self_test(host, |finding| {
            let mark = if finding.ok { "ok     " } else { "FAILED " };
            println!("{mark} self-test, {}: {}", finding.what, finding.text);
        });
        if !well {
            anyhow::bail!("the self-test failed; the lines marked FAILED say how");
        }
    }
    Ok(())
}

fn mark(ok: bool) -> &'static str {
    if ok { "ok     " } else { "missing" }
}

fn say(what: &str, found: Result<String>) {
    match found {
        Ok(text) => println!("{} {what}: {text}", mark(true)),
        Err(error) => println!("{} {what}: {error}", mark(false)),
    }
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
