//! Event files that TensorBoard reads: records framed as TensorFlow frames them, each a small
//! protocol buffer.
//!
//! A record is its length (u64), the masked CRC-32C of those eight bytes, the payload, and the
//! payload's masked CRC-32C, all little-endian. The payload is an `Event`: wall time (field 1,
//! double), step (2, varint) and one of: the format's version (3, string), a summary (5), a session
//! log (7). A summary holds values (1), each a tag (1, string) and a number (2, float).

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process;
use std::time::{SystemTime, UNIX_EPOCH};

use crate::{Error, Result};

/// An event file being written.
#[derive(Debug)]
pub struct EventFile {
    path: PathBuf,
    file: File,
}

impl EventFile {
    /// Starts a file of a name that no other has in a folder, and says its version.
    pub fn create(folder: &Path) -> Result<Self> {
        let seconds = now() as u64;
        for serial in 0.. {
            let path = folder.join(format!(
                "events.out.tfevents.{seconds:010}.catamount.{}.{serial}",
                process::id()
            ));
            match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(file) => {
                    let mut events = EventFile { path, file };
                    let mut event = event(0);
                    bytes_field(&mut event, 3, b"brain.Event:2");
                    events.record(&event)?;
                    return Ok(events);
                }
                Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(e) => return Err(Error::file(&path)(e)),
            }
        }
        unreachable!("some serial number is free")
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Says that the run starts again at a step: TensorBoard then forgets what earlier files say
    /// from there on.
    pub fn restart(&mut self, step: u64) -> Result<()> {
        let mut event = event(step);
        // SessionLog { status: START }
        bytes_field(&mut event, 7, &[1 << 3, 1]);
        self.record(&event)
    }

    /// Writes numbers with their tags.
    pub fn scalars(&mut self, step: u64, scalars: &[(String, f64)]) -> Result<()> {
        let mut summary = Vec::new();
        for (tag, number) in scalars {
            let mut value = Vec::new();
            bytes_field(&mut value, 1, tag.as_bytes());
            value.push(2 << 3 | 5);
            value.extend((*number as f32).to_le_bytes());
            bytes_field(&mut summary, 1, &value);
        }
        let mut event = event(step);
        bytes_field(&mut event, 5, &summary);
        self.record(&event)
    }

    fn record(&mut self, payload: &[u8]) -> Result<()> {
        let length = (payload.len() as u64).to_le_bytes();
        let mut record = Vec::with_capacity(payload.len() + 16);
        record.extend(length);
        record.extend(masked_crc32c(&length).to_le_bytes());
        record.extend(payload);
        record.extend(masked_crc32c(payload).to_le_bytes());
        // In one piece, so that a reader never sees half a record for long.
        self.file.write_all(&record).map_err(Error::file(&self.path))
    }
}

/// An event with its time and step.
fn event(step: u64) -> Vec<u8> {
    let mut event = vec![1 << 3 | 1];
    event.extend(now().to_le_bytes());
    event.push(2 << 3);
    varint(&mut event, step);
    event
}

fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
}

fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

/// A length-delimited field.
fn bytes_field(out: &mut Vec<u8>, field: u8, bytes: &[u8]) {
    out.push(field << 3 | 2);
    varint(out, bytes.len() as u64);
    out.extend(bytes);
}

/// CRC-32C (Castagnoli) of the bytes.
pub fn crc32c(bytes: &[u8]) -> u32 {
    !bytes
        .iter()
        .fold(!0, |crc: u32, byte| (crc >> 8) ^ TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize])
}

/// The checksum as TensorFlow stores it, so that checksums of checksums stay useful.
pub fn masked_crc32c(bytes: &[u8]) -> u32 {
    crc32c(bytes).rotate_right(15).wrapping_add(0xa282_ead8)
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut i = 0;
    while i < 256 {
        let mut crc = i as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[i] = crc;
        i += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_checksums() {
        // The check value of the algorithm's definition, and two of RFC 3720's examples.
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
    }
}
