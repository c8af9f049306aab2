//! JSON lines after crashes, editors and worse.

use std::fs;

use catamount_base::{Appender, Lines, LinesError};

#[test]
fn half_a_last_line_is_set_aside_and_cut_off() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.jsonl");
    fs::write(&path, "[1]\n\n[2]\n[3").unwrap();
    let mut lines = Lines::<Vec<u32>>::open(&path).unwrap();
    let read: Vec<_> = lines.by_ref().map(Result::unwrap).collect();
    assert_eq!(read, [(1, vec![1]), (3, vec![2])]);
    assert_eq!(lines.unfinished(), Some(4));
    Appender::open(&path).unwrap().append(&[4]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[1]\n\n[2]\n[4]\n");
}

#[test]
fn a_whole_last_line_without_its_newline_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.jsonl");
    fs::write(&path, "[1]\n[2]").unwrap();
    assert_eq!(Lines::<Vec<u32>>::read(&path).unwrap(), [vec![1], vec![2]]);
    Appender::open(&path).unwrap().append(&[3]).unwrap();
    assert_eq!(fs::read_to_string(&path).unwrap(), "[1]\n[2]\n[3]\n");
}

#[test]
fn damage_is_named_by_file_and_line_and_reading_can_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.jsonl");
    fs::write(&path, "[1]\ngarbage\n[3]\n{}\n").unwrap();
    let read: Vec<_> = Lines::<Vec<u32>>::open(&path).unwrap().collect();
    let damaged: Vec<usize> = read
        .iter()
        .filter_map(|item| match item {
            Err(LinesError::Damaged { line, .. }) => Some(*line),
            _ => None,
        })
        .collect();
    assert_eq!((read.len(), damaged), (4, vec![2, 4]));
    let error = Lines::<Vec<u32>>::read(&path).unwrap_err().to_string();
    assert!(error.contains("lines.jsonl:2: "), "{error}");
}

/// The end of a file is looked for from its end: lines may be longer than a block.
#[test]
fn long_lines_are_whole() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("lines.jsonl");
    let long = "x".repeat(200_000);
    let mut lines = Appender::open(&path).unwrap();
    lines.append(&long).unwrap();
    drop(lines);
    let mut text = fs::read_to_string(&path).unwrap();
    text.push_str(&format!("\"{}", &long[..150_000]));
    fs::write(&path, text).unwrap();
    Appender::open(&path).unwrap().append(&"end").unwrap();
    assert_eq!(Lines::<String>::read(&path).unwrap(), [long, "end".to_string()]);
}
