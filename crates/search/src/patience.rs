//! How long a search waits for its prover.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use crate::Fault;

/// How long somebody waits for a prover that may never answer: one elsewhere, say.
#[derive(Clone, Debug, Default)]
pub struct Patience {
    /// When the answer is of no use any more.
    pub deadline: Option<Instant>,
    /// Set, by another thread, once nobody waits.
    pub over: Arc<AtomicBool>,
}

/// What a search is told whose time was up before its prover had answered.
const LATE: &str = "its time was up before the prover answered";

impl Patience {
    /// A fault once nobody waits any more, or no longer.
    pub fn check(&self) -> Result<(), Fault> {
        if self.is_over() {
            return Err(Fault("nobody waits for the prover any more".into()));
        }
        match self.deadline {
            Some(deadline) if Instant::now() >= deadline => Err(Fault(LATE.into())),
            _ => Ok(()),
        }
    }

    /// Whether nobody waits any more.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }
}

impl Fault {
    /// Whether nothing failed, except to come in time.
    pub fn is_late(&self) -> bool {
        self.0 == LATE
    }
}
