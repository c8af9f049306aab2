//! Terms of finished proofs, kept from the session that found them until they are judged.
//!
//! A check needs the terms, not the tactics: with them at hand nothing has to be replayed.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use crate::session::Target;
use crate::worker::Place;

/// How many bytes are kept; the oldest go first.
const MOST: usize = 64 << 20;

/// See the module's text.
#[derive(Default)]
pub(crate) struct Found {
    kept: Mutex<VecDeque<(String, String)>>,
}

fn key(place: &Place, target: &Target, tactics: &[String]) -> String {
    format!("{}\n{target:?}\n{tactics:?}", place.key())
}

impl Found {
    pub fn keep(&self, place: &Place, target: &Target, tactics: &[String], terms: String) {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.push_back((key(place, target, tactics), terms));
        let mut total: usize = kept.iter().map(|(_, terms)| terms.len()).sum();
        while total > MOST
            && let Some((_, oldest)) = kept.pop_front()
        {
            total -= oldest.len();
        }
    }

    pub fn take(&self, place: &Place, target: &Target, tactics: &[String]) -> Option<String> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let key = key(place, target, tactics);
        let at = kept.iter().rposition(|(k, _)| *k == key)?;
        kept.remove(at).map(|(_, terms)| terms)
    }
}
