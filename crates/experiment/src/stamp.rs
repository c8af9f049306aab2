//! Which steps are done, and that what they made is still what they made: a stamp a step, with the
//! key it was done under and the hashes of its outputs.
//!
//! What another key left behind is moved to a folder of its own under `stale/`, and taken back when
//! its key comes back. Nothing there is ever overwritten. A move that a killed process left half
//! done is finished by the next one: the stamp says where to.

use std::fs;
use std::path::{Path, PathBuf};

use catamount_base::{Checksums, Damage, is_inside};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::planned::Planned;
use crate::step::Step;

const STAMP: &str = "stamp.json";
pub(crate) const STALE: &str = "stale";
/// The folder of the stamps.
pub(crate) const STEPS: &str = "steps";

/// What a study's folder says of a step.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Stamp {
    /// The key that it was begun under.
    pub key: String,
    done: bool,
    /// How long it took.
    pub seconds: f64,
    /// The files that others rely on, as they were when it was done.
    #[serde(default)]
    pub outputs: Checksums,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    moving: Option<Move>,
}

impl Stamp {
    /// A stamp, if the file is one. Folders come from others as well: a move that would lead out of
    /// the study is nobody's of ours.
    pub fn read(path: &Path) -> Option<Stamp> {
        let stamp: Stamp = serde_json::from_slice(&fs::read(path).ok()?).ok()?;
        stamp.moving.as_ref().is_none_or(Move::is_inside).then_some(stamp)
    }

    /// Whether the step is done, under its key, and its files are where they belong.
    pub fn is_done(&self) -> bool {
        self.done && self.moving.is_none()
    }
}

/// Files on their way, by their paths in the study's folder.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Move {
    /// The folder under `stale/`.
    place: PathBuf,
    files: Vec<PathBuf>,
    goal: Goal,
}

impl Move {
    /// Whether it moves files of the study to or from a folder right under `stale/`, and no other.
    fn is_inside(&self) -> bool {
        let place = self.place.strip_prefix(STALE).is_ok_and(|name| name.iter().count() == 1);
        place && is_inside(&self.place) && self.files.iter().all(|file| is_inside(file))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Goal {
    /// To `stale/`: they belong to another key.
    Retire,
    /// To `stale/`: they are damaged, and the step is to make them again.
    Replace,
    /// From `stale/`: their key has come back.
    Return,
}

/// What is to be done about a step.
#[derive(Debug)]
pub(crate) enum State {
    /// Nothing.
    Done,
    /// It was done, and these outputs are not what they were.
    Damaged(Vec<Damage>),
    /// It has not been done under this key.
    Outstanding,
}

/// The stamps of a study's folder.
pub(crate) struct Stamps<'a> {
    folder: &'a Path,
}

impl<'a> Stamps<'a> {
    pub fn new(folder: &'a Path) -> Self {
        Stamps { folder }
    }

    fn path(&self, planned: &Planned) -> PathBuf {
        self.folder.join(STEPS).join(format!("{}.json", planned.step.id()))
    }

    /// What a step leaves in the study's folder, by paths in it: what it makes, and its stamp.
    pub fn files(&self, planned: &Planned) -> Vec<PathBuf> {
        let stamp = Path::new(STEPS).join(format!("{}.json", planned.step.id()));
        // A report is made anew whenever it is wanted, and no stamp stands for it.
        let shown = match planned.step {
            Step::Report => ["report", catamount_report::PLAN, "time.md"].as_slice(),
            _ => &[],
        };
        let made = planned.step.outputs().made.into_iter();
        made.chain(shown.iter().map(PathBuf::from)).chain([stamp]).collect()
    }

    fn read(&self, planned: &Planned) -> Option<Stamp> {
        Stamp::read(&self.path(planned))
    }

    fn write(&self, planned: &Planned, stamp: &Stamp) -> Result<()> {
        write(&self.path(planned), stamp)
    }

    /// Done under this very key, by the word of its stamp.
    pub fn is_done(&self, planned: &Planned) -> bool {
        let done = |stamp: Stamp| stamp.is_done() && stamp.key == planned.key;
        self.read(planned).is_some_and(done)
    }

    /// What is to be done about a step. With `verify`, the word of its stamp is checked against the
    /// files.
    pub fn state(&self, planned: &Planned, verify: bool) -> State {
        let Some(stamp) = self.read(planned).filter(|_| self.is_done(planned)) else {
            return State::Outstanding;
        };
        let damage = if verify { stamp.outputs.verify(self.folder, false) } else { Vec::new() };
        if damage.is_empty() { State::Done } else { State::Damaged(damage) }
    }

