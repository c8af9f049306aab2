//! log p of every step of many traces by the theorem's name: what weights are computed from, where
//! that is not the model being trained itself. Whoever makes them decides what they mean: the
//! warm-up's own probabilities, those a held-out theorem would have, or another program's.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use catamount_base::AtomicFile;
use catamount_traces::Trace;
use serde::{Deserialize, Serialize};

use crate::{Dataset, Error, Result};

/// log p by theorem and step; none where a step could not be scored.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scores(BTreeMap<String, Vec<Option<f64>>>);

/// As `catamount score` writes it.
#[derive(Serialize, Deserialize)]
struct Line {
    name: String,
    logp: Vec<Option<f64>>,
}

impl Scores {
    /// The scores of traces whose data were scored, example by example; the steps that the data
    /// left out have none.
    pub fn new(traces: &[Trace], data: &Dataset, log_p: &[f64]) -> Self {
        let mut scores: Vec<Vec<Option<f64>>> =
            traces.iter().map(|trace| vec![None; trace.steps.len()]).collect();
        for (example, log_p) in log_p.iter().enumerate() {
            let (trace, step) = data.origin(example);
            scores[trace][step] = Some(*log_p);
        }
        let names = traces.iter().map(|trace| trace.theorem.name.clone());
        Scores(names.zip(scores).collect())
    }

    /// Theorems.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// log p of a theorem's steps.
    pub fn get(&self, theorem: &str) -> Option<&[Option<f64>]> {
        self.0.get(theorem).map(Vec::as_slice)
    }

    /// log p of every step that was scored.
    pub fn log_p(&self) -> Vec<f64> {
        self.0.values().flatten().flatten().copied().collect()
    }

    /// The same steps with other probabilities.
    pub fn map(&self, f: impl Fn(f64) -> f64) -> Self {
        let mapped = |steps: &Vec<Option<f64>>| steps.iter().map(|l| l.map(&f)).collect();
        Scores(self.0.iter().map(|(name, steps)| (name.clone(), mapped(steps))).collect())
    }

    /// Adds the scores of other theorems.
    pub fn extend(&mut self, others: Scores) {
        self.0.extend(others.0);
    }

    /// Reads JSON lines `{"name": ..., "logp": [...]}`.
    pub fn read(path: &Path) -> Result<Self> {
        let mut scores = Scores::default();
        let file = File::open(path).map_err(Error::file(path))?;
        for (number, line) in BufReader::new(file).lines().enumerate() {
            let line = line.map_err(Error::file(path))?;
            if line.trim().is_empty() {
                continue;
            }
            let wrong = |reason: String| {
                Error::Data(format!("{}:{}: {reason}", path.display(), number + 1))
            };
            let Line { name, logp } = serde_json::from_str(&line).map_err(|e| {
                wrong(format!(
                    "{e}; a line looks like {{\"name\": \"t1\", \"logp\": [-0.5, -2.0]}}"
                ))
            })?;
            if let Some(log_p) = logp.iter().flatten().find(|l| **l > 0.0) {
                return Err(wrong(format!("log p = {log_p} of {name} is above 0")));
            }
            scores.0.insert(name, logp);
        }
        Ok(scores)
    }

    /// Writes them; an old file stays until the new one is complete.
    pub fn write(&self, path: &Path) -> Result<()> {
        let mut file = AtomicFile::create(path).map_err(Error::file(path))?;
        for (name, logp) in &self.0 {
            let line = Line { name: name.clone(), logp: logp.clone() };
            let text = serde_json::to_string(&line).expect("JSON of plain values");
            writeln!(file, "{text}").map_err(Error::file(path))?;
        }
        file.commit().map_err(Error::file(path))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_keep_every_bit_and_every_gap() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.jsonl");
        let mut scores = Scores::default();
        scores.0.insert("a".into(), vec![Some(-0.1 - 0.2), None, Some(-1e-300)]);
        scores.0.insert("b".into(), vec![Some(0.0)]);
        scores.write(&path).unwrap();
        assert_eq!(Scores::read(&path).unwrap(), scores);
        assert_eq!(scores.log_p().len(), 3);
        let halved = scores.map(|l| l / 2.0);
        assert_eq!(halved.get("b"), Some(&[Some(0.0)][..]));
        assert_eq!(halved.get("a").unwrap()[1], None);
    }

    #[test]
    fn broken_lines_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("scores.jsonl");
        let good = "{\"name\": \"a\", \"logp\": [-1]}\n\n";
        for (line, words) in [("{\"name\": 3}", ":3:"), ("{\"name\":\"b\",\"logp\":[0.5]}", "0.5")]
        {
            std::fs::write(&path, format!("{good}{line}\n")).unwrap();
            let error = Scores::read(&path).unwrap_err().to_string();
            assert!(error.contains(words) && error.contains("scores.jsonl:3"), "{error}");
        }
    }
}
