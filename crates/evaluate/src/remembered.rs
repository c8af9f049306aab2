//! A prover that is not asked twice: what one search was told about the states of a theorem, the
//! next search of that theorem is told from memory. A study searches the same theorems many times,
//! with models that were trained alike, and most of what their searches try is the same.
//!
//! A verdict is a property of a state and a tactic, so it is the same from memory; a state that is
//! known is made anew in a session of the prover's only when something new is tried there. What a
//! clock says is no such property: a tactic that took too long in one search is tried again in the
//! next, which may find the machine less busy.

use std::collections::HashMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use catamount_search::{
    Checked, Environment, Fault, Identity, Patience, Session, Setup, Spent, StateId, Verdict,
};
use catamount_traces::Theorem;

/// Bytes of texts that are kept at most, roughly; then everything is forgotten.
const MOST: usize = 2 << 30;
/// What an entry takes besides its texts.
const ENTRY: usize = 128;

/// See the module's text.
pub struct Remembered {
    prover: Arc<dyn Environment>,
    theorems: Mutex<HashMap<Theorem, Arc<Shared>>>,
    bytes: Arc<AtomicUsize>,
}

impl Remembered {
    /// Remembers what this prover says.
    pub fn new(prover: Arc<dyn Environment>) -> Self {
        Remembered { prover, theorems: Mutex::default(), bytes: Arc::default() }
    }

    fn known(&self, theorem: &Theorem) -> Arc<Shared> {
        let mut theorems = self.theorems.lock().unwrap_or_else(PoisonError::into_inner);
        if self.bytes.load(Ordering::Relaxed) > MOST {
            // Searches that are under way keep what they have until they end.
            theorems.clear();
            self.bytes.store(0, Ordering::Relaxed);
        }
        if let Some(known) = theorems.get(theorem) {
            return Arc::clone(known);
        }
        let known = Arc::new(Shared { known: Mutex::default(), bytes: Arc::clone(&self.bytes) });
        theorems.insert(theorem.clone(), Arc::clone(&known));
        known
    }
}

impl Environment for Remembered {
    fn open(&self, theorem: &Theorem) -> Result<Box<dyn Session>, Fault> {
        self.open_within(theorem, &Patience::default())
    }

    fn open_within(
        &self,
        theorem: &Theorem,
        patience: &Patience,
    ) -> Result<Box<dyn Session>, Fault> {
        let known = self.known(theorem);
        let root = known.lock().states.first().map(|root| root.text.clone());
        let (root, session) = match root {
            Some(root) => (root, None),
            None => {
                let session = self.prover.open_within(theorem, patience)?;
                let root = session.root().to_string();
                known.begin(&root);
                (root, Some(session))
            }
        };
        let prover = session.is_some().then_some(StateId(0));
        let at_root = State { known: 0, parent: StateId(0), tactic: String::new(), prover };
        Ok(Box::new(Recalling {
            prover: Arc::clone(&self.prover),
            theorem: theorem.clone(),
            patience: patience.clone(),
            known,
            root,
            session,
            states: vec![at_root],
            recalled: 0,
            momentary: false,
        }))
    }

    fn check(&self, theorem: &Theorem, tactics: &[String]) -> Result<Checked, Fault> {
        self.check_within(theorem, tactics, &Patience::default())
    }

    /// The same tactics prove the same theorem: they are judged once. A refusal may be a clock's.
    fn check_within(
        &self,
        theorem: &Theorem,
        tactics: &[String],
        patience: &Patience,
    ) -> Result<Checked, Fault> {
        let known = self.known(theorem);
        let before = known.lock().checked.get(tactics).cloned();
        if let Some(checked) = before {
            return Ok(checked);
        }
        let checked = self.prover.check_within(theorem, tactics, patience)?;
        if matches!(checked, Checked::Proved { .. }) {
            known.lock().checked.insert(tactics.to_vec(), checked.clone());
        }
        Ok(checked)
    }

    fn describe(&self) -> String {
        self.prover.describe()
    }

    fn identity(&self) -> Identity {
        self.prover.identity()
    }

    fn setup(&self) -> Option<Setup> {
        self.prover.setup()
    }

    fn spent(&self) -> Option<Spent> {
        self.prover.spent()
    }
}

/// What is known of a theorem, by all of its searches.
struct Shared {
    known: Mutex<Known>,
    bytes: Arc<AtomicUsize>,
}

#[derive(Default)]
struct Known {
    /// The first is the root.
    states: Vec<KnownState>,
    checked: HashMap<Vec<String>, Checked>,
}

struct KnownState {
    text: String,
    tried: HashMap<String, Told>,
}

/// What the prover said of a tactic.
#[derive(Clone)]
enum Told {
    Proved,
    /// The index of the state that it leaves.
    Open(usize),
    Rejected(String),
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn begin(&self, root: &str) {
        let mut known = self.lock();
        if known.states.is_empty() {
            known.states.push(KnownState { text: root.to_string(), tried: HashMap::new() });
        }
    }

