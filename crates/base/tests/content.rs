//! What a file is does not depend on its name, its time or its place; only on its bytes.

use std::fs::{self, File};
use std::time::{Duration, SystemTime};

use catamount_base::{Checksums, Content, Damage};

#[test]
fn files_are_what_they_contain() {
    let folder = tempfile::tempdir().unwrap();
    let (a, b) = (folder.path().join("a"), folder.path().join("b"));
    fs::write(&a, "same").unwrap();
    fs::write(&b, "same").unwrap();
    assert_eq!(Content::of_file(&a).unwrap(), Content::of_file(&b).unwrap());
    assert_eq!(Content::of_file(&a).unwrap(), Content::of("same"));
    fs::write(&b, "sane").unwrap();
    assert_ne!(Content::of_file(&a).unwrap(), Content::of_file(&b).unwrap());
}

#[test]
fn borders_and_values_count_but_not_the_order_of_fields() {
    assert_ne!(Content::of_texts(["ab", "c"]), Content::of_texts(["a", "bc"]));
    #[derive(serde::Serialize)]
    struct One {
        a: u32,
        b: u32,
    }
    #[derive(serde::Serialize)]
    struct Other {
        b: u32,
        a: u32,
    }
    assert_eq!(Content::of_value(&One { a: 1, b: 2 }), Content::of_value(&Other { b: 2, a: 1 }));
    assert_ne!(Content::of_value(&One { a: 1, b: 2 }), Content::of_value(&One { a: 2, b: 1 }));
}

/// A large file's hash is remembered, but never when the file was touched since.
#[test]
fn a_large_file_is_read_again_once_it_has_changed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large");
    let old = SystemTime::now() - Duration::from_secs(3600);
    let write = |byte: u8, time: SystemTime| {
        fs::write(&path, vec![byte; 17 << 20]).unwrap();
        File::options().write(true).open(&path).unwrap().set_modified(time).unwrap();
        Content::of_file(&path).unwrap()
    };
    let first = write(1, old);
    assert_eq!(Content::of_file(&path).unwrap(), first, "remembered");
    assert_ne!(write(2, old + Duration::from_secs(1)), first, "another time");
    // Behind the memory's back: same size, same time, same inode. Reading every byte tells.
    let second = Content::of_file(&path).unwrap();
    let sums = Checksums::of(folder.path(), ["large"]).unwrap();
    write(3, old + Duration::from_secs(1));
    assert_ne!(Content::read(&path).unwrap(), second);
    assert!(matches!(sums.verify(folder.path(), true)[..], [Damage::Changed { .. }]));
}

#[test]
fn damage_is_found_in_whole_folders() {
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("model")).unwrap();
    for name in ["model/weights", "model/config", "log", "model/.lock"] {
        fs::write(folder.path().join(name), name).unwrap();
    }
    let sums = Checksums::of(folder.path(), ["model", "log", "never-written"]).unwrap();
    assert_eq!(sums.0.len(), 3);
    assert_eq!(sums.verify(folder.path(), true), []);
    fs::write(folder.path().join("model/weights"), "model/weighty").unwrap();
    fs::remove_file(folder.path().join("log")).unwrap();
    let damage = sums.verify(folder.path(), false);
    let text: Vec<String> = damage.iter().map(ToString::to_string).collect();
    assert!(text.len() == 2 && text[0].contains("log: missing"), "{text:?}");
    assert!(text[1].contains("weights: changed"), "{text:?}");
    let stored = serde_json::to_string(&sums).unwrap();
    assert_eq!(serde_json::from_str::<Checksums>(&stored).unwrap(), sums);
}
