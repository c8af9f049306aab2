//! Data folders from a database, from one file and from a benchmark's own parts.

use std::path::{Path, PathBuf};

use catamount_data::{Error, Making, Source};
use catamount_traces::{Manifest, Origin, Split, Steps, jsonl};

const TOY: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../metamath/tests/toy.mm");

fn making(source: Source) -> Making {
    let split: Split = "0.6,0.2,0.2".parse().unwrap();
    Making { source, origin: None, steps: Steps::ALL, split, seed: 42 }
}

fn write(making: &Making, out: &Path) -> (Manifest, [usize; 3]) {
    let summary = making.write(out, &mut |_, _| {}).unwrap();
    let manifest = Manifest::read(out).unwrap();
    manifest.verify(out).unwrap();
    (manifest, summary.counts)
}

#[test]
fn the_first_theorems_are_extracted_alone_and_the_manifest_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let source = |first| Source::Metamath { database: TOY.into(), first };
    let (all, every) = write(&making(source(None)), &folder.path().join("all"));
    let (some, few) = write(&making(source(Some(9))), &folder.path().join("some"));
    assert_eq!(every.iter().sum::<usize>(), 31);
    assert!((1..=9).contains(&few.iter().sum::<usize>()), "{few:?}");
    assert!(!all.settings.contains_key("first") && some.settings["first"] == 9);
    let said = making(source(Some(9)))
        .write(&folder.path().join("again"), &mut |done, total| {
            assert!(done <= total && total == 9)
        })
        .unwrap()
        .to_string();
    assert!(said.contains("9 theorems") && !said.contains("refuse"), "{said}");
}

/// A LeanDojo file of theorems by name.
fn leandojo(path: &Path, names: &[&str]) -> PathBuf {
    let theorem = |name: &&str| {
        serde_json::json!({
            "url": "https://example.org/lib", "commit": "c0ffee", "file_path": "A.lean",
            "full_name": name, "start": [1, 1], "end": [2, 1],
            "traced_tactics": [{
                "tactic": "rfl", "state_before": format!("⊢ {name}"), "state_after": "no goals"
            }],
        })
    };
    let entries: Vec<_> = names.iter().map(theorem).collect();
    std::fs::write(path, serde_json::to_vec(&entries).unwrap()).unwrap();
    path.to_path_buf()
}

#[test]
fn official_parts_stay_as_they_are_with_their_commit() {
    let temporary = tempfile::tempdir().unwrap();
    let folder = temporary.path();
    let parts = |test: &[&str]| Source::Parts {
        train: leandojo(&folder.join("train.json"), &["a", "b"]),
        valid: leandojo(&folder.join("val.json"), &["c"]),
        test: leandojo(&folder.join("test.json"), test),
    };
    let (manifest, counts) = write(&making(parts(&["d", "e", "f"])), &folder.join("data"));
    assert_eq!(counts, [2, 1, 3]);
    let test = jsonl::read(&folder.join("data/test.jsonl")).unwrap();
    assert_eq!(test.iter().map(|t| t.theorem.name.as_str()).collect::<String>(), "def");
    let origin = Origin { url: "https://example.org/lib".into(), commit: "c0ffee".into() };
    assert_eq!(manifest.origins.into_iter().collect::<Vec<_>>(), [origin]);

    let shared = making(parts(&["d", "a"])).write(&folder.join("bad"), &mut |_, _| {});
    let error = shared.unwrap_err();
    assert!(matches!(&error, Error::Shared { name, .. } if name == "a"), "{error}");
    assert!(!folder.join("bad/manifest.json").exists());
}

#[test]
fn another_content_under_the_same_name_is_another_source() {
    let folder = tempfile::tempdir().unwrap();
    let source = Source::Traces(leandojo(&folder.path().join("x.json"), &["a", "b"]));
    let before = source.hash().unwrap();
    assert_eq!(source.hash().unwrap(), before);
    leandojo(&folder.path().join("x.json"), &["a", "c"]);
    assert_ne!(source.hash().unwrap(), before);
}