    /// What was said of a tactic at a state.
    fn told(&self, state: usize, tactic: &str) -> Option<Told> {
        self.lock().states[state].tried.get(tactic).cloned()
    }

    /// Keeps a verdict. Two searches may have asked at once: what was said first is believed by
    /// both.
    fn keep(&self, state: usize, tactic: &str, verdict: &Verdict) -> Told {
        let mut known = self.lock();
        if let Some(before) = known.states[state].tried.get(tactic) {
            return before.clone();
        }
        let (told, text) = match verdict {
            Verdict::Proved => (Told::Proved, ""),
            Verdict::Open { text, .. } => (Told::Open(known.states.len()), text.as_str()),
            Verdict::Rejected { reason } => (Told::Rejected(reason.clone()), reason.as_str()),
        };
        self.bytes.fetch_add(tactic.len() + text.len() + ENTRY, Ordering::Relaxed);
        known.states[state].tried.insert(tactic.to_string(), told.clone());
        if matches!(told, Told::Open(_)) {
            known.states.push(KnownState { text: text.to_string(), tried: HashMap::new() });
        }
        told
    }

    fn text(&self, state: usize) -> String {
        self.lock().states[state].text.clone()
    }
}

/// A state of one search.
struct State {
    /// Its index among the theorem's known states.
    known: usize,
    parent: StateId,
    tactic: String,
    /// Its name in the prover's session, once it was made there.
    prover: Option<StateId>,
}

struct Recalling {
    prover: Arc<dyn Environment>,
    theorem: Theorem,
    patience: Patience,
    known: Arc<Shared>,
    root: String,
    /// Opened once something is asked that is not known.
    session: Option<Box<dyn Session>>,
    states: Vec<State>,
    recalled: u64,
    /// Whether the last verdict was the moment's.
    momentary: bool,
}

impl Recalling {
    /// The name of a state in the prover's session, where it is made anew if need be.
    fn made(&mut self, state: StateId) -> Result<StateId, Fault> {
        if self.session.is_none() {
            self.session = Some(self.prover.open_within(&self.theorem, &self.patience)?);
            self.states[0].prover = Some(StateId(0));
        }
        let session = self.session.as_mut().expect("opened above");
        let mut missing = Vec::new();
        let mut at = state;
        let mut made = loop {
            let here = &self.states[at.0 as usize];
            match here.prover {
                Some(made) => break made,
                None => missing.push(at),
            }
            at = here.parent;
        };
        for step in missing.into_iter().rev() {
            let here = &mut self.states[step.0 as usize];
            made = match session.apply(made, &here.tactic)? {
                Verdict::Open { state, .. } => state,
                _ => {
                    let tactic = &here.tactic;
                    return Err(Fault(format!(
                        "`{tactic}` was valid when it was first tried, and is not now"
                    )));
                }
            };
            here.prover = Some(made);
        }
        Ok(made)
    }

    /// What was told, in this search's words: a state that it leaves comes `from` where it was
    /// tried.
    fn verdict(&mut self, told: Told, from: State) -> Result<Verdict, Fault> {
        let known = match told {
            Told::Proved => return Ok(Verdict::Proved),
            Told::Rejected(reason) => return Ok(Verdict::Rejected { reason }),
            Told::Open(known) => known,
        };
        let name = u32::try_from(self.states.len()).map_err(|_| Fault("too many states".into()))?;
        self.states.push(State { known, ..from });
        Ok(Verdict::Open { state: StateId(name), text: self.known.text(known) })
    }
}

impl Session for Recalling {
    fn root(&self) -> &str {
        &self.root
    }

    fn apply(&mut self, state: StateId, tactic: &str) -> Result<Verdict, Fault> {
        let Some(here) = self.states.get(state.0 as usize).map(|here| here.known) else {
            return Err(Fault(format!("state {} was never handed out", state.0)));
        };
        self.momentary = false;
        let from = |prover| State { known: here, parent: state, tactic: tactic.into(), prover };
        if let Some(told) = self.known.told(here, tactic) {
            self.recalled += 1;
            return self.verdict(told, from(None));
        }
        let made = self.made(state)?;
        let session = self.session.as_mut().expect("a state was made in it");
        let verdict = session.apply(made, tactic)?;
        if session.momentary() {
            self.momentary = true;
            return Ok(verdict);
        }
        let told = self.known.keep(here, tactic, &verdict);
        let made = match verdict {
            Verdict::Open { state, .. } => Some(state),
            _ => None,
        };
        self.verdict(told, from(made))
    }

    fn release(&mut self, state: StateId) {
        let Some(here) = self.states.get_mut(state.0 as usize) else { return };
        if let (Some(made), Some(session)) = (here.prover.take(), &mut self.session) {
            session.release(made);
        }
    }

    fn momentary(&self) -> bool {
        self.momentary
    }

    fn recalled(&self) -> u64 {
        self.recalled
    }
}
