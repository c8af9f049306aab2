//! Tables, figures and the page made from logs.
//!
//! Everything in a report is generated from the files of a run folder; nothing is typed in.
//! [`compare`] sets two logs against each other, [`report`] writes the whole study, and a
//! [`Server`] shows it while it runs.
//!
//! ```no_run
//! let comparison = catamount_report::compare("ce.jsonl".as_ref(), "bfs.jsonl".as_ref())?;
//! println!("{comparison}");
//! let report = catamount_report::report("runs/demo".as_ref())?;
//! println!("{}", report.page.display());
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::print_stdout, clippy::print_stderr))]

mod calibration;
mod compare;
mod cost;
mod figures;
mod group;
mod live;
mod names;
mod outcomes;
mod page;
mod reading;
mod report;
mod run;
mod server;
mod study;
mod table;
mod tables;
mod training;
mod trees;
mod utilisation;

pub use calibration::{
    CALIBRATIONS, Calibrated, Shown, UNFITTED, Unfitted, calibration_summary, observations,
    show_calibrations,
};
pub use compare::{
    CompareError, Comparison, Side, Spent, compare, compare_cells, compare_family, compare_seeds,
    compare_within, comparison_table,
};
pub use cost::{Cost, Within};
pub use names::{MATCHED, TUNED};
pub use report::{Report, report};
pub use run::ReportError;
pub use server::{SearchAgain, Server};
pub use study::{
    ObjectiveLabel, PLAN, PlannedCell, PriorLabel, SCORES, SamplingLabel, Seeds, StudyPlan, WARM_UP,
};
pub use table::{Entry, Table};
pub use utilisation::{PROVERS, ProverUse};

/// The README's example is a test.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
