//! Code that may panic on what it is given: a parser of another project, a prover.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, set_hook, take_hook};
use std::sync::Once;

thread_local! {
    /// How many calls of [`guarded`] this thread is in.
    static DEPTH: Cell<u32> = const { Cell::new(0) };
}

/// Runs such code. A panic becomes its message, for the caller to make an error of; nothing is
/// printed about it.
pub fn guarded<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = take_hook();
        set_hook(Box::new(move |panic| {
            if DEPTH.get() == 0 {
                usual(panic);
            }
        }));
    });
    DEPTH.set(DEPTH.get() + 1);
    let outcome = catch_unwind(AssertUnwindSafe(work));
    DEPTH.set(DEPTH.get() - 1);
    outcome.map_err(|panic| {
        let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
        let text = text.or_else(|| panic.downcast_ref::<String>().cloned());
        text.unwrap_or_else(|| "no message".to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_its_message() {
        assert_eq!(guarded(|| 3), Ok(3));
        let number = 7;
        assert_eq!(
            guarded(|| panic!("no room for {number}")),
            Err::<(), _>("no room for 7".into())
        );
        let inner = || guarded(|| panic!("inner"));
        assert_eq!(guarded(inner), Ok(Err::<(), _>("inner".into())));
    }
}
