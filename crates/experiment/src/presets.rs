//! Experiments that come with the program.

use crate::error::{Error, Result};
use crate::experiment::Experiment;

/// Name, what it is, and the file.
pub const PRESETS: [(&str, &str, &str); 8] = [
    ("demo", "Metamath on two CPU cores, in minutes", include_str!("../presets/demo.toml")),
    ("metamath", "Metamath at full size, on one GPU", include_str!("../presets/metamath.toml")),
    (
        "lean-demo",
        "the bundled Lean library, on the CPU",
        include_str!("../presets/lean-demo.toml"),
    ),
    (
        "paper-official",
        "the paper's objectives on LeanDojo Benchmark 4's official split",
        include_str!("../presets/paper-official.toml"),
    ),
    (
        "paper-matrix",
        "the paper's experiment 1: six strategies at N = 256",
        include_str!("../presets/paper-matrix.toml"),
    ),
    (
        "paper-sweep",
        "the paper's experiment 2: N = 16 to 1024",
        include_str!("../presets/paper-sweep.toml"),
    ),
    (
        "paper-matching",
        "the paper's strategy matching",
        include_str!("../presets/paper-matching.toml"),
    ),
    ("paper-priors", "the paper's off-trace priors", include_str!("../presets/paper-priors.toml")),
];

/// The file of a preset. The beginning of a name is enough where only one begins so; the first word
/// of several stands for the first of them: `paper` is `paper-official`.
pub fn preset_text(name: &str) -> Result<&'static str> {
    let word = |known: &str| known.strip_prefix(name).is_some_and(|rest| rest.starts_with('-'));
    let exact = PRESETS.iter().find(|(known, ..)| *known == name);
    let begins =
        || PRESETS.iter().filter(|(known, ..)| !name.is_empty() && known.starts_with(name));
    let only = || begins().next().filter(|_| begins().count() == 1);
    let found = exact.or_else(|| PRESETS.iter().find(|(known, ..)| word(known))).or_else(only);
    let Some((_, _, text)) = found else {
        let known = PRESETS.map(|(known, ..)| known);
        let near = catamount_base::nearest(name, known);
        let hint = near.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
        return Err(Error::Preset { name: name.to_string(), hint, known: known.join(", ") });
    };
    Ok(text)
}

/// A preset by name.
pub fn preset(name: &str) -> Result<Experiment> {
    Experiment::parse(preset_text(name)?, &format!("preset {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_preset_reads() {
        for (name, ..) in PRESETS {
            preset(name).unwrap();
        }
        assert_eq!(preset_text("paper").unwrap(), preset_text("paper-official").unwrap());
        assert_eq!(preset_text("lean").unwrap(), preset_text("lean-demo").unwrap());
        assert_eq!(preset_text("dem").unwrap(), preset_text("demo").unwrap());
        assert_eq!(preset_text("paper-s").unwrap(), preset_text("paper-sweep").unwrap());
        assert!(preset_text("pap").is_err() && preset_text("").is_err());
    }

    /// The files beside recorded results, which people run again.
    #[test]
    fn every_file_under_results_reads() {
        let results = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../results");
        let (mut folders, mut read) = (vec![results], 0);
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap() {
                let path = entry.unwrap().path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|kind| kind == "toml") {
                    Experiment::read(&path).unwrap_or_else(|error| panic!("{error}"));
                    read += 1;
                }
            }
        }
        assert!(read > 2, "there are results, and a folder of several studies");
    }

    #[test]
    fn a_misspelt_preset_or_key_is_named_with_the_nearest() {
        assert!(preset("dmeo").unwrap_err().to_string().contains("did you mean `demo`"));
        let text = PRESETS[0].2.replace("[evaluation]", "[evaluation]\nstrategy = 3");
        let error = Experiment::parse(&text, "x.toml").unwrap_err().to_string();
        assert!(
            error.contains("strategy") && error.contains("did you mean `strategies`"),
            "{error}"
        );
    }
}
