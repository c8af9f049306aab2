//! Axes: a label, a scale, a range, and ticks a person would have chosen.

/// How values become positions.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Scale {
    Linear,
    Log,
    Categories(Vec<String>),
}

/// One axis of a figure.
#[derive(Clone, Debug, PartialEq)]
pub struct Axis {
    pub(crate) label: String,
    pub(crate) scale: Scale,
    pub(crate) range: (Option<f64>, Option<f64>),
    pub(crate) ticks: Option<Vec<f64>>,
    pub(crate) suffix: &'static str,
}

impl Axis {
    fn new(label: impl Into<String>, scale: Scale) -> Self {
        Self { label: label.into(), scale, range: (None, None), ticks: None, suffix: "" }
    }

    /// A linear axis; its range follows the data unless [`Axis::from`] or [`Axis::to`] fix it.
    pub fn linear(label: impl Into<String>) -> Self {
        Self::new(label, Scale::Linear)
    }

    /// A logarithmic axis; values that are not positive are left out of the picture (they stay in
    /// the data file).
    pub fn log(label: impl Into<String>) -> Self {
        Self::new(label, Scale::Log)
    }

    /// An axis of named places: value `i` stands at the middle of the `i`-th name.
    pub fn categories<S: Into<String>>(
        label: impl Into<String>,
        names: impl IntoIterator<Item = S>,
    ) -> Self {
        Self::new(label, Scale::Categories(names.into_iter().map(Into::into).collect()))
    }

    /// Fixes the lower end.
    pub fn from(mut self, low: f64) -> Self {
        self.range.0 = Some(low);
        self
    }

    /// Fixes the upper end.
    pub fn to(mut self, high: f64) -> Self {
        self.range.1 = Some(high);
        self
    }

    /// Fixes the ticks.
    pub fn ticks(mut self, ticks: impl IntoIterator<Item = f64>) -> Self {
        self.ticks = Some(ticks.into_iter().filter(|t| t.is_finite()).collect());
        self
    }

    /// A unit written after every tick, such as `%`.
    pub fn suffix(mut self, suffix: &'static str) -> Self {
        self.suffix = suffix;
        self
    }

    /// Whether a value has a place on this axis at all.
    pub(crate) fn holds(&self, value: f64) -> bool {
        value.is_finite() && (self.scale != Scale::Log || value > 0.0)
    }
}

/// An axis fitted to its data: maps values to 0..1 and knows its ticks.
#[derive(Clone, Debug)]
pub(crate) struct Fitted {
    low: f64,
    high: f64,
    log: bool,
    pub(crate) ticks: Vec<(f64, String)>,
}

impl Fitted {
    /// Fits an axis to the values that will be drawn on it. `padded` leaves air around the extremes
    /// of a free axis.
    pub(crate) fn new(axis: &Axis, values: impl Iterator<Item = f64>, padded: bool) -> Self {
        if let Scale::Categories(names) = &axis.scale {
            let ticks = names.iter().enumerate().map(|(i, n)| (i as f64, n.clone())).collect();
            return Self { low: -0.5, high: names.len().max(1) as f64 - 0.5, log: false, ticks };
        }
        let log = axis.scale == Scale::Log;
        let to = |v: f64| if log { v.log10() } else { v };
        let (mut low, mut high) = values
            .chain(axis.ticks.iter().flatten().copied().filter(|_| log))
            .filter(|&v| axis.holds(v))
            .map(to)
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(a, b), v| (a.min(v), b.max(v)));
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        let width = high - low;
        let air = if width > 0.0 {
            width * 0.06
        } else {
            (low.abs() * 0.1).max(if log { 0.3 } else { 0.5 })
        };
        if padded || width == 0.0 {
            (low, high) = (low - air, high + air);
        }
        let fixed = |end: Option<f64>| end.filter(|&v| axis.holds(v)).map(to);
        low = fixed(axis.range.0).unwrap_or(low);
        high = fixed(axis.range.1).unwrap_or(high);
        // Written so that a meaningless pair of ends still leaves a usable axis.
        if high.partial_cmp(&low) != Some(std::cmp::Ordering::Greater) {
            high = low + 1.0;
        }
        let at = match &axis.ticks {
            Some(ticks) => ticks.clone(),
            None if log => log_ticks(low, high),
            None => linear_ticks(low, high),
        };
        let step = if at.len() > 1 { (at[1] - at[0]).abs() } else { 1.0 };
        let ticks = at
            .into_iter()
            .filter(|&t| axis.holds(t) && (low - 1e-9..=high + 1e-9).contains(&to(t)))
            .map(|t| {
                (t, format!("{}{}", if log { short(t) } else { rounded(t, step) }, axis.suffix))
            })
            .collect();
        Self { low, high, log, ticks }
    }

    /// Position of a value, 0 at the low end and 1 at the high end; `None` when it has none.
    pub(crate) fn place(&self, value: f64) -> Option<f64> {
        let v = if self.log { (value > 0.0).then(|| value.log10())? } else { value };
        let at = (v - self.low) / (self.high - self.low);
        at.is_finite().then_some(at)
    }
}

