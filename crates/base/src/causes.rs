//! An error with everything that led to it, in one line.

use std::error::Error;

/// What an error says, and what its causes say that it does not.
pub fn causes(error: &(dyn Error + 'static)) -> String {
    let mut said = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let reason = error.to_string();
        if !said.contains(&reason) {
            said = format!("{said}: {reason}");
        }
        cause = error.source();
    }
    said
}
