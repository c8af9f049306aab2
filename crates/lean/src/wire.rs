//! The protocol's messages (see PROTOCOL.md).

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::file_report::{Message, Sorry};

/// What is asked of the server.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "cmd", rename_all = "lowercase")]
pub(crate) enum Request<'a> {
    Header {
        ctx: u64,
        text: &'a str,
        strict: bool,
        proofs: bool,
    },
    File {
        ctx: u64,
        text: &'a str,
        path: &'a str,
        module: &'a str,
        trace: bool,
        messages: bool,
        proofs: bool,
        imports: bool,
        initialise: bool,
        without: &'a [String],
        before: &'a str,
        after: &'a str,
        save: &'a str,
        whole: bool,
    },
    Start {
        ctx: u64,
        statement: &'a str,
        heartbeats: u64,
        strict: bool,
    },
    Open {
        ctx: u64,
        theorem: &'a str,
        line: u32,
        heartbeats: u64,
    },
    Tac {
        state: u64,
        tactic: &'a str,
        heartbeats: u64,
        /// It has been run before, in a process or a session that is lost.
        #[serde(skip)]
        again: bool,
    },
    Finish {
        state: u64,
    },
    Challenge {
        state: u64,
        uses: &'a [Vec<Value>],
        declares: &'a [Vec<Value>],
        proofs: bool,
        whole: bool,
        module: &'a str,
    },
    /// For the judge, not the server.
    Judge {
        challenge: &'a Value,
        proof: &'a Value,
    },
}

/// A request as it is sent: with an id that its answer must repeat, and states that are not needed
/// any more.
#[derive(Serialize)]
pub(crate) struct Envelope<'a> {
    pub id: &'a str,
    #[serde(skip_serializing_if = "<[u64]>::is_empty")]
    pub drop: &'a [u64],
    #[serde(flatten)]
    pub request: &'a Request<'a>,
}

/// The server's first line.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hello {
    pub protocol: u32,
}

/// Any answer; which fields are there depends on the request.
#[derive(Clone, Debug, Default, Deserialize)]
pub(crate) struct Reply {
    pub ok: bool,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub error: String,
    #[serde(default)]
    pub ctx: u64,
    #[serde(default)]
    pub state: u64,
    #[serde(default)]
    pub goals: String,
    #[serde(default)]
    pub done: bool,
    #[serde(default)]
    pub axioms: Vec<String>,
    #[serde(default)]
    pub library_axioms_visible: bool,
    #[serde(default)]
    pub terms: String,
    #[serde(default)]
    pub lean: String,
    #[serde(default)]
    pub githash: String,
    #[serde(default)]
    pub imports: Vec<String>,
    #[serde(default)]
    pub missing: Vec<String>,
    #[serde(default)]
    pub taken: Vec<String>,
    #[serde(default)]
    pub stated: Vec<String>,
    #[serde(default)]
    pub hypotheses: Vec<Hypothesis>,
    #[serde(default)]
    pub theorems: Vec<FileTheorem>,
    #[serde(default)]
    pub errors: Vec<FileError>,
    #[serde(default)]
    pub messages: Vec<Message>,
    #[serde(default)]
    pub sorries: Vec<Sorry>,
}

impl Reply {
    /// The class and the words of a refusal in one line.
    pub fn refusal(&self) -> String {
        format!("{}: {}", self.kind, self.error)
    }
}

/// What a stranger's header assumes by `variable`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Hypothesis {
    pub text: String,
    /// Which of the theorem's arguments it is.
    pub position: u32,
    /// The statement is not about it.
    pub hidden: bool,
    /// It is true anyway.
    pub holds: bool,
}

/// One theorem of an elaborated file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileTheorem {
    pub name: String,
    pub line: u32,
    pub statement: String,
    pub proof: String,
    #[serde(default)]
    pub steps: Vec<catamount_traces::Step>,
    #[serde(default)]
    pub lost: Option<String>,
    #[serde(default)]
    pub detail: String,
}

/// A command of a file that failed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct FileError {
    pub line: u32,
    pub error: String,
}

/// The id of the answer in a line of the server's output, if the line is an answer at all.
pub(crate) fn parse_reply(line: &[u8], id: &str) -> Option<Reply> {
    #[derive(Deserialize)]
    struct WithId {
        #[serde(default)]
        id: Option<String>,
        #[serde(flatten)]
        reply: Reply,
    }
    let parsed: WithId = serde_json::from_slice(line).ok()?;
    (parsed.id.as_deref() == Some(id)).then_some(parsed.reply)
}
