//! Colours, dashes and markers. One place, so that polling and events look the same in every chart, also without colour.
//!
//! The two modes take blue and vermilion of the Okabe-Ito palette and differ in dash and marker as well. Stages are told apart by
//! a number that is drawn into their segment; their colours alternate dark and light along the path.

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
const DOTTED: &[f64] = &[2.0, 3.0];
const DASH_DOT: &[f64] = &[9.0, 3.0, 2.0, 3.0];

/// Style of a completion mode. `repeat` is 0 for the first curve of that mode in a chart and counts up for more of the same.
pub fn mode_style(mode: &str, repeat: usize) -> LineStyle {
    let (color, dash, marker) = match mode {
        "poll" => ((0x00, 0x72, 0xb2), SOLID, Marker::Circle),
        "event" => ((0xd5, 0x5e, 0x00), DASHED, Marker::Square),
        "async" => ((0x00, 0x7a, 0x59), DASH_DOT, Marker::Triangle),
        _ => ((0x8f, 0x3f, 0x71), DOTTED, Marker::Diamond),
    };
    // A repeat is a lighter shade of its mode, with the mode's dash: the label says which run it is.
    let lighter = (repeat as f64 * 0.28).min(0.65);
    LineStyle { color: mix(color, WHITE, lighter), dash, marker, width: if repeat == 0 { 2.2 } else { 1.6 } }
}

/// Style of the same run's rounds with probes: grey, thin, with the dash of its mode.
pub fn probed_style(mode: &str) -> LineStyle {
    LineStyle { color: PROBED, width: 1.4, marker: Marker::None, ..mode_style(mode, 0) }
}

/// Colours of the stages in path order. Neighbours differ in lightness.
const STAGES: &[(&str, Rgb)] = &[
    ("post", (0x33, 0x22, 0x88)),
    ("send queue full", (0xbb, 0xbb, 0xbb)),
    ("post, device + network", (0xa8, 0xa8, 0x55)),
    ("device + network", (0x99, 0x99, 0x33)),
    ("device, network and detection", (0x80, 0x80, 0xb0)),
    ("requester queue", (0x88, 0xcc, 0xee)),
    ("requester workqueue", (0xee, 0x88, 0x66)),
    ("requester", (0x11, 0x77, 0x33)),
    ("requester (start not seen)", (0x4d, 0x9e, 0x5f)),
    ("retransmission", (0xc0, 0x00, 0x50)),
    ("tx stack", (0xdd, 0xcc, 0x77)),
    ("wire + peer", (0x7a, 0x7a, 0x2a)),
    ("rx interrupt", (0x66, 0x99, 0xaa)),
    ("irq thread wake-up", (0x3b, 0x75, 0xaf)),
    ("irq thread", (0xb0, 0xc4, 0xde)),
    ("softirq thread wake-up", (0xd0, 0x8a, 0x2e)),
    ("rx softirq", (0x9a, 0xe0, 0xd0)),
    ("task queue", (0xd5, 0x5e, 0x00)),
    ("task workqueue", (0xaa, 0x33, 0x77)),
    ("protocol", (0xf0, 0xe4, 0x42)),
    ("protocol (start not seen)", (0xf7, 0xf0, 0x99)),
    ("protocol and detection", (0xbb, 0xcc, 0x33)),
    ("detect", (0x00, 0x72, 0xb2)),
    ("notify delay", (0x88, 0x22, 0x55)),
    ("hard irq", (0xee, 0x99, 0xaa)),
    ("bottom-half wait", (0x66, 0x33, 0x00)),
    ("bottom half", (0xff, 0xbb, 0x78)),
    ("handler", (0x00, 0x9e, 0x73)),
    ("activation", (0x56, 0xb4, 0xe9)),
    ("run queue", (0xb2, 0x3a, 0x48)),
    ("activation and run queue", (0x7f, 0x5f, 0xb0)),
    ("event read", (0x33, 0x88, 0x99)),
    ("event read without sleep", (0xa6, 0x76, 0x1d)),
    ("idle exit", (0xff, 0xd9, 0x66)),
    ("return to user", (0x00, 0x4d, 0x66)),
    ("poll", (0xcc, 0x79, 0xa7)),
    ("post return after completion", (0x55, 0x55, 0x55)),
    (UNATTRIBUTED, (0xff, 0xff, 0xff)),
];

/// Name of the remainder that no stage covers; drawn hatched.
pub const UNATTRIBUTED: &str = "unattributed";

/// Colour of a stage, the same in every chart. A name that is not in the table gets one of the table's colours by its letters.
pub fn stage_color(name: &str) -> Rgb {
    if let Some((_, color)) = STAGES.iter().find(|(known, _)| *known == name) {
        return *color;
    }
    let sum = name.bytes().fold(7usize, |sum, byte| sum.wrapping_mul(31).wrapping_add(usize::from(byte)));
    STAGES[sum % (STAGES.len() - 1)].1
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

    #[test]
    fn poll_and_event_differ_without_colour() {
        let (poll, event) = (mode_style("poll", 0), mode_style("event", 0));
        assert_ne!(poll.dash, event.dash);
        assert_ne!(poll.marker, event.marker);
        assert!((luminance(poll.color) - luminance(event.color)).abs() > 0.08);
    }

    #[test]
    fn every_stage_has_its_own_colour() {
        for (at, (name, color)) in STAGES.iter().enumerate() {
            for (other, twin) in &STAGES[at + 1..] {
                assert_ne!(color, twin, "{name} and {other}");
            }
        }
        assert_eq!(stage_color("some later stage"), stage_color("some later stage"));
    }
}
