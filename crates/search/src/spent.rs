//! Where the time of a prover's processes went.

use std::fmt;
use std::ops::{AddAssign, Sub};

use serde::{Deserialize, Serialize};

/// Seconds that a prover's processes were at work, summed over them, by what they worked at. What
/// is missing to the time that they were there, they waited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spent {
    /// Starting, and importing what they always import.
    pub starting: f64,
    /// Bringing theorems up: importing for their files, and elaborating these as far as needed.
    pub opening: f64,
    /// Tactics that nobody had tried.
    pub tactics: f64,
    /// Tactics once more, because a process or a session was lost.
    pub again: f64,
    /// Handing finished proofs over.
    pub handing_over: f64,
    /// Checking those, by processes that do nothing else.
    pub checking: f64,
    /// How many tactics nobody had tried.
    pub tried: u64,
    /// How many processes run tactics.
    pub provers: usize,
}

impl Spent {
    /// Seconds of the processes that run tactics.
    pub fn proving(&self) -> f64 {
        self.starting + self.opening + self.tactics + self.again + self.handing_over
    }
}

impl AddAssign for Spent {
    fn add_assign(&mut self, other: Spent) {
        self.starting += other.starting;
        self.opening += other.opening;
        self.tactics += other.tactics;
        self.again += other.again;
        self.handing_over += other.handing_over;
        self.checking += other.checking;
        self.tried += other.tried;
        self.provers = self.provers.max(other.provers);
    }
}

impl Sub for Spent {
    type Output = Spent;

    /// What came since `before`.
    fn sub(self, before: Spent) -> Spent {
        Spent {
            starting: self.starting - before.starting,
            opening: self.opening - before.opening,
            tactics: self.tactics - before.tactics,
            again: self.again - before.again,
            handing_over: self.handing_over - before.handing_over,
            checking: self.checking - before.checking,
            tried: self.tried - before.tried,
            provers: self.provers,
        }
    }
}

impl fmt::Display for Spent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.proving().max(1e-9);
        let share = |seconds: f64| 100.0 * seconds / all;
        write!(
            f,
            "{} provers at work for {all:.1} s: {:.0} % tactics ({} of them, {:.0}/s), {:.0} % \
             opening theorems, {:.0} % starting, {:.0} % tactics again, {:.0} % handing proofs \
             over; checks {:.1} s beside",
            self.provers,
            share(self.tactics),
            self.tried,
            self.tried as f64 / self.tactics.max(1e-9),
            share(self.opening),
            share(self.starting),
            share(self.again),
            share(self.handing_over),
            self.checking,
        )
    }
}