    /// How long a step took when it was last done, under whatever key: the estimate for the next
    /// time.
    pub fn last_seconds(&self, planned: &Planned) -> Option<f64> {
        self.read(planned).filter(|stamp| stamp.done).map(|stamp| stamp.seconds)
    }

    /// Begins a step, or continues it. What another key left is moved to `stale/`; what this key
    /// left there is taken back. True if that is all there is to do.
    pub fn begin(&self, planned: &Planned) -> Result<bool> {
        self.settle(planned)?;
        match self.read(planned) {
            Some(stamp) if stamp.key == planned.key => {}
            old => {
                let none = Stamp {
                    key: "unknown".into(),
                    done: false,
                    seconds: 0.0,
                    outputs: Checksums::default(),
                    moving: None,
                };
                let made = planned.step.outputs().made;
                self.set_aside(planned, old.unwrap_or(none), made, Goal::Retire)?;
                self.take_back(planned)?;
                if matches!(self.state(planned, true), State::Done) {
                    return Ok(true);
                }
            }
        }
        let begun = Stamp {
            key: planned.key.clone(),
            done: false,
            seconds: 0.0,
            outputs: Checksums::default(),
            moving: None,
        };
        self.write(planned, &begun)?;
        Ok(false)
    }

    /// Marks a step as done, with the hashes of what it made.
    pub fn finish(&self, planned: &Planned, seconds: f64) -> Result<()> {
        let outputs = Checksums::of(self.folder, planned.step.outputs().relied_on)
            .map_err(Error::io(self.folder))?;
        let key = planned.key.clone();
        self.write(planned, &Stamp { key, done: true, seconds, outputs, moving: None })
    }

    /// Moves what is damaged out of the way, so that the step makes it again; all that the step
    /// made, unless the rest is enough to make it from.
    pub fn replace(&self, planned: &Planned, damage: &[Damage]) -> Result<()> {
        let outputs = planned.step.outputs();
        let below = |damage: &Damage| {
            let (Damage::Missing { path }
            | Damage::Unreadable { path, .. }
            | Damage::Changed { path, .. }) = damage;
            outputs.derived.iter().any(|file| path.starts_with(self.folder.join(file)))
        };
        let files =
            if damage.iter().all(below) { outputs.derived.clone() } else { outputs.made.clone() };
        match self.read(planned) {
            Some(stamp) => self.set_aside(planned, stamp, files, Goal::Replace),
            None => Ok(()),
        }
    }

    /// Moves files of a step to a new folder under `stale/`.
    fn set_aside(
        &self,
        planned: &Planned,
        old: Stamp,
        files: Vec<PathBuf>,
        goal: Goal,
    ) -> Result<()> {
        if files.iter().all(|file| !self.folder.join(file).exists()) {
            return Ok(());
        }
        let place = self.place(planned)?;
        // What is damaged never comes back.
        let key =
            if goal == Goal::Replace { format!("damaged {}", old.key) } else { old.key.clone() };
        write(&self.folder.join(&place).join(STAMP), &Stamp { key, ..old.clone() })?;
        self.write(planned, &Stamp { moving: Some(Move { place, files, goal }), ..old })?;
        self.settle(planned)
    }

    /// Takes back what this key left under `stale/`, the latest if there are several.
    fn take_back(&self, planned: &Planned) -> Result<()> {
        let left = |place: &PathBuf| {
            let stamp = Stamp::read(&self.folder.join(place).join(STAMP));
            stamp.is_some_and(|stamp| stamp.key == planned.key)
        };
        let Some(place) = self.places(planned)?.into_iter().rev().find(left) else {
            return Ok(());
        };
        let files = planned.step.outputs().made;
        let moving = Some(Move { place, files, goal: Goal::Return });
        let (key, outputs) = (planned.key.clone(), Checksums::default());
        self.write(planned, &Stamp { key, done: false, seconds: 0.0, outputs, moving })?;
        self.settle(planned)
    }

