//! All figures at once, with an index that says what each shows and what was measured.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use catamount_figure::SaveError;
use catamount_objective::ObjectiveError;

use crate::check::{Check, Finding};
use crate::explore::ExploreError;
use crate::figures;
use crate::tree::TreeError;

/// Why the analysis could not be written.
#[derive(Debug, thiserror::Error)]
pub enum TheoryError {
    /// A surrogate refused.
    #[error(transparent)]
    Objective(#[from] ObjectiveError),
    /// A search could not be followed.
    #[error(transparent)]
    Explore(#[from] ExploreError),
    /// A tree cannot be.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A figure could not be written.
    #[error(transparent)]
    Save(#[from] SaveError),
    /// The index could not be written.
    #[error("cannot write {}: {source}; check that the folder is writable and the disk has \
     room", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: std::io::Error,
    },
    /// A claim does not hold.
    #[error("{} of the claims' checks fail; {} says which", failed, index.display())]
    Failed {
        /// How many.
        failed: usize,
        /// The index, which was written all the same.
        index: PathBuf,
    },
}

type Find = fn() -> Result<Finding, TheoryError>;

/// Every figure's finding, in the paper's order. Says what it is working on.
pub fn findings(progress: &mut dyn FnMut(&str)) -> Result<Vec<Finding>, TheoryError> {
    let simple: [(&str, Find); 7] = [
        ("weight against p", figures::weight_by_p),
        ("weight against the budget", figures::weight_by_budget),
        ("criticality", figures::criticality),
        ("bypass", figures::bypass),
        ("kappa bracket", figures::excursion),
        ("hump and floor", figures::absorption),
        ("uniform allocation", figures::allocation),
    ];
    let mut all = Vec::new();
    for (name, find) in simple {
        progress(name);
        all.push(find()?);
    }
    progress("deployed weights of six strategies on four trees");
    let rows = figures::rows()?;
    all.push(figures::deployment(&rows)?);
    all.push(figures::deployment_by_budget(&rows)?);
    Ok(all)
}

/// Writes every figure (SVG, PNG, CSV) and `theory.md` into a folder; returns what was written, the
/// index first. An error if a claim does not hold, once everything is written.
pub fn theory(out: &Path, progress: &mut dyn FnMut(&str)) -> Result<Vec<PathBuf>, TheoryError> {
    // Before the work, so that a folder that cannot be made is known at once.
    std::fs::create_dir_all(out)
        .map_err(|source| TheoryError::Write { path: out.into(), source })?;
    write(&findings(progress)?, out, progress)
}

/// The second half of [`theory`]: findings into files.
pub fn write(
    findings: &[Finding],
    out: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<PathBuf>, TheoryError> {
    let index = out.join("theory.md");
    let mut written = vec![index.clone()];
    for finding in findings {
        progress(&format!("drawing {}", finding.name));
        let saved = finding.chart.save(out, finding.name)?;
        written.extend([saved.svg, saved.png, saved.csv]);
    }
    std::fs::write(&index, describe(findings))
        .map_err(|source| TheoryError::Write { path: index.clone(), source })?;
    let failed =
        findings.iter().flat_map(|finding| &finding.checks).filter(|check| !check.holds()).count();
    if failed > 0 { Err(TheoryError::Failed { failed, index }) } else { Ok(written) }
}

fn describe(findings: &[Finding]) -> String {
    let mut out = String::from(
        "# The paper's analysis, checked\n\nEach figure has its numbers beside it as CSV. A check \
         compares a measured value with the limit the claim sets.\n",
    );
    for finding in findings {
        let _ = write!(
            out,
            "\n## {}\n\n{}\n\n![{}]({}.svg) ([data]({}.csv))\n\n",
            finding.chart.title(),
            finding.claim,
            finding.name,
            finding.name,
            finding.name
        );
        out.push_str("| check | value | must be | holds |\n|---|---|---|---|\n");
        for check in &finding.checks {
            let _ = writeln!(out, "{}", line(check));
        }
        if !finding.table.is_empty() {
            let _ = write!(out, "\n{}", finding.table);
        }
    }
    out
}

fn line(check: &Check) -> String {
    let relation = if check.floor { "at least" } else { "at most" };
    let holds = if check.holds() { "yes" } else { "**no**" };
    format!(
        "| {} | {} | {relation} {} | {holds} |",
        check.what,
        number(check.value),
        number(check.limit)
    )
}

/// Four digits, and powers of ten only where they help.
fn number(value: f64) -> String {
    if value == 0.0 || (1e-3..1e5).contains(&value.abs()) {
        let text = format!("{value:.4}");
        text.trim_end_matches('0').trim_end_matches('.').to_string()
    } else {
        format!("{value:.1e}")
    }
}
