//! What is asked of a value before it is believed, and how it is refused.

use std::time::Duration;

use crate::limits::LONGEST;

/// A setting that cannot be followed.
pub(super) struct Refusal {
    pub key: String,
    pub reason: String,
}

pub(super) type Checked<T> = std::result::Result<T, Refusal>;

pub(super) fn refuse<T>(key: impl Into<String>, reason: impl Into<String>) -> Checked<T> {
    Err(Refusal { key: key.into(), reason: reason.into() })
}

pub(super) fn between<T: PartialOrd + std::fmt::Display>(
    key: &str,
    value: T,
    least: T,
    most: T,
) -> Checked<()> {
    // What is not a number is in no range.
    let range = least..=most;
    if !range.contains(&value) {
        let (least, most) = range.into_inner();
        return refuse(key, format!("is {value}; it must be from {least} to {most}"));
    }
    Ok(())
}

pub(super) fn positive(key: &str, value: Option<usize>) -> Checked<()> {
    match value {
        Some(0) => refuse(key, "is 0; it must be at least 1, or be left out for no limit"),
        _ => Ok(()),
    }
}

pub(super) fn seconds(key: &str, value: Option<f64>) -> Checked<Option<Duration>> {
    let Some(seconds) = value else { return Ok(None) };
    if !(seconds > 0.0 && seconds <= LONGEST) {
        return refuse(
            key,
            format!("is {seconds}; it must be a positive number of seconds, or be left out"),
        );
    }
    Ok(Some(Duration::from_secs_f64(seconds)))
}

/// Every value at most once.
pub(super) fn once<T: PartialEq + std::fmt::Display>(key: &str, values: &[T]) -> Checked<()> {
    for (index, value) in values.iter().enumerate() {
        if values[..index].contains(value) {
            return refuse(format!("{key}[{index}]"), format!("{value} is listed twice"));
        }
    }
    Ok(())
}
