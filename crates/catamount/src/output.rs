//! Standard output and standard error, when nobody reads them or there is no room for what is
//! printed.
//!
//! `println!`, `print!` and `eprintln!` of this program end here, and so do the writers of commands
//! with much to say. A reader that has seen enough (`catamount ... | head`) ends the command
//! quietly; a device that is full is an error of its own.

use std::fmt;
use std::io::{self, ErrorKind, StdoutLock, Write};
use std::sync::atomic::{AtomicBool, Ordering};

use catamount_base::complain;

/// Whether details are wanted.
static VERBOSE: AtomicBool = AtomicBool::new(false);

/// Takes `--quiet` and `--verbose` to heart.
pub fn set_level(quiet: bool, verbose: bool) {
    VERBOSE.store(verbose, Ordering::Relaxed);
    if quiet {
        catamount_base::be_quiet();
    }
}

/// Says something that only `--verbose` wants to know.
pub fn detail(text: fmt::Arguments<'_>) {
    if VERBOSE.load(Ordering::Relaxed) {
        complain(format_args!("{text}\n"));
    }
}

/// Standard output for a command with much to say. Its writes do not fail: they end the program.
pub struct Output(StdoutLock<'static>);

/// Takes hold of standard output.
pub fn lock() -> Output {
    Output(io::stdout().lock())
}

impl Write for Output {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).or_else(end)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.0.flush().or_else(end)
    }
}

/// Prints text.
pub fn print(text: fmt::Arguments<'_>) {
    // The writer has dealt with failures by itself.
    let _ = lock().write_fmt(text);
}

/// Sees that everything printed so far is out.
pub fn flush() {
    let _ = lock().flush();
}

/// Ends the program over output that cannot be written.
pub fn end<T>(error: io::Error) -> io::Result<T> {
    match error.kind() {
        // The caller tries again.
        ErrorKind::Interrupted => Err(error),
        ErrorKind::BrokenPipe => std::process::exit(0),
        _ => {
            complain(format_args!("error: cannot write to standard output: {error}\n"));
            std::process::exit(2);
        }
    }
}
