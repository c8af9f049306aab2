//! Small multiples: several figures of one kind under one title and one legend.

use crate::canvas::{Anchor, Canvas};
use crate::chart::{Chart, PHONE};
use crate::data;
use crate::figure::{Figure, PAD, footnote, headings};
use crate::legend::{self, Entry};
use crate::plot::{self, Frame};

/// Several panels that share a legend: series of the same name have the same colour everywhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    title: String,
    subtitle: String,
    note: String,
    columns: usize,
    panels: Vec<Figure>,
    panel_size: (f64, f64),
}

impl Grid {
    /// An empty grid with a title.
    pub fn new(title: impl Into<String>, columns: usize) -> Self {
        Self {
            title: title.into(),
            subtitle: String::new(),
            note: String::new(),
            columns: columns.max(1),
            panels: Vec::new(),
            panel_size: (300.0, 230.0),
        }
    }

    /// A sentence under the title.
    pub fn subtitle(mut self, text: impl Into<String>) -> Self {
        self.subtitle = text.into();
        self
    }

    /// A note below the panels.
    pub fn note(mut self, text: impl Into<String>) -> Self {
        self.note = text.into();
        self
    }

    /// Adds a panel; its title stands above it, its own size and notes are not used.
    pub fn panel(mut self, figure: Figure) -> Self {
        self.panels.push(figure);
        self
    }

    /// Width and height of one panel.
    pub fn panel_size(mut self, width: f64, height: f64) -> Self {
        self.panel_size = (width.clamp(80.0, 2000.0), height.clamp(80.0, 2000.0));
        self
    }

    /// The distinct series in order of first appearance, with their colours.
    fn entries(&self) -> Vec<Entry<'_>> {
        let mut entries: Vec<Entry> = Vec::new();
        for series in self.panels.iter().flat_map(|p| &p.series) {
            if !entries.iter().any(|e| e.series.name == series.name) {
                let colour = series.colour.unwrap_or(entries.len());
                entries.push(Entry { series, colour });
            }
        }
        entries
    }

    fn columns(&self) -> usize {
        self.columns.min(self.panels.len()).max(1)
    }

    fn width(&self) -> f64 {
        (self.columns() as f64 * (self.panel_size.0 + PAD) + PAD).max(PHONE)
    }
}

impl Chart for Grid {
    fn size(&self) -> (f64, f64) {
        let width = self.width();
        let mut scratch = Canvas::default();
        let head = headings(&mut scratch, &self.title, &self.subtitle, width);
        let foot = footnote(&mut scratch, &self.note, (width, 0.0));
        let rows = self.panels.len().div_ceil(self.columns()) as f64;
        (
            width,
            head + legend::height(&self.entries(), width - 2.0 * PAD)
                + rows * (self.panel_size.1 + PAD)
                + foot
                + PAD,
        )
    }

    fn title(&self) -> &str {
        &self.title
    }

    fn body(&self) -> String {
        let mut canvas = Canvas::default();
        let (width, height) = self.size();
        canvas.role("ground", |c| c.ground(width, height));
        let mut top = headings(&mut canvas, &self.title, &self.subtitle, width);
        let entries = self.entries();
        legend::draw(&mut canvas, &entries, (PAD, top), width - 2.0 * PAD);
        top += legend::height(&entries, width - 2.0 * PAD);
        for (i, panel) in self.panels.iter().enumerate() {
            let (row, column) = (i / self.columns(), i % self.columns());
            let left = PAD + column as f64 * (self.panel_size.0 + PAD);
            let y = top + row as f64 * (self.panel_size.1 + PAD);
            canvas
                .role("ink", |c| c.text((left, y + 14.0), Anchor::Start, 13.0, true, &panel.title));
            let colours: Vec<usize> = panel
                .series
                .iter()
                .map(|s| entries.iter().find(|e| e.series.name == s.name).map_or(0, |e| e.colour))
                .collect();
            let frame = Frame {
                left,
                top: y + 20.0,
                width: self.panel_size.0,
                height: self.panel_size.1 - 20.0,
                size: 11.0,
            };
            plot::draw(&mut canvas, panel, frame, &colours);
        }
        footnote(&mut canvas, &self.note, (width, height));
        canvas.finish()
    }

    fn for_phone(&self) -> Box<dyn Chart> {
        let (wide, high) = self.panel_size;
        let panel_size = ((PHONE - 2.0 * PAD).min(wide), high);
        Box::new(Grid { columns: 1, panel_size, ..self.clone() })
    }

    fn to_csv(&self) -> String {
        data::csv(self.panels.iter().map(|p| (Some(p.title.as_str()), p)))
    }
}
