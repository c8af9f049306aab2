//! What every crate needs and none should have twice: random streams, files and folders that
//! are whole, JSON lines, content hashes, locks, progress and the name that was probably meant.
//!
//! Deliberately knows nothing of proofs, models or studies.

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod address;
mod causes;
mod checksums;
mod complain;
mod content;
mod file;
mod folder;
mod guarded;
mod lines;
mod lock;
mod nearest;
mod pace;
mod progress;
mod stream;
mod words;

pub use address::{REDACTED, shown, user};
pub use causes::causes;
pub use checksums::{Checksums, Damage, Sum, is_inside};
pub use complain::complain;
pub use content::Content;
pub use file::{AtomicFile, write};
pub use folder::{AtomicFolder, sync};
pub use guarded::guarded;
pub use lines::{Appender, Lines, LinesError};
pub use lock::{Holder, Lock, LockError, host};
pub use nearest::nearest;
pub use pace::rate;
pub use progress::{Activity, Progress, be_quiet, say, speaking_at};
pub use stream::{Stream, split_mix};
pub use words::counted;
