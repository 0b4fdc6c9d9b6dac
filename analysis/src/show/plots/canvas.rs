//! What the charts draw with: lines, dashes, boxes, hatches, markers and text in the chart's own pixels, over any plotters backend.
use super::style::{LineStyle, Marker, Rgb};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind};
use plotters::element::{Circle, PathElement, Polygon, Rectangle};
use plotters::prelude::DrawingBackend;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, RGBColor, ShapeStyle, TextStyle};

/// Name under which the committed font is registered; an SVG viewer takes its own sans-serif, which is no wider.
pub const FONT: &str = "sans-serif";
/// plotters' font sizes are line heights: it writes `size / 1.24` as the size in an SVG.
const SVG_LINE_HEIGHT: f64 = 1.24;
/// On pixels it takes the size as ascent plus descent, which in DejaVu Sans are 1.164 of the font size.
const PIXEL_LINE_HEIGHT: f64 = 1.164;
/// On pixels a line of text lies this share of its size higher than in an SVG.
const PIXEL_RISE: f64 = 0.16;

/// What the backend makes of a drawing: text is placed differently.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Target {
    /// Shapes and text; the viewer sets the text.
    Vector,
    /// Pixels.
    Pixels,
}

/// What drawing on a backend returns.
pub type DrawResult<DB, T = ()> = Result<T, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

/// A point in the chart's own pixels.
pub type Point = (f64, f64);

/// Where a text lies relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Starts there.
    Left,
    /// Centred.
    Center,
    /// Ends there.
    Right,
}

/// A drawing area with a scale.
pub struct Canvas<'a, DB: DrawingBackend> {
    area: &'a DrawingArea<DB, Shift>,
    scale: f64,
    target: Target,
}

impl<'a, DB: DrawingBackend> Canvas<'a, DB> {
    /// `scale`: backend pixels per chart pixel.
    pub fn new(area: &'a DrawingArea<DB, Shift>, scale: f64, target: Target) -> Self {
        Self { area, scale, target }
    }

    /// Fills everything.
    pub fn clear(&self, color: Rgb) -> DrawResult<DB> {
        self.area.fill(&rgb(color))
    }

    /// A solid line.
    pub fn line(&self, from: Point, to: Point, color: Rgb, width: f64) -> DrawResult<DB> {
        self.path(&[from, to], color, width)
    }

    /// A polyline in a style, dashed along its length.
    pub fn curve(&self, points: &[Point], style: &LineStyle) -> DrawResult<DB> {
        if style.dash.is_empty() {
            return self.path(points, style.color, style.width);
        }
        for piece in dashes(points, style.dash) {
            self.path(&piece, style.color, style.width)?;
        }
        Ok(())
    }

    /// A solid polyline. Points that fall on the same pixel are drawn once; plotters cannot draw a thick path of fewer than two.
    pub fn path(&self, points: &[Point], color: Rgb, width: f64) -> DrawResult<DB> {
        let mut pixels: Vec<(i32, i32)> = points.iter().map(|point| self.pixel(*point)).collect();
        pixels.dedup();
        drop_collinear(&mut pixels);
        if pixels.len() < 2 {
            return Ok(());
        }
        let style = ShapeStyle { color: rgb(color).to_rgba(), filled: false, stroke_width: self.stroke(width) };
        self.area.draw(&PathElement::new(pixels, style))
    }

    /// A filled rectangle; `opacity` 0 to 1.
    pub fn fill(&self, corner: Point, opposite: Point, color: Rgb, opacity: f64) -> DrawResult<DB> {
        let style = ShapeStyle { color: rgb(color).mix(opacity), filled: true, stroke_width: 0 };
        self.area.draw(&Rectangle::new([self.pixel(corner), self.pixel(opposite)], style))
    }

    /// The outline of a rectangle.
    pub fn outline(&self, corner: Point, opposite: Point, color: Rgb, width: f64) -> DrawResult<DB> {
        let ((x0, y0), (x1, y1)) = (corner, opposite);
        self.path(&[(x0, y0), (x1, y0)], color, width)?;
        self.path(&[(x1, y0), (x1, y1)], color, width)?;
        self.path(&[(x1, y1), (x0, y1)], color, width)?;
        self.path(&[(x0, y1), (x0, y0)], color, width)
    }

