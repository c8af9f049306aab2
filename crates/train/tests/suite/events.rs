//! TensorBoard's files, read back by a parser that knows nothing of the writer but the format and
//! the checksum's definition.

use std::sync::atomic::AtomicBool;

use crate::common::{data, metrics, model, recipe, tokenizer, traces};
use catamount_objective::{Objective, Surrogate};
use catamount_train::{Recipe, Run, train};

/// CRC-32C bit by bit, as its polynomial says.
fn crc(bytes: &[u8]) -> u32 {
    let mut crc = !0u32;
    for byte in bytes {
        crc ^= u32::from(*byte);
        for _ in 0..8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
        }
    }
    !crc
}

fn masked(bytes: &[u8]) -> u32 {
    crc(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

#[derive(Debug)]
enum Field<'a> {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
}

/// The fields of a protocol buffer.
fn fields(mut bytes: &[u8]) -> Vec<(u64, Field<'_>)> {
    fn varint(bytes: &mut &[u8]) -> u64 {
        let (mut n, mut shift) = (0, 0);
        loop {
            let byte = bytes[0];
            *bytes = &bytes[1..];
            n |= u64::from(byte & 0x7f) << shift;
            shift += 7;
            if byte < 0x80 {
                return n;
            }
        }
    }
    let mut found = Vec::new();
    while !bytes.is_empty() {
        let key = varint(&mut bytes);
        let field = match key & 7 {
            0 => Field::Varint(varint(&mut bytes)),
            1 => {
                let (head, tail) = bytes.split_at(8);
                bytes = tail;
                Field::Fixed64(head.try_into().unwrap())
            }
            2 => {
                let n = varint(&mut bytes) as usize;
                let (head, tail) = bytes.split_at(n);
                bytes = tail;
                Field::Bytes(head)
            }
            5 => {
                let (head, tail) = bytes.split_at(4);
                bytes = tail;
                Field::Fixed32(head.try_into().unwrap())
            }
            kind => panic!("wire type {kind}"),
        };
        found.push((key >> 3, field));
    }
    found
}

#[derive(Debug, PartialEq)]
enum Content {
    Version(String),
    Scalars(Vec<(String, f32)>),
    Restart,
}

/// Every record of a file, its checksums checked.
fn events(bytes: &[u8]) -> Vec<(u64, Content)> {
    let (mut rest, mut found) = (bytes, Vec::new());
    while !rest.is_empty() {
        let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
        let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        assert_eq!(word(8), masked(&rest[..8]));
        let payload = &rest[12..12 + length];
        assert_eq!(word(12 + length), masked(payload));
        rest = &rest[16 + length..];
        let (mut step, mut content) = (0, None);
        for field in fields(payload) {
            match field {
                (1, Field::Fixed64(time)) => assert!(f64::from_le_bytes(time) > 1.6e9),
                (2, Field::Varint(n)) => step = n,
                (3, Field::Bytes(version)) => {
                    content = Some(Content::Version(String::from_utf8(version.to_vec()).unwrap()))
                }
                (5, Field::Bytes(summary)) => content = Some(Content::Scalars(scalars(summary))),
                (7, Field::Bytes(log)) => {
                    assert!(matches!(fields(log)[..], [(1, Field::Varint(1))]));
                    content = Some(Content::Restart);
                }
                other => panic!("{other:?}"),
            }
        }
        found.push((step, content.unwrap()));
    }
    found
}

fn scalars(summary: &[u8]) -> Vec<(String, f32)> {
    let value = |(field, bytes): (u64, Field<'_>)| {
        let (1, Field::Bytes(bytes)) = (field, bytes) else { panic!("not a value") };
        match fields(bytes)[..] {
            [(1, Field::Bytes(tag)), (2, Field::Fixed32(number))] => {
                (String::from_utf8(tag.to_vec()).unwrap(), f32::from_le_bytes(number))
            }
            ref other => panic!("{other:?}"),
        }
    };
    fields(summary).into_iter().map(value).collect()
}

#[test]
fn event_files_say_what_the_metrics_say() {
    let traces = traces(30);
    let tokenizer = tokenizer(&traces);
    let data = data(&tokenizer, &traces);
    let folder = tempfile::tempdir().unwrap();
    let go = AtomicBool::new(false);
    let objective = Surrogate::new(Objective::Bfs, 6);
    let recipe = Recipe { max_steps: Some(6), ..recipe() };
    let run = Run::new(folder.path(), "bfs", &go).resuming(true);
    train(&mut model(&tokenizer), &data, &objective, &recipe, &run).unwrap();
    // Resumed at step 4: the second file says so.
    std::fs::remove_dir_all(run.checkpoints().join("step-00000006")).unwrap();
    train(&mut model(&tokenizer), &data, &objective, &recipe, &run).unwrap();

    let mut files: Vec<_> = std::fs::read_dir(folder.path().join("bfs"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_string_lossy().contains("tfevents"))
        .map(|p| events(&std::fs::read(p).unwrap()))
        .collect();
    files.sort_by_key(|events| std::cmp::Reverse(events.len()));
    assert_eq!(files.len(), 2);
    let version = (0, Content::Version("brain.Event:2".into()));
    assert!(files.iter().all(|events| events[0] == version));
    assert_eq!((files[0].len(), &files[0][1]), (2 + 6, &(1, Content::Restart)));
    assert_eq!((files[1].len(), &files[1][1]), (2 + 2, &(5, Content::Restart)));
    let lines = metrics(&run.metrics());
    assert_eq!(lines.len(), 6);
    for (line, (step, content)) in lines.iter().zip(&files[0][2..]) {
        let Content::Scalars(scalars) = content else { panic!("{content:?}") };
        let scalar = |tag: &str| {
            scalars
                .iter()
                .find(|(t, _)| t == tag)
                .unwrap_or_else(|| panic!("no {tag} in {scalars:?}"))
                .1
        };
        assert_eq!(*step, line.step as u64);
        assert_eq!(scalar("loss"), line.loss as f32);
        assert_eq!(scalar("lr"), line.lr as f32);
        assert_eq!(scalar("p/q05"), line.p_quantiles[0] as f32);
        assert_eq!(scalar("weight/q95"), line.w_quantiles[4] as f32);
        assert_eq!(scalar("weight/effective_sample_size"), line.effective_sample_size as f32);
    }
}
