//! What all charts share: title, context line, legend above the picture, notes below it, axes and grid.
//!
//! plotters draws every line, area and text, for both formats. Its `ChartBuilder`, mesh and series labels (0.3.7) are not used; what they
//! lack:
//! - Ticks. A log axis has its key points at powers of the base and at even parts between them; ours stand at 1, 2, 5 × 10^k. A mesh
//!   prints each key point: `x_labels(n)` bounds their number, nothing compares the widths of neighbouring labels, so `50 µs` and `100 µs`
//!   may run into each other. [`super::axis`] takes the densest set that fits.
//! - Names of axes stand below the horizontal axis in its middle and turned by 90° beside the vertical one; ours stand at the axes' ends
//!   and are read without turning the head.
//! - The legend is a box inside the plotting area, one entry per line, over the curves. Ours has up to a dozen entries: it stands above
//!   the picture in rows as wide as the chart, cuts what is too long, and its height is added to the chart's.
//! - Title, context, wrapped lines and notes below: a caption is one line that is neither cut nor broken, and there is none below.
//! - A value beyond the ends of an axis is mapped outside of the plot; ours ends at the edge.
//! - Dashes: `DashedPathElement` hands its pieces on as they are, with repeated pixels and straight runs in them, on which thick lines break
//!   in a PNG; [`super::canvas::Canvas::path`] takes them out.
//! - Bars with a number in each segment, hatches, and a stage's row beside its own label (bands, waterfall) are no series of plotters; they
//!   need places in pixels, and these are what an axis of ours gives.
use super::axis::{Axis, TICK_SIZE};
use super::canvas::{Align, Canvas, DrawResult, fit, text_width, wrap};
use super::style::{ALERT, AXIS, GREY, GRID, GRID_FAINT, INK, LineStyle, Rgb, WHITE, ink_on};
use plotters::backend::DrawingBackend;

/// Left and right edge of everything.
pub(super) const MARGIN: f64 = 16.0;
const TITLE_SIZE: f64 = 17.0;
const TEXT_SIZE: f64 = 13.0;
const LEGEND_ROW: f64 = 21.0;
const SWATCH: f64 = 34.0;
const NOTE_ROW: f64 = 18.0;

/// The note on pictures of captures made under emulation.
pub const EMULATED_NOTE: &str = "EMULATED CPU: order, counts and shares hold, durations do not.";

/// What stands above a chart.
#[derive(Clone, Debug)]
pub struct Heading {
    /// What was run, such as `send, 64 B, RC`, and the metric.
    pub subject: String,
    /// Where: kernel, device, driver, probes.
    pub context: String,
    /// The capture was made under instruction emulation.
    pub emulated: bool,
}

/// An entry of a legend.
pub(super) struct LegendItem {
    pub label: String,
    pub swatch: Swatch,
}

/// The picture in front of a legend's label.
pub(super) enum Swatch {
    /// A piece of curve.
    Line(LineStyle),
    /// A box with the number that is drawn into the segments.
    Box { color: Rgb, hatched: bool, number: usize },
}

/// Title, context, legend and notes of one chart.
pub(super) struct Frame<'a> {
    pub title: String,
    pub heading: &'a Heading,
    /// Further lines under the context line, wrapped.
    pub lines: Vec<String>,
    pub legend: Vec<LegendItem>,
    /// Lines under the picture.
    pub notes: Vec<String>,
    pub width: f64,
}

impl Frame<'_> {
    /// Height above the picture.
    pub(super) fn top(&self) -> f64 {
        52.0 + NOTE_ROW * self.wrapped(&self.lines, 3).len() as f64 + LEGEND_ROW * self.legend_rows() as f64 + 8.0
    }

    /// Height below the picture's axis.
    pub(super) fn bottom(&self) -> f64 {
        10.0 + NOTE_ROW * self.footer().len() as f64
    }

    /// Draws all of it. The caller draws between [`Frame::top`] and [`Frame::bottom`].
    pub(super) fn draw<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, height: f64) -> DrawResult<DB> {
        canvas.clear(WHITE)?;
        let room = self.width - 2.0 * MARGIN;
        canvas.text(&fit(&self.title, TITLE_SIZE, room), (MARGIN, 18.0), TITLE_SIZE, INK, Align::Left)?;
        canvas.text(&fit(&self.heading.context, TEXT_SIZE, room), (MARGIN, 40.0), TEXT_SIZE, GREY, Align::Left)?;
        let mut y = 40.0;
        for line in self.wrapped(&self.lines, 3) {
            y += NOTE_ROW;
            canvas.text(&line, (MARGIN, y), TEXT_SIZE, INK, Align::Left)?;
        }
        y += 24.0;
        let (mut x, mut row) = (MARGIN, 0);
        for (item, width) in self.legend.iter().zip(self.legend_widths()) {
            if x > MARGIN && x + width > self.width - MARGIN {
                x = MARGIN;
                row += 1;
            }
            draw_item(canvas, item, (x, y + LEGEND_ROW * f64::from(row)), width)?;
            x += width + 18.0;
        }
        let footer = self.footer();
        let mut y = height - NOTE_ROW * footer.len() as f64 + 2.0;
        for (line, color) in footer {
            canvas.text(&line, (MARGIN, y), TEXT_SIZE, color, Align::Left)?;
            y += NOTE_ROW;
        }
        Ok(())
    }

    fn footer(&self) -> Vec<(String, Rgb)> {
        let mut lines: Vec<(String, Rgb)> = self.wrapped(&self.notes, 2).into_iter().map(|line| (line, GREY)).collect();
        if self.heading.emulated {
            lines.push((EMULATED_NOTE.to_string(), ALERT));
        }
        lines
    }

    fn wrapped(&self, texts: &[String], lines: usize) -> Vec<String> {
        texts.iter().flat_map(|text| wrap(text, TEXT_SIZE, self.width - 2.0 * MARGIN, lines)).collect()
    }

    fn legend_widths(&self) -> Vec<f64> {
        self.legend.iter().map(|item| (SWATCH + 7.0 + text_width(&item.label, TEXT_SIZE)).min(self.width - 2.0 * MARGIN)).collect()
    }

    fn legend_rows(&self) -> usize {
        if self.legend.is_empty() {
            return 0;
        }
        let (mut x, mut rows) = (MARGIN, 1);
        for width in self.legend_widths() {
            if x > MARGIN && x + width > self.width - MARGIN {
                x = MARGIN;
                rows += 1;
            }
            x += width + 18.0;
        }
        rows
    }
}

