//! Ctrl-C: the first asks the work in hand to finish and be saved, the second ends the process.

use std::sync::atomic::{AtomicBool, Ordering};

static STOP: AtomicBool = AtomicBool::new(false);

/// Installs the handler and returns the flag that it sets.
pub fn on_interrupt() -> &'static AtomicBool {
    // Installing twice in one process is harmless and fails; nothing depends on the second time.
    let _ = ctrlc::set_handler(|| {
        if STOP.swap(true, Ordering::SeqCst) {
            std::process::exit(130);
        }
        eprintln!("\nstopping after the work in hand; once more to stop at once");
    });
    &STOP
}

/// Stops like one Ctrl-C when standard input ends: with whoever started this process, however that
/// ended.
pub fn when_input_ends() {
    std::thread::spawn(|| {
        let _ = std::io::copy(&mut std::io::stdin().lock(), &mut std::io::sink());
        request();
    });
}

/// Asks the work in hand to finish and be saved, as one Ctrl-C does.
pub fn request() {
    STOP.store(true, Ordering::SeqCst);
}

/// Whether somebody asked to stop.
pub fn requested() -> bool {
    STOP.load(Ordering::SeqCst)
}
