//! Whole files: what Lean says of one, where, and what its `sorry`s leave to be proved.
//!
//! A file is somebody's program: it may run code, and what its process then says is no verdict. So
//! files have processes of their own, which serve no session, and a proof counts when the judge
//! says so (`check.rs`).

use std::sync::Arc;
use std::time::{Duration, Instant};

use catamount_search::Fault;
use serde::{Deserialize, Serialize};

use crate::environment::Lean;
use crate::process::Failure;
use crate::source::split_imports;
use crate::wire::Reply;
use crate::worker::{Owner, Place, PlaceText, Trouble};

/// What became of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum FileOutcome {
    /// No error, and no `sorry`.
    Passes,
    /// No error, and something is left to be proved.
    Sorry,
    /// At least one error.
    Fails,
    /// It ran out of time or memory.
    Limit,
}

/// What Lean says of a file.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FileReport {
    /// What became of it.
    pub outcome: FileOutcome,
    /// Which limit it reached.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub why: String,
    /// Everything that Lean said, in the order of commands.
    pub messages: Vec<Message>,
    /// Every `sorry` in it.
    pub sorries: Vec<Sorry>,
    /// How long Lean took over it, the start of a process aside.
    pub seconds: f64,
}

/// A message of Lean's. Lines count from 1 and columns from 0, as Lean's own do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Message {
    /// `info`, `warning` or `error`.
    pub severity: String,
    /// The line on which what it is about begins.
    pub line: u32,
    /// The column there.
    pub column: u32,
    /// The line on which that ends.
    pub end_line: u32,
    /// The column after it.
    pub end_column: u32,
    /// What it says.
    pub text: String,
}

/// A `sorry`, by what it leaves to be proved.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sorry {
    /// The line on which it begins.
    pub line: u32,
    /// The column there.
    pub column: u32,
    /// The line on which it ends.
    pub end_line: u32,
    /// The column after it.
    pub end_column: u32,
    /// The goal, with its hypotheses.
    pub goal: String,
}

/// A process may be lost so often over one file before the file is held to be the cause.
const LOSSES: usize = 2;

impl Lean {
    /// Elaborates a whole file within a limit, which is at most the one on a check.
    pub fn report(&self, text: &str, limit: Duration) -> Result<FileReport, Fault> {
        let fault = |e: &dyn std::fmt::Display| Fault(e.to_string());
        let (named, _) = split_imports(text);
        if let Some(module) = self.own_module(named.iter()) {
            return Err(Fault(format!("the module {module} is this program's own")));
        }
        let imports = self.imports_of(text).map_err(|e| fault(&e))?;
        let nothing = PlaceText::Header(String::new());
        let place = Place { imports, text: nothing, owner: Owner::User };
        let place = Arc::new(place);
        let seat = self.files.choose(&place);
        let mut worker = seat.slot().lock();
        let mut losses = 0;
        loop {
            worker.recycle(true);
            if let Err(trouble) = worker.ready(&place.imports) {
                return Err(fault(&trouble));
            }
            let begin = Instant::now();
            let answer = worker.look_at(text, limit.min(self.options.check_limit));
            let seconds = begin.elapsed().as_secs_f64();
            match answer {
                Ok(reply) => return Ok(FileReport::new(reply, seconds)),
                // The server says so of a header that does not parse.
                Err(Trouble::Refused(why)) => return Ok(FileReport::refused(why, seconds)),
                Err(Trouble::Failure(failure @ (Failure::Time(_) | Failure::Memory(_)))) => {
                    return Ok(FileReport::limit(&failure, seconds));
                }
                Err(Trouble::Failure(failure)) => {
                    losses += 1;
                    match failure {
                        Failure::Died(_) if losses >= LOSSES => {
                            return Ok(FileReport::limit(&failure, seconds));
                        }
                        _ if losses > LOSSES => return Err(fault(&failure)),
                        _ => {}
                    }
                }
                Err(Trouble::Start(error)) => return Err(fault(&error)),
            }
        }
    }
}

impl FileReport {
    fn new(reply: Reply, seconds: f64) -> FileReport {
        let (messages, sorries) = (reply.messages, reply.sorries);
        let outcome = match messages.iter().any(|message| message.severity == "error") {
            true => FileOutcome::Fails,
            // A `sorry` that a macro wrote has no place in the file, but Lean says so.
            false if !sorries.is_empty() || messages.iter().any(Message::is_about_sorry) => {
                FileOutcome::Sorry
            }
            false => FileOutcome::Passes,
        };
        FileReport { outcome, why: String::new(), messages, sorries, seconds }
    }

    fn refused(why: String, seconds: f64) -> FileReport {
        let message = Message {
            severity: "error".into(),
            line: 1,
            end_line: 1,
            text: why,
            ..Message::default()
        };
        let (messages, sorries) = (vec![message], Vec::new());
        FileReport { outcome: FileOutcome::Fails, why: String::new(), messages, sorries, seconds }
    }

    fn limit(failure: &Failure, seconds: f64) -> FileReport {
        let (messages, sorries) = (Vec::new(), Vec::new());
        let why = failure.to_string();
        FileReport { outcome: FileOutcome::Limit, why, messages, sorries, seconds }
    }
}

impl Message {
    fn is_about_sorry(&self) -> bool {
        self.severity == "warning" && self.text.starts_with("declaration uses")
    }
}