fn draw_item<DB: DrawingBackend>(canvas: &Canvas<'_, DB>, item: &LegendItem, (x, y): (f64, f64), width: f64) -> DrawResult<DB> {
    match &item.swatch {
        Swatch::Line(style) => {
            canvas.curve(&[(x, y), (x + SWATCH, y)], style)?;
            canvas.marker((x + SWATCH / 2.0, y), style.marker, 3.6, style.color)?;
        }
        Swatch::Box { color, hatched, number } => {
            segment(canvas, (x + 4.0, y - 8.0), (x + SWATCH, y + 8.0), *color, *hatched, &number.to_string())?;
        }
    }
    canvas.text(&fit(&item.label, TEXT_SIZE, width - SWATCH - 7.0 + 0.5), (x + SWATCH + 7.0, y), TEXT_SIZE, INK, Align::Left)
}

/// A segment of a bar, with its number or name where it fits.
pub(super) fn segment<DB: DrawingBackend>(
    canvas: &Canvas<'_, DB>,
    (x0, y0): (f64, f64),
    (x1, y1): (f64, f64),
    color: Rgb,
    hatched: bool,
    label: &str,
) -> DrawResult<DB> {
    const LABEL: f64 = 12.0;
    canvas.fill((x0, y0), (x1, y1), color, 1.0)?;
    let width = text_width(label, LABEL);
    let labelled = !label.is_empty() && width + 4.0 <= x1 - x0;
    if hatched {
        canvas.hatch((x0, y0), (x1, y1), AXIS, 6.0)?;
        canvas.outline((x0, y0), (x1, y1), AXIS, 1.0)?;
        if labelled {
            let (x, y) = ((x0 + x1) / 2.0, (y0 + y1) / 2.0);
            canvas.fill((x - width / 2.0 - 2.0, y - 7.0), (x + width / 2.0 + 2.0, y + 7.0), WHITE, 1.0)?;
        }
    }
    if labelled {
        canvas.text(label, ((x0 + x1) / 2.0, (y0 + y1) / 2.0), LABEL, ink_on(color), Align::Center)?;
    }
    Ok(())
}

/// The rectangle that a chart's data is drawn into.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plot {
    pub left: f64,
    pub right: f64,
    pub top: f64,
    pub bottom: f64,
}

impl Plot {
    /// Grid, ticks and name of the horizontal axis.
    pub(super) fn x_axis<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, axis: &Axis, name: &str) -> DrawResult<DB> {
        for value in axis.minor() {
            canvas.line((axis.px(value), self.top), (axis.px(value), self.bottom), GRID_FAINT, 1.0)?;
        }
        for tick in axis.ticks_across() {
            let x = axis.px(tick.value);
            canvas.line((x, self.top), (x, self.bottom), GRID, 1.0)?;
            canvas.line((x, self.bottom), (x, self.bottom + 5.0), AXIS, 1.0)?;
            canvas.text(&tick.label, (x, self.bottom + 15.0), TICK_SIZE, INK, Align::Center)?;
        }
        canvas.line((self.left, self.bottom), (self.right, self.bottom), AXIS, 1.0)?;
        canvas.text(name, (self.right, self.bottom + 34.0), TEXT_SIZE, GREY, Align::Right)
    }

    /// Grid and ticks of the vertical axis, its name above it.
    pub(super) fn y_axis<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, axis: &Axis, name: &str) -> DrawResult<DB> {
        for tick in axis.ticks_up() {
            let y = axis.px(tick.value);
            canvas.line((self.left, y), (self.right, y), GRID, 1.0)?;
            canvas.text(&tick.label, (self.left - 8.0, y), TICK_SIZE, INK, Align::Right)?;
        }
        canvas.line((self.left, self.top), (self.left, self.bottom), AXIS, 1.0)?;
        canvas.text(name, (MARGIN, self.top - 16.0), TEXT_SIZE, GREY, Align::Left)
    }

    /// Says in the middle that there is nothing to draw, and why.
    pub(super) fn empty<DB: DrawingBackend>(&self, canvas: &Canvas<'_, DB>, why: &str) -> DrawResult<DB> {
        canvas.outline((self.left, self.top), (self.right, self.bottom), GRID, 1.0)?;
        canvas.text(why, ((self.left + self.right) / 2.0, (self.top + self.bottom) / 2.0), 15.0, GREY, Align::Center)
    }
}