    /// Diagonal lines within a rectangle.
    pub fn hatch(&self, corner: Point, opposite: Point, color: Rgb, gap: f64) -> DrawResult<DB> {
        let (x0, x1) = (corner.0.min(opposite.0), corner.0.max(opposite.0));
        let (y0, y1) = (corner.1.min(opposite.1), corner.1.max(opposite.1));
        // The line x + y = c, for each c in steps, cut at the rectangle.
        let mut c = x0 + y0 + gap;
        while c < x1 + y1 {
            let from = ((c - y1).max(x0), (c - (c - y1).max(x0)).min(y1));
            let to = ((c - y0).min(x1), (c - (c - y0).min(x1)).max(y0));
            self.path(&[from, to], color, 1.0)?;
            c += gap;
        }
        Ok(())
    }

    /// A filled area.
    pub fn polygon(&self, points: &[Point], color: Rgb, opacity: f64) -> DrawResult<DB> {
        let mut pixels: Vec<(i32, i32)> = points.iter().map(|point| self.pixel(*point)).collect();
        pixels.dedup();
        if pixels.len() < 3 {
            return Ok(());
        }
        self.area.draw(&Polygon::new(pixels, rgb(color).mix(opacity)))
    }

    /// A marker of about `radius` pixels around a point, with a thin white rim.
    pub fn marker(&self, at: Point, marker: Marker, radius: f64, color: Rgb) -> DrawResult<DB> {
        let (x, y) = at;
        let shape = |r: f64| -> Vec<Point> {
            match marker {
                Marker::Square => vec![(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)],
                Marker::Triangle => vec![(x, y - 1.2 * r), (x + 1.15 * r, y + r), (x - 1.15 * r, y + r)],
                _ => vec![(x, y - 1.3 * r), (x + 1.3 * r, y), (x, y + 1.3 * r), (x - 1.3 * r, y)],
            }
        };
        let ring = radius + 1.2;
        match marker {
            Marker::None => Ok(()),
            Marker::Circle => {
                for (r, color) in [(ring, super::style::WHITE), (radius, color)] {
                    let style = ShapeStyle { color: rgb(color).to_rgba(), filled: true, stroke_width: 0 };
                    self.area.draw(&Circle::new(self.pixel(at), (r * self.scale).round() as i32, style))?;
                }
                Ok(())
            }
            _ => {
                self.polygon(&shape(ring), super::style::WHITE, 1.0)?;
                self.polygon(&shape(radius), color, 1.0)
            }
        }
    }

    /// One line of text, centred on `at` vertically; `size` is the font size in pixels.
    pub fn text(&self, text: &str, at: Point, size: f64, color: Rgb, align: Align) -> DrawResult<DB> {
        let h = match align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let (line_height, rise) = match self.target {
            Target::Vector => (SVG_LINE_HEIGHT, 0.0),
            Target::Pixels => (PIXEL_LINE_HEIGHT, PIXEL_RISE * size),
        };
        let style: TextStyle<'_> = (FONT, size * line_height * self.scale).into_font().color(&rgb(color)).pos(Pos::new(h, VPos::Center));
        self.area.draw_text(&printable(text), &style, self.pixel((at.0, at.1 + rise)))
    }

    fn pixel(&self, (x, y): Point) -> (i32, i32) {
        // Far outside is cut off well before the rasteriser's arithmetic could overflow.
        let whole = |value: f64| (value * self.scale).round().clamp(-100_000.0, 100_000.0) as i32;
        (whole(x), whole(y))
    }

    fn stroke(&self, width: f64) -> u32 {
        (width * self.scale).round().max(1.0) as u32
    }
}

/// Width of a text in pixels. Needs the font, as drawing does; 0 without it, and drawing then says so.
pub fn text_width(text: &str, size: f64) -> f64 {
    // Measured large, because the answer comes in whole pixels.
    const MEASURE: f64 = 8.0;
    (FONT, size * PIXEL_LINE_HEIGHT * MEASURE)
        .into_font()
        .layout_box(&printable(text))
        .map_or(0.0, |(from, to)| f64::from(to.0 - from.0) / MEASURE)
}

/// The text, cut with an ellipsis to fit `width` pixels.
pub fn fit(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_string();
    }
    let mut kept: Vec<char> = text.chars().take(400).collect();
    while !kept.is_empty() {
        kept.pop();
        let cut: String = kept.iter().collect::<String>().trim_end().to_string() + "…";
        if text_width(&cut, size) <= width {
            return cut;
        }
    }
    String::new()
}

