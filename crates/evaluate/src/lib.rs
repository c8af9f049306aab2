//! Runs many searches at once and logs them.
//!
//! A *cell* is one objective under one strategy at one budget on one pool of theorems:
//! [`driver::search_all`] computes it and [`cell::Cell`] keeps it. Deliberately knows nothing of
//! how results are compared or drawn.

#![forbid(unsafe_code)]

mod asking;
pub mod cell;
pub mod driver;
pub mod log;
pub mod pool;
mod proof;
pub mod redraw;
pub mod run;
mod spent;
