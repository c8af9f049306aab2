//! In which order the theorems of several cells are searched. A prover that has to load a theorem's
//! file holds few files at a time, so that cells go through a part of the files together: each
//! searches the theorems of these files, one cell after another, before the next files' turn comes.

use std::collections::{BTreeSet, HashMap, VecDeque};

use crate::driver::Job;

/// Files that one process of a prover's holds without being filled by them.
const HELD: usize = 8;

/// All jobs with their cells, in parts of as many files as so many processes hold. What stands in
/// no file comes first, cell by cell as it is.
pub(crate) fn by_files(cells: Vec<Vec<Job>>, processes: usize) -> VecDeque<(usize, Job)> {
    in_parts(cells, HELD * processes.max(1))
}

/// The same, in parts of so many files.
fn in_parts(cells: Vec<Vec<Job>>, held: usize) -> VecDeque<(usize, Job)> {
    let files: BTreeSet<String> =
        cells.iter().flatten().filter_map(|job| job.theorem.file.clone()).collect();
    let parts: HashMap<String, usize> =
        files.into_iter().enumerate().map(|(at, file)| (file, at / held)).collect();
    let part = |job: &Job| job.theorem.file.as_ref().map(|file| parts[file]);
    let mut all: Vec<(Option<usize>, usize, Job)> = Vec::new();
    for (cell, jobs) in cells.into_iter().enumerate() {
        all.extend(jobs.into_iter().map(|job| (part(&job), cell, job)));
    }
    all.sort_by_key(|(part, cell, _)| (*part, *cell));
    all.into_iter().map(|(_, cell, job)| (cell, job)).collect()
}

#[cfg(test)]
mod tests {
    use catamount_traces::Theorem;

    use super::*;

    fn job(name: &str, file: &str) -> Job {
        let file = (!file.is_empty()).then(|| file.to_owned());
        let theorem = Theorem { name: name.into(), file, ..Theorem::default() };
        Job { theorem, demonstrated: None, time_left: None, tree: false }
    }

    fn order(cells: [&[(&str, &str)]; 2]) -> Vec<String> {
        let jobs =
            |cell: &[(&str, &str)]| cell.iter().map(|(name, file)| job(name, file)).collect();
        let all = in_parts(cells.map(jobs).into(), 4);
        all.into_iter().map(|(cell, job)| format!("{cell}{}", job.theorem.name)).collect()
    }

    #[test]
    fn cells_go_through_files_together() {
        let all = [("a", "A"), ("b", "A"), ("c", "B"), ("d", "C"), ("e", "D"), ("f", "E")];
        let expected = ["0a", "0b", "0c", "0d", "0e", "1b", "1e", "0f", "1f"];
        assert_eq!(order([&all, &[all[1], all[4], all[5]]]), expected);
    }

    #[test]
    fn what_stands_in_no_file_is_searched_cell_by_cell() {
        assert_eq!(order([&[("b", ""), ("a", "")], &[("b", "")]]), ["0b", "0a", "1b"]);
    }
}