    /// Finishes a move that is under way.
    fn settle(&self, planned: &Planned) -> Result<()> {
        let Some(stamp) = self.read(planned) else { return Ok(()) };
        let Some(Move { place, files, goal }) = stamp.moving.clone() else { return Ok(()) };
        let place = self.folder.join(place);
        for file in &files {
            let (here, there) = (self.folder.join(file), place.join(file));
            let (from, to) = if goal == Goal::Return { (there, here) } else { (here, there) };
            if from.exists() {
                let parent = to.parent().unwrap_or(self.folder);
                fs::create_dir_all(parent).map_err(Error::io(parent))?;
                fs::rename(&from, &to).map_err(Error::io(&from))?;
            }
        }
        let own = self.path(planned);
        match goal {
            Goal::Retire => fs::remove_file(&own).map_err(Error::io(&own)),
            Goal::Replace => self.write(planned, &Stamp { done: false, moving: None, ..stamp }),
            Goal::Return => {
                let kept = Stamp::read(&place.join(STAMP)).unwrap_or(stamp);
                self.write(planned, &Stamp { moving: None, ..kept })?;
                fs::remove_dir_all(&place).map_err(Error::io(&place))
            }
        }
    }

    /// The folders under `stale/` that hold files of a step, oldest first.
    fn places(&self, planned: &Planned) -> Result<Vec<PathBuf>> {
        let own = planned.step.id();
        let places = self.stale()?.into_iter();
        Ok(places
            .filter(|(_, name)| name.split_once('-').is_some_and(|(_, id)| id == own))
            .map(|(_, name)| Path::new(STALE).join(name))
            .collect())
    }

    /// A new folder under `stale/`.
    fn place(&self, planned: &Planned) -> Result<PathBuf> {
        let last = self.stale()?.last().map_or(0, |(number, _)| *number);
        let place = Path::new(STALE).join(format!("{:04}-{}", last + 1, planned.step.id()));
        let path = self.folder.join(&place);
        fs::create_dir_all(&path).map_err(Error::io(&path))?;
        Ok(place)
    }

