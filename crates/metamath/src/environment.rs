//! Metamath behind the interface of the search.

use std::path::PathBuf;
use std::sync::Arc;

use catamount_base::Content;
use catamount_search::{Checked, Environment, Fault, Identity, Session, Setup, StateId, Verdict};
use catamount_traces::Theorem;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::assertion::AssertionId;
use crate::check;
use crate::database::Database;
use crate::prover::{Goals, Prover};

/// What a [`Setup`] calls this prover.
pub const PROVER: &str = "metamath";

/// How this prover is set up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Settings {
    /// The database's file.
    pub database: PathBuf,
    /// Whether proofs may rest on theorems that have no proof of their own.
    pub allow_unproved: bool,
}

/// A Metamath database as a prover. Cloning it is cheap.
#[derive(Clone)]
pub struct Metamath {
    database: Arc<Database>,
}

impl Metamath {
    /// The prover of a database.
    pub fn new(database: impl Into<Arc<Database>>) -> Self {
        Metamath { database: database.into() }
    }

    /// The database.
    pub fn database(&self) -> &Arc<Database> {
        &self.database
    }

    /// Checks many proofs (a theorem's label and its tactics) on all cores; the answers are in the
    /// order of the questions.
    pub fn check_all<L, T>(&self, proofs: &[(L, T)]) -> Vec<Checked>
    where
        L: AsRef<str> + Sync,
        T: AsRef<[String]> + Sync,
    {
        proofs
            .par_iter()
            .map(|(label, tactics)| self.checked(label.as_ref(), "", tactics.as_ref()))
            .collect()
    }

    /// What the prover on a database of this content is.
    pub fn identity_of(content: &Content, allows_unproved: bool) -> Identity {
        Identity::new("metamath")
            .with("database", content)
            .with("unproved theorems allowed", allows_unproved)
    }

    /// The theorem of a record, which must say of it what the database says.
    fn find(&self, label: &str, statement: &str) -> Result<AssertionId, String> {
        let theorem = self.database.theorem(label).map_err(|error| error.to_string())?;
        self.database.agrees(theorem, statement)?;
        Ok(theorem)
    }

    fn checked(&self, label: &str, statement: &str, tactics: &[String]) -> Checked {
        let checked = self
            .find(label, statement)
            .and_then(|theorem| check::check(&self.database, theorem, tactics));
        match checked {
            Ok((_, rests_on)) => Checked::proved(rests_on.listed()),
            Err(reason) => Checked::Refused { reason },
        }
    }
}

impl Environment for Metamath {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        let id = self.find(&theorem.name, &theorem.statement).map_err(Fault)?;
        let mut prover = Prover::new(&self.database, id);
        let states = vec![prover.root()];
        let root = prover.text(&self.database, prover.root());
        Ok(Box::new(Proving { database: self.database.clone(), prover, root, states }))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        // Another verifier may well accept a proof of it: no verdict is better than a refusal.
        if let Some(unsupported) = self.database.not_understood(&theorem.name) {
            let label = &theorem.name;
            return Err(Fault(format!("no verdict on `{label}`: {}", unsupported.reason)));
        }
        Ok(self.checked(&theorem.name, &theorem.statement, tactics))
    }

    fn describe(&self) -> String {
        let (path, theorems) = (self.database.path().display(), self.database.theorems().count());
        format!(
            "Metamath (catamount-metamath {}, metamath-rs), {path}, {theorems} theorems{}",
            env!("CARGO_PKG_VERSION"),
            if self.database.allows_unproved() { ", unproved ones allowed" } else { "" }
        )
    }

    fn identity(&self) -> Identity {
        Metamath::identity_of(self.database.content(), self.database.allows_unproved())
    }

    fn setup(&self) -> Option<Setup> {
        let path = self.database.path();
        let database = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
        Setup::of(PROVER, &Settings { database, allow_unproved: self.database.allows_unproved() })
    }
}

/// One theorem being proved.
struct Proving {
    database: Arc<Database>,
    prover: Prover,
    root: String,
    states: Vec<Goals>,
}

impl Session for Proving {
    fn root(&self) -> &str {
        &self.root
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        let goals = *self
            .states
            .get(state.0 as usize)
            .ok_or_else(|| Fault(format!("there is no state {}", state.0)))?;
        let database = &*self.database;
        let applied = self
            .prover
            .read(database, tactic)
            .and_then(|tactic| self.prover.apply(database, goals, &tactic));
        Ok(match applied {
            Err(reason) => Verdict::Rejected { reason },
            Ok(next) if next.is_proved() => Verdict::Proved,
            Ok(next) => {
                self.states.push(next);
                let text = self.prover.text(database, next);
                Verdict::Open { state: StateId(self.states.len() as u32 - 1), text }
            }
        })
    }
}
