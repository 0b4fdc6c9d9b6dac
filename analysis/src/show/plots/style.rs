//! Colours, dashes and markers. One place, so that polling and events look the same in every chart, also without colour.
//!
//! The two modes take blue and vermilion of the Okabe-Ito palette and differ in dash and marker as well. Stages are told apart by
//! a number that is drawn into their segment; their colours are those of the stage table.

use capture::Mode;

/// A colour as red, green, blue.
pub type Rgb = (u8, u8, u8);

/// Text.
pub const INK: Rgb = (0x1a, 0x1a, 0x1a);
/// Secondary text; contrast against white is above 7:1.
pub const GREY: Rgb = (0x4d, 0x4d, 0x4d);
/// Axis lines and tick marks.
pub const AXIS: Rgb = (0x66, 0x66, 0x66);
/// Grid lines.
pub const GRID: Rgb = (0xdd, 0xdd, 0xdd);
/// Grid lines between labelled ticks.
pub const GRID_FAINT: Rgb = (0xf0, 0xf0, 0xf0);
/// The chart's ground.
pub const WHITE: Rgb = (0xff, 0xff, 0xff);
/// Notes that must not be missed (emulation).
pub const ALERT: Rgb = (0x9c, 0x2f, 0x00);
/// Curves of rounds with probes.
pub const PROBED: Rgb = (0x8c, 0x8c, 0x8c);

/// Shape that marks a curve.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Marker {
    /// Filled circle.
    Circle,
    /// Filled square.
    Square,
    /// Filled triangle.
    Triangle,
    /// Filled diamond.
    Diamond,
    /// None.
    None,
}

/// How a curve is drawn.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LineStyle {
    /// Colour.
    pub color: Rgb,
    /// Lengths of dash and gap in pixels, repeated; empty: solid.
    pub dash: &'static [f64],
    /// Marker.
    pub marker: Marker,
    /// Width in pixels.
    pub width: f64,
}

const SOLID: &[f64] = &[];
const DASHED: &[f64] = &[9.0, 4.0];

/// Style of a completion mode. `repeat` is 0 for the first curve of that mode in a chart and counts up for more of the same.
pub fn mode_style(mode: Mode, repeat: usize) -> LineStyle {
    let (color, dash, marker) = match mode {
        Mode::Poll => ((0x00, 0x72, 0xb2), SOLID, Marker::Circle),
        Mode::Event => ((0xd5, 0x5e, 0x00), DASHED, Marker::Square),
    };
    // A repeat is a lighter shade of its mode, with the mode's dash: the label says which run it is.
    let lighter = (repeat as f64 * 0.28).min(0.65);
    LineStyle { color: mix(color, WHITE, lighter), dash, marker, width: if repeat == 0 { 2.2 } else { 1.6 } }
}

/// Style of the same run's rounds with probes: grey, thin, with the dash of its mode.
pub fn probed_style(mode: Mode) -> LineStyle {
    LineStyle { color: PROBED, width: 1.4, marker: Marker::None, ..mode_style(mode, 0) }
}

/// Black or white, whichever reads better on `ground`.
pub fn ink_on(ground: Rgb) -> Rgb {
    if luminance(ground) > 0.36 { (0, 0, 0) } else { WHITE }
}

/// `part` of `b` mixed into `a`, 0 to 1.
pub fn mix(a: Rgb, b: Rgb, part: f64) -> Rgb {
    let channel = |a: u8, b: u8| (f64::from(a) + (f64::from(b) - f64::from(a)) * part).round() as u8;
    (channel(a.0, b.0), channel(a.1, b.1), channel(a.2, b.2))
}

/// Lightness as seen, 0 (black) to 1 (white).
pub fn luminance(color: Rgb) -> f64 {
    (0.299 * f64::from(color.0) + 0.587 * f64::from(color.1) + 0.114 * f64::from(color.2)) / 255.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use capture::named::Named;

    #[test]
    fn every_mode_differs_without_colour() {
        for (at, mode) in Mode::ALL.iter().enumerate() {
            for other in &Mode::ALL[at + 1..] {
                let (one, other) = (mode_style(*mode, 0), mode_style(*other, 0));
                assert!(one.dash != other.dash && one.marker != other.marker && one.color != other.color);
            }
        }
    }

    #[test]
    fn poll_and_event_differ_without_colour() {
        let (poll, event) = (mode_style(Mode::Poll, 0), mode_style(Mode::Event, 0));
        assert_ne!(poll.dash, event.dash);
        assert_ne!(poll.marker, event.marker);
        assert!((luminance(poll.color) - luminance(event.color)).abs() > 0.08);
    }
}
