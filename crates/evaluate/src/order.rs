//! In which order the theorems of several cells are searched. A prover that has to load a theorem's
//! file keeps few files at a time, so that cells go through a part of the files together: each
//! searches the theorems of these files, one cell after another, before the next files' turn comes.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use crate::driver::Job;

/// All jobs with their cells, in parts of about `together` different theorems. What stands in no
/// file comes first, cell by cell as it is.
pub(crate) fn by_files(cells: Vec<Vec<Job>>, together: usize) -> VecDeque<(usize, Job)> {
    let parts = parts(&cells, together);
    let part = |job: &Job| job.theorem.file.as_ref().and_then(|file| parts.get(file)).copied();
    let mut all: Vec<(Option<usize>, usize, Job)> = Vec::new();
    for (cell, jobs) in cells.into_iter().enumerate() {
        all.extend(jobs.into_iter().map(|job| (part(&job), cell, job)));
    }
    all.sort_by_key(|(part, cell, _)| (*part, *cell));
    all.into_iter().map(|(_, cell, job)| (cell, job)).collect()
}

/// The part that each file belongs to.
fn parts(cells: &[Vec<Job>], together: usize) -> HashMap<String, usize> {
    let mut files: BTreeMap<&str, HashSet<&str>> = BTreeMap::new();
    for theorem in cells.iter().flatten().map(|job| &job.theorem) {
        if let Some(file) = &theorem.file {
            files.entry(file).or_default().insert(&theorem.name);
        }
    }
    let (mut parts, mut part, mut theorems) = (HashMap::new(), 0, 0);
    for (file, names) in files {
        if theorems >= together.max(1) {
            (part, theorems) = (part + 1, 0);
        }
        parts.insert(file.to_owned(), part);
        theorems += names.len();
    }
    parts
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

    fn order(cells: [&[(&str, &str)]; 2], together: usize) -> Vec<String> {
        let jobs =
            |cell: &[(&str, &str)]| cell.iter().map(|(name, file)| job(name, file)).collect();
        let all = by_files(cells.map(jobs).into(), together);
        all.into_iter().map(|(cell, job)| format!("{cell}{}", job.theorem.name)).collect()
    }

    #[test]
    fn cells_go_through_files_together() {
        let all = [("a", "A"), ("b", "A"), ("c", "B"), ("d", "C")];
        let expected = ["0a", "0b", "1b", "0c", "0d", "1d"];
        assert_eq!(order([&all, &[all[1], all[3]]], 2), expected);
        assert_eq!(order([&all, &[all[3]]], 100), ["0a", "0b", "0c", "0d", "1d"]);
    }

    #[test]
    fn what_stands_in_no_file_is_searched_cell_by_cell() {
        assert_eq!(order([&[("b", ""), ("a", "")], &[("b", "")]], 1), ["0b", "0a", "1b"]);
    }
}
