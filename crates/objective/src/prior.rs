//! The two-parameter prior on off-trace behaviour (the paper's appendix on priors).

use crate::error::ObjectiveError;

/// What a miss is believed to cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Prior {
    kappa: f64,
    absorption: f64,
}

impl Prior {
    /// A miss costs one expansion and the search always comes back: the trace-supported surrogate
    /// itself.
    pub const NONE: Prior = Prior { kappa: 1.0, absorption: 0.0 };

    /// A miss costs `kappa >= 1` expansions in all, and with probability `0 <= absorption < 1` the
    /// search never returns.
    pub fn new(kappa: f64, absorption: f64) -> Result<Self, ObjectiveError> {
        if !(kappa >= 1.0 && kappa.is_finite()) {
            return Err(ObjectiveError::Kappa(kappa));
        }
        if !(0.0..1.0).contains(&absorption) {
            return Err(ObjectiveError::Absorption(absorption));
        }
        Ok(Prior { kappa, absorption })
    }

    /// kappa: expansions a miss consumes.
    pub fn kappa(&self) -> f64 {
        self.kappa
    }

    /// q: the probability that a miss is never recovered from.
    pub fn absorption(&self) -> f64 {
        self.absorption
    }

    /// N_eff = L + (N - L) / kappa before rounding (eq:offtrace_neff), for N >= L.
    pub fn effective_budget(&self, length: usize, budget: u64) -> f64 {
        let length = length as f64;
        length + (budget as f64 - length) / self.kappa
    }
}

impl Default for Prior {
    fn default() -> Self {
        Prior::NONE
    }
}