    /// What is under `stale/`, by number.
    fn stale(&self) -> Result<Vec<(u64, String)>> {
        let folder = self.folder.join(STALE);
        let entries = match fs::read_dir(&folder) {
            Ok(entries) => entries,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(Error::io(&folder)(error)),
        };
        let mut found: Vec<(u64, String)> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter_map(|name| Some((name.split_once('-')?.0.parse().ok()?, name)))
            .collect();
        found.sort();
        Ok(found)
    }
}

fn write(path: &Path, stamp: &Stamp) -> Result<()> {
    let text = serde_json::to_vec_pretty(stamp).unwrap_or_default();
    catamount_base::write(path, text).map_err(Error::io(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn planned(key: &str) -> Planned {
        let (name, key) = ("warm-up".into(), key.into());
        Planned { step: Step::WarmUp, name, key, after: Vec::new() }
    }

    /// A study's folder in which a warm-up can be pretended.
    struct Folder(tempfile::TempDir);

    impl Folder {
        fn new() -> Self {
            Folder(tempfile::tempdir().unwrap())
        }

        fn stamps(&self) -> Stamps<'_> {
            Stamps::new(self.0.path())
        }

        fn put(&self, file: &str, text: &str) {
            let path = self.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }

        fn get(&self, file: &str) -> Option<String> {
            fs::read_to_string(self.0.path().join(file)).ok()
        }

        /// Everything below the folder, as text.
        fn texts(&self) -> Vec<String> {
            fn below(folder: &Path, texts: &mut Vec<String>) {
                for entry in fs::read_dir(folder).unwrap().flatten() {
                    match entry.path() {
                        path if path.is_dir() => below(&path, texts),
                        path => texts.extend(fs::read_to_string(path)),
                    }
                }
            }
            let mut texts = Vec::new();
            below(self.0.path(), &mut texts);
            texts
        }

        fn work(&self, key: &str, whole: bool) {
            self.put("training/warm-up/checkpoint", &format!("checkpoint of {key}"));
            if whole {
                self.put("models/warm-up/model", &format!("model of {key}"));
                self.put("training/warm-up.metrics.jsonl", &format!("metrics of {key}"));
                self.stamps().finish(&planned(key), 1.0).unwrap();
            }
        }
    }

    /// Settings A, then B, then A again (killed), then B again: everybody's work is kept, and taken
    /// up where it was left.
    #[test]
    fn nothing_is_lost_when_settings_come_and_go() {
        let folder = Folder::new();
        let stamps = folder.stamps();
        assert!(!stamps.begin(&planned("a")).unwrap());
        folder.work("a", true);
        assert!(!stamps.begin(&planned("b")).unwrap());
        assert_eq!(folder.get("models/warm-up/model"), None);
        folder.work("b", false);
        assert!(stamps.begin(&planned("a")).unwrap(), "a was done and comes back");
        assert_eq!(folder.get("models/warm-up/model").unwrap(), "model of a");
        assert!(!stamps.begin(&planned("b")).unwrap(), "b was not done");
        assert_eq!(folder.get("training/warm-up/checkpoint").unwrap(), "checkpoint of b");
        folder.work("b", true);
        assert!(!stamps.begin(&planned("c")).unwrap());
        for text in ["model of a", "checkpoint of a", "model of b", "checkpoint of b"] {
            assert!(folder.texts().contains(&text.to_string()), "{text} is lost");
        }
    }

    #[test]
    fn damage_is_found_and_made_again_and_what_is_sound_stays() {
        let folder = Folder::new();
        let stamps = folder.stamps();
        stamps.begin(&planned("a")).unwrap();
        folder.work("a", true);
        assert!(matches!(stamps.state(&planned("a"), true), State::Done));
        folder.put("models/warm-up/model", "model 0f a");
        let State::Damaged(damage) = stamps.state(&planned("a"), true) else { panic!("accepted") };
        assert!(damage[0].to_string().contains("models/warm-up/model"), "{}", damage[0]);
        assert!(matches!(stamps.state(&planned("a"), false), State::Done), "not asked to look");
        stamps.replace(&planned("a"), &damage).unwrap();
        assert!(matches!(stamps.state(&planned("a"), true), State::Outstanding));
        assert!(!stamps.begin(&planned("a")).unwrap(), "what is damaged does not come back");
        assert_eq!(folder.get("models/warm-up/model"), None);
        assert_eq!(folder.get("training/warm-up/checkpoint").unwrap(), "checkpoint of a");
        folder.work("a", true);
        fs::remove_file(folder.0.path().join("training/warm-up.metrics.jsonl")).unwrap();
        let State::Damaged(damage) = stamps.state(&planned("a"), true) else { panic!("accepted") };
        stamps.replace(&planned("a"), &damage).unwrap();
        assert_eq!(folder.get("training/warm-up/checkpoint"), None, "metrics need all of it");
    }

    #[test]
    fn a_move_that_was_cut_short_is_finished() {
        let folder = Folder::new();
        let stamps = folder.stamps();
        stamps.begin(&planned("a")).unwrap();
        folder.work("a", true);
        // As if killed between the first and the second file.
        let place = stamps.place(&planned("a")).unwrap();
        let old = stamps.read(&planned("a")).unwrap();
        write(&folder.0.path().join(&place).join(STAMP), &old).unwrap();
        let files = planned("a").step.outputs().made;
        let moving = Some(Move { place: place.clone(), files: files.clone(), goal: Goal::Retire });
        stamps.write(&planned("a"), &Stamp { moving, ..old }).unwrap();
        let to = folder.0.path().join(&place).join(&files[0]);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::rename(folder.0.path().join(&files[0]), to).unwrap();
        assert!(matches!(stamps.state(&planned("a"), true), State::Outstanding));
        assert!(stamps.begin(&planned("a")).unwrap(), "all of it comes back");
        assert_eq!(folder.get("models/warm-up/model").unwrap(), "model of a");
        assert_eq!(folder.get("training/warm-up/checkpoint").unwrap(), "checkpoint of a");
        assert!(stamps.stale().unwrap().is_empty());
    }

    /// A folder of somebody else's, whose stamp says that a move to or from elsewhere is under way.
    #[test]
    fn a_stamp_moves_and_removes_nothing_outside_its_study() {
        let elsewhere = tempfile::tempdir().unwrap();
        let (mine, outside) = (elsewhere.path().join("mine"), elsewhere.path().to_path_buf());
        let inside = || PathBuf::from("stale/0001-warm-up");
        fs::write(&mine, "precious").unwrap();
        for (place, file, goal) in [
            (outside.clone(), "x".into(), Goal::Return),
            ("stale/../..".into(), "x".into(), Goal::Return),
            ("stale".into(), "x".into(), Goal::Return),
            (inside(), mine.clone(), Goal::Retire),
            (inside(), "../mine".into(), Goal::Retire),
        ] {
            let folder = Folder::new();
            let stamps = folder.stamps();
            let moving = Some(Move { place, files: vec![file], goal });
            let (key, outputs) = ("a".into(), Checksums::default());
            let stamp = Stamp { key, done: false, seconds: 0.0, outputs, moving };
            stamps.write(&planned("a"), &stamp).unwrap();
            assert!(!stamps.begin(&planned("a")).unwrap(), "{stamp:?}");
            assert_eq!(fs::read_to_string(&mine).unwrap(), "precious", "{stamp:?}");
        }
    }
}
