//! One chart with its title, axes, legend and note.

use crate::axis::Axis;
use crate::canvas::{Anchor, Canvas, wrap};
use crate::chart::{Chart, PHONE};
use crate::data;
use crate::legend::{self, Entry};
use crate::plot::{self, Frame};
use crate::series::Series;

/// One chart, built step by step.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    pub(crate) title: String,
    pub(crate) subtitle: String,
    pub(crate) note: String,
    pub(crate) x: Axis,
    pub(crate) y: Axis,
    pub(crate) series: Vec<Series>,
    pub(crate) references: Vec<f64>,
    pub(crate) size: (f64, f64),
}

/// Space around everything.
pub(crate) const PAD: f64 = 16.0;
const TITLE: f64 = 17.0;
const SMALL: f64 = 12.5;

impl Figure {
    /// An empty figure with a title.
    pub fn new(title: impl Into<String>) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            note: String::new(),
            x: Axis::linear(""),
            y: Axis::linear(""),
            series: Vec::new(),
            references: Vec::new(),
            size: (720.0, 440.0),
        }
    }

    /// A sentence under the title.
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = text.into();
        self
    }

    /// A note below the plot: what the bars are, what is missing.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// The horizontal axis.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// Adds a series.
    #[allow(clippy::should_implement_trait)]
    pub fn add(mut self, series: Series) -> Self {
        self.series.push(series);
        self
    }

    /// Adds several series.
    pub fn extend(mut self, series: impl IntoIterator<Item = Series>) -> Self {
        self.series.extend(series);
        self
    }

    /// A horizontal guide line at a value.
    pub fn reference(mut self, value: f64) -> Self {
        self.references.push(value);
        self
    }

    /// Width and height in pixels.
    pub fn sized(mut self, width: f64, height: f64) -> Self {
        self.size = (width.clamp(120.0, 8000.0), height.clamp(100.0, 8000.0));
        self
    }

    pub(crate) fn lowest(&self) -> f64 {
        self.series
            .iter()
            .flat_map(|s| &s.points)
            .map(|p| p.y)
            .filter(|y| y.is_finite())
            .fold(0.0, f64::min)
    }

    fn entries(&self) -> Vec<Entry<'_>> {
        let entry = |(series, colour)| Entry { series, colour };
        self.series.iter().zip(self.colours()).map(entry).collect()
    }

    fn colours(&self) -> Vec<usize> {
        self.series.iter().enumerate().map(|(i, s)| s.colour.unwrap_or(i)).collect()
    }
}

/// Draws title and subtitle from the top left corner; returns the height used.
pub(crate) fn headings(canvas: &mut Canvas, title: &str, subtitle: &str, width: f64) -> f64 {
    let mut y = PAD;
    canvas.role("ink", |c| {
        for line in wrap(title, TITLE, width - 2.0 * PAD) {
            y += TITLE + 2.0;
            c.text((PAD, y - 4.0), Anchor::Start, TITLE, true, &line);
        }
    });
    canvas.role("soft", |c| {
        for line in wrap(subtitle, SMALL, width - 2.0 * PAD) {
            y += SMALL + 5.0;
            c.text((PAD, y - 3.0), Anchor::Start, SMALL, false, &line);
        }
    });
    y + 6.0
}

/// Draws a note upwards from the bottom edge; returns the height used.
pub(crate) fn footnote(canvas: &mut Canvas, note: &str, (width, height): (f64, f64)) -> f64 {
    let lines = wrap(note, SMALL, width - 2.0 * PAD);
    let tall = if lines.is_empty() { 0.0 } else { lines.len() as f64 * (SMALL + 4.5) + 8.0 };
    canvas.role("soft", |c| {
        for (i, line) in lines.iter().rev().enumerate() {
            c.text(
                (PAD, height - PAD + 3.0 - i as f64 * (SMALL + 4.5)),
                Anchor::Start,
                SMALL,
                false,
                line,
            );
        }
    });
    tall
}

impl Chart for Figure {
    fn size(&self) -> (f64, f64) {
        self.size
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn body(&self) -> String {
        let mut canvas = Canvas::default();
        let (width, height) = self.size;
        canvas.role("ground", |c| c.ground(width, height));
        let mut top = headings(&mut canvas, &self.title, &self.subtitle, width);
        let (colours, entries) = (self.colours(), self.entries());
        legend::draw(&mut canvas, &entries, (PAD, top), width - 2.0 * PAD);
        top += legend::height(&entries, width - 2.0 * PAD);
        let foot = footnote(&mut canvas, &self.note, self.size);
        let frame = Frame {
            left: PAD,
            top,
            width: width - 2.0 * PAD,
            height: height - top - foot - PAD + 4.0,
            size: 12.0,
        };
        plot::draw(&mut canvas, self, frame, &colours);
        canvas.finish()
    }

    fn for_phone(&self) -> Box<dyn Chart> {
        let (wide, high) = self.size;
        // Texts that take more lines there must not eat into the plot.
        let taken = |width: f64| {
            let mut scratch = Canvas::default();
            headings(&mut scratch, &self.title, &self.subtitle, width)
                + legend::height(&self.entries(), width - 2.0 * PAD)
                + footnote(&mut scratch, &self.note, (width, 0.0))
        };
        let plot = (high - taken(wide)).min(260.0);
        Box::new(self.clone().sized(PHONE.min(wide), plot + taken(PHONE.min(wide))))
    }

    fn to_csv(&self) -> String {
        data::csv([(None, self)])
    }
}
