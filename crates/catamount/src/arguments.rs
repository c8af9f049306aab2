//! What numbers on the command line may be.

use clap::builder::RangedU64ValueParser;

/// Whole numbers of a range, its ends included.
pub fn range(least: usize, most: usize) -> RangedU64ValueParser<usize> {
    RangedU64ValueParser::new().range(least as u64..=most as u64)
}

/// Numbers of a range, its ends included; what is not a number is in none.
pub fn real(least: f64, most: f64) -> impl Fn(&str) -> Result<f64, String> + Clone {
    move |text| {
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.ok_or_else(|| format!("it must be a number from {least} to {most}"))
    }
}
