//! Small, careful SVG charts: lines with bands or error bars, steps, grouped bars and histograms,
//! alone or as small multiples.
//!
//! A [`Figure`] is built, then turned into SVG text by a pure function; only [`Chart::save`]
//! touches the disk, and it always leaves the plotted numbers beside the picture.
//!
//! ```
//! use catamount_figure::{Axis, Chart, Figure, Series};
//!
//! let figure = Figure::new("Paired gain over CE")
//!     .x(Axis::log("budget N (expansions)").ticks([16.0, 64.0, 256.0]))
//!     .y(Axis::linear("gain (pp)"))
//!     .reference(0.0)
//!     .add(
//!         Series::line("bfs", [(16.0, 4.4), (64.0, 4.6), (256.0, 6.9)])
//!             .bars([(1.8, 6.9), (1.7, 7.5), (3.6, 10.1)]),
//!     );
//! assert!(figure.to_svg().starts_with("<svg"));
//! assert!(figure.to_csv().contains("bfs,16,4.4,1.8,6.9"));
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod axis;
mod canvas;
mod chart;
mod data;
mod figure;
mod grid;
mod legend;
mod palette;
mod plot;
mod raster;
mod series;

pub use axis::Axis;
pub use chart::{Chart, PHONE, SaveError, Saved};
pub use figure::Figure;
pub use grid::Grid;
pub use palette::{SERIES_COLOURS, stylesheet};
pub use raster::{RasterError, png_from_svg};
pub use series::Series;

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
