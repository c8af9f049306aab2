//! The plot of one panel: axes, grid, and every series in its form.

use crate::axis::{Fitted, Scale, short};
use crate::canvas::{Anchor, Canvas, width};
use crate::figure::Figure;
use crate::legend::dashes;
use crate::series::{Interval, Kind, Point, Series};

/// Where a panel's plot goes, axes and their labels included.
#[derive(Clone, Copy)]
pub(crate) struct Frame {
    pub(crate) left: f64,
    pub(crate) top: f64,
    pub(crate) width: f64,
    pub(crate) height: f64,
    /// Size of the tick labels.
    pub(crate) size: f64,
}

struct Plot {
    x: Fitted,
    y: Fitted,
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Plot {
    fn at(&self, x: f64, y: f64) -> Option<(f64, f64)> {
        Some((self.x.place(x)? * self.width, (1.0 - self.y.place(y)?) * self.height))
    }
    fn inside(&self, (x, y): (f64, f64)) -> bool {
        (-0.5..=self.width + 0.5).contains(&x) && (-0.5..=self.height + 0.5).contains(&y)
    }
}

/// Draws one panel. `colours[i]` is the palette place of the `i`-th series.
pub(crate) fn draw(canvas: &mut Canvas, figure: &Figure, frame: Frame, colours: &[usize]) {
    let bars = figure.series.iter().any(|s| matches!(s.kind, Kind::Bars | Kind::Histogram));
    let xs = figure.series.iter().flat_map(|s| s.points.iter().map(|p| p.x).chain(s.end));
    let ys = figure
        .series
        .iter()
        .flat_map(|s| &s.points)
        .flat_map(|p| [p.y].into_iter().chain(p.interval.into_iter().flat_map(|(a, b)| [a, b])))
        .chain(figure.references.iter().copied())
        .chain(bars.then_some(0.0));
    let markers = figure.series.iter().any(|s| s.markers);
    let x = Fitted::new(&figure.x, xs, markers);
    let mut y_axis = figure.y.clone();
    // Bars stand on zero: air below it would make their lengths lie.
    if bars && y_axis.range.0.is_none() && figure.lowest() >= 0.0 {
        y_axis = y_axis.from(0.0);
    }
    let y = Fitted::new(&y_axis, ys, true);

    let size = frame.size;
    let margin = y.ticks.iter().map(|t| width(&t.1, size)).fold(8.0, f64::max) + 10.0;
    let slot = (frame.width - margin) / x.ticks.len().max(1) as f64;
    let widest = x.ticks.iter().map(|t| width(&t.1, size)).fold(0.0, f64::max);
    let turned = matches!(figure.x.scale, Scale::Categories(_)) && widest + 6.0 > slot;
    let foot = if turned { widest * 0.6 + 14.0 } else { size + 11.0 }
        + if figure.x.label.is_empty() { 0.0 } else { size + 8.0 };
    let head = if figure.y.label.is_empty() { 6.0 } else { size + 16.0 };
    let plot = Plot {
        x,
        y,
        left: frame.left + margin,
        top: frame.top + head,
        width: (frame.width - margin).max(10.0),
        height: (frame.height - head - foot).max(10.0),
    };

    canvas.role("soft", |c| {
        c.text((frame.left, frame.top + size + 1.0), Anchor::Start, size, false, &figure.y.label);
        let bottom = frame.top + frame.height - 2.0;
        c.text(
            (plot.left + plot.width / 2.0, bottom),
            Anchor::Middle,
            size,
            false,
            &figure.x.label,
        );
    });
    axes(canvas, &plot, figure, size, turned);
    let bar_count = figure.series.iter().filter(|s| s.kind == Kind::Bars).count();
    canvas.clipped(plot.left, plot.top, plot.width, plot.height, |c| {
        for (series, &colour) in figure.series.iter().zip(colours) {
            c.series(colour, |c| shape(c, &plot, series));
        }
    });
    // Markers, bars and error bars may touch the frame; they are drawn outside the clip and only
    // when they stand inside it.
    canvas.moved(plot.left, plot.top, |c| {
        let mut bar = 0;
        for (series, &colour) in figure.series.iter().zip(colours) {
            let place = (bar, bar_count);
            bar += usize::from(series.kind == Kind::Bars);
            c.series(colour, |c| points(c, &plot, series, colour, place));
        }
    });
    if figure.series.iter().all(|s| s.points.iter().all(|p| plot.at(p.x, p.y).is_none())) {
        let middle = (plot.left + plot.width / 2.0, plot.top + plot.height / 2.0);
        canvas.role("soft", |c| c.text(middle, Anchor::Middle, size, false, "no data"));
    }
}

fn axes(canvas: &mut Canvas, plot: &Plot, figure: &Figure, size: f64, turned: bool) {
    let (right, bottom) = (plot.left + plot.width, plot.top + plot.height);
    canvas.role("grid", |c| {
        for (value, _) in &plot.y.ticks {
            if let Some(at) = plot.y.place(*value) {
                let y = bottom - at * plot.height;
                c.line((plot.left, y), (right, y), 1.0);
            }
        }
    });
    canvas.role("soft", |c| {
        for (value, text) in &plot.y.ticks {
            if let Some(at) = plot.y.place(*value) {
                c.text(
                    (plot.left - 8.0, bottom - at * plot.height + size * 0.35),
                    Anchor::End,
                    size,
                    false,
                    text,
                );
            }
        }
        c.line((plot.left, bottom), (right, bottom), 1.0);
        for reference in &figure.references {
            if let Some(at) = plot.y.place(*reference).filter(|a| (0.0..=1.0).contains(a)) {
                let y = bottom - at * plot.height;
                c.guide((plot.left, y), (right, y));
            }
        }
        let named = matches!(figure.x.scale, Scale::Categories(_));
        let mut free = f64::NEG_INFINITY;
        for (value, text) in &plot.x.ticks {
            let Some(at) = plot.x.place(*value) else { continue };
            let x = plot.left + at * plot.width;
            if turned {
                c.turned((x + 4.0, bottom + size + 4.0), Anchor::End, size, false, -35.0, text);
                continue;
            }
            if !named {
                c.line((x, bottom), (x, bottom + 4.0), 1.0);
            }
            // A label that would touch its neighbour is left out; its tick stays.
            let half = width(text, size) / 2.0;
            if x - half > free {
                c.text((x, bottom + size + 6.0), Anchor::Middle, size, false, text);
                free = x + half + 4.0;
            }
        }
    });
}

/// The part of a series that is clipped: areas and lines.
fn shape(canvas: &mut Canvas, plot: &Plot, series: &Series) {
    match series.kind {
        Kind::Bars => {}
        Kind::Histogram => {
            let outline = histogram(plot, series);
            canvas.area(&outline, 0.22);
            canvas.stroke(&[outline], 1.8, dashes(series));
        }
        Kind::Line | Kind::Step => {
            if series.interval == Interval::Band {
                for run in
                    runs(&series.points, |p| p.interval.is_some() && plot.at(p.x, p.y).is_some())
                {
                    let edge = |f: fn((f64, f64)) -> f64| -> Vec<(f64, f64)> {
                        let points: Vec<_> =
                            run.iter().filter_map(|p| plot.at(p.x, f(p.interval?))).collect();
                        if series.kind == Kind::Step { stepped(&points) } else { points }
                    };
                    let mut area = edge(|i| i.1);
                    area.extend(edge(|i| i.0).into_iter().rev());
                    canvas.area(&area, 0.16);
                }
            }
            let lines: Vec<Vec<(f64, f64)>> = runs(&series.points, |p| plot.at(p.x, p.y).is_some())
                .into_iter()
                .map(|run| {
                    let points: Vec<_> = run
                        .iter()
                        .filter_map(|p| plot.at(p.x, p.y))
                        .map(|(x, y)| (x + series.dodge, y))
                        .collect();
                    if series.kind == Kind::Step { stepped(&points) } else { points }
                })
                .collect();
            canvas.stroke(&lines, 2.0, dashes(series));
        }
    }
}

/// The part of a series that is not clipped: bars, error bars and markers.
fn points(
    canvas: &mut Canvas,
    plot: &Plot,
    series: &Series,
    colour: usize,
    (bar, bars): (usize, usize),
) {
    let slot = plot.width / plot.x.ticks.len().max(1) as f64;
    let bar_width = (slot * 0.78 / bars.max(1) as f64).min(56.0);
    for point in &series.points {
        let Some((mut x, y)) = plot.at(point.x, point.y) else { continue };
        x += series.dodge;
        if series.kind == Kind::Bars {
            x += (bar as f64 - (bars as f64 - 1.0) / 2.0) * bar_width;
            let zero = (1.0 - plot.y.place(0.0).unwrap_or(0.0).clamp(0.0, 1.0)) * plot.height;
            let end = y.clamp(0.0, plot.height);
            let gap = (bar_width * 0.08).min(1.5);
            let (top, tall) = (zero.min(end), (zero - end).abs());
            canvas.bar(
                x - bar_width / 2.0 + gap,
                top,
                bar_width - 2.0 * gap,
                tall,
                0.88,
                &tip(series, point),
            );
        }
        if series.interval == Interval::Bars
            && let Some((low, high)) = point.interval
            && let (Some((_, a)), Some((_, b))) = (plot.at(point.x, low), plot.at(point.x, high))
        {
            let (a, b) = (a.clamp(0.0, plot.height), b.clamp(0.0, plot.height));
            let whisker = |c: &mut Canvas| {
                c.line((x, a), (x, b), 1.3);
                c.line((x - 3.5, a), (x + 3.5, a), 1.3);
                c.line((x - 3.5, b), (x + 3.5, b), 1.3);
            };
            if series.kind == Kind::Bars { canvas.role("ink", whisker) } else { whisker(canvas) }
        }
        if series.markers && matches!(series.kind, Kind::Line | Kind::Step) && plot.inside((x, y)) {
            canvas.marker(colour, (x, y), 4.2, point.hollow, &tip(series, point));
        }
    }
}

fn tip(series: &Series, point: &Point) -> String {
    let mut text = if series.kind == Kind::Bars {
        format!("{}: {}", series.name, short(point.y))
    } else {
        format!("{}: {} at {}", series.name, short(point.y), short(point.x))
    };
    if let Some((low, high)) = point.interval {
        text.push_str(&format!(" [{}, {}]", short(low), short(high)));
    }
    text
}

/// Maximal runs of consecutive points that satisfy a test.
fn runs(points: &[Point], test: impl Fn(&Point) -> bool) -> Vec<Vec<Point>> {
    points.split(|p| !test(p)).filter(|run| !run.is_empty()).map(<[Point]>::to_vec).collect()
}

fn stepped(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut out = Vec::with_capacity(points.len() * 2);
    for (i, &(x, y)) in points.iter().enumerate() {
        if i > 0 {
            out.push((x, points[i - 1].1));
        }
        out.push((x, y));
    }
    out
}

fn histogram(plot: &Plot, series: &Series) -> Vec<(f64, f64)> {
    let mut out = Vec::new();
    let ends = series.points.iter().skip(1).map(|p| p.x).chain(series.end);
    for (point, end) in series.points.iter().zip(ends) {
        if let (Some((a, y)), Some((b, zero))) = (plot.at(point.x, point.y), plot.at(end, 0.0)) {
            if out.is_empty() {
                out.push((a, zero));
            }
            out.extend([(a, y), (b, y)]);
        }
    }
    if let (Some(&(x, _)), Some(&(_, zero))) = (out.last(), out.first()) {
        out.push((x, zero));
    }
    out
}
