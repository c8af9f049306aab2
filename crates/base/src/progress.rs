//! How far long work is: a bar with a rate and an estimate on a terminal, a line now and then
//! elsewhere. Always on standard error, so that results can be piped.

use std::cell::RefCell;
use std::io::IsTerminal;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use crate::complain::complain;
use crate::pace::Pace;

/// Whether nothing is said on the way.
static QUIET: AtomicBool = AtomicBool::new(false);

/// Says nothing on the way from now on: no bars, no lines. Errors are none of its business.
pub fn be_quiet() {
    QUIET.store(true, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

thread_local! {
    /// Where this thread works, in front of each of its lines; empty where it is the only one.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Does work that others are doing beside it: this thread's lines say where they come from, and
/// there are no bars, which would overwrite each other.
pub fn speaking_at<R>(place: &str, work: impl FnOnce() -> R) -> R {
    let before = PLACE.replace(format!("{place}: "));
    let result = work();
    PLACE.set(before);
    result
}

fn place() -> String {
    PLACE.with_borrow(String::clone)
}

/// Whether there is a terminal, and this thread has it to itself.
fn may_draw() -> bool {
    std::io::stderr().is_terminal() && place().is_empty()
}

/// Between two lines where there is no terminal.
const LINES: Duration = Duration::from_secs(30);

/// Long work on display.
#[derive(Debug)]
pub struct Progress {
    bar: ProgressBar,
    unit: String,
    /// Where the work is done, if in several places.
    place: String,
    pace: Arc<Mutex<Pace>>,
    /// When the next line is due, where there is no terminal; none if nobody looks.
    due: Option<Mutex<Instant>>,
}

impl Progress {
    /// Work on so many items of a kind.
    pub fn new(items: u64, unit: &str) -> Self {
        if is_quiet() {
            return Progress::hidden();
        }
        let template = format!(
            "{{prefix}}{{bar:30}} {{pos}}/{{len}} {unit}  {{speed}}  {{elapsed}} + {{rest}} left  \
             {{msg}}"
        );
        let pace: Arc<Mutex<Pace>> = Arc::default();
        let (speed, rest) = (pace.clone(), pace.clone());
        let style = ProgressStyle::with_template(&template)
            .expect("a fixed template")
            .with_key("speed", move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                let (rate, _) = begun(&speed).said(state.pos(), state.len().unwrap_or(0));
                let _ = text.write_str(&rate);
            })
            .with_key("rest", move |state: &ProgressState, text: &mut dyn std::fmt::Write| {
                let (_, left) = begun(&rest).said(state.pos(), state.len().unwrap_or(0));
                let _ = text.write_str(&left);
            });
        let bar = ProgressBar::new(items).with_style(style.progress_chars("█▉▊▋▌▍▎▏ "));
        let draws = may_draw();
        if !draws {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        let due = (!draws).then(|| Mutex::new(Instant::now() + LINES));
        Progress { bar, unit: unit.to_string(), place: place(), pace, due }
    }

    /// Work that nobody watches.
    pub fn hidden() -> Self {
        let (bar, pace) = (ProgressBar::hidden(), Arc::default());
        Progress { bar, unit: String::new(), place: String::new(), pace, due: None }
    }

    /// With a name in front.
    pub fn named(self, name: &str) -> Self {
        self.bar.set_prefix(format!("{name} "));
        self
    }

    /// Begins at a position that an earlier process reached: its speed says nothing about this one.
    pub fn resumed_at(&self, position: u64) {
        self.bar.set_position(position);
        *self.pace.lock().unwrap_or_else(PoisonError::into_inner) = Pace::from(position);
    }

    /// Sets how many items there are.
    pub fn set_length(&self, items: u64) {
        self.bar.set_length(items);
    }

    /// Sets how many items are done.
    pub fn set_position(&self, position: u64) {
        self.bar.set_position(position);
        self.line();
    }

    /// So many items more are done.
    pub fn advance(&self, items: u64) {
        self.bar.inc(items);
        self.line();
    }

    /// Says something beside the numbers.
    pub fn set_message(&self, message: impl Into<String>) {
        self.bar.set_message(message.into());
    }

    /// Writes a line above the bar.
    pub fn say(&self, line: impl AsRef<str>) {
        self.bar.suspend(|| say(line.as_ref()));
    }

    /// Does something that writes to the terminal itself.
    pub fn suspended<R>(&self, work: impl FnOnce() -> R) -> R {
        self.bar.suspend(work)
    }

    /// Takes the bar away.
    pub fn finish(&self) {
        self.bar.finish_and_clear();
    }

    fn line(&self) {
        let Some(due) = &self.due else { return };
        let Ok(mut due) = due.try_lock() else { return };
        let now = Instant::now();
        if now < *due {
            return;
        }
        *due = now + LINES;
        let (at, of) = (self.bar.position(), self.bar.length().unwrap_or(0));
        let (prefix, message) = (self.bar.prefix(), self.bar.message());
        let (rate, left) = begun(&self.pace).said(at, of);
        let Progress { unit, place, .. } = self;
        // Whoever counts may be another thread than whoever works.
        utter(&format!("{place}{prefix}{at}/{of} {unit}  {rate}  {left} left  {message}"));
    }
}

fn begun(pace: &Mutex<Pace>) -> Pace {
    *pace.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Long work of which nobody knows how much there is: a spinner on a terminal, a line now and then
/// elsewhere.
#[derive(Debug)]
pub struct Activity {
    what: String,
    spinner: ProgressBar,
    begun: Instant,
    /// When the next line is due, where there is no terminal.
    due: Option<Mutex<Instant>>,
}

impl Activity {
    /// Says what begins.
    pub fn begin(what: impl Into<String>) -> Self {
        let (what, begun) = (what.into(), Instant::now());
        let spinner = ProgressBar::new_spinner().with_message(what.clone());
        let draws = may_draw();
        if is_quiet() || !draws {
            spinner.set_draw_target(ProgressDrawTarget::hidden());
        } else {
            spinner.enable_steady_tick(Duration::from_millis(100));
        }
        if !draws {
            say(format!("{what} ..."));
        }
        let due = (!draws).then(|| Mutex::new(begun + LINES));
        Activity { what, spinner, begun, due }
    }

    /// Says how far it is.
    pub fn at(&self, how_far: impl std::fmt::Display) {
        let text = format!("{}: {how_far}", self.what);
        match &self.due {
            None => self.spinner.set_message(text),
            Some(due) => {
                let Ok(mut due) = due.try_lock() else { return };
                let now = Instant::now();
                if now >= *due {
                    *due = now + LINES;
                    say(text);
                }
            }
        }
    }

    /// Says that it is done, and how long it took.
    pub fn done(self) {
        self.spinner.finish_and_clear();
        say(format!("{}: done, {:.0} s", self.what, self.begun.elapsed().as_secs_f64()));
    }

    /// Takes the spinner away without a word.
    pub fn finish(self) {
        self.spinner.finish_and_clear();
    }
}

/// A line on standard error, unless nothing is to be said; whether anybody reads it must not decide
/// whether the work succeeds.
pub fn say(line: impl AsRef<str>) {
    utter(&format!("{}{}", place(), line.as_ref()));
}

fn utter(line: &str) {
    if !is_quiet() {
        complain(format_args!("{line}\n"));
    }
}
