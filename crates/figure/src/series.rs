//! One named set of values in a figure, and how it is drawn.

/// How a series is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Line,
    Step,
    Bars,
    Histogram,
}

/// How the interval around each value is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interval {
    None,
    Bars,
    Band,
}

/// One value with its interval, where it has one.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Point {
    pub(crate) x: f64,
    pub(crate) y: f64,
    pub(crate) interval: Option<(f64, f64)>,
    pub(crate) hollow: bool,
}

/// One named set of values.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub(crate) name: String,
    pub(crate) kind: Kind,
    pub(crate) points: Vec<Point>,
    pub(crate) interval: Interval,
    pub(crate) markers: bool,
    pub(crate) dashed: bool,
    pub(crate) colour: Option<usize>,
    /// Pixels by which the drawing is moved sideways.
    pub(crate) dodge: f64,
    /// Histograms: the right edge of the last bin.
    pub(crate) end: Option<f64>,
}

impl Series {
    fn new(
        name: impl Into<String>,
        kind: Kind,
        points: impl IntoIterator<Item = (f64, f64)>,
    ) -> Self {
        let points = points
            .into_iter()
            .map(|(x, y)| Point { x, y, interval: None, hollow: false })
            .collect();
        let markers = kind == Kind::Line;
        Self {
            name: name.into(),
            kind,
            points,
            interval: Interval::None,
            markers,
            dashed: false,
            colour: None,
            dodge: 0.0,
            end: None,
        }
    }

    /// A line through points, with markers. A point that is not finite breaks the line.
    pub fn line(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Kind::Line, points)
    }

    /// A curve that keeps each value until the next point.
    pub fn step(name: impl Into<String>, points: impl IntoIterator<Item = (f64, f64)>) -> Self {
        Self::new(name, Kind::Step, points)
    }

    /// One bar per category, in the order of the axis; several such series stand side by side.
    pub fn bars_of(name: impl Into<String>, values: impl IntoIterator<Item = f64>) -> Self {
        Self::new(name, Kind::Bars, values.into_iter().enumerate().map(|(i, y)| (i as f64, y)))
    }

    /// The share of values in each bin between consecutive edges (the last bin is closed). Values
    /// outside, and values that are not numbers, count in the whole but in no bin.
    pub fn histogram(name: impl Into<String>, values: &[f64], edges: &[f64]) -> Self {
        let mut counts = vec![0usize; edges.len().saturating_sub(1)];
        for v in values {
            let bin = edges.partition_point(|e| e <= v);
            let last = edges.last() == Some(v);
            if let Some(count) =
                bin.checked_sub(1 + usize::from(last)).and_then(|i| counts.get_mut(i))
            {
                *count += 1;
            }
        }
        let whole = values.len().max(1) as f64;
        let mut series = Self::shares(
            name,
            edges,
            &counts.iter().map(|&c| c as f64 / whole).collect::<Vec<_>>(),
        );
        series.markers = false;
        series
    }

    /// A histogram whose bins were counted elsewhere: `shares[i]` stands between `edges[i]` and
    /// `edges[i + 1]`.
    pub fn shares(name: impl Into<String>, edges: &[f64], shares: &[f64]) -> Self {
        let mut series =
            Self::new(name, Kind::Histogram, edges.iter().copied().zip(shares.iter().copied()));
        series.end = edges.get(series.points.len()).copied();
        series
    }

    fn with(mut self, how: Interval, intervals: impl IntoIterator<Item = (f64, f64)>) -> Self {
        for (point, interval) in self.points.iter_mut().zip(intervals) {
            point.interval = Some(interval);
        }
        self.interval = how;
        self
    }

    /// An interval (low, high) around each value, drawn as error bars.
    pub fn bars(self, intervals: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.with(Interval::Bars, intervals)
    }

    /// An interval (low, high) around each value, drawn as a band.
    pub fn band(self, intervals: impl IntoIterator<Item = (f64, f64)>) -> Self {
        self.with(Interval::Band, intervals)
    }

    /// Marks points as hollow, for values that are not significant.
    pub fn hollow(mut self, hollow: impl IntoIterator<Item = bool>) -> Self {
        for (point, hollow) in self.points.iter_mut().zip(hollow) {
            point.hollow = hollow;
        }
        self
    }

    /// Draws a dashed line.
    pub fn dashed(mut self) -> Self {
        self.dashed = true;
        self
    }

    /// Leaves the markers out, for curves of many points.
    pub fn plain(mut self) -> Self {
        self.markers = false;
        self
    }

    /// Takes the `index`-th colour and marker of the palette instead of the next one.
    pub fn colour(mut self, index: usize) -> Self {
        self.colour = Some(index);
        self
    }

    /// Moves a line's points sideways by some pixels, so that error bars at the same place stand
    /// beside each other; the data stays where it is.
    pub fn dodge(mut self, pixels: f64) -> Self {
        self.dodge = if pixels.is_finite() { pixels } else { 0.0 };
        self
    }

    /// The series' name, as in the legend.
    pub fn name(&self) -> &str {
        &self.name
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histogram_counts_every_value_once() {
        let series = Series::histogram(
            "w",
            &[0.0, 0.1, 0.5, 1.0, 2.0, f64::NAN, -1.0, 0.99],
            &[0.0, 0.5, 1.0],
        );
        let shares: Vec<f64> = series.points.iter().map(|p| p.y).collect();
        assert_eq!(shares, [2.0 / 8.0, 3.0 / 8.0]);
        assert_eq!(series.end, Some(1.0));
        assert!(Series::histogram("empty", &[], &[]).points.is_empty());
    }
}
