//! The part of the harness that every test run affords: some inputs for every target, and some
//! hundred verdicts.

use std::time::Instant;

use catamount_hostile::fuzz;
use catamount_hostile::target::{NAMES, Target};
use catamount_hostile::verdicts::{Part, TOY, compare};

#[test]
fn no_input_makes_a_parser_panic_or_hang() {
    for name in NAMES {
        let folder = tempfile::tempdir().unwrap();
        let mut target = Target::new(name, folder.path()).unwrap();
        assert!(!target.seeds.is_empty(), "{name}");
        for number in 0..target.share as u64 * 3 {
            let bytes = fuzz::input(&target, number);
            let began = Instant::now();
            let outcome = fuzz::read(&mut target, &bytes);
            assert_eq!(outcome, Ok(()), "`fuzz show {name} {number}` prints the input");
            assert!(began.elapsed() < fuzz::LONGEST, "{name} {number}");
        }
    }
}

#[test]
fn verdicts_are_those_of_metamath() {
    for part in Part::ALL {
        let compared = compare(part, 150, &[TOY.to_owned()]).unwrap();
        assert_eq!(compared.judged, 150);
        assert!(compared.accepted > 2 && compared.refused > 50, "{compared:?}");
        assert!(compared.disagreements.is_empty(), "{part}: {:?}", compared.disagreements);
        assert!(compared.lost.is_empty(), "{part}: {:?}", compared.lost);
    }
}
