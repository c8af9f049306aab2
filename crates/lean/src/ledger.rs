//! What processes worked at, and for how long.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::wire::Request;

/// What a process works at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Work {
    Starting,
    Opening,
    Tactics,
    Again,
    HandingOver,
    Judging,
}

const KINDS: usize = Work::Judging as usize + 1;

impl Work {
    /// What an answer to this is.
    pub fn of(request: &Request<'_>) -> Work {
        match request {
            Request::Header { .. }
            | Request::File { .. }
            | Request::Start { .. }
            | Request::Open { .. } => Work::Opening,
            Request::Tac { again: false, .. } => Work::Tactics,
            Request::Tac { again: true, .. } => Work::Again,
            Request::Finish { .. } | Request::Challenge { .. } => Work::HandingOver,
            Request::Judge { .. } => Work::Judging,
        }
    }
}

/// Microseconds and how often, by kind of work. Many workers write it.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    time: [AtomicU64; KINDS],
    times: [AtomicU64; KINDS],
}

impl Ledger {
    pub fn add(&self, work: Work, time: Duration) {
        self.time[work as usize].fetch_add(time.as_micros() as u64, Ordering::Relaxed);
        self.times[work as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// Seconds at one kind of work.
    pub fn seconds(&self, work: Work) -> f64 {
        self.time[work as usize].load(Ordering::Relaxed) as f64 / 1e6
    }

    /// Seconds at any.
    pub fn all(&self) -> f64 {
        self.time.iter().map(|time| time.load(Ordering::Relaxed)).sum::<u64>() as f64 / 1e6
    }

    /// How often one kind of work was done.
    pub fn times(&self, work: Work) -> u64 {
        self.times[work as usize].load(Ordering::Relaxed)
    }
}
