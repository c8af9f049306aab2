//! Small databases, good and bad, in the spirit of the public metamath-test suite and of our own
//! writing (`suite/`): the right verdict on each, which is also that of Debian's `metamath`.

use std::path::Path;

use catamount_hostile::suite::{Verdict, accepted_by_metamath, judge};

#[test]
fn every_database_gets_the_right_verdict() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite");
    let judged = judge(&folder).unwrap();
    let good = judged.iter().filter(|(case, _)| case.good).count();
    assert!(good >= 10 && judged.len() - good >= 25, "{good} of {}", judged.len());
    let files = std::fs::read_dir(&folder).unwrap().flatten();
    let databases = files.filter(|file| file.path().extension().is_some_and(|e| e == "mm"));
    assert_eq!(databases.count(), judged.len(), "the script names every database");
    for (case, verdict) in judged {
        assert_eq!(verdict, Verdict::Right, "{case:?}");
        match accepted_by_metamath(&folder, &case.file) {
            Some(theirs) => assert_eq!(theirs, case.good, "metamath on {}", case.file),
            None => eprintln!("skipped: `metamath` is not installed"),
        }
    }
}