fn linear_ticks(low: f64, high: f64) -> Vec<f64> {
    let rough = (high - low) / 5.0;
    let power = 10f64.powf(rough.log10().floor());
    let step = [1.0, 2.0, 2.5, 5.0, 10.0]
        .into_iter()
        .map(|m| m * power)
        .find(|s| *s >= rough * 0.999)
        .unwrap_or(10.0 * power);
    let first = (low / step - 1e-9).ceil() as i64;
    let last = (high / step + 1e-9).floor() as i64;
    (first..=last.min(first + 50)).map(|k| k as f64 * step).collect()
}

fn log_ticks(low: f64, high: f64) -> Vec<f64> {
    let decades = high - low;
    let marks: &[f64] = if decades > 3.0 {
        &[1.0]
    } else if decades > 1.2 {
        &[1.0, 3.0]
    } else {
        &[1.0, 2.0, 3.0, 5.0]
    };
    let stride = (decades / 8.0).ceil().max(1.0) as usize;
    let mut ticks = Vec::new();
    for power in (low.floor() as i32..=high.ceil() as i32).step_by(stride) {
        ticks.extend(marks.iter().map(|m| m * 10f64.powi(power)));
    }
    ticks
}

/// A tick's text with as many decimals as the step between ticks needs.
fn rounded(value: f64, step: f64) -> String {
    if value.abs() >= 1e6 || (value != 0.0 && step < 1e-4) {
        return short(value);
    }
    let decimals = (0..5)
        .find(|&d| {
            ((step * 10f64.powi(d)).fract()).min(1.0 - (step * 10f64.powi(d)).fract()) < 1e-6
        })
        .unwrap_or(4);
    let text = format!("{value:.*}", decimals as usize);
    // A typographic minus, and never a signed zero.
    match text.strip_prefix('-') {
        Some(rest) if rest.chars().all(|c| "0.".contains(c)) => rest.to_owned(),
        Some(rest) => format!("\u{2212}{rest}"),
        None => text,
    }
}

/// A number in few characters: plain where that is short, else a power of ten.
pub(crate) fn short(value: f64) -> String {
    let size = value.abs();
    if value == 0.0 {
        return "0".into();
    }
    if !value.is_finite() {
        return "\u{2013}".into();
    }
    if (1e-3..1e6).contains(&size) {
        let text = format!("{value:.4}");
        let text = text.trim_end_matches('0').trim_end_matches('.');
        return text.replace('-', "\u{2212}");
    }
    let mut power = size.log10().floor();
    let mut mantissa = value / 10f64.powf(power);
    if mantissa.abs() > 9.995 {
        power += 1.0;
        mantissa /= 10.0;
    }
    let raised: String = format!("{power}")
        .chars()
        .map(|c| match c {
            '-' => '\u{207b}',
            '1' => '\u{b9}',
            '2' => '\u{b2}',
            '3' => '\u{b3}',
            '0' => '\u{2070}',
            d => char::from_u32(0x2070 + d as u32 - '0' as u32).unwrap_or(d),
        })
        .collect();
    if (mantissa - 1.0).abs() < 5e-3 {
        format!("10{raised}")
    } else {
        format!("{}\u{b7}10{raised}", short((mantissa * 100.0).round() / 100.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ticks(axis: Axis, values: &[f64]) -> Vec<String> {
        Fitted::new(&axis, values.iter().copied(), false).ticks.into_iter().map(|t| t.1).collect()
    }

    #[test]
    fn ticks_are_round_numbers() {
        assert_eq!(
            ticks(Axis::linear("").from(0.0).to(100.0).suffix("%"), &[]),
            ["0%", "20%", "40%", "60%", "80%", "100%"]
        );
        assert_eq!(
            ticks(Axis::linear(""), &[-1.0, 1.0]),
            ["\u{2212}1.0", "\u{2212}0.5", "0.0", "0.5", "1.0"]
        );
        assert_eq!(
            ticks(Axis::log("").ticks([16.0, 64.0, 256.0]), &[16.0, 256.0]),
            ["16", "64", "256"]
        );
        assert_eq!(
            ticks(Axis::log(""), &[1e-8, 1.0]).first().map(String::as_str),
            Some("10\u{207b}\u{2078}")
        );
        assert_eq!(ticks(Axis::categories("", ["a", "b"]), &[]), ["a", "b"]);
    }

    #[test]
    fn degenerate_data_still_has_an_axis() {
        for values in [&[][..], &[3.0], &[f64::NAN, f64::INFINITY]] {
            for axis in [
                Axis::linear(""),
                Axis::log(""),
                Axis::linear("").from(5.0).to(5.0),
                Axis::linear("").to(f64::NAN),
            ] {
                let fitted = Fitted::new(&axis, values.iter().copied(), true);
                assert!(
                    fitted.low < fitted.high && !fitted.ticks.is_empty(),
                    "{axis:?} {values:?} {fitted:?}"
                );
            }
        }
    }

    #[test]
    fn short_numbers() {
        let texts = [0.0, 0.5, -12.0, 1024.0, 1e-5, 2.5e7, 9.999e-5].map(short);
        assert_eq!(
            texts,
            [
                "0",
                "0.5",
                "\u{2212}12",
                "1024",
                "10\u{207b}\u{2075}",
                "2.5\u{b7}10\u{2077}",
                "10\u{207b}\u{2074}"
            ]
        );
    }
}
