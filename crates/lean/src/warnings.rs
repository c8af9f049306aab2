//! What would be refused in a stranger's claim and is only odd in the user's own header and
//! statement: it is said once, and the proof counts.

use std::collections::{BTreeSet, HashSet};
use std::hash::{BuildHasher, RandomState};
use std::sync::{Mutex, PoisonError};

use crate::environment::Lean;
use crate::helpers;
use crate::reading::misleading;
use crate::session::Target;
use crate::worker::{Owner, Place, PlaceText, Trouble, Worker};

/// See the module's text.
#[derive(Default)]
pub(crate) struct Warnings {
    said: Mutex<BTreeSet<String>>,
    /// Hashes of what was looked at: many proofs have the same header and statement.
    seen: Mutex<HashSet<u64>>,
    hasher: RandomState,
}

impl Warnings {
    /// Whether a text is looked at for the first time.
    fn is_new(&self, text: &str) -> bool {
        let seen = self.hasher.hash_one(text);
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(seen)
    }

    fn say(&self, statement: &str, why: &str) {
        let line = statement.lines().next().unwrap_or_default();
        let warning = format!("`{line}`: {why}");
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).insert(warning.clone()) {
            let said = format_args!("Lean, a header or statement to look at: {warning}\n");
            catamount_base::complain(said);
        }
    }
}

impl Lean {
    /// What in the user's own headers and statements could mislead a reader. In a stranger's claim
    /// it would be refused.
    pub fn warnings(&self) -> Vec<String> {
        let said = self.warnings.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().cloned().collect()
    }

    /// Looks at a header and a statement of the user's, once: as text, and as the policy for
    /// strangers has it. What the second look does to the process happens once, too, and is no
    /// reason not to check a proof.
    pub(crate) fn look_at(
        &self,
        worker: &mut Worker,
        place: &Place,
        target: &Target,
    ) -> Result<(), Trouble> {
        let (PlaceText::Header(header), Owner::User, Target::Statement(statement)) =
            (&place.text, place.owner, target)
        else {
            return Ok(());
        };
        if !self.warnings.is_new(&format!("{}\n{statement}", place.key())) {
            return Ok(());
        }
        for (field, text) in [("header", header), ("statement", statement)] {
            if let Some(why) = misleading(text) {
                self.warnings.say(statement, &format!("in the {field}, {why}"));
            }
        }
        let named = place.imports.iter().filter(|module| *module != helpers::MODULE);
        if let Some(module) = self.own_module(named) {
            self.warnings.say(statement, &format!("`{module}` is this program's own, no library"));
        }
        if header.trim().is_empty() {
            return Ok(());
        }
        worker.ready(&place.imports)?;
        let objection = worker.header(header, true, false).and_then(|ctx| {
            let heartbeats = self.options.heartbeats.max(400_000);
            let request = target.request(ctx, heartbeats, Owner::Stranger);
            let opened = worker.demand(&request, self.options.check_limit)?;
            worker.forget(worker.generation(), [opened.state]);
            Ok(())
        });
        match objection {
            Err(Trouble::Refused(why)) => {
                self.warnings.say(statement, &why);
                Ok(())
            }
            other => other,
        }
    }
}
