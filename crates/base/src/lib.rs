//! What every crate needs and none should have twice: random streams, files that are whole, JSON
//! lines, content hashes, locks, progress bars and the name that was probably meant.
//!
//! Deliberately knows nothing of proofs, models or studies.

#![forbid(unsafe_code)]

mod checksums;
mod content;
mod file;
mod guarded;
mod lines;
mod lock;
mod nearest;
mod progress;
mod stream;

pub use checksums::{Checksums, Damage, Sum};
pub use content::Content;
pub use file::{AtomicFile, write};
pub use guarded::guarded;
pub use lines::{Appender, Lines, LinesError};
pub use lock::{Holder, Lock, LockError};
pub use nearest::nearest;
pub use progress::Progress;
pub use stream::{Stream, split_mix};