/// The text broken at spaces into at most `lines` lines of `width` pixels; the last one is cut with an ellipsis.
pub fn wrap(text: &str, size: f64, width: f64, lines: usize) -> Vec<String> {
    let mut out: Vec<String> = Vec::new();
    let mut line = String::new();
    let mut words = text.split_whitespace().peekable();
    while let Some(word) = words.next() {
        let longer = if line.is_empty() { word.to_string() } else { format!("{line} {word}") };
        if line.is_empty() || text_width(&longer, size) <= width {
            line = longer;
        } else if out.len() + 1 == lines {
            let rest: Vec<&str> = std::iter::once(word).chain(words).take(60).collect();
            out.push(fit(&format!("{line} {}", rest.join(" ")), size, width));
            return out;
        } else {
            out.push(fit(&line, size, width));
            line = word.to_string();
        }
    }
    if !line.is_empty() {
        out.push(fit(&line, size, width));
    }
    out
}

/// Text made safe for XML attributes and content.
pub fn escape(text: &str) -> String {
    printable(text).replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Without the control characters that XML does not allow.
fn printable(text: &str) -> String {
    text.chars().map(|c| if c.is_control() || c == '\u{fffe}' || c == '\u{ffff}' { '\u{fffd}' } else { c }).collect()
}

fn rgb(color: Rgb) -> RGBColor {
    RGBColor(color.0, color.1, color.2)
}

/// Drops points in the middle of straight horizontal or vertical runs: fewer bytes, and plotters' thick paths break on them.
fn drop_collinear(pixels: &mut Vec<(i32, i32)>) {
    let mut kept: Vec<(i32, i32)> = Vec::with_capacity(pixels.len());
    for &point in pixels.iter() {
        if let [.., before, last] = kept[..]
            && ((before.0 == last.0 && last.0 == point.0) || (before.1 == last.1 && last.1 == point.1))
        {
            kept.pop();
        }
        kept.push(point);
    }
    kept.dedup();
    *pixels = kept;
}

/// The pieces of a polyline that a dash pattern leaves.
fn dashes(points: &[Point], pattern: &[f64]) -> Vec<Vec<Point>> {
    let mut pieces = Vec::new();
    let Some((&first, rest)) = points.split_first() else { return pieces };
    let (mut at, mut slot, mut left, mut piece) = (first, 0usize, pattern[0], vec![first]);
    for &to in rest {
        loop {
            let length = (to.0 - at.0).hypot(to.1 - at.1);
            if !length.is_finite() || length <= left {
                left -= if length.is_finite() { length } else { 0.0 };
                if slot.is_multiple_of(2) {
                    piece.push(to);
                }
                at = to;
                break;
            }
            at = (at.0 + (to.0 - at.0) * left / length, at.1 + (to.1 - at.1) * left / length);
            if slot.is_multiple_of(2) {
                piece.push(at);
                pieces.push(std::mem::take(&mut piece));
            } else {
                piece = vec![at];
            }
            slot = (slot + 1) % pattern.len();
            left = pattern[slot];
        }
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_cover_their_share_of_the_length() {
        let pieces = dashes(&[(0.0, 0.0), (60.0, 0.0), (60.0, 60.0)], &[6.0, 4.0]);
        assert_eq!(pieces.len(), 12);
        let drawn: f64 =
            pieces.iter().flat_map(|piece| piece.windows(2)).map(|pair| (pair[1].0 - pair[0].0).hypot(pair[1].1 - pair[0].1)).sum();
        assert!((drawn - 72.0).abs() < 1e-6, "{drawn}");
    }

    #[test]
    fn escaping_leaves_no_markup_and_no_control_character() {
        assert_eq!(escape("<a href=\"x\">&\u{0}"), "&lt;a href=&quot;x&quot;&gt;&amp;\u{fffd}");
    }

    #[test]
    fn straight_runs_keep_their_ends() {
        let mut pixels = vec![(0, 0), (1, 0), (5, 0), (5, 3), (5, 9)];
        drop_collinear(&mut pixels);
        assert_eq!(pixels, [(0, 0), (5, 0), (5, 9)]);
    }
}
