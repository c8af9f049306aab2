//! The whole study of a run folder, written beside it.

use std::path::{Path, PathBuf};

use catamount_base::Lock;
use serde::Serialize;

use crate::figures::{self, Drawn};
use crate::page::{self, Served};
use crate::run::{ReportError, Run};
use crate::table::Table;
use crate::tables;
use crate::trees;

/// What a report left behind.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// The self-contained page.
    pub page: PathBuf,
    /// All tables and notes as one Markdown file.
    pub markdown: PathBuf,
    /// Every other file: tables as Markdown, LaTeX and CSV; figures as SVG, PNG and CSV.
    pub files: Vec<PathBuf>,
    /// The tables themselves, for printing: the first is the matrix of the largest budget.
    pub tables: Vec<Table>,
    /// Cells that are not there, by name.
    pub missing: Vec<String>,
    /// What else a reader should know: incomplete cells, odd logs, cells left out.
    pub notes: Vec<String>,
}

/// A report that is not written anywhere yet.
pub(crate) struct Made {
    pub(crate) run: Run,
    pub(crate) tables: Vec<Table>,
    pub(crate) figures: Vec<Drawn>,
    pub(crate) html: String,
}

/// Makes the report of a folder; a served one follows the study as it runs.
pub(crate) fn make(dir: &Path, served: Served) -> Result<Made, ReportError> {
    let mut run = Run::open(dir)?;
    let tables = tables::all(&run);
    let figures = figures::all(&run);
    let mut notes = std::mem::take(&mut run.notes);
    let sample = trees::sample(&run, &mut notes);
    run.notes = notes;
    // The same complaint about the same file is one note.
    let mut seen = std::collections::HashSet::new();
    run.notes.retain(|n| seen.insert(n.clone()));
    let html = page::html(&run, &tables, &figures, &sample, served);
    Ok(Made { run, tables, figures, html })
}

/// Writes `DIR/report/`: `index.html`, `report.md`, `tables/`, `figures/`.
///
/// `DIR/cells/` holds the logs; `DIR/training/*.metrics.jsonl`, `DIR/plan.json`,
/// `DIR/scores/*.reading.json`, `DIR/calibration.json` and trees are used where they are there.
///
/// Whoever else is writing it is waited for: it takes seconds.
pub fn report(dir: &Path) -> Result<Report, ReportError> {
    // A folder that is no study is not written to.
    Run::open(dir)?;
    let _lock = Lock::wait(&dir.join(".report.lock"))?;
    let Made { run, tables, figures, html } = make(dir, Served::No)?;
    let out = dir.join("report");
    let mut files = Vec::new();
    let folder = out.join("tables");
    std::fs::create_dir_all(&folder)
        .map_err(|source| ReportError::Write { path: folder.clone(), source })?;
    for table in &tables {
        for (ending, text) in
            [("md", table.to_markdown()), ("tex", table.to_latex()), ("csv", table.csv.clone())]
        {
            files.push(write(folder.join(format!("{}.{ending}", table.name)), &text)?);
        }
    }
    for figure in &figures {
        let saved = figure.chart.save(&out.join("figures"), &figure.name)?;
        files.extend([saved.svg, saved.png, saved.csv]);
    }
    let markdown = write(out.join("report.md"), &page::markdown(&run, &tables, &figures))?;
    let page = write(out.join(page::INDEX), &html)?;
    Ok(Report { page, markdown, files, tables, missing: run.missing, notes: run.notes })
}

fn write(path: PathBuf, text: &str) -> Result<PathBuf, ReportError> {
    match std::fs::write(&path, text) {
        Ok(()) => Ok(path),
        Err(source) => Err(ReportError::Write { path, source }),
    }
}
